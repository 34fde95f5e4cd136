/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Taints and cordons against a server that keeps nodes as the Kubernetes API server does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/notify/kube_action.h"
#include "aggregator/notify/kube_ledger.h"
#include "aggregator/notify/kube_notice.h"
#include "common/system/clock.h"
#include "proto/json.h"
#include "tests/unit/aggregator/node_server.h"

enum {
	PAST_S = 10 * 3600,
};

/* ---- fixtures -------------------------------------------------------------------------------- */

static struct node_server nodes;
static struct kube_server server;
static struct nt_kube *kube;
static struct nt_kube_action action;

static int set_up(void **state)
{
	struct nt_kube_options options = {.token_file = (char *)"", .ca_file = (char *)""};

	(void)state;
	nodes = (struct node_server){.version = 10};
	for (size_t i = 0; i < NODES; i++) {
		char name[] = {'n', (char)('0' + i), '\0'};

		nodes.node[i] = json_pack("{s:{s:s, s:{}, s:{}}, s:{s:[{s:s, s:s}]}}", "metadata",
					  "name", name, "labels", "annotations", "spec", "taints",
					  "key", "nvidia.com/gpu", "effect", "NoSchedule");
		assert_non_null(nodes.node[i]);
		touch(&nodes, nodes.node[i]);
	}
	action = (struct nt_kube_action){.options = {.kind = NT_KUBE_ACTION_TAINT,
						     .after = 3,
						     .window_ns = NT_DAY,
						     .quiet_ns = NT_HOUR,
						     .limit = 1}};
	server = (struct kube_server){.handle = answer, .data = &nodes};
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
	for (size_t i = 0; i < NODES; i++)
		json_decref(nodes.node[i]);
	return 0;
}

static enum nt_attempt_outcome send_as(const char *type, const char *id, unsigned int node)
{
	char body[512];
	struct nt_kube_notice notice = {.id = id, .body = body, .action = &action};
	struct nt_attempt attempt;
	size_t left_out = 0;

	(void)snprintf(body, sizeof(body),
		       "{\"type\":\"incident.%s\",\"timestamp\":\"2026-11-21T03:00:31Z\",\"data\":{"
		       "\"id\":\"%s\",\"class\":\"compute\",\"culprits\":[{\"kind\":\"node\","
		       "\"node\":\"n%u\"}],\"summary\":\"slow\"}}",
		       type, id, node);
	notice.body_len = strlen(body);
	assert_int_equal(nt_kube_notice_send(kube, &notice, &attempt, &left_out), 0);
	return attempt.outcome;
}

/* Beginnings and ends of `count` incidents of a node. */
static void accuse(unsigned int node, unsigned int count)
{
	static unsigned int number;
	char id[16];

	for (unsigned int i = 0; i < count; i++) {
		(void)snprintf(id, sizeof(id), "i%u", number++);
		assert_int_equal(send_as("firing", id, node), NT_ATTEMPT_TAKEN);
		assert_int_equal(send_as("resolved", id, node), NT_ATTEMPT_TAKEN);
	}
}

static void lift(void)
{
	struct nt_kube_try try = {.kube = kube};

	assert_int_equal(nt_kube_action_lift(&action, &try), 0);
}

static const char *part_of(unsigned int node, const char *part, const char *name)
{
	const json_t *metadata = json_object_get(nodes.node[node], "metadata");

	return nt_json_get_text(json_object_get(metadata, part), name, "");
}

/* The keys of its taints: "nvidia.com/gpu neutracer.io/degraded" */
static const char *taints_of_node(unsigned int node)
{
	static char text[256];
	const json_t *spec = json_object_get(nodes.node[node], "spec"), *taint;
	size_t i, len = 0;

	text[0] = '\0';
	json_array_foreach(json_object_get(spec, "taints"), i, taint)
	{
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
					nt_json_get_text(taint, "key", ""));
	}
	return text;
}

/* As if all of it had been some hours ago. */
static void age(unsigned int node)
{
	json_t *annotations =
		json_object_get(json_object_get(nodes.node[node], "metadata"), "annotations");
	nt_autobuf struct nt_buf text = {0};
	struct nt_kube_ledger ledger;
	char acted[40];
	uint64_t then_s = nt_clock_real_ns() / NT_SECOND - PAST_S;

	nt_kube_ledger_read(part_of(node, "annotations", NT_KUBE_INCIDENTS_NAME), &ledger);
	for (size_t i = 0; i < ledger.entries; i++) {
		ledger.entry[i].begin_s -= PAST_S;
		ledger.entry[i].end_s -= ledger.entry[i].end_s ? PAST_S : 0;
	}
	assert_int_equal(nt_kube_ledger_write(&ledger, &text), 0);
	(void)json_object_set_new(annotations, NT_KUBE_INCIDENTS_NAME,
				  json_string((const char *)text.data));
	(void)snprintf(acted, sizeof(acted), "%.*s@%llu",
		       (int)strcspn(part_of(node, "annotations", NT_KUBE_ACTION_NAME), "@"),
		       part_of(node, "annotations", NT_KUBE_ACTION_NAME),
		       (unsigned long long)then_s);
	if (*part_of(node, "annotations", NT_KUBE_ACTION_NAME))
		(void)json_object_set_new(annotations, NT_KUBE_ACTION_NAME, json_string(acted));
}

/* ---- acting and undoing ---------------------------------------------------------------------- */

static void a_node_is_tainted_at_so_many_incidents_and_no_earlier(void **state)
{
	(void)state;
	accuse(0, 2);
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu");
	accuse(0, 1);
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu " NT_KUBE_TAINT);
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "active");
	assert_int_equal(atomic_load(&action.acted), 1);
	accuse(0, 3);
	assert_int_equal(atomic_load(&action.acted), 1);
}

static void the_taint_is_removed_when_the_node_is_quiet_and_others_stay(void **state)
{
	(void)state;
	accuse(0, 3);
	lift();
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu " NT_KUBE_TAINT);
	age(0);
	assert_int_equal(send_as("firing", "open", 0), NT_ATTEMPT_TAKEN);
	lift();
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu " NT_KUBE_TAINT);
	assert_int_equal(send_as("resolved", "open", 0), NT_ATTEMPT_TAKEN);
	age(0);
	lift();
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu");
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "lifted");
	assert_int_equal(atomic_load(&action.lifted), 1);
	/* The hour of the limit has passed. */
	lift();
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "");
	assert_string_equal(part_of(0, "annotations", NT_KUBE_ACTION_NAME), "");
}

static void a_node_is_cordoned_and_uncordoned(void **state)
{
	const json_t *spec = json_object_get(nodes.node[0], "spec");

	(void)state;
	action.options.kind = NT_KUBE_ACTION_CORDON;
	accuse(0, 3);
	assert_true(json_is_true(json_object_get(spec, "unschedulable")));
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu");
	/* What was done is undone, whatever is configured now. */
	action.options.kind = NT_KUBE_ACTION_TAINT;
	age(0);
	lift();
	assert_true(json_is_false(json_object_get(spec, "unschedulable")));
}

static void what_others_did_is_never_undone(void **state)
{
	json_t *spec = json_object_get(nodes.node[0], "spec");

	(void)state;
	action.options.kind = NT_KUBE_ACTION_CORDON;
	assert_int_equal(json_object_set_new(spec, "unschedulable", json_true()), 0);
	accuse(0, 5);
	assert_int_equal(atomic_load(&action.acted), 0);
	age(0);
	lift();
	assert_true(json_is_true(json_object_get(spec, "unschedulable")));
}

/* Undone by hand, and done again by others. */
static void what_was_undone_by_hand_is_ours_no_more(void **state)
{
	json_t *spec = json_object_get(nodes.node[0], "spec");

	(void)state;
	action.options.kind = NT_KUBE_ACTION_CORDON;
	accuse(0, 3);
	assert_int_equal(json_object_set_new(spec, "unschedulable", json_false()), 0);
	lift();
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "");
	assert_int_equal(json_object_set_new(spec, "unschedulable", json_true()), 0);
	age(0);
	lift();
	assert_true(json_is_true(json_object_get(spec, "unschedulable")));
}

/* ---- the limit ------------------------------------------------------------------------------- */

static void no_more_nodes_than_the_limit_are_changed(void **state)
{
	(void)state;
	accuse(0, 3);
	accuse(1, 3);
	assert_string_equal(taints_of_node(1), "nvidia.com/gpu");
	assert_int_equal(atomic_load(&action.limited), 1);
	/* Undone, but within the hour. */
	json_object_set_new(json_object_get(json_object_get(nodes.node[0], "metadata"), "labels"),
			    NT_KUBE_ACTION_NAME, json_string("lifted"));
	accuse(1, 1);
	assert_string_equal(taints_of_node(1), "nvidia.com/gpu");
	age(0);
	accuse(1, 1);
	assert_string_equal(taints_of_node(1), "nvidia.com/gpu " NT_KUBE_TAINT);
	action.options.limit = 2;
	accuse(2, 3);
	assert_string_equal(taints_of_node(2), "nvidia.com/gpu " NT_KUBE_TAINT);
}

static size_t count_tainted(void)
{
	size_t tainted = 0;

	for (unsigned int i = 0; i < NODES; i++)
		tainted += strstr(taints_of_node(i), NT_KUBE_TAINT) ||
			   !strcmp(part_of(i, "labels", NT_KUBE_ACTION_NAME), "active");
	return tainted;
}

/* Accuses n0 so that the next incident acts, and returns the requests of that one by number. */
static void prepare(void)
{
	accuse(0, 2);
	nodes.requests = 0;
}

enum {
	GET_NODE = 1,
	FIRST_LIST,
	RESERVE,
	SECOND_LIST,
	ACT,
};

static void two_that_act_at_once_keep_to_the_limit(void **state)
{
	(void)state;
	/* The other one reserved before our list: ours is withdrawn, and comes again. */
	prepare();
	nodes.rival_at = SECOND_LIST;
	nodes.rival = "reserved";
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_LATER);
	assert_int_equal(count_tainted(), 0);
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "");
	assert_string_equal(part_of(0, "annotations", NT_KUBE_RESERVED_NAME), "");
	/* The other one was killed: its reservation counts until it is removed. */
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_LATER);
	lift();
	assert_string_equal(part_of(1, "labels", NT_KUBE_ACTION_NAME), "reserved");
	json_object_set_new(
		json_object_get(json_object_get(nodes.node[1], "metadata"), "annotations"),
		NT_KUBE_RESERVED_NAME, json_string("1"));
	lift();
	assert_string_equal(part_of(1, "labels", NT_KUBE_ACTION_NAME), "");
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
	assert_int_equal(count_tainted(), 1);
	assert_int_equal(atomic_load(&action.limited), 0);
}

static void who_reserves_after_another_one_acted_gives_way(void **state)
{
	(void)state;
	prepare();
	nodes.rival_at = SECOND_LIST;
	nodes.rival = "active";
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
	assert_int_equal(count_tainted(), 1);
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "");
	assert_int_equal(atomic_load(&action.limited), 1);
	/* It is noted, and so not tried again. */
	nodes.requests = 0;
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
	assert_int_equal(nodes.requests, GET_NODE);
}

/* A second node after each kind of interruption: the limit of one holds, and the first comes to its end. */
static void the_limit_holds_whatever_request_it_is_killed_at(void **state)
{
	(void)state;
	for (unsigned int how = 0; how < 2; how++) {
		for (unsigned int at = GET_NODE; at <= ACT; at++) {
			if (how || at > GET_NODE) {
				(void)tear_down(NULL);
				assert_int_equal(set_up(NULL), 0);
			}
			prepare();
			*(how ? &nodes.lost : &nodes.failed) = at;
			assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_LATER);
			nodes.lost = nodes.failed = 0;
			/* Another aggregator has a node to act on meanwhile. */
			accuse(1, 2);
			(void)send_as("firing", "other", 1);
			assert_true(count_tainted() <= 1);
			if (at >= RESERVE && (how || at > RESERVE))
				assert_string_equal(taints_of_node(1), "nvidia.com/gpu");
			/* Started again, it repeats the message. */
			assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
			assert_int_equal(count_tainted(), 1);
			assert_string_not_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME),
						"reserved");
		}
	}
}

static void a_refused_action_leaves_no_reservation(void **state)
{
	(void)state;
	prepare();
	nodes.forbidden = ACT;
	/* The events are there. */
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
	assert_int_equal(count_tainted(), 0);
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "");
	assert_string_equal(part_of(0, "annotations", NT_KUBE_RESERVED_NAME), "");
}

/* One that slept longer than its reservation lasted changes nothing. */
static void a_reservation_that_was_removed_is_worth_nothing(void **state)
{
	(void)state;
	prepare();
	nodes.rival_at = ACT;
	nodes.rival = "reserved";
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
	assert_int_equal(count_tainted(), 1);
	/* Of the node itself. */
	(void)tear_down(NULL);
	assert_int_equal(set_up(NULL), 0);
	prepare();
	nodes.touched_at = ACT;
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_LATER);
	assert_int_equal(count_tainted(), 0);
}

static void a_past_action_of_the_hour_survives_a_reservation(void **state)
{
	(void)state;
	action.options.limit = 2;
	accuse(0, 2);
	mark(&nodes, 0, "lifted");
	nodes.requests = 0;
	nodes.rival_at = SECOND_LIST;
	nodes.rival = "reserved";
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_LATER);
	assert_string_equal(part_of(0, "labels", NT_KUBE_ACTION_NAME), "lifted");
	assert_non_null(strstr(part_of(0, "annotations", NT_KUBE_ACTION_NAME), "taint@"));
}

static void switched_off_with_undo_nothing_stays(void **state)
{
	(void)state;
	accuse(0, 3);
	mark(&nodes, 1, "reserved");
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu " NT_KUBE_TAINT);
	action.options.kind = NT_KUBE_ACTION_UNDO;
	lift();
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu");
	for (unsigned int i = 0; i < 2; i++) {
		assert_string_equal(part_of(i, "labels", NT_KUBE_ACTION_NAME), "");
		assert_string_equal(part_of(i, "annotations", NT_KUBE_ACTION_NAME), "");
		assert_string_equal(part_of(i, "annotations", NT_KUBE_RESERVED_NAME), "");
		assert_string_equal(part_of(i, "annotations", NT_KUBE_INCIDENTS_NAME), "");
	}
	nodes.patches = 0;
	accuse(0, 5);
	lift();
	assert_int_equal(nodes.patches, 0);
}

/* ---- repeats, conflicts ---------------------------------------------------------------------- */

static void a_repeated_message_counts_once(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(send_as("firing", "same", 0), NT_ATTEMPT_TAKEN);
	assert_int_equal(nodes.patches, 1);
	assert_int_equal(atomic_load(&action.acted), 0);
}

static void a_change_of_another_writer_is_not_overwritten(void **state)
{
	(void)state;
	accuse(0, 2);
	nodes.is_raced = true;
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_LATER);
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu");
	assert_int_equal(send_as("firing", "third", 0), NT_ATTEMPT_TAKEN);
	assert_string_equal(taints_of_node(0), "nvidia.com/gpu " NT_KUBE_TAINT);
}

static void nothing_of_a_node_is_changed_by_default(void **state)
{
	const struct nt_kube_notice notice = {
		.id = "a",
		.body = "{\"type\":\"incident.firing\",\"data\":{\"id\":\"a\",\"culprits\":"
			"[{\"kind\":\"node\",\"node\":\"n0\"}]}}",
		.body_len = strlen(notice.body),
	};
	struct nt_attempt attempt;
	size_t left_out = 0;

	(void)state;
	assert_int_equal(nt_kube_notice_send(kube, &notice, &attempt, &left_out), 0);
	assert_int_equal(nodes.patches, 0);
}

/* ---- the ledger ------------------------------------------------------------------------------ */

static void a_ledger_that_others_wrote_is_read_as_far_as_it_is_sound(void **state)
{
	nt_autobuf struct nt_buf text = {0};
	struct nt_kube_ledger ledger;

	(void)state;
	nt_kube_ledger_read("a@1:2,,b,@3:4,c@x:1,d@5:,e@6,f g@7:8,h@9:0,i@99999999999999999999:0",
			    &ledger);
	assert_int_equal(nt_kube_ledger_write(&ledger, &text), 0);
	assert_string_equal((const char *)text.data, "a@1:2,h@9:0");
	assert_false(nt_kube_ledger_note(&ledger, "evil\",\"x", false, 10));
}

static void a_ledger_has_a_cap_and_forgets(void **state)
{
	struct nt_kube_ledger ledger = {.entries = 0};
	char id[16];

	(void)state;
	for (unsigned int i = 0; i < NT_KUBE_LEDGER_ENTRIES + 2; i++) {
		(void)snprintf(id, sizeof(id), "i%u", i);
		assert_true(nt_kube_ledger_note(&ledger, id, false, 1000 + i));
	}
	assert_int_equal(ledger.entries, NT_KUBE_LEDGER_ENTRIES);
	assert_string_equal(ledger.entry[0].id, "i2");
	assert_int_equal(nt_kube_ledger_count(&ledger, 1040, 10), 3);
	assert_false(nt_kube_ledger_is_quiet(&ledger, 5000, 10));
	/* Ends that were never noted. */
	assert_true(nt_kube_ledger_is_quiet(&ledger, 2000 + NT_KUBE_LEDGER_OPEN_S, 10));
	nt_kube_ledger_forget(&ledger, 2000 + NT_KUBE_LEDGER_OPEN_S, 10);
	assert_int_equal(ledger.entries, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_is_tainted_at_so_many_incidents_and_no_earlier),
		TEST(the_taint_is_removed_when_the_node_is_quiet_and_others_stay),
		TEST(a_node_is_cordoned_and_uncordoned),
		TEST(what_was_undone_by_hand_is_ours_no_more),
		TEST(what_others_did_is_never_undone),
		TEST(no_more_nodes_than_the_limit_are_changed),
		TEST(two_that_act_at_once_keep_to_the_limit),
		TEST(who_reserves_after_another_one_acted_gives_way),
		TEST(the_limit_holds_whatever_request_it_is_killed_at),
		TEST(a_refused_action_leaves_no_reservation),
		TEST(a_reservation_that_was_removed_is_worth_nothing),
		TEST(a_past_action_of_the_hour_survives_a_reservation),
		TEST(switched_off_with_undo_nothing_stays),
		TEST(a_repeated_message_counts_once),
		TEST(a_change_of_another_writer_is_not_overwritten),
		TEST(nothing_of_a_node_is_changed_by_default),
		cmocka_unit_test(a_ledger_that_others_wrote_is_read_as_far_as_it_is_sound),
		cmocka_unit_test(a_ledger_has_a_cap_and_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
