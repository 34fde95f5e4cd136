/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by httpd*.c only. */
#ifndef NT_COMMON_HTTP_HTTPD_IMPL_H
#define NT_COMMON_HTTP_HTTPD_IMPL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/http/httpd.h"
#include "common/http/httpd_slots.h"
#include "common/http/httpd_stream.h"
#include "common/http/limiter.h"
#include "common/http/session.h"
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
	void (*on_write)(void *data, const struct nt_httpd_write *write);
	uint16_t port;
	uint64_t max_body_bytes;
	uint32_t request_id_base;
	atomic_uint request_count;
	struct nt_tokens *tokens; /* NULL: no authorization */
	struct nt_limiter limiter;
	struct nt_sessions sessions;
	struct nt_buf cert, key, client_ca; /* PEM, with a NUL at the end */
	bool is_client_cert_optional;

	struct nt_slots slots;
	struct nt_streams streams;
	bool reaper_runs;
	pthread_t reaper;

	atomic_ullong requests[6], connections, connections_now;
	atomic_ullong auth_failures, auth_limited, certs_refused, bodies_too_large, handler_errors;
};

struct nt_httpd_request {
	struct nt_httpd *httpd;
	struct MHD_Connection *connection;
	struct nt_target target;
	int target_error; /* of nt_target_parse() */
	const char *target_end; /* the NUL of what was parsed, in libmicrohttpd's buffer */
	const char *method, *version;
	const struct nt_httpd_route *route;
	struct nt_httpd_identity identity;
	unsigned char token_sum[NT_TOKEN_SUM_BYTES]; /* of the identity */
	const char *session; /* the id in its cookie, in libmicrohttpd's buffer; NULL: none */
	uint64_t session_expires_ns; /* monotonic */
	const char *segment[NT_HTTPD_MAX_SEGMENTS];
	bool begun;
	bool is_write; /* for on_write */
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

/* Fills the identity of the request, or its refusal. -ENOMEM. */
NT_MUST_CHECK int nt_httpd_authorize(struct nt_httpd *httpd, struct nt_httpd_request *request);

/* NULL, or why the client's certificate does not permit the request. */
const char *nt_httpd_check_certificate(const struct nt_httpd *httpd,
				       const struct nt_httpd_request *request);

/* The common name in the client's certificate, if it is valid, or "". */
void nt_httpd_certificate_name(const struct nt_httpd *httpd, const struct nt_httpd_request *request,
			       char text[NT_HTTPD_CERTIFICATE_BYTES]);

/* What authorized the request. */
struct nt_credential nt_httpd_credential(const struct nt_httpd_request *request);
/* Whether it would still do so; data is the struct nt_httpd. A session is in use then. */
bool nt_httpd_still_authorizes(void *data, const struct nt_credential *credential);

/* Adds the headers that protect browsers, such as the Content-Security-Policy. */
void nt_httpd_add_protection(struct MHD_Response *response, const char *content_type);

/* Calls on_write, if the request is one for it. */
void nt_httpd_report_write(const struct nt_httpd *httpd, const struct nt_httpd_request *request,
			   unsigned int status);

#endif
