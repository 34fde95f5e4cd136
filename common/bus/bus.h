/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus: the one way in which data travels between the programs. An implementation keeps, per
 * topic, an ordered log of records per partition. A record is (topic, key, time, bytes); the bytes
 * are one encoded envelope (proto/wire.h). The bus keeps no positions of readers: a reader says
 * where to start and is told the position of what it gets, and its owner stores that.
 *
 * A writer may be used by one thread at a time, and so may a reader; each has its own state.
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

/* How a bus is, and why a message did not arrive. A spool is well, or says so in its results. */
enum nt_bus_cause {
	NT_BUS_WELL,
	NT_BUS_CONNECTING, /* nothing has worked yet, and nothing has failed */
	NT_BUS_UNREACHABLE, /* no broker answers, or no such host */
	NT_BUS_REFUSED, /* wrong user or password */
	NT_BUS_CERTIFICATE, /* expired, not trusted, of another host */
	NT_BUS_DENIED, /* known, but not allowed to do this */
	NT_BUS_NO_TOPIC,
	NT_BUS_TOO_LARGE, /* for the broker or the topic */
	NT_BUS_TIMED_OUT, /* not acknowledged in time */
	NT_BUS_FENCED, /* another member has the same name */
	NT_BUS_FAILED, /* anything else: the text says what */
	NT_BUS_CAUSE_END,
};

/* One word for a label: "unreachable". "" for what is none. */
const char *nt_bus_cause_name(enum nt_bus_cause cause);

enum {
	NT_BUS_TEXT = 320, /* holds a line about a bus */
};

struct nt_bus_health {
	enum nt_bus_cause cause;
	uint64_t since_mono_ns; /* when the cause became this one */
	char text[NT_BUS_TEXT]; /* one line without secrets, "" where all is well */
};

/* Every loss has a name. Monotonic since open, but for the two that say "now". */
struct nt_bus_stats {
	uint64_t published, published_bytes; /* taken by nt_bus_publish() */
	uint64_t dropped_full; /* the disk or the queue had no room */
	uint64_t dropped_too_large;
	uint64_t evicted_records; /* removed by the size or age cap, as far as this writer did it */
	uint64_t recovered_torn; /* torn tails cut off at open */
	uint64_t corrupt_frames; /* readers: skipped */
	/* Kafka only: */
	uint64_t delivered; /* acknowledged by the brokers */
	uint64_t undelivered[NT_BUS_CAUSE_END]; /* given up or given back, by the reason */
	uint64_t errors[NT_BUS_CAUSE_END]; /* what went wrong, whether or not it cost a message */
	/* the client was made anew: new secrets, a fatal error, or it was stuck */
	uint64_t reconnected;
	uint64_t queued_now, queued_bytes_now; /* published and not yet acknowledged */
	uint64_t left_behind_now; /* earlier clients of this process that do not end */
};

enum nt_bus_mechanism {
	NT_BUS_SCRAM_SHA_512,
	NT_BUS_SCRAM_SHA_256,
	NT_BUS_PLAIN, /* refused without TLS */
};

/*
 * How to be let in. All are paths but the user; NULL: none. TLS is spoken where there is a CA file,
 * a password given where there is a user. Files are read again when they change.
 */
struct nt_bus_security {
	const char *ca_file;
	const char *cert_file, *key_file;
	const char *user;
	const char *password_file;
	uint32_t mechanism; /* enum nt_bus_mechanism */
};

/* What nt_bus_open() and its kin could not do, where the errno alone would not tell. */
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
	const char *client; /* our name in the brokers' logs and quotas; NULL: "neutracer" */
	uint64_t queue_bytes; /* of what is not yet acknowledged; 0: 16 MiB */
	uint32_t queue_records; /* 0: 50,000 */
	uint64_t linger_ns; /* how long a record may wait for company; 0: 100 ms */
	bool is_small; /* it writes little at a time: worth compressing harder */
	uint64_t give_up_ns; /* after which an unacknowledged record counts as failed; 0: 30 s */
	uint64_t flush_ns; /* how long nt_bus_flush() may wait; 0: 5 s */
	uint64_t close_ns; /* how long nt_bus_close() may wait; 0: 5 s */
	uint64_t idle_ns; /* reader: how long a broker may hold an empty answer back; 0: 100 ms */
	uint64_t stall_ns; /* reader: without progress for so long it makes a new client; 0: 10 s */
	/*
	 * A record that could not be delivered, given back so that it is not lost. Called only from
	 * within nt_bus_publish(), nt_bus_flush() and nt_bus_close(), on the thread that called
	 * those, oldest first; the record is valid during the call, and no function of this writer may
	 * be called from it. Until then it takes room in the queue. NULL: it is dropped. It may have
	 * been delivered after all: whoever reads tells by sequence numbers.
	 */
	void (*undelivered)(void *data, const struct nt_bus_record *record,
			    enum nt_bus_cause cause);
	void *data;
	/* Both: filled where opening fails; NULL: not wanted. */
	struct nt_bus_error *error;
};

/* Whether the url has one of the forms that nt_bus_open() takes. Looks at the text alone. */
bool nt_bus_url_is_sound(const char *url);

/*
 * Opens the bus of `url` for writing: "spool:DIR" or "kafka://HOST:PORT[,HOST:PORT…][/PREFIX]".
 * DIR is made if missing. PREFIX takes the place of "neutracer" in the names of topics; a Kafka
 * whose brokers are away is opened all the same, and nt_bus_health() says how it is. -EINVAL for an
 * unknown scheme or a broken url, or what the file system says. `options` may be NULL. Several live
 * writers may publish to one topic: on a spool each then writes a partition of its own, on Kafka
 * the key decides.
 */
NT_MUST_CHECK int nt_bus_open(const char *url, const struct nt_bus_options *options,
			      struct nt_bus **ret_bus);
/* Flushes. Accepts NULL. */
void nt_bus_close(struct nt_bus *bus);
NT_DEFINE_AUTO(nt_bus, nt_bus_close)

/*
 * Hands a record to the bus, which copies it. It is visible to readers at the latest after
 * nt_bus_flush(). -EMSGSIZE over the caps, -ENOSPC on a full disk, -EAGAIN with a full queue: all
 * are counted in the stats, and the writer stays usable. Never waits for a broker.
 */
NT_MUST_CHECK int nt_bus_publish(struct nt_bus *bus, const struct nt_bus_record *record);
/* -ETIMEDOUT where brokers have not acknowledged all in the time of the options: it stays queued. */
NT_MUST_CHECK int nt_bus_flush(struct nt_bus *bus);
void nt_bus_stats(const struct nt_bus *bus, struct nt_bus_stats *ret_stats);
/* How it is now. May be called by any thread. */
void nt_bus_health(const struct nt_bus *bus, struct nt_bus_health *ret_health);

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
/* The same with options, which may be NULL. */
NT_MUST_CHECK int nt_bus_reader_open_with(const char *url, uint32_t topics,
					  const struct nt_bus_options *options,
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
/* How it is now. May be called by any thread. */
void nt_bus_reader_health(const struct nt_bus_reader *reader, struct nt_bus_health *ret_health);

enum {
	NT_BUS_SEGMENT_TEXT = 64,
};

/* A segment of a spool that could not be read whole. */
struct nt_bus_damage {
	char segment[NT_BUS_SEGMENT_TEXT]; /* "neutracer.window.v1/0/00000000000000000000.seg" */
	uint64_t places; /* at which records were skipped; all count as corrupt_frames */
	uint64_t bytes; /* at those */
	/*
	 * Behind the last whole record of a newest segment: torn, or still being written. Says
	 * something only where there was nothing more to read.
	 */
	uint64_t tail_bytes;
};

/*
 * The damaged segments that this reader has met, of each partition the first few: at most `most`.
 * Returns how many. None on Kafka.
 */
size_t nt_bus_reader_damage(const struct nt_bus_reader *reader, struct nt_bus_damage *ret_damage,
			    size_t most);

/*
 * Reads no more of these topics (bits, as above) until they are resumed: what a reader does that
 * cannot keep up with one of them. nt_bus_reader_next() must still be called from time to time.
 */
NT_MUST_CHECK int nt_bus_reader_pause(struct nt_bus_reader *reader, uint32_t topics);
NT_MUST_CHECK int nt_bus_reader_resume(struct nt_bus_reader *reader, uint32_t topics);

/* How far a reader is behind. */
struct nt_bus_lag {
	uint64_t records; /* in the topics asked for, and not yet returned */
	/* since the event time of the last record returned, where there are more; or 0 */
	uint64_t ns;
	uint32_t partitions; /* that are read, and whose end is known */
};

/* -EOPNOTSUPP where the implementation cannot tell. `now_real_ns` is what ns counts up to. */
NT_MUST_CHECK int nt_bus_reader_lag(struct nt_bus_reader *reader, uint32_t topics,
				    uint64_t now_real_ns, struct nt_bus_lag *ret_lag);

/* ---- groups: several readers share topics out among themselves ------------------------------- */

#define NT_BUS_EVERY_PARTITION UINT32_MAX
#define NT_BUS_OLDEST          UINT64_MAX

/*
 * All members of a group have the same name and the same grouped topics. Each partition of those is
 * then read by one member at a time; the other topics are read whole by every member. On a spool
 * every member owns everything: its one assignment is NT_BUS_EVERY_PARTITION of each grouped topic.
 *
 * Both functions are called on the thread, and from within, nt_bus_reader_next() and
 * nt_bus_reader_close(), once for each partition, before its first and after its last record.
 */
struct nt_bus_group {
	const char *name; /* "neutracer-aggregator" */
	const char *member; /* stays over restarts and is nobody else's; NULL: another each time */
	uint32_t grouped; /* bits of topics */
	uint64_t session_ns; /* after which a silent member has lost its share; 0: 10 s */
	/*
	 * The offset comes as what the group has committed, or NT_BUS_OLDEST; the owner of the positions
	 * puts the one from its store there. nt_bus_reader_seek_time() before decides where neither
	 * has any.
	 */
	void (*assigned)(void *data, struct nt_bus_position *position);
	/* is_lost: another member may be reading it already, so nothing may be written for it. */
	void (*revoked)(void *data, const struct nt_bus_position *position, bool is_lost);
	void *data;
};

NT_MUST_CHECK int nt_bus_reader_join(const char *url, uint32_t topics,
				     const struct nt_bus_options *options,
				     const struct nt_bus_group *group,
				     struct nt_bus_reader **ret_reader);
/*
 * Tells the brokers where this member is, for tools that show lag: what counts are the positions in
 * the member's store. Does not wait. Nothing to do for a spool and for topics that are not grouped.
 */
NT_MUST_CHECK int nt_bus_reader_commit(struct nt_bus_reader *reader,
				       const struct nt_bus_position *positions, size_t count);

#endif
