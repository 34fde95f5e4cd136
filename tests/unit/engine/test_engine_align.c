/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of ranks whose counting began at different times. */
#include "engine/align.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"

#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 4,
	MAX_SAMPLES = 64,
};

static struct nt_engine *engine;
static struct {
	uint64_t epoch, last, rolling_hash, inside;
} seen[RANKS];
static size_t common; /* samples of the last frame that all ranks have */

static void note_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	(void)data;
	(void)job;
	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		assert_true(rank->rank < RANKS);
		seen[rank->rank].inside = rank->inside.number;
		if (!rank->comms)
			continue;
		seen[rank->rank].epoch = rank->comm[0].epoch;
		seen[rank->rank].last = rank->comm[0].last;
		seen[rank->rank].rolling_hash = rank->comm[0].rolling_hash;
	}
	common = 0;
	for (size_t i = 0; i + RANKS <= frame->samples; i++) {
		const struct nt_frame_sample *sample = &frame->sample[i];
		size_t same = 0;

		while (same < RANKS && sample[same].epoch == sample->epoch &&
		       sample[same].number == sample->number && sample[same].rank == same)
			same++;
		common += same == RANKS;
	}
}

static int set_up(void **state)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {.frame = note_frame};

	(void)state;
	return nt_engine_new(&options, &handler, &engine);
}

static int tear_down(void **state)
{
	(void)state;
	nt_engine_free(engine);
	return 0;
}

/* A rank that calls an all-reduce every `spacing_ms`, numbered from `start` on in its epoch. */
struct caller {
	uint32_t rank;
	uint64_t epoch, start;
	uint64_t spacing_ms, late_us; /* late: it enters so long before the release at least */
	int64_t clock_us; /* how far its node's clock is off */
	bool sizes; /* calls of different sizes in turn */
	bool library; /* numbered by the library */
};

static void push_calls(struct feed_agent *agent, const struct caller *caller, uint64_t from_ms,
		       uint64_t to_ms)
{
	const struct feed_window window = {
		.rank = caller->rank,
		.size = RANKS,
		.from_ms = from_ms,
		.to_ms = to_ms,
		.steps = 5,
		.own_ms = 5,
		.step_ms = 10,
		.comm = 0xabc,
		.epoch = caller->epoch,
		.inside = true,
	};
	nt_auto(nt_message) struct nt_message *message = feed_window(agent, &window);
	struct nt_sample sample[MAX_SAMPLES];
	struct nt_comm_window comm = message->window.comm[0];
	struct nt_message with = *message;
	uint64_t last = 0;
	size_t samples = 0;

	/* Call n of the job is released at n × spacing, at one instant for all. */
	for (uint64_t n = from_ms / caller->spacing_ms + 1; n * caller->spacing_ms < to_ms; n++) {
		const uint64_t release_ns = feed_boot_ns(agent, n * caller->spacing_ms) +
					    (uint64_t)(caller->clock_us * 1000);

		last = n - caller->start;
		if (samples == MAX_SAMPLES)
			continue;
		sample[samples++] = (struct nt_sample){
			.comm = 0xabc,
			.epoch = caller->epoch,
			.number = last,
			.op = NT_OP_ALL_REDUCE,
			.bytes = caller->sizes ? 1000 * (n % 7) : 4096,
			.arrive_boot_ns = release_ns - caller->late_us * 1000,
			.release_boot_ns = release_ns + caller->rank * 20000,
		};
	}
	comm.last = last;
	comm.recent[0].number = last;
	comm.numbered_by_library = caller->library;
	with.window.sample = sample;
	with.window.samples = samples;
	with.window.comm = &comm;
	with.window.inside.number = last + 1;
	assert_int_equal(nt_engine_push(engine, feed_copy(&with), false), 0);
}

/* The first two ranks are on one node, the others on another. */
static void run(struct caller caller[RANKS], uint64_t from_ms, uint64_t to_ms)
{
	static struct feed_agent agent[2];

	if (!from_ms) {
		agent[0] = feed_agent("n0", "job");
		agent[1] = feed_agent("n1", "job");
		agent[1].booted_ms = 5555;
	}
	for (uint64_t at = from_ms; at < to_ms; at += 500)
		for (uint32_t i = 0; i < RANKS; i++) {
			caller[i].rank = i;
			push_calls(&agent[i / 2], &caller[i], at, at + 500);
		}
}

static void assert_comparable(void)
{
	for (size_t i = 1; i < RANKS; i++) {
		assert_int_equal(seen[i].epoch, seen[0].epoch);
		assert_int_equal(seen[i].last, seen[0].last);
		assert_int_equal(seen[i].inside, seen[0].inside);
	}
	assert_true(common > 0);
}

static const struct nt_align_counters *counters(void)
{
	return &nt_engine_frame_builder_counters(engine)->align;
}

static void numbers_from_the_first_call_on_are_comparable_at_once(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 1, .spacing_ms = 50};
	run(caller, 0, 5000);
	assert_comparable();
	assert_int_equal(seen[0].epoch, NT_ALIGN_WHOLE);
	assert_int_equal(counters()->aligned, 0);
}

static void numbers_of_the_library_are_comparable_in_any_epoch(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 70 + i, .spacing_ms = 50, .library = true};
	run(caller, 0, 5000);
	assert_comparable();
}

static void ranks_of_a_restarted_agent_are_aligned_to_the_others(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 1, .spacing_ms = 50};
	run(caller, 0, 5000);
	for (size_t i = 2; i < RANKS; i++) {
		caller[i].epoch = 900 + i;
		caller[i].start = 98 + i;
	}
	run(caller, 5000, 10000);
	assert_comparable();
	assert_int_equal(seen[3].epoch, NT_ALIGN_WHOLE);
	/* At the end of the last window that was judged. */
	assert_in_range(seen[3].last, 150, 199);
	assert_int_equal(seen[3].rolling_hash, seen[0].rolling_hash);
	assert_int_equal(counters()->aligned, 2);
}

static void agents_that_came_late_are_aligned_to_each_other(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 50 + i, .start = 10 * i, .spacing_ms = 50};
	run(caller, 0, 8000);
	assert_comparable();
	assert_int_not_equal(seen[0].epoch, NT_ALIGN_WHOLE);
	assert_int_equal(counters()->aligned, RANKS - 1);
}

static void clocks_that_differ_a_little_do_not_shift_numbers(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 50 + i,
					    .start = 10 * i,
					    .spacing_ms = 25,
					    .clock_us = i < 2 ? 0 : 5000};
	run(caller, 0, 8000);
	assert_comparable();
}

static void calls_too_close_for_two_clocks_are_never_aligned_wrongly(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 50 + i,
					    .start = 10 * i,
					    .spacing_ms = 8,
					    .clock_us = i < 2 ? 0 : 7000};
	run(caller, 0, 8000);
	/* One clock for each node: its ranks are, the other's are not. */
	assert_int_equal(seen[1].epoch, seen[0].epoch);
	assert_int_equal(seen[1].last, seen[0].last);
	assert_int_not_equal(seen[2].epoch, seen[0].epoch);
	assert_int_equal(common, 0);
}

static void calls_that_are_not_the_same_do_not_vote(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 50 + i, .start = 10 * i, .spacing_ms = 50};
	caller[3].sizes = true;
	run(caller, 0, 8000);
	assert_int_equal(seen[2].epoch, seen[0].epoch);
	assert_int_not_equal(seen[3].epoch, seen[0].epoch);
}

static void a_new_epoch_is_not_read_with_the_old_shift(void **state)
{
	struct caller caller[RANKS];

	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		caller[i] = (struct caller){.epoch = 50 + i, .start = 10 * i, .spacing_ms = 50};
	run(caller, 0, 5000);
	assert_comparable();
	caller[2].epoch = 999;
	caller[2].start = 77;
	run(caller, 5000, 10000);
	assert_comparable();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_from_the_first_call_on_are_comparable_at_once),
		TEST(numbers_of_the_library_are_comparable_in_any_epoch),
		TEST(ranks_of_a_restarted_agent_are_aligned_to_the_others),
		TEST(agents_that_came_late_are_aligned_to_each_other),
		TEST(clocks_that_differ_a_little_do_not_shift_numbers),
		TEST(calls_too_close_for_two_clocks_are_never_aligned_wrongly),
		TEST(calls_that_are_not_the_same_do_not_vote),
		TEST(a_new_epoch_is_not_read_with_the_old_shift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
