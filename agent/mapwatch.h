/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel's own records of executable mappings, execs, forks and exits of all processes: one
 * perf ring per CPU.
 */
#ifndef NT_AGENT_MAPWATCH_H
#define NT_AGENT_MAPWATCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

enum nt_map_kind {
	NT_MAP_MAPPED,
	NT_MAP_EXEC,
	NT_MAP_FORKED, /* a new process: threads are not reported */
	NT_MAP_EXITED, /* a thread; of a process the last one ends it */
};

struct nt_map_record {
	enum nt_map_kind kind;
	uint32_t pid, tid;
	uint32_t parent; /* FORKED */
	uint64_t boot_ns;
	uint64_t start, end, ino; /* MAPPED */
	char *path; /* MAPPED: as the process sees it; may be cut */
};

struct nt_mapwatch;

/* -EACCES or -EPERM without the capability. */
NT_MUST_CHECK int nt_mapwatch_new(struct nt_mapwatch **ret_watch);
void nt_mapwatch_free(struct nt_mapwatch *watch);
NT_DEFINE_AUTO(nt_mapwatch, nt_mapwatch_free)

/* Readable when it is time to look. */
int nt_mapwatch_fd(const struct nt_mapwatch *watch);

/*
 * Calls fn for each new record: in order within a CPU, not among them. Returns the number of
 * records that the kernel had to drop (then the whole of /proc has to be looked at again), or a
 * negative errno.
 */
typedef void (*nt_map_fn)(void *data, struct nt_map_record *record);
NT_MUST_CHECK int64_t nt_mapwatch_read(struct nt_mapwatch *watch, nt_map_fn fn, void *data);

enum {
	NT_MAP_RECORD_BYTES = 65536,
	NT_MAP_LOST = 1, /* what nt_map_parse() says of a record of lost records */
};

/*
 * The part, for tests: one record of `size` bytes, its header included. 0: *ret_record is set, its
 * path points into bytes. NT_MAP_LOST: *ret_lost is. -EBADMSG: malformed; -ENOENT: of no interest.
 */
NT_MUST_CHECK int nt_map_parse(char *bytes, size_t size, struct nt_map_record *ret_record,
			       uint64_t *ret_lost);

#endif
