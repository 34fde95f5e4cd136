/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values that are no sign of a fault by themselves, from the vector to the alarm: with peers, and alone. */
/* As many metrics as an agent sends: none decides alone. */
#define FEED_GAUGES 38

#include "engine/nodes/fleet.h"

#include <float.h>

#include "detect/thresholds/thresholds.h"
#include "fleet_feed.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
	SPOILED = 45,
	NODE = 2, /* the one whose vectors are changed */
	SENT = FEED_GAUGES, /* places of the counters */
	RETRANSMIT,
};

typedef void spoil_fn(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics);

/* Without an alarm, before and after; the feed is the caller's. */
static void spoil_node(struct feed *feed, bool has_peers, spoil_fn *spoil)
{
	const struct nt_fleet_node *node;

	feed_open(feed, has_peers ? FEED_NODES : NODE + 1);
	for (size_t i = 0; i < FEED_NODES; i++)
		feed->node[i].jobs = has_peers;
	feed_run(feed, LEARNED);
	feed->node[NODE].spoil = spoil;
	feed_run(feed, SPOILED);
	feed->node[NODE].spoil = NULL;
	feed_run(feed, SPOILED);
	node = feed_find(feed, NODE);
	if (feed->events)
		fail_msg("%s alarms of %s", feed->event[0].node, feed->event[0].leading);
	assert_int_equal(nt_fleet_node_state(node), NT_FLEET_QUIET);
	assert_true(isfinite(node->score.score));
	assert_int_equal(node->score.has_peers, has_peers);
}

static void check(spoil_fn *spoil)
{
	struct feed feed;

	for (int has_peers = 0; has_peers < 2; has_peers++) {
		spoil_node(&feed, has_peers, spoil);
		nt_fleet_free(feed.fleet);
	}
}

/* ---- gauges ---------------------------------------------------------------------------------- */

static void change_constant(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)node;
	(void)metrics;
	metric[FEED_GAUGES - 1].value = 128.0;
}

static void a_constant_metric_that_changes_once_does_not_alarm(void **state)
{
	(void)state;
	check(change_constant);
}

static void drop_half(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)node;
	memmove(metric, metric + 1, (FEED_METRICS - 1) * sizeof(*metric));
	*metrics = FEED_METRICS / 2;
}

static void drop_all(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)node;
	(void)metric;
	*metrics = 0;
}

/* Another set of metrics every minute, never less than half of them. */
static void drop_others(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	const uint64_t minute = (node->spoiled + 1) / FEED_VECTORS;

	(void)metric;
	if (minute % 5 < 3)
		*metrics = FEED_METRICS - 7 * minute % (FEED_METRICS / 2);
}

static void metrics_that_are_missing_do_not_alarm(void **state)
{
	(void)state;
	check(drop_half);
	check(drop_all);
	check(drop_others);
}

static void send_no_numbers(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX};

	(void)metrics;
	for (size_t j = 0; j < FEED_METRICS; j++)
		metric[j].value = odd[(node->spoiled + j) % (sizeof(odd) / sizeof(odd[0]))];
}

static void send_no_number_at_times(struct feed_node *node, struct nt_metric_value *metric,
				    size_t *metrics)
{
	if (node->spoiled % FEED_VECTORS == 0)
		send_no_numbers(node, metric, metrics);
}

static void values_that_are_no_numbers_do_not_alarm(void **state)
{
	(void)state;
	check(send_no_numbers);
	check(send_no_number_at_times);
}

/* A sensor that is read wrong once. */
static void jump_once(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)metrics;
	if (node->spoiled == 10)
		metric[0].value *= 1e6;
}

static void jump_down_once(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)metrics;
	if (node->spoiled == 10)
		metric[1].value = -1e9;
}

static void a_gauge_that_jumps_for_one_vector_does_not_alarm(void **state)
{
	(void)state;
	check(jump_once);
	check(jump_down_once);
}

/* ---- counters -------------------------------------------------------------------------------- */

static void reset_counters(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)metrics;
	if (node->spoiled == 5) {
		node->sent = node->retransmits = 0.0;
		metric[SENT].value = metric[RETRANSMIT].value = 0.0;
	}
}

static void a_counter_that_is_reset_gives_no_rate_and_does_not_alarm(void **state)
{
	/* From there a reset is no wrap at 32 bits, might be one, and is the less likely one. */
	static const double before[] = {1e9, 3e9, 4.2e9, 1e15};
	struct feed feed;

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		feed_open(&feed, FEED_NODES);
		feed_run(&feed, LEARNED);
		feed.node[NODE].sent = feed.node[NODE].retransmits = before[i];
		feed_restart_agent(&feed.node[NODE]);
		feed.node[NODE].sent = feed.node[NODE].retransmits = before[i];
		feed.node[NODE].spoil = reset_counters;
		feed_run(&feed, SPOILED);
		assert_int_equal(feed.events, 0);
		nt_fleet_free(feed.fleet);
	}
}

static void wrap_counters(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)node;
	(void)metrics;
	metric[SENT].value = fmod(metric[SENT].value, 0x1p32);
}

static void a_counter_of_32_bits_keeps_its_rate_over_each_wrap(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 3);
	for (size_t i = 0; i < 3; i++) {
		feed.node[i].spoil = wrap_counters;
		feed.node[i].sent = 0x1p32 - 1.2e8;
	}
	feed_run(&feed, 85);
	for (size_t i = 0; i < 3; i++)
		assert_true(feed_most(&feed, i, FEED_SENT) < 1.1e6);
	assert_int_equal(nt_fleet_counters(feed.fleet)->resets, 0);
	assert_int_equal(feed_find(&feed, 0)->history.scores, 84);
	nt_fleet_free(feed.fleet);
}

static void jump_counter(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics)
{
	(void)metrics;
	if (node->spoiled == 10)
		node->sent += 1e15;
	metric[SENT].value = node->sent;
}

static void a_counter_that_jumps_once_does_not_alarm(void **state)
{
	(void)state;
	check(jump_counter);
}

static void a_counter_with_a_gap_gives_no_rate(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 1);
	feed_run(&feed, 5);
	feed.node[0].spoil = drop_all;
	feed_run(&feed, NT_ANOMALY_GAP_NS / NT_MINUTE + 1);
	feed.node[0].spoil = NULL;
	feed.node[0].sent += 1e12; /* what happened meanwhile is not known */
	feed_run(&feed, 5);
	assert_true(feed_most(&feed, 0, FEED_SENT) < 1.1e6);
	assert_int_equal(nt_fleet_counters(feed.fleet)->gaps, 2);
	nt_fleet_free(feed.fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_constant_metric_that_changes_once_does_not_alarm),
		cmocka_unit_test(metrics_that_are_missing_do_not_alarm),
		cmocka_unit_test(values_that_are_no_numbers_do_not_alarm),
		cmocka_unit_test(a_gauge_that_jumps_for_one_vector_does_not_alarm),
		cmocka_unit_test(a_counter_that_is_reset_gives_no_rate_and_does_not_alarm),
		cmocka_unit_test(a_counter_of_32_bits_keeps_its_rate_over_each_wrap),
		cmocka_unit_test(a_counter_that_jumps_once_does_not_alarm),
		cmocka_unit_test(a_counter_with_a_gap_gives_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
