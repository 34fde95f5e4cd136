/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inspection requests of discovery: for a process, its program, or one mapping. */
#include "agent/discover/discover_impl.h"

#include <string.h>

#include "agent/probes/probe.h"

void nt_discover_submit(struct nt_discover *d, const struct nt_inspector_task *task,
			const char *path)
{
	struct nt_inspector_task added = *task;

	added.client = &d->client;
	added.is_late = d->scanning_first;
	if (nt_inspector_submit(d->inspector, &added, path, -1) < 0) {
		d->stats.over_cap++;
		d->lost++;
	}
}

static void submit_kind(struct nt_discover *d, uint32_t pid, enum nt_inspection_kind kind)
{
	const struct nt_inspector_task task = {.request = {.kind = kind, .pid = pid}};

	nt_discover_submit(d, &task, NULL);
}

/* Of a process outside only its cgroup is read; it may be moved inside. */
static bool is_inside(struct nt_discover *d, uint32_t pid)
{
	if (!d->cgroup_filter || nt_cgroup_filter_holds(d->cgroup_filter, pid)) {
		if (d->cgroup_filter)
			nt_outside_processes_remove(&d->outside, pid);
		return true;
	}
	if (!nt_outside_processes_add(&d->outside, pid))
		d->stats.over_cap++;
	return false;
}

void nt_discover_see_mapping(struct nt_discover *d, const struct nt_map_record *record)
{
	const char *slash = strrchr(record->path, '/');
	struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_MAPPING,
			    .pid = record->pid,
			    .address = record->start,
			    .size = record->end - record->start,
			    .ino = record->ino,
			    .takes_fuse = d->options.attach_fuse},
		.seen_ns = record->boot_ns,
	};

	if (!slash || nt_probe_library_of(slash + 1) == NT_LIBRARY_UNKNOWN ||
	    !is_inside(d, record->pid))
		return;
	task.request.wants_symbols = !nt_catalog_has_inode(&d->catalog, record->ino);
	nt_discover_submit(d, &task, record->path);
}

void nt_discover_see_program(struct nt_discover *d, uint32_t pid)
{
	if (is_inside(d, pid))
		submit_kind(d, pid, NT_INSPECT_PROGRAM);
}

void nt_discover_see_process(struct nt_discover *d, uint32_t pid)
{
	if (is_inside(d, pid))
		submit_kind(d, pid, NT_INSPECT_PROCESS);
}

void nt_discover_recall(struct nt_discover *discover, uint32_t pid)
{
	const struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_PROCESS, .pid = pid},
		.is_called = true,
	};

	if (is_inside(discover, pid))
		nt_discover_submit(discover, &task, NULL);
}
