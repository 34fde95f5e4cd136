/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a disk queue keeps on disk: records in segments of the spool's format, a row of them per topic,
 * under one cap. What is over the cap goes by class, the least important first, and within a class by
 * age; every loss is counted under its class.
 *
 * Records are taken out in the order in which they matter and, within a class, in the order in
 * which they came. A segment goes once all that it held has arrived: a process that is killed leaves
 * what it had not got rid of, and a little that will come twice.
 */
#ifndef NT_COMMON_BUS_DISK_QUEUE_STORE_H
#define NT_COMMON_BUS_DISK_QUEUE_STORE_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"

/* The most important first. */
enum nt_disk_queue_class {
	NT_DISK_QUEUE_VERDICT, /* what verdicts are made of: windows and node vectors */
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
 * Of one class, monotonic since open but for `left`. At any time
 * found + stored = drained + evicted + expired + corrupt + left.
 */
struct nt_disk_queue_counters {
	uint64_t found; /* when it was opened */
	uint64_t stored; /* written */
	uint64_t drained; /* taken out */
	uint64_t evicted, expired; /* over the cap, over the age */
	uint64_t corrupt; /* could not be read */
	uint64_t dropped; /* never stored: no room, and nothing less important to go for it */
	uint64_t left; /* now */
};

struct nt_disk_queue_store;

enum nt_disk_queue_class nt_disk_queue_class(enum nt_topic topic);

/*
 * Opens DIR, which is made where it is missing. -EWOULDBLOCK where another process has it, or what
 * the file system says.
 */
NT_MUST_CHECK int nt_disk_queue_store_open(const char *dir,
					   const struct nt_disk_queue_limits *limits,
					   struct nt_disk_queue_store **ret_store);
/* Writes what waits. Accepts NULL. */
void nt_disk_queue_store_free(struct nt_disk_queue_store *store);
NT_DEFINE_AUTO(nt_disk_queue_store, nt_disk_queue_store_free)

/* Copies the record. -ENOSPC where there is no room, which is counted, as every failure. */
NT_MUST_CHECK int nt_disk_queue_store_add(struct nt_disk_queue_store *store,
					  const struct nt_bus_record *record);
/* From here on it outlives the process. */
NT_MUST_CHECK int nt_disk_queue_store_flush(struct nt_disk_queue_store *store);
/* Removes what is too old. Every second or so. */
void nt_disk_queue_store_expire(struct nt_disk_queue_store *store, uint64_t now_real_ns);

/*
 * The record that is to be taken out next: 1, and it stays valid until the next call of
 * nt_disk_queue_store_take(). 0: there is none.
 */
NT_MUST_CHECK int nt_disk_queue_store_peek(struct nt_disk_queue_store *store,
					   struct nt_bus_record *ret_record);
/* The record of the last peek has been handed on, under a number that only ever rises. */
void nt_disk_queue_store_take(struct nt_disk_queue_store *store, uint64_t number);
/* All that was handed on up to this number need not be kept any longer. */
void nt_disk_queue_store_settle(struct nt_disk_queue_store *store, uint64_t number);

void nt_disk_queue_store_counters(const struct nt_disk_queue_store *store,
				  enum nt_disk_queue_class class,
				  struct nt_disk_queue_counters *ret_counters);
uint64_t nt_disk_queue_store_bytes(const struct nt_disk_queue_store *store);
/* Torn tails that were cut off when it was opened. */
uint64_t nt_disk_queue_store_torn(const struct nt_disk_queue_store *store);

#endif
