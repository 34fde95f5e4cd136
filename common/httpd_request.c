/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request: what a handler may ask of it, and all the reasons to refuse it before there is one. */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/httpd_impl.h"
#include "common/num.h"

/* ---- what a handler asks ------------------------------------------------------------------------ */

const char *nt_httpd_segment(const struct nt_httpd_request *request, size_t n)
{
	return n < NT_HTTPD_MAX_SEGMENTS && request->segment[n] ? request->segment[n] : "";
}

const char *nt_httpd_query(const struct nt_httpd_request *request, const char *name)
{
	return nt_target_query(&request->target, name);
}

const char *nt_httpd_header(const struct nt_httpd_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const void *nt_httpd_body(const struct nt_httpd_request *request, size_t *ret_len)
{
	*ret_len = request->body.len;
	return request->body.data;
}

struct sink {
	struct nt_buf *buf;
	int error; /* sticks: jansson does not pass on every one */
};

static int append(const char *text, size_t len, void *data)
{
	struct sink *sink = data;

	if (!sink->error)
		sink->error = nt_buf_append(sink->buf, text, len);
	return sink->error;
}

int nt_httpd_problem(struct nt_httpd_reply *reply, const struct nt_httpd_request *request,
		     unsigned int status, const char *code, const char *fmt, ...)
{
	struct sink sink = {.buf = &reply->body};
	char detail[512];
	json_t *problem;
	va_list ap;
	int r;

	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);

	reply->status = status;
	reply->content_type = "application/problem+json";
	reply->etag[0] = '\0';
	nt_buf_clear(&reply->body);
	/* A detail that was cut inside a character is no text for JSON: o* leaves it out. */
	problem = json_pack("{s:s, s:s, s:i, s:o*, s:s, s:s}", "type", "about:blank", "title",
			    MHD_get_reason_phrase_for(status), "status", (int)status, "detail",
			    json_string(detail), "code", code, "request_id", request->id);
	if (!problem)
		return -ENOMEM;
	r = json_dump_callback(problem, append, &sink, JSON_COMPACT) ? -ENOMEM : sink.error;
	json_decref(problem);
	return r;
}

/* ---- refusing ----------------------------------------------------------------------------------- */

/* In a comma-separated list of `Accept`, is there a range that takes the type? */
static bool is_acceptable(const char *accept, const char *type)
{
	size_t type_len = strcspn(type, ";");
	size_t main_len = strcspn(type, "/");

	while (*accept) {
		size_t item = strcspn(accept, ",");
		const char *range = accept + strspn(accept, " \t");
		size_t len = strcspn(range, ",; \t");
		const char *q = memmem(accept, item, ";q=0", 4);
		bool zero = q && strspn(q + 4, ".0") == strcspn(q + 4, ", \t;");
		bool takes = (len == 3 && !memcmp(range, "*/*", 3)) ||
			     (len == main_len + 2 && !memcmp(range, type, main_len) &&
			      !memcmp(range + main_len, "/*", 2)) ||
			     (len == type_len && !strncasecmp(range, type, len));

		if (takes && !zero)
			return true;
		accept += item;
		accept += *accept == ',';
	}
	return false;
}

static bool path_matches(const char *path, const struct nt_target *target, const char **segment)
{
	size_t n = 0, segments = 0;

	for (size_t i = 0; i < target->segments; i++) {
		size_t len;

		if (*path++ != '/')
			return false;
		len = strcspn(path, "/");
		if (path[0] == '{') {
			if (!*target->segment[i] || segments == NT_HTTPD_MAX_SEGMENTS)
				return false;
			segment[segments++] = target->segment[i];
		} else if (strlen(target->segment[i]) != len ||
			   memcmp(path, target->segment[i], len) != 0) {
			return false;
		}
		path += len;
		n++;
	}
	return n && !*path;
}

static bool method_matches(const char *route, const char *method)
{
	return !strcmp(route, method) || (!strcmp(route, "GET") && !strcmp(method, "HEAD"));
}

static void allow(struct nt_httpd_request *request, const char *method)
{
	size_t len = strlen(request->allow);
	const char *more = !strcmp(method, "GET") ? "GET, HEAD" : method;

	(void)snprintf(request->allow + len, sizeof(request->allow) - len, "%s%s", len ? ", " : "",
		       more);
}

static int find_route(const struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	for (size_t i = 0; i < httpd->routes; i++) {
		const struct nt_httpd_route *route = &httpd->route[i];

		if (!path_matches(route->path, &request->target, request->segment))
			continue;
		if (method_matches(route->method, request->method)) {
			request->route = route;
			return 0;
		}
		allow(request, route->method);
	}
	if (request->allow[0])
		return nt_httpd_problem(&request->refusal, request, 405, "method_not_allowed",
					"this path takes %s", request->allow);
	return nt_httpd_problem(&request->refusal, request, 404, "no_such_path",
				"there is nothing at this path");
}

static int check_auth(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *header = nt_httpd_header(request, "Authorization");
	enum nt_token_scope scope = NT_TOKEN_NONE;
	const union MHD_ConnectionInfo *peer;
	uint32_t wait_s = 1;

	if (!httpd->tokens || request->route->access == NT_HTTPD_OPEN)
		return 0;
	if (header && !strncasecmp(header, "Bearer ", 7)) {
		const char *bearer = header + 7 + strspn(header + 7, " ");

		scope = nt_tokens_check(httpd->tokens, bearer, strlen(bearer), nt_clock_mono_ns());
	}
	if (scope == NT_TOKEN_READ && request->route->access == NT_HTTPD_ADMIN)
		return nt_httpd_problem(&request->refusal, request, 403, "scope_read",
					"this token may only read");
	if (scope != NT_TOKEN_NONE)
		return 0;

	peer = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (!nt_limiter_allow(&httpd->limiter, peer ? peer->client_addr : NULL, nt_clock_mono_ns(),
			      &wait_s)) {
		atomic_fetch_add(&httpd->auth_limited, 1);
		request->refusal.retry_after_s = wait_s;
		return nt_httpd_problem(
			&request->refusal, request, 429, "too_many_failures",
			"too many requests without a valid token from this address");
	}
	atomic_fetch_add(&httpd->auth_failures, 1);
	return nt_httpd_problem(&request->refusal, request, 401,
				header ? "invalid_token" : "no_token",
				"%s; send \"Authorization: Bearer TOKEN\" with a token of the "
				"aggregator's token file",
				header ? "the token is not valid" : "a token is needed");
}

static bool takes_parameter(const struct nt_httpd_route *route, const char *name)
{
	const char *at = route->query ? route->query : "";
	size_t len = strlen(name);

	while (*at) {
		size_t word = strcspn(at, " ");

		if (word == len && !memcmp(at, name, len))
			return true;
		at += word;
		at += strspn(at, " ");
	}
	return false;
}

static int check_query(struct nt_httpd_request *request)
{
	for (size_t i = 0; i < request->target.queries; i++) {
		if (takes_parameter(request->route, request->target.query[i].name))
			continue;
		return nt_httpd_problem(&request->refusal, request, 400, "unknown_parameter",
					"there is no parameter '%.64s' here; known: %s",
					request->target.query[i].name,
					request->route->query ? request->route->query : "none");
	}
	return 0;
}

static enum MHD_Result add_size(void *data, enum MHD_ValueKind kind, const char *key,
				size_t key_size, const char *value, size_t value_size)
{
	size_t *total = data;

	(void)kind;
	(void)key;
	(void)value;
	*total += key_size + value_size + 4;
	return MHD_YES;
}

static int check_sizes(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *length = nt_httpd_header(request, "Content-Length");
	uint64_t body_bytes = 0;
	size_t headers = 0;

	MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, add_size, &headers);
	if (request->target_error == -ENAMETOOLONG)
		return nt_httpd_problem(&request->refusal, request, 414, "target_too_long",
					"the path and query are over %d bytes",
					NT_TARGET_MAX_BYTES);
	if (headers > NT_HTTPD_MAX_HEADERS)
		return nt_httpd_problem(&request->refusal, request, 431, "headers_too_large",
					"the headers are over %d bytes", NT_HTTPD_MAX_HEADERS);
	if (request->target_error)
		return nt_httpd_problem(&request->refusal, request, 400, "bad_target", "%s",
					request->target_error == -EEXIST
						? "a parameter is given twice"
					: request->target_error == -E2BIG
						? "there are too many path segments or parameters"
						: "the path or query is not properly encoded text");
	if (length && (nt_num_u64(length, strlen(length), 0, UINT64_MAX, &body_bytes) < 0 ||
		       body_bytes > httpd->max_body_bytes)) {
		atomic_fetch_add(&httpd->bodies_too_large, 1);
		request->body_too_large = true;
		return nt_httpd_problem(&request->refusal, request, 413, "body_too_large",
					"the body is over %llu bytes",
					(unsigned long long)httpd->max_body_bytes);
	}
	return 0;
}

int nt_httpd_check(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *accept, *type;
	int r;

	r = check_sizes(httpd, request);
	if (r < 0 || request->refusal.status)
		return r;
	r = find_route(httpd, request);
	if (r < 0 || request->refusal.status)
		return r;
	r = check_auth(httpd, request);
	if (r < 0 || request->refusal.status)
		return r;
	accept = nt_httpd_header(request, "Accept");
	if (accept && !is_acceptable(accept, request->route->content_type))
		return nt_httpd_problem(&request->refusal, request, 406, "not_acceptable",
					"this path answers %s", request->route->content_type);
	type = nt_httpd_header(request, "Content-Type");
	if (!strcmp(request->route->method, "POST") && type &&
	    (strncasecmp(type, "application/json", 16) != 0 ||
	     (type[16] && !strchr("; \t", type[16]))))
		return nt_httpd_problem(&request->refusal, request, 415, "not_json",
					"a body here is application/json");
	return check_query(request);
}
