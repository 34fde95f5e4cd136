/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_action.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/kube_event.h"
#include "aggregator/notify/kube_ledger.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "common/system/log.h"
#include "proto/json.h"

enum {
	LIST_BYTES = 32 << 20, /* of the nodes that were acted on */
	LIST_NODES = 500,
	HOUR_S = 3600,
	RESERVED_S = 300, /* then its aggregator was killed */
};

static const char *const kind_names[] = {"none", "taint", "cordon", "undo"};

/* ---- a node as it is ------------------------------------------------------------------------- */

/* Of the annotation "taint@1764422400"; kind NONE: there was no action. */
struct node_action {
	enum nt_kube_action_kind kind;
	uint64_t when_s;
	bool is_active, is_reserved;
};

static const char *annotation_of(const json_t *node, const char *name)
{
	const json_t *metadata = json_object_get(node, "metadata");

	return nt_json_get_text(json_object_get(metadata, "annotations"), name, "");
}

static struct node_action read_action(const json_t *node)
{
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
	const char *text = annotation_of(node, NT_KUBE_ACTION_NAME), *at = strchr(text, '@');
	const char *state = nt_json_get_text(labels, NT_KUBE_ACTION_NAME, "");
	struct node_action action = {.kind = NT_KUBE_ACTION_NONE};

	action.is_reserved = !strcmp(state, "reserved");
	if (!at || nt_parse_u64(at + 1, strlen(at + 1), 0, INT64_MAX, &action.when_s) < 0)
		return action;
	for (int i = NT_KUBE_ACTION_TAINT; i <= NT_KUBE_ACTION_CORDON; i++)
		if (strlen(kind_names[i]) == (size_t)(at - text) &&
		    !memcmp(kind_names[i], text, (size_t)(at - text)))
			action.kind = (enum nt_kube_action_kind)i;
	action.is_active = action.kind != NT_KUBE_ACTION_NONE && !strcmp(state, "active");
	return action;
}

static bool is_ours(const json_t *taint)
{
	return !strcmp(nt_json_get_text(taint, "key", ""), NT_KUBE_TAINT);
}

/* Cordoned, or with our taint: by whom is not known, so it is not ours to undo. */
static bool has_it_already(const json_t *node, enum nt_kube_action_kind kind)
{
	const json_t *spec = json_object_get(node, "spec"), *taint;
	size_t i;

	if (kind == NT_KUBE_ACTION_CORDON)
		return json_is_true(json_object_get(spec, "unschedulable"));
	json_array_foreach(json_object_get(spec, "taints"), i, taint)
	{
		if (is_ours(taint))
			return true;
	}
	return false;
}

/* ---- patches --------------------------------------------------------------------------------- */

/* Empties the array of what is ours. Others' taints stay, as a patch replaces the whole list. */
static json_t *taints_of(const json_t *node, bool with_ours)
{
	nt_autojson json_t *taints = json_array();
	const json_t *spec = json_object_get(node, "spec");
	int failed = !taints;
	json_t *taint;
	size_t i;

	json_array_foreach(json_object_get(spec, "taints"), i, taint)
	{
		if (!is_ours(taint))
			failed |= json_array_append(taints, taint);
	}
	if (with_ours)
		failed |=
			json_array_append_new(taints, json_pack("{s:s, s:s}", "key", NT_KUBE_TAINT,
								"effect", "NoSchedule"));
	return failed ? NULL : nt_take(taints);
}

/* The resourceVersion makes concurrent changes a conflict, which is retried. */
static json_t *patch_of(const json_t *node, const struct nt_kube_ledger *ledger)
{
	nt_autobuf struct nt_buf text = {0};
	const json_t *metadata = json_object_get(node, "metadata");

	if (nt_kube_ledger_write(ledger, &text) < 0)
		return NULL;
	return json_pack("{s:{s:s*, s:{s:s?}}}", "metadata", "resourceVersion",
			 nt_json_get_text(metadata, "resourceVersion", NULL), "annotations",
			 NT_KUBE_INCIDENTS_NAME, text.len ? (const char *)text.data : NULL);
}

static int set_spec(json_t *patch, const json_t *node, enum nt_kube_action_kind kind, bool is_on)
{
	return json_object_set_new(patch, "spec",
				   kind == NT_KUBE_ACTION_CORDON
					   ? json_pack("{s:b}", "unschedulable", is_on)
					   : json_pack("{s:o}", "taints", taints_of(node, is_on)))
		       ? -ENOMEM
		       : 0;
}

/* state NULL: the label and the annotation are removed. */
static int set_action(json_t *patch, const char *state, enum nt_kube_action_kind kind,
		      uint64_t when_s)
{
	json_t *metadata = json_object_get(patch, "metadata");
	char text[40];
	int failed = 0;

	(void)snprintf(text, sizeof(text), "%s@%" PRIu64, kind_names[kind], when_s);
	failed |= json_object_set_new(metadata, "labels",
				      json_pack("{s:s?}", NT_KUBE_ACTION_NAME, state));
	failed |= json_object_set_new(json_object_get(metadata, "annotations"), NT_KUBE_ACTION_NAME,
				      state ? json_string(text) : json_null());
	failed |= json_object_set_new(json_object_get(metadata, "annotations"),
				      NT_KUBE_RESERVED_NAME, json_null());
	return failed ? -ENOMEM : 0;
}

/* ret_node NULL: not wanted. *ret_node is the node as it is then; it stays NULL on a failure. */
static int send_patch(struct nt_kube_try *try, const char *name, const json_t *patch,
		      json_t **ret_node)
{
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	int r = nt_buf_printf(&path, "/api/v1/nodes/%s", name);

	if (r == 0)
		r = nt_kube_try_call(try, NT_KUBE_PATCH, (const char *)path.data, patch, &reply);
	if (r < 0 || !ret_node || try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	r = nt_json_load(reply.body.data, reply.body.len, ret_node);
	if (r == -EBADMSG) {
		try->attempt.outcome = NT_ATTEMPT_REFUSED;
		return 0;
	}
	return r;
}

/* ---- the limit of the cluster ---------------------------------------------------------------- */

static int list_nodes(struct nt_kube_try *try, json_t **ret_list)
{
	struct nt_kube_try list = *try;
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/nodes?labelSelector=%s&limit=%d",
		       "neutracer.io%2Faction", LIST_NODES);
	list.max_bytes = LIST_BYTES;
	r = nt_kube_try_get(&list, path, ret_list);
	try->attempt = list.attempt;
	return r;
}

struct usage {
	size_t active, reserved, lately; /* nodes now, and those acted on within the hour */
	bool has_own; /* the list has the node itself */
};

/* The node itself may be acted on again, so that only its action of the hour counts. */
static void count_usage(const json_t *list, const char *own, uint64_t now_s,
			struct usage *ret_usage)
{
	struct usage usage = {0};
	const json_t *node;
	size_t i;

	json_array_foreach(json_object_get(list, "items"), i, node)
	{
		struct node_action action = read_action(node);
		bool is_own = !strcmp(
			nt_json_get_text(json_object_get(node, "metadata"), "name", ""), own);
		bool is_late = action.kind != NT_KUBE_ACTION_NONE && action.when_s + HOUR_S > now_s;

		usage.has_own |= is_own;
		usage.active += action.is_active && !is_own;
		usage.reserved += action.is_reserved && !is_own;
		usage.lately += is_late && (is_own || !action.is_reserved);
	}
	*ret_usage = usage;
}

/* ---- acting ---------------------------------------------------------------------------------- */

struct node_case {
	struct nt_kube_action *action;
	struct nt_kube_try *try;
	const char *name;
	const json_t *node;
	struct nt_kube_ledger ledger;
	uint64_t now_s;
};

static int patch_ledger(struct node_case *one)
{
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);

	return patch ? send_patch(one->try, one->name, patch, NULL) : -ENOMEM;
}

/* Actions were switched off: nothing of them stays. */
static bool is_all_undone(const struct node_case *one)
{
	return one->action->options.kind == NT_KUBE_ACTION_UNDO;
}

static int undo(struct node_case *one, const struct node_action *was)
{
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);
	int r = patch ? set_spec(patch, one->node, was->kind, false) : -ENOMEM;

	if (r == 0)
		r = set_action(patch, is_all_undone(one) ? NULL : "lifted", was->kind, was->when_s);
	if (r == 0)
		r = send_patch(one->try, one->name, patch, NULL);
	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	atomic_fetch_add(&one->action->lifted, 1);
	nt_info("node '%s': the %s is removed", one->name, kind_names[was->kind]);
	return 0;
}

/*
 * The limit holds although aggregators act at the same time and are killed: a node is reserved, then
 * the others are counted, and only a node that is still reserved is changed. Of two, the one that
 * reserves later counts the other. A reservation that was left behind counts until it is removed.
 */
enum action_room {
	ROOM,
	NO_ROOM, /* the limit is reached */
	ROOM_LATER, /* it may be: others have reserved it */
};

/* *ret_room is set where the attempt was taken. */
static int look_for_room(struct node_case *one, bool is_reserved, enum action_room *ret_room)
{
	const uint32_t limit = one->action->options.limit;
	nt_autojson json_t *list = NULL;
	struct usage usage;
	int r = list_nodes(one->try, &list);

	if (r < 0 || !list)
		return r;
	count_usage(list, one->name, one->now_s, &usage);
	if (usage.active >= limit || usage.lately >= limit) {
		*ret_room = NO_ROOM;
		(void)nt_warn(
			0,
			"node '%s': not changed, as %zu nodes of the cluster are and %zu were "
			"within an hour; the limit is %u",
			one->name, usage.active, usage.lately, limit);
		return 0;
	}
	*ret_room = usage.active + usage.reserved < limit &&
				    usage.lately + usage.reserved < limit &&
				    usage.has_own >= is_reserved
			    ? ROOM
			    : ROOM_LATER;
	return 0;
}

static int later(struct node_case *one)
{
	one->try->attempt.outcome = NT_ATTEMPT_LATER;
	one->try->attempt.reason = "another node is changed at the moment, and the limit is low";
	return 0;
}

/* Without the ledger: once it has the incident, a repeated message changes nothing. */
static int reserve(struct node_case *one, json_t **ret_node)
{
	const json_t *metadata = json_object_get(one->node, "metadata");
	nt_autojson json_t *patch = NULL;
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, one->now_s);
	patch = json_pack("{s:{s:s*, s:{s:s}, s:{s:s}}}", "metadata", "resourceVersion",
			  nt_json_get_text(metadata, "resourceVersion", NULL), "labels",
			  NT_KUBE_ACTION_NAME, "reserved", "annotations", NT_KUBE_RESERVED_NAME,
			  text);
	return patch ? send_patch(one->try, one->name, patch, ret_node) : -ENOMEM;
}

/* Gives the reservation up, and notes the incident if that is the end of it. */
static int withdraw(struct node_case *one, bool with_ledger)
{
	const struct node_action was = read_action(one->node);
	const bool has_past = was.kind != NT_KUBE_ACTION_NONE;
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);
	json_t *annotations = json_object_get(json_object_get(patch, "metadata"), "annotations");
	int r = patch ? set_action(patch, has_past ? "lifted" : NULL, was.kind, was.when_s)
		      : -ENOMEM;

	if (!with_ledger)
		(void)json_object_del(annotations, NT_KUBE_INCIDENTS_NAME);
	return r == 0 ? send_patch(one->try, one->name, patch, NULL) : r;
}

static int act(struct node_case *one)
{
	enum nt_kube_action_kind kind = one->action->options.kind;
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);
	int r = patch ? set_spec(patch, one->node, kind, true) : -ENOMEM;

	if (r == 0)
		r = set_action(patch, "active", kind, one->now_s);
	if (r == 0)
		r = send_patch(one->try, one->name, patch, NULL);
	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	atomic_fetch_add(&one->action->acted, 1);
	(void)nt_warn(0, "node '%s': %s after %zu incidents: no new pods are scheduled on it",
		      one->name, kind == NT_KUBE_ACTION_TAINT ? "tainted" : "cordoned",
		      nt_kube_ledger_count(&one->ledger, one->now_s,
					   one->action->options.window_ns / NT_SECOND));
	return 0;
}

/* After a failure that may have been none, the reservation stays until the message is repeated. */
static int act_or_withdraw(struct node_case *one)
{
	struct nt_attempt refused;
	int r = act(one);

	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_REFUSED)
		return r;
	refused = one->try->attempt;
	r = withdraw(one, false);
	one->try->attempt = refused;
	return r;
}

static int act_reserved(struct node_case *one)
{
	enum action_room room = ROOM_LATER;
	int r = look_for_room(one, true, &room);

	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	if (room == ROOM)
		return act_or_withdraw(one);
	if (room == NO_ROOM)
		atomic_fetch_add(&one->action->limited, 1);
	r = withdraw(one, room == NO_ROOM);
	return r == 0 && room == ROOM_LATER ? later(one) : r;
}

static int act_within_limit(struct node_case *one)
{
	nt_autojson json_t *reserved = NULL;
	enum action_room room = ROOM_LATER;
	const json_t *node = one->node;
	int r = look_for_room(one, false, &room);

	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	if (room == NO_ROOM) {
		atomic_fetch_add(&one->action->limited, 1);
		return read_action(node).is_reserved ? withdraw(one, true) : patch_ledger(one);
	}
	if (room == ROOM_LATER)
		return later(one);
	r = reserve(one, &reserved);
	if (r < 0 || !reserved)
		return r;
	one->node = reserved;
	r = act_reserved(one);
	one->node = node;
	return r;
}

static bool is_time_to_act(const struct node_case *one, bool is_end)
{
	const struct nt_kube_action_options *options = &one->action->options;

	return !is_end && !read_action(one->node).is_active &&
	       !has_it_already(one->node, options->kind) &&
	       nt_kube_ledger_count(&one->ledger, one->now_s, options->window_ns / NT_SECOND) >=
		       options->after;
}

static uint64_t kept_s(const struct nt_kube_action_options *options)
{
	return (options->window_ns > options->quiet_ns ? options->window_ns : options->quiet_ns) /
	       NT_SECOND;
}

int nt_kube_action_note(struct nt_kube_action *action, struct nt_kube_try *try, const char *node,
			const json_t *message)
{
	const json_t *incident = json_object_get(message, "data");
	bool is_end = !strcmp(nt_json_get_text(message, "type", ""), "incident.resolved");
	struct node_case one = {.action = action, .try = try, .name = node};
	nt_autojson json_t *object = NULL;
	char path[NT_KUBE_NAME + 32];
	int r;

	if (!action || action->options.kind == NT_KUBE_ACTION_UNDO)
		return 0;
	(void)snprintf(path, sizeof(path), "/api/v1/nodes/%s", node);
	r = nt_kube_try_get(try, path, &object);
	if (r < 0 || !object)
		return r;
	one.now_s = nt_clock_real_ns() / NT_SECOND;
	one.node = object;
	nt_kube_ledger_read(annotation_of(object, NT_KUBE_INCIDENTS_NAME), &one.ledger);
	nt_kube_ledger_forget(&one.ledger, one.now_s, kept_s(&action->options));
	/* A repeated message: it was noted, and acted upon, before. */
	if (!nt_kube_ledger_note(&one.ledger, nt_json_get_text(incident, "id", ""), is_end,
				 one.now_s))
		return 0;
	return is_time_to_act(&one, is_end) ? act_within_limit(&one) : patch_ledger(&one);
}

/* ---- undoing --------------------------------------------------------------------------------- */

/* The label stays for an hour, for the limit. */
static int forget_action(struct node_case *one)
{
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);
	int r = patch ? set_action(patch, NULL, NT_KUBE_ACTION_NONE, 0) : -ENOMEM;

	return r == 0 ? send_patch(one->try, one->name, patch, NULL) : r;
}

/* Safe at any time, as its aggregator then fails to change the node. */
static bool is_left_behind(const struct node_case *one)
{
	const char *text = annotation_of(one->node, NT_KUBE_RESERVED_NAME);
	uint64_t when_s;

	return is_all_undone(one) ||
	       nt_parse_u64(text, strlen(text), 0, INT64_MAX / 2, &when_s) < 0 ||
	       when_s + RESERVED_S <= one->now_s || when_s > one->now_s + RESERVED_S;
}

static int lift_one(struct node_case *one)
{
	const struct nt_kube_action_options *options = &one->action->options;
	struct node_action was = read_action(one->node);

	if (was.is_reserved)
		return is_left_behind(one) ? withdraw(one, false) : 0;
	/* With an empty ledger, the patch removes it. */
	if (!is_all_undone(one))
		nt_kube_ledger_read(annotation_of(one->node, NT_KUBE_INCIDENTS_NAME), &one->ledger);
	/* Undone by hand: a later cordon or taint is not ours. */
	if (was.is_active && !has_it_already(one->node, was.kind))
		return forget_action(one);
	if (was.is_active)
		return is_all_undone(one) || nt_kube_ledger_is_quiet(&one->ledger, one->now_s,
								     options->quiet_ns / NT_SECOND)
			       ? undo(one, &was)
			       : 0;
	if (is_all_undone(one))
		return forget_action(one);
	nt_kube_ledger_forget(&one->ledger, one->now_s, kept_s(options));
	return was.when_s + HOUR_S <= one->now_s ? forget_action(one) : 0;
}

int nt_kube_action_lift(struct nt_kube_action *action, struct nt_kube_try *try)
{
	nt_autojson json_t *list = NULL;
	const json_t *node;
	size_t i;
	int r = list_nodes(try, &list);

	if (r < 0)
		return r;
	json_array_foreach(json_object_get(list, "items"), i, node)
	{
		struct node_case one = {
			.action = action,
			.try = try,
			.node = node,
			.name = nt_json_get_text(json_object_get(node, "metadata"), "name", ""),
			.now_s = nt_clock_real_ns() / NT_SECOND,
		};

		/* One that is refused or in conflict leaves the others to be done. */
		r = nt_kube_name_is_sound(one.name) ? lift_one(&one) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}
