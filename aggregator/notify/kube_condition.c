/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_condition.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/kube_event.h"
#include "common/base/buf.h"
#include "proto/json.h"

enum {
	MAX_ID = 64, /* bytes of an incident's id, with its NUL */
};

struct ids {
	char id[NT_KUBE_CONDITION_INCIDENTS][MAX_ID];
	size_t n;
};

static const json_t *find_condition(const json_t *node)
{
	const json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions");
	const json_t *condition;
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		if (!strcmp(nt_json_get_text(condition, "type", ""), NT_KUBE_CONDITION))
			return condition;
	}
	return NULL;
}

static void read_ids(const json_t *condition, struct ids *ids)
{
	const char *text = nt_json_get_text(condition, "message", "");
	const char *end = strchr(text, ':');

	if (!end || strcmp(nt_json_get_text(condition, "status", ""), "True") != 0)
		return;
	while (text < end && ids->n < NT_KUBE_CONDITION_INCIDENTS) {
		size_t len = strcspn(text, ",:");

		if (len && len < MAX_ID)
			(void)snprintf(ids->id[ids->n++], MAX_ID, "%.*s", (int)len, text);
		text += len + 1;
	}
}

static bool remove_id(struct ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (strcmp(ids->id[i], id) != 0)
			continue;
		memmove(ids->id + i, ids->id + i + 1, (ids->n - i - 1) * sizeof(ids->id[0]));
		ids->n--;
		return true;
	}
	return false;
}

static void add_id(struct ids *ids, const char *id)
{
	if (ids->n == NT_KUBE_CONDITION_INCIDENTS)
		(void)remove_id(ids, ids->id[0]);
	(void)snprintf(ids->id[ids->n++], MAX_ID, "%s", id);
}

/* "ID,ID: text" */
static int write_text(const struct ids *ids, const char *text, struct nt_buf *buf)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ids->n; i++)
		r = nt_buf_printf(buf, "%s%s", i ? "," : "", ids->id[i]);
	return r == 0 ? nt_buf_printf(buf, "%s%s", ids->n ? ": " : "", text) : r;
}

int nt_kube_condition_patch(const json_t *node, const json_t *message, json_t **ret_patch)
{
	const json_t *incident = json_object_get(message, "data");
	const json_t *was = find_condition(node);
	const char *id = nt_json_get_text(incident, "id", "");
	const char *now = nt_json_get_text(message, "timestamp", "");
	bool resolved = !strcmp(nt_json_get_text(message, "type", ""), "incident.resolved");
	bool was_true = !strcmp(nt_json_get_text(was, "status", ""), "True"), is_true;
	nt_autobuf struct nt_buf said = {0};
	char text[NT_KUBE_EVENT_TEXT];
	struct ids ids = {.n = 0};
	json_t *patch;

	*ret_patch = NULL;
	if (!*id || strlen(id) >= MAX_ID)
		return 0;
	read_ids(was, &ids);
	if (!remove_id(&ids, id) && resolved)
		return 0;
	if (!resolved)
		add_id(&ids, id);
	is_true = ids.n > 0;
	if (resolved && is_true)
		(void)snprintf(text, sizeof(text), "open; %s is resolved", id);
	else
		nt_kube_text(incident, resolved, text);
	if (write_text(&ids, text, &said) < 0)
		return -ENOMEM;
	patch = json_pack(
		"{s:{s:s*}, s:{s:[{s:s, s:s, s:s, s:s, s:s, s:s}]}}", "metadata", "resourceVersion",
		nt_json_get_text(json_object_get(node, "metadata"), "resourceVersion", NULL),
		"status", "conditions", "type", NT_KUBE_CONDITION, "status",
		is_true ? "True" : "False", "reason", nt_kube_reason(incident, !is_true), "message",
		(const char *)said.data, "lastHeartbeatTime", now, "lastTransitionTime",
		is_true == was_true ? nt_json_get_text(was, "lastTransitionTime", now) : now);
	if (!patch)
		return -ENOMEM;
	*ret_patch = patch;
	return 0;
}
