/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Discovery from inside; for agent/discover*.c alone. */
#ifndef NT_AGENT_DISCOVER_IMPL_H
#define NT_AGENT_DISCOVER_IMPL_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/catalog.h"
#include "agent/discover.h"
#include "agent/inspector.h"
#include "agent/mapwatch.h"
#include "agent/outside.h"
#include "agent/roster.h"
#include "agent/subtree.h"

struct nt_discover {
	struct nt_discover_options options;
	struct nt_subtree *subtree;
	struct nt_mapwatch *watch;
	struct nt_inspector *inspector;
	struct nt_inspector_client client, symbols_client;
	struct nt_roster roster;
	struct nt_outside outside;
	struct nt_catalog catalog;
	int epoll;
	bool rescan; /* records were lost: a scan is to come */
	bool has_unread; /* records */
	DIR *scan; /* that goes on; NULL: none does */
	bool scan_makes_up; /* for records that were lost, or for all before the first */
	bool scanning_first; /* what is asked for is of the first scan */
	uint64_t lost; /* that a scan is to make up for, some time */
	uint64_t lost_before; /* as of the last scan */
	/* Boot time; scan_ns: how long the last one took. */
	uint64_t rechecked_ns, scan_begin_ns, scan_pass_ns, scan_end_ns, scan_ns;
	struct nt_discover_stats stats;
};

void nt_discover_end_process(struct nt_discover *d, struct nt_roster_process *p, uint64_t boot_ns);
void nt_discover_see_process(struct nt_discover *d, uint32_t pid);
int nt_discover_begin_scan(struct nt_discover *d, uint64_t now_ns);
bool nt_discover_has_idle_workers(const struct nt_discover *d);
/* One pass. A process that comes later than its number was passed by has records of its own. */
void nt_discover_scan(struct nt_discover *d, uint64_t now_ns);
/* Ends whose records were lost, and what can be looked at again. */
void nt_discover_recheck(struct nt_discover *d);
/*
 * Those that were left out may have room by now, or be gone, and what found no room in a queue may be
 * looked at by now: a scan finds out.
 */
bool nt_discover_should_readmit(const struct nt_discover *d, uint64_t now_ns);
/* All processes are looked at a tenth of the time, at the most. */
bool nt_discover_may_scan(const struct nt_discover *d, uint64_t now_ns);

#endif
