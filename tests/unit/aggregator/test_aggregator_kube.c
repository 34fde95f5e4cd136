/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_notice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/notify/kube_condition.h"
#include "aggregator/notify/kube_event.h"
#include "proto/json.h"
#include "tests/unit/kube_server.h"

#define RANK(number, pod)                                                                          \
	"{\"kind\":\"rank\",\"rank\":" #number ",\"node\":\"gpu-07\",\"pod\":\"" pod               \
	"\",\"pod_uid\":\"u-" #number "\"}"
#define MESSAGE(type, id, culprits)                                                                \
	"{\"type\":\"incident." type "\",\"timestamp\":\"2026-11-21T03:00:31Z\",\"data\":{"        \
	"\"id\":\"" id "\",\"class\":\"compute\",\"namespace\":\"train\",\"culprits\":[" culprits  \
	"],\"since\":\"2026-11-21T03:00:12Z\",\"summary\":\"rank 11 computes 31 % slower\"}}"

enum {
	MAX_EVENTS = 64,
};

/* Keeps events by their names and the condition of one node, as an API server does. */
struct cluster {
	json_t *event[MAX_EVENTS];
	size_t events, requests;
	char path[KUBE_REQUEST]; /* of the last event */
	json_t *condition; /* NULL: none yet */
	const char *status; /* of every answer; NULL: as it should be */
	const char *gone; /* a namespace that is not there any more */
};

static bool has_event(const struct cluster *cluster, const json_t *event)
{
	const char *name = nt_json_get_text(json_object_get(event, "metadata"), "name", "");

	for (size_t i = 0; i < cluster->events; i++) {
		const json_t *other = json_object_get(cluster->event[i], "metadata");

		if (!strcmp(nt_json_get_text(other, "name", ""), name))
			return true;
	}
	return false;
}

static bool take_event(struct cluster *cluster, int fd, const struct kube_request *request)
{
	json_t *event = json_loads(request->body, 0, NULL);

	if (!event || cluster->events == MAX_EVENTS || has_event(cluster, event)) {
		json_decref(event);
		return kube_reply(fd, "409 Conflict", "{}");
	}
	(void)snprintf(cluster->path, sizeof(cluster->path), "%.*s",
		       (int)strcspn(request->head + 5, " "), request->head + 5);
	cluster->event[cluster->events++] = event;
	return kube_reply(fd, "201 Created", "{}");
}

static bool give_node(const struct cluster *cluster, int fd)
{
	nt_autojson json_t *node = json_pack("{s:{s:s}, s:{s:[{s:s, s:s}, O*]}}", "metadata",
					     "resourceVersion", "17", "status", "conditions",
					     "type", "Ready", "status", "True", cluster->condition);
	char *text = json_dumps(node, 0);
	bool goes_on = kube_reply(fd, "200 OK", text);

	free(text);
	return goes_on;
}

static bool take_condition(struct cluster *cluster, int fd, const struct kube_request *request)
{
	nt_autojson json_t *patch = json_loads(request->body, 0, NULL);
	json_t *condition =
		json_array_get(json_object_get(json_object_get(patch, "status"), "conditions"), 0);

	assert_string_equal(
		nt_json_get_text(json_object_get(patch, "metadata"), "resourceVersion", ""), "17");
	json_decref(cluster->condition);
	cluster->condition = json_incref(condition);
	return kube_reply(fd, "200 OK", "{}");
}

static bool answer(struct kube_server *server, int fd, const struct kube_request *request)
{
	struct cluster *cluster = server->data;

	cluster->requests++;
	if (cluster->status)
		return kube_reply(fd, cluster->status, "{\"message\":\"no\"}");
	if (cluster->gone && strstr(request->head, cluster->gone))
		return kube_reply(fd, "404 Not Found", "{}");
	if (!strncmp(request->head, "POST ", 5))
		return take_event(cluster, fd, request);
	if (!strncmp(request->head, "PATCH /api/v1/nodes/gpu-07/status ", 34))
		return take_condition(cluster, fd, request);
	if (strstr(request->head, "GET /api/v1/nodes/gpu-07 "))
		return give_node(cluster, fd);
	return kube_reply(fd, "404 Not Found", "{}");
}

/* ---- fixtures ------------------------------------------------------------------------------------ */

static struct cluster cluster;
static struct kube_server server;
static struct nt_kube *kube;
static size_t left_out;

static int set_up(void **state)
{
	struct nt_kube_options options = {.token_file = (char *)"", .ca_file = (char *)""};

	(void)state;
	cluster = (struct cluster){0};
	server = (struct kube_server){.handle = answer, .data = &cluster};
	left_out = 0;
	kube_start(&server, 0);
	options.api = (char *)server.url;
	return nt_kube_new(&options, &kube);
}

static int tear_down(void **state)
{
	(void)state;
	nt_kube_free(kube);
	kube = NULL;
	kube_end(&server);
	for (size_t i = 0; i < cluster.events; i++)
		json_decref(cluster.event[i]);
	json_decref(cluster.condition);
	return 0;
}

static struct nt_attempt send_notice(const char *id, const char *body, bool conditions)
{
	const struct nt_kube_notice notice = {
		.id = id,
		.body = body,
		.body_len = strlen(body),
		.conditions = conditions,
		.timeout_ns = 5000000000,
	};
	struct nt_attempt attempt = {.outcome = NT_ATTEMPT_ABORTED};

	assert_int_equal(nt_kube_notice_send(kube, &notice, &attempt, &left_out), 0);
	return attempt;
}

static const char *text_of(const json_t *object, const char *part, const char *name)
{
	return nt_json_get_text(part ? json_object_get(object, part) : object, name, "");
}

/* ---- events --------------------------------------------------------------------------------------- */

static void an_incident_is_told_on_its_pods_and_their_node(void **state)
{
	const json_t *event;

	(void)state;
	assert_int_equal(
		send_notice("msg_a1_firing_critical",
			    MESSAGE("firing", "a1", RANK(11, "llm-11") "," RANK(12, "llm-12")),
			    false)
			.outcome,
		NT_ATTEMPT_TAKEN);
	assert_int_equal(cluster.events, 3);
	event = cluster.event[0];
	assert_string_equal(text_of(event, "metadata", "name"), "neutracer.a1.firing.critical.0");
	assert_string_equal(text_of(event, "metadata", "namespace"), "train");
	assert_string_equal(text_of(event, "involvedObject", "kind"), "Pod");
	assert_string_equal(text_of(event, "involvedObject", "name"), "llm-11");
	assert_string_equal(text_of(event, "involvedObject", "uid"), "u-11");
	assert_string_equal(text_of(event, NULL, "type"), "Warning");
	assert_string_equal(text_of(event, NULL, "reason"), "ComputeSlow");
	assert_string_equal(text_of(event, NULL, "message"),
			    "rank 11 computes 31 % slower (incident a1)");
	assert_string_equal(text_of(event, NULL, "firstTimestamp"), "2026-11-21T03:00:12Z");
	event = cluster.event[2];
	assert_string_equal(text_of(event, "involvedObject", "kind"), "Node");
	assert_string_equal(text_of(event, "involvedObject", "name"), "gpu-07");
	assert_string_equal(text_of(event, "involvedObject", "uid"), "gpu-07");
	assert_string_equal(cluster.path, "/api/v1/namespaces/default/events");
	/* Nothing is asked: the aggregator may not. */
	assert_int_equal(cluster.requests, 3);
}

static void a_pod_without_a_sound_uid_has_its_event_by_its_name(void **state)
{
	static const char *const uid[] = {"\"pod_uid\":null", "\"pod_uid\":\"\"",
					  "\"pod_uid\":\"../x\"", "\"pod_uid\":7",
					  "\"gpu\":\"GPU-1\""};

	(void)state;
	for (size_t i = 0; i < sizeof(uid) / sizeof(uid[0]); i++) {
		char body[1024], id[64];

		(void)snprintf(
			body, sizeof(body), "%s%s%s",
			"{\"type\":\"incident.firing\",\"data\":{\"id\":\"a1\",\"namespace\":"
			"\"train\",\"culprits\":[{\"kind\":\"rank\",\"pod\":\"llm-11\",",
			uid[i], "}]}}");
		(void)snprintf(id, sizeof(id), "msg_a%zu_firing_critical", i);
		assert_int_equal(send_notice(id, body, false).outcome, NT_ATTEMPT_TAKEN);
		assert_int_equal(cluster.events, i + 1);
		assert_string_equal(text_of(cluster.event[i], "involvedObject", "name"), "llm-11");
		assert_null(json_object_get(json_object_get(cluster.event[i], "involvedObject"),
					    "uid"));
	}
}

static void another_attempt_makes_no_event_twice(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_notice("msg_a1_firing_critical",
					     MESSAGE("firing", "a1", RANK(11, "llm-11")), false)
					 .outcome,
				 NT_ATTEMPT_TAKEN);
		assert_int_equal(cluster.events, 2);
	}
}

static void an_end_is_told_as_an_event_of_its_own(void **state)
{
	(void)state;
	(void)send_notice("msg_a1_firing_critical", MESSAGE("firing", "a1", RANK(11, "llm-11")),
			  false);
	(void)send_notice("msg_a1_resolved", MESSAGE("resolved", "a1", RANK(11, "llm-11")), false);
	assert_int_equal(cluster.events, 4);
	assert_string_equal(text_of(cluster.event[2], "metadata", "name"),
			    "neutracer.a1.resolved.0");
	assert_string_equal(text_of(cluster.event[2], NULL, "type"), "Normal");
	assert_string_equal(text_of(cluster.event[2], NULL, "reason"), "Recovered");
}

static void a_namespace_that_is_gone_takes_not_the_events_of_nodes(void **state)
{
	(void)state;
	cluster.gone = "/namespaces/train/";
	assert_int_equal(
		send_notice("msg_a1_firing_critical",
			    MESSAGE("firing", "a1", RANK(11, "llm-11") "," RANK(12, "llm-12")),
			    false)
			.outcome,
		NT_ATTEMPT_TAKEN);
	assert_int_equal(cluster.events, 1);
	assert_int_equal(left_out, 2);
}

static void who_accuses_nobody_makes_no_event(void **state)
{
	static const char *const culprits[] = {
		"",
		"{\"kind\":\"communicator\",\"node\":\"gpu-07\",\"pod\":\"llm-11\"}",
		"{\"kind\":\"stage\",\"node\":\"gpu-07\"}",
		"{\"kind\":\"rank\",\"rank\":3}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(culprits) / sizeof(culprits[0]); i++) {
		char body[1024];

		(void)snprintf(
			body, sizeof(body), "%s%s%s",
			"{\"type\":\"incident.firing\",\"data\":{\"id\":\"a1\",\"namespace\":"
			"\"train\",\"culprits\":[",
			culprits[i], "]}}");
		assert_int_equal(send_notice("msg_a1_firing_critical", body, true).outcome,
				 NT_ATTEMPT_TAKEN);
	}
	assert_int_equal(cluster.requests, 0);
}

static void names_that_kubernetes_cannot_have_never_get_into_a_path(void **state)
{
	static const char *const bad[] = {"../x", "a/b", "A", "-a", "a.", "a b", "a?x=1", "a%2f"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char body[1024];

		assert_false(nt_kube_name_is_sound(bad[i]));
		(void)snprintf(
			body, sizeof(body), "%s%s%s",
			"{\"type\":\"incident.firing\",\"data\":{\"id\":\"a1\",\"namespace\":"
			"\"train\",\"culprits\":[{\"kind\":\"rank\",\"pod\":\"",
			bad[i], "\"}]}}");
		assert_int_equal(send_notice("msg_a1_firing_critical", body, false).outcome,
				 NT_ATTEMPT_TAKEN);
	}
	assert_int_equal(cluster.requests, 0);
	assert_int_equal(left_out, sizeof(bad) / sizeof(bad[0]));
	assert_true(nt_kube_name_is_sound("gpu-07.rack-3.example.org"));
}

static void events_of_one_message_are_capped(void **state)
{
	struct nt_kube_object object[NT_KUBE_EVENT_OBJECTS];
	nt_autojson json_t *culprits = json_array();
	nt_autojson json_t *incident = NULL;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < NT_KUBE_EVENT_OBJECTS + 5; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "pod-%d", i);
		assert_int_equal(
			json_array_append_new(culprits, json_pack("{s:s, s:s, s:s}", "kind", "rank",
								  "pod", name, "node", "n")),
			0);
	}
	incident = json_pack("{s:s, s:O}", "namespace", "train", "culprits", culprits);
	assert_int_equal(nt_kube_objects(incident, object, &n), NT_KUBE_EVENT_OBJECTS);
	assert_int_equal(n, 6 + NT_KUBE_EVENT_OBJECTS + 4);
}

static void a_long_summary_is_cut_between_characters(void **state)
{
	char summary[4096] = "a", text[NT_KUBE_EVENT_TEXT];
	nt_autojson json_t *incident = NULL, *back = NULL;

	(void)state;
	for (size_t len = 1; len + 4 < sizeof(summary); len += 2)
		(void)snprintf(summary + len, sizeof(summary) - len, "é");
	for (int i = 0; i < 2; i++) {
		incident = json_pack("{s:s, s:s}", "id", "a1", "summary", summary + i);
		nt_kube_text(incident, false, text);
		assert_true(strlen(text) >= NT_KUBE_EVENT_TEXT - 2);
		assert_non_null(strstr(text, "é (incident a1)"));
		back = json_string(text);
		assert_non_null(back);
		json_decref(incident);
		json_decref(back);
		incident = back = NULL;
	}
}

/* ---- answers -------------------------------------------------------------------------------------- */

static void what_the_server_answers_decides_about_another_attempt(void **state)
{
	static const struct {
		const char *status;
		enum nt_attempt_outcome outcome;
	} cases[] = {
		{"403 Forbidden", NT_ATTEMPT_REFUSED},
		{"401 Unauthorized", NT_ATTEMPT_LATER},
		{"429 Too Many Requests", NT_ATTEMPT_LATER},
		{"500 Internal Server Error", NT_ATTEMPT_LATER},
		{"503 Service Unavailable", NT_ATTEMPT_LATER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cluster.status = cases[i].status;
		assert_int_equal(send_notice("msg_a1_firing_critical",
					     MESSAGE("firing", "a1", RANK(11, "llm-11")), false)
					 .outcome,
				 cases[i].outcome);
	}
	assert_int_equal(cluster.events, 0);
}

static void a_server_that_is_stopped_asking_leaves_the_message_for_later(void **state)
{
	(void)state;
	nt_kube_stop(kube);
	assert_int_equal(send_notice("msg_a1_firing_critical",
				     MESSAGE("firing", "a1", RANK(11, "llm-11")), false)
				 .outcome,
			 NT_ATTEMPT_ABORTED);
}

static void what_is_no_message_is_refused(void **state)
{
	(void)state;
	assert_int_equal(send_notice("msg_a1_firing_critical", "{", false).outcome,
			 NT_ATTEMPT_REFUSED);
	assert_int_equal(send_notice("msg_a1_firing_critical", "[]", false).outcome,
			 NT_ATTEMPT_TAKEN);
	assert_int_equal(cluster.requests, 0);
}

/* ---- the condition of a node ---------------------------------------------------------------------- */

static void expect_condition(const char *status, const char *begin)
{
	assert_string_equal(text_of(cluster.condition, NULL, "type"), NT_KUBE_CONDITION);
	assert_string_equal(text_of(cluster.condition, NULL, "status"), status);
	assert_ptr_equal(strstr(text_of(cluster.condition, NULL, "message"), begin),
			 text_of(cluster.condition, NULL, "message"));
}

static void a_node_is_degraded_until_its_last_incident_ends(void **state)
{
	(void)state;
	(void)send_notice("msg_a1_firing_critical", MESSAGE("firing", "a1", RANK(11, "llm-11")),
			  true);
	expect_condition("True", "a1: rank 11");
	assert_string_equal(text_of(cluster.condition, NULL, "reason"), "ComputeSlow");
	(void)send_notice("msg_b2_firing_critical", MESSAGE("firing", "b2", RANK(12, "llm-12")),
			  true);
	expect_condition("True", "a1,b2: rank 11");
	(void)send_notice("msg_b2_firing_critical", MESSAGE("firing", "b2", RANK(12, "llm-12")),
			  true);
	expect_condition("True", "a1,b2: rank 11");
	(void)send_notice("msg_a1_resolved", MESSAGE("resolved", "a1", RANK(11, "llm-11")), true);
	expect_condition("True", "b2: ");
	(void)send_notice("msg_b2_resolved", MESSAGE("resolved", "b2", RANK(12, "llm-12")), true);
	expect_condition("False", "resolved: rank 11");
	assert_string_equal(text_of(cluster.condition, NULL, "reason"), "Recovered");
}

static void a_condition_is_left_alone_by_who_is_not_asked_for_it(void **state)
{
	(void)state;
	(void)send_notice("msg_a1_firing_critical", MESSAGE("firing", "a1", RANK(11, "llm-11")),
			  false);
	assert_null(cluster.condition);
	(void)send_notice("msg_a1_resolved", MESSAGE("resolved", "a1", RANK(11, "llm-11")), true);
	assert_null(cluster.condition);
}

static void a_condition_keeps_the_time_of_its_last_change(void **state)
{
	(void)state;
	(void)send_notice("msg_a1_firing_critical", MESSAGE("firing", "a1", RANK(11, "llm-11")),
			  true);
	json_object_set_new(cluster.condition, "lastTransitionTime",
			    json_string("2026-11-20T00:00:00Z"));
	(void)send_notice("msg_b2_firing_critical", MESSAGE("firing", "b2", RANK(12, "llm-12")),
			  true);
	assert_string_equal(text_of(cluster.condition, NULL, "lastTransitionTime"),
			    "2026-11-20T00:00:00Z");
	(void)send_notice("msg_a1_resolved", MESSAGE("resolved", "a1", RANK(11, "llm-11")), true);
	(void)send_notice("msg_b2_resolved", MESSAGE("resolved", "b2", RANK(12, "llm-12")), true);
	assert_string_equal(text_of(cluster.condition, NULL, "lastTransitionTime"),
			    "2026-11-21T03:00:31Z");
}

static void a_condition_names_so_many_incidents_at_most(void **state)
{
	(void)state;
	for (char id = 'a'; id < 'a' + NT_KUBE_CONDITION_INCIDENTS + 1; id++) {
		char body[1024], message[64];

		(void)snprintf(
			body, sizeof(body), "%s%c%s",
			"{\"type\":\"incident.firing\",\"timestamp\":\"2026-11-21T03:00:31Z\","
			"\"data\":{\"id\":\"",
			id, "\",\"culprits\":[" RANK(1, "x") "]}}");
		(void)snprintf(message, sizeof(message), "msg_%c_firing_critical", id);
		assert_int_equal(send_notice(message, body, true).outcome, NT_ATTEMPT_TAKEN);
	}
	expect_condition("True", "b,c,d,e,f,g,h,i: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_incident_is_told_on_its_pods_and_their_node),
		TEST(another_attempt_makes_no_event_twice),
		TEST(an_end_is_told_as_an_event_of_its_own),
		TEST(a_namespace_that_is_gone_takes_not_the_events_of_nodes),
		TEST(a_pod_without_a_sound_uid_has_its_event_by_its_name),
		TEST(who_accuses_nobody_makes_no_event),
		TEST(names_that_kubernetes_cannot_have_never_get_into_a_path),
		TEST(events_of_one_message_are_capped),
		TEST(a_long_summary_is_cut_between_characters),
		TEST(what_the_server_answers_decides_about_another_attempt),
		TEST(a_server_that_is_stopped_asking_leaves_the_message_for_later),
		TEST(what_is_no_message_is_refused),
		TEST(a_node_is_degraded_until_its_last_incident_ends),
		TEST(a_condition_is_left_alone_by_who_is_not_asked_for_it),
		TEST(a_condition_keeps_the_time_of_its_last_change),
		TEST(a_condition_names_so_many_incidents_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
