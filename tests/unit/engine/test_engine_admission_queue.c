/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who of a admission is due when, and what a communicator that becomes known changes. */
#include "engine/admission_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"

#include "tests/unit/engine/window_feed.h"

enum {
	SIZE = 64, /* of the job: so many are never there, so that the admission is not let in */
	WORLD = 0xabc, /* known */
	GROUP = 0xdef, /* not known yet */
	ALONE = 0x123, /* never known */
};

static struct nt_engine *engine;
static struct nt_job_key *key;
static struct feed_agent agent;
static struct nt_admission queue;

static void push(uint32_t rank, uint64_t to_ms, uint64_t comm)
{
	const struct feed_window window = {
		.rank = rank,
		.size = SIZE,
		.from_ms = to_ms - 500,
		.to_ms = to_ms,
		.steps = 5,
		.own_ms = 50,
		.step_ms = 100,
		.comm = comm,
		.comm_size = 4,
		.last = to_ms / 100,
	};

	assert_int_equal(nt_engine_push(engine, feed_window(&agent, &window), false), 0);
}

static void know(uint64_t comm)
{
	struct nt_shared_comm_index *index = calloc(1, sizeof(*index));

	assert_non_null(index);
	index->comm = comm;
	index->job = key->job;
	HASH_ADD(hh, key->shared_comm, comm, sizeof(index->comm), index);
}

static uint64_t at(uint64_t ms)
{
	return REAL_0 + ms * MS;
}

/* A job of two ranks, and behind it whom a test lets into the admission list. */
static int set_up(void **state)
{
	const struct nt_engine_options options = nt_engine_options_default();

	(void)state;
	assert_int_equal(nt_engine_new(&options, NULL, &engine), 0);
	agent = feed_agent("n0", "job");
	for (uint64_t ms = 500; ms <= 4500; ms += 500)
		for (uint32_t rank = 0; rank < 2; rank++)
			push(rank, ms, WORLD);
	key = nt_jobs_keys(nt_engine_jobs(engine));
	assert_non_null(key->job);
	assert_int_equal(key->admissions, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_admission_release(&queue);
	nt_engine_free(engine);
	engine = NULL;
	return 0;
}

static void make_queue(size_t sessions)
{
	assert_int_equal(key->admissions, sessions);
	assert_int_equal(nt_admission_make(nt_engine_jobs(engine), key, &queue), 0);
}

static void check_batch(size_t count, const uint32_t *rank, uint64_t now_ms)
{
	assert_int_equal(nt_admission_take(&queue, at(now_ms)), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(queue.batch[i]->session->rank, rank[i]);
}

static void sessions_are_due_with_their_first_known_communicator(void **state)
{
	static const uint32_t first[] = {9}, then[] = {4, 7}, last[] = {5};

	(void)state;
	push(7, 5000, WORLD);
	push(4, 5000, WORLD);
	push(9, 4990, WORLD);
	push(5, 5000, ALONE);
	make_queue(4);
	assert_int_equal(nt_admission_due_ns(&queue), at(4990));
	check_batch(1, first, 4990);
	assert_int_equal(nt_admission_due_ns(&queue), at(5000));
	check_batch(2, then, 5000);
	/* It waits for two seconds. */
	assert_int_equal(nt_admission_due_ns(&queue), at(7000));
	check_batch(0, NULL, 6999);
	check_batch(1, last, 7000);
	assert_int_equal(nt_admission_due_ns(&queue), UINT64_MAX);
}

static void one_that_becomes_known_makes_those_due_who_were_seen_in_it(void **state)
{
	static const uint32_t first[] = {3, 4}, second[] = {6}, last[] = {5};

	(void)state;
	push(4, 5000, GROUP);
	push(3, 5000, GROUP);
	push(5, 5000, ALONE);
	push(6, 5000, ALONE);
	push(6, 5500, GROUP);
	make_queue(4);
	assert_int_equal(nt_admission_due_ns(&queue), at(7000));
	know(GROUP);
	assert_int_equal(nt_admission_learn(&queue, key, GROUP), 0);
	assert_int_equal(nt_admission_due_ns(&queue), at(5000));
	check_batch(2, first, 5000);
	check_batch(1, second, 5500);
	/* Those who are in the queue twice come out once. */
	check_batch(1, last, 7000);
	check_batch(0, NULL, 100000);
}

static void who_goes_back_comes_again_at_its_new_time(void **state)
{
	static const uint32_t rank[] = {4};

	(void)state;
	push(4, 5000, WORLD);
	make_queue(1);
	check_batch(1, rank, 5000);
	assert_int_equal(nt_admission_due_ns(&queue), UINT64_MAX);
	assert_int_equal(nt_admission_put(&queue, queue.batch[0], at(6000)), 0);
	check_batch(0, NULL, 5999);
	check_batch(1, rank, 6000);
	queue.batch[0]->session = NULL;
	assert_int_equal(nt_admission_due_ns(&queue), UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sessions_are_due_with_their_first_known_communicator),
		TEST(one_that_becomes_known_makes_those_due_who_were_seen_in_it),
		TEST(who_goes_back_comes_again_at_its_new_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
