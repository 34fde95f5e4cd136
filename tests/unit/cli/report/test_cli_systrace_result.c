/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Verdicts as sysTrace's documents. Whole jobs: tests/check/systrace.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/replay/replay.h"
#include "cli/report/systrace.h"
#include "proto/json.h"

static const uint64_t second = 1000000000, start = 1749084000ULL * 1000000000;

static struct nt_wire_evidence ratio[] = {
	{.what = "own work of the step", .unit = "ms", .method = "ratio"}};
static struct nt_wire_evidence past[] = {
	{.what = "own work of the step", .unit = "ms", .method = "own past"}};

/* An incident of that class; what is not given is as in a slow rank. */
static void add(struct nt_judgement *judgement, const struct nt_wire_incident *given)
{
	static char id[16];
	struct nt_wire_incident incident = *given;

	(void)snprintf(id, sizeof(id), "%zu", judgement->incidents);
	incident.id = id;
	incident.state = "firing";
	incident.severity = given->severity ?: "critical";
	incident.cause = given->cause ?: "";
	incident.job = incident.namespace = incident.job_key = "";
	incident.summary = given->summary ?: "a sentence";
	incident.since_real_ns = given->since_real_ns ?: start + 60 * second;
	incident.seen_real_ns = incident.since_real_ns;
	incident.tier = NT_TIER_T2;
	if (!given->evidence) {
		incident.evidence = ratio;
		incident.evidences = 1;
	}
	assert_int_equal(nt_judgement_add(judgement, &incident), 0);
}

static struct nt_culprit rank_culprit(uint32_t rank, uint32_t *peers, size_t count)
{
	return (struct nt_culprit){.kind = "rank",
				   .node = "10.0.0.9",
				   .pod = "",
				   .container = "",
				   .gpu = "",
				   .peer = "",
				   .name = "",
				   .rank = rank,
				   .has_rank = true,
				   .peers = peers,
				   .peer_count = count};
}

typedef int print_document(const struct nt_report *report, const struct nt_trace *trace,
			   struct nt_buf *buf);

static json_t *document(print_document *print, struct nt_judgement *judgement,
			const struct nt_trace *trace)
{
	const struct nt_report report = {.source = "job",
					 .jobs = 1,
					 .ranks = 8,
					 .start_ns = start,
					 .end_ns = start + 120 * second,
					 .judgement = judgement};
	nt_autobuf struct nt_buf buf = {0};
	json_t *json = NULL;

	assert_int_equal(print(&report, trace, &buf), 0);
	assert_int_equal(nt_json_load(buf.data, buf.len, &json), 0);
	return json;
}

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static bool is_set(const json_t *object, const char *name)
{
	assert_true(json_is_boolean(json_object_get(object, name)));
	return json_is_true(json_object_get(object, name));
}

static void nothing_wrong_is_200_with_every_field_there(void **state)
{
	static const char *const fields[] = {"resultCode", "compute",        "network",
					     "storage",    "abnormalDetail", "normalDetail",
					     "errorMsg",   "timestamp"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_autojson json_t *json = NULL;
	const char *name;
	json_t *value;
	size_t n = 0;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	json = document(nt_systrace_result, judgement, NULL);
	json_object_foreach(json, name, value)
	{
		assert_true(n < 8);
		assert_string_equal(name, fields[n++]);
	}
	assert_int_equal(n, 8);
	assert_int_equal(json_integer_value(json_object_get(json, "resultCode")), 200);
	assert_int_equal(json_integer_value(json_object_get(json, "timestamp")), 1749084120);
	assert_string_equal(text_of(json, "errorMsg"), "");
}

static void what_is_nobodys_fault_is_no_anomaly_of_a_rank(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_autojson json_t *json = NULL;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	add(judgement, &(struct nt_wire_incident){.class = "imbalance", .severity = "info"});
	add(judgement, &(struct nt_wire_incident){.class = "job-wide", .severity = "info"});
	json = document(nt_systrace_result, judgement, NULL);
	assert_int_equal(json_integer_value(json_object_get(json, "resultCode")), 200);
	assert_false(is_set(json, "compute"));
}

static void a_recording_knows_no_operation_and_its_node_by_name(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	uint32_t peers[] = {0, 1, 2};
	struct nt_culprit culprit = rank_culprit(3, peers, 3);
	nt_autojson json_t *json = NULL;
	const json_t *entry;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	add(judgement,
	    &(struct nt_wire_incident){.class = "compute", .culprit = &culprit, .culprits = 1});
	json = document(nt_systrace_result, judgement, NULL);
	assert_int_equal(json_integer_value(json_object_get(json, "resultCode")), 201);
	assert_int_equal(json_integer_value(json_object_get(json, "timestamp")), 1749084060);
	entry = json_array_get(json_object_get(json, "abnormalDetail"), 0);
	assert_string_equal(text_of(entry, "objectId"), "3");
	assert_string_equal(text_of(entry, "serverIp"), "10.0.0.9");
	assert_string_equal(text_of(entry, "deviceInfo"), "rank_3");
	assert_string_equal(text_of(entry, "kpiId"), "own work of the step");
	assert_string_equal(text_of(entry, "methodType"), "SPACE");
	assert_int_equal(json_array_size(json_object_get(entry, "relaIds")), 3);
	assert_int_equal(json_array_size(json_object_get(json, "normalDetail")), 3);
	entry = json_array_get(json_object_get(json, "normalDetail"), 2);
	assert_string_equal(text_of(entry, "objectId"), "2");
	assert_string_equal(text_of(entry, "serverIp"), "localhost");
}

static void each_class_sets_the_flag_that_sysTrace_has_for_it(void **state)
{
	static const struct {
		const char *class, *cause;
		bool compute, network, storage;
	} cases[] = {
		{"compute", NULL, true, false, false},
		{"host", "cpu contention", true, false, false},
		{"network", NULL, false, true, false},
		{"storage", NULL, false, false, true},
		{"hang", "network", false, true, false},
		{"hang", "laggard", true, false, false},
		{"missing", NULL, true, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		struct nt_culprit culprit = rank_culprit(3, NULL, 0);
		nt_autojson json_t *json = NULL;
		const json_t *entry;

		assert_int_equal(nt_judgement_new(&judgement), 0);
		add(judgement, &(struct nt_wire_incident){.class = cases[i].class,
							  .cause = cases[i].cause,
							  .culprit = &culprit,
							  .culprits = 1,
							  .evidence = past,
							  .evidences = 1});
		json = document(nt_systrace_result, judgement, NULL);
		assert_int_equal(is_set(json, "compute"), cases[i].compute);
		assert_int_equal(is_set(json, "network"), cases[i].network);
		assert_int_equal(is_set(json, "storage"), cases[i].storage);
		entry = json_array_get(json_object_get(json, "abnormalDetail"), 0);
		assert_string_equal(text_of(entry, "methodType"),
				    strcmp(cases[i].class, "missing") == 0 ? "LACK" : "TIME");
		assert_int_equal(json_array_size(json_object_get(entry, "relaIds")), 0);
	}
}

static void a_rank_is_listed_once_and_no_culprit_is_anothers_normal_peer(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	uint32_t peers[] = {0, 1, 2, 3, 4}, ranks[] = {4, 3};
	struct nt_culprit slow[] = {rank_culprit(5, peers, 5)};
	struct nt_culprit node = {.kind = "node",
				  .node = "10.0.0.9",
				  .pod = "",
				  .container = "",
				  .gpu = "",
				  .peer = "",
				  .name = "",
				  .ranks = ranks,
				  .rank_count = 2};
	nt_autojson json_t *json = NULL;
	const json_t *list;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	add(judgement,
	    &(struct nt_wire_incident){.class = "compute", .culprit = slow, .culprits = 1});
	add(judgement, &(struct nt_wire_incident){.class = "host", .culprit = slow, .culprits = 1});
	add(judgement, &(struct nt_wire_incident){.class = "compute",
						  .culprit = &node,
						  .culprits = 1,
						  .evidence = past,
						  .evidences = 1});
	json = document(nt_systrace_result, judgement, NULL);
	list = json_object_get(json, "abnormalDetail");
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(text_of(json_array_get(list, 0), "objectId"), "3");
	assert_string_equal(text_of(json_array_get(list, 1), "objectId"), "4");
	assert_string_equal(text_of(json_array_get(list, 2), "objectId"), "5");
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 2), "relaIds")), 3);
	assert_int_equal(json_array_size(json_object_get(json, "normalDetail")), 3);
}

static void what_has_no_place_among_ranks_is_said_in_words(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct nt_culprit comm = {.kind = "communicator",
				  .node = "",
				  .pod = "",
				  .container = "",
				  .gpu = "",
				  .peer = "",
				  .name = "77"};
	nt_autojson json_t *json = NULL;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	add(judgement,
	    &(struct nt_wire_incident){.class = "network", .culprit = &comm, .culprits = 1});
	for (int i = 0; i < 2000; i++)
		add(judgement,
		    &(struct nt_wire_incident){.class = "unknown", .summary = "and more"});
	json = document(nt_systrace_result, judgement, NULL);
	assert_int_equal(json_integer_value(json_object_get(json, "resultCode")), 201);
	assert_int_equal(json_array_size(json_object_get(json, "abnormalDetail")), 0);
	assert_int_equal(strncmp(text_of(json, "errorMsg"), "a sentence; and more; ", 22), 0);
	assert_true(strlen(text_of(json, "errorMsg")) < 5000);
}

/* ---- steps -------------------------------------------------------------------------------- */

static void set_steps(struct nt_trace *trace, struct nt_trace_step *step, size_t steps,
		      size_t slow_from, size_t slow_to)
{
	uint64_t at = start;

	for (size_t i = 0; i < steps; i++) {
		step[i].start_ns = at;
		at += i >= slow_from && i < slow_to ? 1500000000 : second;
		step[i].end_ns = at;
	}
	trace->step = step;
	trace->steps = steps;
}

static void assert_points(json_t *json, size_t count, int first)
{
	const json_t *list = json_object_get(json, "anomaly_info");

	assert_int_equal(is_set(json, "is_anomaly"), count > 0);
	assert_int_equal(json_integer_value(json_object_get(json, "anomaly_count_times")), count);
	assert_int_equal(json_array_size(list), count);
	assert_string_equal(text_of(json, "anomaly_type"), count ? "failSlow" : "normal");
	if (count)
		assert_int_equal(json_integer_value(
					 json_object_get(json_array_get(list, 0), "training_step")),
				 first);
	json_decref(json);
}

static void a_jump_is_a_point_until_it_has_filled_part_of_the_window(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct nt_trace_step step[60];
	struct nt_trace trace = {0};
	const json_t *point;
	json_t *json;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	set_steps(&trace, step, 60, 60, 60);
	assert_points(document(nt_systrace_steps, judgement, &trace), 0, 0);

	set_steps(&trace, step, 60, 30, 60);
	json = document(nt_systrace_steps, judgement, &trace);
	point = json_array_get(json_object_get(json, "anomaly_info"), 0);
	assert_string_equal(text_of(point, "anomaly_time"), "2025-06-05 00:40:30");
	assert_true(json_number_value(json_object_get(point, "anomaly_degree")) == 0.5);
	assert_string_equal(text_of(point, "anomaly_training_time"), "1500ms");
	assert_string_equal(text_of(point, "normal_training_time"), "1000ms");
	point = json_array_get(json_object_get(json, "anomaly_info"), 1);
	assert_true(json_number_value(json_object_get(point, "anomaly_degree")) == 0.429);
	assert_int_equal(json_integer_value(json_object_get(json, "start_time")), 1749084000000);
	assert_int_equal(json_integer_value(json_object_get(json, "end_time")), 1749084075000);
	assert_points(json, 2, 30);

	/* One long step is none, two in a row are. */
	set_steps(&trace, step, 60, 30, 31);
	assert_points(document(nt_systrace_steps, judgement, &trace), 0, 0);
	set_steps(&trace, step, 60, 30, 32);
	assert_points(document(nt_systrace_steps, judgement, &trace), 1, 30);
}

static void an_incident_is_a_point_where_the_rule_sees_none(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct nt_trace_step step[60];
	struct nt_trace trace = {0};

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	set_steps(&trace, step, 60, 60, 60);
	add(judgement, &(struct nt_wire_incident){.class = "job-wide",
						  .severity = "info",
						  .slowdown = 1.1,
						  .since_real_ns = start + 40 * second});
	/* No slow step, either. */
	add(judgement, &(struct nt_wire_incident){.class = "imbalance",
						  .severity = "info",
						  .slowdown = 1.4,
						  .since_real_ns = start + 20 * second});
	add(judgement, &(struct nt_wire_incident){.class = "compute",
						  .slowdown = 1.0,
						  .since_real_ns = start + 20 * second});
	assert_points(document(nt_systrace_steps, judgement, &trace), 1, 40);
	/* It is what the rule saw. */
	set_steps(&trace, step, 60, 38, 60);
	assert_points(document(nt_systrace_steps, judgement, &trace), 2, 38);
	/* A recording has no steps to count. */
	assert_points(document(nt_systrace_steps, judgement, NULL), 1, 0);
}

static void a_hang_is_told_as_one(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_autojson json_t *json = NULL;
	const json_t *point;

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	add(judgement, &(struct nt_wire_incident){.class = "compute", .slowdown = 1.5});
	add(judgement,
	    &(struct nt_wire_incident){.class = "hang", .since_real_ns = start + 30 * second});
	json = document(nt_systrace_steps, judgement, NULL);
	assert_string_equal(text_of(json, "anomaly_type"), "hang");
	assert_int_equal(json_integer_value(json_object_get(json, "anomaly_count_times")), 1);
	assert_int_equal(json_integer_value(json_object_get(json, "start_time")), 1749084030000);
	assert_int_equal(json_integer_value(json_object_get(json, "end_time")), 1749084120000);
	point = json_array_get(json_object_get(json, "anomaly_info"), 0);
	assert_true(json_number_value(json_object_get(point, "hang_minutes")) == 1.5);
	assert_int_equal(json_array_size(json_object_get(point, "detect_point")), 2);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(point, "detect_point"), 0)),
		"2025-06-05 00:40:30");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_wrong_is_200_with_every_field_there),
		cmocka_unit_test(what_is_nobodys_fault_is_no_anomaly_of_a_rank),
		cmocka_unit_test(a_recording_knows_no_operation_and_its_node_by_name),
		cmocka_unit_test(each_class_sets_the_flag_that_sysTrace_has_for_it),
		cmocka_unit_test(a_rank_is_listed_once_and_no_culprit_is_anothers_normal_peer),
		cmocka_unit_test(what_has_no_place_among_ranks_is_said_in_words),
		cmocka_unit_test(a_jump_is_a_point_until_it_has_filled_part_of_the_window),
		cmocka_unit_test(an_incident_is_a_point_where_the_rule_sees_none),
		cmocka_unit_test(a_hang_is_told_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
