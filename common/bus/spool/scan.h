/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A segment file as a sequence of frames. Reads use pread(): if the file is truncated meanwhile,
 * the sequence merely ends early.
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
	bool is_sealed; /* the seal was read: nothing follows */
	struct nt_spool_seal seal;
	bool log_is_known;
	uint32_t log;
	struct nt_spool_header header; /* zeros except base, if damaged */
	uint64_t pos; /* file position of the next frame; all before it is processed */
	uint64_t least; /* after the highest offset seen: lower ones behind damage are ignored */
	uint64_t damaged; /* places at which frames had to be skipped */
	uint64_t damaged_bytes; /* at all of them */
	struct nt_buf window;
	uint64_t window_pos;
	size_t window_bytes; /* minimum size of the next read */
	uint64_t effort; /* bytes of this segment whose CRC was computed in vain */
};

/*
 * Starts at the beginning of another file. A known log is kept: it replaces that of a damaged
 * header.
 */
void nt_spool_scan_start(struct nt_spool_scan *scan, int fd, uint64_t base);

/*
 * The next frame (1) or seal (2), valid until the next call. 0: no whole item is left; the bytes
 * behind `pos` are still being written, or torn. A later call checks again.
 */
NT_MUST_CHECK int nt_spool_scan_next(struct nt_spool_scan *scan, struct nt_spool_item *ret_item);

/* Reads the header of a segment file. -EBADMSG if it has no supported one. */
NT_MUST_CHECK int nt_spool_read_header(int fd, struct nt_spool_header *ret_header);

/* Reads the seal of a segment file without the rest. -ENOENT without a valid one. */
NT_MUST_CHECK int nt_spool_read_seal(int fd, struct nt_spool_seal *ret_seal);

void nt_spool_scan_release(struct nt_spool_scan *scan);

#endif
