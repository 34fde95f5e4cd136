/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /api/v1/node-keys: the key with which an agent signs the messages of its node. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "aggregator/api/api_impl.h"
#include "proto/json.h"

enum {
	AGAIN_S = 1,
	AWAY_S = 5,
};

static const char *bearer_of(const struct nt_httpd_request *request)
{
	static const char scheme[] = "Bearer ";
	const char *header = nt_httpd_header(request, "Authorization");

	if (!header || strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
		return NULL;
	header += sizeof(scheme) - 1;
	return header + strspn(header, " ");
}

/* Parses {"node": NAME}; NULL if invalid. The name is valid as long as *ret_body. */
static const char *node_of(const struct nt_httpd_request *request, json_t **ret_body)
{
	const char *node;
	size_t len;
	const void *body = nt_httpd_body(request, &len);

	if (nt_json_load(body, len, ret_body) < 0)
		return NULL;
	node = nt_json_get_text(*ret_body, "node", "");
	return *node && strlen(node) <= NT_NODE_KEY_NODE ? node : NULL;
}

static int reply_key(struct nt_httpd_reply *reply, const char *node, struct nt_node_key *key)
{
	char line[NT_NODE_KEY_LINE];
	json_t *object;
	int r = nt_node_key_print(key, node, line);

	OPENSSL_cleanse(key, sizeof(*key));
	if (r < 0)
		return r;
	object = json_pack("{s:s, s:s}", "node", node, "key", line);
	OPENSSL_cleanse(line, sizeof(line));
	return nt_api_reply_object(reply, object);
}

int nt_api_node_keys(void *data, const struct nt_httpd_request *request,
		     struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	const char *token = bearer_of(request), *node;
	nt_autojson json_t *body = NULL;
	char reason[NT_ENROL_REASON];
	struct nt_node_key key;

	if (!api->options.enrol)
		return nt_httpd_problem(
			reply, request, 404, "not_offered",
			"this aggregator does not issue node keys: --enrol-account is not set");
	if (!token || !*token)
		return nt_httpd_problem(
			reply, request, 401, "unauthorized",
			"this request requires a bearer token of the agent's service account");
	node = node_of(request, &body);
	if (!node)
		return nt_httpd_problem(reply, request, 400, "bad_request",
					"the body must be {\"node\": NAME} with a name of 1 to 255 "
					"bytes");
	switch (nt_enrol_request(api->options.enrol, token, strlen(token), node, &key, reason)) {
	case NT_ENROL_GRANTED:
		return reply_key(reply, node, &key);
	case NT_ENROL_WAITS:
		reply->status = 202;
		reply->retry_after_s = AGAIN_S;
		return nt_api_reply_object(reply, json_pack("{s:s, s:n}", "node", node, "key"));
	case NT_ENROL_DENIED:
		return nt_httpd_problem(reply, request, 403, "forbidden", "%s", reason);
	case NT_ENROL_BUSY:
		reply->retry_after_s = AGAIN_S;
		return nt_httpd_problem(reply, request, 503, "busy",
					"too many token reviews are pending; try again later");
	case NT_ENROL_AWAY:
		break;
	}
	reply->retry_after_s = AWAY_S;
	return nt_httpd_problem(reply, request, 503, "busy",
				"the API server failed to review the token: %s", reason);
}
