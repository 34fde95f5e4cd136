/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The thread that serves the library: it processes acknowledgements and errors. It replaces the
 * client after a fatal error, with new credentials, or if it stalls; unacknowledged records are
 * then sent again.
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
	/* The library's own queue is a little larger, so that ours fills up first. */
	SPARE_KBYTES = 2048,
	SPARE_RECORDS = 1000,
	MAX_MESSAGE_BYTES = NT_BUS_MAX_VALUE + (64 << 10),
	TICK_MS = 100, /* period of all checks */
	PROBE_MS = 500,
};

#define PROBE_EVERY_NS    (2 * NT_SECOND)
#define SUSPECT_EVERY_NS  (30 * NT_SECOND)
#define MAKE_AGAIN_MAX_NS (30 * NT_SECOND)
#define DRAIN_NS          (2 * NT_SECOND) /* of a client, before it is destroyed */

/* ---- sending --------------------------------------------------------------------------------- */

/* With the lock held. The library refers to the bytes until it reports their delivery. */
rd_kafka_resp_err_t nt_kafka_writer_send_one(struct nt_kafka_writer *writer,
					     struct nt_kafka_message *message)
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
	/* A broken client rejects everything with its fatal error: the next one will send it. */
	else if (rd_kafka_fatal_error(writer->rk, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return RD_KAFKA_RESP_ERR__FATAL;
	return error;
}

/* With the lock held. It is given back in the caller's next call, if the caller wants that. */
static void give_up(struct nt_kafka_writer *writer, struct nt_kafka_message *message,
		    enum nt_bus_cause cause)
{
	message->cause = cause;
	nt_kafka_outbox_mark(&writer->outbox, message, NT_KAFKA_UNDELIVERED);
}

/* With the lock held. Oldest first, to keep the order within a partition. */
static void send_waiting(struct nt_kafka_writer *writer)
{
	struct nt_kafka_message *message = writer->outbox.oldest;

	for (; message && writer->outbox.waiting; message = message->next) {
		rd_kafka_resp_err_t error;

		if (message->state != NT_KAFKA_WAITING)
			continue;
		error = nt_kafka_writer_send_one(writer, message);
		if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL || error == RD_KAFKA_RESP_ERR__FATAL)
			break; /* the next tick tries again */
		if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
			give_up(writer, message, nt_kafka_cause(error, NULL));
	}
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Milliseconds until then, rounded up; 0: it is past. */
int nt_kafka_writer_ms_until(uint64_t deadline_ns)
{
	uint64_t now_ns = nt_clock_mono_ns();

	if (now_ns >= deadline_ns)
		return 0;
	return (int)((deadline_ns - now_ns + NT_MILLISECOND - 1) / NT_MILLISECOND);
}

/* With the lock held, for a limited time. */
void nt_kafka_writer_wait_for_change(struct nt_kafka_writer *writer, int timeout_ms)
{
	(void)nt_thread_wait(&writer->changed, &writer->lock,
			     nt_clock_mono_ns() + (uint64_t)timeout_ms * NT_MILLISECOND);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Errors that end with the client. The sequence numbers are those of its idempotence. */
static bool ends_with_client(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__FATAL || error == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
	       error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
	       error == RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER ||
	       error == RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID;
}

/* With the lock held. */
static void acknowledge(struct nt_kafka_writer *writer, const rd_kafka_message_t *report,
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

/* A record that timed out while brokers are known to be unreachable failed for that reason. */
static enum nt_bus_cause note_failure(struct nt_kafka_writer *writer,
				      const rd_kafka_message_t *report)
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
 * Brokers respond, but records time out: the library from 2.6 on never learns the leaders of a
 * recreated topic. A new client does.
 */
static void suspect(struct nt_kafka_writer *writer)
{
	uint64_t now_ns = nt_clock_mono_ns();

	if (now_ns < writer->suspect_mono_ns)
		return;
	writer->suspect_mono_ns = now_ns + SUSPECT_EVERY_NS;
	writer->is_outdated = true;
}

static void serve_reports(struct nt_kafka_writer *writer, rd_kafka_event_t *event)
{
	const rd_kafka_message_t *report;

	while ((report = rd_kafka_event_message_next(event))) {
		enum nt_bus_cause cause = NT_BUS_WELL;

		if (report->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
			nt_kafka_health_succeed(&writer->client.health);
			writer->make_wait_ns = NT_KAFKA_MAKE_AGAIN_NS;
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

static void serve_error(struct nt_kafka_writer *writer, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t error = rd_kafka_event_error(event);

	if (error == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_event_error_is_fatal(event))
		writer->is_broken = true;
	(void)nt_kafka_client_note(&writer->client, error, rd_kafka_event_error_string(event),
				   NULL);
}

static void serve_one(struct nt_kafka_writer *writer, int timeout_ms)
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

/* An idle writer sends a request to check its brokers. */
static void probe(struct nt_kafka_writer *writer)
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
	/* An error of a topic is not cleared by responding brokers. */
	if (health.cause < NT_BUS_DENIED || health.cause == NT_BUS_TIMED_OUT)
		nt_kafka_health_succeed(&writer->client.health);
}

int nt_kafka_writer_make(struct nt_kafka_writer *writer, struct nt_bus_error *error,
			 rd_kafka_t **ret_rk)
{
	const struct nt_kafka_setting settings[] = {
		{"enable.idempotence", "true"},
		{"compression.codec", "lz4"},
		/*
		 * 5 % smaller for batches of some KiB, for microseconds; ten times the cost for
		 * large ones.
		 */
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

/* When this returns, no thread uses or can find the old handle. */
static rd_kafka_t *withdraw(struct nt_kafka_writer *writer)
{
	rd_kafka_t *old;

	(void)pthread_mutex_lock(&writer->lock);
	old = writer->rk;
	writer->rk = NULL;
	while (writer->users)
		nt_kafka_writer_wait_for_change(writer, NT_KAFKA_FLUSH_SLICE_MS);
	(void)pthread_mutex_unlock(&writer->lock);
	return old;
}

/* Destruction takes time, and closing the writer wakes the thread by this queue. */
static rd_kafka_queue_t *withdraw_queue(struct nt_kafka_writer *writer)
{
	rd_kafka_queue_t *old;

	(void)pthread_mutex_lock(&writer->lock);
	old = writer->queue;
	writer->queue = NULL;
	(void)pthread_mutex_unlock(&writer->lock);
	return old;
}

void nt_kafka_writer_destroy_handle(rd_kafka_t *rk, rd_kafka_queue_t *queue)
{
	if (!rk)
		return;
	(void)rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
					 RD_KAFKA_PURGE_F_NON_BLOCKING);
	nt_kafka_end_queue(queue);
	nt_kafka_end_fully(rk); /* it refers to our records */
}

/*
 * Processes the reports in flight, for a while. A broken client will not send what it has not sent
 * yet.
 */
static void settle(struct nt_kafka_writer *writer, rd_kafka_t *old)
{
	uint64_t deadline_ns = nt_clock_mono_ns() + DRAIN_NS;
	int left_ms;

	while (rd_kafka_outq_len(old) > 0 &&
	       (left_ms = nt_kafka_writer_ms_until(deadline_ns)) > 0) {
		if (writer->is_broken)
			(void)rd_kafka_purge(old, RD_KAFKA_PURGE_F_QUEUE |
							  RD_KAFKA_PURGE_F_NON_BLOCKING);
		serve_one(writer, left_ms < TICK_MS ? 1 : TICK_MS);
	}
}

/*
 * Only a record without a report is sent again. It may have arrived all the same, as after any lost
 * acknowledgement: readers deduplicate by sequence number.
 */
static void replace(struct nt_kafka_writer *writer)
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
	r = nt_kafka_writer_make(writer, &error, &fresh);
	if (r < 0) {
		/* A half-written file is complete soon; the old client may still work. */
		nt_kafka_health_hint(&writer->client.health, NT_BUS_FAILED, "%s", error.text);
		return;
	}
	old = withdraw(writer);
	settle(writer, old);
	nt_kafka_writer_destroy_handle(old, withdraw_queue(writer));
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

bool nt_kafka_writer_must_end(struct nt_kafka_writer *writer)
{
	bool yes;

	(void)pthread_mutex_lock(&writer->lock);
	yes = writer->must_end;
	if (!yes && !writer->is_broken)
		send_waiting(writer);
	(void)pthread_mutex_unlock(&writer->lock);
	return yes;
}

void *nt_kafka_writer_serve(void *data)
{
	struct nt_kafka_writer *writer = data;

	while (!nt_kafka_writer_must_end(writer)) {
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
