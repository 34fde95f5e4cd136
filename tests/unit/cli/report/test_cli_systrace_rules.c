/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysTrace's parameters by their names, and its detectors as they are described. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/report/systrace_metric.h"
#include "cli/report/systrace_rules.h"

static struct nt_systrace_rules *parse(const char *text)
{
	struct nt_systrace_rules *rules = NULL;
	struct nt_trace_error error = {0};

	if (nt_systrace_rules_parse(text, strlen(text), "rules", &rules, &error) < 0)
		fail_msg("%s", error.text);
	return rules;
}

static void assert_refused(const char *text, const char *want)
{
	struct nt_systrace_rules *rules = NULL;
	struct nt_trace_error error = {0};

	assert_int_equal(nt_systrace_rules_parse(text, strlen(text), "rules", &rules, &error),
			 -EBADMSG);
	assert_null(rules);
	assert_string_equal(error.text, want);
}

static void every_name_is_taken(void **state)
{
	struct nt_systrace_rules *rules =
		parse("{\"HcclAllGather_launch\": {\"type\": \"network\", \"priority\": 20,"
		      " \"aggregation\": {\"during_s\": 3, \"funcs\": [{\"func\": \"percentile\","
		      " \"func_params\": {\"q\": 90}}, {\"func\": \"max\"}]},"
		      " \"alarm_filter_window_size\": 7,"
		      " \"space_detector\": {\"type\": \"SlidingWindowDBSCAN\","
		      " \"dist_metric\": \"euclidean\", \"eps\": 3.5, \"cv_threshold\": 0.04,"
		      " \"min_samples\": 3, \"window_size\": 21, \"scaling\": true},"
		      " \"time_detector\": {\"type\": \"SlidingWindowKSigmaDetector\","
		      " \"preprocess_eps\": 0.2, \"preprocess_min_samples\": 11,"
		      " \"n_sigma_method\": {\"training_window_size\": 22,"
		      " \"min_update_window_size\": 12, \"min_std_val\": 0.5, \"bias\": 0.25,"
		      " \"abs_bias\": 5, \"nsigma_coefficient\": 6, \"detect_type\": \"bi_bound\","
		      " \"min_expert_lower_bound\": 1, \"max_expert_lower_bound\": 2,"
		      " \"min_expert_upper_bound\": 3, \"max_expert_upper_bound\": 4}}}}");
	const struct nt_systrace_metric *metric = &rules->metric[0];
	const struct nt_ksigma_rules *sigma = &metric->time.sigma;

	(void)state;
	assert_int_equal(rules->metrics, 1);
	assert_string_equal(metric->name, "HcclAllGather_launch");
	assert_string_equal(metric->op, "HcclAllGather");
	assert_true(metric->launch && metric->network && metric->has_space && metric->has_time);
	assert_true(metric->during_s == 3.0);
	assert_int_equal(metric->funcs, 2);
	assert_int_equal(metric->func[0].func, NT_SYSTRACE_PERCENTILE);
	assert_true(metric->func[0].q == 90.0);
	assert_int_equal(metric->func[1].func, NT_SYSTRACE_MAX);
	assert_int_equal(metric->alarm_filter, 7);
	assert_true(metric->space.eps == 3.5 && metric->space.cv_threshold == 0.04);
	assert_int_equal(metric->space.min_samples, 3);
	assert_int_equal(metric->space.window_size, 21);
	assert_true(metric->space.scaling);
	assert_true(metric->time.preprocess_eps == 0.2);
	assert_int_equal(metric->time.preprocess_min_samples, 11);
	assert_int_equal(sigma->window, 22);
	assert_int_equal(sigma->warm_up, 12);
	assert_true(sigma->zero_width == 0.5 && sigma->bias == 0.25 && sigma->abs_bias == 5.0);
	assert_true(sigma->n_sigma == 6.0);
	assert_int_equal(sigma->direction, NT_KSIGMA_BOTH);
	assert_true(sigma->min_lower == 1.0 && sigma->max_lower == 2.0);
	assert_true(sigma->min_upper == 3.0 && sigma->max_upper == 4.0);
	assert_true(sigma->mean && sigma->trimmed && sigma->beyond);
	nt_systrace_rules_free(rules);
}

static void what_is_not_said_is_as_in_the_file_that_it_ships(void **state)
{
	struct nt_systrace_rules *rules =
		parse("{\"HcclAllGather\": {\"space_detector\": {}, \"time_detector\":"
		      " {\"n_sigma_method\": {\"centre\": \"median\", \"n_sigma\": 3}}},"
		      " \"HcclAllReduce\": {\"space_detector\": null}}");
	const struct nt_systrace_metric *metric = &rules->metric[0];

	(void)state;
	assert_int_equal(rules->metrics, 2);
	assert_true(metric->space.eps == 0.4 && metric->space.cv_threshold == 0.03);
	assert_int_equal(metric->space.min_samples, 2);
	assert_int_equal(metric->space.window_size, 22);
	assert_false(metric->space.scaling || metric->launch || metric->network);
	assert_int_equal(metric->time.sigma.window, 20);
	assert_int_equal(metric->time.sigma.warm_up, 10);
	assert_true(metric->time.sigma.n_sigma == 3.0);
	assert_false(metric->time.sigma.mean || metric->time.sigma.trimmed);
	assert_int_equal(metric->alarm_filter, 5);
	assert_int_equal(metric->funcs, 1);
	assert_false(rules->metric[1].has_space || rules->metric[1].has_time);
	nt_systrace_rules_free(rules);
}

static void a_bad_value_names_field_value_and_range(void **state)
{
	(void)state;
	assert_refused("[]", "rules: not a JSON object of metrics");
	assert_refused("{", "rules: not a JSON object of metrics");
	assert_refused("{}", "rules: no metric in it");
	assert_refused("{\"a\": 1}", "rules: a: expected an object");
	assert_refused("{\"a\": {\"type\": \"disk\"}}",
		       "rules: a.type: \"disk\": expected compute or network");
	assert_refused("{\"a\": {\"space_detector\": {\"eps\": 0}}}",
		       "rules: a.space_detector.eps: 0: expected a number from 1e-09 to 1e+12");
	assert_refused(
		"{\"a\": {\"space_detector\": {\"min_samples\": 2.5}}}",
		"rules: a.space_detector.min_samples: 2.5: expected a whole number from 1 to "
		"131072");
	assert_refused(
		"{\"a\": {\"space_detector\": {\"window_size\": 65537}}}",
		"rules: a.space_detector.window_size: 65537: expected a whole number from 1 to "
		"65536");
	assert_refused("{\"a\": {\"space_detector\": {\"scaling\": 1}}}",
		       "rules: a.space_detector.scaling: 1: expected true or false");
	assert_refused("{\"a\": {\"space_detector\": {\"type\": \"OuterDataDetector\"}}}",
		       "rules: a.space_detector.type: \"OuterDataDetector\": expected "
		       "SlidingWindowDBSCAN");
	assert_refused("{\"a\": {\"time_detector\": 5}}",
		       "rules: a.time_detector: 5: expected an object or null");
	assert_refused("{\"a\": {\"time_detector\": {\"n_sigma_method\": "
		       "{\"training_window_size\": 65}}}}",
		       "rules: a.time_detector.n_sigma_method.training_window_size: 65: expected a "
		       "whole number from 1 to 64");
	assert_refused(
		"{\"a\": {\"time_detector\": {\"n_sigma_method\": "
		"{\"min_update_window_size\": 21}}}}",
		"rules: a.time_detector.n_sigma_method.min_update_window_size: 21: expected a "
		"whole number from 1 to 20");
	assert_refused("{\"a\": {\"time_detector\": {\"n_sigma_method\": "
		       "{\"detect_type\": \"up\"}}}}",
		       "rules: a.time_detector.n_sigma_method.detect_type: \"up\": expected "
		       "upper_bound, lower_bound or bi_bound");
	assert_refused(
		"{\"a\": {\"aggregation\": {\"funcs\": [{\"func\": \"percentile\", "
		"\"func_params\": {\"q\": 101}}]}}}",
		"rules: a.aggregation.funcs[0].func_params.q: 101: expected a number from 0 to "
		"100");
	assert_refused("{\"a\": {\"aggregation\": {\"funcs\": [5]}}}",
		       "rules: a.aggregation.funcs: 5: expected objects in it");
	assert_refused(
		"{\"a\": {\"aggregation\": {\"funcs\": [{},{},{},{},{},{},{},{},{}]}}}",
		"rules: a.aggregation.funcs: [{},{},{},{},{},{},{},{},{}]: expected a list of "
		"8 at most");
}

static void metrics_and_names_are_capped(void **state)
{
	char text[8192], name[80];
	size_t len = 0;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[63] = '\0';
	(void)snprintf(text, sizeof(text), "{\"%s\": {\"space_detector\": {\"eps\": 0}}}", name);
	{
		struct nt_systrace_rules *rules = NULL;
		struct nt_trace_error error = {0};

		assert_int_equal(
			nt_systrace_rules_parse(text, strlen(text), "rules", &rules, &error),
			-EBADMSG);
		assert_non_null(strstr(error.text, ".space_detector.eps: 0"));
	}
	name[63] = 'n';
	name[64] = '\0';
	(void)snprintf(text, sizeof(text), "{\"%s\": {}}", name);
	assert_refused(text, "rules: a metric's name has 64 bytes: expected 1 to 63");
	len = (size_t)snprintf(text, sizeof(text), "{");
	for (int i = 0; i <= NT_SYSTRACE_MAX_METRICS; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"m%d\": {}",
					i ? ", " : "", i);
	(void)snprintf(text + len, sizeof(text) - len, "}");
	assert_refused(text, "rules: more than 64 metrics");
}

/* ---- space ------------------------------------------------------------------------------------ */

enum {
	BINS = 44,
	MOST = 8,
};

static const struct nt_systrace_space shipped = {
	.eps = 0.4, .cv_threshold = 0.03, .min_samples = 2, .window_size = 22};

/* Ranks at 7 ms, some of them so much off from `from` on. Returns which are abnormal, by bits. */
static unsigned int judge(const struct nt_systrace_space *rules, size_t ranks, unsigned int off,
			  double ms, size_t from, size_t bins)
{
	double value[MOST * BINS] = {0};
	bool abnormal[MOST];
	unsigned int bits = 0;

	for (size_t i = 0; i < ranks; i++)
		for (size_t j = 0; j < bins; j++)
			value[i * bins + j] = 7.0 + (off >> i & 1 && j >= from ? ms : 0.0);
	assert_int_equal(nt_systrace_space(rules, value, ranks, bins, abnormal), 0);
	for (size_t i = 0; i < ranks; i++)
		bits |= (unsigned int)abnormal[i] << i;
	return bits;
}

/* eps times the root of window by ranks: the distances of a rank are its coordinates. */
static void the_smallest_offset_that_shows_falls_with_the_ranks(void **state)
{
	(void)state;
	assert_int_equal(judge(&shipped, 4, 1U << 3, -0.93, 0, 22), 0);
	assert_int_equal(judge(&shipped, 4, 1U << 3, -0.95, 0, 22), 1U << 3);
	assert_int_equal(judge(&shipped, 8, 1U << 3, -0.66, 0, 22), 0);
	assert_int_equal(judge(&shipped, 8, 1U << 3, -0.68, 0, 22), 1U << 3);
	/* More is reported as less is. */
	assert_int_equal(judge(&shipped, 8, 1U << 3, 4.0, 0, 22), 1U << 3);
}

static void what_differs_by_little_of_its_median_is_not_looked_at(void **state)
{
	struct nt_systrace_space rules = shipped;

	(void)state;
	rules.eps = 0.01;
	assert_int_equal(judge(&rules, 8, 1, 0.41, 0, 22), 0);
	assert_int_equal(judge(&rules, 8, 1, 0.43, 0, 22), 1);
}

static void windows_are_counted_from_the_end(void **state)
{
	(void)state;
	assert_int_equal(judge(&shipped, 8, 1, 4.0, 0, 21), 0);
	/* One bin of 22 is enough. */
	assert_int_equal(judge(&shipped, 8, 1, 4.0, 43, 44), 1);
	assert_int_equal(judge(&shipped, 8, 1, 3.0, 43, 44), 0);
	assert_int_equal(judge(&shipped, 8, 1, 4.0, 22, 44), 1);
	/* One bin beside the window. */
	assert_int_equal(judge(&shipped, 8, 1, -4.0, 0, 23), 1);
}

static void the_larger_cluster_is_normal_and_noise_where_there_is_none(void **state)
{
	struct nt_systrace_space rules = shipped;

	(void)state;
	assert_int_equal(judge(&shipped, 8, 0x1f, -4.0, 0, 22), 0xe0); /* five of eight */
	assert_int_equal(judge(&shipped, 8, 0x0f, -4.0, 0, 22), 0xf0); /* the first that is seen */
	rules.min_samples = 9;
	assert_int_equal(judge(&rules, 8, 1, -4.0, 0, 22), 0);
}

static void scaling_brings_values_under_a_hundred(void **state)
{
	struct nt_systrace_space rules = shipped;
	double value[4 * 22];
	bool abnormal[4];

	(void)state;
	rules.scaling = true;
	/* 700 and 690 ms are 70 and 69 then: ten milliseconds are one. */
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 22; j++)
			value[i * 22 + j] = i == 2 ? 650.0 : 700.0;
	assert_int_equal(nt_systrace_space(&rules, value, 4, 22, abnormal), 0);
	assert_true(abnormal[2] && !abnormal[0]);
	rules.eps = 5.0;
	assert_int_equal(nt_systrace_space(&rules, value, 4, 22, abnormal), 0);
	assert_false(abnormal[2]);
	rules.scaling = false;
	assert_int_equal(nt_systrace_space(&rules, value, 4, 22, abnormal), 0);
	assert_true(abnormal[2]);
}

/* ---- time ------------------------------------------------------------------------------------- */

static struct nt_systrace_time time_rules(const char *members)
{
	char text[512];
	struct nt_systrace_rules *rules;
	struct nt_systrace_time time;

	(void)snprintf(text, sizeof(text), "{\"a\": {\"time_detector\": {%s}}}", members);
	rules = parse(text);
	time = rules->metric[0].time;
	nt_systrace_rules_free(rules);
	return time;
}

/* 10, a little up and down, then `late` from bin 20 on for so many bins, and 10 again. */
static bool judge_time(const struct nt_systrace_time *rules, uint32_t filter, double late,
		       size_t lasts)
{
	double value[60];
	bool abnormal = true;

	for (size_t i = 0; i < 60; i++)
		value[i] = i >= 20 && i < 20 + lasts ? late : 10.0 + (i % 2 ? 0.1 : -0.1);
	assert_int_equal(nt_systrace_time(rules, filter, value, 60, &abnormal), 0);
	return abnormal;
}

static void a_bound_is_mean_and_sigmas_and_the_bias_on_top(void **state)
{
	/* Mean 10, sigma 0.1: 10.4, and a tenth of that on top, or 2. */
	const struct nt_systrace_time tenth = time_rules("\"n_sigma_method\": {\"bias\": 0.1}");
	const struct nt_systrace_time two =
		time_rules("\"n_sigma_method\": {\"bias\": 0.1, \"abs_bias\": 2}");
	const struct nt_systrace_time none = time_rules("");

	(void)state;
	assert_false(judge_time(&none, 5, 10.39, 10));
	assert_true(judge_time(&none, 5, 10.41, 10));
	assert_false(judge_time(&tenth, 5, 11.43, 10));
	assert_true(judge_time(&tenth, 5, 11.45, 10));
	assert_false(judge_time(&two, 5, 12.39, 10));
	assert_true(judge_time(&two, 5, 12.41, 10));
}

static void only_so_many_points_in_a_row_count(void **state)
{
	const struct nt_systrace_time rules = time_rules("");

	(void)state;
	assert_false(judge_time(&rules, 5, 20.0, 4));
	assert_true(judge_time(&rules, 5, 20.0, 5));
	assert_true(judge_time(&rules, 1, 20.0, 1));
}

static void the_direction_is_kept(void **state)
{
	const struct nt_systrace_time up = time_rules("");
	const struct nt_systrace_time down =
		time_rules("\"n_sigma_method\": {\"detect_type\": \"lower_bound\"}");
	const struct nt_systrace_time both =
		time_rules("\"n_sigma_method\": {\"detect_type\": \"bi_bound\"}");

	(void)state;
	assert_true(judge_time(&up, 5, 20.0, 9) && !judge_time(&up, 5, 1.0, 9));
	assert_true(!judge_time(&down, 5, 20.0, 9) && judge_time(&down, 5, 1.0, 9));
	assert_true(judge_time(&both, 5, 20.0, 9) && judge_time(&both, 5, 1.0, 9));
}

static void experts_bounds_hold_the_learned_ones(void **state)
{
	const struct nt_systrace_time least =
		time_rules("\"n_sigma_method\": {\"min_expert_upper_bound\": 50}");
	const struct nt_systrace_time most =
		time_rules("\"n_sigma_method\": {\"max_expert_upper_bound\": 10.2}");

	(void)state;
	assert_false(judge_time(&least, 5, 49.0, 9));
	assert_true(judge_time(&least, 5, 50.0, 9));
	assert_true(judge_time(&most, 5, 10.21, 9));
	assert_false(judge_time(&most, 5, 10.19, 9));
}

static void what_alarms_is_not_learned_and_what_was_always_so_is(void **state)
{
	const struct nt_systrace_time rules = time_rules("");
	double value[60];
	bool abnormal;

	(void)state;
	assert_true(judge_time(&rules, 30, 20.0, 40));
	for (size_t i = 0; i < 60; i++)
		value[i] = 20.0;
	assert_int_equal(nt_systrace_time(&rules, 1, value, 60, &abnormal), 0);
	assert_false(abnormal);
	assert_int_equal(nt_systrace_time(&rules, 1, value, 0, &abnormal), 0);
	assert_false(abnormal);
}

/* What takes up more of the series than the rest is its largest cluster. */
static void noise_is_not_learned_from(void **state)
{
	const struct nt_systrace_time rules =
		time_rules("\"preprocess_eps\": 0.1, \"preprocess_min_samples\": 10");
	double value[60];
	bool abnormal;

	(void)state;
	for (size_t i = 0; i < 60; i++)
		value[i] = i < 5 ? 40.0 : i < 50 ? 10.0 : 15.0;
	assert_int_equal(nt_systrace_time(&rules, 5, value, 60, &abnormal), 0);
	assert_true(abnormal);
	for (size_t i = 0; i < 60; i++)
		value[i] = i < 20 ? 10.0 : 50.0;
	assert_int_equal(nt_systrace_time(&rules, 5, value, 60, &abnormal), 0);
	assert_false(abnormal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_is_taken),
		cmocka_unit_test(what_is_not_said_is_as_in_the_file_that_it_ships),
		cmocka_unit_test(a_bad_value_names_field_value_and_range),
		cmocka_unit_test(metrics_and_names_are_capped),
		cmocka_unit_test(the_smallest_offset_that_shows_falls_with_the_ranks),
		cmocka_unit_test(what_differs_by_little_of_its_median_is_not_looked_at),
		cmocka_unit_test(windows_are_counted_from_the_end),
		cmocka_unit_test(the_larger_cluster_is_normal_and_noise_where_there_is_none),
		cmocka_unit_test(scaling_brings_values_under_a_hundred),
		cmocka_unit_test(a_bound_is_mean_and_sigmas_and_the_bias_on_top),
		cmocka_unit_test(only_so_many_points_in_a_row_count),
		cmocka_unit_test(the_direction_is_kept),
		cmocka_unit_test(experts_bounds_hold_the_learned_ones),
		cmocka_unit_test(what_alarms_is_not_learned_and_what_was_always_so_is),
		cmocka_unit_test(noise_is_not_learned_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
