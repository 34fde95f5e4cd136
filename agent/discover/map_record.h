/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A perf record of a mapping, exec, fork or exit. */
#ifndef NT_AGENT_DISCOVER_MAP_RECORD_H
#define NT_AGENT_DISCOVER_MAP_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum nt_map_kind {
	NT_MAP_MAPPED,
	NT_MAP_EXEC,
	NT_MAP_FORKED, /* a new process: threads are not reported */
	NT_MAP_EXITED, /* a thread; the last thread's exit ends the process */
};

struct nt_map_record {
	enum nt_map_kind kind;
	uint32_t pid, tid;
	uint32_t parent; /* FORKED */
	uint64_t boot_ns;
	uint64_t start, end, ino; /* MAPPED */
	char *path; /* in the process's mount namespace; may be truncated */
};

typedef void (*nt_map_fn)(void *data, struct nt_map_record *record);

enum {
	NT_MAP_RECORD_BYTES = 65536,
	NT_MAP_TRAILER_BYTES = 16, /* of every record: pid, tid and time */
	NT_MAP_LOST = 1, /* result of nt_map_parse() for a record of lost records */
};

/*
 * Parses a record of `size` bytes, header included. 0: *ret_record is set, its path points into
 * bytes. NT_MAP_LOST: *ret_lost is set. -EBADMSG: malformed; -ENOENT: of no interest.
 */
NT_MUST_CHECK int nt_map_parse(char *bytes, size_t size, struct nt_map_record *ret_record,
			       uint64_t *ret_lost);

/* The time in a record's last NT_MAP_TRAILER_BYTES. */
uint64_t nt_map_time(const char *trailer);

#endif
