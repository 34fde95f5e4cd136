/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline/job_timeline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/detect/detect_frames.h"

enum {
	RANKS = 4,
	SLOW = 2,
	FRAME_MS = 1000,
};

static struct nt_job_timelines *timelines;
static struct nt_job_timeline *timeline;
static struct nt_detect *detect;
static struct nt_frame_rank rank[64];
static uint64_t now_ns;

static void begin(const struct nt_job_timelines_limits *limits)
{
	const struct nt_rules rules = nt_rules_default();

	assert_int_equal(nt_job_timelines_new(limits, &timelines), 0);
	assert_int_equal(nt_job_timeline_new(timelines, &timeline), 0);
	assert_int_equal(nt_detect_new(&rules, 1, 1, &detect), 0);
	now_ns = 1700000000ULL * SIM_SECOND;
}

static int set_up(void **state)
{
	(void)state;
	begin(NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_job_timeline_free(timeline);
	nt_job_timelines_free(timelines);
	nt_detect_free(detect);
	return 0;
}

/* Ten steps of a tenth of the frame; own work in hundredths of them. */
static void describe(size_t ranks, uint32_t first, unsigned int own, unsigned int slow)
{
	memset(rank, 0, sizeof(rank));
	for (size_t i = 0; i < ranks; i++) {
		const unsigned int share = i == SLOW ? slow : own;

		rank[i] = (struct nt_frame_rank){
			.rank = first + (uint32_t)i,
			.node = NT_FRAME_NO_NODE,
			.steps = 10,
			.own_tier = NT_FRAME_T2,
			.rank_known = true,
			.observed = true,
			.own_ns = share * FRAME_MS / 100 * (uint64_t)SIM_MS,
			.step_ns = FRAME_MS * (uint64_t)SIM_MS,
			.stage = -1,
			.replica = -1,
		};
	}
}

static void add_to(struct nt_job_timeline *one, size_t ranks, uint64_t length_ms)
{
	const struct nt_frame frame = {
		.start_ns = now_ns,
		.end_ns = now_ns + length_ms * SIM_MS,
		.rank = rank,
		.ranks = ranks,
		.expected_ranks = (uint32_t)ranks,
		.completeness = 1,
	};
	const struct nt_finding *finding;
	size_t findings;

	assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
	assert_int_equal(nt_job_timeline_add(one, detect, &frame), 0);
	now_ns = frame.end_ns;
}

static void add(size_t ranks)
{
	add_to(timeline, ranks, FRAME_MS);
}

static void add_cell(size_t ranks)
{
	for (int i = 0; i < 10; i++)
		add(ranks);
}

static const struct nt_timeline_cell *newest(void)
{
	assert_true(nt_job_timeline_count(timeline) > 0);
	return nt_job_timeline_at(timeline, nt_job_timeline_count(timeline) - 1);
}

static uint8_t value(enum nt_timeline_series series, size_t index)
{
	return nt_timeline_values(newest(), series)[index];
}

static uint64_t evicted(void)
{
	struct nt_job_timelines_stats stats;

	nt_job_timelines_stats(timelines, &stats);
	return stats.evicted;
}

static uint64_t bytes_now(void)
{
	struct nt_job_timelines_stats stats;

	nt_job_timelines_stats(timelines, &stats);
	return stats.bytes_now;
}

static void a_cell_ends_with_the_frame_that_completes_ten_seconds(void **state)
{
	const uint64_t from_ns = now_ns;

	(void)state;
	describe(RANKS, 0, 90, 90);
	for (int i = 0; i < 9; i++)
		add(RANKS);
	assert_int_equal(nt_job_timeline_count(timeline), 0);
	add(RANKS);
	assert_int_equal(nt_job_timeline_count(timeline), 1);
	assert_int_equal(newest()->start_ns, from_ns);
	assert_int_equal(newest()->end_ns, from_ns + NT_TIMELINE_CELL_NS);
	assert_true(newest()->step_ns > 99e6 && newest()->step_ns < 101e6);
	/* A frame of longer steps is a cell. */
	add_to(timeline, RANKS, 25000);
	assert_int_equal(nt_job_timeline_count(timeline), 2);
	assert_int_equal(newest()->end_ns, now_ns);
}

static void own_work_and_waiting_are_hundredths_of_the_step(void **state)
{
	(void)state;
	describe(RANKS, 0, 70, 95);
	add_cell(RANKS);
	assert_int_equal(value(NT_TIMELINE_OWN, 0), NT_TIMELINE_ZERO + 70);
	assert_int_equal(value(NT_TIMELINE_WAITING, 0), NT_TIMELINE_ZERO + 30);
	assert_int_equal(value(NT_TIMELINE_OWN, SLOW), NT_TIMELINE_ZERO + 95);
	assert_int_equal(value(NT_TIMELINE_WAITING, SLOW), NT_TIMELINE_ZERO + 5);
}

static void what_is_over_the_scale_is_its_end(void **state)
{
	(void)state;
	describe(RANKS, 0, 70, 70);
	rank[1].own_ns = rank[1].step_ns = 40 * rank[0].step_ns;
	add_cell(RANKS);
	assert_int_equal(value(NT_TIMELINE_OWN, 1), NT_TIMELINE_MOST);
	assert_int_equal(value(NT_TIMELINE_WAITING, 1), NT_TIMELINE_ZERO);
}

static void what_is_not_known_has_values_of_its_own(void **state)
{
	(void)state;
	describe(RANKS, 0, 70, 70);
	rank[0].observed = false;
	rank[0].steps = 0;
	rank[1].steps = 0;
	rank[1].own_ns = rank[1].step_ns = 0;
	rank[3].own_tier = NT_FRAME_T0;
	rank[3].own_ns = 0;
	rank[3].comm_ns = 200 * (uint64_t)SIM_MS;
	add_cell(RANKS);
	assert_int_equal(value(NT_TIMELINE_OWN, 0), NT_TIMELINE_UNKNOWN);
	assert_int_equal(value(NT_TIMELINE_WAITING, 0), NT_TIMELINE_UNKNOWN);
	assert_int_equal(value(NT_TIMELINE_OWN, 1), NT_TIMELINE_NO_STEP);
	assert_int_equal(value(NT_TIMELINE_OWN, 3), NT_TIMELINE_UNKNOWN);
	assert_int_equal(value(NT_TIMELINE_WAITING, 3), NT_TIMELINE_ZERO + 20);
	assert_int_equal(value(NT_TIMELINE_EXCESS, 0), NT_TIMELINE_UNKNOWN);
	/* Host work, where own work is not observable. */
	describe(RANKS, 0, 70, 70);
	rank[3].own_tier = NT_FRAME_T1;
	rank[3].own_ns = 0;
	rank[3].host_ns = 40 * (uint64_t)SIM_MS * 10;
	add_cell(RANKS);
	assert_int_equal(value(NT_TIMELINE_OWN, 3), NT_TIMELINE_ZERO + 40);
	assert_int_equal(value(NT_TIMELINE_WAITING, 3), NT_TIMELINE_ZERO + 60);
}

static void a_job_that_stands_still_has_cells_without_steps(void **state)
{
	(void)state;
	describe(RANKS, 0, 70, 70);
	for (size_t i = 0; i < RANKS; i++) {
		rank[i].steps = 0;
		rank[i].own_ns = rank[i].step_ns = 0;
	}
	add_cell(RANKS);
	assert_true(newest()->step_ns == 0);
	assert_int_equal(value(NT_TIMELINE_OWN, 0), NT_TIMELINE_NO_STEP);
	assert_int_equal(value(NT_TIMELINE_EXCESS, 0), NT_TIMELINE_UNKNOWN);
}

/* The simulated job has an all-reduce, so that the detector knows the peers. */
static void the_excess_of_a_slow_rank_stands_out(void **state)
{
	struct sim sim;

	(void)state;
	sim_init(&sim, RANKS, 1);
	sim.rank[SLOW].device *= 1.5;
	for (int i = 0; i < 100; i++) {
		const struct nt_frame *frame = sim_next(&sim);
		const struct nt_finding *finding;
		size_t findings;

		assert_int_equal(nt_detect_step(detect, frame, &finding, &findings), 0);
		assert_int_equal(nt_job_timeline_add(timeline, detect, frame), 0);
	}
	assert_true(value(NT_TIMELINE_EXCESS, SLOW) > NT_TIMELINE_EVEN + 10);
	assert_in_range(value(NT_TIMELINE_EXCESS, 0), NT_TIMELINE_EVEN - 3, NT_TIMELINE_EVEN + 3);
	assert_true(value(NT_TIMELINE_WAITING, 0) > value(NT_TIMELINE_WAITING, SLOW));
	sim_free(&sim);
}

static void ranks_may_come_within_a_cell(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		/* 4 to 7, then 2 to 9, then 4 to 7 again: all of them are in the cell. */
		describe(i == 5 ? 8 : 4, i == 5 ? 2 : 4, 70, 70);
		add(i == 5 ? 8 : 4);
	}
	assert_int_equal(newest()->ranks->count, 8);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(newest()->ranks->rank[i], 2 + i);
		assert_int_equal(value(NT_TIMELINE_OWN, i), NT_TIMELINE_ZERO + 70);
	}
	describe(4, 4, 70, 70);
	add_cell(4);
	assert_int_equal(newest()->ranks->count, 4);
	assert_int_equal(newest()->ranks->rank[0], 4);
}

static void cells_of_the_same_ranks_share_their_list(void **state)
{
	uint64_t first, second;

	(void)state;
	describe(RANKS, 0, 70, 70);
	add_cell(RANKS);
	first = bytes_now();
	add_cell(RANKS);
	second = bytes_now() - first;
	assert_ptr_equal(nt_job_timeline_at(timeline, 0)->ranks,
			 nt_job_timeline_at(timeline, 1)->ranks);
	assert_int_equal(second, sizeof(struct nt_timeline_cell) + NT_TIMELINE_SERIES * RANKS);
	assert_true(first > second);
}

static void after_a_gap_a_cell_begins_anew(void **state)
{
	(void)state;
	describe(RANKS, 0, 70, 70);
	add(RANKS);
	now_ns += NT_TIMELINE_CELL_NS;
	add_cell(RANKS);
	assert_int_equal(nt_job_timeline_count(timeline), 2);
	assert_int_equal(nt_job_timeline_at(timeline, 0)->end_ns -
				 nt_job_timeline_at(timeline, 0)->start_ns,
			 FRAME_MS * (uint64_t)SIM_MS);
	assert_int_equal(newest()->end_ns - newest()->start_ns, NT_TIMELINE_CELL_NS);
}

static void the_oldest_cell_of_half_an_hour_gives_way(void **state)
{
	uint64_t second_ns;

	(void)state;
	describe(RANKS, 0, 70, 70);
	for (int i = 0; i < NT_TIMELINE_CELLS; i++)
		add_cell(RANKS);
	assert_int_equal(nt_job_timeline_count(timeline), NT_TIMELINE_CELLS);
	second_ns = nt_job_timeline_at(timeline, 1)->start_ns;
	add_cell(RANKS);
	assert_int_equal(nt_job_timeline_count(timeline), NT_TIMELINE_CELLS);
	assert_int_equal(nt_job_timeline_at(timeline, 0)->start_ns, second_ns);
	assert_int_equal(newest()->end_ns, now_ns);
	assert_int_equal(evicted(), 0);
}

static void at_the_cap_of_a_job_its_oldest_cell_is_evicted(void **state)
{
	const size_t cell_bytes = sizeof(struct nt_timeline_cell) + NT_TIMELINE_SERIES * RANKS;

	tear_down(state);
	begin(&(struct nt_job_timelines_limits){.job_bytes = 10 * cell_bytes});
	describe(RANKS, 0, 70, 70);
	for (int i = 0; i < 15; i++) {
		add_cell(RANKS);
		assert_true(bytes_now() <= 10 * cell_bytes);
	}
	/* The first one is larger, by the list of ranks. */
	assert_int_equal(nt_job_timeline_count(timeline), 10);
	assert_int_equal(evicted(), 5);
}

static void at_the_cap_of_all_the_oldest_cell_of_any_job_is_evicted(void **state)
{
	const size_t cell_bytes = sizeof(struct nt_timeline_cell) + NT_TIMELINE_SERIES * RANKS;
	struct nt_job_timeline *other = NULL;

	tear_down(state);
	begin(&(struct nt_job_timelines_limits){.bytes = 10 * cell_bytes});
	assert_int_equal(nt_job_timeline_new(timelines, &other), 0);
	describe(RANKS, 0, 70, 70);
	for (int i = 0; i < 8; i++)
		add_cell(RANKS);
	for (int i = 0; i < 60; i++)
		add_to(other, RANKS, FRAME_MS);
	assert_int_equal(nt_job_timeline_count(other), 6);
	assert_in_range(nt_job_timeline_count(timeline), 3, 4);
	assert_int_equal(evicted(), 8 - nt_job_timeline_count(timeline));
	assert_true(bytes_now() <= 10 * cell_bytes);
	nt_job_timeline_free(timeline);
	timeline = other;
	assert_true(bytes_now() <= 7 * cell_bytes);
}

/* Frames of as many ranks as there may be, none of them in two frames. */
static void a_cell_has_no_more_ranks_than_a_frame_may_have(void **state)
{
	struct nt_frame_rank *many = calloc(NT_FRAME_MAX_RANKS, sizeof(*many));

	(void)state;
	assert_non_null(many);
	for (uint32_t i = 0; i < 2; i++) {
		const struct nt_frame frame = {
			.start_ns = now_ns + i * SIM_SECOND,
			.end_ns = now_ns + (i + 1) * SIM_SECOND,
			.rank = many,
			.ranks = NT_FRAME_MAX_RANKS,
		};

		for (uint32_t j = 0; j < NT_FRAME_MAX_RANKS; j++)
			many[j].rank = i * NT_FRAME_MAX_RANKS + j;
		assert_int_equal(nt_job_timeline_add(timeline, detect, &frame), 0);
	}
	free(many);
	assert_int_equal(nt_job_timeline_count(timeline), 1);
	assert_int_equal(newest()->ranks->count, NT_FRAME_MAX_RANKS);
	assert_int_equal(newest()->ranks->rank[0], 0);
}

static void a_cell_outlives_its_timeline(void **state)
{
	struct nt_timeline_cell *cell;

	(void)state;
	describe(RANKS, 0, 70, 70);
	add_cell(RANKS);
	cell = nt_timeline_cell_ref(nt_job_timeline_at(timeline, 0));
	nt_job_timeline_free(nt_take(timeline));
	assert_int_equal(bytes_now(), 0);
	assert_int_equal(nt_timeline_values(cell, NT_TIMELINE_OWN)[0], NT_TIMELINE_ZERO + 70);
	assert_int_equal(cell->ranks->rank[RANKS - 1], RANKS - 1);
	nt_timeline_cell_unref(cell);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_cell_ends_with_the_frame_that_completes_ten_seconds),
		TEST(own_work_and_waiting_are_hundredths_of_the_step),
		TEST(what_is_over_the_scale_is_its_end),
		TEST(what_is_not_known_has_values_of_its_own),
		TEST(a_job_that_stands_still_has_cells_without_steps),
		TEST(the_excess_of_a_slow_rank_stands_out),
		TEST(ranks_may_come_within_a_cell),
		TEST(cells_of_the_same_ranks_share_their_list),
		TEST(after_a_gap_a_cell_begins_anew),
		TEST(the_oldest_cell_of_half_an_hour_gives_way),
		TEST(at_the_cap_of_a_job_its_oldest_cell_is_evicted),
		TEST(at_the_cap_of_all_the_oldest_cell_of_any_job_is_evicted),
		TEST(a_cell_has_no_more_ranks_than_a_frame_may_have),
		TEST(a_cell_outlives_its_timeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
