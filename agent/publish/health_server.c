/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's HTTP server. Responses are made by its threads, from atomics and a text. */
#include "agent/publish/health_server.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/system/clock.h"
#include "proto/json.h"

/* A turn takes a tenth of a second, but the first attaches to all running processes. */
#define STUCK_NS (60 * NT_SECOND)

enum {
	MAX_CONNECTIONS = 64,
	MAX_CONNECTIONS_PER_IP = 16,
	MAX_BODY_BYTES = 1, /* no request has a body */
	LIMIT_BYTES = 512, /* of one that is reached, as JSON */
};

struct nt_health_server {
	const struct nt_metrics *metrics;
	uint64_t started_mono_ns;
	_Atomic uint64_t turned_mono_ns; /* 0: not yet */
	pthread_mutex_t lock; /* for limits */
	char limits[NT_LIMIT_END * LIMIT_BYTES]; /* checks, each preceded by a comma */
	struct nt_httpd *httpd;
};

/* more: checks, each preceded by a comma. */
static int reply_check(struct nt_httpd_reply *reply, const char *name, const char *wrong,
		       const char *more)
{
	reply->status = wrong ? 503 : 200;
	return nt_buf_printf(&reply->body,
			     "{\"status\":\"%s\",\"checks\":[{\"name\":\"%s\",\"ok\":%s,"
			     "\"detail\":\"%s\"}%s]}\n",
			     wrong ? "failing" : "ok", name, wrong ? "false" : "true",
			     wrong ? wrong : "", more);
}

/* The first turn of the loop has the same timeout as later ones. */
static const char *what_is_stuck(const struct nt_health_server *server)
{
	uint64_t turned_ns = atomic_load(&server->turned_mono_ns);

	if (!turned_ns)
		turned_ns = server->started_mono_ns;
	return nt_clock_mono_ns() > turned_ns + STUCK_NS ? "the loop is stuck" : NULL;
}

static int healthz(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)request;
	return reply_check(reply, "loop", what_is_stuck(data), "");
}

static int readyz(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	struct nt_health_server *server = data;
	char limits[sizeof(server->limits)];

	(void)request;
	(void)pthread_mutex_lock(&server->lock);
	memcpy(limits, server->limits, sizeof(limits));
	(void)pthread_mutex_unlock(&server->lock);
	if (!atomic_load(&server->turned_mono_ns))
		return reply_check(reply, "probes", "still attaching to what runs already", limits);
	return reply_check(reply, "probes", what_is_stuck(server), limits);
}

static int metrics(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_health_server *server = data;
	enum nt_metrics_format format = nt_metrics_accepted(nt_httpd_header(request, "Accept"));

	reply->content_type = nt_metrics_content_type(format);
	return nt_metrics_write(server->metrics, format, &reply->body);
}

static const struct nt_httpd_route routes[] = {
	{"GET", "/healthz", NT_HTTPD_OPEN, "application/json", NULL, healthz, true},
	{"GET", "/readyz", NT_HTTPD_OPEN, "application/json", NULL, readyz, true},
	{"GET", "/metrics", NT_HTTPD_OPEN, "text/plain; version=0.0.4; charset=utf-8", NULL,
	 metrics, true},
};

int nt_health_server_start(const char *listen, const struct nt_metrics *from,
			   struct nt_health_server **ret_server, struct nt_httpd_error *ret_error)
{
	nt_auto(nt_health_server) struct nt_health_server *server = calloc(1, sizeof(*server));
	const struct nt_httpd_options options = {
		.listen = listen,
		.route = routes,
		.routes = sizeof(routes) / sizeof(routes[0]),
		.data = server,
		.max_connections = MAX_CONNECTIONS,
		.max_connections_per_ip = MAX_CONNECTIONS_PER_IP,
		.max_body_bytes = MAX_BODY_BYTES,
	};
	int r;

	ret_error->text[0] = '\0';
	if (!server)
		return -ENOMEM;
	r = pthread_mutex_init(&server->lock, NULL);
	if (r) {
		free(nt_take(server));
		return -r;
	}
	server->metrics = from;
	server->started_mono_ns = nt_clock_mono_ns();
	r = nt_httpd_start(&options, &server->httpd, ret_error);
	if (r < 0)
		return r;
	*ret_server = nt_take(server);
	return 0;
}

void nt_health_server_stop(struct nt_health_server *server)
{
	if (!server)
		return;
	nt_httpd_stop(server->httpd);
	(void)pthread_mutex_destroy(&server->lock);
	free(server);
}

void nt_health_server_turned(struct nt_health_server *server, uint64_t mono_ns)
{
	if (server)
		atomic_store(&server->turned_mono_ns, mono_ns);
}

/* Owners' names come from cgroup names: they are quoted. */
static int add_limit(struct nt_buf *buf, const struct nt_limits *limits, enum nt_limit_what what)
{
	nt_autojson json_t *check = json_object();
	char name[NT_LIMIT_TEXT], text[NT_LIMIT_TEXT];

	(void)snprintf(name, sizeof(name), "cap-%s", nt_limit_name(what));
	if (json_object_set_new(check, "name", nt_json_text(name)) ||
	    json_object_set_new(check, "ok", json_true()) ||
	    json_object_set_new(check, "detail", nt_json_text(nt_limit_text(limits, what, text))))
		return -ENOMEM;
	if (nt_buf_append(buf, ",", 1) < 0)
		return -ENOMEM;
	return nt_json_dump(check, false, buf);
}

void nt_health_server_limits(struct nt_health_server *server, const struct nt_limits *limits)
{
	nt_autobuf struct nt_buf buf = {0};

	if (!server)
		return;
	for (int i = 0; i < NT_LIMIT_END; i++) {
		if (limits->of[i].report.left_out && add_limit(&buf, limits, i) < 0)
			return; /* keep the previous text */
	}
	if (nt_buf_append(&buf, "", 1) < 0 || buf.len > sizeof(server->limits))
		return;
	(void)pthread_mutex_lock(&server->lock);
	memcpy(server->limits, buf.data, buf.len);
	(void)pthread_mutex_unlock(&server->lock);
}

void nt_health_server_stats(const struct nt_health_server *server, struct nt_httpd_stats *ret_stats)
{
	nt_httpd_stats(server->httpd, ret_stats);
}

uint16_t nt_health_server_port(const struct nt_health_server *server)
{
	return nt_httpd_port(server->httpd);
}
