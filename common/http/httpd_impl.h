/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by httpd.c and httpd_request.c only. */
#ifndef NT_COMMON_HTTP_HTTPD_IMPL_H
#define NT_COMMON_HTTP_HTTPD_IMPL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/http/httpd.h"
#include "common/http/httpd_slots.h"
#include "common/http/httpd_stream.h"
#include "common/http/limiter.h"
#include "common/http/target.h"
#include "common/http/token.h"

enum {
	NT_HTTPD_METHODS_BYTES = 128,
};

struct nt_httpd {
	struct MHD_Daemon *daemon;
	const struct nt_httpd_route *route;
	size_t routes;
	void *data;
	uint16_t port;
	uint64_t max_body_bytes;
	uint32_t request_id_base;
	atomic_uint request_count;
	struct nt_tokens *tokens; /* NULL: no authorization */
	struct nt_limiter limiter;
	struct nt_buf cert, key; /* PEM, with a NUL at the end */

	struct nt_slots slots;
	struct nt_streams streams;
	bool reaper_runs;
	pthread_t reaper;

	atomic_ullong requests[6], connections, connections_now;
	atomic_ullong auth_failures, auth_limited, bodies_too_large, handler_errors;
};

struct nt_httpd_request {
	struct MHD_Connection *connection;
	struct nt_target target;
	int target_error; /* of nt_target_parse() */
	const char *target_end; /* the NUL of what was parsed, in libmicrohttpd's buffer */
	const char *method, *version;
	const struct nt_httpd_route *route;
	const char *segment[NT_HTTPD_MAX_SEGMENTS];
	bool begun;
	bool is_reserved; /* its connection has a reserved slot */
	bool is_last; /* its connection is closed after the reply, read or not */
	size_t discarded;
	struct nt_buf body;
	struct nt_httpd_reply refusal; /* status 0: none */
	char allow[NT_HTTPD_METHODS_BYTES]; /* with 405 */
	char id[24];
};

/*
 * Checks the request line and the headers: finds the route, or fills the request's refusal.
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_httpd_check(struct nt_httpd *httpd, struct nt_httpd_request *request);

#endif
