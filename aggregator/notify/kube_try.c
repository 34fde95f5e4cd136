/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_try.h"

#include <errno.h>

#include "proto/json.h"

enum {
	OBJECT_BYTES = 1 << 20,
};

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

int nt_kube_try_call(struct nt_kube_try *try, enum nt_kube_method method, const char *path,
		     const json_t *document, struct nt_kube_reply *ret_reply)
{
	nt_autobuf struct nt_buf body = {0};
	int r;

	if (document) {
		r = nt_json_dump(document, false, &body);
		if (r < 0)
			return r;
	}
	r = nt_kube_call(try->kube,
			 &(struct nt_kube_request){
				 .method = method,
				 .path = path,
				 .body = document ? body.data : NULL,
				 .body_len = body.len,
				 .timeout_ns = try->timeout_ns,
				 .max_bytes = try->max_bytes ? try->max_bytes : OBJECT_BYTES,
			 },
			 ret_reply);
	if (r == -ENOMEM)
		return r;
	try->attempt = weigh(r, ret_reply);
	return 0;
}

int nt_kube_try_get(struct nt_kube_try *try, const char *path, json_t **ret_object)
{
	nt_autokubereply struct nt_kube_reply reply = {0};
	int r = nt_kube_try_call(try, NT_KUBE_GET, path, NULL, &reply);

	if (r < 0 || try->attempt.outcome != NT_ATTEMPT_TAKEN)
		return r;
	r = nt_json_load(reply.body.data, reply.body.len, ret_object);
	if (r == -EBADMSG) {
		try->attempt.outcome = NT_ATTEMPT_REFUSED;
		return 0;
	}
	return r;
}
