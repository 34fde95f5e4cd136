/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader's end of one partition: a place in it, and the way from segment to segment. */
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

/* What had to be skipped in a segment. */
struct nt_spool_damage {
	uint64_t base, places, bytes;
};

struct nt_spool_cursor {
	uint32_t partition;
	int dirfd; /* -1: the partition is not there */
	bool is_found; /* for the owner: it was there when last looked */
	dev_t dev;
	ino_t ino; /* of the directory */

	/* Where it is: */
	uint64_t next; /* offset of the next record wanted */
	bool from_oldest; /* `next` is not known yet: whatever is the oldest */
	bool is_seeking; /* until the place sought is found, or found not to be there */
	uint64_t from_real_ns; /* records before this are passed over until one is not; 0: none */
	uint64_t end; /* after the highest offset seen */

	/* The segment that is read: */
	int fd; /* -1: none */
	uint64_t base;
	ino_t segment_ino;
	uint32_t log; /* 0: not known yet */
	struct nt_spool_scan scan;
	bool is_doubted; /* nothing more was found in it, though there are newer ones */

	struct nt_spool_segments segments; /* as listed at `listed` */
	uint64_t listed;
	uint64_t idle; /* when nothing was found: not looked at again in the same generation */

	bool has_head;
	struct nt_spool_frame head; /* the next record, until nt_spool_cursor_pass() */

	uint64_t missed, damaged;
	struct nt_spool_damage damage[NT_SPOOL_MAX_DAMAGE]; /* in the order in which it was met */
	size_t damages;
};

void nt_spool_cursor_init(struct nt_spool_cursor *cursor, uint32_t partition);
void nt_spool_cursor_release(struct nt_spool_cursor *cursor);

/* Gives the cursor its directory, which it owns from now on. Another directory: another log. */
NT_MUST_CHECK int nt_spool_cursor_place(struct nt_spool_cursor *cursor, int dirfd);
/* The directory has been removed. Holds on to nothing in it; if it comes back, it is another. */
void nt_spool_cursor_displace(struct nt_spool_cursor *cursor);

void nt_spool_cursor_seek(struct nt_spool_cursor *cursor, uint64_t offset);
void nt_spool_cursor_seek_time(struct nt_spool_cursor *cursor, uint64_t real_ns);
NT_MUST_CHECK int nt_spool_cursor_seek_end(struct nt_spool_cursor *cursor);

/*
 * 1 with a record at head, 0 where there is none yet. `generation` (from 1) changes when anything
 * in the directory may have; until then what was found there is not looked at again.
 */
NT_MUST_CHECK int nt_spool_cursor_peek(struct nt_spool_cursor *cursor, uint64_t generation);
/* Past the record at head. */
void nt_spool_cursor_pass(struct nt_spool_cursor *cursor);

/*
 * Where nothing more is found: the bytes behind the last whole frame of the segment that is read,
 * which are torn, or still being written.
 */
uint64_t nt_spool_cursor_tail(const struct nt_spool_cursor *cursor);

#endif
