/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A receiver of webhooks, and a notifier that delivers to it. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_WEBHOOK_RECEIVER_H
#define NT_TESTS_UNIT_AGGREGATOR_WEBHOOK_RECEIVER_H

#include "aggregator/notify/notify.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "aggregator/notify/http_post.h"
#include "aggregator/notify/receiver_config.h"
#include "aggregator/notify/webhook.h"
#include "common/http/httpd.h"
#include "tests/api/snapshot_scene.h"
#include "tests/unit/scratch.h"

/* A test vector of the Standard Webhooks libraries. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

enum {
	MAX_CALLS = 16,
	PATIENCE_S = 20,
};

struct call {
	char id[160], time[32], signature[64], body[4096], type[64];
};

static struct receiver {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct call call[MAX_CALLS];
	size_t calls;
	/* The replies to the first calls; then 204. 0: no reply until released. */
	unsigned int script[MAX_CALLS];
	uint32_t retry_after_s;
	size_t reply_bytes;
	bool released;
} receiver = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static inline void copy_header(const struct nt_httpd_request *request, const char *name, char *to,
			       size_t size)
{
	const char *value = nt_httpd_header(request, name);

	(void)snprintf(to, size, "%s", value ? value : "(none)");
}

static inline int take_call(void *data, const struct nt_httpd_request *request,
			    struct nt_httpd_reply *reply)
{
	struct call *call;
	size_t len;
	const char *body = nt_httpd_body(request, &len);

	(void)data;
	pthread_mutex_lock(&receiver.lock);
	call = &receiver.call[receiver.calls % MAX_CALLS];
	reply->status = receiver.script[receiver.calls % MAX_CALLS];
	copy_header(request, "webhook-id", call->id, sizeof(call->id));
	copy_header(request, "webhook-timestamp", call->time, sizeof(call->time));
	copy_header(request, "webhook-signature", call->signature, sizeof(call->signature));
	copy_header(request, "Content-Type", call->type, sizeof(call->type));
	(void)snprintf(call->body, sizeof(call->body), "%.*s", (int)len, body ? body : "");
	receiver.calls++;
	pthread_cond_broadcast(&receiver.changed);
	while (!reply->status && !receiver.released)
		pthread_cond_wait(&receiver.changed, &receiver.lock);
	if (!reply->status)
		reply->status = 204;
	if (reply->status == 429)
		reply->retry_after_s = receiver.retry_after_s;
	len = receiver.reply_bytes;
	pthread_mutex_unlock(&receiver.lock);
	for (size_t i = 0; i < len; i += 4096) {
		char page[4096] = "";

		assert_int_equal(nt_buf_append(&reply->body, page, sizeof(page)), 0);
	}
	return 0;
}

static const struct nt_httpd_route routes[] = {
	{"POST", "/hook/{secret}", NT_HTTPD_OPEN, "text/plain", NULL, take_call},
	{"POST", "/hook/{secret}/api/v2/alerts", NT_HTTPD_OPEN, "text/plain", NULL, take_call},
};

static inline void release_calls(void)
{
	pthread_mutex_lock(&receiver.lock);
	receiver.released = true;
	pthread_cond_broadcast(&receiver.changed);
	pthread_mutex_unlock(&receiver.lock);
}

static char dir[SCRATCH_BYTES], url[64];
static struct nt_httpd *httpd;
static struct nt_store *store;
static struct nt_notify *notify;
static const char *const names[] = {"webhook"};

static inline int open_store_of(const char *const *name, size_t count)
{
	char path[SCRATCH_BYTES + 16];
	struct nt_store_error error;

	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	return nt_store_open(
		&(struct nt_store_options){.path = path, .receiver = name, .receivers = count},
		&store, &error);
}

static inline int open_store(void)
{
	return open_store_of(names, 1);
}

static inline int set_up(void **state)
{
	const struct nt_httpd_options options = {
		.listen = "127.0.0.1:0",
		.route = routes,
		.routes = 2,
	};
	struct nt_httpd_error error;

	(void)state;
	receiver.calls = receiver.reply_bytes = 0;
	receiver.released = false;
	for (size_t i = 0; i < MAX_CALLS; i++)
		receiver.script[i] = 204;
	if (scratch_make(dir) || open_store() || nt_httpd_start(&options, &httpd, &error))
		return -1;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/hook/s3cret", nt_httpd_port(httpd));
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	release_calls();
	nt_notify_stop(notify);
	nt_httpd_stop(httpd);
	nt_store_close(store);
	notify = NULL;
	httpd = NULL;
	store = NULL;
	scratch_remove(dir);
	return 0;
}

static inline int set_up_curl(void **state)
{
	(void)state;
	return curl_global_init(CURL_GLOBAL_DEFAULT) ? -1 : 0;
}

static inline int tear_down_curl(void **state)
{
	(void)state;
	curl_global_cleanup();
	return 0;
}

/* Until so many calls have come; fails after 20 s. */
static inline void await_calls(size_t count)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&receiver.lock);
	while (receiver.calls < count && r == 0)
		r = pthread_cond_timedwait(&receiver.changed, &receiver.lock, &until);
	pthread_mutex_unlock(&receiver.lock);
	assert_int_equal(r, 0);
}

static inline void put(const char *id, const char *state, uint64_t version)
{
	struct nt_wire_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);
	const struct nt_sink sink = nt_store_sink(store);

	incident.version = version;
	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

/* Until nothing waits in the outbox. */
static inline void await_empty(void)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct nt_store_stats stats;

	for (int i = 0; i < PATIENCE_S * 500; i++) {
		nt_store_stats(store, &stats);
		if (!stats.outbox_now)
			return;
		(void)nanosleep(&pause, NULL);
	}
	fail_msg("%llu messages still wait", (unsigned long long)stats.outbox_now);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

#endif
