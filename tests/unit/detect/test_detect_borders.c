/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where one thing becomes another: the last value on either side. */
#include "tests/unit/detect/detect_borders.h"

#include "common/base/array.h"
#include "detect/baseline/step_metrics.h"
#include "detect/baseline/step_unit.h"
#include "detect/incidents/cost.h"
#include "detect/math/ksigma.h"
#include "detect/math/peer_clusters.h"
#include "detect/math/threshold_adaptation.h"
#include "detect/model/detector_state.h"

/* Of ranks that have their paces already. */
static double align(struct nt_detect *detect, struct nt_group *group, const uint32_t *index,
		    uint32_t n)
{
	const struct nt_step_metrics step_metrics = nt_step_metrics_take(detect, index, n);

	return nt_step_unit_align(detect, group, &step_metrics);
}

/* Ranks make ten calls in a step of 100 ns; the third makes others. */
static void a_unit_is_another_where_calls_and_time_differ_alike(void **state)
{
	static const struct {
		double calls, step;
		bool another;
	} then[] = {
		{14.0, 140.0, true},   {13.9, 139.0, false}, {7.0, 70.0, true},
		{7.2, 72.0, false},    {20.0, 250.0, true},  {20.0, 251.0, false},
		{20.0, 150.0, true},   {20.0, 149.0, false}, {20.0, 100.0, false},
		{10.0, 200.0, false},  {0.0, 200.0, false},  {20.0, 0.0, false},
		{-20.0, 200.0, false},
	};
	static const uint32_t index[] = {0, 1, 2};
	struct nt_detect *detect = sim_detect();
	struct nt_group group = {0};
	struct sim sim;

	(void)state;
	sim_init(&sim, 3, 401);
	sim_pass(&sim, detect, 2);
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		for (uint32_t j = 0; j < 3; j++) {
			struct nt_detect_rank *rank = &detect->rank[j];

			rank->has_metric_mean = false;
			rank->step_metric[NT_STEP_METRIC_CALLS] = j == 2 ? then[i].calls : 10.0;
			rank->step_metric[NT_STEP_METRIC_STEP] = j == 2 ? then[i].step : 100.0;
			rank->step_metric[NT_STEP_METRIC_OWN] = 50.0;
		}
		/* The upper one of the medians is what a step is. */
		assert_true(align(detect, &group, index, 3) == 100.0);
		assert_true(detect->rank[0].step_metric[NT_STEP_METRIC_OWN] == 50.0);
		assert_true(fabs(detect->rank[2].step_metric[NT_STEP_METRIC_OWN] -
				 (then[i].another ? 50.0 * 100.0 / then[i].step : 50.0)) < 1e-9);
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Calls and time of a window differ alike where a host runs ahead of its device, for a round or two. */
static void a_unit_by_the_device_is_another_if_it_lasts(void **state)
{
	static const struct {
		uint8_t tier;
		bool by_device, has_mean;
		bool differs[5], scaled[5];
	} row[] = {
		{NT_FRAME_T3, false, true, {1, 1, 1, 1, 0}, {0, 0, 1, 1, 0}},
		{NT_FRAME_T3, true, true, {1, 1, 0, 1, 1}, {0, 0, 0, 0, 0}},
		{NT_FRAME_T3, false, false, {1, 0, 1, 1, 1}, {1, 0, 1, 1, 1}},
		{NT_FRAME_T2, true, true, {1, 1, 1, 1, 0}, {0, 0, 1, 1, 0}},
		{NT_FRAME_T2, false, true, {1, 0, 1, 1, 1}, {1, 0, 1, 1, 1}},
	};
	static const uint32_t index[] = {0, 1, 2};
	struct sim sim;

	(void)state;
	sim_init(&sim, 3, 403);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct nt_detect *detect = sim_detect();
		struct nt_group group = {0};

		sim_pass(&sim, detect, 2);
		for (int round = 0; round < 5; round++) {
			const bool differs = row[i].differs[round];

			for (uint32_t j = 0; j < 3; j++) {
				struct nt_detect_rank *rank = &detect->rank[j];

				rank->tier = row[i].tier;
				rank->own_by_device = row[i].by_device;
				rank->has_metric_mean = row[i].has_mean;
				rank->step_metric[NT_STEP_METRIC_CALLS] =
					differs && j == 2 ? 20.0 : 10.0;
				rank->step_metric[NT_STEP_METRIC_STEP] =
					differs && j == 2 ? 200.0 : 100.0;
				rank->step_metric[NT_STEP_METRIC_OWN] = 50.0;
			}
			(void)align(detect, &group, index, 3);
			assert_true(detect->rank[2].step_metric[NT_STEP_METRIC_OWN] ==
				    (row[i].scaled[round] ? 25.0 : 50.0));
		}
		nt_detect_free(detect);
	}
	sim_free(&sim);
}

/* More than half of those that have a mean must have left it. */
static void means_are_reset_where_most_have_another_unit(void **state)
{
	static const uint32_t index[] = {0, 1, 2, 3};

	(void)state;
	for (uint32_t changed = 0; changed <= 4; changed++) {
		struct nt_detect *detect = sim_detect();
		struct nt_group group = {0};
		struct sim sim;

		sim_init(&sim, 4, 402);
		sim_pass(&sim, detect, 2);
		for (uint32_t j = 0; j < 4; j++) {
			struct nt_detect_rank *rank = &detect->rank[j];

			rank->has_metric_mean = true;
			for (int k = 0; k < NT_SERIES_END; k++)
				rank->track[k].past = (struct nt_past){.count = 2};
			rank->step_metric[NT_STEP_METRIC_CALLS] = 20.0;
			rank->step_metric[NT_STEP_METRIC_STEP] = 200.0;
			rank->metric_mean[NT_STEP_METRIC_CALLS] = j < changed ? 10.0 : 20.0;
			rank->metric_mean[NT_STEP_METRIC_STEP] = j < changed ? 100.0 : 200.0;
		}
		/* Thrice in a row. */
		for (uint32_t i = 0; i < 6; i++) {
			if (i == 2)
				detect->rank[0].step_metric[NT_STEP_METRIC_CALLS] =
					detect->rank[1].step_metric[NT_STEP_METRIC_CALLS] =
						detect->rank[2].step_metric[NT_STEP_METRIC_CALLS] =
							detect->rank[3]
								.step_metric[NT_STEP_METRIC_CALLS] =
								10.0;
			assert_true(align(detect, &group, index, 4) == 200.0);
			for (uint32_t j = 0; j < 4; j++) {
				assert_int_equal(detect->rank[j].has_metric_mean,
						 changed <= 2 || i < 5);
				/* Both pasts go with it. */
				for (int k = 0; k < NT_SERIES_END; k++)
					assert_int_equal(detect->rank[j].track[k].past.count,
							 changed <= 2 || i < 5 ? 2 : 0);
				detect->rank[j].step_metric[NT_STEP_METRIC_CALLS] = 20.0;
			}
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void assert_z(const struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules,
		     double value, double z)
{
	const struct nt_ksigma_answer answer = nt_ksigma_judge(ksigma, rules, value);

	assert_true(answer.ready);
	assert_true(answer.centre == 100.0);
	assert_true(fabs(answer.z - z) < 1e-9 * fmax(1.0, fabs(z)));
}

static void a_z_is_how_many_widths_a_value_is_away(void **state)
{
	struct nt_ksigma_rules rules = nt_ksigma_rules_default();
	struct nt_ksigma ksigma = {.count = 0};

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_false(nt_ksigma_judge(&ksigma, &rules, 500.0).ready);
		nt_ksigma_learn(&ksigma, &rules, i % 2 ? 96.0 : 104.0);
	}
	assert_z(&ksigma, &rules, 104.0, 1.0 / 1.4826);
	assert_z(&ksigma, &rules, 88.0, -3.0 / 1.4826);
	/* As many as three are still normal. */
	rules.mean = true;
	assert_z(&ksigma, &rules, 112.0, 3.0);
	assert_false(nt_ksigma_judge(&ksigma, &rules, 112.0).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 112.001).abnormal);
	/* A width of nothing. */
	rules = nt_ksigma_rules_default();
	rules.min_width = 0.0;
	for (int i = 0; i < 20; i++)
		nt_ksigma_learn(&ksigma, &rules, 100.0);
	assert_z(&ksigma, &rules, 100.0, 0.0);
	assert_z(&ksigma, &rules, 100.5, 1e9);
	assert_z(&ksigma, &rules, 99.5, -1e9);
	assert_false(nt_ksigma_judge(&ksigma, &rules, 100.0).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 100.5).abnormal);
}

static bool is_abnormal(const struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules,
			double value)
{
	return nt_ksigma_judge(ksigma, rules, value).abnormal;
}

static void limits_count_whatever_was_before(void **state)
{
	struct nt_ksigma_rules rules = nt_ksigma_rules_default();
	const struct nt_ksigma none = {.count = 0};

	(void)state;
	rules.low = 90.0;
	rules.high = 115.0;
	assert_false(is_abnormal(&none, &rules, 90.0));
	assert_true(is_abnormal(&none, &rules, 89.999));
	assert_false(is_abnormal(&none, &rules, 115.0));
	assert_true(is_abnormal(&none, &rules, 115.001));
	rules.warm_up = 0;
	assert_false(nt_ksigma_judge(&none, &rules, 100.0).ready);
}

/* Around 100, with a width of 1. */
static void each_of_the_distances_must_be_there(void **state)
{
	struct nt_ksigma_rules rules = nt_ksigma_rules_default();
	struct nt_ksigma ksigma = {.count = 0};

	(void)state;
	for (uint32_t i = 0; i < rules.warm_up; i++) {
		assert_false(nt_ksigma_judge(&ksigma, &rules, 1e9).ready);
		nt_ksigma_learn(&ksigma, &rules, 100.0);
	}
	assert_true(nt_ksigma_judge(&ksigma, &rules, 100.0).ready);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 100.0).width == 1.0);
	assert_false(is_abnormal(&ksigma, &rules, 103.0));
	assert_true(is_abnormal(&ksigma, &rules, 103.5));
	assert_false(is_abnormal(&ksigma, &rules, 96.5));
	rules.bias = 0.25;
	assert_false(is_abnormal(&ksigma, &rules, 124.5));
	assert_true(is_abnormal(&ksigma, &rules, 125.0));
	rules.bias = 0.0;
	rules.abs_bias = 8.0;
	assert_false(is_abnormal(&ksigma, &rules, 107.5));
	assert_true(is_abnormal(&ksigma, &rules, 108.0));
	rules.direction = NT_KSIGMA_DOWN;
	assert_false(is_abnormal(&ksigma, &rules, 108.0));
	assert_true(is_abnormal(&ksigma, &rules, 92.0));
	assert_false(is_abnormal(&ksigma, &rules, 92.5));
	rules.direction = NT_KSIGMA_BOTH;
	assert_true(is_abnormal(&ksigma, &rules, 108.0));
	assert_true(is_abnormal(&ksigma, &rules, 92.0));
	assert_false(is_abnormal(&ksigma, &rules, 92.5));
}

/* ---- small things ---------------------------------------------------------------------------- */

static void a_ring_holds_what_it_is_asked_to_hold(void **state)
{
	static const struct {
		uint32_t keep, held;
	} rings[] = {{1, 1},
		     {2, 2},
		     {NT_RING_MAX - 1, NT_RING_MAX - 1},
		     {NT_RING_MAX, NT_RING_MAX},
		     {NT_RING_MAX + 1, NT_RING_MAX},
		     {0, NT_RING_MAX}};

	(void)state;
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		struct nt_ring ring = {.count = 0};

		for (uint32_t j = 0; j < 3 * NT_RING_MAX; j++) {
			nt_ring_add(&ring, rings[i].keep, j);
			assert_int_equal(ring.count, j + 1 < rings[i].held ? j + 1 : rings[i].held);
			assert_int_equal(ring.next, j % rings[i].held + 1);
			assert_true(ring.value[ring.next - 1] == j);
		}
	}
}

static void the_second_population_is_a_third_of_all(void **state)
{
	static const struct {
		double value[8];
		size_t n;
		double normal, other, low, high;
		bool two;
	} lines[] = {
		{{5.0}, 1, 5.0, 0.0, 5.0, 5.0, false},
		{{1.0, 9.0}, 2, 1.0, 9.0, 1.0, 1.0, true},
		{{1.0, 1.5, 9.0}, 3, 1.25, 9.0, 1.0, 1.5, true},
		{{1.0, 1.5, 2.0, 9.0}, 4, 1.5, 9.0, 1.0, 2.0, false},
		{{1.0, 9.0, 9.5, 10.0}, 4, 9.5, 1.0, 9.0, 10.0, false},
		{{1.0, 1.5, 9.0, 9.5, 20.0}, 5, 1.25, 9.25, 1.0, 1.5, true},
		{{1.0, 1.5, 9.0, 9.5, 10.0, 20.0}, 6, 9.5, 1.25, 9.0, 10.0, true},
		{{1.0, 5.0, 9.0, 9.5, 20.0, 20.5, 21.0}, 7, 20.5, 9.25, 20.0, 21.0, false},
	};
	uint32_t label[8];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const struct nt_peer_clusters space =
			nt_peer_clusters_split(lines[i].value, lines[i].n, 1.0, label);

		assert_true(space.normal == lines[i].normal);
		assert_true(space.other == lines[i].other);
		assert_true(space.low == lines[i].low && space.high == lines[i].high);
		assert_int_equal(space.two, lines[i].two);
	}
	assert_false(nt_peer_clusters_split(lines[0].value, 0, 1.0, label).two);
}

static void a_cost_is_a_slowdown_and_hours(void **state)
{
	const struct nt_rules rules = {.critical_slowdown = 1.25};

	(void)state;
	assert_true(nt_cost_slowdown(-0.001) == 0.0);
	assert_true(nt_cost_slowdown(0.0) == 1.0);
	assert_true(nt_cost_slowdown(0.5) == 2.0);
	assert_true(is_near(nt_cost_slowdown(0.999), 1000.0));
	assert_true(nt_cost_slowdown(5.0) == nt_cost_slowdown(0.999));
	assert_true(nt_cost_gpu_hours(2.0, 8, 3600000000000) == 4.0);
	assert_true(nt_cost_gpu_hours(1.0, 8, 3600000000000) == 0.0);
	assert_true(nt_cost_gpu_hours(0.0, 8, 1800000000000) == 4.0);
	for (int class = 0; class < NT_CLASS_END; class ++) {
		const bool grave = class == NT_CLASS_HANG || class == NT_CLASS_MISSING ||
				   class == NT_CLASS_MISMATCH;
		const bool harmless = class == NT_CLASS_IMBALANCE || class == NT_CLASS_JOB_WIDE;

		assert_int_equal(nt_cost_severity(&rules, class, true, 9.0), NT_SEVERITY_INFO);
		assert_int_equal(nt_cost_severity(&rules, class, false, 1.25),
				 harmless ? NT_SEVERITY_INFO : NT_SEVERITY_CRITICAL);
		assert_int_equal(nt_cost_severity(&rules, class, false, 1.2499),
				 harmless ? NT_SEVERITY_INFO
				 : grave  ? NT_SEVERITY_CRITICAL
					  : NT_SEVERITY_WARNING);
	}
}

static void a_communicator_is_what_it_was_seen_to_do(void **state)
{
	struct nt_detect_comm comm = {.id = 1};

	(void)state;
	assert_int_equal(nt_detect_comm_use(&comm), NT_DETECT_COMM_IDLE);
	assert_true(nt_detect_comm_calls(&comm) == 0.0 && nt_detect_comm_call_bytes(&comm) == 0.0);
	comm.p2p_calls = 1.0;
	assert_int_equal(nt_detect_comm_use(&comm), NT_DETECT_COMM_PIPELINE);
	comm.sync_calls = 12.0;
	comm.sync_bytes = 6.0;
	assert_int_equal(nt_detect_comm_use(&comm), NT_DETECT_COMM_REDUCING);
	/* Without a step all there were. */
	assert_true(nt_detect_comm_calls(&comm) == 12.0 && nt_detect_comm_call_bytes(&comm) == 0.5);
	comm.steps = 4.0;
	assert_true(nt_detect_comm_calls(&comm) == 3.0);
	comm.all_to_all_calls = 1.0;
	assert_int_equal(nt_detect_comm_use(&comm), NT_DETECT_COMM_EXPERT);
}

static void an_array_grows_to_twice_when_it_is_full(void **state)
{
	static const struct {
		uint32_t cap, used, then;
	} arrays[] = {{0, 0, 4}, {0, 3, 4},   {0, 4, 8}, {4, 3, 4},
		      {4, 4, 8}, {4, 16, 32}, {5, 5, 10}};

	(void)state;
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		uint32_t cap = arrays[i].cap;
		void *array = cap ? calloc(cap, 4) : NULL;

		assert_int_equal(nt_array_room(&array, &cap, arrays[i].used, 4), 0);
		assert_int_equal(cap, arrays[i].then);
		memset(array, 1, 4 * (size_t)cap);
		free(array);
	}
}

static void the_rules_have_their_documented_values(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	const uint64_t second = 1000000000, minute = 60 * second;

	(void)state;
	assert_true(rules.size_floor == 0.03 && rules.peer_deviation_floor == 0.01);
	assert_true(rules.z_clip == 3.0 && rules.drift == 1.0 && rules.threshold_base == 2.0);
	assert_true(is_near(rules.false_alarms_a_day, 1.0 / 30.0));
	assert_true(rules.critical_slowdown == 1.2);
	assert_int_equal(rules.width_windows, 20);
	assert_int_equal(rules.pending_windows, 2);
	assert_true(rules.resolve_min_ns == minute);
	assert_int_equal(rules.resolve_windows, 20);
	assert_true(rules.hang_min_ns == 15 * second && rules.hang_periods == 10.0);
	assert_true(rules.missing_after_ns == 5 * second);
	assert_true(rules.silence_floor_ns == 30 * minute && rules.lost_sight_ns == minute);
	assert_true(rules.checkpoint_note_ns == 15 * second);
	assert_true(rules.slow_host_ns == 10 * minute && rules.young_ns == 10 * minute);
	assert_true(rules.new_normal_ns == 30 * minute);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_is_another_where_calls_and_time_differ_alike),
		cmocka_unit_test(a_unit_by_the_device_is_another_if_it_lasts),
		cmocka_unit_test(means_are_reset_where_most_have_another_unit),
		cmocka_unit_test(a_z_is_how_many_widths_a_value_is_away),
		cmocka_unit_test(limits_count_whatever_was_before),
		cmocka_unit_test(each_of_the_distances_must_be_there),
		cmocka_unit_test(a_ring_holds_what_it_is_asked_to_hold),
		cmocka_unit_test(the_second_population_is_a_third_of_all),
		cmocka_unit_test(a_cost_is_a_slowdown_and_hours),
		cmocka_unit_test(a_communicator_is_what_it_was_seen_to_do),
		cmocka_unit_test(an_array_grows_to_twice_when_it_is_full),
		cmocka_unit_test(the_rules_have_their_documented_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
