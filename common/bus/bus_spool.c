/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/bus_spool.h"

#include <assert.h>
#include <errno.h>

#include "common/bus/bus_impl.h"
#include "common/bus/spool/compact.h"
#include "common/bus/spool/dir.h"
#include "common/bus/spool/partition.h"
#include "common/bus/spool/trim.h"
#include "common/system/clock.h"

enum {
	DEFAULT_SEGMENT_BYTES = 8 << 20,
	MIN_SEGMENT_BYTES = 4 << 10,
	MAX_KEYS = 1 << 20,
	SEGMENTS_AT_LEAST = 4, /* of a topic at its size cap: at most a quarter goes at once */
};

#define DEFAULT_MAX_BYTES (256ULL << 20)

struct topic {
	int fd;
	struct nt_spool_partition *partition; /* ours, after the first publish */
};

struct spool {
	struct nt_bus bus;
	int fd;
	struct nt_spool_limits limits;
	struct topic topic[NT_TOPIC_END];
};

static int flush_topic(struct topic *topic)
{
	return topic->partition ? nt_spool_partition_flush(topic->partition) : 0;
}

static int flush_spool(struct nt_bus *bus)
{
	struct spool *spool = (struct spool *)bus;
	int first = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		int r = flush_topic(&spool->topic[i]);

		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

static void close_spool(struct nt_bus *bus)
{
	struct spool *spool = (struct spool *)bus;

	(void)flush_spool(bus);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		nt_spool_partition_free(spool->topic[i].partition);
		nt_closep(&spool->topic[i].fd);
	}
	nt_closep(&spool->fd);
	free(spool);
}

/*
 * Maintenance after a roll. Failures lose nothing: the next roll retries, and a topic that exceeds
 * its cap because nothing can be removed ends in -ENOSPC, which is counted.
 */
static void tidy_topic(struct topic *topic, enum nt_topic index, uint64_t now_real_ns)
{
	bool is_compacted = nt_topic_is_compacted(index);
	int r = 0;

	assert(topic->partition);
	if (is_compacted && topic->partition->fd < 0)
		r = nt_spool_compact(topic->partition, now_real_ns);
	if (r == 0)
		r = nt_spool_trim(topic->fd, topic->partition, !is_compacted, now_real_ns);
	(void)r;
}

/* The lowest partition that no other writer holds. */
static int open_topic(struct spool *spool, enum nt_topic index, uint64_t now_real_ns)
{
	struct topic *topic = &spool->topic[index];
	int r = 0;

	if (topic->fd < 0)
		r = nt_spool_make_dir(spool->fd, nt_topic_name(index), &topic->fd);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < NT_SPOOL_MAX_PARTITIONS; i++) {
		r = nt_spool_partition_open(topic->fd, i, &spool->limits, &spool->bus.stats,
					    &topic->partition);
		if (r == 0)
			tidy_topic(topic, index, now_real_ns);
		if (r != -EWOULDBLOCK)
			return r;
	}
	return -EUSERS;
}

static int publish_to_spool(struct nt_bus *bus, const struct nt_bus_record *record)
{
	struct spool *spool = (struct spool *)bus;
	struct topic *topic = &spool->topic[record->topic];
	uint64_t now_real_ns = nt_clock_real_ns();
	int r = 0;

	if (!topic->partition)
		r = open_topic(spool, record->topic, now_real_ns);
	if (r == 0) {
		r = nt_spool_partition_make_room(topic->partition, record, now_real_ns);
		if (r > 0)
			tidy_topic(topic, record->topic, now_real_ns);
	}
	if (r < 0) {
		bus->stats.dropped_full++;
		return r;
	}
	return nt_spool_partition_add(topic->partition, record);
}

static void set_limits(struct nt_spool_limits *limits, const struct nt_bus_options *options)
{
	limits->max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES;
	limits->max_age_ns = options->max_age_ns;
	limits->segment_bytes =
		options->segment_bytes ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
	if (limits->segment_bytes > limits->max_bytes / SEGMENTS_AT_LEAST)
		limits->segment_bytes = limits->max_bytes / SEGMENTS_AT_LEAST;
	if (limits->segment_bytes < MIN_SEGMENT_BYTES)
		limits->segment_bytes = MIN_SEGMENT_BYTES;
	limits->max_keys = MAX_KEYS;
	limits->sync = options->sync;
}

int nt_spool_open(const char *dir, const struct nt_bus_options *options, struct nt_bus **ret_bus)
{
	struct spool *spool = calloc(1, sizeof(*spool));
	int r;

	if (!spool)
		return -ENOMEM;
	spool->bus.close = close_spool;
	spool->bus.publish = publish_to_spool;
	spool->bus.flush = flush_spool;
	spool->fd = -1;
	for (int i = 0; i < NT_TOPIC_END; i++)
		spool->topic[i].fd = -1;
	set_limits(&spool->limits, options);
	r = nt_spool_make_root(dir, &spool->fd);
	if (r < 0) {
		close_spool(&spool->bus);
		return r;
	}
	*ret_bus = &spool->bus;
	return 0;
}
