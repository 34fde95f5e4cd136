/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What becomes an event: changes of incidents, jobs and nodes, each with the topics of its job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/group/event_desk.h"
#include "proto/json.h"
#include "tests/api/snapshot_scene.h"

static struct nt_board *board;
static struct nt_event_desk *desk;
static uint64_t number; /* of the last event that was read */

static int set_up(void **state)
{
	(void)state;
	number = 0;
	if (nt_board_new(&board) < 0)
		return -1;
	nt_board_post(board, nt_test_snapshot());
	return nt_event_desk_new(board, &desk);
}

static int tear_down(void **state)
{
	(void)state;
	nt_event_desk_free(desk);
	nt_board_free(board);
	return 0;
}

/* The data of the next event of the topic, which has this kind; kind NULL: there is none. */
static json_t *next_event(const char *topic, const char *kind)
{
	nt_autobuf struct nt_buf text = {0};
	char line[64];
	json_t *data = NULL;
	char *at;

	assert_int_equal(nt_event_ring_read(nt_event_desk_ring(desk), topic, 1, &number, &text), 0);
	assert_int_equal(text.len == 0, kind == NULL);
	if (!kind)
		return NULL;
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	(void)snprintf(line, sizeof(line), "\nevent: %s\n", kind);
	assert_non_null(strstr((char *)text.data, line));
	at = strstr((char *)text.data, "\ndata: ");
	assert_non_null(at);
	at += strlen("\ndata: ");
	assert_int_equal(nt_json_load(at, strcspn(at, "\n"), &data), 0);
	return data;
}

static void check_next(const char *topic, const char *kind, const char *change)
{
	nt_autojson json_t *data = next_event(topic, kind);

	assert_string_equal(nt_json_get_text(data, "change", ""), change);
}

static void an_incident_is_opened_changed_and_resolved(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("f1", "firing", &nt_test_rank_5, 1);
	nt_autojson json_t *data = NULL;

	(void)state;
	nt_event_desk_stored(desk, &incident, true);
	data = next_event(NULL, "incident");
	assert_string_equal(nt_json_get_text(data, "id", ""), "f1");
	assert_string_equal(nt_json_get_text(data, "change", ""), "opened");
	assert_string_equal(nt_json_get_text(data, "job_id", ""), "00000000000000a1");
	nt_event_desk_stored(desk, &incident, false);
	check_next(NULL, "incident", "changed");
	incident.state = "resolved";
	nt_event_desk_stored(desk, &incident, false);
	check_next(NULL, "incident", "resolved");
}

static void an_event_is_found_by_each_name_of_its_job(void **state)
{
	static const char *const topics[] = {"lmp-eadf", "lmp", "10.0.0.1:29500/run",
					     "00000000000000a1"};
	struct nt_wire_incident incident = nt_test_incident("f1", "firing", &nt_test_rank_5, 1);

	(void)state;
	incident.job = "lmp-eadf";
	nt_event_desk_stored(desk, &incident, true);
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		number = 0;
		check_next(topics[i], "incident", "opened");
	}
	number = 0;
	assert_null(next_event("lm", NULL));
}

static void texts_of_any_size_and_content_fit(void **state)
{
	static char text[8192];
	struct nt_wire_incident incident = nt_test_incident("f1", "firing", &nt_test_rank_5, 1);
	struct nt_event_desk_stats stats;
	nt_autojson json_t *data = NULL;

	(void)state;
	/* Control characters are the longest in JSON. */
	memset(text, '\x01', sizeof(text) - 1);
	incident.job = incident.job_key = incident.namespace = incident.summary = incident.cause =
		text;
	nt_event_desk_stored(desk, &incident, true);
	nt_event_desk_stats(desk, &stats);
	assert_int_equal(stats.ring.refused, 0);
	data = next_event(NULL, "incident");
	assert_int_equal(strlen(nt_json_get_text(data, "summary", "")), 1000);
}

static void an_alarm_of_a_node_is_an_event_of_the_node_too(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("f1", "firing", &nt_test_node, 1);
	nt_autojson json_t *alarm = NULL, *quiet = NULL;

	(void)state;
	incident.class = "node";
	nt_event_desk_stored(desk, &incident, true);
	check_next(NULL, "incident", "opened");
	alarm = next_event(NULL, "node");
	assert_string_equal(nt_json_get_text(alarm, "state", ""), "alarm");
	assert_string_equal(nt_json_get_text(alarm, "node", ""), nt_test_node.node);
	nt_event_desk_stored(desk, &incident, false);
	check_next(NULL, "incident", "changed");
	incident.state = "resolved";
	nt_event_desk_stored(desk, &incident, false);
	check_next(NULL, "incident", "resolved");
	quiet = next_event(NULL, "node");
	assert_string_equal(nt_json_get_text(quiet, "state", ""), "quiet");
}

/* Posts a snapshot of the one job in this state, or of none. */
static void look(enum nt_job_state state)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **job;

	assert_non_null(snapshot);
	job = nt_snapshot_alloc(snapshot, 1, sizeof(*job));
	assert_non_null(job);
	if (state != NT_JOB_STATE_END) {
		job[0] = nt_test_job("00000000000000d4", "bert", "slurm/7", state);
		snapshot->job = job;
		snapshot->jobs = 1;
	}
	nt_event_desk_look(desk, snapshot);
	nt_snapshot_release(snapshot);
}

static void a_job_begins_changes_and_ends(void **state)
{
	(void)state;
	look(NT_JOB_STATE_END);
	look(NT_JOB_RUNNING);
	check_next("bert", "job", "began");
	look(NT_JOB_RUNNING);
	assert_null(next_event(NULL, NULL));
	look(NT_JOB_HUNG);
	check_next("bert", "job", "changed");
	look(NT_JOB_ENDED);
	check_next("bert", "job", "ended");
	/* It is forgotten with its snapshot. */
	look(NT_JOB_STATE_END);
	look(NT_JOB_RUNNING);
	check_next("bert", "job", "began");
}

static void jobs_of_the_first_snapshot_are_no_events(void **state)
{
	(void)state;
	look(NT_JOB_RUNNING);
	assert_null(next_event(NULL, NULL));
	look(NT_JOB_ENDED);
	check_next("bert", "job", "ended");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

#define NOW_NS (NT_TEST_TIME_NS + NT_HOUR)

static struct nt_level_entry level_of(enum nt_level_kind kind, const char *name)
{
	struct nt_level_entry entry = {
		.target = {.kind = kind, .rank = 5},
		.request = NT_REQUEST_LEVEL,
		.level = 2,
		.set_real_ns = NOW_NS,
		.expires_real_ns = NOW_NS + NT_HOUR,
		.reason = "operator",
	};

	(void)snprintf(entry.target.name, sizeof(entry.target.name), "%s", name);
	return entry;
}

static void look_levels(const struct nt_level_entry *entry, size_t count)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(board);

	nt_event_desk_look_levels(desk, entry, count, snapshot, NOW_NS);
	nt_snapshot_release(snapshot);
}

static void a_level_is_set_replaced_and_ended(void **state)
{
	struct nt_level_entry entry[2];
	nt_autojson json_t *data = NULL;

	(void)state;
	entry[0] = level_of(NT_LEVEL_RANK, "10.0.0.1:29500/run");
	entry[1] = level_of(NT_LEVEL_NODE, "gpu-07");
	look_levels(entry, 1);
	data = next_event("00000000000000a1", "level");
	assert_string_equal(nt_json_get_text(data, "change", ""), "set");
	assert_string_equal(nt_json_get_text(data, "kind", ""), "rank");
	assert_string_equal(nt_json_get_text(data, "job", ""), "00000000000000a1");
	assert_int_equal(json_integer_value(json_object_get(data, "rank")), 5);
	assert_int_equal(json_integer_value(json_object_get(data, "level")), 2);
	look_levels(entry, 1); /* the same */
	assert_null(next_event(NULL, NULL));
	entry[0].set_real_ns++;
	entry[0].level = 3;
	look_levels(entry, 2);
	check_next("00000000000000a1", "level", "set");
	assert_null(next_event("00000000000000a1", NULL)); /* a node's is of no job */
	look_levels(&entry[1], 1);
	check_next("00000000000000a1", "level", "ended");
	look_levels(NULL, 0);
	check_next(NULL, "level", "ended"); /* the node's */
}

static void levels_of_before_the_start_and_other_requests_are_no_events(void **state)
{
	struct nt_level_entry entry[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		entry[i] = level_of(NT_LEVEL_RANK, "10.0.0.1:29500/run");
	entry[0].set_real_ns = NOW_NS - NT_MINUTE;
	entry[1].request = NT_REQUEST_STACK;
	entry[2].request = NT_REQUEST_PROFILE;
	look_levels(entry, 3);
	assert_null(next_event(NULL, NULL));
	look_levels(NULL, 0);
	check_next(NULL, "level", "ended");
	assert_null(next_event(NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_incident_is_opened_changed_and_resolved),
		TEST(an_event_is_found_by_each_name_of_its_job),
		TEST(texts_of_any_size_and_content_fit),
		TEST(an_alarm_of_a_node_is_an_event_of_the_node_too),
		TEST(a_job_begins_changes_and_ends),
		TEST(jobs_of_the_first_snapshot_are_no_events),
		TEST(a_level_is_set_replaced_and_ended),
		TEST(levels_of_before_the_start_and_other_requests_are_no_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
