/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records only say where to look: what is reported was seen in /proc, so that records of several
 * CPUs may come in any order. Who looks is a worker (agent/inspector.h), for whatever a process
 * controls may take for ever: here only files of /proc are read that never block.
 *
 * A record or a scan asks for an inspection of a process, or of one mapping, or of a program; this
 * finds files; a file that is new is asked for its symbols; and with these the file is reported for all
 * the processes that wait for it.
 */
#include "agent/discover_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/probe.h"
#include "agent/proc.h"
#include "common/clock.h"
#include "common/num.h"

enum {
	PATH_BYTES = 64,
	RECHECK_NS = 1000000000,
	WAIT_NS = 5000000, /* for inspections, where workers are as quick as they should be */
};

/* ---- one process -------------------------------------------------------------------------- */

static bool was_reported(const struct nt_roster_process *p)
{
	bool reported = false;

	for (size_t i = 0; i < p->files; i++)
		reported |= p->file[i].reported;
	return reported;
}

void nt_discover_end_process(struct nt_discover *d, struct nt_roster_process *p, uint64_t boot_ns)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = was_reported(p);

	nt_roster_remove(&d->roster, p);
	if (reported)
		d->options.handler.exited(d->options.handler.data, pid, start_ns, boot_ns);
}

/* It makes room for another: what is known of it is given up, though it goes on. */
static void evict_process(struct nt_discover *d, struct nt_roster_process *p)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = was_reported(p);

	nt_roster_remove(&d->roster, p);
	d->stats.over_cap++;
	if (reported && d->options.handler.evicted)
		d->options.handler.evicted(d->options.handler.data, pid, start_ns);
}

/* The living process of this number; an entry of an earlier one is ended. NULL: none, or no room. */
static struct nt_roster_process *living_process(struct nt_discover *d,
						const struct nt_catalog_waiter *seen)
{
	struct nt_roster_process *p = nt_roster_find(&d->roster, seen->pid), *evicted;
	struct nt_owner owner = seen->owner;
	uint64_t start_ns;

	if (nt_proc_start_ns(seen->pid, &start_ns) < 0)
		return NULL;
	if (p && p->start_ns == start_ns)
		return p;
	if (p)
		nt_discover_end_process(d, p, nt_clock_boot_ns());
	if ((!owner.id || start_ns != seen->start_ns) && nt_owner_read(seen->pid, &owner) < 0)
		return NULL;
	p = nt_roster_add(&d->roster, seen->pid, start_ns, &owner, seen->is_called, &evicted);
	if (!p)
		d->stats.over_cap++;
	if (evicted)
		evict_process(d, evicted);
	return p;
}

static void report(struct nt_discover *d, struct nt_roster_process *p, struct nt_roster_file *m,
		   const struct nt_catalog_file *held)
{
	char path[PATH_BYTES];
	struct nt_mapped_file file = {
		.pid = p->pid,
		.start_boot_ns = p->start_ns,
		.dev = m->dev,
		.ino = m->ino,
		.path = path,
		.name = m->name,
		.library = m->library,
		.executable = m->executable,
		.late = m->late,
		.owner = &p->owner,
	};

	if (m->reported)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", held->fd);
	m->reported = true;
	d->stats.files++;
	d->options.handler.mapped(d->options.handler.data, &file);
	free(nt_take(m->name)); /* names can be long, and are needed once */
}

/* Notes a file of interest that the process has, and reports it, once. */
static void add_file(struct nt_discover *d, const struct nt_catalog_waiter *seen,
		     const struct nt_catalog_file *held)
{
	struct nt_roster_process *p = nt_roster_find(&d->roster, seen->pid);
	struct nt_roster_file *m, file = {
					  .dev = (dev_t)seen->file.dev,
					  .ino = (ino_t)seen->file.ino,
					  .start = seen->file.start,
					  .end = seen->file.end,
					  .seen_ns = seen->seen_ns,
					  .library = (enum nt_library)seen->file.library,
					  .executable = seen->file.executable,
					  .late = seen->is_late,
				  };

	for (size_t i = 0; p && i < p->files; i++) {
		m = &p->file[i];
		if (m->dev != file.dev || m->ino != file.ino)
			continue;
		/* It may be the mapping of another program by now, at another place. */
		if (file.seen_ns < m->seen_ns)
			return;
		m->seen_ns = file.seen_ns;
		m->start = file.start;
		m->end = file.end;
		report(d, p, m, held);
		return;
	}
	p = living_process(d, seen);
	if (!p || (seen->start_ns && p->start_ns != seen->start_ns))
		return;
	m = nt_roster_add_file(p, &file, seen->name);
	if (!m) {
		d->stats.over_cap++;
		return;
	}
	report(d, p, m, held);
}

/* ---- files -------------------------------------------------------------------------------- */

static void refuse(struct nt_discover *d, struct nt_catalog_file *file, enum nt_refusal why,
		   uint64_t retry_ns, const char *name, uint32_t pid)
{
	file->state = NT_CATALOG_REFUSED;
	file->retry_ns = retry_ns;
	d->stats.refused[why]++;
	if (d->options.handler.refused)
		d->options.handler.refused(d->options.handler.data, pid, name, why);
}

static void ask_symbols(struct nt_discover *d, const struct nt_inspector_task *task,
			struct nt_catalog_file *file, int fd)
{
	const struct nt_inspector_task ask = {
		.request = {.kind = NT_INSPECT_SYMBOLS,
			    .pid = task->request.pid,
			    .library = (uint32_t)file->key.library,
			    .dev = file->key.dev,
			    .ino = file->key.ino,
			    .address = file->key.changed_ns,
			    .size = file->key.bytes},
		.client = &d->symbols_client,
		.start_ns = task->start_ns,
	};

	if (nt_inspector_ask(d->inspector, &ask, NULL, fd) == 0)
		return;
	d->stats.over_cap++;
	d->lost++;
	nt_catalog_remove(&d->catalog, file);
}

static bool may_inspect(struct nt_discover *d, const struct nt_catalog_waiter *waiter,
			const struct nt_catalog_key *key, uint64_t now_ns)
{
	bool is_news;

	if (nt_catalog_may_inspect(&d->catalog, key, waiter->owner.id, now_ns, &is_news))
		return true;
	if (!is_news)
		return false;
	d->stats.refused[NT_REFUSED_CHANGES]++;
	if (d->options.handler.refused)
		d->options.handler.refused(d->options.handler.data, waiter->pid, waiter->name,
					   NT_REFUSED_CHANGES);
	return false;
}

static void take_file(struct nt_discover *d, const struct nt_inspector_task *task,
		      const struct nt_inspection_file *found, const char *name, int fd)
{
	struct nt_catalog_waiter waiter = {
		.pid = task->request.pid,
		/* A scan takes its time: a process that started meanwhile did not run before. */
		.is_late = task->is_late && task->start_ns < d->scan_begin_ns,
		.is_called = task->is_called,
		.start_ns = task->start_ns,
		.seen_ns = task->seen_ns ? task->seen_ns : task->asked_ns,
		.owner = task->owner,
		.file = *found,
		.name = (char *)(uintptr_t)name,
	};
	uint64_t now_ns = nt_clock_boot_ns();
	struct nt_catalog_file *file;
	const bool is_left_alone = found->is_fuse && !d->options.attach_fuse;
	struct nt_catalog_key key;
	bool is_new;

	nt_catalog_key(found, &key);
	file = nt_catalog_find(&d->catalog, &key, now_ns);
	is_new = !file;
	if (is_new && !is_left_alone && !may_inspect(d, &waiter, &key, now_ns)) {
		d->lost++;
		return;
	}
	if (is_new)
		file = nt_catalog_add(&d->catalog, &key, task->owner.id);
	if (!file) {
		d->lost++;
		return;
	}
	if (is_new && is_left_alone) {
		/* What a program holds is not known, and most hold nothing: no line for these. */
		refuse(d, file, NT_REFUSED_FUSE, 0, found->executable ? NULL : name, waiter.pid);
		return;
	}
	if (file->state == NT_CATALOG_HOLDS)
		add_file(d, &waiter, file);
	if (file->state != NT_CATALOG_PENDING)
		return;
	nt_catalog_wait(&d->catalog, file, &waiter);
	if (is_new && task->request.wants_symbols)
		file->number = task->request.number;
	else if (is_new)
		ask_symbols(d, task, file, fd);
}

static void on_found(void *data, const struct nt_inspector_task *task, int result,
		     const struct nt_inspection_file *file, const char *name, int fd)
{
	struct nt_discover *d = data;

	if (result == 0) {
		take_file(d, task, file, name, fd);
	} else if (result == -EBADF) {
		d->stats.refused[NT_REFUSED_NOT_REGULAR]++;
		if (d->options.handler.refused)
			d->options.handler.refused(d->options.handler.data, task->request.pid, NULL,
						   NT_REFUSED_NOT_REGULAR);
	} else {
		d->stats.unreadable++;
	}
}

static void settle(struct nt_discover *d, struct nt_catalog_file *file, int result,
		   struct nt_inspector_outcome *outcome, const char *name, uint32_t pid)
{
	nt_autofree struct nt_symbols *symbols = malloc(sizeof(*symbols));

	if (result == 0 && !symbols)
		result = -ENOMEM;
	if (result == 0)
		result = outcome->kind == NT_ANSWER_SYMBOLS && outcome->fd >= 0
				 ? nt_inspection_parse_symbols(outcome->body, outcome->len, symbols)
				 : -EBADMSG;
	if (result == 0 && symbols->holds) {
		nt_catalog_hold(&d->catalog, file, nt_take_fd(&outcome->fd), nt_take(symbols),
				nt_clock_boot_ns());
		return;
	}
	file->state = NT_CATALOG_NOTHING;
	if (result == -ETIMEDOUT)
		refuse(d, file, NT_REFUSED_DEADLINE, nt_clock_boot_ns() + NT_CATALOG_RETRY_NS, name,
		       pid);
	else if (result == -EIO || result == -ENOMEM || result == -EOVERFLOW)
		refuse(d, file, NT_REFUSED_BUDGET, 0, name, pid);
	else if (result < 0 && file->key.library != NT_LIBRARY_UNKNOWN)
		d->stats.unreadable++;
}

static void take_symbols(struct nt_discover *d, struct nt_catalog_file *file, uint32_t pid,
			 struct nt_inspector_outcome *outcome)
{
	struct nt_catalog_waiter *waiter, *next;

	if (!file || file->state != NT_CATALOG_PENDING)
		return;
	waiter = nt_catalog_take_waiters(&d->catalog, file);
	settle(d, file, outcome->result, outcome, waiter ? waiter->name : NULL, pid);
	for (; waiter; waiter = next) {
		next = waiter->next;
		if (file->state == NT_CATALOG_HOLDS)
			add_file(d, waiter, file);
		nt_catalog_waiter_free(waiter);
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

	take_symbols(d, nt_catalog_find(&d->catalog, &key, nt_clock_boot_ns()), task->request.pid,
		     outcome);
}

static void on_no_file(void *data, const struct nt_inspector_task *task, int result,
		       const struct nt_inspection_file *file, const char *name, int fd)
{
	(void)data, (void)task, (void)result, (void)file, (void)name, (void)fd;
}

int nt_discover_file(const struct nt_discover *discover, dev_t dev, ino_t ino,
		     struct nt_discover_file *ret_file)
{
	const struct nt_catalog_file *file = nt_catalog_find_inode(&discover->catalog, dev, ino);

	if (!file)
		return -ENOENT;
	*ret_file = (struct nt_discover_file){
		.fd = file->fd,
		.symbols = file->symbols,
	};
	return 0;
}

/* ---- what is asked for -------------------------------------------------------------------- */

static void ask(struct nt_discover *d, const struct nt_inspector_task *task, const char *path)
{
	struct nt_inspector_task added = *task;

	added.client = &d->client;
	added.is_late = d->scanning_first;
	if (nt_inspector_ask(d->inspector, &added, path, -1) < 0) {
		d->stats.over_cap++;
		d->lost++;
	}
}

static void ask_kind(struct nt_discover *d, uint32_t pid, enum nt_inspection_kind kind)
{
	const struct nt_inspector_task task = {.request = {.kind = kind, .pid = pid}};

	ask(d, &task, NULL);
}

/* Nothing is looked at of a process outside but its cgroup; it may come inside. */
static bool is_inside(struct nt_discover *d, uint32_t pid)
{
	if (!d->subtree || nt_subtree_holds(d->subtree, pid)) {
		if (d->subtree)
			nt_outside_remove(&d->outside, pid);
		return true;
	}
	if (!nt_outside_add(&d->outside, pid))
		d->stats.over_cap++;
	return false;
}

static void see_mapping(struct nt_discover *d, const struct nt_map_record *record)
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
	ask(d, &task, record->path);
}

static void see_program(struct nt_discover *d, uint32_t pid)
{
	if (is_inside(d, pid))
		ask_kind(d, pid, NT_INSPECT_PROGRAM);
}

void nt_discover_see_process(struct nt_discover *d, uint32_t pid)
{
	if (is_inside(d, pid))
		ask_kind(d, pid, NT_INSPECT_PROCESS);
}

/* ---- records ------------------------------------------------------------------------------ */

/* Any of its first files. */
static bool was_seen_since(const struct nt_roster_process *p, size_t files, uint64_t boot_ns)
{
	for (size_t i = 0; i < files && i < p->files; i++)
		if (p->file[i].seen_ns > boot_ns)
			return true;
	return false;
}

/*
 * A process runs another program: it begins anew, unless that maps the same files. It may have called
 * them by now, and what it did is not to be forgotten.
 */
static void see_exec(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	const struct nt_roster_process *p = nt_roster_find(&d->roster, pid);
	struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_PROCESS, .pid = pid},
		.is_exec = true,
		.exec_ns = boot_ns,
	};

	if (!p) {
		see_program(d, pid);
		return;
	}
	task.start_ns = p->start_ns;
	task.known = (uint32_t)p->files;
	ask(d, &task, NULL);
}

static void on_done(void *data, const struct nt_inspector_task *task,
		    struct nt_inspector_outcome *outcome)
{
	struct nt_discover *d = data;
	struct nt_roster_process *p;

	if (task->request.wants_symbols)
		take_symbols(d, nt_catalog_find_number(&d->catalog, task->request.number),
			     task->request.pid, outcome);
	else if (outcome->result == -EACCES)
		d->stats.unreadable++;
	if (!task->is_exec)
		return;
	p = nt_roster_find(&d->roster, task->request.pid);
	if (!p || p->start_ns != task->start_ns || was_seen_since(p, task->known, task->exec_ns))
		return;
	nt_discover_end_process(d, p, task->exec_ns);
	nt_discover_see_process(d, task->request.pid);
}

/* A child has its parent's mappings, without a record of them. */
static void see_fork(struct nt_discover *d, uint32_t pid, uint32_t parent)
{
	if (nt_roster_find(&d->roster, parent) || nt_outside_has(&d->outside, parent))
		nt_discover_see_process(d, pid);
}

static void see_exit(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	struct nt_roster_process *p = nt_roster_find(&d->roster, pid);

	if (p && nt_proc_has_ended(pid))
		nt_discover_end_process(d, p, boot_ns);
	if (nt_outside_has(&d->outside, pid) && nt_proc_has_ended(pid))
		nt_outside_remove(&d->outside, pid);
}

static void take_record(void *data, struct nt_map_record *record)
{
	struct nt_discover *d = data;

	switch (record->kind) {
	case NT_MAP_MAPPED:
		(void)nt_proc_cut_deleted(record->path);
		if (record->path[0] == '/')
			see_mapping(d, record);
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
	const struct nt_roster_process *p = nt_roster_find(&d->roster, pid);
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
	nt_roster_init(&d->roster);
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
		r = nt_subtree_new(options->cgroup, &d->subtree);
		if (r < 0)
			return r;
	}
	r = nt_inspector_new(options->workers, options->quarantine, &hooks, &d->inspector);
	if (r < 0)
		return r;
	/* Before the scan, so that nothing falls between the two. */
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
	nt_roster_release(&discover->roster);
	nt_outside_release(&discover->outside);
	nt_catalog_release(&discover->catalog);
	nt_mapwatch_free(discover->watch);
	nt_subtree_free(discover->subtree);
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

	discover->has_unread = false; /* after a failure, too: the next tick tries again */
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
	 * Workers answer in a fraction of a millisecond, and whoever asks us wants to know: a short
	 * wait saves a turn of the loop for each step. It ends where a worker turns out to be slow.
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

bool nt_discover_is_scanning(const struct nt_discover *discover)
{
	uint64_t oldest_ns = nt_inspector_oldest_ns(discover->inspector);

	return discover->scan || (oldest_ns && oldest_ns <= discover->scan_end_ns);
}

void nt_discover_called(struct nt_discover *discover, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_roster_process *p = nt_roster_find(&discover->roster, pid);

	if (p && p->start_ns == start_boot_ns)
		nt_share_call(&p->place);
}

void nt_discover_recall(struct nt_discover *discover, uint32_t pid)
{
	const struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_PROCESS, .pid = pid},
		.is_called = true,
	};

	if (is_inside(discover, pid))
		ask(discover, &task, NULL);
}

const struct nt_share *nt_discover_share(const struct nt_discover *discover)
{
	return &discover->roster.share;
}

void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats)
{
	*ret_stats = discover->stats;
	ret_stats->processes = nt_roster_count(&discover->roster);
	ret_stats->over_cap += discover->catalog.over_cap;
	nt_inspector_stats(discover->inspector, &ret_stats->inspector);
}
