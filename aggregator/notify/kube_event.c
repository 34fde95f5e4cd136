/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_event.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "proto/json.h"

static const char component[] = "neutracer";
/* Namespace of events on cluster-scoped objects, where `kubectl describe node` finds them. */
static const char node_namespace[] = "default";

bool nt_kube_name_is_sound(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > NT_KUBE_NAME || !isalnum((unsigned char)name[0]) ||
	    !isalnum((unsigned char)name[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
		    name[i] != '-' && name[i] != '.')
			return false;
	}
	return true;
}

/* ---- objects --------------------------------------------------------------------------------- */

static bool is_same(const struct nt_kube_object *a, const struct nt_kube_object *b)
{
	if (!a->namespace || !b->namespace)
		return a->namespace == b->namespace && !strcmp(a->name, b->name);
	return !strcmp(a->name, b->name) && !strcmp(a->namespace, b->namespace);
}

static bool accuses(const json_t *culprit)
{
	static const char *const kinds[] = {"rank", "node", "nic", "path"};
	const char *kind = nt_json_get_text(culprit, "kind", "");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kind, kinds[i]))
			return true;
	}
	return false;
}

/* The uid that the agent derived from the pod's cgroup; NULL if it is not a valid uid. */
static const char *pod_uid(const json_t *culprit)
{
	const char *uid = nt_json_get_text(culprit, "pod_uid", "");

	return nt_kube_name_is_sound(uid) ? uid : NULL;
}

/* Returns the new number of objects. */
static size_t add_object(struct nt_kube_object *object, size_t n, struct nt_kube_object more,
			 size_t *left_out)
{
	if (!*more.name)
		return n;
	for (size_t i = 0; i < n; i++) {
		if (is_same(&object[i], &more))
			return n;
	}
	if (n == NT_KUBE_EVENT_OBJECTS || !nt_kube_name_is_sound(more.name) ||
	    (more.namespace && !nt_kube_name_is_sound(more.namespace))) {
		*left_out += 1;
		return n;
	}
	object[n] = more;
	return n + 1;
}

size_t nt_kube_objects(const json_t *incident, struct nt_kube_object object[NT_KUBE_EVENT_OBJECTS],
		       size_t *ret_left_out)
{
	const json_t *culprits = json_object_get(incident, "culprits");
	const char *namespace = nt_json_get_text(incident, "namespace", "");
	const json_t *culprit;
	size_t i, n = 0;

	json_array_foreach(culprits, i, culprit)
	{
		const char *pod = nt_json_get_text(culprit, "pod", "");

		if (*namespace && accuses(culprit))
			n = add_object(object, n,
				       (struct nt_kube_object){namespace, pod, pod_uid(culprit)},
				       ret_left_out);
	}
	/*
	 * Like the kubelet's events, a node's events use its name as uid, so they are found by it.
	 */
	json_array_foreach(culprits, i, culprit)
	{
		const char *node = nt_json_get_text(culprit, "node", "");

		if (accuses(culprit))
			n = add_object(object, n, (struct nt_kube_object){NULL, node, node},
				       ret_left_out);
	}
	return n;
}

/* ---- events ---------------------------------------------------------------------------------- */

const char *nt_kube_reason(const json_t *incident, bool resolved)
{
	static const struct {
		const char *class, *reason;
	} reasons[] = {
		{"compute", "ComputeSlow"},
		{"network", "NetworkSlow"},
		{"host", "HostSlow"},
		{"storage", "StorageSlow"},
		{"missing", "RankMissing"},
		{"hang", "RankHangs"},
		{"mismatch", "CollectiveMismatch"},
	};
	const char *class = nt_json_get_text(incident, "class", "");

	if (resolved)
		return "Recovered";
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (!strcmp(class, reasons[i].class))
			return reasons[i].reason;
	}
	return "RankAbnormal";
}

void nt_kube_text(const json_t *incident, bool resolved, char text[NT_KUBE_EVENT_TEXT])
{
	const char *state = resolved ? "resolved: " : "";
	const char *summary = nt_json_get_text(incident, "summary", "");
	char end[96];
	int room, len = (int)strlen(summary);

	(void)snprintf(end, sizeof(end), " (incident %.64s)", nt_json_get_text(incident, "id", ""));
	room = NT_KUBE_EVENT_TEXT - 1 - (int)strlen(state) - (int)strlen(end);
	if (len > room) {
		len = room;
		/* Do not cut inside a UTF-8 character. */
		while (len > 0 && ((unsigned char)summary[len] & 0xc0) == 0x80)
			len--;
	}
	(void)snprintf(text, NT_KUBE_EVENT_TEXT, "%s%.*s%s", state, len, summary, end);
}

/* "msg_ID_firing_critical" becomes "neutracer.ID.firing.critical.0". */
static void name_event(const char *id, size_t number, char name[NT_KUBE_NAME + 1])
{
	static const char prefix[] = "msg_";

	if (!strncmp(id, prefix, sizeof(prefix) - 1))
		id += sizeof(prefix) - 1;
	(void)snprintf(name, NT_KUBE_NAME + 1, "%s.%.200s.%zu", component, id, number);
	for (char *c = name; *c; c++) {
		if (*c == '_')
			*c = '.';
		else if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '.')
			*c = '-';
	}
}

json_t *nt_kube_event(const json_t *message, const char *id, size_t number,
		      const struct nt_kube_object *object)
{
	const json_t *incident = json_object_get(message, "data");
	bool resolved = !strcmp(nt_json_get_text(message, "type", ""), "incident.resolved");
	const char *namespace = object->namespace ? object->namespace : node_namespace;
	const char *when = nt_json_get_text(message, "timestamp", "");
	char name[NT_KUBE_NAME + 1], text[NT_KUBE_EVENT_TEXT];

	name_event(id, number, name);
	nt_kube_text(incident, resolved, text);
	return json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s*, s:s, s:s*}, s:s, s:s, s:s, s:{s:s}, s:s,"
		" s:s, s:s, s:s, s:i}",
		"apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
		namespace, "involvedObject", "apiVersion", "v1", "kind",
		object->namespace ? "Pod" : "Node", "namespace", object->namespace, "name",
		object->name, "uid", object->uid, "reason", nt_kube_reason(incident, resolved),
		"message", text, "type", resolved ? "Normal" : "Warning", "source", "component",
		component, "firstTimestamp", nt_json_get_text(incident, "since", when),
		"lastTimestamp", when, "reportingComponent", component, "reportingInstance",
		component, "count", 1);
}
