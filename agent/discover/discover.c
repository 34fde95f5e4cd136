/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records only trigger inspections; what is reported was read from /proc. The order of records from
 * several CPUs therefore does not matter. Workers (agent/discover/inspector.h) do the inspections,
 * since whatever a process controls may block for ever. This file reads only files of /proc that
 * never block.
 *
 * A record or a scan requests the inspection of a process, a mapping or a program, which finds
 * files. The symbols of a new file are requested next. With these the file is reported for all the
 * processes that wait for it.
 */
#include "agent/discover/discover_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "agent/host/proc.h"
#include "common/system/clock.h"

enum {
	RECHECK_NS = 1000000000,
	WAIT_NS = 5000000, /* for inspections, while workers are fast */
};

/* ---- files -------------------------------------------------------------------------------- */

static void on_found(void *data, const struct nt_inspector_task *task, int result,
		     const struct nt_inspection_file *file, const char *name, int fd)
{
	struct nt_discover *d = data;

	if (result == 0) {
		nt_discover_take_file(d, task, file, name, fd);
	} else if (result == -EBADF) {
		d->stats.refused[NT_REFUSED_NOT_REGULAR]++;
		if (d->options.handler.refused)
			d->options.handler.refused(d->options.handler.data, task->request.pid, NULL,
						   NT_REFUSED_NOT_REGULAR);
	} else {
		d->stats.unreadable++;
	}
}

static void on_symbols(void *data, const struct nt_inspector_task *task,
		       struct nt_inspector_outcome *outcome)
{
	struct nt_discover *d = data;
	const struct nt_catalog_key key = {
		.dev = task->request.dev,
		.ino = task->request.ino,
		.bytes = task->request.size,
		.changed_ns = task->request.address,
		.library = task->request.library,
	};

	nt_discover_take_symbols(d, nt_catalog_find(&d->catalog, &key, nt_clock_boot_ns()),
				 task->request.pid, outcome);
}

static void on_no_file(void *data, const struct nt_inspector_task *task, int result,
		       const struct nt_inspection_file *file, const char *name, int fd)
{
	(void)data, (void)task, (void)result, (void)file, (void)name, (void)fd;
}

/* ---- records ------------------------------------------------------------------------------ */

/* True if any of its first `files` was seen after boot_ns. */
static bool was_seen_since(const struct nt_mapping_process *p, size_t files, uint64_t boot_ns)
{
	for (size_t i = 0; i < files && i < p->files; i++)
		if (p->file[i].seen_ns > boot_ns)
			return true;
	return false;
}

/*
 * A process runs another program: it is reported ended and new, unless the program maps the same
 * files. It may have called them already, and that must not be discarded.
 */
static void see_exec(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	const struct nt_mapping_process *p = nt_process_table_find(&d->table, pid);
	struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_PROCESS, .pid = pid},
		.is_exec = true,
		.exec_ns = boot_ns,
	};

	if (!p) {
		nt_discover_see_program(d, pid);
		return;
	}
	task.start_ns = p->start_ns;
	task.known = (uint32_t)p->files;
	nt_discover_submit(d, &task, NULL);
}

static void on_done(void *data, const struct nt_inspector_task *task,
		    struct nt_inspector_outcome *outcome)
{
	struct nt_discover *d = data;
	struct nt_mapping_process *p;

	if (task->request.wants_symbols)
		nt_discover_take_symbols(d,
					 nt_catalog_find_number(&d->catalog, task->request.number),
					 task->request.pid, outcome);
	else if (outcome->result == -EACCES)
		d->stats.unreadable++;
	if (!task->is_exec)
		return;
	p = nt_process_table_find(&d->table, task->request.pid);
	if (!p || p->start_ns != task->start_ns || was_seen_since(p, task->known, task->exec_ns))
		return;
	nt_discover_end_process(d, p, task->exec_ns);
	nt_discover_see_process(d, task->request.pid);
}

/* A child inherits mappings without records. */
static void see_fork(struct nt_discover *d, uint32_t pid, uint32_t parent)
{
	if (nt_process_table_find(&d->table, parent) ||
	    nt_outside_processes_has(&d->outside, parent))
		nt_discover_see_process(d, pid);
}

static void see_exit(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	struct nt_mapping_process *p = nt_process_table_find(&d->table, pid);

	if (p && nt_proc_has_ended(pid))
		nt_discover_end_process(d, p, boot_ns);
	if (nt_outside_processes_has(&d->outside, pid) && nt_proc_has_ended(pid))
		nt_outside_processes_remove(&d->outside, pid);
}

static void take_record(void *data, struct nt_map_record *record)
{
	struct nt_discover *d = data;

	switch (record->kind) {
	case NT_MAP_MAPPED:
		(void)nt_proc_cut_deleted(record->path);
		if (record->path[0] == '/')
			nt_discover_see_mapping(d, record);
		break;
	case NT_MAP_EXEC:
		see_exec(d, record->pid, record->boot_ns);
		break;
	case NT_MAP_FORKED:
		see_fork(d, record->pid, record->parent);
		break;
	case NT_MAP_EXITED:
		see_exit(d, record->pid, record->boot_ns);
		break;
	}
}

/* ---- the whole host ----------------------------------------------------------------------- */

static int owner_of(void *data, uint32_t pid, struct nt_owner *ret_owner)
{
	const struct nt_discover *d = data;
	const struct nt_mapping_process *p = nt_process_table_find(&d->table, pid);
	uint64_t start_ns;

	if (!p || nt_proc_start_ns(pid, &start_ns) < 0 || start_ns != p->start_ns)
		return nt_owner_read(pid, ret_owner);
	*ret_owner = p->owner;
	return 0;
}

static void on_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	const struct nt_discover *d = data;

	if (d->options.handler.stalled)
		d->options.handler.stalled(d->options.handler.data, pid, owner, held);
}

static int watch(const struct nt_discover *d, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int nt_discover_new(const struct nt_discover_options *options, struct nt_discover **ret_discover)
{
	nt_auto(nt_discover) struct nt_discover *d = calloc(1, sizeof(*d));
	const struct nt_inspector_hooks hooks = {
		.owner = owner_of, .stalled = on_stalled, .data = d};
	int r;

	if (!d)
		return -ENOMEM;
	nt_process_table_init(&d->table);
	nt_catalog_init(&d->catalog);
	d->options = *options;
	d->client = (struct nt_inspector_client){.found = on_found, .done = on_done, .data = d};
	d->symbols_client =
		(struct nt_inspector_client){.found = on_no_file, .done = on_symbols, .data = d};
	d->rescan = true;
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0)
		return -errno;
	if (options->cgroup) {
		r = nt_cgroup_filter_new(options->cgroup, &d->cgroup_filter);
		if (r < 0)
			return r;
	}
	r = nt_inspector_new(options->workers, options->quarantine, &hooks, &d->inspector);
	if (r < 0)
		return r;
	/* Before the scan, so that no event falls between the two. */
	r = nt_mapwatch_new(&d->watch);
	if (r < 0)
		return r;
	r = watch(d, nt_inspector_fd(d->inspector));
	if (r == 0)
		r = watch(d, nt_mapwatch_fd(d->watch));
	if (r < 0)
		return r;
	*ret_discover = nt_take(d);
	return 0;
}

void nt_discover_free(struct nt_discover *discover)
{
	if (!discover)
		return;
	if (discover->scan)
		(void)closedir(discover->scan);
	nt_inspector_free(discover->inspector);
	nt_process_table_release(&discover->table);
	nt_outside_processes_release(&discover->outside);
	nt_catalog_release(&discover->catalog);
	nt_mapwatch_free(discover->watch);
	nt_cgroup_filter_free(discover->cgroup_filter);
	nt_closep(&discover->epoll);
	free(discover);
}

struct nt_inspector *nt_discover_inspector(struct nt_discover *discover)
{
	return discover->inspector;
}

int nt_discover_fd(const struct nt_discover *discover)
{
	return discover->epoll;
}

int nt_discover_run(struct nt_discover *discover)
{
	uint64_t now_ns = nt_clock_boot_ns();
	int64_t lost;
	int r;

	discover->has_unread = false; /* cleared on failure, too: the next tick tries again */
	lost = nt_mapwatch_read(discover->watch, take_record, discover, &discover->has_unread);
	if (lost < 0)
		return (int)lost;
	discover->stats.lost_records += (uint64_t)lost;
	discover->rescan |= lost > 0;
	if (!discover->scan && nt_discover_may_scan(discover, now_ns) &&
	    (discover->rescan || nt_discover_should_readmit(discover, now_ns))) {
		r = nt_discover_begin_scan(discover, now_ns);
		if (r < 0)
			return r;
	}
	if (discover->scan)
		nt_discover_scan(discover, now_ns);
	if (now_ns - discover->rechecked_ns >= RECHECK_NS) {
		discover->rechecked_ns = now_ns;
		nt_discover_recheck(discover);
	}
	/*
	 * Workers mostly answer in a fraction of a millisecond. A short wait saves a turn of the
	 * loop for each step; it ends if a worker is slow.
	 */
	nt_inspector_wait(discover->inspector, WAIT_NS);
	return 0;
}

bool nt_discover_is_complete(const struct nt_discover *discover)
{
	return !discover->rescan && !discover->has_unread &&
	       !(discover->scan && discover->scan_makes_up);
}

bool nt_discover_is_behind(const struct nt_discover *discover)
{
	return discover->has_unread || (discover->scan && nt_discover_has_idle_workers(discover));
}

bool nt_discover_awaits(const struct nt_discover *discover, uint32_t pid)
{
	return nt_inspector_has(discover->inspector, pid) ||
	       nt_catalog_is_awaited(&discover->catalog, pid);
}

bool nt_discover_is_idle(const struct nt_discover *discover)
{
	return !discover->rescan && !discover->has_unread && !discover->scan &&
	       !nt_inspector_oldest_ns(discover->inspector);
}

void nt_discover_called(struct nt_discover *discover, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_mapping_process *p = nt_process_table_find(&discover->table, pid);

	if (p && p->start_ns == start_boot_ns)
		nt_share_call(&p->place);
}

const struct nt_share *nt_discover_share(const struct nt_discover *discover)
{
	return &discover->table.share;
}

void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats)
{
	*ret_stats = discover->stats;
	ret_stats->processes = nt_process_table_count(&discover->table);
	ret_stats->over_cap += discover->catalog.over_cap;
	nt_inspector_stats(discover->inspector, &ret_stats->inspector);
}
