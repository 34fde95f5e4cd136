/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_notice.h"

#include <errno.h>
#include <stdio.h>

#include "aggregator/notify/kube_condition.h"
#include "aggregator/notify/kube_event.h"
#include "common/system/log.h"
#include "proto/json.h"

struct sending {
	struct nt_kube_try try;
	const struct nt_kube_notice *notice;
	json_t *message;
	size_t left_out;
};

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Names are sound (nt_kube_name_is_sound()): they need no escapes. */
static int write_path(struct nt_buf *path, const char *node)
{
	return nt_buf_printf(path, "/api/v1/nodes/%s", node);
}

static int read_node(struct sending *sending, const char *name, json_t **ret_node)
{
	nt_autobuf struct nt_buf path = {0};
	int r = write_path(&path, name);

	return r == 0 ? nt_kube_try_get(&sending->try, (const char *)path.data, ret_node) : r;
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
		r = nt_kube_try_call(&sending->try, NT_KUBE_POST, (const char *)path.data, event,
				     &reply);
	/* Created by an earlier attempt. */
	if (r == 0 && reply.status == 409)
		sending->try.attempt.outcome = NT_ATTEMPT_TAKEN;
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
	return r < 0 ? r
		     : nt_kube_try_call(&sending->try, NT_KUBE_PATCH, (const char *)path.data,
					patch, &reply);
}

static int send_object(struct sending *sending, const struct nt_kube_object *object, size_t number)
{
	bool is_node = !object->namespace;
	nt_autojson json_t *node = NULL;
	struct nt_attempt taken;
	int r;

	if (is_node && sending->notice->conditions) {
		r = read_node(sending, object->name, &node);
		if (r < 0 || !node)
			return r;
	}
	r = post_event(sending, object, number);
	if (r == 0 && node && sending->try.attempt.outcome == NT_ATTEMPT_TAKEN)
		r = patch_condition(sending, object->name, node);
	if (r < 0 || !is_node || sending->try.attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	taken = sending->try.attempt;
	r = nt_kube_action_note(sending->notice->action, &sending->try, object->name,
				sending->message);
	/* Event and condition are there, and the end must follow: a refused action does not undo that. */
	if (r == 0 && sending->try.attempt.outcome == NT_ATTEMPT_REFUSED) {
		(void)nt_warn(0, "the action on node '%s' is refused: %s", object->name,
			      sending->try.attempt.reason);
		sending->try.attempt = taken;
	}
	return r;
}

/* ---- messages -------------------------------------------------------------------------------- */

int nt_kube_notice_send(struct nt_kube *kube, const struct nt_kube_notice *notice,
			struct nt_attempt *ret_attempt, size_t *ret_left_out)
{
	struct nt_kube_object object[NT_KUBE_EVENT_OBJECTS];
	struct nt_attempt whole = {.outcome = NT_ATTEMPT_TAKEN};
	nt_autojson json_t *message = NULL;
	struct sending sending = {
		.try = {.kube = kube, .timeout_ns = notice->timeout_ns},
		.notice = notice,
	};
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
		if (sending.try.attempt.outcome == NT_ATTEMPT_TAKEN) {
			notified++;
		} else if (sending.try.attempt.outcome == NT_ATTEMPT_REFUSED) {
			/* For example a deleted namespace; other objects still get their events. */
			sending.left_out++;
			whole = sending.try.attempt;
		} else {
			*ret_attempt = sending.try.attempt;
			return 0;
		}
	}
	*ret_left_out += sending.left_out;
	if (notified)
		whole.outcome = NT_ATTEMPT_TAKEN;
	*ret_attempt = whole;
	return 0;
}
