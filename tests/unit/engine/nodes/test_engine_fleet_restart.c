/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes that are booted anew or change their kernel, and agents that are started anew. */
#include "engine/nodes/fleet.h"

#include "detect/thresholds/thresholds.h"
#include "fleet_feed.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
};

#define MOST_SENT        2e6 /* a second, of a healthy node */
#define MOST_RETRANSMITS 10.0

static void counters_of_another_run_give_no_rate(void **state)
{
	/* Decreases from there look like a wrap at 32 bits. */
	static const double high[] = {3e9, 4.29e9, 1e15};
	struct feed feed;

	(void)state;
	feed_open(&feed, 3);
	for (size_t i = 0; i < 3; i++)
		feed.node[i].sent = feed.node[i].retransmits = high[i];
	feed_run(&feed, 5);
	for (size_t i = 0; i < 3; i++)
		feed_restart_agent(&feed.node[i]);
	feed_run(&feed, 5);
	for (size_t i = 0; i < 3; i++) {
		assert_true(feed_most(&feed, i, FEED_SENT) < MOST_SENT);
		assert_true(feed_most(&feed, i, FEED_RETRANSMIT) < MOST_RETRANSMITS);
	}
	/* Counters that go on over the restart, too: the new run starts higher. */
	for (size_t i = 0; i < 3; i++) {
		feed_restart_agent(&feed.node[i]);
		feed.node[i].sent = feed.node[i].retransmits = 1e12;
	}
	feed_run(&feed, 5);
	for (size_t i = 0; i < 3; i++) {
		assert_true(feed_most(&feed, i, FEED_SENT) < MOST_SENT);
		assert_true(feed_most(&feed, i, FEED_RETRANSMIT) < MOST_RETRANSMITS);
	}
	assert_int_equal(nt_fleet_counters(feed.fleet)->restarts, 0);
	nt_fleet_free(feed.fleet);
}

static void counters_of_another_boot_give_no_rate(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 2);
	feed.node[1].boot_id = feed.node[1].kernel = NULL; /* an older agent */
	feed.node[0].sent = feed.node[0].retransmits = 3e9;
	feed.node[1].sent = feed.node[1].retransmits = 3e9;
	feed_run(&feed, 5);
	feed_reboot(&feed, &feed.node[0]);
	feed_reboot(&feed, &feed.node[1]);
	feed.node[0].boot_id = "boot-2";
	feed_run(&feed, 5);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(feed_find(&feed, i)->reason, NT_FLEET_REBOOTED);
		assert_true(feed_most(&feed, i, FEED_SENT) < MOST_SENT);
		assert_true(feed_most(&feed, i, FEED_RETRANSMIT) < MOST_RETRANSMITS);
	}
	nt_fleet_free(feed.fleet);
}

static void a_restarted_agent_keeps_what_was_learned(void **state)
{
	const struct nt_fleet_node *node;
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed.node[3].sent = 3e9;
	feed_run(&feed, LEARNED);
	feed.node[3].sent = 3e9; /* a reset that is no restart comes before */
	feed_run(&feed, 5);
	feed_restart_agent(&feed.node[3]);
	feed_run(&feed, 10);
	node = feed_find(&feed, 3);
	assert_int_equal(nt_fleet_node_state(node), NT_FLEET_QUIET);
	assert_int_equal(node->learning_since_ns, FEED_START_NS + FEED_VECTOR_NS);
	assert_int_equal(node->reason, NT_FLEET_NEW);
	assert_int_equal(feed.restarts, 0);
	assert_int_equal(feed.events, 0);
	/* It alarms as before. */
	feed_break(&feed.node[3], true);
	feed_run(&feed, 4);
	assert_int_equal(feed.events, 1);
	assert_string_equal(feed.event[0].node, "node-3");
	nt_fleet_free(feed.fleet);
}

static void a_reboot_and_another_kernel_are_reported_once_each(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 3);
	feed_run(&feed, 5);
	feed_reboot(&feed, &feed.node[0]);
	feed.node[0].boot_id = "boot-2";
	feed_run(&feed, 5);
	assert_int_equal(feed.restarts, 1);
	assert_string_equal(feed.restarted, "node-0");
	assert_int_equal(feed.restart_reason, NT_FLEET_REBOOTED);
	assert_true(feed_find(&feed, 0)->learning_since_ns > FEED_START_NS + 4 * NT_MINUTE);
	/* A reboot into another kernel has one reason: the kernel. */
	feed_reboot(&feed, &feed.node[1]);
	feed.node[1].boot_id = "boot-3";
	feed.node[1].kernel = "6.12.0-1";
	feed_run(&feed, 5);
	assert_int_equal(feed.restarts, 2);
	assert_string_equal(feed.restarted, "node-1");
	assert_int_equal(feed.restart_reason, NT_FLEET_OTHER_KERNEL);
	assert_int_equal(nt_fleet_counters(feed.fleet)->restarts, 2);
	assert_int_equal(feed_find(&feed, 2)->reason, NT_FLEET_NEW);
	nt_fleet_free(feed.fleet);
}

static void a_reboot_ends_the_alarm_and_learning_lasts_as_long_as_before(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	feed_break(&feed.node[3], true);
	feed_run(&feed, 4);
	assert_int_equal(feed.events, 1);
	feed_reboot(&feed, &feed.node[3]);
	feed.node[3].boot_id = "boot-2";
	feed_run(&feed, 1);
	assert_int_equal(feed.events, 2);
	assert_int_equal(feed.event[1].change, NT_FLEET_ALARM_ENDED);
	assert_int_equal(feed.event[1].id, feed.event[0].id);
	/* It is still broken, and others keep what they know of themselves. */
	feed_run(&feed, FEED_LEARN / 2);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 3)), NT_FLEET_LEARNING);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 4)), NT_FLEET_QUIET);
	assert_int_equal(feed.events, 2);
	feed_break(&feed.node[3], false);
	feed_run(&feed, LEARNED);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 3)), NT_FLEET_QUIET);
	assert_int_equal(feed_find(&feed, 3)->reason, NT_FLEET_REBOOTED);
	nt_fleet_free(feed.fleet);
}

static void a_reboot_while_its_row_waits_drops_the_row(void **state)
{
	struct nt_metric_value metric = {"gauge_0", 1.0};
	struct feed feed;
	uint64_t rows;

	(void)state;
	feed_open(&feed, 2);
	feed_run(&feed, 5);
	rows = nt_fleet_counters(feed.fleet)->rows;
	/* Both pass the end of the minute; their rows wait while one of them is booted anew. */
	feed.now_ns += FEED_VECTOR_NS;
	for (size_t i = 0; i < 3; i++) {
		struct feed_node *node = &feed.node[i % 2];
		const char *boot_id = i == 2 ? "boot-2" : "boot-1";
		const struct nt_message message = {
			.agent = node->name,
			.boot = node->run + i / 2,
			.seq = i == 2 ? 1 : node->seq + 1,
			.real_ns = feed.now_ns + i,
			.boot_ns = i == 2 ? NT_SECOND : feed.now_ns - node->booted_ns,
			.body = NT_BODY_NODE,
			.node = {.node = node->name,
				 .metric = &metric,
				 .metrics = 1,
				 .boot_id = boot_id,
				 .kernel = "6.1.0-1"},
		};

		assert_int_equal(nt_fleet_take(feed.fleet, &message, 0), 0);
	}
	assert_int_equal(feed.restarts, 1);
	assert_int_equal(nt_fleet_turn(feed.fleet, SIZE_MAX), 0);
	assert_int_equal(nt_fleet_counters(feed.fleet)->rows, rows + 1);
	nt_fleet_free(feed.fleet);
}

/* ---- with a saved state ---------------------------------------------------------------------- */

static void replace_fleet_at(struct feed *feed, size_t first_vectors)
{
	struct nt_buf saved[NT_FLEET_PORTIONS] = {0};

	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++)
		assert_true(nt_fleet_save_portion(feed->fleet, 0, i, &saved[i]) >= 0);
	nt_fleet_free(feed->fleet);
	feed->fleet = feed_fleet(feed);
	feed->restarts = 0;
	for (size_t i = 0; i < first_vectors; i++)
		feed_send(feed, &feed->node[i], NULL, 0);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++) {
		assert_int_equal(nt_fleet_load_portion(feed->fleet, 0, saved[i].data, saved[i].len),
				 0);
		nt_buf_release(&saved[i]);
	}
}

static void a_reboot_while_the_aggregator_is_away_is_found_by_id_kernel_or_clock(void **state)
{
	struct feed feed;

	(void)state;
	/* First the vectors, then the state; then the other way round. */
	for (size_t first = 0; first <= 4; first += 4) {
		feed_open(&feed, 4);
		feed.node[2].boot_id = feed.node[2].kernel = NULL;
		feed_run(&feed, LEARNED);
		feed.now_ns += NT_MINUTE;
		for (size_t i = 0; i < 3; i++)
			feed_reboot(&feed, &feed.node[i]);
		feed.now_ns += FEED_VECTOR_NS;
		feed.node[0].boot_id = "boot-2";
		feed.node[1].boot_id = "boot-3";
		feed.node[1].kernel = "6.12.0-1";
		replace_fleet_at(&feed, first);
		feed_run(&feed, 3);
		assert_int_equal(feed_find(&feed, 0)->reason, NT_FLEET_REBOOTED);
		assert_int_equal(feed_find(&feed, 1)->reason, NT_FLEET_OTHER_KERNEL);
		assert_int_equal(feed_find(&feed, 2)->reason, NT_FLEET_REBOOTED);
		assert_int_equal(feed_find(&feed, 3)->reason, NT_FLEET_NEW);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(nt_fleet_node_state(feed_find(&feed, i)),
					 i < 3 ? NT_FLEET_LEARNING : NT_FLEET_QUIET);
		assert_int_equal(feed.restarts, 3);
		assert_int_equal(nt_fleet_counters(feed.fleet)->restarts, 3);
		nt_fleet_free(feed.fleet);
	}
}

static void vectors_that_are_read_again_are_no_reboot(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 1);
	feed.node[0].boot_id = feed.node[0].kernel = NULL;
	feed_run(&feed, LEARNED);
	/* The reader goes back by ten minutes: the state is newer than the first vector. */
	feed.now_ns -= 10 * NT_MINUTE;
	replace_fleet_at(&feed, 1);
	feed_run(&feed, 12);
	assert_int_equal(feed.restarts, 0);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 0)), NT_FLEET_QUIET);
	nt_fleet_free(feed.fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_another_run_give_no_rate),
		cmocka_unit_test(counters_of_another_boot_give_no_rate),
		cmocka_unit_test(a_restarted_agent_keeps_what_was_learned),
		cmocka_unit_test(a_reboot_and_another_kernel_are_reported_once_each),
		cmocka_unit_test(a_reboot_ends_the_alarm_and_learning_lasts_as_long_as_before),
		cmocka_unit_test(a_reboot_while_its_row_waits_drops_the_row),
		cmocka_unit_test(
			a_reboot_while_the_aggregator_is_away_is_found_by_id_kernel_or_clock),
		cmocka_unit_test(vectors_that_are_read_again_are_no_reboot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
