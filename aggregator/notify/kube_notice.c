/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_notice.h"

#include <errno.h>
#include <stdio.h>

#include "aggregator/notify/kube_condition.h"
#include "aggregator/notify/kube_event.h"
#include "proto/json.h"

enum {
	OBJECT_BYTES = 1 << 20, /* of a node, which may list many images and volumes */
};

struct sending {
	struct nt_kube *kube;
	const struct nt_kube_notice *notice;
	json_t *message;
	size_t left_out;
	struct nt_attempt attempt;
};

/* ---- requests -------------------------------------------------------------------------------- */

/* Maps a response to the outcome of the attempt. */
static struct nt_attempt weigh(int r, const struct nt_kube_reply *reply)
{
	struct nt_attempt attempt = {
		.status = reply->status,
		.retry_after_ns = reply->retry_after_ns,
		.reason = "the Kubernetes API server refuses it",
	};

	if (r == -ECANCELED) {
		attempt.outcome = NT_ATTEMPT_ABORTED;
	} else if (r < 0) {
		attempt.outcome = NT_ATTEMPT_LATER;
		attempt.reason = "the Kubernetes API server does not answer";
	} else if (reply->status / 100 == 2) {
		attempt.outcome = NT_ATTEMPT_TAKEN;
	} else if (reply->status == 403 || reply->status == 400 || reply->status == 404 ||
		   reply->status == 405 || reply->status == 422) {
		attempt.outcome = NT_ATTEMPT_REFUSED;
	} else {
		/* 401: the token is being rotated. 409: a concurrent update. 429, 5xx. */
		attempt.outcome = NT_ATTEMPT_LATER;
		attempt.reason = "the Kubernetes API server is busy";
	}
	return attempt;
}

static int call(struct sending *sending, enum nt_kube_method method, const char *path,
		const json_t *document, struct nt_kube_reply *reply)
{
	nt_autobuf struct nt_buf body = {0};
	int r;

	if (document) {
		r = nt_json_dump(document, false, &body);
		if (r < 0)
			return r;
	}
	r = nt_kube_call(sending->kube,
			 &(struct nt_kube_request){
				 .method = method,
				 .path = path,
				 .body = document ? body.data : NULL,
				 .body_len = body.len,
				 .timeout_ns = sending->notice->timeout_ns,
				 .max_bytes = OBJECT_BYTES,
			 },
			 reply);
	if (r == -ENOMEM)
		return r;
	sending->attempt = weigh(r, reply);
	return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Names are sound (nt_kube_name_is_sound()): they need no escapes. */
static int write_path(struct nt_buf *path, const char *node)
{
	return nt_buf_printf(path, "/api/v1/nodes/%s", node);
}

static int read_node(struct sending *sending, const char *name, json_t **ret_node)
{
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	int r;

	r = write_path(&path, name);
	if (r == 0)
		r = call(sending, NT_KUBE_GET, (const char *)path.data, NULL, &reply);
	if (r < 0 || sending->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	r = nt_json_load(reply.body.data, reply.body.len, ret_node);
	if (r == -EBADMSG) {
		sending->attempt.outcome = NT_ATTEMPT_REFUSED;
		return 0;
	}
	return r;
}

static int post_event(struct sending *sending, const struct nt_kube_object *object, size_t number)
{
	nt_autojson json_t *event =
		nt_kube_event(sending->message, sending->notice->id, number, object);
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	int r;

	if (!event)
		return -ENOMEM;
	r = nt_buf_printf(&path, "/api/v1/namespaces/%s/events",
			  nt_json_get_text(json_object_get(event, "metadata"), "namespace", ""));
	if (r == 0)
		r = call(sending, NT_KUBE_POST, (const char *)path.data, event, &reply);
	/* Created by an earlier attempt. */
	if (r == 0 && reply.status == 409)
		sending->attempt.outcome = NT_ATTEMPT_TAKEN;
	return r;
}

static int patch_condition(struct sending *sending, const char *name, const json_t *node)
{
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *patch = NULL;
	int r;

	r = nt_kube_condition_patch(node, sending->message, &patch);
	if (r < 0 || !patch)
		return r;
	r = write_path(&path, name);
	if (r == 0)
		r = nt_buf_printf(&path, "/status");
	return r < 0 ? r : call(sending, NT_KUBE_PATCH, (const char *)path.data, patch, &reply);
}

static int send_object(struct sending *sending, const struct nt_kube_object *object, size_t number)
{
	bool is_node = !object->namespace;
	nt_autojson json_t *node = NULL;
	int r;

	if (is_node && sending->notice->conditions) {
		r = read_node(sending, object->name, &node);
		if (r < 0 || !node)
			return r;
	}
	r = post_event(sending, object, number);
	if (r < 0 || !node || sending->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	return patch_condition(sending, object->name, node);
}

/* ---- messages -------------------------------------------------------------------------------- */

int nt_kube_notice_send(struct nt_kube *kube, const struct nt_kube_notice *notice,
			struct nt_attempt *ret_attempt, size_t *ret_left_out)
{
	struct nt_kube_object object[NT_KUBE_EVENT_OBJECTS];
	struct nt_attempt whole = {.outcome = NT_ATTEMPT_TAKEN};
	nt_autojson json_t *message = NULL;
	struct sending sending = {.kube = kube, .notice = notice};
	size_t n, notified = 0;
	int r;

	r = nt_json_load(notice->body, notice->body_len, &message);
	if (r == -EBADMSG) {
		*ret_attempt = (struct nt_attempt){.outcome = NT_ATTEMPT_REFUSED,
						   .reason = "it is no message"};
		return 0;
	}
	if (r < 0)
		return r;
	sending.message = message;
	n = nt_kube_objects(json_object_get(message, "data"), object, &sending.left_out);
	for (size_t i = 0; i < n; i++) {
		r = send_object(&sending, &object[i], i);
		if (r < 0)
			return r;
		if (sending.attempt.outcome == NT_ATTEMPT_TAKEN) {
			notified++;
		} else if (sending.attempt.outcome == NT_ATTEMPT_REFUSED) {
			/* For example a deleted namespace; other objects still get their events. */
			sending.left_out++;
			whole = sending.attempt;
		} else {
			*ret_attempt = sending.attempt;
			return 0;
		}
	}
	*ret_left_out += sending.left_out;
	if (notified)
		whole.outcome = NT_ATTEMPT_TAKEN;
	*ret_attempt = whole;
	return 0;
}
