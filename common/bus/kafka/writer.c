/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The writer. One thread serves the library (writer_thread.c). The caller's thread only queues
 * records, and receives undelivered ones. One lock protects the outbox and the handle; nothing that
 * blocks is done under it.
 */
#include "common/bus/kafka/writer_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/bus/kafka/cause.h"
#include "common/bus/kafka/record.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	DEFAULT_QUEUE_BYTES = 16 << 20,
	DEFAULT_QUEUE_RECORDS = 50000,
	MAX_QUEUE_BYTES = 1 << 30,
	MAX_QUEUE_RECORDS = 10000000,
};

#define DEFAULT_LINGER_NS  (100 * NT_MILLISECOND)
#define DEFAULT_GIVE_UP_NS (30 * NT_SECOND)
#define DEFAULT_FLUSH_NS   (5 * NT_SECOND)

/* ---- publishing ------------------------------------------------------------------------------ */

/* Counts the record as lost, or gives it back. Without the lock. */
static void return_message(struct nt_kafka_writer *writer, struct nt_kafka_message *message)
{
	if (writer->undelivered)
		writer->undelivered(writer->data, &message->record, message->cause);
	free(message);
}

/* On the caller's thread. */
static void return_undelivered(struct nt_kafka_writer *writer)
{
	for (;;) {
		struct nt_kafka_message *message;

		(void)pthread_mutex_lock(&writer->lock);
		message = nt_kafka_outbox_pick(&writer->outbox);
		if (message)
			writer->stats.undelivered[message->cause]++;
		(void)pthread_mutex_unlock(&writer->lock);
		if (!message)
			return;
		return_message(writer, message);
	}
}

/* With the lock held. Stores the message, or returns an error. */
static int take(struct nt_kafka_writer *writer, struct nt_kafka_message *message)
{
	rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
	bool is_first = writer->outbox.waiting == 0;

	if (!nt_kafka_outbox_add(&writer->outbox, message)) {
		writer->stats.dropped_full++;
		return -EAGAIN;
	}
	if (writer->rk && is_first)
		error = nt_kafka_writer_send_one(writer, message);
	if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR__QUEUE_FULL &&
	    error != RD_KAFKA_RESP_ERR__FATAL) {
		nt_kafka_outbox_remove(&writer->outbox, message);
		writer->stats.undelivered[nt_kafka_cause(error, NULL)]++;
		return nt_kafka_errno(error);
	}
	message->record.offset = ++writer->stats.published;
	writer->stats.published_bytes += message->record.key_len + message->record.value_len;
	return 0;
}

static int publish_to_kafka(struct nt_bus *bus, const struct nt_bus_record *record)
{
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)bus;
	struct nt_kafka_message *message = nt_kafka_message_new(record);
	int r;

	if (!message)
		return -ENOMEM;
	return_undelivered(writer);
	(void)pthread_mutex_lock(&writer->lock);
	r = take(writer, message);
	(void)pthread_mutex_unlock(&writer->lock);
	if (r < 0)
		free(message);
	return r;
}

/* ---- for a disk queue in front of it --------------------------------------------------------- */

static uint64_t settled(const struct nt_bus *bus)
{
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)(uintptr_t)bus;
	uint64_t number;

	(void)pthread_mutex_lock(&writer->lock);
	number = writer->outbox.oldest ? writer->outbox.oldest->record.offset - 1
				       : writer->stats.published;
	(void)pthread_mutex_unlock(&writer->lock);
	return number;
}

static void give_back(struct nt_bus *bus)
{
	return_undelivered((struct nt_kafka_writer *)bus);
}

/* Rare; the thread's acknowledgements may wait for a slow disk here. */
static void each_unsettled(struct nt_bus *bus,
			   void (*fn)(void *data, const struct nt_bus_record *record), void *data)
{
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)bus;

	(void)pthread_mutex_lock(&writer->lock);
	for (const struct nt_kafka_message *message = writer->outbox.oldest; message;
	     message = message->next)
		fn(data, &message->record);
	(void)pthread_mutex_unlock(&writer->lock);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits until all is acknowledged or failed, or the time is over. */
static int drain(struct nt_kafka_writer *writer, uint64_t deadline_ns)
{
	bool is_done;
	int left_ms;

	(void)pthread_mutex_lock(&writer->lock);
	while (writer->outbox.messages > writer->outbox.undelivered &&
	       (left_ms = nt_kafka_writer_ms_until(deadline_ns)) > 0) {
		rd_kafka_t *rk = writer->rk;

		if (left_ms > NT_KAFKA_FLUSH_SLICE_MS)
			left_ms = NT_KAFKA_FLUSH_SLICE_MS;
		if (!rk) {
			nt_kafka_writer_wait_for_change(writer, left_ms);
			continue;
		}
		/* Only the library can send before the linger time is over. */
		writer->users++;
		(void)pthread_mutex_unlock(&writer->lock);
		(void)rd_kafka_flush(rk, left_ms);
		(void)pthread_mutex_lock(&writer->lock);
		writer->users--;
		(void)pthread_cond_broadcast(&writer->changed);
	}
	is_done = writer->outbox.messages == writer->outbox.undelivered;
	(void)pthread_mutex_unlock(&writer->lock);
	return is_done ? 0 : -ETIMEDOUT;
}

static int flush_within(struct nt_kafka_writer *writer, uint64_t timeout_ns)
{
	int r = drain(writer, nt_clock_mono_ns() + timeout_ns);

	return_undelivered(writer);
	return r;
}

static int flush_kafka(struct nt_bus *bus)
{
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)bus;

	return flush_within(writer, writer->flush_ns);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void end_thread(struct nt_kafka_writer *writer)
{
	if (!writer->has_thread)
		return;
	(void)pthread_mutex_lock(&writer->lock);
	writer->must_end = true;
	if (writer->queue)
		rd_kafka_queue_yield(writer->queue);
	(void)pthread_mutex_unlock(&writer->lock);
	(void)pthread_join(writer->thread, NULL);
}

/* Returns what is left after the last flush. */
static void return_rest(struct nt_kafka_writer *writer)
{
	struct nt_bus_health health;
	struct nt_kafka_message *message;

	nt_kafka_health_get(&writer->client.health, &health);
	while ((message = writer->outbox.oldest)) {
		if (message->state != NT_KAFKA_UNDELIVERED)
			message->cause =
				health.cause > NT_BUS_CONNECTING ? health.cause : NT_BUS_TIMED_OUT;
		nt_kafka_outbox_remove(&writer->outbox, message);
		return_message(writer, message);
	}
}

static void close_kafka(struct nt_bus *bus)
{
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)bus;

	if (writer->has_thread)
		(void)!flush_within(writer, writer->close_ns);
	end_thread(writer);
	nt_kafka_writer_destroy_handle(writer->rk, writer->queue);
	return_rest(writer);
	nt_kafka_client_release(&writer->client);
	(void)pthread_cond_destroy(&writer->changed);
	(void)pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static void get_stats(const struct nt_bus *bus, struct nt_bus_stats *stats)
{
	/* Const for the caller: the writer is logically unchanged. */
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)(uintptr_t)bus;
	uint64_t too_large = stats->dropped_too_large; /* counted in this layer */

	(void)pthread_mutex_lock(&writer->lock);
	*stats = writer->stats;
	stats->queued_now = writer->outbox.messages;
	stats->queued_bytes_now = writer->outbox.bytes;
	(void)pthread_mutex_unlock(&writer->lock);
	stats->dropped_too_large += too_large;
	nt_kafka_health_add_errors(&writer->client.health, stats->errors);
}

static void get_health(const struct nt_bus *bus, struct nt_bus_health *ret_health)
{
	struct nt_kafka_writer *writer = (struct nt_kafka_writer *)(uintptr_t)bus;

	nt_kafka_health_get(&writer->client.health, ret_health);
}

static uint64_t or_default(uint64_t value, uint64_t preset, uint64_t max)
{
	if (!value)
		return preset;
	return value > max ? max : value;
}

static void set_options(struct nt_kafka_writer *writer, const struct nt_bus_options *options)
{
	writer->outbox.max_bytes =
		or_default(options->queue_bytes, DEFAULT_QUEUE_BYTES, MAX_QUEUE_BYTES);
	writer->outbox.max_messages =
		or_default(options->queue_records, DEFAULT_QUEUE_RECORDS, MAX_QUEUE_RECORDS);
	writer->is_small = options->is_small;
	writer->linger_ns = or_default(options->linger_ns, DEFAULT_LINGER_NS, NT_MINUTE);
	writer->give_up_ns = or_default(options->give_up_ns, DEFAULT_GIVE_UP_NS, NT_DAY);
	/* The library requires a delivery timeout over the linger time. */
	if (writer->give_up_ns < writer->linger_ns + NT_MILLISECOND)
		writer->give_up_ns = writer->linger_ns + NT_MILLISECOND;
	writer->flush_ns = or_default(options->flush_ns, DEFAULT_FLUSH_NS, NT_HOUR);
	writer->close_ns = or_default(options->close_ns, DEFAULT_FLUSH_NS, NT_HOUR);
	writer->undelivered = options->undelivered;
	writer->data = options->data;
	writer->make_wait_ns = NT_KAFKA_MAKE_AGAIN_NS;
}

int nt_kafka_open(const char *url, const struct nt_bus_options *options, struct nt_bus **ret_bus)
{
	struct nt_kafka_writer *writer = calloc(1, sizeof(*writer));
	struct nt_bus_error error = {0};
	int r;

	if (!writer)
		return -ENOMEM;
	writer->bus.close = close_kafka;
	writer->bus.publish = publish_to_kafka;
	writer->bus.flush = flush_kafka;
	writer->bus.get_stats = get_stats;
	writer->bus.get_health = get_health;
	writer->bus.settled = settled;
	writer->bus.give_back = give_back;
	writer->bus.each_unsettled = each_unsettled;
	(void)pthread_mutex_init(&writer->lock, NULL);
	nt_thread_condition_init(&writer->changed);
	set_options(writer, options);
	r = nt_kafka_client_init(&writer->client, url, options);
	if (r == 0) {
		r = nt_kafka_writer_make(writer, &error, &writer->rk);
		if (r < 0 && options->error)
			*options->error = error;
	}
	if (r == 0) {
		writer->queue = rd_kafka_queue_get_main(writer->rk);
		for (int i = 0; i < NT_TOPIC_END; i++)
			(void)nt_kafka_topic_name(&writer->client.url, (enum nt_topic)i,
						  writer->topic_name[i]);
		r = nt_thread_start(&writer->thread, nt_kafka_writer_serve, writer);
		writer->has_thread = r == 0;
	}
	if (r < 0) {
		close_kafka(&writer->bus);
		return r;
	}
	*ret_bus = &writer->bus;
	return 0;
}
