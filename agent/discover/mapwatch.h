/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel's own records of executable mappings, execs, forks and exits of all processes: one
 * perf ring per CPU.
 */
#ifndef NT_AGENT_DISCOVER_MAPWATCH_H
#define NT_AGENT_DISCOVER_MAPWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/discover/map_record.h"
#include "common/base/cleanup.h"

struct nt_mapwatch;

/* -EACCES or -EPERM without the capability. */
NT_MUST_CHECK int nt_mapwatch_new(struct nt_mapwatch **ret_watch);
void nt_mapwatch_free(struct nt_mapwatch *watch);
NT_DEFINE_AUTO(nt_mapwatch, nt_mapwatch_free)

/* Readable when it is time to look. */
int nt_mapwatch_fd(const struct nt_mapwatch *watch);

/*
 * Calls fn for each new record, oldest first, as far as they are there: one that another CPU writes
 * meanwhile comes with the next call, though it may be older. Returns the number of
 * records that the kernel had to drop (then the whole of /proc has to be looked at again), or a
 * negative errno. *ret_more: one call takes no more, and some are left, for which the descriptor need
 * not be readable.
 */
NT_MUST_CHECK int64_t nt_mapwatch_read(struct nt_mapwatch *watch, nt_map_fn fn, void *data,
				       bool *ret_more);

#endif
