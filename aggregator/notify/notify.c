/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/notify.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "aggregator/notify/kube_notice.h"
#include "aggregator/notify/webhook.h"
#include "common/base/buf.h"
#include "common/system/clock.h"
#include "common/system/file.h"
#include "common/system/log.h"
#include "common/system/thread.h"

enum {
	SECRET_MAX_BYTES = 8 << 10,
};

/* On stop, an attempt in progress is aborted after this time. */
static const uint64_t stop_patience_ns = 2 * NT_SECOND;
static const uint64_t store_retry_ns = NT_SECOND;

struct receiver {
	struct nt_notify *notify;
	char *name, *url;
	struct nt_webhook_key key;
	struct nt_kube *kube; /* instead */
	bool conditions;
	pthread_t thread;
	bool woken; /* under the notifier's lock */
};

struct nt_notify {
	struct nt_notify_options options;
	struct receiver receiver[NT_STORE_MAX_RECEIVERS];
	size_t receivers, threads;

	pthread_mutex_t lock; /* over `woken`, `stopping` and `working` */
	pthread_cond_t wake, ended;
	bool stopping;
	size_t working; /* running threads */
	atomic_bool abort;

	atomic_ullong sent, retried, failed, expired, kube_left_out;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void start_curl(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits until next_real_ns, a wake-up or stop. False: stopping. */
static bool wait_until(struct receiver *receiver, uint64_t next_real_ns)
{
	struct nt_notify *notify = receiver->notify;
	uint64_t now_ns = nt_clock_real_ns();
	uint64_t until_ns =
		nt_clock_mono_ns() + (next_real_ns > now_ns ? next_real_ns - now_ns : 0);
	bool goes_on;

	pthread_mutex_lock(&notify->lock);
	while (!receiver->woken && !notify->stopping) {
		if (next_real_ns == UINT64_MAX)
			(void)pthread_cond_wait(&notify->wake, &notify->lock);
		else if (!nt_thread_wait(&notify->wake, &notify->lock, until_ns))
			break;
	}
	receiver->woken = false;
	goes_on = !notify->stopping;
	pthread_mutex_unlock(&notify->lock);
	return goes_on;
}

/* Sleeps and ignores wake-ups, so that a failing store is not polled. False: stopping. */
static bool pause_for(struct nt_notify *notify, uint64_t pause_ns)
{
	uint64_t until_ns = nt_clock_mono_ns() + pause_ns;
	bool goes_on;

	pthread_mutex_lock(&notify->lock);
	while (!notify->stopping && nt_thread_wait(&notify->wake, &notify->lock, until_ns))
		;
	goes_on = !notify->stopping;
	pthread_mutex_unlock(&notify->lock);
	return goes_on;
}

/* ---- delivering ------------------------------------------------------------------------------ */

/* Full jitter: uniform from 0 to the doubled delay, so that retries do not synchronise. */
static uint64_t retry_delay_ns(const struct nt_notify *notify, uint32_t attempts)
{
	uint64_t delay_ns = notify->options.first_retry_ns, random = 0;

	for (uint32_t i = 1; i < attempts && delay_ns < notify->options.longest_retry_ns; i++)
		delay_ns *= 2;
	if (delay_ns > notify->options.longest_retry_ns)
		delay_ns = notify->options.longest_retry_ns;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = nt_clock_mono_ns();
	return random % (delay_ns + 1);
}

static enum nt_outbox_result judge(struct nt_notify *notify,
				   const struct nt_outbox_message *message,
				   const struct nt_attempt *answer, uint64_t *ret_next_ns)
{
	uint64_t now_ns = nt_clock_real_ns(), delay_ns;

	if (answer->outcome == NT_ATTEMPT_TAKEN) {
		atomic_fetch_add(&notify->sent, 1);
		return NT_OUTBOX_SENT;
	}
	if (answer->outcome == NT_ATTEMPT_REFUSED) {
		atomic_fetch_add(&notify->failed, 1);
		(void)nt_warn(0, "receiver '%s' refuses message %s: HTTP %ld; it is not sent again",
			      message->receiver, message->id, answer->status);
		return NT_OUTBOX_FAILED;
	}
	delay_ns = retry_delay_ns(notify, message->attempts);
	if (delay_ns < answer->retry_after_ns)
		delay_ns = answer->retry_after_ns;
	*ret_next_ns = now_ns + delay_ns;
	if (*ret_next_ns > message->queued_real_ns + notify->options.give_up_ns) {
		atomic_fetch_add(&notify->expired, 1);
		(void)nt_warn(0, "receiver '%s': message %s given up after %u failed attempts",
			      message->receiver, message->id, message->attempts);
		return NT_OUTBOX_EXPIRED;
	}
	atomic_fetch_add(&notify->retried, 1);
	if (message->attempts == 1)
		(void)nt_warn(0, "receiver '%s': message %s failed, to be retried: %s (HTTP %ld)",
			      message->receiver, message->id, answer->reason, answer->status);
	return NT_OUTBOX_RETRY;
}

/*
 * Records the result; retries until the store accepts it, as a sent message must not be sent again.
 */
static bool note(struct nt_notify *notify, const struct nt_outbox_message *message,
		 enum nt_outbox_result result, uint64_t next_ns)
{
	while (nt_store_outbox_done(notify->options.store, message->number, result,
				    nt_clock_real_ns(), next_ns) < 0) {
		if (!pause_for(notify, store_retry_ns))
			return false;
	}
	return true;
}

static int post(const struct receiver *receiver, const struct nt_outbox_message *message,
		struct nt_attempt *ret_answer)
{
	const struct nt_notify *notify = receiver->notify;

	return nt_webhook_send(
		&(struct nt_webhook_post){
			.url = receiver->url,
			.id = message->id,
			.body = message->body,
			.body_len = message->body_len,
			.key = &receiver->key,
			.time_s = nt_clock_real_ns() / NT_SECOND,
			.connect_timeout_ns = notify->options.connect_timeout_ns,
			.total_timeout_ns = notify->options.total_timeout_ns,
			.abort = &notify->abort,
		},
		ret_answer);
}

static int notice(const struct receiver *receiver, const struct nt_outbox_message *message,
		  struct nt_attempt *ret_answer)
{
	size_t left_out = 0;
	int r = nt_kube_notice_send(
		receiver->kube,
		&(struct nt_kube_notice){
			.id = message->id,
			.body = message->body,
			.body_len = message->body_len,
			.conditions = receiver->conditions,
			.timeout_ns = receiver->notify->options.total_timeout_ns,
		},
		ret_answer, &left_out);

	atomic_fetch_add(&receiver->notify->kube_left_out, left_out);
	return r;
}

/* False: stopping. */
static bool deliver(const struct receiver *receiver, const struct nt_outbox_message *message)
{
	struct nt_notify *notify = receiver->notify;
	struct nt_attempt answer = {.outcome = NT_ATTEMPT_LATER, .reason = "out of memory"};
	enum nt_outbox_result result;
	uint64_t next_ns = 0;
	int r;

	r = receiver->kube ? notice(receiver, message, &answer) : post(receiver, message, &answer);
	if (r == 0 && answer.outcome == NT_ATTEMPT_ABORTED)
		return false; /* it stays in the outbox */
	result = judge(notify, message, &answer, &next_ns);
	return note(notify, message, result, next_ns);
}

static void *work(void *data)
{
	struct receiver *receiver = data;
	struct nt_notify *notify = receiver->notify;
	bool goes_on = true;

	while (goes_on) {
		struct nt_outbox_message message = {0};
		uint64_t next_ns;
		int r = nt_store_outbox_next(notify->options.store, receiver->name,
					     nt_clock_real_ns(), &message, &next_ns);

		if (r > 0) {
			goes_on = deliver(receiver, &message);
			nt_outbox_message_release(&message);
			pthread_mutex_lock(&notify->lock);
			goes_on = goes_on && !notify->stopping;
			pthread_mutex_unlock(&notify->lock);
		} else if (r < 0) {
			goes_on = pause_for(notify, store_retry_ns);
		} else {
			goes_on = wait_until(receiver, next_ns);
		}
	}
	pthread_mutex_lock(&notify->lock);
	notify->working--;
	pthread_cond_signal(&notify->ended);
	pthread_mutex_unlock(&notify->lock);
	return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static int copy_receivers(struct nt_notify *notify, const struct nt_notify_options *options)
{
	for (size_t i = 0; i < options->receivers; i++) {
		const struct nt_notify_receiver *from = &options->receiver[i];
		struct receiver *to = &notify->receiver[i];

		if (!from->kube && (!nt_webhook_url_is_valid(from->url) ||
				    nt_webhook_key_read(from->secret, &to->key) < 0))
			return -EINVAL;
		to->notify = notify;
		to->kube = from->kube;
		to->conditions = from->conditions;
		to->name = strdup(from->name);
		to->url = strdup(from->kube ? "" : from->url);
		if (!to->name || !to->url)
			return -ENOMEM;
		notify->receivers++;
	}
	return 0;
}

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
	return value ? value : fallback;
}

static void init(struct nt_notify *notify, const struct nt_notify_options *options)
{
	notify->options = (struct nt_notify_options){
		.store = options->store,
		.connect_timeout_ns = or_default(options->connect_timeout_ns, 5 * NT_SECOND),
		.total_timeout_ns = or_default(options->total_timeout_ns, 15 * NT_SECOND),
		.first_retry_ns = or_default(options->first_retry_ns, NT_SECOND),
		.longest_retry_ns = or_default(options->longest_retry_ns, 5 * NT_MINUTE),
		.give_up_ns = or_default(options->give_up_ns, NT_HOUR),
	};
	pthread_mutex_init(&notify->lock, NULL);
	nt_thread_condition_init(&notify->wake);
	nt_thread_condition_init(&notify->ended);
}

static int start_threads(struct nt_notify *notify)
{
	int r = 0;

	pthread_mutex_lock(&notify->lock);
	while (r == 0 && notify->threads < notify->receivers) {
		struct receiver *receiver = &notify->receiver[notify->threads];

		r = nt_thread_start(&receiver->thread, work, receiver);
		if (r == 0)
			notify->working = ++notify->threads;
	}
	pthread_mutex_unlock(&notify->lock);
	return r;
}

/* Fails messages to receivers of an earlier configuration. */
static int fail_others(struct nt_notify *notify)
{
	size_t failed = 0;
	int r = nt_store_outbox_fail_others(notify->options.store, &failed);

	if (failed)
		(void)nt_warn(0,
			      "%zu messages are not sent: their receivers are no longer configured",
			      failed);
	atomic_fetch_add(&notify->failed, failed);
	return r;
}

int nt_notify_start(const struct nt_notify_options *options, struct nt_notify **ret_notify)
{
	nt_auto(nt_notify) struct nt_notify *notify = NULL;
	int r;

	if (options->receivers > NT_STORE_MAX_RECEIVERS)
		return -E2BIG;
	(void)pthread_once(&curl_once, start_curl);
	notify = calloc(1, sizeof(*notify));
	if (!notify)
		return -ENOMEM;
	init(notify, options);
	r = copy_receivers(notify, options);
	if (r < 0)
		return r;
	/* On a full disk this is retried later. */
	(void)fail_others(notify);
	r = start_threads(notify);
	if (r < 0)
		return r;
	*ret_notify = nt_take(notify);
	return 0;
}

static void stop_threads(struct nt_notify *notify)
{
	uint64_t until_ns = nt_clock_mono_ns() + stop_patience_ns;

	pthread_mutex_lock(&notify->lock);
	notify->stopping = true;
	pthread_cond_broadcast(&notify->wake);
	while (notify->working && nt_thread_wait(&notify->ended, &notify->lock, until_ns))
		;
	pthread_mutex_unlock(&notify->lock);
	atomic_store(&notify->abort, true);
	for (size_t i = 0; i < notify->receivers; i++) {
		if (notify->receiver[i].kube)
			nt_kube_stop(notify->receiver[i].kube);
	}
	for (size_t i = 0; i < notify->threads; i++)
		(void)pthread_join(notify->receiver[i].thread, NULL);
}

void nt_notify_stop(struct nt_notify *notify)
{
	if (!notify)
		return;
	stop_threads(notify);
	for (size_t i = 0; i < NT_STORE_MAX_RECEIVERS; i++) {
		OPENSSL_cleanse(&notify->receiver[i].key, sizeof(notify->receiver[i].key));
		free(notify->receiver[i].name);
		free(notify->receiver[i].url);
	}
	pthread_cond_destroy(&notify->wake);
	pthread_cond_destroy(&notify->ended);
	pthread_mutex_destroy(&notify->lock);
	free(notify);
}

void nt_notify_wake(void *data)
{
	struct nt_notify *notify = data;

	pthread_mutex_lock(&notify->lock);
	for (size_t i = 0; i < notify->receivers; i++)
		notify->receiver[i].woken = true;
	pthread_cond_broadcast(&notify->wake);
	pthread_mutex_unlock(&notify->lock);
}

int nt_notify_read_secret(const char *path, char **ret_text)
{
	nt_autobuf struct nt_buf text = {0};
	char *line;
	size_t len;
	int r;

	r = nt_file_read(path, SECRET_MAX_BYTES, &text);
	if (r == 0)
		r = nt_buf_append(&text, "", 1);
	if (r < 0)
		return r;
	len = strcspn((const char *)text.data, "\r\n");
	line = len ? strndup((const char *)text.data, len) : NULL;
	OPENSSL_cleanse(text.data, text.cap);
	if (!line)
		return len ? -ENOMEM : -EINVAL;
	*ret_text = line;
	return 0;
}

void nt_notify_stats(const struct nt_notify *notify, struct nt_notify_stats *ret_stats)
{
	*ret_stats = (struct nt_notify_stats){
		.sent = atomic_load(&notify->sent),
		.retried = atomic_load(&notify->retried),
		.failed = atomic_load(&notify->failed),
		.expired = atomic_load(&notify->expired),
		.kube_left_out = atomic_load(&notify->kube_left_out),
	};
}
