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
};

static const char *const kind_names[] = {"none", "taint", "cordon"};

/* ---- a node as it is ------------------------------------------------------------------------- */

/* Of the annotation "taint@1764422400"; kind NONE: there was no action. */
struct node_action {
	enum nt_kube_action_kind kind;
	uint64_t when_s;
	bool is_active;
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
	struct node_action action = {.kind = NT_KUBE_ACTION_NONE};

	if (!at || nt_parse_u64(at + 1, strlen(at + 1), 0, INT64_MAX, &action.when_s) < 0)
		return action;
	for (int i = NT_KUBE_ACTION_TAINT; i <= NT_KUBE_ACTION_CORDON; i++)
		if (strlen(kind_names[i]) == (size_t)(at - text) &&
		    !memcmp(kind_names[i], text, (size_t)(at - text)))
			action.kind = (enum nt_kube_action_kind)i;
	action.is_active = action.kind != NT_KUBE_ACTION_NONE &&
			   !strcmp(nt_json_get_text(labels, NT_KUBE_ACTION_NAME, ""), "active");
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
	return failed ? -ENOMEM : 0;
}

static int send_patch(struct nt_kube_try *try, const char *name, const json_t *patch)
{
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	int r = nt_buf_printf(&path, "/api/v1/nodes/%s", name);

	return r == 0 ? nt_kube_try_call(try, NT_KUBE_PATCH, (const char *)path.data, patch, &reply)
		      : r;
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

/* Nodes that are acted on now, and that were within the hour. */
static void count_actions(const json_t *list, uint64_t now_s, size_t *ret_active,
			  size_t *ret_lately)
{
	const json_t *node;
	size_t i;

	*ret_active = *ret_lately = 0;
	json_array_foreach(json_object_get(list, "items"), i, node)
	{
		struct node_action action = read_action(node);

		*ret_active += action.is_active;
		*ret_lately += action.kind != NT_KUBE_ACTION_NONE && action.when_s + HOUR_S > now_s;
	}
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

	return patch ? send_patch(one->try, one->name, patch) : -ENOMEM;
}

static int undo(struct node_case *one, const struct node_action *was)
{
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);
	int r = patch ? set_spec(patch, one->node, was->kind, false) : -ENOMEM;

	if (r == 0)
		r = set_action(patch, "lifted", was->kind, was->when_s);
	if (r == 0)
		r = send_patch(one->try, one->name, patch);
	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	atomic_fetch_add(&one->action->lifted, 1);
	nt_info("node '%s': the %s is removed", one->name, kind_names[was->kind]);
	return 0;
}

/* Two aggregators may have acted at the same time: over the limit ours is undone. */
static int keep_limit(struct node_case *one)
{
	nt_autojson json_t *list = NULL, *node = NULL;
	struct node_action done;
	char path[NT_KUBE_NAME + 32];
	size_t active, lately;
	int r = list_nodes(one->try, &list);

	if (r < 0 || !list)
		return r;
	count_actions(list, one->now_s, &active, &lately);
	if (active <= one->action->options.limit)
		return 0;
	(void)snprintf(path, sizeof(path), "/api/v1/nodes/%s", one->name);
	r = nt_kube_try_get(one->try, path, &node);
	if (r < 0 || !node)
		return r;
	atomic_fetch_add(&one->action->limited, 1);
	one->node = node;
	done = read_action(node);
	r = done.is_active ? undo(one, &done) : 0;
	one->node = NULL;
	return r;
}

static int act(struct node_case *one)
{
	enum nt_kube_action_kind kind = one->action->options.kind;
	nt_autojson json_t *patch = patch_of(one->node, &one->ledger);
	int r = patch ? set_spec(patch, one->node, kind, true) : -ENOMEM;

	if (r == 0)
		r = set_action(patch, "active", kind, one->now_s);
	if (r == 0)
		r = send_patch(one->try, one->name, patch);
	if (r < 0 || one->try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	atomic_fetch_add(&one->action->acted, 1);
	(void)nt_warn(0, "node '%s': %s after %zu incidents: no new pods are scheduled on it",
		      one->name, kind == NT_KUBE_ACTION_TAINT ? "tainted" : "cordoned",
		      nt_kube_ledger_count(&one->ledger, one->now_s,
					   one->action->options.window_ns / NT_SECOND));
	return keep_limit(one);
}

static int act_within_limit(struct node_case *one)
{
	const uint32_t limit = one->action->options.limit;
	nt_autojson json_t *list = NULL;
	size_t active, lately;
	int r = list_nodes(one->try, &list);

	if (r < 0 || !list)
		return r;
	count_actions(list, one->now_s, &active, &lately);
	if (active < limit && lately < limit)
		return act(one);
	atomic_fetch_add(&one->action->limited, 1);
	(void)nt_warn(0,
		      "node '%s': not changed, as %zu nodes of the cluster are and %zu were within "
		      "an hour; the limit is %u",
		      one->name, active, lately, limit);
	return patch_ledger(one);
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

	if (!action)
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

	return r == 0 ? send_patch(one->try, one->name, patch) : r;
}

static int lift_one(struct node_case *one)
{
	const struct nt_kube_action_options *options = &one->action->options;
	struct node_action was = read_action(one->node);

	nt_kube_ledger_read(annotation_of(one->node, NT_KUBE_INCIDENTS_NAME), &one->ledger);
	/* Undone by hand: a later cordon or taint is not ours. */
	if (was.is_active && !has_it_already(one->node, was.kind))
		return forget_action(one);
	if (was.is_active)
		return nt_kube_ledger_is_quiet(&one->ledger, one->now_s,
					       options->quiet_ns / NT_SECOND)
			       ? undo(one, &was)
			       : 0;
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
