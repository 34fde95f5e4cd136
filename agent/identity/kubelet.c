/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/kubelet.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/buf.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

#define EVERY_NS (10 * NT_SECOND)
#define METHOD   "http://localhost/v1.PodResourcesLister/List"

enum {
	REPLY_BYTES = 4 << 20, /* gRPC's own limit */
	TIMEOUT_MS = 5000,
	FRAME = 5, /* compression flag and length */
};

struct nt_kubelet {
	char *socket;
	uint64_t every_ns;
	pthread_t thread;
	bool has_thread;
	CURL *curl; /* used by the thread only */
	struct curl_slist *headers;
	struct nt_devices *next; /* being parsed */

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t stops;
	bool stopped;
	struct nt_devices *devices;
	struct nt_kubelet_stats stats;
};

/* ---- one call ------------------------------------------------------------------------------- */

struct reply {
	struct nt_buf body;
	bool is_well; /* from the trailer: "grpc-status: 0" */
};

static size_t on_data(char *data, size_t size, size_t count, void *context)
{
	struct reply *reply = context;

	return nt_buf_append(&reply->body, data, size * count) < 0 ? 0 : size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
	static const char wanted[] = "grpc-status: 0";
	struct reply *reply = context;
	size_t len = size * count;

	while (len && (data[len - 1] == '\r' || data[len - 1] == '\n'))
		len--;
	if (len == sizeof(wanted) - 1 && strncasecmp(data, wanted, len) == 0)
		reply->is_well = true;
	return size * count;
}

/* The request has no fields: an empty frame. */
static int call(struct nt_kubelet *kubelet, struct reply *reply)
{
	static const char request[FRAME];
	CURL *curl = kubelet->curl;
	CURLcode failed = 0;
	long status = 0;

	curl_easy_reset(curl);
	failed |= curl_easy_setopt(curl, CURLOPT_URL, METHOD);
	failed |= curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, kubelet->socket);
	failed |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
	failed |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
	failed |= curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
				   (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	failed |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	failed |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
	failed |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, kubelet->headers);
	failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)FRAME);
	failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request);
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
	failed |= curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	failed |= curl_easy_setopt(curl, CURLOPT_HEADERDATA, reply);
	if (failed)
		return -ENOMEM;
	if (curl_easy_perform(curl))
		return -ECONNREFUSED;
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 && reply->is_well ? 0 : -EREMOTEIO;
}

static int read_reply(const struct nt_buf *body, struct nt_devices *ret_devices)
{
	const uint8_t *data = body->data;
	uint64_t len;

	if (body->len < FRAME || data[0])
		return -EBADMSG;
	len = (uint64_t)data[1] << 24 | (uint64_t)data[2] << 16 | (uint64_t)data[3] << 8 | data[4];
	if (len != body->len - FRAME)
		return -EBADMSG;
	return nt_devices_read(data + FRAME, (size_t)len, ret_devices);
}

static void read_gpus(struct nt_kubelet *kubelet)
{
	struct reply reply = {.body = {.max = REPLY_BYTES}};
	struct nt_devices *before;
	bool answered;
	int r = call(kubelet, &reply);

	answered = r == 0;
	if (answered)
		r = read_reply(&reply.body, kubelet->next);
	nt_buf_release(&reply.body);
	(void)pthread_mutex_lock(&kubelet->lock);
	kubelet->stats.requests++;
	kubelet->stats.failed += r < 0;
	kubelet->stats.malformed += answered && r < 0;
	kubelet->stats.is_there = r == 0;
	/* The last known state stays valid until replaced. */
	if (r == 0) {
		before = kubelet->devices;
		kubelet->devices = kubelet->next;
		kubelet->next = before;
		kubelet->stats.devices = kubelet->devices->count;
		kubelet->stats.over_cap = kubelet->devices->over_cap;
	}
	(void)pthread_mutex_unlock(&kubelet->lock);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool wait(struct nt_kubelet *kubelet)
{
	const uint64_t until_ns = nt_clock_mono_ns() + kubelet->every_ns;
	bool stopped;

	(void)pthread_mutex_lock(&kubelet->lock);
	while (!kubelet->stopped && nt_thread_wait(&kubelet->stops, &kubelet->lock, until_ns))
		;
	stopped = kubelet->stopped;
	(void)pthread_mutex_unlock(&kubelet->lock);
	return stopped;
}

static void *run(void *data)
{
	struct nt_kubelet *kubelet = data;

	do {
		/* A node outside Kubernetes never has the socket. */
		if (access(kubelet->socket, F_OK) == 0)
			read_gpus(kubelet);
	} while (!wait(kubelet));
	return NULL;
}

static int add_header(struct nt_kubelet *kubelet, const char *line)
{
	struct curl_slist *headers = curl_slist_append(kubelet->headers, line);

	if (!headers)
		return -ENOMEM;
	kubelet->headers = headers;
	return 0;
}

int nt_kubelet_new(const char *socket, uint64_t every_ns, struct nt_kubelet **ret_kubelet)
{
	nt_auto(nt_kubelet) struct nt_kubelet *kubelet = calloc(1, sizeof(*kubelet));
	int r;

	if (!kubelet)
		return -ENOMEM;
	(void)pthread_mutex_init(&kubelet->lock, NULL);
	nt_thread_condition_init(&kubelet->stops);
	kubelet->every_ns = every_ns ? every_ns : EVERY_NS;
	kubelet->socket = strdup(socket);
	kubelet->devices = calloc(1, sizeof(*kubelet->devices));
	kubelet->next = calloc(1, sizeof(*kubelet->next));
	if (!kubelet->socket || !kubelet->devices || !kubelet->next ||
	    curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	kubelet->curl = curl_easy_init();
	if (!kubelet->curl || add_header(kubelet, "Content-Type: application/grpc") < 0 ||
	    add_header(kubelet, "TE: trailers") < 0)
		return -ENOMEM;
	r = nt_thread_start(&kubelet->thread, run, kubelet);
	if (r < 0)
		return r;
	kubelet->has_thread = true;
	*ret_kubelet = nt_take(kubelet);
	return 0;
}

void nt_kubelet_free(struct nt_kubelet *kubelet)
{
	if (!kubelet)
		return;
	if (kubelet->has_thread) {
		(void)pthread_mutex_lock(&kubelet->lock);
		kubelet->stopped = true;
		(void)pthread_cond_signal(&kubelet->stops);
		(void)pthread_mutex_unlock(&kubelet->lock);
		(void)pthread_join(kubelet->thread, NULL);
	}
	curl_easy_cleanup(kubelet->curl);
	curl_slist_free_all(kubelet->headers);
	free(kubelet->devices);
	free(kubelet->next);
	(void)pthread_cond_destroy(&kubelet->stops);
	(void)pthread_mutex_destroy(&kubelet->lock);
	free(kubelet->socket);
	free(kubelet);
}

/* ---- queries -------------------------------------------------------------------------------- */

size_t nt_kubelet_gpus(struct nt_kubelet *kubelet, const char *namespace, const char *pod,
		       const char *container, char ret_gpu[NT_DEVICE_ID])
{
	uint64_t owner = nt_device_owner(namespace, pod, container);
	const char *id;
	size_t n;

	(void)pthread_mutex_lock(&kubelet->lock);
	n = nt_devices_find(kubelet->devices, owner, &id);
	if (n == 1)
		memcpy(ret_gpu, id, strlen(id) + 1);
	(void)pthread_mutex_unlock(&kubelet->lock);
	return n;
}

void nt_kubelet_stats(struct nt_kubelet *kubelet, struct nt_kubelet_stats *ret_stats)
{
	(void)pthread_mutex_lock(&kubelet->lock);
	*ret_stats = kubelet->stats;
	(void)pthread_mutex_unlock(&kubelet->lock);
}
