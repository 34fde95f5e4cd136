/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reading side of one partition: a position, and the transition between its segments. */
#ifndef NT_COMMON_BUS_SPOOL_CURSOR_H
#define NT_COMMON_BUS_SPOOL_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bus/spool/dir.h"
#include "common/bus/spool/scan.h"

enum {
	NT_SPOOL_MAX_DAMAGE = 8, /* damaged segments that a cursor remembers; all are counted */
};

/* Data skipped in a segment. */
struct nt_spool_damage {
	uint64_t base, places, bytes;
};

struct nt_spool_cursor {
	uint32_t partition;
	int dirfd; /* -1: the partition does not exist */
	bool is_found; /* for the owner: it existed when last checked */
	dev_t dev;
	ino_t ino; /* of the directory */

	/* The position: */
	uint64_t next; /* offset of the next record wanted */
	bool from_oldest; /* `next` is not known yet: start at the oldest */
	bool is_seeking; /* until the sought position is found, or known not to exist */
	uint64_t from_real_ns; /* earlier records are skipped, until one is not earlier; 0: none */
	uint64_t end; /* after the highest offset seen */

	/* The segment being read: */
	int fd; /* -1: none */
	uint64_t base;
	ino_t segment_ino;
	uint32_t log; /* 0: not known yet */
	struct nt_spool_scan scan;
	bool is_doubted; /* its end was reached, though newer segments exist */

	struct nt_spool_segments segments; /* as listed at `listed` */
	uint64_t listed;
	uint64_t idle; /* at end in this generation: not checked again */

	bool has_head;
	struct nt_spool_frame head; /* the next record, until nt_spool_cursor_pass() */

	uint64_t missed, damaged;
	struct nt_spool_damage damage[NT_SPOOL_MAX_DAMAGE]; /* in the order of discovery */
	size_t damages;
};

void nt_spool_cursor_init(struct nt_spool_cursor *cursor, uint32_t partition);
void nt_spool_cursor_release(struct nt_spool_cursor *cursor);

/* Sets the partition's directory and takes ownership of it. Another directory is another log. */
NT_MUST_CHECK int nt_spool_cursor_place(struct nt_spool_cursor *cursor, int dirfd);
/* The directory was removed. Releases everything in it; if it reappears, it is another log. */
void nt_spool_cursor_displace(struct nt_spool_cursor *cursor);

void nt_spool_cursor_seek(struct nt_spool_cursor *cursor, uint64_t offset);
void nt_spool_cursor_seek_time(struct nt_spool_cursor *cursor, uint64_t real_ns);
NT_MUST_CHECK int nt_spool_cursor_seek_end(struct nt_spool_cursor *cursor);

/*
 * 1 with a record at head, 0 if there is none yet. `generation` (from 1) changes when the directory
 * may have changed; within a generation a reached end is not checked again.
 */
NT_MUST_CHECK int nt_spool_cursor_peek(struct nt_spool_cursor *cursor, uint64_t generation);
/* Advances past the record at head. */
void nt_spool_cursor_pass(struct nt_spool_cursor *cursor);

/*
 * At the end of data: the bytes behind the last whole frame of the segment being read, which are
 * torn, or still being written.
 */
uint64_t nt_spool_cursor_tail(const struct nt_spool_cursor *cursor);

#endif
