/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/control_feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	READ_MS = 200, /* so that a stop is not delayed for longer */
};

#define RETRY_NS (10 * NT_SECOND)

struct nt_control_feed {
	char *url, *client;
	struct nt_bus_options options; /* its client is the above */
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock; /* covers all below; never held while the bus is used */
	pthread_cond_t changed;
	bool stops;
	struct nt_message *queue[NT_CONTROL_FEED_QUEUE]; /* owned */
	size_t first, count;
	struct nt_control_feed_stats stats;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_stopping(struct nt_control_feed *feed)
{
	bool stops;

	(void)pthread_mutex_lock(&feed->lock);
	stops = feed->stops;
	(void)pthread_mutex_unlock(&feed->lock);
	return stops;
}

/* Owns the message. */
static void enqueue(struct nt_control_feed *feed, struct nt_message *message)
{
	(void)pthread_mutex_lock(&feed->lock);
	while (!feed->stops && feed->count == NT_CONTROL_FEED_QUEUE)
		(void)nt_thread_wait(&feed->changed, &feed->lock, nt_clock_mono_ns() + NT_SECOND);
	if (feed->stops) {
		nt_message_free(message);
	} else {
		feed->queue[(feed->first + feed->count++) % NT_CONTROL_FEED_QUEUE] = message;
		feed->stats.records++;
	}
	(void)pthread_mutex_unlock(&feed->lock);
}

static void count_bad(struct nt_control_feed *feed)
{
	(void)pthread_mutex_lock(&feed->lock);
	feed->stats.bad++;
	(void)pthread_mutex_unlock(&feed->lock);
}

static void take_record(struct nt_control_feed *feed, const struct nt_bus_record *record)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	if (!record->value_len)
		return; /* a deleted key */
	if (nt_message_decode(record->value, record->value_len, &message) < 0 ||
	    message->body != NT_BODY_CONTROL) {
		count_bad(feed);
		return;
	}
	enqueue(feed, nt_take(message));
}

/* Until the feed stops, or the bus fails. */
static void read_records(struct nt_control_feed *feed, struct nt_bus_reader *reader)
{
	while (!is_stopping(feed)) {
		struct nt_bus_record record;
		int r = nt_bus_reader_next(reader, READ_MS, &record);

		if (r < 0 && r != -EINTR)
			return;
		if (r > 0)
			take_record(feed, &record);
	}
}

static void set_open(struct nt_control_feed *feed, bool is_open)
{
	(void)pthread_mutex_lock(&feed->lock);
	feed->stats.open_now = is_open;
	feed->stats.open_failures += !is_open;
	(void)pthread_mutex_unlock(&feed->lock);
}

static void wait_to_retry(struct nt_control_feed *feed)
{
	const uint64_t until_ns = nt_clock_mono_ns() + RETRY_NS;

	(void)pthread_mutex_lock(&feed->lock);
	while (!feed->stops && nt_thread_wait(&feed->changed, &feed->lock, until_ns))
		;
	(void)pthread_mutex_unlock(&feed->lock);
}

static void *run_feed(void *data)
{
	struct nt_control_feed *feed = data;

	while (!is_stopping(feed)) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		int r = nt_bus_reader_open_with(feed->url, 1U << NT_TOPIC_CONTROL, &feed->options,
						&reader);

		if (r == 0) {
			set_open(feed, true);
			read_records(feed, reader);
		}
		if (is_stopping(feed))
			break;
		set_open(feed, false);
		wait_to_retry(feed);
	}
	return NULL;
}

/* ---- the owner ------------------------------------------------------------------------------- */

int nt_control_feed_start(const char *url, const struct nt_bus_options *options,
			  struct nt_control_feed **ret_feed)
{
	nt_auto(nt_control_feed) struct nt_control_feed *feed = calloc(1, sizeof(*feed));
	int r;

	if (!feed)
		return -ENOMEM;
	(void)pthread_mutex_init(&feed->lock, NULL);
	nt_thread_condition_init(&feed->changed);
	if (options)
		feed->options = *options;
	feed->options.error = NULL;
	feed->url = strdup(url);
	feed->client = strdup(feed->options.client ?: "neutracer");
	if (!feed->url || !feed->client)
		return -ENOMEM;
	feed->options.client = feed->client;
	r = nt_thread_start(&feed->thread, run_feed, feed);
	if (r < 0)
		return r;
	feed->has_thread = true;
	*ret_feed = nt_take(feed);
	return 0;
}

void nt_control_feed_stop(struct nt_control_feed *feed)
{
	if (!feed)
		return;
	if (feed->has_thread) {
		(void)pthread_mutex_lock(&feed->lock);
		feed->stops = true;
		(void)pthread_cond_broadcast(&feed->changed);
		(void)pthread_mutex_unlock(&feed->lock);
		(void)pthread_join(feed->thread, NULL);
	}
	for (size_t i = 0; i < feed->count; i++)
		nt_message_free(feed->queue[(feed->first + i) % NT_CONTROL_FEED_QUEUE]);
	(void)pthread_cond_destroy(&feed->changed);
	(void)pthread_mutex_destroy(&feed->lock);
	free(feed->url);
	free(feed->client);
	free(feed);
}

struct nt_message *nt_control_feed_take(struct nt_control_feed *feed)
{
	struct nt_message *message = NULL;

	(void)pthread_mutex_lock(&feed->lock);
	if (feed->count) {
		message = feed->queue[feed->first];
		feed->first = (feed->first + 1) % NT_CONTROL_FEED_QUEUE;
		feed->count--;
		(void)pthread_cond_broadcast(&feed->changed);
	}
	(void)pthread_mutex_unlock(&feed->lock);
	return message;
}

void nt_control_feed_stats(struct nt_control_feed *feed, struct nt_control_feed_stats *ret_stats)
{
	(void)pthread_mutex_lock(&feed->lock);
	*ret_stats = feed->stats;
	(void)pthread_mutex_unlock(&feed->lock);
}
