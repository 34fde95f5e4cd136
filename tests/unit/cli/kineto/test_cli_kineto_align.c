/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived steps of ranks that lack the records of some calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kineto/kineto.h"

enum {
	RANKS = 4,
	STEPS = 60,
};

#define MS 1000000ull

static struct nt_kineto_rank rank[RANKS];
static struct nt_kineto_ranks ranks = {.rank = rank, .ranks = RANKS};

/* Steps of random length, equal on all ranks: between 60 and 140 ms. */
static uint64_t end_of(size_t step)
{
	uint64_t at = 1000 * MS, seed = 7;

	for (size_t i = 0; i < step; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at += 60 * MS + (seed >> 33) % (80 * MS);
	}
	return at;
}

/* The steps of a rank whose clock is ahead; it lacks the end `lost`, and those before `first`. */
static void make(uint32_t i, uint64_t ahead_ns, size_t lost, size_t first)
{
	rank[i] = (struct nt_kineto_rank){.rank = i, .cuts = true};
	rank[i].step = calloc(STEPS, sizeof(*rank[i].step));
	for (size_t n = first; n < STEPS; n++) {
		const uint64_t start_ns = end_of(n) + ahead_ns, end_ns = end_of(n + 1) + ahead_ns;

		if (n && n == lost)
			rank[i].step[rank[i].steps - 1].end_ns = end_ns;
		else
			rank[i].step[rank[i].steps++] =
				(struct nt_kineto_interval){.start_ns = start_ns, .end_ns = end_ns};
	}
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < RANKS; i++)
		free(rank[i].step);
	memset(rank, 0, sizeof(rank));
	return 0;
}

/* Whether all its steps are those of the job, from its first one on. */
static void assert_in_line(uint32_t i, uint64_t ahead_ns, size_t first)
{
	assert_int_equal(rank[i].ahead, first);
	assert_int_equal(rank[i].steps, STEPS - first);
	for (size_t n = 0; n < rank[i].steps; n++) {
		const uint64_t want_ns = end_of(first + n + 1) + ahead_ns;

		assert_in_range(rank[i].step[n].end_ns, want_ns - MS, want_ns + MS);
	}
}

static void a_lost_end_shifts_no_later_step(void **state)
{
	(void)state;
	make(0, 0, 0, 0);
	make(1, 3 * MS, 0, 0);
	make(2, 0, 17, 0);
	make(3, 7000 * MS, 40, 0);
	assert_int_equal(nt_kineto_align_steps(&ranks), 0);
	assert_in_line(0, 0, 0);
	assert_in_line(1, 3 * MS, 0);
	assert_in_line(2, 0, 0);
	assert_in_line(3, 7000 * MS, 0);
}

static void a_rank_that_is_recorded_later_begins_later(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		make(i, 0, 0, 0);
	make(3, 1 * MS, 30, 3);
	assert_int_equal(nt_kineto_align_steps(&ranks), 0);
	assert_in_line(0, 0, 0);
	assert_in_line(3, 1 * MS, 3);
}

/* A single rank and ranks with steps of the profiler are left as they are. */
static void what_needs_no_others_is_left_alone(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RANKS; i++)
		make(i, 0, i == 2 ? 17 : 0, 0);
	rank[1].cuts = false;
	assert_int_equal(nt_kineto_align_steps(&ranks), 0);
	assert_int_equal(rank[2].steps, STEPS - 1);
	assert_int_equal(nt_kineto_align_steps(&(const struct nt_kineto_ranks){&rank[2], 1}), 0);
	assert_int_equal(rank[2].steps, STEPS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_lost_end_shifts_no_later_step, tear_down),
		cmocka_unit_test_teardown(a_rank_that_is_recorded_later_begins_later, tear_down),
		cmocka_unit_test_teardown(what_needs_no_others_is_left_alone, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
