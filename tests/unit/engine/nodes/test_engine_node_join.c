/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A slow rank on a node with an alarm, through the engine. */
#include "engine/engine.h"

#include "fleet_feed.h"
#include "tests/unit/engine/window_feed.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
	RANKS = 8,
	SLOW = 5,
};

static struct feed feed;
static struct nt_engine *engine;
static struct feed_agent agent;
static size_t fired, named, joins; /* reports of firing incidents, those with the metric */
static char summary[NT_WIRE_MAX_TEXT];

static void take_incident(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	if (strcmp(incident->state, "firing") != 0 || strcmp(incident->class, "compute") != 0)
		return;
	fired++;
	for (size_t i = 0; i < incident->evidences; i++)
		if (strcmp(incident->evidence[i].what, FEED_RETRANSMIT) == 0)
			named++;
	(void)snprintf(summary, sizeof(summary), "%s", incident->summary);
}

static void take_joined(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	assert_string_equal(incident->culprit[0].node, "node-3");
	joins++;
}

static void run_job(uint64_t from_ms, uint64_t to_ms, uint64_t slow_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 520)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			const bool slow = rank == SLOW && at >= slow_ms;
			const double noise = (double)((at / 520 * 7 + rank * 13) % 17) * 0.01;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = at,
				.to_ms = at + 520,
				.steps = 10,
				.own_ms = (slow ? 30 : 20) + noise,
				.step_ms = at >= slow_ms ? 31 : 21,
				.comm = 0xabc,
				.last = at / 52 + 10,
				.gpu = "GPU-5f",
			};

			assert_int_equal(
				nt_engine_push(engine, feed_window(&agent, &window), false), 0);
		}
}

static int set_up(void **state)
{
	const struct nt_engine_handler handler = {
		.incident = take_incident,
		.joined = take_joined,
	};
	struct nt_engine_options options = nt_engine_options_default();

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	fired = named = joins = 0;
	agent = feed_agent("node-3", "job");
	options.fleet = feed.fleet;
	assert_int_equal(nt_engine_new(&options, &handler, &engine), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_engine_free(engine);
	nt_fleet_free(feed.fleet);
	return 0;
}

static void raise_alarm(void)
{
	feed_break(&feed.node[3], true);
	feed.node[3].gauges = 3;
	feed_run(&feed, 5);
	assert_int_equal(feed.events, 1);
}

static void a_verdict_names_an_alarm_that_was_there_before(void **state)
{
	(void)state;
	raise_alarm();
	run_job(0, 60000, 30000);
	assert_true(fired > 0);
	assert_int_equal(named, fired);
	assert_int_equal(joins, fired);
	assert_non_null(strstr(summary, "; on its node node-3 "));
}

static void an_alarm_that_comes_later_is_named_once_it_is_marked(void **state)
{
	size_t before;

	(void)state;
	run_job(0, 60000, 30000);
	before = fired;
	assert_true(before > 0);
	assert_int_equal(named, 0);
	raise_alarm();
	nt_engine_mark_node(engine, "node-4");
	run_job(60320, 62400, 30000);
	assert_int_equal(named, fired - before);
	nt_engine_mark_node(engine, "node-3");
	run_job(62920, 66000, 30000);
	assert_true(named > 0);
	assert_non_null(strstr(summary, "; on its node node-3 "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_verdict_names_an_alarm_that_was_there_before,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_alarm_that_comes_later_is_named_once_it_is_marked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
