/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One segment file as a row of frames. It reads with pread(): a file that is cut short while it is
 * read ends early, and no more.
 */
#ifndef NT_COMMON_BUS_SPOOL_SCAN_H
#define NT_COMMON_BUS_SPOOL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/bus/spool/frame.h"

struct nt_spool_scan {
	int fd; /* borrowed */
	bool header_is_read; /* or found damaged */
	bool is_sealed; /* the seal was met: behind it is nothing */
	struct nt_spool_seal seal;
	bool log_is_known;
	uint32_t log;
	struct nt_spool_header header; /* zeros, but base, where it is damaged */
	uint64_t pos; /* in the file, of the next frame; all before it has been dealt with */
	uint64_t least; /* after the highest offset seen: behind damage nothing lower counts */
	uint64_t damaged; /* places at which frames had to be skipped */
	uint64_t damaged_bytes; /* at all of them */
	struct nt_buf window;
	uint64_t window_pos;
	size_t window_bytes; /* that the next read asks for at least */
	uint64_t effort; /* bytes of this segment that were summed in vain */
};

/*
 * Starts at the head of another file. The log, once known, is kept: where the header of a segment
 * is damaged, those of its neighbours told it.
 */
void nt_spool_scan_start(struct nt_spool_scan *scan, int fd, uint64_t base);

/*
 * The next frame (1) or seal (2), which are valid until the next call; 0 where nothing whole is
 * left: what lies behind `pos` is then still being written, or torn. A later call looks again.
 */
NT_MUST_CHECK int nt_spool_scan_next(struct nt_spool_scan *scan, struct nt_spool_item *ret_item);

/* The header of a segment file. -EBADMSG where it has none that we know. */
NT_MUST_CHECK int nt_spool_read_header(int fd, struct nt_spool_header *ret_header);

/* The seal of a segment file, without reading the rest. -ENOENT where there is none to be sure of. */
NT_MUST_CHECK int nt_spool_read_seal(int fd, struct nt_spool_seal *ret_seal);

void nt_spool_scan_release(struct nt_spool_scan *scan);

#endif
