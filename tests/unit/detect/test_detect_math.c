/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The arithmetic below the rules, against the plainest way to compute the same. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/incidents/cost.h"
#include "detect/math/cusum.h"
#include "detect/math/dbscan.h"
#include "detect/math/ksigma.h"
#include "detect/math/peer_clusters.h"
#include "detect/math/ring.h"
#include "detect/math/stats.h"
#include "detect/model/incident.h"
#include "detect/model/recovery.h"
#include "detect/model/time.h"

enum {
	MANY = 40,
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static size_t draw(struct sim *sim, double *value, bool with_ties)
{
	const size_t n = 1 + (size_t)(sim_uniform(sim) * (MANY - 1));

	for (size_t i = 0; i < n; i++)
		value[i] = with_ties ? floor(sim_uniform(sim) * 6.0) : sim_gauss(sim);
	return n;
}

static void medians_with_and_without_one(void **state)
{
	struct sim sim = {.seed = 1};
	double value[MANY], sorted[MANY], rest[MANY];

	(void)state;
	for (int round = 0; round < 500; round++) {
		const size_t n = draw(&sim, value, round % 2);

		memcpy(sorted, value, n * sizeof(*value));
		nt_stats_sort(sorted, n);
		for (size_t i = 1; i < n; i++)
			assert_true(sorted[i - 1] <= sorted[i]);
		assert_true(nt_stats_median(sorted, n) ==
			    (n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0));
		assert_true(nt_stats_median_low(sorted, n) == sorted[(n - 1) / 2]);
		for (size_t i = 0; i < n; i++) {
			size_t m = 0;

			for (size_t j = 0; j < n; j++)
				if (j != i)
					rest[m++] = value[j];
			qsort(rest, m, sizeof(*rest), compare);
			assert_true(nt_stats_median_without(sorted, n, value[i]) ==
				    nt_stats_median(rest, m));
		}
	}
	assert_true(nt_stats_median(NULL, 0) == 0.0);
	assert_true(nt_stats_median_without(sorted, 1, 3.0) == 0.0);
}

static void values_in_no_order_have_the_same_middle_and_quantiles(void **state)
{
	struct sim sim = {.seed = 9};
	double value[MANY], sorted[MANY], other[MANY];

	(void)state;
	for (int round = 0; round < 500; round++) {
		const size_t n = draw(&sim, value, round % 2);
		const double q = sim_uniform(&sim);
		struct nt_stats_middle middle;

		memcpy(sorted, value, n * sizeof(*value));
		nt_stats_sort(sorted, n);
		memcpy(other, value, n * sizeof(*value));
		assert_true(nt_stats_median_of(other, n) == nt_stats_median(sorted, n));
		memcpy(other, value, n * sizeof(*value));
		assert_true(nt_stats_quantile_of(other, n, q) ==
			    sorted[(size_t)((double)(n - 1) * q)]);
		if (n < 2)
			continue;
		memcpy(other, value, n * sizeof(*value));
		middle = nt_stats_middle_of(other, n);
		for (size_t i = 0; i < n; i++)
			assert_true(nt_stats_middle_without(&middle, value[i]) ==
				    nt_stats_median_without(sorted, n, value[i]));
	}
	assert_true(nt_stats_median_of(value, 0) == 0.0);
	assert_true(nt_stats_quantile_of(value, 0, 0.5) == 0.0);
}

static void the_shortest_interval_is_the_shortest(void **state)
{
	struct sim sim = {.seed = 2};
	double value[MANY];

	(void)state;
	for (int round = 0; round < 300; round++) {
		const size_t n = draw(&sim, value, round % 2);
		const size_t hold = n / 2 + 1;
		double best = INFINITY;

		nt_stats_sort(value, n);
		for (size_t i = 0; i < n; i++)
			for (size_t j = i; j < n; j++)
				if (j - i + 1 >= hold && value[j] - value[i] < best)
					best = value[j] - value[i];
		assert_true(nt_stats_shortest(value, n, hold) == (hold < 2 ? 0.0 : best));
	}
	assert_true(nt_stats_shortest(value, 3, 4) == 0.0);
}

static void width_and_core_are_the_sigma_of_normal_values(void **state)
{
	static const size_t sizes[] = {3, 4, 5, 8, 16, 64, 512};
	struct sim sim = {.seed = 3};
	double value[512], width[401], core[401];

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (int round = 0; round < 401; round++) {
			for (size_t i = 0; i < sizes[s]; i++)
				value[i] = 5.0 + 0.1 * sim_gauss(&sim);
			nt_stats_sort(value, sizes[s]);
			width[round] = nt_stats_width(value, sizes[s]);
			core[round] = nt_stats_core(value, sizes[s]);
		}
		assert_true(fabs(nt_stats_median_of(width, 401) - 0.1) < 0.015);
		assert_true(fabs(nt_stats_median_of(core, 401) - 0.1) < 0.018);
	}
}

static void half_of_the_values_being_slow_does_not_move_the_core(void **state)
{
	double value[] = {1.00, 1.01, 1.02, 1.03, 2.00, 2.01, 2.02, 2.03};

	(void)state;
	assert_true(nt_stats_core(value, 8) < 0.1);
	assert_true(nt_stats_width(value, 8) > 0.5);
}

static void other_statistics(void **state)
{
	double value[] = {1.0, 2.0, 3.0, 4.0, 100.0};
	double mean, sigma;

	(void)state;
	assert_true(nt_stats_quantile_of(value, 5, 0.25) == 2.0);
	assert_true(nt_stats_quantile_of(value, 5, 1.0) == 100.0);
	nt_stats_mean(value, 4, &mean, &sigma);
	assert_true(mean == 2.5 && fabs(sigma - sqrt(1.25)) < 1e-12);
	assert_true(fabs(nt_stats_mad(value, 5, 3.0) - 1.4826) < 1e-12);
	assert_true(nt_stats_clip(5.0, -3.0, 3.0) == 3.0);
	assert_true(nt_stats_clip(-5.0, -3.0, 3.0) == -3.0);
	assert_true(nt_stats_clip(1.0, -3.0, 3.0) == 1.0);
	assert_true(nt_stats_add(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_true(nt_stats_add(UINT64_MAX - 1, 5) == UINT64_MAX);
}

/* The definition: core points that reach each other are one cluster. */
static void dbscan_by_definition(const double *point, size_t n, size_t dimensions, double eps,
				 size_t min_samples, bool *core, uint32_t *cluster)
{
	bool again = true;

	for (size_t i = 0; i < n; i++) {
		size_t near = 0;

		for (size_t j = 0; j < n; j++) {
			double squares = 0.0;

			for (size_t k = 0; k < dimensions; k++)
				squares += pow(
					point[i * dimensions + k] - point[j * dimensions + k], 2.0);
			near += sqrt(squares) <= eps;
		}
		core[i] = near >= min_samples;
		cluster[i] = (uint32_t)i;
	}
	while (again) {
		again = false;
		for (size_t i = 0; i < n; i++) {
			for (size_t j = 0; j < n; j++) {
				double squares = 0.0;

				for (size_t k = 0; k < dimensions; k++)
					squares += pow(point[i * dimensions + k] -
							       point[j * dimensions + k],
						       2.0);
				if (!core[i] || !core[j] || sqrt(squares) > eps ||
				    cluster[j] <= cluster[i])
					continue;
				cluster[j] = cluster[i];
				again = true;
			}
		}
	}
}

/* Same clusters of core points; every border point in a cluster that it touches; the rest is noise. */
static void check_dbscan(const double *point, size_t n, size_t dimensions, double eps,
			 size_t min_samples, const uint32_t *label)
{
	uint32_t cluster[MANY];
	bool core[MANY];

	dbscan_by_definition(point, n, dimensions, eps, min_samples, core, cluster);
	for (size_t i = 0; i < n; i++) {
		bool touches = false, is_right = false;

		assert_true(!core[i] || label[i] != NT_DBSCAN_NOISE);
		for (size_t j = 0; j < n; j++) {
			double squares = 0.0;

			for (size_t k = 0; k < dimensions; k++)
				squares += pow(
					point[i * dimensions + k] - point[j * dimensions + k], 2.0);
			if (core[i] && core[j])
				assert_int_equal(label[i] == label[j], cluster[i] == cluster[j]);
			if (core[j] && sqrt(squares) <= eps) {
				touches = true;
				is_right |= label[i] == label[j];
			}
		}
		assert_int_equal(label[i] == NT_DBSCAN_NOISE, !touches);
		assert_true(!touches || is_right);
	}
}

static void dbscan_agrees_with_its_definition(void **state)
{
	struct sim sim = {.seed = 4};
	uint32_t label[MANY], queue[MANY];
	double point[3 * MANY];

	(void)state;
	for (int round = 0; round < 600; round++) {
		const size_t dimensions = 1 + (size_t)round % 3;
		const size_t n = 1 + (size_t)(sim_uniform(&sim) * (MANY - 1));
		const size_t min_samples = 1 + (size_t)(sim_uniform(&sim) * 4.0);
		const double eps = 0.05 + 0.4 * sim_uniform(&sim);

		for (size_t i = 0; i < n * dimensions; i++)
			point[i] = round % 5 ? sim_gauss(&sim) : floor(4.0 * sim_uniform(&sim));
		if (dimensions == 1)
			nt_stats_sort(point, n);
		(void)nt_dbscan_points(point, n, dimensions, eps, min_samples, label, queue);
		check_dbscan(point, n, dimensions, eps, min_samples, label);
		if (dimensions > 1)
			continue;
		assert_int_equal(nt_dbscan_sorted(point, n, eps, min_samples, queue),
				 nt_dbscan_points(point, n, 1, eps, min_samples, label,
						  (uint32_t[MANY]){0}));
		check_dbscan(point, n, 1, eps, min_samples, queue);
		/* Border points and the order of the labels, too. */
		assert_memory_equal(queue, label, n * sizeof(*label));
	}
	assert_int_equal(nt_dbscan_sorted(point, 0, 1.0, 1, label), 0);
}

static void labels_go_up_from_0(void **state)
{
	static const double point[] = {1, 2, 3, 10, 11, 12, 20, 21, 22, 40};
	static const uint32_t want[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, NT_DBSCAN_NOISE};
	uint32_t label[10], queue[10];

	(void)state;
	assert_int_equal(nt_dbscan_sorted(point, 10, 1.0, 2, label), 3);
	assert_memory_equal(label, want, sizeof(want));
	assert_int_equal(nt_dbscan_points(point, 10, 1, 1.0, 2, label, queue), 3);
	assert_memory_equal(label, want, sizeof(want));
}

static void the_largest_cluster_is_normal(void **state)
{
	const double value[] = {1.0, 1.1, 1.2, 1.3, 1.4, 3.0, 3.1, 9.0};
	uint32_t label[8];
	struct nt_peer_clusters space = nt_peer_clusters_split(value, 8, 0.2, label);

	(void)state;
	assert_true(space.low == 1.0 && space.high == 1.4);
	assert_true(space.normal == 1.2 && fabs(space.other - 3.05) < 1e-12);
	assert_false(space.two);
	space = nt_peer_clusters_split(value, 7, 0.2, label);
	assert_false(space.two);
	space = nt_peer_clusters_split(value + 1, 6, 0.2, label);
	assert_true(space.two);
	space = nt_peer_clusters_split(value, 3, 0.2, label);
	assert_false(space.two);
	assert_true(space.other == 0.0);
}

static void ksigma_finds_a_step_and_does_not_learn_it(void **state)
{
	struct nt_ksigma_rules rules = nt_ksigma_rules_default();
	struct nt_ksigma ksigma = {.count = 0};
	struct nt_ksigma_answer answer;
	struct sim sim = {.seed = 5};

	(void)state;
	for (int i = 0; i < 20; i++) {
		answer = nt_ksigma_add(&ksigma, &rules, 100.0 + sim_gauss(&sim));
		assert_false(answer.ready);
		assert_false(answer.abnormal);
	}
	for (int i = 0; i < 200; i++) {
		answer = nt_ksigma_add(&ksigma, &rules, 110.0);
		assert_true(answer.ready && answer.abnormal && answer.z > 3.0);
		assert_true(fabs(answer.centre - 100.0) < 1.0);
	}
	assert_false(nt_ksigma_add(&ksigma, &rules, 80.0).abnormal);
	rules.direction = NT_KSIGMA_DOWN;
	assert_true(nt_ksigma_judge(&ksigma, &rules, 80.0).abnormal);
	assert_false(nt_ksigma_judge(&ksigma, &rules, 120.0).abnormal);
	rules.direction = NT_KSIGMA_BOTH;
	assert_true(nt_ksigma_judge(&ksigma, &rules, 120.0).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 80.0).abnormal);
	rules.bias = 0.3;
	assert_false(nt_ksigma_judge(&ksigma, &rules, 120.0).abnormal);
	rules.bias = 0.0;
	rules.abs_bias = 25.0;
	assert_false(nt_ksigma_judge(&ksigma, &rules, 120.0).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 130.0).abnormal);
	rules.high = 115.0;
	assert_true(nt_ksigma_judge(&ksigma, &rules, 120.0).abnormal);
	rules.high = INFINITY;
	rules.low = 90.0;
	assert_true(nt_ksigma_judge(&ksigma, &rules, 85.0).abnormal);
}

static void ksigma_slides_and_has_a_least_width(void **state)
{
	struct nt_ksigma_rules rules = nt_ksigma_rules_default();
	struct nt_ksigma ksigma = {.count = 0};

	(void)state;
	for (int i = 0; i < 20; i++)
		(void)nt_ksigma_add(&ksigma, &rules, 100.0);
	assert_false(nt_ksigma_judge(&ksigma, &rules, 102.9).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 103.1).abnormal);
	for (int i = 0; i < 20; i++)
		nt_ksigma_learn(&ksigma, &rules, 200.0);
	assert_int_equal(ksigma.count, 20);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 200.0).centre == 200.0);
	rules.mean = true;
	nt_ksigma_learn(&ksigma, &rules, 300.0);
	assert_true(fabs(nt_ksigma_judge(&ksigma, &rules, 200.0).centre - 205.0) < 1e-9);
}

static void costs(void **state)
{
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	assert_true(fabs(nt_cost_slowdown(0.2) - 1.25) < 1e-12);
	assert_true(nt_cost_slowdown(-1.0) == 0.0);
	assert_true(isfinite(nt_cost_slowdown(5.0)));
	assert_true(fabs(nt_cost_gpu_hours(1.25, 10, 3600ull * SIM_SECOND) - 2.0) < 1e-9);
	assert_true(nt_cost_gpu_hours(0.0, 10, 3600ull * SIM_SECOND) == 10.0);
	assert_int_equal(nt_cost_severity(&rules, NT_CLASS_COMPUTE, false, 1.19),
			 NT_SEVERITY_WARNING);
	assert_int_equal(nt_cost_severity(&rules, NT_CLASS_COMPUTE, false, 1.2),
			 NT_SEVERITY_CRITICAL);
	assert_int_equal(nt_cost_severity(&rules, NT_CLASS_IMBALANCE, false, 2.0),
			 NT_SEVERITY_INFO);
	assert_int_equal(nt_cost_severity(&rules, NT_CLASS_HOST, true, 0.0), NT_SEVERITY_INFO);
	assert_int_equal(nt_cost_severity(&rules, NT_CLASS_HANG, false, 0.0), NT_SEVERITY_CRITICAL);
	assert_int_equal(nt_cost_severity(&rules, NT_CLASS_JOB_WIDE, false, 2.0), NT_SEVERITY_INFO);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(nt_class_name(NT_CLASS_JOB_WIDE), "job-wide");
	assert_string_equal(nt_class_name(NT_CLASS_COMPUTE), "compute");
	assert_string_equal(nt_class_name(NT_CLASS_END), "unknown");
	assert_string_equal(nt_severity_name(NT_SEVERITY_CRITICAL), "critical");
	assert_string_equal(nt_incident_state_name(NT_INCIDENT_RESOLVED), "resolved");
	assert_string_equal(nt_culprit_kind_name(NT_CULPRIT_COMMUNICATOR), "communicator");
	for (int i = 1; i < NT_EVIDENCE_TEXT_END; i++)
		assert_non_null(nt_evidence_text((enum nt_evidence_text)i));
	assert_null(nt_evidence_text(NT_EVIDENCE_TEXT_NONE));
	assert_null(nt_evidence_text(NT_EVIDENCE_TEXT_END));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians_with_and_without_one),
		cmocka_unit_test(values_in_no_order_have_the_same_middle_and_quantiles),
		cmocka_unit_test(the_shortest_interval_is_the_shortest),
		cmocka_unit_test(width_and_core_are_the_sigma_of_normal_values),
		cmocka_unit_test(half_of_the_values_being_slow_does_not_move_the_core),
		cmocka_unit_test(other_statistics),
		cmocka_unit_test(dbscan_agrees_with_its_definition),
		cmocka_unit_test(labels_go_up_from_0),
		cmocka_unit_test(the_largest_cluster_is_normal),
		cmocka_unit_test(ksigma_finds_a_step_and_does_not_learn_it),
		cmocka_unit_test(ksigma_slides_and_has_a_least_width),
		cmocka_unit_test(costs),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
