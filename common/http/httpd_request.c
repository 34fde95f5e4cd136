/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests: accessors for handlers, and all checks before a handler is called. */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/http/httpd_impl.h"
#include "common/system/json_append.h"

enum {
	RETRY_AFTER_S = 5,
};

/* ---- accessors for handlers ------------------------------------------------------------------ */

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

int nt_httpd_problem(struct nt_httpd_reply *reply, const struct nt_httpd_request *request,
		     unsigned int status, const char *code, const char *fmt, ...)
{
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
	/* A detail cut within a character is invalid JSON text: o* omits it. */
	problem = json_pack("{s:s, s:s, s:i, s:o*, s:s, s:s}", "type", "about:blank", "title",
			    MHD_get_reason_phrase_for(status), "status", (int)status, "detail",
			    json_string(detail), "code", code, "request_id", request->id);
	if (!problem)
		return -ENOMEM;
	r = nt_json_append(problem, JSON_COMPACT, &reply->body);
	json_decref(problem);
	return r;
}

/* ---- rejecting ------------------------------------------------------------------------------- */

/* Whether a range in the comma-separated list of `Accept` includes the type. */
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
	size_t segments = 0;

	if (!target->segments)
		return strcmp(path, "/") == 0;
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
	}
	return !*path;
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
					"this path allows only %s", request->allow);
	return nt_httpd_problem(&request->refusal, request, 404, "no_such_path",
				"no such path; /openapi.yaml lists the paths");
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
					"unknown parameter '%.64s'; parameters of this path: %s",
					request->target.query[i].name,
					request->route->query ? request->route->query : "none");
	}
	return 0;
}

/* Headers that determine the request's framing, its host and its sender. */
struct framing {
	size_t bytes, lengths, encodings, hosts, authorizations, cookies;
	const char *encoding, *host;
	bool bad_name;
};

static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
			return false;
	}
	return len > 0;
}

static enum MHD_Result add_header(void *data, enum MHD_ValueKind kind, const char *key,
				  size_t key_size, const char *value, size_t value_size)
{
	struct framing *framing = data;

	(void)kind;
	framing->bytes += key_size + value_size + 4;
	framing->bad_name |= !is_token(key, key_size);
	if (!strcasecmp(key, "Content-Length")) {
		framing->lengths++;
	} else if (!strcasecmp(key, "Transfer-Encoding")) {
		framing->encodings++;
		framing->encoding = value;
	} else if (!strcasecmp(key, "Host")) {
		framing->hosts++;
		framing->host = value;
	} else if (!strcasecmp(key, "Authorization")) {
		framing->authorizations++;
	} else if (!strcasecmp(key, "Cookie")) {
		framing->cookies++;
	}
	return MHD_YES;
}

/* The defect, or NULL. Another server might find a different request in the same stream. */
static const char *check_framing(const struct framing *framing, const char *version)
{
	if (framing->bad_name)
		return "a header name has characters that are not allowed";
	if (framing->lengths && framing->encodings)
		return "Content-Length and Transfer-Encoding are mutually exclusive";
	if (framing->lengths > 1)
		return "Content-Length is given more than once";
	if (framing->encodings > 1)
		return "Transfer-Encoding is given more than once";
	if (framing->encodings && (!framing->encoding || strcasecmp(framing->encoding, "chunked")))
		return "Transfer-Encoding must be chunked";
	if (framing->encodings && strcmp(version, "HTTP/1.0") == 0)
		return "Transfer-Encoding is not allowed in HTTP/1.0";
	if (framing->hosts > 1)
		return "Host is given more than once";
	if (framing->authorizations > 1)
		return "Authorization is given more than once";
	if (framing->cookies > 1)
		return "Cookie is given more than once";
	/* An empty one belongs to a target without a host. */
	if (framing->host && *framing->host &&
	    !nt_target_host_is_sound(framing->host, strlen(framing->host)))
		return "Host must be HOST or HOST:PORT";
	return NULL;
}

/* The size of the whole header as received; a lower bound if that is unknown. */
static size_t header_bytes(const struct nt_httpd_request *request, const struct framing *framing)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	size_t all = info ? info->header_size : 0;

	all = all > NT_TARGET_MAX_BYTES ? all - NT_TARGET_MAX_BYTES : 0;
	return all > framing->bytes ? all : framing->bytes;
}

static int check_headers(struct nt_httpd_request *request)
{
	struct framing framing = {0};
	const char *wrong;
	bool was_last = request->is_last;

	MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, add_header, &framing);
	/* The end of the body is unknown: nothing that follows is read. */
	request->is_last = true;
	wrong = check_framing(&framing, request->version);
	if (wrong)
		return nt_httpd_problem(&request->refusal, request, 400, "bad_header", "%s", wrong);
	if (request->target_error == -ENAMETOOLONG)
		return nt_httpd_problem(&request->refusal, request, 414, "target_too_long",
					"path and query are longer than %d bytes",
					NT_TARGET_MAX_BYTES);
	if (header_bytes(request, &framing) > NT_HTTPD_MAX_HEADERS)
		return nt_httpd_problem(&request->refusal, request, 431, "headers_too_large",
					"the headers are larger than %d bytes",
					NT_HTTPD_MAX_HEADERS);
	request->is_last = was_last;
	if (request->target_error)
		return nt_httpd_problem(
			&request->refusal, request, 400, "bad_target", "%s",
			request->target_error == -EEXIST  ? "a parameter is given more than once"
			: request->target_error == -E2BIG ? "too many path segments or parameters"
			: request->target_error == -EADDRNOTAVAIL
				? "the host in the request target must be HOST or HOST:PORT"
				: "the path or query is not percent-encoded UTF-8");
	return 0;
}

static int check_body_size(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *length = nt_httpd_header(request, "Content-Length");
	uint64_t body_bytes = 0;

	if (!length || (nt_parse_u64(length, strlen(length), 0, UINT64_MAX, &body_bytes) == 0 &&
			body_bytes <= httpd->max_body_bytes))
		return 0;
	atomic_fetch_add(&httpd->bodies_too_large, 1);
	request->is_last = true;
	return nt_httpd_problem(&request->refusal, request, 413, "body_too_large",
				"the body is larger than %llu bytes",
				(unsigned long long)httpd->max_body_bytes);
}

static int check_slot(struct nt_httpd_request *request)
{
	if (!request->is_reserved || request->route->is_vital)
		return 0;
	request->refusal.retry_after_s = RETRY_AFTER_S;
	return nt_httpd_problem(&request->refusal, request, 503, "busy",
				"the limit of connections is reached; try again later");
}

int nt_httpd_check(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *accept, *type;
	int r;

	r = check_headers(request);
	if (r < 0 || request->refusal.status)
		return r;
	r = check_body_size(httpd, request);
	if (r < 0 || request->refusal.status)
		return r;
	r = find_route(httpd, request);
	if (r < 0 || request->refusal.status)
		return r;
	r = check_slot(request);
	if (r < 0 || request->refusal.status)
		return r;
	r = nt_httpd_authorize(httpd, request);
	if (r < 0 || request->refusal.status)
		return r;
	accept = nt_httpd_header(request, "Accept");
	if (accept && !is_acceptable(accept, request->route->content_type))
		return nt_httpd_problem(&request->refusal, request, 406, "not_acceptable",
					"this path has the content type %s, which is not in Accept",
					request->route->content_type);
	type = nt_httpd_header(request, "Content-Type");
	if (!strcmp(request->route->method, "POST") && type &&
	    (strncasecmp(type, "application/json", 16) != 0 ||
	     (type[16] && !strchr("; \t", type[16]))))
		return nt_httpd_problem(&request->refusal, request, 415, "not_json",
					"the Content-Type must be application/json");
	return check_query(request);
}
