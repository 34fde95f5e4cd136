/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/enrolment.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "common/base/hash.h"
#include "common/system/clock.h"
#include "common/system/thread.h"
#include "proto/json.h"

#define RETRY_MIN_NS NT_SECOND
#define RETRY_MAX_NS (30 * NT_SECOND)
#define RENEW_NS     NT_HOUR
#define CALL_NS      (10 * NT_SECOND)
#define PATH         "/api/v1/node-keys"

enum {
	HTTP_OK = 200,
	HTTP_WAITS = 202,
	REPLY_BYTES = 4096,
};

struct nt_enrolment {
	struct nt_kube *http; /* a client for JSON with a bearer token */
	char *body;
	char node[NT_NODE_KEY_NODE + 1];
	uint64_t retry_min_ns, retry_max_ns, renew_ns, random;
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock; /* for all below; never held during requests */
	pthread_cond_t stops;
	bool stopped, is_new;
	struct nt_node_key key;
	struct nt_enrolment_stats stats;
	char fault_notice[NT_KUBE_REASON];
};

static int read_key(const struct nt_enrolment *enrolment, const struct nt_buf *body,
		    struct nt_node_key *ret_key, char text[NT_KUBE_REASON])
{
	nt_autojson json_t *object = NULL;
	struct nt_node_key_error error = {.text = "the answer is no JSON"};
	const char *line;
	int r = nt_json_load(body->data, body->len, &object);

	if (r == 0) {
		line = nt_json_get_text(object, "key", "");
		r = nt_node_key_parse(line, strlen(line), enrolment->node, ret_key, &error);
	}
	if (r < 0)
		(void)snprintf(text, NT_KUBE_REASON, "%.200s", error.text);
	return r;
}

/* 0: *ret_key is the node's. -EAGAIN: the token is being reviewed. Otherwise text is the error. */
static int request_key(struct nt_enrolment *enrolment, struct nt_node_key *ret_key,
		       char text[NT_KUBE_REASON])
{
	nt_autokubereply struct nt_kube_reply reply = {0};
	int r = nt_kube_call(enrolment->http,
			     &(struct nt_kube_request){
				     .method = NT_KUBE_POST,
				     .path = PATH,
				     .body = enrolment->body,
				     .body_len = strlen(enrolment->body),
				     .timeout_ns = CALL_NS,
				     .max_bytes = REPLY_BYTES,
			     },
			     &reply);

	if (r < 0) {
		(void)snprintf(text, NT_KUBE_REASON, "%.200s", nt_kube_error(enrolment->http));
	} else if (reply.status == HTTP_WAITS) {
		r = -EAGAIN;
	} else if (reply.status == HTTP_OK) {
		r = read_key(enrolment, &reply.body, ret_key, text);
	} else {
		r = -EACCES;
		(void)snprintf(text, NT_KUBE_REASON, "HTTP %ld%s%.200s", reply.status,
			       reply.reason[0] ? ": " : "", reply.reason);
	}
	if (reply.body.data)
		OPENSSL_cleanse(reply.body.data, reply.body.len);
	return r;
}

/* Waits until then or until shutdown: true. */
static bool wait(struct nt_enrolment *enrolment, uint64_t ns)
{
	const uint64_t until_ns = nt_clock_mono_ns() + ns;
	bool stopped;

	(void)pthread_mutex_lock(&enrolment->lock);
	while (!enrolment->stopped && nt_thread_wait(&enrolment->stops, &enrolment->lock, until_ns))
		;
	stopped = enrolment->stopped;
	(void)pthread_mutex_unlock(&enrolment->lock);
	return stopped;
}

/* Half of it is random, so that the agents of a cluster do not enrol at once. */
static uint64_t some_of(struct nt_enrolment *enrolment, uint64_t ns)
{
	enrolment->random = nt_hash_mix(enrolment->random + 0x9e3779b97f4a7c15ULL);
	return ns / 2 + enrolment->random % (ns / 2 + 1);
}

static void settle(struct nt_enrolment *enrolment, int r, const struct nt_node_key *key,
		   const char *text)
{
	(void)pthread_mutex_lock(&enrolment->lock);
	enrolment->stats.requests++;
	enrolment->stats.granted += r == 0;
	enrolment->stats.failed += r < 0 && r != -EAGAIN;
	if (r == 0) {
		enrolment->key = *key;
		enrolment->is_new = true;
	}
	if (r != -EAGAIN)
		(void)snprintf(enrolment->fault_notice, sizeof(enrolment->fault_notice), "%s",
			       r < 0 ? text : "");
	(void)pthread_mutex_unlock(&enrolment->lock);
}

static void *run(void *data)
{
	struct nt_enrolment *enrolment = data;
	uint64_t wait_ns = 0, ns;

	do {
		char text[NT_KUBE_REASON] = "";
		struct nt_node_key key = {0};
		int r = request_key(enrolment, &key, text);

		settle(enrolment, r, &key, text);
		OPENSSL_cleanse(&key, sizeof(key));
		if (r == 0) {
			wait_ns = 0;
			ns = enrolment->renew_ns;
		} else if (r == -EAGAIN) {
			ns = enrolment->retry_min_ns;
		} else {
			wait_ns = wait_ns ? 2 * wait_ns : enrolment->retry_min_ns;
			if (wait_ns > enrolment->retry_max_ns)
				wait_ns = enrolment->retry_max_ns;
			ns = wait_ns;
		}
	} while (!wait(enrolment, some_of(enrolment, ns)));
	return NULL;
}

/* ---- starting ------------------------------------------------------------------------------- */

static int make_body(const char *node, char **ret_body)
{
	nt_autojson json_t *object = json_pack("{s:s}", "node", node);
	char *body = object ? json_dumps(object, JSON_COMPACT) : NULL;

	if (!body)
		return -ENOMEM;
	*ret_body = body;
	return 0;
}

int nt_enrolment_start(const struct nt_enrolment_options *options,
		       struct nt_enrolment **ret_enrolment)
{
	nt_auto(nt_enrolment) struct nt_enrolment *enrolment = calloc(1, sizeof(*enrolment));
	const struct nt_kube_options http = {
		.api = (char *)(uintptr_t)options->url,
		.token_file = (char *)(uintptr_t)options->token_file,
		.ca_file = (char *)(uintptr_t)(options->ca_file ? options->ca_file : ""),
	};
	int r;

	if (!enrolment)
		return -ENOMEM;
	(void)pthread_mutex_init(&enrolment->lock, NULL);
	nt_thread_condition_init(&enrolment->stops);
	if (strlen(options->node) >= sizeof(enrolment->node))
		return -EINVAL;
	(void)snprintf(enrolment->node, sizeof(enrolment->node), "%s", options->node);
	enrolment->retry_min_ns = options->retry_min_ns ? options->retry_min_ns : RETRY_MIN_NS;
	enrolment->retry_max_ns = options->retry_max_ns ? options->retry_max_ns : RETRY_MAX_NS;
	enrolment->renew_ns = options->renew_ns ? options->renew_ns : RENEW_NS;
	enrolment->random =
		nt_hash_u64(nt_hash_text(NT_HASH_SEED, options->node), nt_clock_mono_ns());
	r = make_body(options->node, &enrolment->body);
	if (r == 0)
		r = nt_kube_new(&http, &enrolment->http);
	if (r == 0)
		r = nt_thread_start(&enrolment->thread, run, enrolment);
	if (r < 0)
		return r;
	enrolment->has_thread = true;
	*ret_enrolment = nt_take(enrolment);
	return 0;
}

void nt_enrolment_stop(struct nt_enrolment *enrolment)
{
	if (!enrolment)
		return;
	if (enrolment->has_thread) {
		(void)pthread_mutex_lock(&enrolment->lock);
		enrolment->stopped = true;
		(void)pthread_cond_signal(&enrolment->stops);
		(void)pthread_mutex_unlock(&enrolment->lock);
		nt_kube_stop(enrolment->http);
		(void)pthread_join(enrolment->thread, NULL);
	}
	nt_kube_free(enrolment->http);
	(void)pthread_cond_destroy(&enrolment->stops);
	(void)pthread_mutex_destroy(&enrolment->lock);
	free(enrolment->body);
	OPENSSL_cleanse(enrolment, sizeof(*enrolment));
	free(enrolment);
}

/* ---- queries -------------------------------------------------------------------------------- */

bool nt_enrolment_take(struct nt_enrolment *enrolment, struct nt_node_key *ret_key)
{
	bool is_new;

	(void)pthread_mutex_lock(&enrolment->lock);
	is_new = enrolment->is_new;
	if (is_new)
		*ret_key = enrolment->key;
	enrolment->is_new = false;
	(void)pthread_mutex_unlock(&enrolment->lock);
	return is_new;
}

void nt_enrolment_fault_notice(struct nt_enrolment *enrolment, char ret_text[NT_KUBE_REASON])
{
	(void)pthread_mutex_lock(&enrolment->lock);
	memcpy(ret_text, enrolment->fault_notice, NT_KUBE_REASON);
	(void)pthread_mutex_unlock(&enrolment->lock);
}

void nt_enrolment_stats(struct nt_enrolment *enrolment, struct nt_enrolment_stats *ret_stats)
{
	(void)pthread_mutex_lock(&enrolment->lock);
	*ret_stats = enrolment->stats;
	(void)pthread_mutex_unlock(&enrolment->lock);
}
