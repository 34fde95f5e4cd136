/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reader: opening and closing, polling, records. Partitions are not ordered among each other.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/bus/kafka/cause.h"
#include "common/bus/kafka/reader_impl.h"
#include "common/bus/kafka/record.h"
#include "common/system/clock.h"

enum {
	FETCH_KBYTES = 8192, /* prefetched, of all partitions together; also the largest batch */
	FIRST_NEWS_MS = 5000,
	SERVE_EVERY = 256, /* records, so that a long backlog does not block other work */
	WAIT_MS = 1000, /* at a time, for events without a descriptor */
	RETRY_MS = 100,
};

#define RECONNECT_NS     (2 * NT_SECOND)
#define DEFAULT_IDLE_NS  (100 * NT_MILLISECOND)
#define DEFAULT_STALL_NS (10 * NT_SECOND)

/* ---- the client ------------------------------------------------------------------------------ */

static void forget_all(struct nt_kafka_reader *reader)
{
	if (reader->current)
		rd_kafka_message_destroy(reader->current);
	reader->current = NULL;
	for (size_t i = reader->batch_at; i < reader->batch_count; i++)
		if (reader->batch[i])
			rd_kafka_message_destroy(reader->batch[i]);
	reader->batch_at = 0;
	reader->batch_count = 0;
}

static void disconnect(struct nt_kafka_reader *reader)
{
	forget_all(reader);
	nt_kafka_watch_end(&reader->watch);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (uint32_t j = 0; j < reader->partitions[i].count; j++)
			nt_kafka_fetch_stop(reader, &reader->partitions[i].partition[j]);
		if (reader->topic[i])
			rd_kafka_topic_destroy(reader->topic[i]);
		reader->topic[i] = NULL;
	}
	nt_kafka_end_queue(reader->queue);
	reader->queue = NULL;
	if (reader->rk)
		nt_kafka_end(reader->rk, false);
	reader->rk = NULL;
}

static int make(struct nt_kafka_reader *reader, struct nt_bus_error *error, rd_kafka_t **ret_rk)
{
	const struct nt_kafka_setting settings[] = {
		{"enable.auto.commit", "false"},
		{"auto.offset.reset", "error"}, /* we decide, and count missed records */
		{"queued.min.messages", "20000"},
		{"queued.max.messages.kbytes", NULL, FETCH_KBYTES},
		{"fetch.message.max.bytes", "1048576"},
		{"fetch.max.bytes", "4194304"},
		/* Before 2.2 a partition is paused for a second if the queue is full. */
		{"fetch.queue.backoff.ms", "20", .may_be_unknown = true},
		{"fetch.wait.max.ms", NULL, reader->idle_ns / NT_MILLISECOND},
	};

	return nt_kafka_client_make(&reader->client, RD_KAFKA_CONSUMER, RD_KAFKA_EVENT_ERROR,
				    settings, sizeof(settings) / sizeof(settings[0]), error,
				    ret_rk);
}

/* Takes ownership of the new handle in every case. */
static int connect_with(struct nt_kafka_reader *reader, rd_kafka_t *rk)
{
	static const uint64_t one = 1;
	char name[NT_KAFKA_TOPIC_BYTES];

	reader->rk = rk;
	reader->queue = rd_kafka_queue_new(rk);
	rd_kafka_queue_io_event_enable(reader->queue, reader->event_fd, &one, sizeof(one));
	for (int i = 0; i < NT_TOPIC_END; i++) {
		if (!(reader->topics >> i & 1))
			continue;
		nt_kafka_topic_name(&reader->client.url, (enum nt_topic)i, name);
		reader->topic[i] = rd_kafka_topic_new(rk, name, NULL);
		if (!reader->topic[i])
			return nt_kafka_errno(rd_kafka_last_error());
	}
	reader->generation = 0;
	reader->must_start = true;
	reader->retry_mono_ns = 0;
	return nt_kafka_watch_start(&reader->watch, &reader->client, rk, reader->topic,
				    reader->event_fd);
}

/*
 * Reconnects with the current credentials. Reading continues behind the last record returned. Group
 * assignments are kept where possible.
 */
static int reconnect(struct nt_kafka_reader *reader, bool must_rejoin)
{
	struct nt_bus_error error = {0};
	rd_kafka_t *rk;
	int r = make(reader, &error, &rk);

	if (r < 0) {
		/* The file may be half-written; the old client may still work. */
		nt_kafka_health_hint(&reader->client.health, NT_BUS_FAILED, "%s", error.text);
		reader->reconnect_mono_ns = nt_clock_mono_ns() + RECONNECT_NS;
		return 0;
	}
	if (must_rejoin)
		nt_kafka_group_leave(reader);
	disconnect(reader);
	reader->is_stuck = false;
	reader->bus.stats.reconnected++;
	r = connect_with(reader, rk);
	if (r == 0 && must_rejoin)
		r = nt_kafka_group_join(reader, &error);
	return r;
}

/* ---- updates --------------------------------------------------------------------------------- */

static int grow(struct nt_kafka_reader *reader, enum nt_topic topic, uint32_t count)
{
	bool is_owned = !reader->group || !(reader->group->grouped >> topic & 1);

	return nt_kafka_partitions_grow(&reader->partitions[topic], topic, count, is_owned,
					reader->from_real_ns);
}

static void look_for_stalls(struct nt_kafka_reader *reader)
{
	rd_kafka_topic_partition_list_t *ends = nt_kafka_watch_take_ends(&reader->watch);

	if (!ends)
		return;
	reader->is_stuck |= nt_kafka_stall_look(reader, ends);
	rd_kafka_topic_partition_list_destroy(ends);
}

static int look(struct nt_kafka_reader *reader)
{
	struct nt_kafka_news news;
	int r = 0;

	nt_kafka_watch_get(&reader->watch, &news);
	look_for_stalls(reader);
	reader->is_stuck |= nt_kafka_stall_without_ends(reader, news.without_ends_ns);
	if ((news.is_stale || reader->is_stuck) && nt_clock_mono_ns() >= reader->reconnect_mono_ns)
		return reconnect(reader, news.is_stale && reader->group);
	if (news.generation == reader->generation)
		return 0;
	reader->generation = news.generation;
	for (int i = 0; i < NT_TOPIC_END && r == 0; i++) {
		uint32_t count = news.partitions[i];

		if (count > NT_KAFKA_MAX_PARTITIONS) {
			nt_kafka_health_fail(
				&reader->client.health, NT_BUS_FAILED,
				"topic '%.100s' has %u partitions, of which %d are read",
				rd_kafka_topic_name(reader->topic[i]), count,
				NT_KAFKA_MAX_PARTITIONS);
			count = NT_KAFKA_MAX_PARTITIONS;
		}
		r = grow(reader, (enum nt_topic)i, count);
		for (uint32_t j = 0; j < count && r == 0; j++)
			reader->partitions[i].partition[j].is_known = true;
	}
	reader->must_start = true;
	return r;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct nt_kafka_partition *find(struct nt_kafka_reader *reader,
				       const rd_kafka_message_t *message)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		if (!reader->topic[i] || reader->topic[i] != message->rkt)
			continue;
		if ((uint32_t)message->partition >= reader->partitions[i].count)
			return NULL;
		return &reader->partitions[i].partition[message->partition];
	}
	return NULL;
}

static void take_error(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition,
		       const rd_kafka_message_t *message)
{
	char what[NT_KAFKA_TOPIC_BYTES + 16];

	switch (message->err) {
	case RD_KAFKA_RESP_ERR__PARTITION_EOF:
		return;
	case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
	case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
		nt_kafka_fetch_stop(reader, partition);
		if (partition->start == NT_KAFKA_FROM_OFFSET)
			partition->start = NT_KAFKA_FROM_EVICTED;
		return;
	default:
		(void)snprintf(what, sizeof(what), "topic '%s'", rd_kafka_topic_name(message->rkt));
		(void)nt_kafka_client_note(&reader->client, message->err,
					   rd_kafka_message_errstr(message), what);
	}
}

/* 1 with a record, 0 if the message is to be skipped. */
static int take(struct nt_kafka_reader *reader, const rd_kafka_message_t *message,
		struct nt_bus_record *ret_record)
{
	struct nt_kafka_partition *partition = find(reader, message);
	uint64_t real_ns;

	if (!partition || !partition->is_running)
		return 0;
	if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		take_error(reader, partition, message);
		return 0;
	}
	if (message->offset < 0 || (partition->start == NT_KAFKA_FROM_OFFSET &&
				    (uint64_t)message->offset < partition->next))
		return 0;
	partition->start = NT_KAFKA_FROM_OFFSET;
	partition->next = (uint64_t)message->offset + 1;
	real_ns = nt_kafka_time_of(message);
	if (real_ns < partition->from_real_ns)
		return 0;
	partition->from_real_ns = 0;
	partition->last_real_ns = real_ns;
	if (message->key_len > NT_BUS_MAX_KEY || message->len > NT_BUS_MAX_VALUE) {
		reader->bus.stats.corrupt_frames++;
		return 0;
	}
	*ret_record = (struct nt_bus_record){
		.topic = partition->topic,
		.key = message->key,
		.key_len = message->key ? message->key_len : 0,
		.value = message->payload,
		.value_len = message->payload ? message->len : 0,
		.real_ns = real_ns,
		.partition = partition->id,
		.offset = (uint64_t)message->offset,
	};
	return 1;
}

/* From the current batch: 1, or 0 if it is empty. */
static int next_of_batch(struct nt_kafka_reader *reader, struct nt_bus_record *ret_record)
{
	while (reader->batch_at < reader->batch_count) {
		rd_kafka_message_t *message = reader->batch[reader->batch_at];
		int r;

		reader->batch[reader->batch_at++] = NULL;
		if (!message)
			continue;
		r = take(reader, message, ret_record);
		if (r > 0) {
			reader->current = message;
			return 1;
		}
		rd_kafka_message_destroy(message);
	}
	return 0;
}

static int next_fetched(struct nt_kafka_reader *reader, struct nt_bus_record *ret_record)
{
	for (;;) {
		ssize_t n;

		if (next_of_batch(reader, ret_record) > 0)
			return 1;
		n = rd_kafka_consume_batch_queue(reader->queue, 0, reader->batch, NT_KAFKA_BATCH);
		if (n <= 0) {
			reader->was_empty = true;
			return 0;
		}
		if (reader->batch[0]->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			nt_kafka_health_succeed(&reader->client.health);
		reader->batch_at = 0;
		reader->batch_count = (size_t)n;
	}
}

/* Work other than returning records. */
static int serve(struct nt_kafka_reader *reader)
{
	int r = look(reader);

	if (r < 0)
		return r;
	if (reader->group)
		nt_kafka_group_serve(reader);
	nt_kafka_fetch_start(reader);
	return 0;
}

static void drain_descriptor(const struct nt_kafka_reader *reader)
{
	uint64_t count;

	if (read(reader->event_fd, &count, sizeof(count)) < 0)
		return; /* it was empty */
}

/* 0 when the time is up. */
static int wait_for_news(struct nt_kafka_reader *reader, int timeout_ms, uint64_t deadline_ns)
{
	struct pollfd pollfd = {.fd = reader->event_fd, .events = POLLIN};
	uint64_t now_ns = nt_clock_mono_ns();
	int left_ms = reader->retry_mono_ns ? RETRY_MS : WAIT_MS;

	if (timeout_ms >= 0) {
		if (now_ns >= deadline_ns)
			return 0;
		/* Rounded up: not to spin in the last millisecond. */
		if (deadline_ns - now_ns < (uint64_t)left_ms * NT_MILLISECOND)
			left_ms =
				(int)((deadline_ns - now_ns + NT_MILLISECOND - 1) / NT_MILLISECOND);
	}
	if (poll(&pollfd, 1, left_ms) < 0)
		return -errno;
	return 1;
}

static int next_record(struct nt_bus_reader *bus, int timeout_ms, struct nt_bus_record *ret_record)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;
	uint64_t deadline_ns = 0;
	int r;

	if (timeout_ms > 0)
		deadline_ns = nt_clock_mono_ns() + (uint64_t)timeout_ms * NT_MILLISECOND;
	if (reader->current)
		rd_kafka_message_destroy(reader->current);
	reader->current = NULL;
	for (;;) {
		/* Before looking at the queue, so that no event is missed. */
		if (reader->batch_at == reader->batch_count)
			drain_descriptor(reader);
		if (reader->batch_at == reader->batch_count ||
		    (reader->group && ++reader->group->since_poll >= SERVE_EVERY)) {
			r = serve(reader);
			if (r < 0)
				return r;
		}
		if (next_fetched(reader, ret_record) > 0)
			return 1;
		if (reader->must_start && !reader->retry_mono_ns)
			continue; /* a position was found to be evicted */
		if (timeout_ms == 0)
			return 0;
		r = wait_for_news(reader, timeout_ms, deadline_ns);
		if (r <= 0)
			return r;
	}
}

/* ---- positions ------------------------------------------------------------------------------- */

static int seek(struct nt_bus_reader *bus, const struct nt_bus_position *position)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;
	struct nt_kafka_partition *partition;
	int r;

	if (!(reader->topics >> position->topic & 1) ||
	    position->partition >= NT_KAFKA_MAX_PARTITIONS || position->offset > INT64_MAX)
		return -EINVAL;
	r = grow(reader, position->topic, position->partition + 1);
	if (r < 0)
		return r;
	partition = &reader->partitions[position->topic].partition[position->partition];
	nt_kafka_fetch_stop(reader, partition);
	partition->next = position->offset;
	partition->start = NT_KAFKA_FROM_OFFSET;
	partition->from_real_ns = 0;
	return 0;
}

/* Resolved for each partition when it is started: the brokers may be unreachable. */
static int seek_time(struct nt_bus_reader *bus, uint64_t real_ns)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;

	reader->from_real_ns = real_ns;
	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (uint32_t j = 0; j < reader->partitions[i].count; j++) {
			struct nt_kafka_partition *partition = &reader->partitions[i].partition[j];

			nt_kafka_fetch_stop(reader, partition);
			partition->from_real_ns = real_ns;
			partition->start = real_ns ? NT_KAFKA_FROM_TIME : NT_KAFKA_FROM_OLDEST;
		}
	}
	return 0;
}

static int seek_end(struct nt_bus_reader *bus)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;
	int r = nt_kafka_watch_wait(&reader->watch, FIRST_NEWS_MS);

	if (r < 0)
		return -EHOSTUNREACH;
	r = look(reader);
	if (r == 0)
		r = nt_kafka_fetch_from_end(reader);
	if (r == 0)
		reader->from_real_ns = 0;
	return r;
}

static int pause_topics(struct nt_bus_reader *bus)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;

	for (int i = 0; i < NT_TOPIC_END; i++)
		for (uint32_t j = 0; j < reader->partitions[i].count; j++)
			if (bus->paused >> i & 1)
				nt_kafka_fetch_stop(reader, &reader->partitions[i].partition[j]);
	reader->must_start = true;
	return 0;
}

static void add_lag(const struct nt_kafka_reader *reader,
		    const struct nt_kafka_partition *partition, uint64_t now_real_ns,
		    struct nt_bus_lag *lag)
{
	int64_t low, high;
	uint64_t next = partition->next;

	if (!partition->is_owned || !partition->is_known ||
	    rd_kafka_get_watermark_offsets(
		    reader->rk, rd_kafka_topic_name(reader->topic[partition->topic]),
		    (int32_t)partition->id, &low, &high) != RD_KAFKA_RESP_ERR_NO_ERROR ||
	    high < 0)
		return;
	/* The library has only the end as of the last fetch. */
	if (partition->end > (uint64_t)high && partition->is_running)
		high = (int64_t)partition->end;
	if (partition->start != NT_KAFKA_FROM_OFFSET || (low > 0 && next < (uint64_t)low))
		next = low > 0 ? (uint64_t)low : 0;
	lag->partitions++;
	if (next >= (uint64_t)high)
		return;
	lag->records += (uint64_t)high - next;
	if (partition->last_real_ns && now_real_ns > partition->last_real_ns &&
	    now_real_ns - partition->last_real_ns > lag->ns)
		lag->ns = now_real_ns - partition->last_real_ns;
}

static int get_lag(struct nt_bus_reader *bus, uint32_t topics, uint64_t now_real_ns,
		   struct nt_bus_lag *ret_lag)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;
	struct nt_bus_lag lag = {0};

	for (int i = 0; i < NT_TOPIC_END; i++)
		for (uint32_t j = 0; j < reader->partitions[i].count; j++)
			if (topics >> i & 1)
				add_lag(reader, &reader->partitions[i].partition[j], now_real_ns,
					&lag);
	*ret_lag = lag;
	return 0;
}

static int reader_fd(const struct nt_bus_reader *bus)
{
	const struct nt_kafka_reader *reader = (const struct nt_kafka_reader *)bus;

	return reader->event_fd;
}

static void get_stats(const struct nt_bus_reader *bus, struct nt_bus_stats *stats)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)(uintptr_t)bus;

	nt_kafka_health_add_errors(&reader->client.health, stats->errors);
	stats->left_behind_now = nt_kafka_left_behind();
}

static void get_health(const struct nt_bus_reader *bus, struct nt_bus_health *ret_health)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)(uintptr_t)bus;

	nt_kafka_health_get(&reader->client.health, ret_health);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void close_reader(struct nt_bus_reader *bus)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;

	if (reader->group)
		nt_kafka_group_leave(reader);
	disconnect(reader);
	nt_kafka_group_free(reader->group);
	for (int i = 0; i < NT_TOPIC_END; i++)
		nt_kafka_partitions_release(&reader->partitions[i]);
	nt_closep(&reader->event_fd);
	nt_kafka_client_release(&reader->client);
	free(reader);
}

static int open_reader(struct nt_kafka_reader *reader, const char *url,
		       const struct nt_bus_options *options, const struct nt_bus_group *group)
{
	struct nt_bus_error error = {0};
	rd_kafka_t *rk;
	int r = nt_kafka_client_init(&reader->client, url, options);

	if (r < 0)
		return r;
	reader->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (reader->event_fd < 0)
		return -errno;
	if (group)
		r = nt_kafka_group_new(group, &reader->group);
	if (r == 0)
		r = make(reader, &error, &rk);
	if (r == 0)
		r = connect_with(reader, rk);
	if (r == 0 && group)
		r = nt_kafka_group_join(reader, &error);
	if (r < 0 && options->error)
		*options->error = error;
	return r;
}

int nt_kafka_reader_open(const char *url, uint32_t topics, const struct nt_bus_options *options,
			 const struct nt_bus_group *group, struct nt_bus_reader **ret_reader)
{
	struct nt_kafka_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->bus.close = close_reader;
	reader->bus.seek = seek;
	reader->bus.seek_time = seek_time;
	reader->bus.seek_end = seek_end;
	reader->bus.next = next_record;
	reader->bus.fd = reader_fd;
	reader->bus.get_stats = get_stats;
	reader->bus.get_health = get_health;
	reader->bus.pause = pause_topics;
	reader->bus.lag = get_lag;
	if (group)
		reader->bus.commit = nt_kafka_group_commit;
	reader->topics = topics;
	reader->event_fd = -1;
	reader->idle_ns = options->idle_ns ? options->idle_ns : DEFAULT_IDLE_NS;
	reader->stall_ns = options->stall_ns ? options->stall_ns : DEFAULT_STALL_NS;
	if (reader->idle_ns > NT_MINUTE)
		reader->idle_ns = NT_MINUTE;
	r = open_reader(reader, url, options, group);
	if (r < 0) {
		close_reader(&reader->bus);
		return r;
	}
	*ret_reader = &reader->bus;
	return 0;
}
