/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The score of a node: alarms, explanations, what is no anomaly, and the stored state. */
#include "tests/unit/detect/anomaly/node_simulation.h"

#include <errno.h>

enum {
	LEARNED = SIM_LEARN + 60,
	WITHIN = 3, /* minutes to an alarm */
};

static void a_healthy_node_stays_quiet_and_learning_ends(void **state)
{
	struct sim_node at;

	(void)state;
	sim_open(&at, 1, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, SIM_LEARN - 1);
	assert_true(at.score.is_learning);
	sim_run(&at, 2);
	assert_false(at.score.is_learning);
	sim_run(&at, 4 * 1440);
	assert_int_equal(at.alarms, 0);
	assert_true(nt_anomaly_node_bytes(at.node) < 100000);
	nt_anomaly_node_free(at.node);
}

/* A fault of `metrics` metrics in a row, on top of what the node does. */
static size_t minutes_to_alarm(struct sim_node *at, int first, int metrics, size_t most)
{
	double value[SIM_METRICS];

	for (size_t i = 1; i <= most; i++) {
		sim_row(&at->sim, at->minute, value);
		for (int j = first; j < first + metrics; j++)
			value[j] += 3.0 * at->sim.scale[j];
		sim_take(at, value, NULL);
		if (at->score.is_alarm)
			return i;
	}
	return SIZE_MAX;
}

static void a_fault_alarms_within_minutes_and_names_its_metric(void **state)
{
	struct sim_node at;

	(void)state;
	sim_open(&at, 2, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	assert_true(minutes_to_alarm(&at, 4, 4, WITHIN) <= WITHIN);
	assert_true(sim_names_metric(&at, "m4", 4));
	assert_true(sim_names_metric(&at, "m7", 4));
	assert_true(at.score.score > at.score.threshold);
	/* It ends, once. */
	sim_run(&at, 200);
	assert_false(at.score.is_alarm);
	assert_int_equal(at.alarms, 1);
	nt_anomaly_node_free(at.node);
}

/* Each metric in its usual range, but not together. */
static void a_broken_relation_alarms_though_each_metric_is_in_its_range(void **state)
{
	struct nt_anomaly_metric metric[NT_ANOMALY_RANKED];
	struct sim_node at;
	double value[SIM_METRICS];

	(void)state;
	sim_open(&at, 3, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	for (int i = 0; i < 60 && !at.score.is_alarm; i++) {
		sim_row(&at.sim, at.minute, value);
		for (int j = 0; j < 9; j += 3)
			value[j] = (sim_phase(at.minute) > 0.7 ? 0.5 : 0.9) * at.sim.scale[j];
		sim_take(&at, value, NULL);
	}
	assert_true(at.score.is_alarm);
	assert_true(nt_anomaly_node_explain(at.node, metric) > 0);
	assert_true(sim_names_metric(&at, "m0", 3) && sim_names_metric(&at, "m3", 3) &&
		    sim_names_metric(&at, "m6", 3));
	assert_true(metric[0].value >= metric[0].low && metric[0].value <= metric[0].high);
	nt_anomaly_node_free(at.node);
}

/* The same, and one metric that leaves its range, by less than what the others are off together. */
static void what_left_its_range_is_named_before_what_relates_unusually(void **state)
{
	struct nt_anomaly_metric metric[NT_ANOMALY_RANKED];
	struct sim_node at;
	double value[SIM_METRICS];

	(void)state;
	sim_open(&at, 3, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	for (int i = 0; i < 60 && !at.score.is_alarm; i++) {
		sim_row(&at.sim, at.minute, value);
		for (int j = 0; j < 9; j += 3)
			value[j] = (sim_phase(at.minute) > 0.7 ? 0.5 : 0.9) * at.sim.scale[j];
		value[4] += 0.18 * at.sim.scale[4];
		sim_take(&at, value, NULL);
	}
	assert_true(at.score.is_alarm);
	assert_true(nt_anomaly_node_explain(at.node, metric) > 1);
	assert_string_equal(metric[0].name, "m4");
	assert_true(metric[0].share < metric[1].share);
	nt_anomaly_node_free(at.node);
}

static void constants_gaps_and_nonsense_do_not_alarm(void **state)
{
	static const double nonsense[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300};
	struct sim_node at;
	double value[SIM_METRICS];

	(void)state;
	sim_open(&at, 4, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	for (int i = 0; i < 2000; i++) {
		sim_row(&at.sim, at.minute, value);
		for (int j = 0; j < SIM_METRICS; j += 3)
			value[(j + i / 100) % SIM_METRICS] = nonsense[(i + j) % 5];
		/* A constant that jumps, once and for good. */
		value[SIM_CONSTANT] = i < 500 ? 64.0 : 128.0;
		sim_take(&at, value, NULL);
		assert_true(isfinite(at.score.score));
	}
	for (int j = 0; j < SIM_METRICS; j++)
		value[j] = NAN;
	for (int i = 0; i < 600; i++)
		sim_take(&at, value, NULL);
	sim_run(&at, 600);
	assert_int_equal(at.alarms, 0);
	nt_anomaly_node_free(at.node);
}

static void a_single_wild_row_does_not_alarm(void **state)
{
	struct sim_node at;
	double value[SIM_METRICS];

	(void)state;
	sim_open(&at, 5, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	for (int i = 0; i < 20; i++) {
		sim_row(&at.sim, at.minute, value);
		value[7] = 1e6 * at.sim.scale[7];
		sim_take(&at, value, NULL);
		sim_run(&at, 120);
	}
	assert_int_equal(at.alarms, 0);
	nt_anomaly_node_free(at.node);
}

/* Of few metrics, each has a large part of the score. */
static void one_wild_value_among_few_metrics_does_not_alarm(void **state)
{
	(void)state;
	for (uint64_t seed = 30; seed < 36; seed++) {
		struct sim_node at;
		double value[SIM_METRICS];

		sim_open(&at, seed, NT_ANOMALY_METHOD_CHART);
		at.metrics = 14;
		sim_run(&at, LEARNED);
		for (size_t i = 0; i < 28; i++) {
			sim_row(&at.sim, at.minute, value);
			value[i % 14] = (i < 14 ? 1e6 : -1e6) * at.sim.scale[i % 14];
			sim_take(&at, value, NULL);
			sim_run(&at, 120);
		}
		assert_int_equal(at.alarms, 0);
		/* It has not widened what is usual: the metric still alarms. */
		assert_true(minutes_to_alarm(&at, 7, 3, WITHIN) <= WITHIN);
		assert_true(sim_names_metric(&at, "m7", 3));
		nt_anomaly_node_free(at.node);
	}
}

static void metrics_that_are_there_every_other_minute_do_not_alarm(void **state)
{
	(void)state;
	for (uint64_t seed = 40; seed < 46; seed++) {
		struct sim_node at;
		double value[SIM_METRICS];

		sim_open(&at, seed, NT_ANOMALY_METHOD_CHART);
		sim_run(&at, LEARNED);
		for (size_t i = 0; i < 1440; i++) {
			sim_row(&at.sim, at.minute, value);
			for (int j = 0; i % 2 && j < 27; j++)
				value[j] = NAN;
			sim_take(&at, value, NULL);
		}
		assert_int_equal(at.alarms, 0);
		sim_run(&at, 60);
		assert_int_equal(at.alarms, 0);
		/* What is there is still judged, and relations again soon after. */
		assert_true(minutes_to_alarm(&at, 4, 4, WITHIN) <= WITHIN);
		nt_anomaly_node_free(at.node);
	}
}

static void a_lasting_new_level_becomes_normal(void **state)
{
	struct sim_node at;
	double value[SIM_METRICS];

	(void)state;
	sim_open(&at, 6, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	for (int i = 0; i < 14 * 1440; i++) {
		sim_row(&at.sim, at.minute, value);
		for (int j = 2; j < 6; j++)
			value[j] += at.sim.scale[j];
		sim_take(&at, value, NULL);
	}
	assert_int_equal(at.alarms, 1);
	assert_false(at.score.is_alarm);
	nt_anomaly_node_free(at.node);
}

static void a_new_metric_is_learned_before_it_counts(void **state)
{
	struct sim_node at;
	double value[SIM_METRICS], last = 0.0;

	(void)state;
	sim_open(&at, 7, NT_ANOMALY_METHOD_CHART);
	for (size_t i = 0; i < 4 * SIM_LEARN; i++) {
		sim_row(&at.sim, at.minute, value);
		last = value[9];
		if (i < 2 * SIM_LEARN)
			value[9] = NAN;
		sim_take(&at, value, NULL);
	}
	assert_int_equal(at.alarms, 0);
	assert_true(last > 0.0);
	assert_true(minutes_to_alarm(&at, 9, 4, WITHIN) <= WITHIN);
	assert_true(sim_names_metric(&at, "m9", 4));
	nt_anomaly_node_free(at.node);
}

/* Ten nodes of a job; `all`: how many of them have the fault. */
static size_t alarms_of_peers(size_t all, double add, struct sim_node at[SIM_NODES])
{
	double value[SIM_NODES][SIM_METRICS], median[SIM_METRICS], scratch[SIM_NODES];
	const double *row[SIM_NODES];
	size_t alarms = 0;

	for (size_t i = 0; i < SIM_NODES; i++) {
		sim_open(&at[i], 20 + i, NT_ANOMALY_METHOD_CHART);
		memcpy(at[i].sim.scale, at[0].sim.scale, sizeof(at[i].sim.scale));
		row[i] = value[i];
	}
	for (size_t minute = 0; minute < LEARNED + WITHIN; minute++) {
		for (size_t i = 0; i < SIM_NODES; i++) {
			sim_row(&at[i].sim, minute, value[i]);
			if (minute >= LEARNED && i < all)
				for (int j = 0; j < 6; j++)
					value[i][j] += add * at[i].sim.scale[j];
		}
		for (size_t j = 0; j < SIM_METRICS; j++)
			median[j] = nt_anomaly_peers_median(row, SIM_NODES, j, scratch);
		for (size_t i = 0; i < SIM_NODES; i++)
			sim_take(&at[i], value[i], median);
	}
	for (size_t i = 0; i < SIM_NODES; i++)
		alarms += at[i].alarms;
	return alarms;
}

static void ten_nodes_that_rise_together_do_not_alarm_and_one_alone_does(void **state)
{
	struct sim_node at[SIM_NODES];

	(void)state;
	assert_int_equal(alarms_of_peers(SIM_NODES, 2.0, at), 0);
	for (size_t i = 0; i < SIM_NODES; i++)
		nt_anomaly_node_free(at[i].node);
	assert_int_equal(alarms_of_peers(1, 2.0, at), 1);
	assert_int_equal(at[0].alarms, 1);
	assert_true(at[0].score.has_peers);
	for (int j = 0; j < 6; j++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "m%d", j);
		assert_true(sim_names_metric(&at[0], name, 6));
	}
	for (size_t i = 0; i < SIM_NODES; i++)
		nt_anomaly_node_free(at[i].node);
}

static void a_restored_node_goes_on_as_if_nothing_had_happened(void **state)
{
	nt_autobuf struct nt_buf saved = {0};
	struct nt_anomaly_node *restored = NULL;
	struct sim_node at, other;

	(void)state;
	sim_open(&at, 8, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	assert_int_equal(nt_anomaly_node_save(at.node, &saved), 0);
	assert_true(saved.len < 100000);
	assert_int_equal(nt_anomaly_node_load(
				 &(struct nt_anomaly_options){
					 .learn_rows = SIM_LEARN,
					 .alarm = nt_score_alarm_rules_default(),
				 },
				 saved.data, saved.len, &restored),
			 0);
	other = at;
	other.node = restored;
	for (int i = 0; i < 1200; i++) {
		sim_run(&at, 1);
		sim_run(&other, 1);
		assert_true(at.score.score == other.score.score);
	}
	nt_anomaly_node_free(at.node);
	nt_anomaly_node_free(restored);
}

static void damaged_state_is_refused(void **state)
{
	nt_autobuf struct nt_buf saved = {0};
	struct nt_anomaly_options options = nt_anomaly_options_default();
	struct nt_anomaly_node *restored = NULL;
	struct sim_node at;

	(void)state;
	sim_open(&at, 9, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, 700);
	assert_int_equal(nt_anomaly_node_save(at.node, &saved), 0);
	for (size_t size = 0; size < saved.len; size += 1 + size / 50)
		assert_int_equal(nt_anomaly_node_load(&options, saved.data, size, &restored),
				 -EBADMSG);
	saved.data[0]++; /* the version */
	assert_int_equal(nt_anomaly_node_load(&options, saved.data, saved.len, &restored),
			 -EBADMSG);
	assert_null(restored);
	nt_anomaly_node_free(at.node);
}

static void a_restart_learns_anew(void **state)
{
	struct sim_node at;

	(void)state;
	sim_open(&at, 10, NT_ANOMALY_METHOD_CHART);
	sim_run(&at, LEARNED);
	assert_false(at.score.is_learning);
	nt_anomaly_node_restart(at.node);
	sim_run(&at, 1);
	assert_true(at.score.is_learning);
	assert_true(at.score.score == 0.0);
	nt_anomaly_node_free(at.node);
}

static void metrics_beyond_the_limit_are_counted_and_left_out(void **state)
{
	enum {
		MANY = NT_ANOMALY_METRICS_MAX + 6,
	};
	static char text[MANY][16];
	const char *name[MANY];
	double value[MANY] = {0};
	struct sim_node at;

	(void)state;
	sim_open(&at, 11, NT_ANOMALY_METHOD_CHART);
	for (int j = 0; j < MANY; j++) {
		(void)snprintf(text[j], sizeof(text[j]), "x%d", j);
		name[j] = text[j];
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(nt_anomaly_node_take(at.node, &at.budget,
						      &(struct nt_anomaly_row){
							      .name = name,
							      .value = value,
							      .metrics = MANY,
						      },
						      &at.score),
				 0);
	assert_int_equal(nt_anomaly_node_left_out(at.node), 2 * 6);
	nt_anomaly_node_free(at.node);
}

static void each_method_finds_a_fault(void **state)
{
	(void)state;
	for (int method = 0; method <= NT_ANOMALY_METHOD_BOTH; method++) {
		struct sim_node at;
		double value[SIM_METRICS], usual, most;

		sim_open(&at, 12, method);
		sim_run(&at, LEARNED);
		sim_run(&at, 1);
		usual = most = at.score.score;
		for (int i = 0; i < 60 && !at.score.is_alarm;
		     i++, most = fmax(most, at.score.score)) {
			sim_row(&at.sim, at.minute, value);
			for (int j = 0; j < 20; j++)
				value[j] += 2.0 * at.sim.scale[j];
			sim_take(&at, value, NULL);
		}
		assert_true(method == NT_ANOMALY_METHOD_COMPRESSED_SENSING || at.score.is_alarm);
		assert_true(most > 1.2 * usual);
		nt_anomaly_node_free(at.node);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_node_stays_quiet_and_learning_ends),
		cmocka_unit_test(a_fault_alarms_within_minutes_and_names_its_metric),
		cmocka_unit_test(a_broken_relation_alarms_though_each_metric_is_in_its_range),
		cmocka_unit_test(what_left_its_range_is_named_before_what_relates_unusually),
		cmocka_unit_test(constants_gaps_and_nonsense_do_not_alarm),
		cmocka_unit_test(a_single_wild_row_does_not_alarm),
		cmocka_unit_test(one_wild_value_among_few_metrics_does_not_alarm),
		cmocka_unit_test(metrics_that_are_there_every_other_minute_do_not_alarm),
		cmocka_unit_test(a_lasting_new_level_becomes_normal),
		cmocka_unit_test(a_new_metric_is_learned_before_it_counts),
		cmocka_unit_test(ten_nodes_that_rise_together_do_not_alarm_and_one_alone_does),
		cmocka_unit_test(a_restored_node_goes_on_as_if_nothing_had_happened),
		cmocka_unit_test(damaged_state_is_refused),
		cmocka_unit_test(a_restart_learns_anew),
		cmocka_unit_test(metrics_beyond_the_limit_are_counted_and_left_out),
		cmocka_unit_test(each_method_finds_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
