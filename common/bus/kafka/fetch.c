/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where fetching starts in each partition. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/bus/kafka/cause.h"
#include "common/bus/kafka/reader_impl.h"
#include "common/bus/kafka/record.h"
#include "common/system/clock.h"

enum {
	QUERY_MS = 3000,
	QUERY_TIMES = 10,
	PAUSE_NS = 100000000,
};

#define RETRY_NS NT_SECOND
#define SOON_NS  (100 * NT_MILLISECOND) /* during an election */

static const char *name_of(const struct nt_kafka_reader *reader,
			   const struct nt_kafka_partition *partition)
{
	return rd_kafka_topic_name(reader->topic[partition->topic]);
}

static void note(struct nt_kafka_reader *reader, const struct nt_kafka_partition *partition,
		 rd_kafka_resp_err_t error)
{
	char what[NT_KAFKA_TOPIC_BYTES + 16];

	(void)snprintf(what, sizeof(what), "topic '%s'", name_of(reader, partition));
	(void)nt_kafka_client_note(&reader->client, error, NULL, what);
}

static bool is_wanted(const struct nt_kafka_reader *reader,
		      const struct nt_kafka_partition *partition)
{
	return partition->is_known && partition->is_owned && !partition->is_running &&
	       !(reader->bus.paused >> partition->topic & 1);
}

/* ---- requesting offsets ---------------------------------------------------------------------- */

/* Offsets of times in many partitions, in one request. The list has the times as offsets. */
static int request_offsets(struct nt_kafka_reader *reader, rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_resp_err_t error = rd_kafka_offsets_for_times(reader->rk, list, QUERY_MS);

	if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	(void)nt_kafka_client_note(&reader->client, error, NULL, NULL);
	return nt_kafka_errno(error);
}

/* RD_KAFKA_OFFSET_END as a time stands for the end in the protocol. */
static void add_to(const struct nt_kafka_reader *reader, rd_kafka_topic_partition_list_t *list,
		   struct nt_kafka_partition *partition, int64_t time)
{
	rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_add(
		list, name_of(reader, partition), (int32_t)partition->id);

	one->offset = time;
	one->opaque = partition;
}

/*
 * The ends are requested before the times: without a record of that time or later, later ones are
 * behind the end.
 */
static int resolve_times(struct nt_kafka_reader *reader, rd_kafka_topic_partition_list_t *ends,
			 rd_kafka_topic_partition_list_t *times)
{
	bool is_complete = true;
	int r = request_offsets(reader, ends);

	if (r == 0)
		r = request_offsets(reader, times);
	if (r < 0)
		return r;
	for (int i = 0; i < times->cnt; i++) {
		const rd_kafka_topic_partition_t *one = &times->elems[i], *end;
		struct nt_kafka_partition *partition = one->opaque;
		int64_t offset = one->offset;

		end = rd_kafka_topic_partition_list_find(ends, one->topic, one->partition);
		if (offset < 0 && end)
			offset = end->offset;
		if (one->err || !end || end->err || offset < 0) {
			is_complete = false;
			continue;
		}
		partition->next = (uint64_t)offset;
		partition->start = NT_KAFKA_FROM_OFFSET;
	}
	return is_complete ? 0 : -EAGAIN;
}

static int resolve_all_times(struct nt_kafka_reader *reader)
{
	rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_new(16);
	rd_kafka_topic_partition_list_t *times = rd_kafka_topic_partition_list_new(16);
	int r = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (uint32_t j = 0; j < reader->partitions[i].count; j++) {
			struct nt_kafka_partition *partition = &reader->partitions[i].partition[j];

			if (!is_wanted(reader, partition) || partition->start != NT_KAFKA_FROM_TIME)
				continue;
			add_to(reader, ends, partition, RD_KAFKA_OFFSET_END);
			add_to(reader, times, partition, nt_kafka_time_ms(partition->from_real_ns));
		}
	}
	if (times->cnt)
		r = resolve_times(reader, ends, times);
	rd_kafka_topic_partition_list_destroy(ends);
	rd_kafka_topic_partition_list_destroy(times);
	return r;
}

/*
 * The wanted record was evicted: continues at the oldest one left. If the position is behind the
 * end, the topic was recreated, and all its records are new. A position in between is only a
 * broker's stale metadata: nothing is read twice for that.
 */
static int resolve_evicted(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition)
{
	int64_t low, high;
	rd_kafka_resp_err_t error =
		rd_kafka_query_watermark_offsets(reader->rk, name_of(reader, partition),
						 (int32_t)partition->id, &low, &high, QUERY_MS);

	if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
		note(reader, partition, error);
		return nt_kafka_errno(error);
	}
	if (partition->next < (uint64_t)low)
		reader->bus.missed += (uint64_t)low - partition->next;
	if (partition->next < (uint64_t)low || partition->next > (uint64_t)high)
		partition->next = (uint64_t)low;
	partition->start = NT_KAFKA_FROM_OFFSET;
	return 0;
}

/* 0 where every end is known. */
static int request_ends(struct nt_kafka_reader *reader, rd_kafka_topic_partition_list_t *ends)
{
	int r;

	for (int i = 0; i < ends->cnt; i++)
		ends->elems[i].offset = RD_KAFKA_OFFSET_END;
	r = ends->cnt ? request_offsets(reader, ends) : 0;
	for (int i = 0; i < ends->cnt && r == 0; i++) {
		if (ends->elems[i].err)
			r = nt_kafka_errno(ends->elems[i].err);
		else if (ends->elems[i].offset < 0)
			r = -EAGAIN;
	}
	return r;
}

int nt_kafka_fetch_from_end(struct nt_kafka_reader *reader)
{
	rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_new(16);
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int r;

	for (int i = 0; i < NT_TOPIC_END; i++)
		for (uint32_t j = 0; j < reader->partitions[i].count; j++)
			if (reader->partitions[i].partition[j].is_known)
				add_to(reader, ends, &reader->partitions[i].partition[j],
				       RD_KAFKA_OFFSET_END);
	/* A partition may have no leader, above all when it is new. */
	r = request_ends(reader, ends);
	for (int i = 1; i < QUERY_TIMES && r < 0; i++) {
		(void)nanosleep(&pause, NULL);
		r = request_ends(reader, ends);
	}
	for (int i = 0; i < ends->cnt && r == 0; i++) {
		struct nt_kafka_partition *partition = ends->elems[i].opaque;

		nt_kafka_fetch_stop(reader, partition);
		partition->next = (uint64_t)ends->elems[i].offset;
		partition->start = NT_KAFKA_FROM_OFFSET;
		partition->from_real_ns = 0;
	}
	rd_kafka_topic_partition_list_destroy(ends);
	return r;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static int start(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition)
{
	int64_t offset = RD_KAFKA_OFFSET_BEGINNING;
	int r = 0;

	if (partition->start == NT_KAFKA_FROM_EVICTED)
		r = resolve_evicted(reader, partition);
	if (r < 0)
		return r;
	if (partition->start == NT_KAFKA_FROM_TIME)
		return -EAGAIN; /* not resolved */
	if (partition->start == NT_KAFKA_FROM_OFFSET)
		offset = (int64_t)partition->next;
	if (rd_kafka_consume_start_queue(reader->topic[partition->topic], (int32_t)partition->id,
					 offset, reader->queue) < 0) {
		note(reader, partition, rd_kafka_last_error());
		return nt_kafka_errno(rd_kafka_last_error());
	}
	partition->is_running = true;
	return 0;
}

void nt_kafka_fetch_start(struct nt_kafka_reader *reader)
{
	int r;

	if (!reader->must_start || nt_clock_mono_ns() < reader->retry_mono_ns)
		return;
	r = resolve_all_times(reader);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (uint32_t j = 0; j < reader->partitions[i].count; j++) {
			struct nt_kafka_partition *partition = &reader->partitions[i].partition[j];
			int one = is_wanted(reader, partition) ? start(reader, partition) : 0;

			if (one < 0)
				r = one;
		}
	}
	reader->must_start = r < 0;
	reader->retry_mono_ns = 0;
	if (r < 0) {
		reader->retry_mono_ns = nt_clock_mono_ns() + (r == -EAGAIN ? SOON_NS : RETRY_NS);
		nt_kafka_watch_call(&reader->watch);
	}
}

static void forget_batch(struct nt_kafka_reader *reader, const struct nt_kafka_partition *partition)
{
	for (size_t i = reader->batch_at; i < reader->batch_count; i++) {
		rd_kafka_message_t *message = reader->batch[i];

		if (!message || message->rkt != reader->topic[partition->topic] ||
		    message->partition != (int32_t)partition->id)
			continue;
		rd_kafka_message_destroy(message);
		reader->batch[i] = NULL;
	}
}

void nt_kafka_fetch_stop(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition)
{
	reader->must_start = true;
	reader->retry_mono_ns = 0;
	if (!partition->is_running)
		return;
	(void)rd_kafka_consume_stop(reader->topic[partition->topic], (int32_t)partition->id);
	partition->is_running = false;
	partition->is_looked = false;
	partition->is_short = false;
	partition->stuck_mono_ns = 0;
	forget_batch(reader, partition);
}
