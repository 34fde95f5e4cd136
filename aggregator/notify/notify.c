/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/notify.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/notify/notify_impl.h"
#include "common/system/clock.h"
#include "common/system/log.h"
#include "common/system/thread.h"

enum {
	ALIVE_INTERVALS = 4, /* repeats that Alertmanager may miss, less one */
};

/* On stop, an attempt in progress is aborted after this time. */
static const uint64_t stop_patience_ns = 2 * NT_SECOND;
static const uint64_t store_retry_ns = NT_SECOND;

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void start_curl(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits until until_ns, a wake-up or stop. False: stopping. */
static bool wait_until(struct nt_notify_line *line, uint64_t until_ns)
{
	struct nt_notify *notify = line->notify;
	bool goes_on;

	pthread_mutex_lock(&notify->lock);
	while (!line->woken && !notify->stopping) {
		if (until_ns == UINT64_MAX)
			(void)pthread_cond_wait(&notify->wake, &notify->lock);
		else if (!nt_thread_wait(&notify->wake, &notify->lock, until_ns))
			break;
	}
	line->woken = false;
	goes_on = !notify->stopping;
	pthread_mutex_unlock(&notify->lock);
	return goes_on;
}

bool nt_notify_pause(struct nt_notify *notify, uint64_t pause_ns)
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

/* The monotonic time of a real one. */
static uint64_t mono_of(uint64_t real_ns)
{
	uint64_t now_ns = nt_clock_real_ns();

	if (real_ns == UINT64_MAX)
		return UINT64_MAX;
	return nt_clock_mono_ns() + (real_ns > now_ns ? real_ns - now_ns : 0);
}

static bool is_stopping(struct nt_notify *notify)
{
	bool stopping;

	pthread_mutex_lock(&notify->lock);
	stopping = notify->stopping;
	pthread_mutex_unlock(&notify->lock);
	return stopping;
}

/* ---- one receiver ---------------------------------------------------------------------------- */

static uint64_t soonest(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t first = a < b ? a : b, second = c < d ? c : d;

	return first < second ? first : second;
}

static void *work(void *data)
{
	struct nt_notify_line *line = data;
	struct nt_notify *notify = line->notify;
	bool goes_on = true;

	while (goes_on && !is_stopping(notify)) {
		uint64_t next_ns, remind_ns, beat_ns;
		int r;

		nt_notify_send_sample(line);
		beat_ns = nt_notify_beat(line);
		r = nt_notify_deliver(line, &next_ns, &goes_on);
		/* While messages are due, they come first. */
		remind_ns = r == 0 && goes_on ? nt_notify_remind(line) : 0;
		if (r < 0)
			goes_on = nt_notify_pause(notify, store_retry_ns);
		if (r)
			continue;
		goes_on = wait_until(
			line, soonest(mono_of(next_ns), remind_ns, beat_ns, nt_notify_lift(line)));
	}
	pthread_mutex_lock(&notify->lock);
	notify->working--;
	pthread_cond_signal(&notify->ended);
	pthread_mutex_unlock(&notify->lock);
	return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static struct nt_kube_action *action_of(struct nt_notify *notify,
					const struct nt_notify_receiver *from)
{
	if (from->action.kind == NT_KUBE_ACTION_NONE)
		return NULL;
	notify->action.options = from->action;
	return &notify->action;
}

static int init_line(struct nt_notify_line *line, const struct nt_notify_receiver *from)
{
	struct nt_notify *notify = line->notify;
	const char *url[NT_SENDER_URLS] = {from->url};

	if (from->replicas >= NT_SENDER_URLS)
		return -EINVAL;
	for (size_t i = 0; i < from->replicas; i++)
		url[i + 1] = from->replica[i];
	line->name = strdup(from->name);
	if (!line->name)
		return -ENOMEM;
	line->bucket = nt_token_bucket_of(from->rate);
	line->repeat_ns = from->repeat_ns;
	line->heartbeat_ns = from->heartbeat_ns;
	line->reminded_ns = nt_clock_real_ns();
	return nt_sender_init(&line->sender,
			      &(struct nt_sender_options){
				      .kind = from->kind,
				      .url = url,
				      .urls = from->replicas + 1,
				      .secret = from->secret,
				      .incident_url = from->incident_url,
				      .remediate = from->remediate,
				      .title = from->title,
				      .text = from->text,
				      .beat = from->heartbeat,
				      .beat_ns = from->heartbeat_ns,
				      .alive_ns = ALIVE_INTERVALS * from->repeat_ns,
				      .kube = from->kube,
				      .conditions = from->conditions,
				      .action = action_of(notify, from),
				      .connect_timeout_ns = notify->options.connect_timeout_ns,
				      .total_timeout_ns = notify->options.total_timeout_ns,
				      .abort = &notify->abort,
			      });
}

static int init_lines(struct nt_notify *notify, const struct nt_notify_options *options)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < options->receivers; i++) {
		notify->line[i].notify = notify;
		r = init_line(&notify->line[i], &options->receiver[i]);
		notify->receivers += r == 0;
	}
	return r;
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
		.longest_wait_ns = or_default(options->longest_wait_ns, 30 * NT_MINUTE),
		.give_up_ns = or_default(options->give_up_ns, NT_HOUR),
		.give_up_open_ns = or_default(options->give_up_open_ns, NT_DAY),
		.split_ns = or_default(options->split_ns, 5 * NT_SECOND),
	};
	if (gethostname(notify->host, sizeof(notify->host) - 1) < 0 || !*notify->host)
		(void)snprintf(notify->host, sizeof(notify->host), "aggregator");
	pthread_mutex_init(&notify->lock, NULL);
	nt_thread_condition_init(&notify->wake);
	nt_thread_condition_init(&notify->ended);
}

static int start_threads(struct nt_notify *notify)
{
	int r = 0;

	pthread_mutex_lock(&notify->lock);
	while (r == 0 && notify->threads < notify->receivers) {
		struct nt_notify_line *line = &notify->line[notify->threads];

		r = nt_thread_start(&line->thread, work, line);
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
	atomic_fetch_add(&notify->orphans, failed);
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
	r = init_lines(notify, options);
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
		if (notify->line[i].sender.options.kube)
			nt_kube_stop(notify->line[i].sender.options.kube);
	}
	for (size_t i = 0; i < notify->threads; i++)
		(void)pthread_join(notify->line[i].thread, NULL);
}

void nt_notify_stop(struct nt_notify *notify)
{
	if (!notify)
		return;
	stop_threads(notify);
	for (size_t i = 0; i < NT_STORE_MAX_RECEIVERS; i++) {
		nt_sender_release(&notify->line[i].sender);
		free(notify->line[i].name);
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
		notify->line[i].woken = true;
	pthread_cond_broadcast(&notify->wake);
	pthread_mutex_unlock(&notify->lock);
}

/* ---- statistics ------------------------------------------------------------------------------ */

void nt_notify_count(struct nt_notify_line *line, enum nt_notify_result result, uint64_t count)
{
	atomic_fetch_add(&line->count[result], count);
}

const char *nt_notify_result_name(enum nt_notify_result result)
{
	static const char *const names[NT_NOTIFY_RESULTS] = {
		"sent",     "retried",       "failed",    "dropped",          "digested",
		"repeated", "repeat-failed", "heartbeat", "heartbeat-failed",
	};

	return names[result];
}

size_t nt_notify_receivers(const struct nt_notify *notify)
{
	return notify->receivers;
}

void nt_notify_view(struct nt_notify *notify, size_t i, struct nt_notify_view *ret_view)
{
	struct nt_notify_line *line = &notify->line[i];

	*ret_view = (struct nt_notify_view){
		.name = line->name,
		.kind = line->sender.options.kube ? "kubernetes" : line->sender.format->name,
	};
	for (size_t k = 0; k < NT_NOTIFY_RESULTS; k++)
		ret_view->count[k] = atomic_load(&line->count[k]);
	pthread_mutex_lock(&notify->lock);
	ret_view->sample = line->sample;
	pthread_mutex_unlock(&notify->lock);
}

static uint64_t sum(const struct nt_notify *notify, enum nt_notify_result result)
{
	uint64_t count = 0;

	for (size_t i = 0; i < notify->receivers; i++)
		count += atomic_load(&notify->line[i].count[result]);
	return count;
}

void nt_notify_stats(const struct nt_notify *notify, struct nt_notify_stats *ret_stats)
{
	*ret_stats = (struct nt_notify_stats){
		.sent = sum(notify, NT_NOTIFY_SENT),
		.retried = sum(notify, NT_NOTIFY_RETRIED),
		.failed = sum(notify, NT_NOTIFY_FAILED) + atomic_load(&notify->orphans),
		.expired = sum(notify, NT_NOTIFY_DROPPED),
		.kube_acted = atomic_load(&notify->action.acted),
		.kube_lifted = atomic_load(&notify->action.lifted),
		.kube_limited = atomic_load(&notify->action.limited),
		.kube_left_out = atomic_load(&notify->kube_left_out),
	};
}
