/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/kube.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/json_stream.h"
#include "common/system/clock.h"
#include "common/system/thread.h"
#include "proto/json.h"

#define RETRY_MIN_NS (500 * NT_MILLISECOND)
#define RETRY_MAX_NS (30 * NT_SECOND)
#define WATCH_NS     (5 * NT_MINUTE)
#define LIST_NS      NT_MINUTE
#define GRACE_NS     (30 * NT_SECOND) /* after which the server must have ended a watch */

enum {
	RETRY_AFTER_MAX = 10, /* longest delay that a server may request */
	VERSION = 64, /* bytes of a resource version */
	HTTP_GONE = 410,
};

struct nt_kube_pods {
	struct nt_kube *kube;
	char *selector; /* of this node's pods, as a query */
	uint64_t retry_min_ns, retry_max_ns, watch_ns;
	pthread_t thread;
	bool has_thread;

	/* Used by the thread only. */
	char version[VERSION]; /* from where to watch; "": list first */
	uint64_t random;
	uint64_t wait_ns; /* backoff before the next attempt */
	uint64_t retry_after_ns; /* requested by the server */
	bool was_gone; /* in the current response */

	pthread_mutex_t lock; /* for all below; never held during requests or parsing */
	pthread_cond_t stops;
	bool stopped;
	struct nt_pods *pods;
	struct nt_kube_pods_stats stats;
	enum nt_kube_failure failure;
	char reason[NT_KUBE_REASON];
};

/* ---- responses ------------------------------------------------------------------------------ */

static void set_version(struct nt_kube_pods *pods, const json_t *object)
{
	const char *version =
		nt_json_get_text(json_object_get(object, "metadata"), "resourceVersion", "");

	if (*version && strlen(version) < VERSION)
		memcpy(pods->version, version, strlen(version) + 1);
}

static void count(struct nt_kube_pods *pods, uint64_t *counter, uint64_t n)
{
	(void)pthread_mutex_lock(&pods->lock);
	*counter += n;
	(void)pthread_mutex_unlock(&pods->lock);
}

/* An invalid item is skipped alone. */
static int load(struct nt_kube_pods *pods, const char *text, size_t len, json_t **ret_json)
{
	int r = nt_json_load(text, len, ret_json);

	if (r != -EBADMSG)
		return r;
	count(pods, &pods->stats.malformed, 1);
	return 0;
}

/* An item of the list. */
static int on_item(void *context, const char *text, size_t len)
{
	struct nt_kube_pods *pods = context;
	nt_autojson json_t *pod = NULL;
	int r = load(pods, text, len, &pod);

	if (r < 0 || !pod)
		return r;
	(void)pthread_mutex_lock(&pods->lock);
	nt_pods_put(pods->pods, pod);
	(void)pthread_mutex_unlock(&pods->lock);
	return 0;
}

static int on_error(struct nt_kube_pods *pods, const json_t *status)
{
	pods->was_gone = nt_json_get_number(status, "code", 0) == HTTP_GONE;
	return -EREMOTEIO;
}

/* {"type":"ADDED","object":{…}} */
static int on_change(void *context, const char *text, size_t len)
{
	struct nt_kube_pods *pods = context;
	nt_autojson json_t *event = NULL;
	const json_t *object;
	const char *type;
	int r = load(pods, text, len, &event);

	if (r < 0 || !event)
		return r;
	type = nt_json_get_text(event, "type", "");
	object = json_object_get(event, "object");
	if (strcmp(type, "ERROR") == 0)
		return on_error(pods, object);
	(void)pthread_mutex_lock(&pods->lock);
	pods->stats.events++;
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
		nt_pods_put(pods->pods, object);
	else if (strcmp(type, "DELETED") == 0)
		nt_pods_remove(pods->pods, object, nt_clock_mono_ns());
	(void)pthread_mutex_unlock(&pods->lock);
	set_version(pods, object);
	pods->wait_ns = 0;
	return 0;
}

/* The watch is established, and may be silent for minutes. */
static void on_watching(void *context)
{
	struct nt_kube_pods *pods = ((struct nt_json_stream *)context)->context;

	(void)pthread_mutex_lock(&pods->lock);
	pods->failure = NT_KUBE_WELL;
	(void)pthread_mutex_unlock(&pods->lock);
}

static int feed(void *context, const char *data, size_t len)
{
	return nt_json_stream_feed(context, data, len);
}

/* ---- results -------------------------------------------------------------------------------- */

static enum nt_kube_failure failure_of(int r, long status)
{
	switch (r) {
	case 0:
		if (status == 401 || status == 403)
			return NT_KUBE_DENIED;
		return status == 200 ? NT_KUBE_WELL : NT_KUBE_REFUSED;
	case -EREMOTEIO:
		return NT_KUBE_REFUSED;
	case -EBADMSG:
	case -EFBIG:
		return NT_KUBE_MALFORMED;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
		return NT_KUBE_AWAY;
	default:
		return NT_KUBE_UNTRUSTED;
	}
}

static void fail(struct nt_kube_pods *pods, enum nt_kube_failure failure,
		 const struct nt_kube_reply *reply)
{
	const char *reason = reply->reason[0] ? reply->reason : nt_kube_error(pods->kube);

	(void)pthread_mutex_lock(&pods->lock);
	pods->failure = failure;
	pods->stats.failed[failure]++;
	if (*reason)
		(void)snprintf(pods->reason, sizeof(pods->reason), "%s", reason);
	else
		(void)snprintf(pods->reason, sizeof(pods->reason), "HTTP %ld", reply->status);
	(void)pthread_mutex_unlock(&pods->lock);
	pods->retry_after_ns = reply->retry_after_ns;
}

/* True: success. An expired version is no failure, but no progress. */
static bool settle(struct nt_kube_pods *pods, int r, const struct nt_kube_reply *reply)
{
	enum nt_kube_failure failure = failure_of(r, reply->status);

	pods->was_gone |= r == 0 && reply->status == HTTP_GONE;
	if (pods->was_gone) {
		pods->version[0] = '\0';
		(void)pthread_mutex_lock(&pods->lock);
		pods->stats.gone++;
		(void)pthread_mutex_unlock(&pods->lock);
		return false;
	}
	if (failure == NT_KUBE_WELL)
		return true;
	/* The invalid item may have been a change that is now missed. */
	if (failure == NT_KUBE_MALFORMED)
		pods->version[0] = '\0';
	if (r != -ECANCELED)
		fail(pods, failure, reply);
	return false;
}

/* ---- requests ------------------------------------------------------------------------------- */

static int finish_list(struct nt_kube_pods *pods, const struct nt_json_stream *json_stream)
{
	nt_autojson json_t *list = NULL;
	int r = nt_json_stream_end(json_stream);

	if (r == 0)
		r = nt_json_load(json_stream->rest.data, json_stream->rest.len, &list);
	if (r < 0)
		return r;
	set_version(pods, list);
	if (!pods->version[0])
		return -EBADMSG;
	(void)pthread_mutex_lock(&pods->lock);
	nt_pods_list_end(pods->pods, nt_clock_mono_ns());
	pods->stats.is_synced = 1;
	pods->failure = NT_KUBE_WELL;
	(void)pthread_mutex_unlock(&pods->lock);
	return 0;
}

/* resourceVersion=0: from the server's cache, so that nodes do not all query etcd. */
static bool list(struct nt_kube_pods *pods)
{
	nt_autosplitter struct nt_json_stream json_stream = {
		.mode = NT_JSON_STREAM_ITEMS,
		.max_bytes = NT_KUBE_POD_BYTES,
		.object = on_item,
		.context = pods,
	};
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	int r;

	r = nt_buf_printf(&path, "/api/v1/pods?%s&resourceVersion=0", pods->selector);
	if (r < 0)
		return settle(pods, r, &reply);
	(void)pthread_mutex_lock(&pods->lock);
	pods->stats.lists++;
	nt_pods_list_begin(pods->pods);
	(void)pthread_mutex_unlock(&pods->lock);
	r = nt_kube_call(pods->kube,
			 &(struct nt_kube_request){
				 .path = (const char *)path.data,
				 .timeout_ns = LIST_NS,
				 .data = feed,
				 .context = &json_stream,
			 },
			 &reply);
	count(pods, &pods->stats.too_large, json_stream.too_large);
	if (r == 0 && reply.status == 200)
		r = finish_list(pods, &json_stream);
	return settle(pods, r, &reply);
}

static uint64_t draw(struct nt_kube_pods *pods, uint64_t max)
{
	pods->random = nt_hash_mix(pods->random + 0x9e3779b97f4a7c15ULL);
	return max ? pods->random % max : 0;
}

static bool watch(struct nt_kube_pods *pods)
{
	nt_autosplitter struct nt_json_stream json_stream = {
		.mode = NT_JSON_STREAM_VALUES,
		.max_bytes = NT_KUBE_POD_BYTES,
		.object = on_change,
		.context = pods,
	};
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf path = {0};
	uint64_t span_ns = pods->watch_ns + draw(pods, pods->watch_ns / 4);
	uint64_t span_s = (span_ns + NT_SECOND - 1) / NT_SECOND;
	int r;

	pods->was_gone = false;
	r = nt_buf_printf(&path,
			  "/api/v1/pods?%s&watch=1&allowWatchBookmarks=true"
			  "&timeoutSeconds=%llu&resourceVersion=",
			  pods->selector, (unsigned long long)span_s);
	if (r == 0)
		r = nt_kube_escape(&path, pods->version);
	if (r < 0)
		return settle(pods, r, &reply);
	count(pods, &pods->stats.watches, 1);
	r = nt_kube_call(pods->kube,
			 &(struct nt_kube_request){
				 .path = (const char *)path.data,
				 .timeout_ns = span_s * NT_SECOND + GRACE_NS,
				 .data = feed,
				 .begun = on_watching,
				 .context = &json_stream,
			 },
			 &reply);
	count(pods, &pods->stats.too_large, json_stream.too_large);
	return settle(pods, r, &reply);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Waits until then or until shutdown: true. */
static bool wait(struct nt_kube_pods *pods, uint64_t ns)
{
	const uint64_t until_ns = nt_clock_mono_ns() + ns;
	bool stopped;

	(void)pthread_mutex_lock(&pods->lock);
	while (!pods->stopped && nt_thread_wait(&pods->stops, &pods->lock, until_ns))
		;
	stopped = pods->stopped;
	(void)pthread_mutex_unlock(&pods->lock);
	return stopped;
}

/*
 * Half of it is random, so that the agents of a cluster do not reconnect at once. After a success
 * the shortest delay applies, which protects a server that ends every watch at once.
 */
static uint64_t wait_after(struct nt_kube_pods *pods, bool well)
{
	uint64_t ns;

	if (well) {
		pods->wait_ns = 0;
		return draw(pods, pods->retry_min_ns);
	}
	pods->wait_ns = pods->wait_ns ? 2 * pods->wait_ns : pods->retry_min_ns;
	if (pods->wait_ns > pods->retry_max_ns)
		pods->wait_ns = pods->retry_max_ns;
	ns = pods->wait_ns / 2 + draw(pods, pods->wait_ns / 2 + 1);
	if (pods->retry_after_ns > RETRY_AFTER_MAX * pods->retry_max_ns)
		pods->retry_after_ns = RETRY_AFTER_MAX * pods->retry_max_ns;
	return pods->retry_after_ns > ns ? pods->retry_after_ns : ns;
}

static void *run(void *data)
{
	struct nt_kube_pods *pods = data;
	bool well, listed;

	do {
		listed = !pods->version[0];
		pods->retry_after_ns = 0;
		pods->was_gone = false;
		well = listed ? list(pods) : watch(pods);
		/* The watch follows its list without a delay. */
	} while (!wait(pods, well && listed && pods->version[0] ? 0 : wait_after(pods, well)));
	return NULL;
}

static int make_selector(const char *node, char **ret_selector)
{
	nt_autobuf struct nt_buf buf = {0};
	int r;

	r = nt_buf_printf(&buf, "fieldSelector=spec.nodeName%%3D");
	if (r == 0)
		r = nt_kube_escape(&buf, node);
	if (r == 0)
		r = nt_buf_append(&buf, "", 1);
	if (r < 0)
		return r;
	*ret_selector = (char *)nt_take(buf.data);
	return 0;
}

int nt_kube_pods_new(const struct nt_kube_pods_options *options, struct nt_kube_pods **ret_pods)
{
	nt_auto(nt_kube_pods) struct nt_kube_pods *pods = calloc(1, sizeof(*pods));
	int r;

	if (!pods)
		return -ENOMEM;
	(void)pthread_mutex_init(&pods->lock, NULL);
	nt_thread_condition_init(&pods->stops);
	pods->retry_min_ns = options->retry_min_ns ? options->retry_min_ns : RETRY_MIN_NS;
	pods->retry_max_ns = options->retry_max_ns ? options->retry_max_ns : RETRY_MAX_NS;
	pods->watch_ns = options->watch_ns ? options->watch_ns : WATCH_NS;
	pods->random = nt_hash_u64(nt_hash_text(NT_HASH_SEED, options->node), nt_clock_mono_ns());
	r = nt_kube_new(options->kube, &pods->kube);
	if (r == 0)
		r = make_selector(options->node, &pods->selector);
	if (r == 0)
		r = nt_pods_new(&pods->pods);
	if (r == 0)
		r = nt_thread_start(&pods->thread, run, pods);
	if (r < 0)
		return r;
	pods->has_thread = true;
	*ret_pods = nt_take(pods);
	return 0;
}

void nt_kube_pods_free(struct nt_kube_pods *pods)
{
	if (!pods)
		return;
	if (pods->has_thread) {
		(void)pthread_mutex_lock(&pods->lock);
		pods->stopped = true;
		(void)pthread_cond_signal(&pods->stops);
		(void)pthread_mutex_unlock(&pods->lock);
		nt_kube_stop(pods->kube);
		(void)pthread_join(pods->thread, NULL);
	}
	nt_kube_free(pods->kube);
	nt_pods_free(pods->pods);
	(void)pthread_cond_destroy(&pods->stops);
	(void)pthread_mutex_destroy(&pods->lock);
	free(pods->selector);
	free(pods);
}

/* ---- queries -------------------------------------------------------------------------------- */

bool nt_kube_pods_find(struct nt_kube_pods *pods, const struct nt_cgroup *cgroup,
		       struct nt_placement *ret_placement)
{
	bool found;

	(void)pthread_mutex_lock(&pods->lock);
	found = nt_pods_find(pods->pods, cgroup, ret_placement);
	(void)pthread_mutex_unlock(&pods->lock);
	return found;
}

void nt_kube_pods_tick(struct nt_kube_pods *pods, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&pods->lock);
	nt_pods_tick(pods->pods, now_ns);
	(void)pthread_mutex_unlock(&pods->lock);
}

enum nt_kube_failure nt_kube_pods_failure(struct nt_kube_pods *pods, char text[NT_KUBE_REASON])
{
	enum nt_kube_failure failure;

	(void)pthread_mutex_lock(&pods->lock);
	failure = pods->failure;
	memcpy(text, pods->reason, sizeof(pods->reason));
	(void)pthread_mutex_unlock(&pods->lock);
	return failure;
}

const char *nt_kube_pods_server(const struct nt_kube_pods *pods)
{
	return nt_kube_server(pods->kube);
}

void nt_kube_pods_stats(struct nt_kube_pods *pods, struct nt_kube_pods_stats *ret_stats)
{
	(void)pthread_mutex_lock(&pods->lock);
	*ret_stats = pods->stats;
	ret_stats->is_synced &= pods->failure == NT_KUBE_WELL;
	nt_pods_stats(pods->pods, &ret_stats->pods);
	(void)pthread_mutex_unlock(&pods->lock);
}
