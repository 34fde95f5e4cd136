/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus: the only channel by which data travels between the programs. An implementation keeps,
 * per topic, an ordered log of records per partition. A record is (topic, key, time, bytes); the
 * bytes are one encoded envelope (proto/wire.h). The bus stores no reader positions: a reader is
 * given its start, reports the position of each record, and its owner stores that.
 *
 * A writer, or a reader, may be used by one thread at a time; each has its own state.
 */
#ifndef NT_COMMON_BUS_BUS_H
#define NT_COMMON_BUS_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

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

/* "neutracer.window.v1" …, without the configurable prefix. */
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
	const void *value; /* size 0 on a compacted topic deletes the key */
	size_t value_len;
	uint64_t real_ns; /* event time of the record */
	/* Set by a reader, ignored by a writer: */
	uint32_t partition;
	uint64_t offset; /* of this record; the next read starts after it */
};

struct nt_bus; /* a writer */
struct nt_bus_reader;

/* State of a bus, and why a message was not delivered. A spool reports errors in its results. */
enum nt_bus_cause {
	NT_BUS_WELL,
	NT_BUS_CONNECTING, /* no attempt has succeeded or failed yet */
	NT_BUS_UNREACHABLE, /* no broker reachable, or no such host */
	NT_BUS_REFUSED, /* authentication failed */
	NT_BUS_CERTIFICATE, /* expired, untrusted, or of another host */
	NT_BUS_DENIED, /* authenticated, but not authorised */
	NT_BUS_NO_TOPIC,
	NT_BUS_TOO_LARGE, /* for the broker or the topic */
	NT_BUS_TIMED_OUT, /* not acknowledged in time */
	NT_BUS_FENCED, /* another member has the same name */
	NT_BUS_FAILED, /* anything else, described in the text */
	NT_BUS_CAUSE_END,
};

/* One word for a label: "unreachable". "" if out of range. */
const char *nt_bus_cause_name(enum nt_bus_cause cause);

enum {
	NT_BUS_TEXT = 320, /* size of a status line */
};

struct nt_bus_health {
	enum nt_bus_cause cause;
	uint64_t since_mono_ns; /* when the cause became this one */
	char text[NT_BUS_TEXT]; /* one line without secrets, "" while well */
};

/* Counters of a writer or reader. Monotonic since open, but for those that end in _now. */
struct nt_bus_stats {
	uint64_t published, published_bytes; /* accepted by nt_bus_publish() */
	uint64_t dropped_full; /* the disk or the queue was full */
	uint64_t dropped_too_large;
	uint64_t evicted_records; /* removed by this writer under the size or age cap */
	uint64_t recovered_torn; /* torn tails truncated at open */
	uint64_t corrupt_frames; /* readers: skipped */
	/* Kafka only: */
	uint64_t delivered; /* acknowledged by the brokers */
	uint64_t undelivered[NT_BUS_CAUSE_END]; /* failed or given back, by cause */
	uint64_t errors[NT_BUS_CAUSE_END]; /* all, also those that lost no message */
	/* the client was replaced: new credentials, a fatal error, or a stuck client */
	uint64_t reconnected;
	uint64_t queued_now, queued_bytes_now; /* published and not yet acknowledged */
	uint64_t left_behind_now; /* earlier clients of this process that have not terminated */
};

enum nt_bus_mechanism {
	NT_BUS_SCRAM_SHA_512,
	NT_BUS_SCRAM_SHA_256,
	NT_BUS_PLAIN, /* rejected without TLS */
};

/*
 * Authentication settings. All members but user are file paths; NULL disables the feature. ca_file
 * enables TLS, user enables SASL. Changed files are reloaded without a restart.
 */
struct nt_bus_security {
	const char *ca_file;
	const char *cert_file, *key_file;
	const char *user;
	const char *password_file;
	uint32_t mechanism; /* enum nt_bus_mechanism */
};

/* Details of a failed open, where the errno is not enough. */
struct nt_bus_error {
	char text[NT_BUS_TEXT];
};

struct nt_bus_options {
	/* Spool only: */
	uint64_t max_bytes; /* of one topic on disk; 0: the implementation's default */
	uint64_t max_age_ns; /* 0: no limit */
	uint64_t segment_bytes; /* 0: default */
	bool sync; /* fsync at every flush */
	/* Kafka only; what is pointed to is copied. */
	struct nt_bus_security security;
	const char *client; /* client id in the brokers' logs and quotas; NULL: "neutracer" */
	uint64_t queue_bytes; /* of unacknowledged records; 0: 16 MiB */
	uint32_t queue_records; /* 0: 50,000 */
	uint64_t linger_ns; /* how long a record may be delayed for batching; 0: 100 ms */
	bool is_small; /* low volume: use stronger compression */
	uint64_t give_up_ns; /* after which an unacknowledged record counts as failed; 0: 30 s */
	uint64_t flush_ns; /* timeout of nt_bus_flush(); 0: 5 s */
	uint64_t close_ns; /* timeout of nt_bus_close(); 0: 5 s */
	uint64_t idle_ns; /* reader: longest time a broker may delay an empty response; 0: 100 ms */
	uint64_t stall_ns; /* reader: without progress for so long it makes a new client; 0: 10 s */
	/*
	 * Returns an undelivered record, so that it is not lost; NULL: it is dropped. Called only
	 * within nt_bus_publish(), nt_bus_flush() and nt_bus_close(), on the calling thread, oldest
	 * first. The record is valid during the call; no function of this writer may be called from
	 * it. Until then it occupies the queue. It may have been delivered after all: readers
	 * deduplicate by sequence number.
	 */
	void (*undelivered)(void *data, const struct nt_bus_record *record,
			    enum nt_bus_cause cause);
	void *data;
	/* Both: filled if opening fails; may be NULL. */
	struct nt_bus_error *error;
};

#define NT_BUS_DEFAULT "spool:/var/lib/neutracer/spool" /* of agents and aggregators alike */

/* The directory of a spool's url, within it; NULL: another bus. */
const char *nt_bus_spool_dir(const char *url);

/* Whether the url is well-formed for nt_bus_open(). Checks the text only. */
bool nt_bus_url_is_sound(const char *url);

/*
 * Opens the bus of `url` for writing: "spool:DIR" or "kafka://HOST:PORT[,HOST:PORT…][/PREFIX]". DIR
 * is created if missing. PREFIX replaces "neutracer" in topic names. Opening succeeds while the
 * brokers are unreachable; nt_bus_health() reports the state. -EINVAL for an unknown scheme or a
 * malformed url, or the file system's error. `options` may be NULL. Several writers may publish to
 * one topic: on a spool each writes a partition of its own, on Kafka the key selects it.
 */
NT_MUST_CHECK int nt_bus_open(const char *url, const struct nt_bus_options *options,
			      struct nt_bus **ret_bus);
/* Flushes. Accepts NULL. */
void nt_bus_close(struct nt_bus *bus);
NT_DEFINE_AUTO(nt_bus, nt_bus_close)

/*
 * Publishes a copy of the record. It is visible to readers at the latest after nt_bus_flush().
 * -EMSGSIZE over the caps, -ENOSPC on a full disk, -EAGAIN with a full queue: all are counted in
 * the stats, and the writer stays usable. Never blocks on a broker.
 */
NT_MUST_CHECK int nt_bus_publish(struct nt_bus *bus, const struct nt_bus_record *record);
/* -ETIMEDOUT if not all is acknowledged within options.flush_ns; the rest stays queued. */
NT_MUST_CHECK int nt_bus_flush(struct nt_bus *bus);
void nt_bus_stats(const struct nt_bus *bus, struct nt_bus_stats *ret_stats);
/* The current state. May be called by any thread. */
void nt_bus_health(const struct nt_bus *bus, struct nt_bus_health *ret_health);

/* A reader's start in one topic and partition. */
struct nt_bus_position {
	enum nt_topic topic;
	uint32_t partition;
	uint64_t offset; /* of the first record wanted */
};

/*
 * Opens a reader of the topics whose bit (1 << enum nt_topic) is set. It starts at the oldest
 * record, unless a seek precedes the first read. Any number of readers may be open, in any number
 * of processes. A missing directory is awaited.
 */
NT_MUST_CHECK int nt_bus_reader_open(const char *url, uint32_t topics,
				     struct nt_bus_reader **ret_reader);
/* The same with options, which may be NULL. */
NT_MUST_CHECK int nt_bus_reader_open_with(const char *url, uint32_t topics,
					  const struct nt_bus_options *options,
					  struct nt_bus_reader **ret_reader);
void nt_bus_reader_close(struct nt_bus_reader *reader);
NT_DEFINE_AUTO(nt_bus_reader, nt_bus_reader_close)

/*
 * If the record has been evicted, reading starts at the oldest one left; the skipped records count
 * in nt_bus_reader_missed().
 */
NT_MUST_CHECK int nt_bus_reader_seek(struct nt_bus_reader *reader,
				     const struct nt_bus_position *position);
/* Seeks every topic to the first record whose real_ns is at or after the given one. */
NT_MUST_CHECK int nt_bus_reader_seek_time(struct nt_bus_reader *reader, uint64_t real_ns);
NT_MUST_CHECK int nt_bus_reader_seek_end(struct nt_bus_reader *reader);

/*
 * Returns 1 with the next record of any topic, or 0 after timeout_ms without one (-1: no limit; 0:
 * poll). Key and value are valid until the next call on this reader. Records are ordered within a
 * partition. A damaged frame is skipped and counted, never returned. -EINTR if interrupted by a
 * signal.
 */
NT_MUST_CHECK int nt_bus_reader_next(struct nt_bus_reader *reader, int timeout_ms,
				     struct nt_bus_record *ret_record);
/*
 * Readable when data may be available; -1 if not supported. Read until 0 is returned before polling
 * it.
 */
int nt_bus_reader_fd(const struct nt_bus_reader *reader);
uint64_t nt_bus_reader_missed(const struct nt_bus_reader *reader);
void nt_bus_reader_stats(const struct nt_bus_reader *reader, struct nt_bus_stats *ret_stats);
/* The current state. May be called by any thread. */
void nt_bus_reader_health(const struct nt_bus_reader *reader, struct nt_bus_health *ret_health);

enum {
	NT_BUS_SEGMENT_TEXT = 64,
};

/* A damaged segment of a spool. */
struct nt_bus_damage {
	char segment[NT_BUS_SEGMENT_TEXT]; /* "neutracer.window.v1/0/00000000000000000000.seg" */
	uint64_t places; /* where records were skipped; all count as corrupt_frames */
	uint64_t bytes; /* skipped there */
	/*
	 * Behind the last whole record of a newest segment: torn, or still being written.
	 * Meaningful only once the reader has reached the end.
	 */
	uint64_t tail_bytes;
};

/*
 * The damaged segments found by this reader: the first few of each partition, at most `most`.
 * Returns their number. None on Kafka.
 */
size_t nt_bus_reader_damage(const struct nt_bus_reader *reader, struct nt_bus_damage *ret_damage,
			    size_t most);

/*
 * Stops reading these topics (bits, as above) until they are resumed; for readers that cannot keep
 * up with one of them. nt_bus_reader_next() must still be called regularly.
 */
NT_MUST_CHECK int nt_bus_reader_pause(struct nt_bus_reader *reader, uint32_t topics);
NT_MUST_CHECK int nt_bus_reader_resume(struct nt_bus_reader *reader, uint32_t topics);

/* The lag of a reader. */
struct nt_bus_lag {
	uint64_t records; /* in the requested topics, not yet returned */
	/* since the event time of the last record returned; 0 without a backlog */
	uint64_t ns;
	uint32_t partitions; /* being read, with a known end */
};

/* -EOPNOTSUPP if not supported. `now_real_ns` is the reference time of ns. */
NT_MUST_CHECK int nt_bus_reader_lag(struct nt_bus_reader *reader, uint32_t topics,
				    uint64_t now_real_ns, struct nt_bus_lag *ret_lag);

/* ---- groups: several readers share the partitions of topics ---------------------------------- */

#define NT_BUS_EVERY_PARTITION UINT32_MAX
#define NT_BUS_OLDEST          UINT64_MAX

/*
 * All members of a group have the same name and the same grouped topics. Each partition of those is
 * read by one member at a time; the other topics are read whole by every member. On a spool every
 * member owns everything: its one assignment is NT_BUS_EVERY_PARTITION of each grouped topic.
 *
 * Both callbacks run on the calling thread, within nt_bus_reader_next() and nt_bus_reader_close(),
 * once for each partition, before its first and after its last record.
 */
struct nt_bus_group {
	const char *name; /* "neutracer-aggregator" */
	const char *member; /* stable over restarts and unique; NULL: a new one each time */
	uint32_t grouped; /* bits of topics */
	uint64_t session_ns; /* after which an unresponsive member loses its partitions; 0: 10 s */
	/*
	 * The offset is the one committed by the group, or NT_BUS_OLDEST; the callback replaces it
	 * by the one in its store. If neither exists, an earlier nt_bus_reader_seek_time() decides.
	 */
	void (*assigned)(void *data, struct nt_bus_position *position);
	/* is_lost: another member may already read it, so nothing may be written for it. */
	void (*revoked)(void *data, const struct nt_bus_position *position, bool is_lost);
	void *data;
};

NT_MUST_CHECK int nt_bus_reader_join(const char *url, uint32_t topics,
				     const struct nt_bus_options *options,
				     const struct nt_bus_group *group,
				     struct nt_bus_reader **ret_reader);
/*
 * Commits this position on the brokers, for tools that show lag; the member's store is
 * authoritative. Does not block. No effect on a spool and for topics that are not grouped.
 */
NT_MUST_CHECK int nt_bus_reader_commit(struct nt_bus_reader *reader,
				       const struct nt_bus_position *positions, size_t count);

#endif
