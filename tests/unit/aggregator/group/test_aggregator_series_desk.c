/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The recent past of ranks and jobs: one point for each frame, in order, within its caps. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/group/series_desk.h"
#include "tests/api/snapshot_scene.h"

enum {
	MAX_RANKS = 16,
};

static const char job_id[] = "00000000000000d4";

static struct nt_series_desk *desk;

static int set_up(void **state)
{
	(void)state;
	return nt_series_desk_new(0, &desk);
}

static int tear_down(void **state)
{
	(void)state;
	nt_series_desk_free(desk);
	return 0;
}

/* A job at a frame, with these ranks; each works for (rank + frame) seconds. */
static struct nt_snapshot_job *make_job(const char *id, uint64_t frame, const uint32_t *number,
					size_t count)
{
	struct nt_snapshot_job *job = nt_test_job(id, "bert", "slurm/7", NT_JOB_RUNNING);
	struct nt_snapshot_rank *rank = nt_snapshot_job_alloc(job, count, sizeof(*rank));

	for (size_t i = 0; i < count; i++)
		rank[i] = (struct nt_snapshot_rank){
			.rank = number[i],
			.rank_known = true,
			.observed = true,
			.steps = 1,
			.own_observable = true,
			.own_ns = (double)(number[i] + frame) * (double)NT_SECOND,
		};
	job->rank = rank;
	job->ranks = count;
	job->frames = frame;
	job->last_seen_ns = frame * NT_SECOND;
	return job;
}

/* Looks at the job, after another one of `others` ranks. */
static void look_after(size_t others, uint64_t frame, const uint32_t *number, size_t count)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **list = nt_snapshot_alloc(snapshot, 2, sizeof(*list));

	if (others)
		list[snapshot->jobs++] = make_job("00000000000000d5", frame, number, others);
	list[snapshot->jobs++] = make_job(job_id, frame, number, count);
	snapshot->job = list;
	nt_series_desk_look(desk, snapshot);
	nt_snapshot_release(snapshot);
}

static void look(uint64_t frame, const uint32_t *number, size_t count)
{
	look_after(0, frame, number, count);
}

static int points_of(uint32_t rank, struct nt_series_point *point)
{
	return nt_series_desk_rank(desk, job_id, rank, NT_SERIES_OWN, point);
}

static void each_frame_is_one_point(void **state)
{
	static const uint32_t ranks[] = {0, 3};
	struct nt_series_point point[NT_SERIES_POINTS];

	(void)state;
	look(1, ranks, 2);
	look(1, ranks, 2);
	look(2, ranks, 2);
	assert_int_equal(points_of(3, point), 2);
	assert_int_equal(point[0].real_ns, NT_SECOND);
	assert_true(fabsf(point[0].value - 4) < 0.01F);
	assert_int_equal(point[1].real_ns, 2 * NT_SECOND);
	assert_true(fabsf(point[1].value - 5) < 0.01F);
	assert_int_equal(points_of(1, point), -ENOENT);
	assert_int_equal(nt_series_desk_rank(desk, job_id, 3, NT_SERIES_OWN_PEERS, point), 2);
	assert_true(isnan(point[0].value));
}

static void the_oldest_points_give_way(void **state)
{
	static const uint32_t ranks[] = {0};
	static struct nt_series_step step[NT_SERIES_STEPS];
	struct nt_series_point point[NT_SERIES_POINTS];

	(void)state;
	for (uint64_t i = 1; i <= NT_SERIES_STEPS + 5; i++)
		look(i, ranks, 1);
	assert_int_equal(points_of(0, point), NT_SERIES_POINTS);
	assert_int_equal(point[NT_SERIES_POINTS - 1].real_ns, (NT_SERIES_STEPS + 5) * NT_SECOND);
	assert_int_equal(point[0].real_ns, (NT_SERIES_STEPS + 6 - NT_SERIES_POINTS) * NT_SECOND);
	assert_int_equal(nt_series_desk_steps(desk, job_id, step), NT_SERIES_STEPS);
	assert_int_equal(step[0].frame, 6);
	assert_int_equal(step[NT_SERIES_STEPS - 1].frame, NT_SERIES_STEPS + 5);
}

static void ranks_that_stay_keep_their_past_when_others_come_and_go(void **state)
{
	static const uint32_t before[] = {1, 2, 5}, after[] = {0, 2, 5, 9};
	struct nt_series_point point[NT_SERIES_POINTS];

	(void)state;
	look(1, before, 3);
	look(2, after, 4);
	assert_int_equal(points_of(5, point), 2);
	assert_true(fabsf(point[0].value - 6) < 0.01F);
	assert_true(fabsf(point[1].value - 7) < 0.01F);
	assert_int_equal(points_of(9, point), 2);
	assert_true(isnan(point[0].value));
	assert_true(fabsf(point[1].value - 11) < 0.01F);
	assert_int_equal(points_of(1, point), -ENOENT);
}

static void a_step_has_the_slowest_rank(void **state)
{
	static const uint32_t ranks[] = {0, 3, 7};
	static struct nt_series_step step[NT_SERIES_STEPS];

	(void)state;
	look(1, ranks, 3);
	assert_int_equal(nt_series_desk_steps(desk, job_id, step), 1);
	assert_int_equal(step[0].slowest_rank, 7);
	assert_true(fabsf(step[0].slowest_own_s - 8) < 0.01F);
}

static void ranks_over_the_cap_have_no_past_and_are_counted(void **state)
{
	uint32_t ranks[MAX_RANKS];
	struct nt_series_desk_stats stats;
	struct nt_series_point point[NT_SERIES_POINTS];

	(void)state;
	nt_series_desk_free(desk);
	/* Room for a few, which need a little more than 2 KiB each. */
	assert_int_equal(nt_series_desk_new(4 * 2100, &desk), 0);
	for (uint32_t i = 0; i < MAX_RANKS; i++)
		ranks[i] = i;
	look(1, ranks, MAX_RANKS);
	look(2, ranks, MAX_RANKS);
	nt_series_desk_stats(desk, &stats);
	assert_int_equal(stats.ranks, 4);
	assert_int_equal(stats.ranks_over_cap, MAX_RANKS - 4);
	assert_true(stats.bytes <= 4 * 2100);
	assert_int_equal(points_of(3, point), 2);
	assert_int_equal(points_of(4, point), -ENOENT);
}

static void ranks_over_the_cap_get_a_past_when_there_is_room(void **state)
{
	static const uint32_t ranks[] = {0, 1, 2, 3, 4};
	struct nt_series_desk_stats stats;
	struct nt_series_point point[NT_SERIES_POINTS];

	(void)state;
	nt_series_desk_free(desk);
	assert_int_equal(nt_series_desk_new(4 * 2100, &desk), 0);
	look_after(3, 1, ranks, 5);
	look_after(3, 2, ranks, 5);
	assert_int_equal(points_of(0, point), 2);
	assert_int_equal(points_of(1, point), -ENOENT);
	/* The other job shrinks, and is gone: seen after the look at this one. */
	look_after(2, 3, ranks, 5);
	assert_int_equal(points_of(1, point), 3);
	look(4, ranks, 5);
	look(5, ranks, 5);
	nt_series_desk_stats(desk, &stats);
	assert_int_equal(stats.ranks, 4);
	assert_int_equal(stats.ranks_over_cap, 1);
	assert_int_equal(points_of(0, point), 5);
	assert_int_equal((int)point[0].value, 1);
	assert_int_equal(points_of(3, point), 5);
	/* Before it had room, nothing is known. */
	assert_true(isnan(point[0].value));
	assert_int_equal((int)point[4].value, 8);
	assert_int_equal(points_of(4, point), -ENOENT);
}

static void a_job_that_is_gone_is_forgotten(void **state)
{
	static const uint32_t ranks[] = {0};
	struct nt_snapshot *empty = nt_snapshot_new();
	struct nt_series_desk_stats stats;
	struct nt_series_point point[NT_SERIES_POINTS];

	(void)state;
	look(1, ranks, 1);
	nt_series_desk_look(desk, empty);
	nt_snapshot_release(empty);
	assert_int_equal(points_of(0, point), -ENOENT);
	nt_series_desk_stats(desk, &stats);
	assert_int_equal(stats.ranks, 0);
}

static void names_are_found(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NT_SERIES_METRIC_END; i++)
		assert_int_equal(
			nt_series_metric_of(nt_series_metric_name((enum nt_series_metric)i)), i);
	assert_int_equal(nt_series_metric_of("own"), NT_SERIES_METRIC_END);
	assert_null(nt_series_metric_name(NT_SERIES_METRIC_END));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_frame_is_one_point),
		TEST(the_oldest_points_give_way),
		TEST(ranks_that_stay_keep_their_past_when_others_come_and_go),
		TEST(a_step_has_the_slowest_rank),
		TEST(ranks_over_the_cap_have_no_past_and_are_counted),
		TEST(ranks_over_the_cap_get_a_past_when_there_is_room),
		TEST(a_job_that_is_gone_is_forgotten),
		TEST(names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
