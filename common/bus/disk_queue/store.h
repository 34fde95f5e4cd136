/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The on-disk store of a disk queue: segments in the spool's format, one row of them per topic,
 * under one cap. Above the cap, segments are evicted by class, the least important first, and
 * within a class by age; every loss is counted under its class.
 *
 * Records are taken out in order of importance and, within a class, in order of arrival. A segment
 * is removed once all its records are settled. A killed process leaves the unsettled records, and
 * some that will be sent twice.
 */
#ifndef NT_COMMON_BUS_DISK_QUEUE_STORE_H
#define NT_COMMON_BUS_DISK_QUEUE_STORE_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"

/* The most important first. */
enum nt_disk_queue_class {
	NT_DISK_QUEUE_VERDICT, /* input of verdicts: windows and node vectors */
	NT_DISK_QUEUE_OTHER,
	NT_DISK_QUEUE_DETAIL, /* single calls */
	NT_DISK_QUEUE_CLASS_END,
};

enum {
	NT_DISK_QUEUE_MIN_BYTES = 256 << 10,
};

struct nt_disk_queue_limits {
	uint64_t max_bytes; /* of all topics; at least NT_DISK_QUEUE_MIN_BYTES */
	uint64_t max_age_ns; /* by the records' own time; 0: no limit */
};

/*
 * Of one class, monotonic since open except `left`. At any time found + stored = drained + evicted
 * + expired + corrupt + left.
 */
struct nt_disk_queue_counters {
	uint64_t found; /* present at open */
	uint64_t stored; /* written */
	uint64_t drained; /* taken out */
	uint64_t evicted, expired; /* over the cap, over the age */
	uint64_t corrupt; /* unreadable */
	uint64_t dropped; /* never stored: no room, and nothing less important to evict */
	uint64_t left; /* now */
};

struct nt_disk_queue_store;

enum nt_disk_queue_class nt_disk_queue_class(enum nt_topic topic);

/*
 * Opens DIR, and creates it if missing. -EWOULDBLOCK if another process holds it, or the file
 * system's error.
 */
NT_MUST_CHECK int nt_disk_queue_store_open(const char *dir,
					   const struct nt_disk_queue_limits *limits,
					   struct nt_disk_queue_store **ret_store);
/* Writes buffered records. Accepts NULL. */
void nt_disk_queue_store_free(struct nt_disk_queue_store *store);
NT_DEFINE_AUTO(nt_disk_queue_store, nt_disk_queue_store_free)

/* Copies the record. -ENOSPC without room. Every failure is counted. */
NT_MUST_CHECK int nt_disk_queue_store_add(struct nt_disk_queue_store *store,
					  const struct nt_bus_record *record);
/* Makes all records durable against the end of the process. */
NT_MUST_CHECK int nt_disk_queue_store_flush(struct nt_disk_queue_store *store);
/* Removes expired records. Call about once a second. */
void nt_disk_queue_store_expire(struct nt_disk_queue_store *store, uint64_t now_real_ns);

/*
 * Returns 1 with the next record to take out, valid until the next call of
 * nt_disk_queue_store_take(); 0 if there is none.
 */
NT_MUST_CHECK int nt_disk_queue_store_peek(struct nt_disk_queue_store *store,
					   struct nt_bus_record *ret_record);
/* Marks the peeked record as passed on, under a strictly increasing number. */
void nt_disk_queue_store_take(struct nt_disk_queue_store *store, uint64_t number);
/* Marks all records up to this number as settled: they need not be kept. */
void nt_disk_queue_store_settle(struct nt_disk_queue_store *store, uint64_t number);

void nt_disk_queue_store_counters(const struct nt_disk_queue_store *store,
				  enum nt_disk_queue_class class,
				  struct nt_disk_queue_counters *ret_counters);
uint64_t nt_disk_queue_store_bytes(const struct nt_disk_queue_store *store);
/* Torn tails truncated at open. */
uint64_t nt_disk_queue_store_torn(const struct nt_disk_queue_store *store);

#endif
