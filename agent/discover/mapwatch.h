/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The map watch: perf records of executable mappings, execs, forks and exits of all processes, with
 * one ring per CPU.
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

/* Readable when nt_mapwatch_read() is due. */
int nt_mapwatch_fd(const struct nt_mapwatch *watch);

/*
 * Calls fn for each new record, oldest first. A record that another CPU writes meanwhile is
 * delivered by the next call, even if it is older. Returns the number of records that the kernel
 * dropped, after which all of /proc has to be scanned again, or a negative errno. *ret_more: the
 * limit of one call was reached; the descriptor need not be readable for the rest.
 */
NT_MUST_CHECK int64_t nt_mapwatch_read(struct nt_mapwatch *watch, nt_map_fn fn, void *data,
				       bool *ret_more);

#endif
