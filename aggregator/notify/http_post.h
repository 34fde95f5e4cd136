/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One POST of JSON to a receiver. Redirects are not followed. */
#ifndef NT_AGGREGATOR_NOTIFY_HTTP_POST_H
#define NT_AGGREGATOR_NOTIFY_HTTP_POST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_HTTP_POST_MAX_REPLY = 64 << 10, /* bytes read of a response */
};

struct nt_http_post {
	const char *url; /* a secret: never logged */
	const void *body;
	size_t body_len;
	const char *grpc_socket; /* a gRPC call on this Unix socket, not JSON; NULL: it is not */
	const char *const *header; /* "Name: value", besides Content-Type */
	size_t headers;
	uint64_t connect_timeout_ns, total_timeout_ns;
	const atomic_bool *abort; /* true aborts the attempt; NULL: nothing does */
};

struct nt_http_post_reply {
	long status; /* 0: no response came */
	bool aborted;
	const char *reason; /* a constant: why there is no response */
	uint64_t retry_after_ns; /* 0: none */
	long grpc_status; /* of a gRPC call; -1: none came */
	struct nt_buf body; /* cut at NT_HTTP_POST_MAX_REPLY, NUL-terminated */
};

void nt_http_post_reply_release(struct nt_http_post_reply *reply);
#define nt_autopostreply __attribute__((cleanup(nt_http_post_reply_release)))

/* Whether the URL is http or https and has a host. */
bool nt_http_url_is_valid(const char *url);

/* Blocks. Needs curl_global_init(). *ret_reply must be zeroed; the caller releases it. -ENOMEM. */
NT_MUST_CHECK int nt_http_post_send(const struct nt_http_post *post,
				    struct nt_http_post_reply *ret_reply);

/* What the status alone decides: 2xx is taken; none, 408, 429 and 5xx are to be retried. */
void nt_http_post_judge(const struct nt_http_post_reply *reply, struct nt_attempt *ret_attempt);

#endif
