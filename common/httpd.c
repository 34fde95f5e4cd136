/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libmicrohttpd behind a route table. Its timeouts only see idle connections: a peer that sends a
 * byte a second keeps a request open for ever. So every connection is in a list with the time by
 * which its request must be done, and a thread of ours shuts late sockets down. libmicrohttpd tells
 * of the end of a connection before it closes the socket; the list's lock is held in both places,
 * so that a descriptor that is shut down here is never somebody else's already.
 */
#include "common/httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/limiter.h"
#include "common/num.h"
#include "common/target.h"
#include "common/token.h"

enum {
	THREADS = 2,
	CONNECTION_MEMORY_BYTES = 48
				  << 10, /* over our own caps, so that we are the ones to answer */
	DISCARD_MAX_BYTES = 1 << 20, /* of a refused body: then the connection is cut */
	PEM_MAX_BYTES = 1 << 20,
	BACKLOG = 256,
	METHODS_BYTES = 128,
};

struct connection {
	struct connection *next, *previous;
	int fd;
	uint64_t deadline_ns; /* monotonic */
};

struct nt_httpd {
	struct MHD_Daemon *daemon;
	const struct nt_httpd_route *route;
	size_t routes;
	void *data;
	uint16_t port;
	uint64_t request_timeout_ns, idle_timeout_ns, max_body_bytes;
	uint32_t request_id_base;
	atomic_uint request_count;
	struct nt_tokens *tokens; /* NULL: everything is open */
	struct nt_limiter limiter;
	struct nt_buf cert, key; /* PEM, with a NUL at the end */

	pthread_mutex_t lock; /* over the list and `stopping` */
	pthread_cond_t wake;
	struct connection *first;
	bool stopping, reaper_runs;
	pthread_t reaper;

	atomic_ullong requests[6], connections, connections_now, reaped;
	atomic_ullong auth_failures, auth_limited, bodies_too_large, handler_errors;
};

struct nt_httpd_request {
	struct MHD_Connection *connection;
	struct nt_target target;
	int target_error; /* of nt_target_parse() */
	const char *method;
	const struct nt_httpd_route *route;
	const char *segment[NT_HTTPD_MAX_SEGMENTS];
	bool begun, body_too_large;
	size_t discarded;
	struct nt_buf body;
	struct nt_httpd_reply refusal; /* status 0: none */
	char allow[METHODS_BYTES]; /* with 405 */
	char id[24];
};

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

static int dump(const char *text, size_t len, void *data)
{
	return nt_buf_append(data, text, len);
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
	/* A detail that was cut inside a character is no text for JSON: s? leaves it out. */
	problem = json_pack("{s:s, s:s, s:i, s:o*, s:s, s:s}", "type", "about:blank", "title",
			    MHD_get_reason_phrase_for(status), "status", (int)status, "detail",
			    json_string(detail), "code", code, "request_id", request->id);
	if (!problem)
		return -ENOMEM;
	r = json_dump_callback(problem, dump, &reply->body, JSON_COMPACT) ? -ENOMEM : 0;
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
			   memcmp(path, target->segment[i], len)) {
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

/* Everything that can be known from the request line and the headers. */
static int refuse(struct nt_httpd *httpd, struct nt_httpd_request *request)
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
	    (strncasecmp(type, "application/json", 16) || (type[16] && !strchr("; \t", type[16]))))
		return nt_httpd_problem(&request->refusal, request, 415, "not_json",
					"a body here is application/json");
	return check_query(request);
}

/* ---- answering ---------------------------------------------------------------------------------- */

static void release_reply(struct nt_httpd_reply *reply)
{
	nt_buf_release(&reply->body);
}

static bool etag_matches(const struct nt_httpd_request *request, const char *etag)
{
	const char *header = nt_httpd_header(request, "If-None-Match");
	char quoted[sizeof(request->refusal.etag) + 3];

	if (!header || !*etag || strcmp(request->route->method, "GET"))
		return false;
	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
	return !strcmp(header, "*") || strstr(header, quoted);
}

static void add_headers(struct MHD_Response *response, const struct nt_httpd_request *request,
			const struct nt_httpd_reply *reply)
{
	char text[128];

	(void)MHD_add_response_header(response, "X-Request-Id", request->id);
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, "Cache-Control",
				      reply->etag[0] ? "no-cache" : "no-store");
	if (reply->content_type && reply->status != 304)
		(void)MHD_add_response_header(response, "Content-Type", reply->content_type);
	if (reply->etag[0]) {
		(void)snprintf(text, sizeof(text), "\"%s\"", reply->etag);
		(void)MHD_add_response_header(response, "ETag", text);
	}
	if (reply->status == 401)
		(void)MHD_add_response_header(response, "WWW-Authenticate",
					      "Bearer realm=\"neutracer\"");
	if (reply->status == 405)
		(void)MHD_add_response_header(response, "Allow", request->allow);
	if (reply->retry_after_s) {
		(void)snprintf(text, sizeof(text), "%u", reply->retry_after_s);
		(void)MHD_add_response_header(response, "Retry-After", text);
	}
	if (request->body_too_large) /* the rest of the body is not read */
		(void)MHD_add_response_header(response, "Connection", "close");
}

/* Consumes the reply's body. */
static enum MHD_Result send_reply(struct nt_httpd *httpd, const struct nt_httpd_request *request,
				  struct nt_httpd_reply *reply)
{
	struct MHD_Response *response;
	enum MHD_Result sent;

	if (reply->status == 304)
		nt_buf_clear(&reply->body);
	response = MHD_create_response_from_buffer(reply->body.len, reply->body.data,
						   reply->body.data ? MHD_RESPMEM_MUST_FREE
								    : MHD_RESPMEM_PERSISTENT);
	if (!response) {
		release_reply(reply);
		return MHD_NO;
	}
	reply->body = (struct nt_buf){0};
	add_headers(response, request, reply);
	sent = MHD_queue_response(request->connection, reply->status, response);
	MHD_destroy_response(response);
	atomic_fetch_add(&httpd->requests[reply->status / 100 % 6], 1);
	return sent;
}

static enum MHD_Result handle(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	struct nt_httpd_reply reply = {
		.status = 200,
		.content_type = request->route->content_type,
	};
	int r;

	r = request->route->handle(httpd->data, request, &reply);
	if (r < 0) {
		atomic_fetch_add(&httpd->handler_errors, 1);
		release_reply(&reply);
		reply = (struct nt_httpd_reply){0};
		if (nt_httpd_problem(&reply, request, 500, "internal", "this request failed: %s",
				     strerrordesc_np(-r)) < 0) {
			release_reply(&reply);
			return MHD_NO;
		}
	} else if (reply.status == 200 && etag_matches(request, reply.etag)) {
		reply.status = 304;
	}
	return send_reply(httpd, request, &reply);
}

static enum MHD_Result begin(struct nt_httpd *httpd, struct nt_httpd_request *request,
			     struct MHD_Connection *connection, const char *method)
{
	request->begun = true;
	request->connection = connection;
	request->method = method;
	(void)snprintf(request->id, sizeof(request->id), "%08x%08x", httpd->request_id_base,
		       atomic_fetch_add(&httpd->request_count, 1));
	if (refuse(httpd, request) < 0)
		return MHD_NO;
	/* Reading the body first lets clients see the answer: most do not look while they send. */
	if (request->body_too_large)
		return send_reply(httpd, request, &request->refusal);
	return MHD_YES;
}

static enum MHD_Result take_body(struct nt_httpd *httpd, struct nt_httpd_request *request,
				 const char *data, size_t *len)
{
	size_t n = *len;

	*len = 0;
	if (!request->refusal.status && request->body.len + n <= httpd->max_body_bytes)
		return nt_buf_append(&request->body, data, n) < 0 ? MHD_NO : MHD_YES;
	if (!request->refusal.status) {
		atomic_fetch_add(&httpd->bodies_too_large, 1);
		if (nt_httpd_problem(&request->refusal, request, 413, "body_too_large",
				     "the body is over %llu bytes",
				     (unsigned long long)httpd->max_body_bytes) < 0)
			return MHD_NO;
	}
	request->discarded += n;
	return request->discarded > DISCARD_MAX_BYTES ? MHD_NO : MHD_YES;
}

static void *on_target(void *data, const char *uri, struct MHD_Connection *connection)
{
	struct nt_httpd_request *request = calloc(1, sizeof(*request));

	(void)data;
	(void)connection;
	if (request)
		request->target_error = nt_target_parse(uri, strlen(uri), &request->target);
	return request;
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **context)
{
	struct nt_httpd *httpd = data;
	struct nt_httpd_request *request = *context;

	(void)url;
	(void)version;
	if (!request)
		return MHD_NO; /* no memory */
	if (!request->begun)
		return begin(httpd, request, connection, method);
	if (*upload_size)
		return take_body(httpd, request, upload, upload_size);
	if (request->refusal.status)
		return send_reply(httpd, request, &request->refusal);
	return handle(httpd, request);
}

/* ---- connections and the reaper ----------------------------------------------------------------- */

static void on_completed(void *data, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *own = info ? info->socket_context : NULL;
	struct nt_httpd_request *request = *context;
	struct nt_httpd *httpd = data;

	(void)code;
	if (request) {
		nt_buf_release(&request->body);
		release_reply(&request->refusal);
		free(request);
		*context = NULL;
	}
	if (own) {
		pthread_mutex_lock(&httpd->lock);
		own->deadline_ns =
			nt_clock_mono_ns() + httpd->idle_timeout_ns + httpd->request_timeout_ns;
		pthread_mutex_unlock(&httpd->lock);
	}
}

static void link_connection(struct nt_httpd *httpd, struct connection *connection)
{
	pthread_mutex_lock(&httpd->lock);
	connection->next = httpd->first;
	if (httpd->first)
		httpd->first->previous = connection;
	httpd->first = connection;
	pthread_mutex_unlock(&httpd->lock);
}

static void unlink_connection(struct nt_httpd *httpd, struct connection *connection)
{
	pthread_mutex_lock(&httpd->lock);
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		httpd->first = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	pthread_mutex_unlock(&httpd->lock);
}

static void on_connection(void *data, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;
	struct nt_httpd *httpd = data;
	struct connection *own = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		atomic_fetch_sub(&httpd->connections_now, 1);
		if (own)
			unlink_connection(httpd, own);
		free(own);
		*context = NULL;
		return;
	}
	atomic_fetch_add(&httpd->connections, 1);
	atomic_fetch_add(&httpd->connections_now, 1);
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	own = calloc(1, sizeof(*own));
	if (!own || !info) {
		free(own); /* it is then only under the idle timeout */
		return;
	}
	own->fd = info->connect_fd;
	own->deadline_ns = nt_clock_mono_ns() + httpd->request_timeout_ns;
	link_connection(httpd, own);
	*context = own;
}

static void *reap(void *data)
{
	struct nt_httpd *httpd = data;
	struct timespec until;

	pthread_mutex_lock(&httpd->lock);
	while (!httpd->stopping) {
		uint64_t now_ns = nt_clock_mono_ns();

		for (struct connection *one = httpd->first; one; one = one->next) {
			if (one->deadline_ns > now_ns)
				continue;
			(void)shutdown(one->fd, SHUT_RDWR);
			one->deadline_ns = UINT64_MAX;
			atomic_fetch_add(&httpd->reaped, 1);
		}
		now_ns += NT_SECOND / 2;
		until = (struct timespec){(time_t)(now_ns / NT_SECOND), (long)(now_ns % NT_SECOND)};
		(void)pthread_cond_timedwait(&httpd->wake, &httpd->lock, &until);
	}
	pthread_mutex_unlock(&httpd->lock);
	return NULL;
}

/* ---- starting ----------------------------------------------------------------------------------- */

#define fail(error, r, ...)                                                                        \
	({                                                                                         \
		(void)snprintf((error)->text, sizeof((error)->text), __VA_ARGS__);                 \
		(r);                                                                               \
	})

static int bind_one(const struct addrinfo *address, int *ret_fd)
{
	nt_autoclose int fd = -1;
	int on = 1, off = 0;

	fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	/* "[::]" is everybody. */
	if (address->ai_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		return -errno;
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, BACKLOG))
		return -errno;
	*ret_fd = nt_take_fd(&fd);
	return 0;
}

static int bind_listen(const char *text, int *ret_fd, uint16_t *ret_port,
		       struct nt_httpd_error *error)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	const char *colon = strrchr(text, ':');
	struct sockaddr_storage bound;
	socklen_t bound_len = sizeof(bound);
	struct addrinfo *address;
	char host[256];
	size_t len;
	uint32_t port;
	int r;

	len = colon ? (size_t)(colon - text) : 0;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (!colon || !len || len >= sizeof(host) ||
	    nt_num_u32(colon + 1, strlen(colon + 1), 0, UINT16_MAX, &port) < 0)
		return fail(error, -EINVAL, "'%s' is no address to listen on: ADDRESS:PORT", text);
	memcpy(host, text, len);
	host[len] = '\0';

	r = getaddrinfo(host, colon + 1, &hints, &address);
	if (r)
		return fail(error, -EINVAL, "'%s' is no address to listen on: %s", host,
			    gai_strerror(r));
	r = bind_one(address, ret_fd);
	freeaddrinfo(address);
	if (r < 0)
		return fail(error, r, "listen on %s port %u: %s", host, port, strerrordesc_np(-r));
	if (getsockname(*ret_fd, (struct sockaddr *)&bound, &bound_len))
		return fail(error, -errno, "listen on %s port %u: %m", host, port);
	*ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						      : ((struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

static int read_pem(const char *path, struct nt_buf *buf, struct nt_httpd_error *error)
{
	int r = nt_file_read(path, PEM_MAX_BYTES, buf);

	if (r == 0)
		r = nt_buf_append(buf, "", 1);
	return r < 0 ? fail(error, r, "read '%s': %s", path, strerrordesc_np(-r)) : 0;
}

/* libmicrohttpd complains about every rude client; those are counted, not logged. */
static void __attribute__((format(printf, 2, 0)))
ignore_message(void *data, const char *fmt, va_list ap)
{
	(void)data;
	(void)fmt;
	(void)ap;
}

static int start_daemon(struct nt_httpd *httpd, const struct nt_httpd_options *options, int fd,
			struct nt_httpd_error *error)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_KEY, 0, httpd->key.data},
		{MHD_OPTION_HTTPS_MEM_CERT, 0, httpd->cert.data},
		{MHD_OPTION_HTTPS_PRIORITIES, 0,
		 (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG;
	bool secure = httpd->key.len > 0;

	errno = 0;
	httpd->daemon = MHD_start_daemon(
		flags | (secure ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request, httpd,
		MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned int)THREADS, MHD_OPTION_CONNECTION_LIMIT,
		options->max_connections ? options->max_connections : 1024U,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		options->max_connections_per_ip ? options->max_connections_per_ip : 256U,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)((httpd->idle_timeout_ns + NT_SECOND - 1) / NT_SECOND),
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target, httpd,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, httpd, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, httpd, MHD_OPTION_ARRAY, secure ? tls : none, MHD_OPTION_END);
	if (!httpd->daemon)
		return fail(error, errno ? -errno : -EIO, "start the HTTP server: %s",
			    secure ? "is the certificate of the key?" : strerrordesc_np(errno));
	return 0;
}

static int start_threads(struct nt_httpd *httpd, const struct nt_httpd_options *options, int fd,
			 struct nt_httpd_error *error)
{
	sigset_t all, before;
	int r;

	/* Signals are the main thread's business. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	r = -pthread_create(&httpd->reaper, NULL, reap, httpd);
	httpd->reaper_runs = r == 0;
	if (r == 0)
		r = start_daemon(httpd, options, fd, error);
	else
		(void)fail(error, r, "start a thread: %s", strerrordesc_np(-r));
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void init(struct nt_httpd *httpd, const struct nt_httpd_options *options)
{
	pthread_condattr_t monotonic;

	httpd->route = options->route;
	httpd->routes = options->routes;
	httpd->data = options->data;
	httpd->request_timeout_ns =
		options->request_timeout_ns ? options->request_timeout_ns : 15 * NT_SECOND;
	httpd->idle_timeout_ns = httpd->request_timeout_ns;
	httpd->max_body_bytes = options->max_body_bytes ? options->max_body_bytes : 64 << 10;
	if (getrandom(&httpd->request_id_base, sizeof(httpd->request_id_base), 0) < 0)
		httpd->request_id_base = (uint32_t)nt_clock_mono_ns();
	nt_limiter_init(&httpd->limiter,
			options->max_auth_failures ? options->max_auth_failures : 60);
	pthread_mutex_init(&httpd->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&httpd->wake, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

int nt_httpd_start(const struct nt_httpd_options *options, struct nt_httpd **ret_httpd,
		   struct nt_httpd_error *ret_error)
{
	nt_auto(nt_httpd) struct nt_httpd *httpd = calloc(1, sizeof(*httpd));
	struct nt_token_error token_error;
	nt_autoclose int fd = -1;
	int r;

	if (!httpd)
		return fail(ret_error, -ENOMEM, "out of memory");
	init(httpd, options);
	if (!options->tls_cert_file != !options->tls_key_file)
		return fail(ret_error, -EINVAL, "TLS needs both a certificate and a key");
	if (options->tls_cert_file) {
		r = read_pem(options->tls_cert_file, &httpd->cert, ret_error);
		if (r == 0)
			r = read_pem(options->tls_key_file, &httpd->key, ret_error);
		if (r < 0)
			return r;
	}
	if (options->token_file) {
		r = nt_tokens_open(options->token_file, &httpd->tokens, &token_error);
		if (r < 0)
			return fail(ret_error, r, "%s", token_error.text);
	}
	r = bind_listen(options->listen, &fd, &httpd->port, ret_error);
	if (r < 0)
		return r;
	r = start_threads(httpd, options, fd, ret_error);
	if (r < 0)
		return r;
	(void)nt_take_fd(&fd); /* the daemon closes it */

	*ret_httpd = nt_take(httpd);
	return 0;
}

void nt_httpd_stop(struct nt_httpd *httpd)
{
	if (!httpd)
		return;
	if (httpd->daemon)
		MHD_stop_daemon(httpd->daemon);
	if (httpd->reaper_runs) {
		pthread_mutex_lock(&httpd->lock);
		httpd->stopping = true;
		pthread_cond_signal(&httpd->wake);
		pthread_mutex_unlock(&httpd->lock);
		(void)pthread_join(httpd->reaper, NULL);
	}
	nt_tokens_close(httpd->tokens);
	nt_limiter_destroy(&httpd->limiter);
	pthread_cond_destroy(&httpd->wake);
	pthread_mutex_destroy(&httpd->lock);
	nt_buf_release(&httpd->cert);
	nt_buf_release(&httpd->key);
	free(httpd);
}

uint16_t nt_httpd_port(const struct nt_httpd *httpd)
{
	return httpd->port;
}

void nt_httpd_stats(const struct nt_httpd *httpd, struct nt_httpd_stats *ret_stats)
{
	for (size_t i = 0; i < 6; i++)
		ret_stats->requests[i] = atomic_load(&httpd->requests[i]);
	ret_stats->connections = atomic_load(&httpd->connections);
	ret_stats->connections_now = atomic_load(&httpd->connections_now);
	ret_stats->reaped = atomic_load(&httpd->reaped);
	ret_stats->auth_failures = atomic_load(&httpd->auth_failures);
	ret_stats->auth_limited = atomic_load(&httpd->auth_limited);
	ret_stats->bodies_too_large = atomic_load(&httpd->bodies_too_large);
	ret_stats->handler_errors = atomic_load(&httpd->handler_errors);
}
