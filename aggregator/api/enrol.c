/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/api/enrol.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/system/clock.h"
#include "common/system/thread.h"
#include "proto/json.h"

#define PAUSE_NS                                                                                   \
	(20 * NT_MILLISECOND) /* limits the load on an API server to that of one busy node */
#define REVIEW_NS  (10 * NT_SECOND)
#define GRANTED_NS NT_MINUTE /* how long a result is kept; requests repeat each second */
#define REFUSED_NS (5 * NT_SECOND)

#define PATH      "/apis/authentication.k8s.io/v1/tokenreviews"
#define NODE_NAME "authentication.kubernetes.io/node-name"

enum {
	HASH = 32,
	USER = 320,
};

enum state {
	FREE,
	WAITING,
	REVIEWED, /* its node is known */
	DENIED,
	FAILED,
};

struct token_entry {
	enum state state;
	uint8_t hash[HASH]; /* of the token */
	char *token; /* owned, while under review */
	uint64_t number; /* in order of arrival */
	uint64_t until_ns; /* expiry */
	char node[NT_NODE_KEY_NODE + 1];
	char reason[NT_ENROL_REASON];
};

struct nt_enrol {
	struct nt_kube *kube;
	const struct nt_node_secrets *secrets;
	char user[USER], audience[USER];
	uint64_t pause_ns;
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock; /* covers all members below; never held during a review */
	pthread_cond_t wake;
	bool stops;
	uint64_t numbers;
	struct token_entry entry[NT_ENROL_TOKENS];
	struct nt_enrol_stats stats;
};

/* ---- a review ------------------------------------------------------------------------------- */

/* The result of a token review. */
struct review_result {
	enum state state;
	char node[NT_NODE_KEY_NODE + 1];
	char reason[NT_ENROL_REASON];
};

static void deny(struct review_result *finding, const char *reason)
{
	finding->state = DENIED;
	(void)snprintf(finding->reason, sizeof(finding->reason), "%s", reason);
}

static bool holds(const json_t *array, const char *text)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *value = json_string_value(json_array_get(array, i));

		if (value && strcmp(value, text) == 0)
			return true;
	}
	return false;
}

/* An API server that does not support audiences does not return ours. */
static void judge(const struct nt_enrol *enrol, const json_t *review, struct review_result *finding)
{
	const json_t *status = json_object_get(review, "status");
	const json_t *user = json_object_get(status, "user");
	const json_t *nodes = json_object_get(json_object_get(user, "extra"), NODE_NAME);
	const char *node = json_string_value(json_array_get(nodes, 0));

	if (!json_is_true(json_object_get(status, "authenticated")))
		deny(finding, "the token is invalid");
	else if (!holds(json_object_get(status, "audiences"), enrol->audience))
		deny(finding, "the token is for another audience");
	else if (strcmp(nt_json_get_text(user, "username", ""), enrol->user) != 0)
		deny(finding, "the token belongs to another service account");
	else if (json_array_size(nodes) != 1 || !node || !*node ||
		 strlen(node) >= sizeof(finding->node))
		deny(finding,
		     "the token names no node: it must be bound to a pod, in Kubernetes 1.30 or "
		     "later");
	else
		*finding = (struct review_result){.state = REVIEWED};
	if (finding->state == REVIEWED)
		(void)snprintf(finding->node, sizeof(finding->node), "%s", node);
}

static json_t *make_review(const struct nt_enrol *enrol, const char *token)
{
	return json_pack("{s:s, s:s, s:{s:s, s:[s]}}", "apiVersion", "authentication.k8s.io/v1",
			 "kind", "TokenReview", "spec", "token", token, "audiences",
			 enrol->audience);
}

static void review(struct nt_enrol *enrol, const char *token, struct review_result *finding)
{
	nt_autojson json_t *request = make_review(enrol, token), *answer = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	nt_autobuf struct nt_buf body = {0};
	int r = request ? nt_json_dump(request, false, &body) : -ENOMEM;

	*finding = (struct review_result){.state = FAILED};
	if (!request) {
		deny(finding, "the token is invalid"); /* no UTF-8 */
		return;
	}
	if (r == 0)
		r = nt_kube_call(enrol->kube,
				 &(struct nt_kube_request){
					 .method = NT_KUBE_POST,
					 .path = PATH,
					 .body = body.data,
					 .body_len = body.len,
					 .timeout_ns = REVIEW_NS,
				 },
				 &reply);
	if (body.data)
		OPENSSL_cleanse(body.data, body.len);
	if (r == 0 && (reply.status == 200 || reply.status == 201))
		r = nt_json_load(reply.body.data, reply.body.len, &answer);
	if (answer)
		judge(enrol, answer, finding);
	else if (reply.reason[0])
		(void)snprintf(finding->reason, sizeof(finding->reason), "%s", reply.reason);
	else
		(void)snprintf(finding->reason, sizeof(finding->reason), "%s",
			       r < 0 && r != -EBADMSG ? nt_kube_error(enrol->kube)
						      : "the API server's response is invalid");
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void discard(char *token)
{
	if (token)
		OPENSSL_cleanse(token, strlen(token));
	free(token);
}

static struct token_entry *oldest_waiting(struct nt_enrol *enrol)
{
	struct token_entry *oldest = NULL;

	for (size_t i = 0; i < NT_ENROL_TOKENS; i++) {
		struct token_entry *entry = &enrol->entry[i];

		if (entry->state == WAITING && entry->token &&
		    (!oldest || entry->number < oldest->number))
			oldest = entry;
	}
	return oldest;
}

static void settle(struct nt_enrol *enrol, struct token_entry *entry,
		   const struct review_result *finding)
{
	bool is_valid = finding->state == REVIEWED;

	entry->state = finding->state;
	entry->until_ns = nt_clock_mono_ns() + (is_valid ? GRANTED_NS : REFUSED_NS);
	memcpy(entry->node, finding->node, sizeof(entry->node));
	memcpy(entry->reason, finding->reason, sizeof(entry->reason));
	enrol->stats.granted += is_valid;
	enrol->stats.denied += finding->state == DENIED;
	enrol->stats.failed += finding->state == FAILED;
}

static void *run(void *data)
{
	struct nt_enrol *enrol = data;

	(void)pthread_mutex_lock(&enrol->lock);
	while (!enrol->stops) {
		struct token_entry *entry = oldest_waiting(enrol);
		struct review_result finding;
		uint64_t until_ns;
		char *token;

		if (!entry) {
			(void)nt_thread_wait(&enrol->wake, &enrol->lock,
					     nt_clock_mono_ns() + NT_MINUTE);
			continue;
		}
		token = nt_take(entry->token);
		(void)pthread_mutex_unlock(&enrol->lock);
		review(enrol, token, &finding);
		discard(token);
		until_ns = nt_clock_mono_ns() + enrol->pause_ns;
		(void)pthread_mutex_lock(&enrol->lock);
		settle(enrol, entry, &finding); /* no other thread changes an entry under review */
		while (!enrol->stops && nt_thread_wait(&enrol->wake, &enrol->lock, until_ns))
			;
	}
	(void)pthread_mutex_unlock(&enrol->lock);
	return NULL;
}

/* ---- requests ------------------------------------------------------------------------------- */

static struct token_entry *find(struct nt_enrol *enrol, const uint8_t hash[HASH], uint64_t now_ns)
{
	struct token_entry *found = NULL;

	for (size_t i = 0; i < NT_ENROL_TOKENS; i++) {
		struct token_entry *entry = &enrol->entry[i];

		if (entry->state > WAITING && entry->until_ns <= now_ns)
			entry->state = FREE;
		if (entry->state != FREE && CRYPTO_memcmp(entry->hash, hash, HASH) == 0)
			found = entry;
	}
	return found;
}

/* A free entry, else the refused one that expires first. */
static struct token_entry *find_room(struct nt_enrol *enrol)
{
	struct token_entry *room = NULL;

	for (size_t i = 0; i < NT_ENROL_TOKENS; i++) {
		struct token_entry *entry = &enrol->entry[i];

		if (entry->state == FREE)
			return entry;
		if (entry->state > REVIEWED && (!room || entry->until_ns < room->until_ns))
			room = entry;
	}
	return room;
}

static enum nt_enrol_answer add(struct nt_enrol *enrol, const uint8_t hash[HASH], const char *token,
				size_t len)
{
	struct token_entry *entry = find_room(enrol);
	char *copy = entry ? strndup(token, len) : NULL;

	if (!copy) {
		enrol->stats.over_cap++;
		return NT_ENROL_BUSY;
	}
	*entry = (struct token_entry){
		.state = WAITING,
		.token = copy,
		.number = ++enrol->numbers,
	};
	memcpy(entry->hash, hash, HASH);
	(void)pthread_cond_signal(&enrol->wake);
	return NT_ENROL_WAITS;
}

static enum nt_enrol_answer answer(struct nt_enrol *enrol, const struct token_entry *entry,
				   const char *node, struct nt_node_key *ret_key,
				   char ret_reason[NT_ENROL_REASON])
{
	if (entry->state == WAITING)
		return NT_ENROL_WAITS;
	if (entry->state == REVIEWED && strcmp(entry->node, node) == 0 &&
	    nt_node_secrets_derive(enrol->secrets, node, ret_key) == 0)
		return NT_ENROL_GRANTED;
	if (entry->state == REVIEWED)
		(void)snprintf(ret_reason, NT_ENROL_REASON, "the token belongs to node '%.200s'",
			       entry->node);
	else
		memcpy(ret_reason, entry->reason, NT_ENROL_REASON);
	return entry->state == FAILED ? NT_ENROL_AWAY : NT_ENROL_DENIED;
}

enum nt_enrol_answer nt_enrol_request(struct nt_enrol *enrol, const char *token, size_t len,
				      const char *node, struct nt_node_key *ret_key,
				      char ret_reason[NT_ENROL_REASON])
{
	enum nt_enrol_answer how;
	const struct token_entry *entry;
	uint8_t hash[HASH];

	(void)snprintf(ret_reason, NT_ENROL_REASON, "the token is invalid");
	if (!len || len > NT_ENROL_TOKEN_BYTES || memchr(token, '\0', len))
		return NT_ENROL_DENIED;
	if (!EVP_Digest(token, len, hash, NULL, EVP_sha256(), NULL))
		return NT_ENROL_BUSY;
	(void)pthread_mutex_lock(&enrol->lock);
	entry = find(enrol, hash, nt_clock_mono_ns());
	how = entry ? answer(enrol, entry, node, ret_key, ret_reason)
		    : add(enrol, hash, token, len);
	(void)pthread_mutex_unlock(&enrol->lock);
	return how;
}

void nt_enrol_stats(struct nt_enrol *enrol, struct nt_enrol_stats *ret_stats)
{
	(void)pthread_mutex_lock(&enrol->lock);
	*ret_stats = enrol->stats;
	(void)pthread_mutex_unlock(&enrol->lock);
}

/* ---- starting ------------------------------------------------------------------------------- */

bool nt_enrol_account_is_sound(const char *account)
{
	const char *slash = strchr(account, '/');

	return slash && slash != account && slash[1] && !strchr(slash + 1, '/') &&
	       !strchr(account, ':') && strlen(account) < USER - sizeof("system:serviceaccount:");
}

int nt_enrol_start(const struct nt_enrol_options *options, struct nt_enrol **ret_enrol)
{
	nt_auto(nt_enrol) struct nt_enrol *enrol = calloc(1, sizeof(*enrol));
	const char *slash = strchr(options->account, '/');
	int r;

	if (!enrol)
		return -ENOMEM;
	(void)pthread_mutex_init(&enrol->lock, NULL);
	nt_thread_condition_init(&enrol->wake);
	if (!nt_enrol_account_is_sound(options->account) ||
	    strlen(options->audience) >= sizeof(enrol->audience))
		return -EINVAL;
	(void)snprintf(enrol->user, sizeof(enrol->user), "system:serviceaccount:%.*s:%s",
		       (int)(slash - options->account), options->account, slash + 1);
	(void)snprintf(enrol->audience, sizeof(enrol->audience), "%s", options->audience);
	enrol->secrets = options->secrets;
	enrol->pause_ns = options->pause_ns ? options->pause_ns : PAUSE_NS;
	r = nt_kube_new(options->kube, &enrol->kube);
	if (r == 0)
		r = nt_thread_start(&enrol->thread, run, enrol);
	if (r < 0)
		return r;
	enrol->has_thread = true;
	*ret_enrol = nt_take(enrol);
	return 0;
}

void nt_enrol_stop(struct nt_enrol *enrol)
{
	if (!enrol)
		return;
	if (enrol->has_thread) {
		(void)pthread_mutex_lock(&enrol->lock);
		enrol->stops = true;
		(void)pthread_cond_signal(&enrol->wake);
		(void)pthread_mutex_unlock(&enrol->lock);
		nt_kube_stop(enrol->kube);
		(void)pthread_join(enrol->thread, NULL);
	}
	for (size_t i = 0; i < NT_ENROL_TOKENS; i++)
		discard(enrol->entry[i].token);
	nt_kube_free(enrol->kube);
	(void)pthread_cond_destroy(&enrol->wake);
	(void)pthread_mutex_destroy(&enrol->lock);
	free(enrol);
}
