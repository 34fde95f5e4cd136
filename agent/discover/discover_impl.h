/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of discovery; for agent/discover/discover*.c alone. */
#ifndef NT_AGENT_DISCOVER_DISCOVER_IMPL_H
#define NT_AGENT_DISCOVER_DISCOVER_IMPL_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/discover/catalog.h"
#include "agent/discover/discover.h"
#include "agent/discover/inspector.h"
#include "agent/discover/mapwatch.h"
#include "agent/discover/outside_process.h"
#include "agent/discover/process_table.h"
#include "agent/host/cgroup_filter.h"

struct nt_discover {
	struct nt_discover_options options;
	struct nt_cgroup_filter *cgroup_filter;
	struct nt_mapwatch *watch;
	struct nt_inspector *inspector;
	struct nt_inspector_client client, symbols_client;
	struct nt_process_table table;
	struct nt_outside_processes outside;
	struct nt_catalog catalog;
	int epoll;
	bool rescan; /* records were lost: a scan is due */
	bool has_unread; /* unread records in the rings */
	DIR *scan; /* the current scan; NULL: none */
	bool scan_makes_up; /* for lost records, or it is the first scan */
	bool scanning_first; /* inspections requested now belong to the first scan */
	uint64_t lost; /* losses that a later scan makes up for */
	uint64_t lost_before; /* at the last scan */
	/* Boot time; scan_ns: duration of the last scan. */
	uint64_t rechecked_ns, scan_begin_ns, scan_pass_ns, scan_end_ns, scan_ns;
	struct nt_discover_stats stats;
};

/*
 * agent/discover/discover_file.c: removes a process that has ended or runs another program, and
 * reports its end.
 */
void nt_discover_end_process(struct nt_discover *d, struct nt_mapping_process *p, uint64_t boot_ns);
/* Handles a file that a worker found for the task. */
void nt_discover_take_file(struct nt_discover *d, const struct nt_inspector_task *task,
			   const struct nt_inspection_file *found, const char *name, int fd);
/* Handles the symbols of a file for all processes that wait for it. file: may be NULL. */
void nt_discover_take_symbols(struct nt_discover *d, struct nt_catalog_file *file, uint32_t pid,
			      struct nt_inspector_outcome *outcome);

/*
 * agent/discover/discover_request.c: requests an inspection, unless the process is outside the
 * cgroup.
 */
void nt_discover_submit(struct nt_discover *d, const struct nt_inspector_task *task,
			const char *path);
void nt_discover_see_mapping(struct nt_discover *d, const struct nt_map_record *record);
void nt_discover_see_program(struct nt_discover *d, uint32_t pid);
void nt_discover_see_process(struct nt_discover *d, uint32_t pid);

/* agent/discover/discover_scan.c: scans all processes. */
int nt_discover_begin_scan(struct nt_discover *d, uint64_t now_ns);
bool nt_discover_has_idle_workers(const struct nt_discover *d);
/* One pass. Processes started behind the scan's position have records of their own. */
void nt_discover_scan(struct nt_discover *d, uint64_t now_ns);
/* Detects exits whose records were lost, and retries postponed processes. */
void nt_discover_recheck(struct nt_discover *d);
/*
 * True if a scan is due because processes were left out or queues were full: they may have room
 * now.
 */
bool nt_discover_should_readmit(const struct nt_discover *d, uint64_t now_ns);
/* True if a scan may begin: scans take at most a tenth of the time. */
bool nt_discover_may_scan(const struct nt_discover *d, uint64_t now_ns);

#endif
