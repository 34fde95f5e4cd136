/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An HTTP server with a route table. The server itself handles all that is not specific to a route:
 * authorization by token or session, 400 to 431 for invalid requests, HEAD, request ids. Every error is an RFC 9457
 * problem document. Handlers run in the server's threads and must not block.
 */
#ifndef NT_COMMON_HTTP_HTTPD_H
#define NT_COMMON_HTTP_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/http/event_ring.h"
#include "common/http/httpd_error.h"
#include "common/http/session.h"
#include "common/http/token.h"

enum {
	NT_HTTPD_MAX_HEADERS = 16 << 10, /* total bytes; 431 beyond */
	NT_HTTPD_MAX_SEGMENTS = 4, /* {…} in one route */
	NT_HTTPD_ADDRESS_BYTES = 46, /* an IPv6 address as text, and a NUL */
	NT_HTTPD_CERTIFICATE_BYTES = 65, /* the common name in a certificate, and a NUL */
	NT_HTTPD_PATH_BYTES = 256, /* of the path in a struct nt_httpd_write */
};

enum nt_httpd_access {
	NT_HTTPD_OPEN, /* no token needed */
	NT_HTTPD_READ, /* needs a token or a session of any scope */
	NT_HTTPD_ADMIN, /* needs one of scope admin: 403 for others */
};

struct nt_event_ring;
struct nt_httpd_request; /* valid during the handler */

/* The n-th {…} of the route, decoded, never NULL. */
const char *nt_httpd_segment(const struct nt_httpd_request *request, size_t n);
/* A query parameter, decoded, or NULL. */
const char *nt_httpd_query(const struct nt_httpd_request *request, const char *name);
/* A header, or NULL. */
const char *nt_httpd_header(const struct nt_httpd_request *request, const char *name);
const void *nt_httpd_body(const struct nt_httpd_request *request, size_t *ret_len);

/* Who sends a request. */
struct nt_httpd_identity {
	enum nt_token_scope scope; /* NT_TOKEN_NONE: nobody was identified */
	bool by_cookie; /* a session's, not a token in the request itself */
	char name[NT_TOKEN_NAME_BYTES]; /* of the token; "line N" for one without a name */
};

const struct nt_httpd_identity *nt_httpd_identity(const struct nt_httpd_request *request);

struct nt_httpd_reply {
	unsigned int status; /* 200 unless the handler sets it */
	const char *content_type; /* the route's unless set; a constant */
	struct nt_buf body;
	char etag[96]; /* without quotes; "": none. The server compares If-None-Match with it */
	uint32_t retry_after_s;
	char cookie[160]; /* a Set-Cookie header; "": none */
	struct nt_event_wish stream;
};

/*
 * Makes the reply a problem document. `code` is a constant for programs, the rest is for people.
 * Returns 0, or -ENOMEM; the handler returns the result in either case.
 */
NT_MUST_CHECK int nt_httpd_problem(struct nt_httpd_reply *reply,
				   const struct nt_httpd_request *request, unsigned int status,
				   const char *code, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* What a client may know of its session. */
struct nt_httpd_session {
	enum nt_token_scope scope;
	char csrf[NT_SESSION_TEXT_BYTES]; /* for the header X-CSRF-Token; "": none is needed */
	uint64_t expires_real_ns; /* 0: never */
};

/*
 * Begins a session for the token of the request, and sets the cookie of the reply. A session that
 * the request already has is ended. -EACCES: the request has no token of its own.
 */
NT_MUST_CHECK int nt_httpd_session_begin(const struct nt_httpd_request *request,
					 struct nt_httpd_reply *reply,
					 struct nt_httpd_session *ret_session);
/* The session of the request's cookie. -ENOENT: the request has none. */
NT_MUST_CHECK int nt_httpd_session_get(const struct nt_httpd_request *request,
				       struct nt_httpd_session *ret_session);
/* Ends it, and removes the cookie from the client. -ENOENT: the request has none. */
NT_MUST_CHECK int nt_httpd_session_end(const struct nt_httpd_request *request,
				       struct nt_httpd_reply *reply);

struct nt_httpd_route {
	const char *method; /* "GET", which serves HEAD too; "POST" … */
	const char *path; /* "/api/v1/jobs/{id}/ranks": {…} is one segment */
	enum nt_httpd_access access;
	const char *content_type; /* of its replies with status 200 */
	const char *query; /* accepted parameters, separated by blanks; others are a 400 */
	/* A negative errno makes a 500 and is counted. */
	int (*handle)(void *data, const struct nt_httpd_request *request,
		      struct nt_httpd_reply *reply);
	bool is_vital; /* also served when all ordinary connections are in use; others: 503 */
	/* A parameter with which an open route needs what NT_HTTPD_READ needs; NULL: none. */
	const char *guarded;
};

/*
 * A request other than GET and HEAD to a route that is not open. Requests that are over the limit of
 * failures are not among them.
 */
struct nt_httpd_write {
	const struct nt_httpd_identity *identity;
	const char *
		certificate; /* the common name in the client's certificate, printable and without quotes; "": none */
	const char *address; /* of the client; "" if unknown */
	const char *method, *request_id;
	const char *path; /* percent-encoded: visible ASCII characters without quotes */
	const void *body; /* empty in a request that was refused before its body was read */
	size_t body_len;
	unsigned int status; /* of the reply; from 400 on the request was refused */
};

struct nt_httpd_options {
	const char *listen; /* "ADDRESS:PORT", IPv6 in brackets; port 0: any */
	const struct nt_httpd_route *route; /* borrowed */
	size_t routes;
	void *data; /* for the handlers and for on_write */
	/* Called in the server's threads before the reply is sent; must not block. May be NULL. */
	void (*on_write)(void *data, const struct nt_httpd_write *write);
	/*
	 * The form is that of nt_tokens_open(). Reloaded when it changes. If missing, it is created
	 * with one new token, mode 0600. NULL: no authorization.
	 */
	const char *token_file;
	const char *tls_cert_file, *tls_key_file; /* PEM; both or neither */
	/*
	 * PEM; requires TLS. Routes that are not open then need a client certificate of one of
	 * these authorities, beside the token. NULL: no certificates of clients.
	 */
	const char *tls_client_ca_file;
	bool tls_client_optional; /* clients without a certificate are accepted */
	/*
	 * 0: 1024, 256; fewer if the limit of open files is lower. Connections beyond either get
	 * one of 128 reserved slots: they have 2 s, and only vital routes answer them.
	 */
	uint32_t max_connections, max_connections_per_ip;
	/* Absolute; arriving bytes do not extend them. */
	uint64_t header_timeout_ns; /* from accept to the end of the header; 0: 5 s */
	uint64_t request_timeout_ns; /* from there to the end of the answer; 0: 15 s */
	uint64_t max_body_bytes; /* 0: 64 KiB; 413 beyond */
	/* Of replies over 64 KiB that are not sent yet; a quarter for an address; 0: 256 MiB; 503 beyond. */
	uint64_t max_replies_bytes;
	uint32_t max_auth_failures; /* per address and minute, then 429; 0: 60 */
	struct nt_event_ring *events; /* borrowed, for streams; NULL: none */
	uint32_t max_streams, max_streams_per_ip; /* 0: 128, 32 */
	uint64_t stream_ping_ns; /* 0: 15 s; a client that reads nothing is cut off after three */
	uint64_t stream_life_ns; /* then a stream ends; 0: 1 h */
};

struct nt_httpd;

NT_MUST_CHECK int nt_httpd_start(const struct nt_httpd_options *options,
				 struct nt_httpd **ret_httpd, struct nt_httpd_error *ret_error);
void nt_httpd_stop(struct nt_httpd *httpd);
NT_DEFINE_AUTO(nt_httpd, nt_httpd_stop)

uint16_t nt_httpd_port(const struct nt_httpd *httpd);

/* Monotonic since start, except connections_now and streams_now. */
struct nt_httpd_stats {
	uint64_t requests[6]; /* by the first digit of the status */
	uint64_t connections, connections_now;
	uint64_t reaped; /* connections closed because a request took too long */
	uint64_t over_limit; /* connections beyond the limits, in reserved slots */
	uint64_t evicted; /* of those: closed in favour of a later one */
	uint64_t auth_failures, auth_limited; /* 401 and 429 */
	uint64_t certs_refused; /* 403: the client certificate is missing or invalid */
	uint64_t bodies_too_large;
	uint64_t handler_errors; /* 500 */
	struct nt_sessions_stats sessions;
	uint64_t streams, streams_refused; /* opened; refused: over the limits */
	uint64_t streams_dropped; /* ended because the client read too slowly */
	uint64_t streams_now;
	bool tokens_are_old; /* the token file is invalid: the previous tokens stay valid */
};

void nt_httpd_stats(struct nt_httpd *httpd, struct nt_httpd_stats *ret_stats);

/* As tokens_are_old above; ret_error, which may be NULL, then has the reason. */
bool nt_httpd_tokens_are_old(struct nt_httpd *httpd, struct nt_token_error *ret_error);

#endif
