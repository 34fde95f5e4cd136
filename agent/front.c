/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the agent shows over HTTP. Its answers are made by the server's threads, from atomics alone. */
#include "agent/front.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/clock.h"

/* A turn is due ten times a second, but the first one attaches to all that runs already. */
#define STUCK_NS (60 * NT_SECOND)

enum {
	MAX_CONNECTIONS = 64,
	MAX_CONNECTIONS_PER_IP = 16,
	MAX_BODY_BYTES = 1, /* nothing here takes one */
};

struct nt_front {
	const struct nt_metrics *metrics;
	uint64_t started_mono_ns;
	_Atomic uint64_t turned_mono_ns; /* 0: not yet */
	struct nt_httpd *httpd;
};

static int tell(struct nt_httpd_reply *reply, const char *name, const char *wrong)
{
	reply->status = wrong ? 503 : 200;
	return nt_buf_printf(&reply->body,
			     "{\"status\":\"%s\",\"checks\":[{\"name\":\"%s\",\"ok\":%s,"
			     "\"detail\":\"%s\"}]}\n",
			     wrong ? "failing" : "ok", name, wrong ? "false" : "true",
			     wrong ? wrong : "");
}

/* Until it has gone round the loop has as long as from one turn to the next. */
static const char *what_is_stuck(const struct nt_front *front)
{
	uint64_t turned_ns = atomic_load(&front->turned_mono_ns);

	if (!turned_ns)
		turned_ns = front->started_mono_ns;
	return nt_clock_mono_ns() > turned_ns + STUCK_NS ? "the loop is stuck" : NULL;
}

static int healthz(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)request;
	return tell(reply, "loop", what_is_stuck(data));
}

static int readyz(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_front *front = data;

	(void)request;
	if (!atomic_load(&front->turned_mono_ns))
		return tell(reply, "probes", "still attaching to what runs already");
	return tell(reply, "probes", what_is_stuck(front));
}

static int metrics(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_front *front = data;
	enum nt_metrics_format format = nt_metrics_accepted(nt_httpd_header(request, "Accept"));

	reply->content_type = nt_metrics_content_type(format);
	return nt_metrics_write(front->metrics, format, &reply->body);
}

static const struct nt_httpd_route routes[] = {
	{"GET", "/healthz", NT_HTTPD_OPEN, "application/json", NULL, healthz},
	{"GET", "/readyz", NT_HTTPD_OPEN, "application/json", NULL, readyz},
	{"GET", "/metrics", NT_HTTPD_OPEN, "text/plain; version=0.0.4; charset=utf-8", NULL,
	 metrics},
};

int nt_front_start(const char *listen, const struct nt_metrics *from, struct nt_front **ret_front,
		   struct nt_httpd_error *ret_error)
{
	nt_auto(nt_front) struct nt_front *front = calloc(1, sizeof(*front));
	const struct nt_httpd_options options = {
		.listen = listen,
		.route = routes,
		.routes = sizeof(routes) / sizeof(routes[0]),
		.data = front,
		.max_connections = MAX_CONNECTIONS,
		.max_connections_per_ip = MAX_CONNECTIONS_PER_IP,
		.max_body_bytes = MAX_BODY_BYTES,
	};
	int r;

	ret_error->text[0] = '\0';
	if (!front)
		return -ENOMEM;
	front->metrics = from;
	front->started_mono_ns = nt_clock_mono_ns();
	r = nt_httpd_start(&options, &front->httpd, ret_error);
	if (r < 0)
		return r;
	*ret_front = nt_take(front);
	return 0;
}

void nt_front_stop(struct nt_front *front)
{
	if (!front)
		return;
	nt_httpd_stop(front->httpd);
	free(front);
}

void nt_front_turned(struct nt_front *front, uint64_t mono_ns)
{
	if (front)
		atomic_store(&front->turned_mono_ns, mono_ns);
}

uint16_t nt_front_port(const struct nt_front *front)
{
	return nt_httpd_port(front->httpd);
}
