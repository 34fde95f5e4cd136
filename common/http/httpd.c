/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An HTTP server on libmicrohttpd with a route table. libmicrohttpd's timeout covers idle
 * connections: a peer that sends a byte a second keeps a request open forever. At its limits it
 * stops accepting or closes accepted connections, and liveness probes fail. Limits and deadlines
 * are therefore those of common/http/httpd_slots.h; libmicrohttpd's own are never reached.
 */
#include "common/http/httpd.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/http/httpd_impl.h"
#include "common/http/listener.h"
#include "common/system/clock.h"
#include "common/system/file.h"

enum {
	THREADS = 8, /* on two cores too: health checks then overtake pages of ranks */
	/* Over our own caps, so that our code rejects what is too large. */
	CONNECTION_MEMORY_BYTES = 48 << 10,
	DISCARD_MAX_BYTES = 1 << 20, /* of a rejected body: beyond it the connection is closed */
	PEM_MAX_BYTES = 1 << 20,
	CONNECTIONS = 1024,
	CONNECTIONS_PER_ADDRESS = 256,
	RESERVED = 128,
	STREAMS = 128,
	STREAMS_PER_ADDRESS = 32,
	PINGS_TO_STALL = 3,
	RETRY_AFTER_S = 5,
	SMALL_BYTES = 64 << 10, /* of a reply: always sent */
	REPLIES_BYTES = 256 << 20, /* not sent yet; a quarter of it for an address */
};

#define HEADER_NS   (5 * NT_SECOND)
#define REQUEST_NS  (15 * NT_SECOND)
#define IDLE_NS     (15 * NT_SECOND)
#define RESERVED_NS (2 * NT_SECOND)
#define PING_NS     (15 * NT_SECOND)
#define LIFE_NS     NT_HOUR

/* ---- replying -------------------------------------------------------------------------------- */

static bool etag_matches(const struct nt_httpd_request *request, const char *etag)
{
	const char *header = nt_httpd_header(request, "If-None-Match");
	char quoted[sizeof(request->refusal.etag) + 3];

	if (!header || !*etag || strcmp(request->route->method, "GET") != 0)
		return false;
	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
	return !strcmp(header, "*") || strstr(header, quoted);
}

static void add_headers(struct MHD_Response *response, const struct nt_httpd_request *request,
			const struct nt_httpd_reply *reply)
{
	char text[128];

	(void)MHD_add_response_header(response, "X-Request-Id", request->id);
	nt_httpd_add_protection(response, reply->content_type);
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
	if (reply->cookie[0])
		(void)MHD_add_response_header(response, "Set-Cookie", reply->cookie);
	if (reply->status == 405)
		(void)MHD_add_response_header(response, "Allow", request->allow);
	if (reply->retry_after_s) {
		(void)snprintf(text, sizeof(text), "%u", reply->retry_after_s);
		(void)MHD_add_response_header(response, "Retry-After", text);
	}
	if (request->is_last) /* the rest of the connection is not read */
		(void)MHD_add_response_header(response, "Connection", "close");
}

/* Consumes the reply's body. */
static enum MHD_Result send_reply(struct nt_httpd *httpd, const struct nt_httpd_request *request,
				  struct nt_httpd_reply *reply)
{
	struct MHD_Response *response;
	enum MHD_Result sent;

	nt_httpd_report_write(httpd, request, reply->status);
	if (reply->status == 304)
		nt_buf_clear(&reply->body);
	response = MHD_create_response_from_buffer(reply->body.len, reply->body.data,
						   reply->body.data ? MHD_RESPMEM_MUST_FREE
								    : MHD_RESPMEM_PERSISTENT);
	if (!response) {
		nt_buf_release(&reply->body);
		return MHD_NO;
	}
	reply->body = (struct nt_buf){0};
	add_headers(response, request, reply);
	sent = MHD_queue_response(request->connection, reply->status, response);
	MHD_destroy_response(response);
	atomic_fetch_add(&httpd->requests[reply->status / 100 % 6], 1);
	return sent;
}

static struct nt_slot *slot_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result stream(struct nt_httpd *httpd, struct nt_httpd_request *request,
			      struct nt_httpd_reply *reply)
{
	struct nt_credential credential = nt_httpd_credential(request);
	struct MHD_Response *response;
	enum MHD_Result sent;
	int r;

	r = nt_streams_open(&httpd->streams, request->connection, slot_of(request->connection),
			    &reply->stream, &credential, &response);
	if (r == -EBUSY) {
		reply->retry_after_s = RETRY_AFTER_S;
		if (nt_httpd_problem(reply, request, 503, "too_many_streams",
				     "the limit of open streams is reached; try again later") < 0)
			return MHD_NO;
		return send_reply(httpd, request, reply);
	}
	if (r < 0)
		return MHD_NO;
	request->is_last = true;
	add_headers(response, request, reply);
	(void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
	/* Its own deadlines apply. */
	(void)MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
	sent = MHD_queue_response(request->connection, 200, response);
	MHD_destroy_response(response);
	atomic_fetch_add(&httpd->requests[2], 1);
	return sent;
}

/* Clients that read slowly would let large replies fill the memory. */
static int limit_memory(struct nt_httpd *httpd, const struct nt_httpd_request *request,
			struct nt_httpd_reply *reply)
{
	struct nt_slot *slot = slot_of(request->connection);

	if (!slot || request->is_write || reply->body.len <= SMALL_BYTES ||
	    nt_slots_answer(&httpd->slots, slot, reply->body.len))
		return 0;
	nt_buf_release(&reply->body);
	*reply = (struct nt_httpd_reply){.retry_after_s = RETRY_AFTER_S};
	return nt_httpd_problem(reply, request, 503, "busy",
				"replies that are being sent take too much memory; try again "
				"later");
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
		nt_buf_release(&reply.body);
		reply = (struct nt_httpd_reply){0};
		if (nt_httpd_problem(&reply, request, 500, "internal", "internal error: %s",
				     strerrordesc_np(-r)) < 0) {
			nt_buf_release(&reply.body);
			return MHD_NO;
		}
	} else if (reply.status == 200 && etag_matches(request, reply.etag)) {
		reply.status = 304;
	} else if (reply.status == 200 && reply.stream.is_wanted) {
		return stream(httpd, request, &reply);
	} else if (limit_memory(httpd, request, &reply) < 0) {
		nt_buf_release(&reply.body);
		return MHD_NO;
	}
	return send_reply(httpd, request, &reply);
}

/*
 * libmicrohttpd passes the target as a C string. In its buffer the version follows that string's
 * NUL directly, unless the target holds a NUL byte itself.
 */
static bool target_has_nul(const char *end, const char *version)
{
	uintptr_t from = (uintptr_t)end, to = (uintptr_t)version;

	return end && to > from + 1 && to - from <= CONNECTION_MEMORY_BYTES;
}

static enum MHD_Result begin(struct nt_httpd *httpd, struct nt_httpd_request *request,
			     struct MHD_Connection *connection, const char *method,
			     const char *version)
{
	struct nt_slot *slot = slot_of(connection);

	request->begun = true;
	request->httpd = httpd;
	request->connection = connection;
	request->method = method;
	request->version = version;
	if (target_has_nul(request->target_end, version))
		request->target_error = -EINVAL;
	if (slot) {
		nt_slots_request(&httpd->slots, slot, nt_clock_mono_ns());
		request->is_reserved = request->is_last = slot->is_reserved;
	}
	(void)snprintf(request->id, sizeof(request->id), "%08x%08x", httpd->request_id_base,
		       atomic_fetch_add(&httpd->request_count, 1));
	if (nt_httpd_check(httpd, request) < 0)
		return MHD_NO;
	/* Reading the body first lets clients see the reply: most do not read while they send. */
	if (request->is_last && request->refusal.status)
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
				     "the body is larger than %llu bytes",
				     (unsigned long long)httpd->max_body_bytes) < 0)
			return MHD_NO;
	}
	request->discarded += n;
	return request->discarded > DISCARD_MAX_BYTES ? MHD_NO : MHD_YES;
}

static void release_request(struct nt_slot *slot)
{
	struct nt_httpd_request *request = slot->request;

	if (!request)
		return;
	nt_buf_release(&request->body);
	nt_buf_release(&request->refusal.body);
	free(request);
	slot->request = NULL;
}

/* A header that libmicrohttpd itself refuses is not reported as completed: the slot has it, too. */
static void *on_target(void *data, const char *uri, struct MHD_Connection *connection)
{
	struct nt_slot *slot = slot_of(connection);
	struct nt_httpd_request *request;

	(void)data;
	if (!slot)
		return NULL;
	release_request(slot);
	request = calloc(1, sizeof(*request));
	if (request && uri) {
		request->target_end = uri + strlen(uri);
		request->target_error = nt_target_parse(uri, strlen(uri), &request->target);
	}
	slot->request = request;
	return request;
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **context)
{
	struct nt_httpd *httpd = data;
	struct nt_httpd_request *request = *context;

	(void)url;
	if (!request)
		return MHD_NO; /* no memory */
	if (!request->begun)
		return begin(httpd, request, connection, method, version);
	if (*upload_size)
		return take_body(httpd, request, upload, upload_size);
	if (request->refusal.status)
		return send_reply(httpd, request, &request->refusal);
	return handle(httpd, request);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_completed(void *data, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode code)
{
	struct nt_slot *slot = slot_of(connection);
	struct nt_httpd *httpd = data;

	(void)code;
	*context = NULL;
	if (!slot)
		return;
	release_request(slot);
	nt_slots_idle(&httpd->slots, slot, nt_clock_mono_ns());
}

static void on_connection(void *data, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *fd, *peer;
	struct nt_httpd *httpd = data;
	struct nt_slot *slot = NULL;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			release_request(*context);
		/* The socket is closed after this. */
		nt_slots_leave(&httpd->slots, *context);
		*context = NULL;
		atomic_fetch_sub(&httpd->connections_now, 1);
		return;
	}
	fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (fd && nt_slots_enter(&httpd->slots, fd->connect_fd, peer ? peer->client_addr : NULL,
				 nt_clock_mono_ns(), &slot) < 0)
		(void)shutdown(fd->connect_fd, SHUT_RDWR); /* no memory to watch it with */
	*context = slot;
	/* Once it has its slot: who reads the count finds the slots taken. */
	atomic_fetch_add(&httpd->connections, 1);
	atomic_fetch_add(&httpd->connections_now, 1);
}

static void *run_slots(void *data)
{
	struct nt_httpd *httpd = data;

	nt_slots_run(&httpd->slots);
	return NULL;
}

/* ---- starting -------------------------------------------------------------------------------- */

static int read_pem(const char *path, struct nt_buf *buf, struct nt_httpd_error *error)
{
	int r = nt_file_read(path, PEM_MAX_BYTES, buf);

	if (r == 0)
		r = nt_buf_append(buf, "", 1);
	return r < 0 ? nt_httpd_fail(error, r, "read '%s': %s", path, strerrordesc_np(-r)) : 0;
}

/* libmicrohttpd logs every misbehaving client; those are counted instead. */
static void __attribute__((format(printf, 2, 0)))
ignore_message(void *data, const char *fmt, va_list ap)
{
	(void)data;
	(void)fmt;
	(void)ap;
}

static int start_daemon(struct nt_httpd *httpd, int fd, struct nt_httpd_error *error)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_KEY, 0, httpd->key.data},
		{MHD_OPTION_HTTPS_MEM_CERT, 0, httpd->cert.data},
		{MHD_OPTION_HTTPS_PRIORITIES, 0,
		 (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
		{httpd->client_ca.len ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		 httpd->client_ca.data},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	const struct nt_slots_limits *limits = &httpd->slots.limits;
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG |
			     (httpd->streams.ring ? MHD_ALLOW_SUSPEND_RESUME : 0);
	uint64_t longest_ns = limits->header_ns;
	bool secure = httpd->key.len > 0;

	if (longest_ns < limits->request_ns)
		longest_ns = limits->request_ns;
	if (longest_ns < limits->idle_ns)
		longest_ns = limits->idle_ns;
	errno = 0;
	httpd->daemon = MHD_start_daemon(
		flags | (secure ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request, httpd,
		MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned int)THREADS, MHD_OPTION_CONNECTION_LIMIT,
		/* Per thread; connections that were cut off are not closed yet. */
		THREADS * (limits->ordinary + 2 * limits->reserved),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)(longest_ns / NT_SECOND + 2),
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target, httpd,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, httpd, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, httpd, MHD_OPTION_ARRAY, secure ? tls : none, MHD_OPTION_END);
	if (!httpd->daemon)
		return nt_httpd_fail(
			error, errno ? -errno : -EIO, "start the HTTP server: %s",
			secure ? "certificate and key may not match, or an authority is no PEM"
			       : strerrordesc_np(errno));
	return 0;
}

static int start_threads(struct nt_httpd *httpd, int fd, struct nt_httpd_error *error)
{
	sigset_t all, before;
	int r;

	/* The main thread handles signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	r = -pthread_create(&httpd->reaper, NULL, run_slots, httpd);
	httpd->reaper_runs = r == 0;
	if (r == 0)
		r = nt_streams_start(&httpd->streams);
	if (r == 0)
		r = start_daemon(httpd, fd, error);
	else
		(void)nt_httpd_fail(error, r, "start a thread: %s", strerrordesc_np(-r));
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static void init_slots(struct nt_httpd *httpd, const struct nt_httpd_options *options)
{
	struct nt_slots_limits limits = {
		.ordinary = options->max_connections ? options->max_connections : CONNECTIONS,
		.ordinary_per_address = options->max_connections_per_ip
						? options->max_connections_per_ip
						: CONNECTIONS_PER_ADDRESS,
		.reserved = RESERVED,
		.header_ns = or_default(options->header_timeout_ns, HEADER_NS),
		.request_ns = or_default(options->request_timeout_ns, REQUEST_NS),
		.idle_ns = IDLE_NS,
		.reserved_ns = RESERVED_NS,
		.answer_bytes = or_default(options->max_replies_bytes, REPLIES_BYTES),
	};

	limits.answer_bytes_per_address = limits.answer_bytes / 4;
	limits.ordinary = nt_slots_fit(limits.ordinary, limits.reserved);
	nt_slots_init(&httpd->slots, &limits);
}

static void init_streams(struct nt_httpd *httpd, const struct nt_httpd_options *options)
{
	const uint64_t ping_ns = or_default(options->stream_ping_ns, PING_NS);
	const struct nt_streams_limits limits = {
		.streams = options->max_streams ? options->max_streams : STREAMS,
		.streams_per_address = options->max_streams_per_ip ? options->max_streams_per_ip
								   : STREAMS_PER_ADDRESS,
		.ping_ns = ping_ns,
		.stall_ns = PINGS_TO_STALL * ping_ns,
		.life_ns = or_default(options->stream_life_ns, LIFE_NS),
	};

	nt_streams_init(&httpd->streams, options->events, &httpd->slots, &limits);
	httpd->streams.is_authorized = nt_httpd_still_authorizes;
	httpd->streams.data = httpd;
}

static void init(struct nt_httpd *httpd, const struct nt_httpd_options *options)
{
	httpd->route = options->route;
	httpd->routes = options->routes;
	httpd->data = options->data;
	httpd->is_client_cert_optional = options->tls_client_optional;
	httpd->on_write = options->on_write;
	httpd->max_body_bytes = options->max_body_bytes ? options->max_body_bytes : 64 << 10;
	if (getrandom(&httpd->request_id_base, sizeof(httpd->request_id_base), 0) < 0)
		httpd->request_id_base = (uint32_t)nt_clock_mono_ns();
	nt_sessions_init(&httpd->sessions);
	nt_limiter_init(&httpd->limiter,
			options->max_auth_failures ? options->max_auth_failures : 60);
	init_slots(httpd, options);
	init_streams(httpd, options);
}

int nt_httpd_start(const struct nt_httpd_options *options, struct nt_httpd **ret_httpd,
		   struct nt_httpd_error *ret_error)
{
	nt_auto(nt_httpd) struct nt_httpd *httpd = calloc(1, sizeof(*httpd));
	struct nt_token_error token_error;
	nt_autoclose int fd = -1;
	int r;

	if (!httpd)
		return nt_httpd_fail(ret_error, -ENOMEM, "out of memory");
	init(httpd, options);
	if (!options->tls_cert_file != !options->tls_key_file)
		return nt_httpd_fail(ret_error, -EINVAL,
				     "TLS requires both a certificate and a key");
	if (options->tls_client_ca_file && !options->tls_cert_file)
		return nt_httpd_fail(
			ret_error, -EINVAL,
			"certificates of clients require TLS: a certificate and a key");
	if (options->tls_cert_file) {
		r = read_pem(options->tls_cert_file, &httpd->cert, ret_error);
		if (r == 0)
			r = read_pem(options->tls_key_file, &httpd->key, ret_error);
		if (r == 0 && options->tls_client_ca_file)
			r = read_pem(options->tls_client_ca_file, &httpd->client_ca, ret_error);
		if (r < 0)
			return r;
	}
	if (options->token_file) {
		r = nt_tokens_open(options->token_file, &httpd->tokens, &token_error);
		if (r < 0)
			return nt_httpd_fail(ret_error, r, "%s", token_error.text);
	}
	r = nt_listener_open(options->listen, &fd, &httpd->port, ret_error);
	if (r < 0)
		return r;
	r = start_threads(httpd, fd, ret_error);
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
	nt_streams_stop(&httpd->streams);
	if (httpd->daemon)
		MHD_stop_daemon(httpd->daemon);
	if (httpd->reaper_runs) {
		nt_slots_end(&httpd->slots);
		(void)pthread_join(httpd->reaper, NULL);
	}
	nt_tokens_close(httpd->tokens);
	nt_sessions_destroy(&httpd->sessions);
	nt_limiter_destroy(&httpd->limiter);
	nt_streams_destroy(&httpd->streams);
	nt_slots_destroy(&httpd->slots);
	nt_buf_release(&httpd->cert);
	nt_buf_release(&httpd->key);
	nt_buf_release(&httpd->client_ca);
	free(httpd);
}

uint16_t nt_httpd_port(const struct nt_httpd *httpd)
{
	return httpd->port;
}

void nt_httpd_stats(struct nt_httpd *httpd, struct nt_httpd_stats *ret_stats)
{
	struct nt_slots_stats slots;
	struct nt_streams_stats streams;

	nt_slots_stats(&httpd->slots, &slots);
	nt_streams_stats(&httpd->streams, &streams);
	for (size_t i = 0; i < 6; i++)
		ret_stats->requests[i] = atomic_load(&httpd->requests[i]);
	ret_stats->connections = atomic_load(&httpd->connections);
	ret_stats->connections_now = atomic_load(&httpd->connections_now);
	ret_stats->reaped = slots.reaped;
	ret_stats->over_limit = slots.over_limit;
	ret_stats->evicted = slots.evicted;
	ret_stats->auth_failures = atomic_load(&httpd->auth_failures);
	ret_stats->certs_refused = atomic_load(&httpd->certs_refused);
	ret_stats->auth_limited = atomic_load(&httpd->auth_limited);
	ret_stats->bodies_too_large = atomic_load(&httpd->bodies_too_large);
	nt_sessions_stats(&httpd->sessions, nt_clock_mono_ns(), &ret_stats->sessions);
	ret_stats->handler_errors = atomic_load(&httpd->handler_errors);
	ret_stats->streams = streams.opened;
	ret_stats->streams_refused = streams.refused;
	ret_stats->streams_dropped = streams.dropped;
	ret_stats->streams_now = streams.now;
	ret_stats->tokens_are_old = nt_httpd_tokens_are_old(httpd, NULL);
}

bool nt_httpd_tokens_are_old(struct nt_httpd *httpd, struct nt_token_error *ret_error)
{
	return httpd->tokens && nt_tokens_are_old(httpd->tokens, nt_clock_mono_ns(), ret_error);
}
