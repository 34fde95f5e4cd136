/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A server that keeps nodes as the Kubernetes API server does, and fails where a test wants it. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_NODE_SERVER_H
#define NT_TESTS_UNIT_AGGREGATOR_NODE_SERVER_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregator/notify/kube_action.h"
#include "common/system/clock.h"
#include "proto/json.h"
#include "tests/unit/kube_server.h"

enum {
	NODES = 3,
};

struct node_server {
	json_t *node[NODES]; /* "n0" … */
	uint64_t version;
	bool is_raced; /* another writer changes the node before the next patch */
	size_t patches;
	unsigned int requests; /* of the action: lists and patches */
	unsigned int lost; /* the answer to this request is lost, as if its aggregator was killed */
	unsigned int failed; /* this request and all later ones fail before they change anything */
	/* Another aggregator reserves n1, or acts on it, before this list. */
	unsigned int rival_at;
	const char *rival;
	unsigned int forbidden; /* this patch is refused */
	unsigned int touched_at; /* another writer changes n0 before this request */
};

/* Strategic merge as far as nodes need it: null deletes, and lists without a merge key replace. */
static inline void merge(json_t *to, const json_t *patch)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)patch, name, value)
	{
		json_t *old = json_object_get(to, name);

		if (json_is_null(value))
			(void)json_object_del(to, name);
		else if (json_is_object(value) && json_is_object(old))
			merge(old, value);
		else
			assert_int_equal(json_object_set_new(to, name, json_deep_copy(value)), 0);
	}
}

static inline void touch(struct node_server *server, json_t *node)
{
	char version[24];

	(void)snprintf(version, sizeof(version), "%llu", (unsigned long long)++server->version);
	assert_int_equal(json_object_set_new(json_object_get(node, "metadata"), "resourceVersion",
					     json_string(version)),
			 0);
}

static inline bool reply_json(int fd, const char *status, const json_t *json)
{
	char *text = json_dumps(json, 0);
	bool goes_on = kube_reply(fd, status, text);

	free(text);
	return goes_on;
}

static inline json_t *find_node(struct node_server *server, const char *head)
{
	const char *name = strstr(head, "/api/v1/nodes/n");

	return name && name[15] >= '0' && name[15] < '0' + NODES ? server->node[name[15] - '0']
								 : NULL;
}

static inline bool patch_node(struct node_server *server, int fd, json_t *node, const char *body)
{
	nt_autojson json_t *patch = json_loads(body, 0, NULL);
	const json_t *metadata = json_object_get(patch, "metadata");

	assert_non_null(patch);
	if (server->is_raced)
		touch(server, node);
	server->is_raced = false;
	if (strcmp(nt_json_get_text(metadata, "resourceVersion", "?"),
		   nt_json_get_text(json_object_get(node, "metadata"), "resourceVersion", "")))
		return kube_reply(fd, "409 Conflict", "{}");
	merge(node, patch);
	touch(server, node);
	server->patches++;
	return reply_json(fd, "200 OK", node);
}

static inline void mark(struct node_server *server, unsigned int node, const char *state)
{
	json_t *metadata = json_object_get(server->node[node], "metadata");
	char text[40];

	(void)json_object_set_new(json_object_get(metadata, "labels"), NT_KUBE_ACTION_NAME,
				  json_string(state));
	(void)snprintf(text, sizeof(text), "%s%llu", strcmp(state, "reserved") ? "taint@" : "",
		       (unsigned long long)(nt_clock_real_ns() / NT_SECOND));
	(void)json_object_set_new(json_object_get(metadata, "annotations"),
				  strcmp(state, "reserved") ? NT_KUBE_ACTION_NAME
							    : NT_KUBE_RESERVED_NAME,
				  json_string(text));
	touch(server, server->node[node]);
}

static inline bool list_labelled(struct node_server *server, int fd)
{
	nt_autojson json_t *list = json_pack("{s:[]}", "items");

	for (size_t i = 0; i < NODES; i++) {
		json_t *metadata = json_object_get(server->node[i], "metadata");

		if (json_object_get(json_object_get(metadata, "labels"), NT_KUBE_ACTION_NAME))
			assert_int_equal(
				json_array_append(json_object_get(list, "items"), server->node[i]),
				0);
	}
	return reply_json(fd, "200 OK", list);
}

static inline bool answer_now(struct node_server *server, int fd,
			      const struct kube_request *request)
{
	json_t *node = find_node(server, request->head);

	if (strstr(request->head, "GET /api/v1/nodes?labelSelector=neutracer.io%2Faction&"))
		return list_labelled(server, fd);
	if (node && !strncmp(request->head, "PATCH ", 6))
		return patch_node(server, fd, node, request->body);
	if (node && !strncmp(request->head, "GET ", 4))
		return reply_json(fd, "200 OK", node);
	return kube_reply(fd, "404 Not Found", "{}");
}

static inline bool answer(struct kube_server *server, int fd, const struct kube_request *request)
{
	struct node_server *nodes = server->data;
	unsigned int number;
	int nowhere;

	if (!strncmp(request->head, "POST ", 5))
		return kube_reply(fd, "201 Created", "{}");
	number = ++nodes->requests;
	if (number == nodes->rival_at)
		mark(nodes, 1, nodes->rival);
	if (number == nodes->touched_at)
		touch(nodes, nodes->node[0]);
	if (number == nodes->forbidden)
		return kube_reply(fd, "403 Forbidden", "{}");
	if (nodes->failed && number >= nodes->failed)
		return kube_reply(fd, "503 Service Unavailable", "{}");
	if (number != nodes->lost)
		return answer_now(nodes, fd, request);
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	(void)answer_now(nodes, nowhere, request);
	(void)close(nowhere);
	return kube_reply(fd, "504 Gateway Timeout", "{}");
}

#endif
