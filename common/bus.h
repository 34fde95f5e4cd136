/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus: the one way in which data travels between the programs. An implementation keeps, per
 * topic, an ordered log of records per partition. A record is (topic, key, time, bytes); the bytes
 * are one encoded envelope (proto/wire.h). The bus keeps no positions of readers: a reader says
 * where to start and is told the position of what it gets, and its owner stores that.
 *
 * A writer may be used by one thread at a time, and so may a reader; each has its own state.
 */
#ifndef NT_COMMON_BUS_H
#define NT_COMMON_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

enum nt_topic {
	NT_TOPIC_WINDOW,
	NT_TOPIC_NODE,
	NT_TOPIC_DETAIL,
	NT_TOPIC_INCIDENT, /* compacted */
	NT_TOPIC_STATE, /* compacted */
	NT_TOPIC_CONTROL, /* compacted */
	NT_TOPIC_DLQ,
	NT_TOPIC_END,
};

/* "neutracer.window.v1" …, without the configurable prefix change. */
const char *nt_topic_name(enum nt_topic topic);
bool nt_topic_is_compacted(enum nt_topic topic);

enum {
	NT_BUS_MAX_KEY = 255, /* bytes */
	NT_BUS_MAX_VALUE = 1 << 20, /* bytes */
};

struct nt_bus_record {
	enum nt_topic topic;
	const void *key;
	size_t key_len;
	const void *value; /* size 0 on a compacted topic: the key is deleted */
	size_t value_len;
	uint64_t real_ns; /* event time of the record */
	/* Set by a reader, ignored by a writer: */
	uint32_t partition;
	uint64_t offset; /* of this record; the next read starts after it */
};

struct nt_bus; /* a writer */
struct nt_bus_reader;

/* Every loss has a name. Monotonic since open. */
struct nt_bus_stats {
	uint64_t published, published_bytes;
	uint64_t dropped_full; /* the disk or the queue had no room */
	uint64_t dropped_too_large;
	uint64_t evicted_records; /* removed by the size or age cap, as far as this writer did it */
	uint64_t recovered_torn; /* torn tails cut off at open */
	uint64_t corrupt_frames; /* readers: skipped */
};

struct nt_bus_options {
	uint64_t max_bytes; /* of one topic on disk; 0: the implementation's default */
	uint64_t max_age_ns; /* 0: no limit */
	uint64_t segment_bytes; /* 0: default */
	bool sync; /* fsync at every flush */
};

/*
 * Opens the bus of `url` for writing: "spool:DIR" (kafka://… with the Kafka bus). DIR is made if
 * missing. -EINVAL for an unknown scheme, or what the file system says. `options` may be NULL.
 * Several live writers may publish to one topic: each then writes a partition of its own.
 */
NT_MUST_CHECK int nt_bus_open(const char *url, const struct nt_bus_options *options,
			      struct nt_bus **ret_bus);
/* Flushes. Accepts NULL. */
void nt_bus_close(struct nt_bus *bus);
NT_DEFINE_AUTO(nt_bus, nt_bus_close)

/*
 * Hands a record to the bus, which copies it. It is visible to readers at the latest after
 * nt_bus_flush(). -EMSGSIZE over the caps, -ENOSPC on a full disk: both are counted in the stats,
 * and the writer stays usable.
 */
NT_MUST_CHECK int nt_bus_publish(struct nt_bus *bus, const struct nt_bus_record *record);
NT_MUST_CHECK int nt_bus_flush(struct nt_bus *bus);
void nt_bus_stats(const struct nt_bus *bus, struct nt_bus_stats *ret_stats);

/* Where a reader starts in one topic and partition. */
struct nt_bus_position {
	enum nt_topic topic;
	uint32_t partition;
	uint64_t offset; /* of the first record wanted */
};

/*
 * Opens a reader of the topics whose bit (1 << enum nt_topic) is set. It starts at the oldest
 * record, unless it is told otherwise before the first read. Any number of readers may be open, in
 * any number of processes. A directory that does not exist yet is waited for.
 */
NT_MUST_CHECK int nt_bus_reader_open(const char *url, uint32_t topics,
				     struct nt_bus_reader **ret_reader);
void nt_bus_reader_close(struct nt_bus_reader *reader);
NT_DEFINE_AUTO(nt_bus_reader, nt_bus_reader_close)

/*
 * A position whose record has been evicted moves to the oldest one left, and counts in
 * nt_bus_reader_missed().
 */
NT_MUST_CHECK int nt_bus_reader_seek(struct nt_bus_reader *reader,
				     const struct nt_bus_position *position);
/* To the first record of every topic whose real_ns is at or after the given one. */
NT_MUST_CHECK int nt_bus_reader_seek_time(struct nt_bus_reader *reader, uint64_t real_ns);
NT_MUST_CHECK int nt_bus_reader_seek_end(struct nt_bus_reader *reader);

/*
 * The next record of any topic, or 0 after timeout_ms without one (-1: wait for ever; 0: do not
 * wait). 1 with a record, whose key and value are valid until the next call on this reader.
 * Within a partition records come in order. A damaged frame is skipped and counted, never returned.
 * -EINTR where a signal ended the wait.
 */
NT_MUST_CHECK int nt_bus_reader_next(struct nt_bus_reader *reader, int timeout_ms,
				     struct nt_bus_record *ret_record);
/*
 * Readable when a wait may end; -1 where the implementation has none. Read until there is nothing
 * more before waiting on it.
 */
int nt_bus_reader_fd(const struct nt_bus_reader *reader);
uint64_t nt_bus_reader_missed(const struct nt_bus_reader *reader);
void nt_bus_reader_stats(const struct nt_bus_reader *reader, struct nt_bus_stats *ret_stats);

#endif
