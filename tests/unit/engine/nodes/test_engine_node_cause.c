/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/node_cause.h"

#include "fleet_feed.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
};

static struct feed feed;

static int set_up(void **state)
{
	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	feed_break(&feed.node[3], true);
	feed.node[3].gauges = 3;
	feed_run(&feed, 5);
	assert_int_equal(feed.events, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_fleet_free(feed.fleet);
	return 0;
}

static struct nt_wire_incident incident_of(struct nt_culprit *culprit, const char *class)
{
	return (struct nt_wire_incident){
		.class = class,
		.cause = "",
		.summary = "rank 11 (node-3) is late",
		.culprit = culprit,
		.culprits = 1,
	};
}

static void a_slow_rank_on_a_node_with_an_alarm_names_the_metric(void **state)
{
	struct nt_wire_evidence own = {.what = "host work of the step", .unit = "ms"};
	struct nt_culprit culprit = {.kind = "rank", .node = "node-3"};
	struct nt_wire_incident incident = incident_of(&culprit, "host");
	nt_autoarena struct nt_arena arena = {0};
	bool has = false;

	(void)state;
	incident.evidence = &own;
	incident.evidences = 1;
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 1);
	assert_int_equal(incident.evidences, 1 + NT_FLEET_TOLD);
	assert_string_equal(incident.evidence[0].what, "host work of the step");
	assert_string_equal(incident.evidence[1].what, incident.cause);
	assert_string_equal(incident.evidence[1].method, NT_NODE_CAUSE_METHOD);
	assert_non_null(strstr(incident.summary, "rank 11 (node-3) is late; on its node node-3 "));
	assert_non_null(strstr(incident.summary, " times its peers' ("));
	for (size_t i = 1; i < incident.evidences; i++)
		if (strcmp(incident.evidence[i].what, FEED_RETRANSMIT) == 0) {
			has = true;
			assert_string_equal(incident.evidence[i].unit, "segments/s");
			assert_true(incident.evidence[i].value > 30.0);
			assert_true(incident.evidence[i].peers < 2.0);
		}
	assert_true(has);
}

static void a_known_cause_stays(void **state)
{
	struct nt_culprit culprit = {.kind = "rank", .node = "node-3"};
	struct nt_wire_incident incident = incident_of(&culprit, "network");
	nt_autoarena struct nt_arena arena = {0};

	(void)state;
	incident.cause = "packet loss";
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 1);
	assert_string_equal(incident.cause, "packet loss");
}

static void other_nodes_and_classes_join_nothing(void **state)
{
	struct nt_culprit culprit = {.kind = "rank", .node = "node-4"};
	struct nt_wire_incident incident = incident_of(&culprit, "host");
	nt_autoarena struct nt_arena arena = {0};

	(void)state;
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 0);
	culprit.node = "";
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 0);
	culprit.node = "unknown";
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 0);
	culprit.node = "node-3";
	incident = incident_of(&culprit, "imbalance");
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 0);
	assert_int_equal(incident.evidences, 0);
}

static void another_aggregators_alarm_joins_as_well(void **state)
{
	struct nt_wire_evidence evidence = {
		.what = FEED_RETRANSMIT, .unit = "segments/s", .value = 40, .peers = 1, .width = 2};
	struct nt_culprit culprit = {.kind = "node", .node = "node-3"};
	struct nt_wire_incident noted = incident_of(&culprit, "node");
	struct nt_wire_incident incident = incident_of(&culprit, "host");
	nt_autoarena struct nt_arena arena = {0};

	(void)state;
	nt_fleet_release_shard(feed.fleet, 0);
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 0);
	noted.state = "firing";
	noted.evidence = &evidence;
	noted.evidences = 1;
	assert_int_equal(nt_fleet_note_alarm(feed.fleet, &noted), 0);
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 1);
	assert_string_equal(incident.cause, FEED_RETRANSMIT);
	noted.state = "resolved";
	assert_int_equal(nt_fleet_note_alarm(feed.fleet, &noted), 0);
	incident = incident_of(&culprit, "host");
	assert_int_equal(nt_node_cause_join(feed.fleet, &incident, &arena), 0);
}

static void a_critical_verdict_makes_the_nodes_incident_critical_once(void **state)
{
	(void)state;
	nt_fleet_join(feed.fleet, "node-3");
	nt_fleet_join(feed.fleet, "node-3");
	nt_fleet_join(feed.fleet, "node-4");
	assert_int_equal(feed.events, 2);
	assert_int_equal(feed.event[1].change, NT_FLEET_ALARM_CHANGED);
	assert_true(feed_find(&feed, 3)->is_critical);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_rank_on_a_node_with_an_alarm_names_the_metric),
		TEST(a_known_cause_stays),
		TEST(other_nodes_and_classes_join_nothing),
		TEST(another_aggregators_alarm_joins_as_well),
		TEST(a_critical_verdict_makes_the_nodes_incident_critical_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
