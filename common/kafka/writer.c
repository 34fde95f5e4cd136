/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The writer. One thread serves the library: it counts acknowledgements, notices errors, and makes
 * the client anew after a fatal error, with new secrets, or where it does not get on; what was not
 * acknowledged then is sent again. The caller's thread only hands over, and takes back what could
 * not be delivered. One lock protects the outbox and the handle; nothing that can wait is done under
 * it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/bus_impl.h"
#include "common/bus_kafka.h"
#include "common/clock.h"
#include "common/kafka/cause.h"
#include "common/kafka/client.h"
#include "common/kafka/outbox.h"
#include "common/kafka/record.h"
#include "common/thread.h"

enum {
	DEFAULT_QUEUE_BYTES = 16 << 20,
	DEFAULT_QUEUE_RECORDS = 50000,
	MAX_QUEUE_BYTES = 1 << 30,
	MAX_QUEUE_RECORDS = 10000000,
	/* The library's own queue is a little larger, so that ours is the one that is full. */
	SPARE_KBYTES = 2048,
	SPARE_RECORDS = 1000,
	MAX_MESSAGE_BYTES = NT_BUS_MAX_VALUE + (64 << 10),
	TICK_MS = 100, /* the thread looks at all there is to do at least so often */
	PROBE_MS = 500,
	FLUSH_SLICE_MS = 50,
};

#define DEFAULT_LINGER_NS  (100 * NT_MILLISECOND)
#define DEFAULT_GIVE_UP_NS (30 * NT_SECOND)
#define DEFAULT_FLUSH_NS   (5 * NT_SECOND)
#define PROBE_EVERY_NS     (2 * NT_SECOND)
#define SUSPECT_EVERY_NS   (30 * NT_SECOND)
#define MAKE_AGAIN_NS      NT_SECOND /* after the first failure; doubles */
#define MAKE_AGAIN_MAX_NS  (30 * NT_SECOND)
#define DRAIN_NS           (2 * NT_SECOND) /* of a client, before it goes */

struct writer {
	struct nt_bus bus;
	struct nt_kafka_client client;
	char topic_name[NT_TOPIC_END][NT_KAFKA_TOPIC_BYTES];
	uint64_t linger_ns, give_up_ns, flush_ns, close_ns;
	bool is_small;
	void (*undelivered)(void *data, const struct nt_bus_record *record,
			    enum nt_bus_cause cause);
	void *data;

	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* users, acknowledgements */
	/* The following are protected by the lock; rk and queue change on the thread alone. */
	rd_kafka_t *rk; /* NULL while it is made anew: records wait in the outbox */
	rd_kafka_queue_t *queue; /* NULL while the old one goes */
	unsigned int users; /* of rk outside the lock */
	struct nt_kafka_outbox outbox;
	bool must_end;
	struct nt_bus_stats stats;

	/* The thread's own: */
	bool is_broken; /* a fatal error: the handle is of no more use */
	bool is_outdated; /* the secrets have changed, or the leaders and it does not learn it */
	uint64_t make_mono_ns, make_wait_ns; /* when to make one again, and the wait after that */
	uint64_t probe_mono_ns, suspect_mono_ns; /* not again before these */
};

/* ---- handing over ---------------------------------------------------------------------------- */

/* With the lock held. The library refers to the bytes until it reports their delivery. */
static rd_kafka_resp_err_t send_one(struct writer *writer, struct nt_kafka_message *message)
{
	const struct nt_bus_record *record = &message->record;
	bool is_deletion = record->value_len == 0 && nt_topic_is_compacted(record->topic);
	uint8_t time[NT_KAFKA_TIME_BYTES];
	const rd_kafka_vu_t part[] = {
		{RD_KAFKA_VTYPE_TOPIC, {.cstr = writer->topic_name[record->topic]}},
		/* An empty key is a key: records of one key stay in order. */
		{RD_KAFKA_VTYPE_KEY, {.mem = {(void *)(uintptr_t)record->key, record->key_len}}},
		{RD_KAFKA_VTYPE_VALUE,
		 {.mem = {is_deletion ? NULL : (void *)(uintptr_t)record->value,
			  record->value_len}}},
		{RD_KAFKA_VTYPE_TIMESTAMP, {.i64 = nt_kafka_time_ms(record->real_ns)}},
		{RD_KAFKA_VTYPE_OPAQUE, {.ptr = message}},
		{RD_KAFKA_VTYPE_HEADER, {.header = {NT_KAFKA_TIME_HEADER, time, sizeof(time)}}},
	};
	const size_t parts = sizeof(part) / sizeof(part[0]);
	const bool needs_header = nt_kafka_time_encode(record->real_ns, time);
	rd_kafka_error_t *failure =
		rd_kafka_produceva(writer->rk, part, needs_header ? parts : parts - 1);
	const rd_kafka_resp_err_t error = rd_kafka_error_code(failure);

	rd_kafka_error_destroy(failure);
	if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
		nt_kafka_outbox_mark(&writer->outbox, message, NT_KAFKA_SENT);
	/* A broken client refuses everything with the error that broke it: the next one will send it. */
	else if (rd_kafka_fatal_error(writer->rk, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return RD_KAFKA_RESP_ERR__FATAL;
	return error;
}

/* With the lock held. It is given back to the caller in its next call, if it wants that. */
static void give_up(struct writer *writer, struct nt_kafka_message *message,
		    enum nt_bus_cause cause)
{
	message->cause = cause;
	nt_kafka_outbox_mark(&writer->outbox, message, NT_KAFKA_UNDELIVERED);
}

/* With the lock held. Oldest first, so that the order within a partition stays. */
static void send_waiting(struct writer *writer)
{
	struct nt_kafka_message *message = writer->outbox.oldest;

	for (; message && writer->outbox.waiting; message = message->next) {
		rd_kafka_resp_err_t error;

		if (message->state != NT_KAFKA_WAITING)
			continue;
		error = send_one(writer, message);
		if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL || error == RD_KAFKA_RESP_ERR__FATAL)
			break; /* the next tick tries again */
		if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
			give_up(writer, message, nt_kafka_cause(error, NULL));
	}
}

/* Counts the record as lost, or gives it back. Without the lock. */
static void return_message(struct writer *writer, struct nt_kafka_message *message)
{
	if (writer->undelivered)
		writer->undelivered(writer->data, &message->record, message->cause);
	free(message);
}

/* On the caller's thread. */
static void return_undelivered(struct writer *writer)
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

/* With the lock held. Keeps the message, or returns why not. */
static int take(struct writer *writer, struct nt_kafka_message *message)
{
	rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
	bool is_first = writer->outbox.waiting == 0;

	if (!nt_kafka_outbox_add(&writer->outbox, message)) {
		writer->stats.dropped_full++;
		return -EAGAIN;
	}
	if (writer->rk && is_first)
		error = send_one(writer, message);
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
	struct writer *writer = (struct writer *)bus;
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

/* ---- for a shelter in front of it ------------------------------------------------------------ */

static uint64_t settled(const struct nt_bus *bus)
{
	struct writer *writer = (struct writer *)(uintptr_t)bus;
	uint64_t number;

	(void)pthread_mutex_lock(&writer->lock);
	number = writer->outbox.oldest ? writer->outbox.oldest->record.offset - 1
				       : writer->stats.published;
	(void)pthread_mutex_unlock(&writer->lock);
	return number;
}

static void give_back(struct nt_bus *bus)
{
	return_undelivered((struct writer *)bus);
}

/* Rare, and before a disk that is slow the brokers' answers can wait. */
static void each_unsettled(struct nt_bus *bus,
			   void (*fn)(void *data, const struct nt_bus_record *record), void *data)
{
	struct writer *writer = (struct writer *)bus;

	(void)pthread_mutex_lock(&writer->lock);
	for (const struct nt_kafka_message *message = writer->outbox.oldest; message;
	     message = message->next)
		fn(data, &message->record);
	(void)pthread_mutex_unlock(&writer->lock);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Milliseconds until then, rounded up; 0: it is past. */
static int ms_until(uint64_t deadline_ns)
{
	uint64_t now_ns = nt_clock_mono_ns();

	if (now_ns >= deadline_ns)
		return 0;
	return (int)((deadline_ns - now_ns + NT_MILLISECOND - 1) / NT_MILLISECOND);
}

/* With the lock held, for a while at most. */
static void wait_for_change(struct writer *writer, int timeout_ms)
{
	(void)nt_thread_wait(&writer->changed, &writer->lock,
			     nt_clock_mono_ns() + (uint64_t)timeout_ms * NT_MILLISECOND);
}

/* Until all is acknowledged or given up, or the time is over. */
static int drain(struct writer *writer, uint64_t deadline_ns)
{
	bool is_done;
	int left_ms;

	(void)pthread_mutex_lock(&writer->lock);
	while (writer->outbox.messages > writer->outbox.undelivered &&
	       (left_ms = ms_until(deadline_ns)) > 0) {
		rd_kafka_t *rk = writer->rk;

		if (left_ms > FLUSH_SLICE_MS)
			left_ms = FLUSH_SLICE_MS;
		if (!rk) {
			wait_for_change(writer, left_ms);
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

static int flush_within(struct writer *writer, uint64_t timeout_ns)
{
	int r = drain(writer, nt_clock_mono_ns() + timeout_ns);

	return_undelivered(writer);
	return r;
}

static int flush_kafka(struct nt_bus *bus)
{
	struct writer *writer = (struct writer *)bus;

	return flush_within(writer, writer->flush_ns);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* What the library gives up with its client. The sequence numbers are those of its idempotence. */
static bool ends_with_client(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__FATAL || error == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
	       error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
	       error == RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER ||
	       error == RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID;
}

/* With the lock held. */
static void acknowledge(struct writer *writer, const rd_kafka_message_t *report,
			enum nt_bus_cause cause)
{
	struct nt_kafka_message *message = report->_private;

	if (report->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		writer->stats.delivered++;
		nt_kafka_outbox_remove(&writer->outbox, message);
		free(message);
	} else if (ends_with_client(report->err)) {
		/* The next client sends it. */
		nt_kafka_outbox_mark(&writer->outbox, message, NT_KAFKA_WAITING);
	} else if (writer->undelivered) {
		give_up(writer, message, cause);
	} else {
		writer->stats.undelivered[cause]++;
		nt_kafka_outbox_remove(&writer->outbox, message);
		free(message);
	}
}

/* A record that waited for brokers which are known to be away failed for that reason. */
static enum nt_bus_cause note_failure(struct writer *writer, const rd_kafka_message_t *report)
{
	const struct nt_kafka_message *message = report->_private;
	char what[NT_KAFKA_TOPIC_BYTES + 16];
	struct nt_bus_health health;

	if (nt_kafka_cause(report->err, NULL) == NT_BUS_TIMED_OUT) {
		nt_kafka_health_get(&writer->client.health, &health);
		if (health.cause != NT_BUS_WELL && health.cause != NT_BUS_CONNECTING)
			return health.cause;
	}
	(void)snprintf(what, sizeof(what), "topic '%s'", writer->topic_name[message->record.topic]);
	return nt_kafka_client_note(&writer->client, report->err, NULL, what);
}

/*
 * Brokers answer, and records find none of them in time: the library from 2.6 on never learns the leaders
 * of a topic that was made anew. A new client does.
 */
static void suspect(struct writer *writer)
{
	uint64_t now_ns = nt_clock_mono_ns();

	if (now_ns < writer->suspect_mono_ns)
		return;
	writer->suspect_mono_ns = now_ns + SUSPECT_EVERY_NS;
	writer->is_outdated = true;
}

static void serve_reports(struct writer *writer, rd_kafka_event_t *event)
{
	const rd_kafka_message_t *report;

	while ((report = rd_kafka_event_message_next(event))) {
		enum nt_bus_cause cause = NT_BUS_WELL;

		if (report->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
			nt_kafka_health_succeed(&writer->client.health);
			writer->make_wait_ns = MAKE_AGAIN_NS;
		} else if (report->err == RD_KAFKA_RESP_ERR__FATAL) {
			writer->is_broken = true;
		} else if (!ends_with_client(report->err)) {
			cause = note_failure(writer, report);
			if (cause == NT_BUS_TIMED_OUT)
				suspect(writer);
		}
		(void)pthread_mutex_lock(&writer->lock);
		acknowledge(writer, report, cause);
		(void)pthread_mutex_unlock(&writer->lock);
	}
	(void)pthread_mutex_lock(&writer->lock);
	(void)pthread_cond_broadcast(&writer->changed);
	(void)pthread_mutex_unlock(&writer->lock);
}

static void serve_error(struct writer *writer, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t error = rd_kafka_event_error(event);

	if (error == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_event_error_is_fatal(event))
		writer->is_broken = true;
	(void)nt_kafka_client_note(&writer->client, error, rd_kafka_event_error_string(event),
				   NULL);
}

static void serve_one(struct writer *writer, int timeout_ms)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(writer->queue, timeout_ms);

	switch (rd_kafka_event_type(event)) {
	case RD_KAFKA_EVENT_DR:
		serve_reports(writer, event);
		break;
	case RD_KAFKA_EVENT_ERROR:
		serve_error(writer, event);
		break;
	default:
		break;
	}
	rd_kafka_event_destroy(event);
}

/* An idle writer asks, so that it knows how its brokers are. */
static void probe(struct writer *writer)
{
	const struct rd_kafka_metadata *metadata;
	struct nt_bus_health health;
	uint64_t now_ns = nt_clock_mono_ns();
	bool is_idle;

	if (now_ns < writer->probe_mono_ns)
		return;
	writer->probe_mono_ns = now_ns + PROBE_EVERY_NS;
	(void)pthread_mutex_lock(&writer->lock);
	is_idle = writer->outbox.messages == writer->outbox.undelivered;
	(void)pthread_mutex_unlock(&writer->lock);
	nt_kafka_health_get(&writer->client.health, &health);
	if (!is_idle || health.cause == NT_BUS_WELL)
		return;
	if (rd_kafka_metadata(writer->rk, 0, NULL, &metadata, PROBE_MS) !=
	    RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	rd_kafka_metadata_destroy(metadata);
	/* What a topic refuses is not mended by brokers that answer. */
	if (health.cause < NT_BUS_DENIED || health.cause == NT_BUS_TIMED_OUT)
		nt_kafka_health_succeed(&writer->client.health);
}

static int make(struct writer *writer, struct nt_bus_error *error, rd_kafka_t **ret_rk)
{
	const struct nt_kafka_setting settings[] = {
		{"enable.idempotence", "true"},
		{"compression.codec", "lz4"},
		/* A twentieth less of a batch of some KiB, for microseconds; ten times dearer for much. */
		{"compression.level", writer->is_small ? "3" : "-1"},
		{"partitioner", "murmur2_random"}, /* as Java's: one key, one partition */
		{"batch.size", "262144"},
		{"batch.num.messages", "10000"},
		{"topic.metadata.propagation.max.ms", "5000"},
		{"message.max.bytes", NULL, MAX_MESSAGE_BYTES},
		{"linger.ms", NULL, writer->linger_ns / NT_MILLISECOND},
		{"message.timeout.ms", NULL, writer->give_up_ns / NT_MILLISECOND},
		{"queue.buffering.max.kbytes", NULL,
		 writer->outbox.max_bytes / 1024 + SPARE_KBYTES},
		{"queue.buffering.max.messages", NULL, writer->outbox.max_messages + SPARE_RECORDS},
	};

	return nt_kafka_client_make(&writer->client, RD_KAFKA_PRODUCER,
				    RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR, settings,
				    sizeof(settings) / sizeof(settings[0]), error, ret_rk);
}

/* Nobody uses the old handle when this returns, and nobody sees it any more. */
static rd_kafka_t *withdraw(struct writer *writer)
{
	rd_kafka_t *old;

	(void)pthread_mutex_lock(&writer->lock);
	old = writer->rk;
	writer->rk = NULL;
	while (writer->users)
		wait_for_change(writer, FLUSH_SLICE_MS);
	(void)pthread_mutex_unlock(&writer->lock);
	return old;
}

/* What is destroyed takes its time, and who closes the writer wakes the thread by this queue. */
static rd_kafka_queue_t *withdraw_queue(struct writer *writer)
{
	rd_kafka_queue_t *old;

	(void)pthread_mutex_lock(&writer->lock);
	old = writer->queue;
	writer->queue = NULL;
	(void)pthread_mutex_unlock(&writer->lock);
	return old;
}

static void destroy_handle(rd_kafka_t *rk, rd_kafka_queue_t *queue)
{
	if (!rk)
		return;
	(void)rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
					 RD_KAFKA_PURGE_F_NON_BLOCKING);
	nt_kafka_end_queue(queue);
	nt_kafka_end_fully(rk); /* it refers to our records */
}

/*
 * Takes the reports of what is under way, for a while. What a broken client has not sent yet, it
 * never will.
 */
static void settle(struct writer *writer, rd_kafka_t *old)
{
	uint64_t deadline_ns = nt_clock_mono_ns() + DRAIN_NS;
	int left_ms;

	while (rd_kafka_outq_len(old) > 0 && (left_ms = ms_until(deadline_ns)) > 0) {
		if (writer->is_broken)
			(void)rd_kafka_purge(old, RD_KAFKA_PURGE_F_QUEUE |
							  RD_KAFKA_PURGE_F_NON_BLOCKING);
		serve_one(writer, left_ms < TICK_MS ? 1 : TICK_MS);
	}
}

/*
 * Only without a report is a record sent again. It may have arrived all the same, as after any lost
 * acknowledgement: readers drop what they have seen, by its sequence number.
 */
static void replace(struct writer *writer)
{
	struct nt_bus_error error = {0};
	struct nt_kafka_message *message;
	rd_kafka_t *fresh = NULL, *old;
	uint64_t now_ns = nt_clock_mono_ns();
	int r;

	if (now_ns < writer->make_mono_ns)
		return;
	writer->make_mono_ns = now_ns + writer->make_wait_ns;
	writer->make_wait_ns *= 2;
	if (writer->make_wait_ns > MAKE_AGAIN_MAX_NS)
		writer->make_wait_ns = MAKE_AGAIN_MAX_NS;
	r = make(writer, &error, &fresh);
	if (r < 0) {
		/* A half-written secret is well soon; the old client may still work. */
		nt_kafka_health_hint(&writer->client.health, NT_BUS_FAILED, "%s", error.text);
		return;
	}
	old = withdraw(writer);
	settle(writer, old);
	destroy_handle(old, withdraw_queue(writer));
	writer->is_broken = false;
	writer->is_outdated = false;
	(void)pthread_mutex_lock(&writer->lock);
	writer->rk = fresh;
	writer->queue = rd_kafka_queue_get_main(fresh);
	writer->stats.reconnected++;
	for (message = writer->outbox.oldest; message; message = message->next)
		if (message->state == NT_KAFKA_SENT)
			nt_kafka_outbox_mark(&writer->outbox, message, NT_KAFKA_WAITING);
	send_waiting(writer);
	(void)pthread_cond_broadcast(&writer->changed);
	(void)pthread_mutex_unlock(&writer->lock);
}

static bool must_end(struct writer *writer)
{
	bool yes;

	(void)pthread_mutex_lock(&writer->lock);
	yes = writer->must_end;
	if (!yes && !writer->is_broken)
		send_waiting(writer);
	(void)pthread_mutex_unlock(&writer->lock);
	return yes;
}

static void *serve(void *data)
{
	struct writer *writer = data;

	while (!must_end(writer)) {
		serve_one(writer, TICK_MS);
		if (!writer->is_broken)
			probe(writer);
		if (nt_kafka_client_is_stale(&writer->client))
			writer->is_outdated = true;
		if (writer->is_broken || writer->is_outdated)
			replace(writer);
	}
	return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void end_thread(struct writer *writer)
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

/* What is left after the time of a last flush. */
static void return_rest(struct writer *writer)
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
	struct writer *writer = (struct writer *)bus;

	if (writer->has_thread)
		(void)!flush_within(writer, writer->close_ns);
	end_thread(writer);
	destroy_handle(writer->rk, writer->queue);
	return_rest(writer);
	nt_kafka_client_release(&writer->client);
	(void)pthread_cond_destroy(&writer->changed);
	(void)pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static void get_stats(const struct nt_bus *bus, struct nt_bus_stats *stats)
{
	/* Const for the caller, to whom the writer is the same before and after. */
	struct writer *writer = (struct writer *)(uintptr_t)bus;
	uint64_t too_large = stats->dropped_too_large; /* counted in front of us */

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
	struct writer *writer = (struct writer *)(uintptr_t)bus;

	nt_kafka_health_get(&writer->client.health, ret_health);
}

static uint64_t or_default(uint64_t value, uint64_t preset, uint64_t max)
{
	if (!value)
		return preset;
	return value > max ? max : value;
}

static void set_options(struct writer *writer, const struct nt_bus_options *options)
{
	writer->outbox.max_bytes =
		or_default(options->queue_bytes, DEFAULT_QUEUE_BYTES, MAX_QUEUE_BYTES);
	writer->outbox.max_messages =
		or_default(options->queue_records, DEFAULT_QUEUE_RECORDS, MAX_QUEUE_RECORDS);
	writer->is_small = options->is_small;
	writer->linger_ns = or_default(options->linger_ns, DEFAULT_LINGER_NS, NT_MINUTE);
	writer->give_up_ns = or_default(options->give_up_ns, DEFAULT_GIVE_UP_NS, NT_DAY);
	/* The library wants to be able to wait for company. */
	if (writer->give_up_ns < writer->linger_ns + NT_MILLISECOND)
		writer->give_up_ns = writer->linger_ns + NT_MILLISECOND;
	writer->flush_ns = or_default(options->flush_ns, DEFAULT_FLUSH_NS, NT_HOUR);
	writer->close_ns = or_default(options->close_ns, DEFAULT_FLUSH_NS, NT_HOUR);
	writer->undelivered = options->undelivered;
	writer->data = options->data;
	writer->make_wait_ns = MAKE_AGAIN_NS;
}

int nt_kafka_open(const char *url, const struct nt_bus_options *options, struct nt_bus **ret_bus)
{
	struct writer *writer = calloc(1, sizeof(*writer));
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
		r = make(writer, &error, &writer->rk);
		if (r < 0 && options->error)
			*options->error = error;
	}
	if (r == 0) {
		writer->queue = rd_kafka_queue_get_main(writer->rk);
		for (int i = 0; i < NT_TOPIC_END; i++)
			(void)nt_kafka_topic_name(&writer->client.url, (enum nt_topic)i,
						  writer->topic_name[i]);
		r = nt_thread_start(&writer->thread, serve, writer);
		writer->has_thread = r == 0;
	}
	if (r < 0) {
		close_kafka(&writer->bus);
		return r;
	}
	*ret_bus = &writer->bus;
	return 0;
}
