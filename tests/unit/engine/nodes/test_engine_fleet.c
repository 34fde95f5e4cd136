/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/fleet.h"

#include <errno.h>

#include "detect/thresholds/thresholds.h"
#include "fleet_feed.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
};

static size_t learned_nodes(const struct feed *feed)
{
	size_t n = 0;

	for (size_t i = 0; i < feed->nodes; i++)
		n += nt_fleet_node_state(feed_find(feed, i)) != NT_FLEET_LEARNING;
	return n;
}

static void ten_nodes_that_rise_together_do_not_alarm(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	assert_int_equal(learned_nodes(&feed), FEED_NODES);
	for (size_t i = 0; i < FEED_NODES; i++)
		feed_break(&feed.node[i], true);
	feed_run(&feed, 30);
	assert_int_equal(feed.events, 0);
	assert_int_equal(feed_find(&feed, 0)->peers, FEED_NODES);
	nt_fleet_free(feed.fleet);
}

/* Whether the metric is among the first of the explanation, with values that show why. */
static bool names(const struct feed *feed, size_t i, const char *metric)
{
	const struct nt_fleet_node *node = feed_find(feed, i);

	for (size_t k = 0; k < node->parts && k < 6; k++) {
		const struct nt_fleet_part *part = &node->part[k];

		if (strcmp(nt_fleet_metrics(feed->fleet)->at[part->metric].name, metric) == 0)
			return part->value > 2.0 * part->peers &&
			       part->value - part->peers > part->high;
	}
	return false;
}

static void one_of_ten_alarms_within_three_minutes_and_names_the_metric(void **state)
{
	const struct nt_fleet_node *node;
	struct feed feed;
	uint64_t rose_ns;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	rose_ns = feed.now_ns;
	feed_break(&feed.node[3], true);
	feed_run(&feed, 4);
	assert_int_equal(feed.events, 1);
	assert_string_equal(feed.event[0].node, "node-3");
	assert_int_equal(feed.event[0].change, NT_FLEET_ALARM_RAISED);
	assert_true(names(&feed, 3, FEED_RETRANSMIT) && names(&feed, 3, "gauge_0"));
	assert_true(feed.event[0].real_ns <= rose_ns + 3 * NT_MINUTE);
	node = feed_find(&feed, 3);
	assert_int_equal(nt_fleet_node_state(node), NT_FLEET_ALARM);
	assert_true(node->incident_since_ns <= rose_ns + NT_MINUTE);
	/* It ends once, a while after the cause. */
	feed_break(&feed.node[3], false);
	feed_run(&feed, 240);
	for (size_t i = 1; i + 1 < feed.events; i++)
		assert_int_equal(feed.event[i].change, NT_FLEET_ALARM_CHANGED);
	assert_int_equal(feed.event[feed.events - 1].change, NT_FLEET_ALARM_ENDED);
	assert_int_equal(feed.event[feed.events - 1].id, feed.event[0].id);
	assert_int_equal(nt_fleet_counters(feed.fleet)->alarms, 1);
	nt_fleet_free(feed.fleet);
}

static void nodes_without_a_job_are_scored_against_their_own_past(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 3);
	for (size_t i = 0; i < FEED_NODES; i++)
		feed.node[i].jobs = 0;
	feed_run(&feed, LEARNED);
	assert_int_equal(learned_nodes(&feed), 3);
	assert_int_equal(feed_find(&feed, 1)->peers, 0);
	assert_false(feed_find(&feed, 1)->score.has_peers);
	feed_break(&feed.node[1], true);
	feed_run(&feed, 6);
	assert_int_equal(feed.events, 1);
	assert_string_equal(feed.event[0].node, "node-1");
	nt_fleet_free(feed.fleet);
}

static void the_job_with_the_most_nodes_is_chosen(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	/* Nodes 0 to 3 have a small job first. */
	for (size_t i = 0; i < 4; i++) {
		feed.node[i].job[0] = "small";
		feed.node[i].job[1] = "job";
		feed.node[i].jobs = 2;
	}
	feed.node[9].job[0] = "alone";
	feed_run(&feed, 3);
	assert_int_equal(feed_find(&feed, 0)->peers, 9);
	assert_int_equal(feed_find(&feed, 0)->peer_job, 1);
	assert_int_equal(feed_find(&feed, 5)->peers, 9);
	assert_int_equal(feed_find(&feed, 9)->peers, 0);
	nt_fleet_free(feed.fleet);
}

static void jobs_may_change_while_a_round_is_under_way(void **state)
{
	struct nt_metric_value metric = {"gauge_0", 1.0};
	struct feed feed;
	uint64_t rows;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, 3);
	rows = nt_fleet_counters(feed.fleet)->rows;
	for (size_t i = 0; i < 4 * FEED_NODES; i++) {
		struct feed_node *node = &feed.node[i % FEED_NODES];
		struct nt_message message = {
			.agent = node->name,
			.boot = node->run,
			.seq = ++node->seq,
			.real_ns = feed.now_ns + (i / FEED_NODES + 1) * 20 * NT_SECOND,
			.boot_ns = NT_DAY + i,
			.body = NT_BODY_NODE,
			.node = {.node = node->name, .metric = &metric, .metrics = 1},
		};
		const char *job = i / FEED_NODES % 2 ? "other" : "job";

		message.node.job = &job;
		message.node.jobs = 1;
		assert_int_equal(nt_fleet_take(feed.fleet, &message, 0), 0);
		assert_int_equal(nt_fleet_turn(feed.fleet, 1), 0);
	}
	assert_int_equal(nt_fleet_turn(feed.fleet, SIZE_MAX), 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->rows, rows + 2 * FEED_NODES);
	nt_fleet_free(feed.fleet);
}

static void a_late_node_a_reboot_and_another_kernel_are_learned_anew(void **state)
{
	const struct nt_fleet_node *node;
	struct feed feed;
	uint64_t joined_ns;

	(void)state;
	feed_open(&feed, 9);
	feed_run(&feed, LEARNED);
	feed.nodes = FEED_NODES;
	joined_ns = feed.now_ns;
	feed_run(&feed, 60);
	node = feed_find(&feed, 9);
	assert_int_equal(nt_fleet_node_state(node), NT_FLEET_LEARNING);
	assert_int_equal(node->reason, NT_FLEET_NEW);
	assert_true(node->learning_since_ns - joined_ns <= NT_MINUTE);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 0)), NT_FLEET_QUIET);
	/* A reboot: all counters and the boot clock begin anew. */
	feed.node[1].boot_id = "boot-2";
	feed.node[1].run++;
	feed.node[1].seq = 0;
	feed.node[1].sent = feed.node[1].retransmits = 0.0;
	feed.node[1].booted_ns = feed.now_ns;
	feed.node[2].boot_id = "boot-3";
	feed.node[2].kernel = "6.1.0-2";
	feed_run(&feed, 3);
	node = feed_find(&feed, 1);
	assert_int_equal(nt_fleet_node_state(node), NT_FLEET_LEARNING);
	assert_int_equal(node->reason, NT_FLEET_REBOOTED);
	assert_int_equal(feed_find(&feed, 2)->reason, NT_FLEET_OTHER_KERNEL);
	assert_int_equal(nt_fleet_counters(feed.fleet)->restarts, 2);
	feed_run(&feed, LEARNED);
	assert_int_equal(learned_nodes(&feed), FEED_NODES);
	assert_int_equal(feed.events, 0);
	nt_fleet_free(feed.fleet);
}

static void an_agent_that_is_started_anew_is_no_reboot(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 4);
	feed_run(&feed, 5);
	feed.node[0].run++;
	feed.node[0].seq = 0;
	feed.node[1].boot_id = feed.node[1].kernel = NULL; /* an older agent */
	feed_run(&feed, 5);
	feed.node[1].boot_id = "boot-1";
	feed_run(&feed, 5);
	assert_int_equal(nt_fleet_counters(feed.fleet)->restarts, 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->late, 0);
	nt_fleet_free(feed.fleet);
}

static void missing_constant_and_wrapping_metrics_do_not_alarm(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	/* One counter wraps at 32 bits after a while, one is reset, and one value is no number. */
	feed.node[0].sent = 0x1p32 - 1e6 * 60 * (LEARNED + 5);
	feed_run(&feed, LEARNED);
	feed.node[1].retransmits = 0.0;
	feed.node[2].gauge = 2;
	feed.node[2].factor = NAN;
	feed.node[3].gauge = 4;
	feed.node[3].factor = INFINITY;
	feed.node[4].gauge = FEED_METRICS; /* none */
	feed_run(&feed, 30);
	while (feed.node[0].sent >= 0x1p32)
		feed.node[0].sent -= 0x1p32;
	feed_run(&feed, 30);
	assert_int_equal(feed.events, 0);
	assert_true(nt_fleet_counters(feed.fleet)->resets >= 1);
	nt_fleet_free(feed.fleet);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void clocks_that_differ_cost_no_row(void **state)
{
	const uint64_t minutes = 30;
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed.node[0].skew_ns = 59 * (int64_t)NT_SECOND;
	feed.node[1].skew_ns = -(int64_t)(3 * NT_MINUTE);
	feed.node[2].skew_ns = -(int64_t)(10 * NT_SECOND);
	feed_run(&feed, minutes);
	for (size_t i = 0; i < FEED_NODES; i++) {
		const struct nt_fleet_node *node = feed_find(&feed, i);

		assert_in_range(node->history.scores, minutes - 2, minutes);
	}
	assert_int_equal(nt_fleet_counters(feed.fleet)->rows_lost, 0);
	nt_fleet_free(feed.fleet);
}

static void a_clock_far_ahead_of_its_minute_does_not_stop_the_others(void **state)
{
	struct feed feed;
	uint64_t rows;

	(void)state;
	feed_open(&feed, 4);
	feed.node[0].skew_ns = (int64_t)NT_HOUR;
	feed_run(&feed, 10);
	rows = feed_find(&feed, 1)->history.scores;
	feed_run(&feed, 10);
	assert_in_range(feed_find(&feed, 1)->history.scores, rows + 9, rows + 11);
	nt_fleet_free(feed.fleet);
}

static void a_stopped_node_delays_the_minute_for_a_limited_time(void **state)
{
	struct feed feed;
	uint64_t rows;

	(void)state;
	feed_open(&feed, 2);
	feed_run(&feed, 10);
	rows = feed_find(&feed, 0)->history.scores;
	feed.node[1].is_silent = true;
	feed_run(&feed, 10);
	assert_true(feed_find(&feed, 0)->history.scores >= rows + 6);
	nt_fleet_free(feed.fleet);
}

static void vectors_of_the_past_are_ignored_until_the_clock_was_set_back(void **state)
{
	struct nt_metric_value metric = {"gauge_0", 1.0};
	struct feed feed;

	(void)state;
	feed_open(&feed, 1);
	feed_run(&feed, 10);
	/* From the disk queue: the same run, an earlier number. */
	feed.node[0].seq -= 5;
	feed_send(&feed, &feed.node[0], &metric, 1);
	assert_int_equal(nt_fleet_counters(feed.fleet)->late, 1);
	feed.node[0].seq += 5;
	/* Another run an hour earlier. */
	feed.node[0].run++;
	feed.node[0].skew_ns = -(int64_t)NT_HOUR / 2;
	feed_run(&feed, 3);
	assert_true(nt_fleet_counters(feed.fleet)->late > 9);
	feed_run(&feed, 10);
	assert_in_range(nt_fleet_counters(feed.fleet)->late, 10, 16);
	nt_fleet_free(feed.fleet);
}

/* ---- caps ------------------------------------------------------------------------------------ */

static void names_beyond_the_cap_are_counted_and_known_ones_still_find_a_place(void **state)
{
	struct nt_metric_value metric[FEED_METRICS];
	char text[FEED_METRICS][16];
	struct feed feed;

	(void)state;
	feed_open(&feed, 2);
	for (size_t i = 0; i < 100; i++) {
		(void)snprintf(text[0], sizeof(text[0]), "other_%zu", i);
		metric[0] = (struct nt_metric_value){text[0], 1.0};
		feed_send(&feed, &feed.node[0], metric, 1);
	}
	assert_int_equal(nt_fleet_metrics(feed.fleet)->over_cap, 36);
	assert_int_equal(feed_find(&feed, 0)->metrics, NT_ANOMALY_METRICS_MAX);
	metric[0] = (struct nt_metric_value){FEED_SENT, 1.0};
	feed_send(&feed, &feed.node[1], metric, 1);
	assert_int_equal(feed_find(&feed, 1)->metrics, 1);
	/* The first node has no slot left. */
	assert_int_equal(nt_fleet_counters(feed.fleet)->left_out, 0);
	feed_send(&feed, &feed.node[0], metric, 1);
	assert_int_equal(nt_fleet_counters(feed.fleet)->left_out, 1);
	nt_fleet_free(feed.fleet);
}

static void metrics_that_are_shown_only_have_no_slot(void **state)
{
	struct nt_metric_value metric = {"memory_total_bytes", 1e12};
	struct feed feed;

	(void)state;
	feed_open(&feed, 1);
	feed_send(&feed, &feed.node[0], &metric, 1);
	assert_int_equal(feed_find(&feed, 0)->metrics, 0);
	feed.now_ns += 10 * NT_MINUTE;
	feed_send(&feed, &feed.node[0], &metric, 1);
	assert_int_equal(nt_fleet_counters(feed.fleet)->rows, 0);
	nt_fleet_free(feed.fleet);
}

static void at_the_cap_of_nodes_the_longest_silent_gives_way(void **state)
{
	struct nt_fleet_options options = nt_fleet_options_default();
	struct nt_metric_value metric = {"gauge_0", 1.0};
	struct feed feed;

	(void)state;
	feed_open(&feed, 3);
	nt_fleet_free(feed.fleet);
	options.max_nodes = 2;
	assert_int_equal(nt_fleet_new(&options, NULL, &feed.fleet), 0);
	for (size_t i = 0; i < 3; i++)
		feed_send(&feed, &feed.node[i], &metric, 1);
	assert_null(nt_fleet_find(feed.fleet, "node-2"));
	assert_int_equal(nt_fleet_counters(feed.fleet)->nodes_over_cap, 1);
	/* Within a second after a search in vain there is no other, though one could give way by then. */
	for (size_t i = 0; i < 3; i++) {
		static const uint64_t later_ns[] = {NT_ANOMALY_EVICT_NS - NT_SECOND / 2,
						    NT_SECOND * 3 / 4, NT_SECOND};

		assert_null(nt_fleet_find(feed.fleet, "node-2"));
		feed.now_ns += later_ns[i];
		feed_send(&feed, &feed.node[1], &metric, 1);
		feed_send(&feed, &feed.node[2], &metric, 1);
	}
	assert_int_equal(nt_fleet_counters(feed.fleet)->nodes_over_cap, 3);
	assert_null(nt_fleet_find(feed.fleet, "node-0"));
	assert_non_null(nt_fleet_find(feed.fleet, "node-2"));
	assert_int_equal(nt_fleet_counters(feed.fleet)->evicted, 1);
	nt_fleet_free(feed.fleet);
}

static void jobs_beyond_the_cap_are_counted_and_each_counts_once(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
	const char *job[NT_FLEET_JOBS + 3];
	struct nt_message message = {
		.agent = "a", .boot = 1, .seq = 1, .real_ns = FEED_START_NS, .body = NT_BODY_NODE};
	struct feed feed;

	(void)state;
	feed_open(&feed, 1);
	for (size_t i = 0; i < NT_FLEET_JOBS + 3; i++)
		job[i] = names[i];
	message.node = (struct nt_node_vector){.node = "a", .job = job, .jobs = NT_FLEET_JOBS + 3};
	assert_int_equal(nt_fleet_take(feed.fleet, &message, 0), 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->jobs_over_cap, 3);
	assert_int_equal(nt_fleet_find(feed.fleet, "a")->jobs, NT_FLEET_JOBS);
	for (size_t i = 0; i < NT_FLEET_JOBS + 3; i++)
		job[i] = "job";
	message.seq++;
	assert_int_equal(nt_fleet_take(feed.fleet, &message, 0), 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->jobs_over_cap, 3);
	assert_int_equal(nt_fleet_find(feed.fleet, "a")->jobs, 1);
	nt_fleet_free(feed.fleet);
}

static void a_silent_nodes_alarm_ends_and_it_is_forgotten_after_a_week(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	feed_break(&feed.node[3], true);
	feed_run(&feed, 6);
	assert_int_equal(feed.events, 1);
	feed.node[3].is_silent = true;
	nt_fleet_wait(feed.fleet, 0);
	assert_int_equal(feed.events, 1);
	feed_run(&feed, NT_ANOMALY_SILENT_NS / NT_MINUTE + 1);
	nt_fleet_wait(feed.fleet, 0);
	assert_int_equal(feed.events, 2);
	assert_int_equal(feed.event[1].change, NT_FLEET_ALARM_ENDED);
	nt_fleet_wait(feed.fleet, NT_ANOMALY_FORGET_NS);
	assert_null(nt_fleet_nodes(feed.fleet));
	nt_fleet_free(feed.fleet);
}

/* ---- refits ---------------------------------------------------------------------------------- */

static void a_refit_that_its_node_outlives_not_is_dropped(void **state)
{
	struct nt_fleet_refit refit;
	struct feed feed;

	(void)state;
	feed_open(&feed, 4);
	feed.solves = false;
	feed_run(&feed, 510);
	assert_int_equal(nt_fleet_refit_begin(feed.fleet, &refit), 1);
	assert_string_equal(refit.node, "node-0");
	feed.node[0].boot_id = "boot-2"; /* its charts are gone */
	feed_run(&feed, 2);
	assert_int_equal(nt_refit_solve(refit.refit), 0);
	nt_fleet_refit_end(feed.fleet, &refit, 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->refits, 0);
	/* The others have their turn, one after the other; a failure keeps the old basis. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nt_fleet_refit_begin(feed.fleet, &refit), 1);
		assert_string_not_equal(refit.node, "node-0");
		nt_fleet_refit_end(feed.fleet, &refit,
				   i == 2 ? -EDOM : nt_refit_solve(refit.refit));
	}
	assert_int_equal(nt_fleet_refit_begin(feed.fleet, &refit), 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->refits, 2);
	assert_int_equal(nt_fleet_counters(feed.fleet)->refits_failed, 1);
	nt_fleet_free(feed.fleet);
}

static void a_node_takes_at_most_a_hundred_thousand_bytes(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	assert_true(nt_fleet_node_bytes(feed_find(&feed, 0)) < 100000);
	nt_fleet_free(feed.fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_nodes_that_rise_together_do_not_alarm),
		cmocka_unit_test(one_of_ten_alarms_within_three_minutes_and_names_the_metric),
		cmocka_unit_test(nodes_without_a_job_are_scored_against_their_own_past),
		cmocka_unit_test(the_job_with_the_most_nodes_is_chosen),
		cmocka_unit_test(jobs_may_change_while_a_round_is_under_way),
		cmocka_unit_test(a_late_node_a_reboot_and_another_kernel_are_learned_anew),
		cmocka_unit_test(an_agent_that_is_started_anew_is_no_reboot),
		cmocka_unit_test(missing_constant_and_wrapping_metrics_do_not_alarm),
		cmocka_unit_test(clocks_that_differ_cost_no_row),
		cmocka_unit_test(a_clock_far_ahead_of_its_minute_does_not_stop_the_others),
		cmocka_unit_test(a_stopped_node_delays_the_minute_for_a_limited_time),
		cmocka_unit_test(vectors_of_the_past_are_ignored_until_the_clock_was_set_back),
		cmocka_unit_test(
			names_beyond_the_cap_are_counted_and_known_ones_still_find_a_place),
		cmocka_unit_test(metrics_that_are_shown_only_have_no_slot),
		cmocka_unit_test(at_the_cap_of_nodes_the_longest_silent_gives_way),
		cmocka_unit_test(jobs_beyond_the_cap_are_counted_and_each_counts_once),
		cmocka_unit_test(a_silent_nodes_alarm_ends_and_it_is_forgotten_after_a_week),
		cmocka_unit_test(a_refit_that_its_node_outlives_not_is_dropped),
		cmocka_unit_test(a_node_takes_at_most_a_hundred_thousand_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
