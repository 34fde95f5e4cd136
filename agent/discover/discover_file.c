/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Handling of files that workers found. The symbols of a new file are requested; a file with probed
 * functions is reported once for each process that maps it.
 */
#include "agent/discover/discover_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/discover/inspection.h"
#include "agent/host/proc.h"
#include "common/system/clock.h"

enum {
	PATH_BYTES = 64,
};

/* ---- processes ------------------------------------------------------------------------------ */

static bool was_reported(const struct nt_mapping_process *p)
{
	bool reported = false;

	for (size_t i = 0; i < p->files; i++)
		reported |= p->file[i].reported;
	return reported;
}

void nt_discover_end_process(struct nt_discover *d, struct nt_mapping_process *p, uint64_t boot_ns)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = was_reported(p);

	nt_process_table_remove(&d->table, p);
	if (reported)
		d->options.handler.exited(d->options.handler.data, pid, start_ns, boot_ns);
}

/* Evicts a running process to make room: its state is discarded. */
static void evict_process(struct nt_discover *d, struct nt_mapping_process *p)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = was_reported(p);

	nt_process_table_remove(&d->table, p);
	d->stats.over_cap++;
	if (reported && d->options.handler.evicted)
		d->options.handler.evicted(d->options.handler.data, pid, start_ns);
}

/*
 * The running process with this pid; an entry of an earlier one is ended. NULL: none, or no room.
 */
static struct nt_mapping_process *living_process(struct nt_discover *d,
						 const struct nt_catalog_waiter *seen)
{
	struct nt_mapping_process *p = nt_process_table_find(&d->table, seen->pid), *evicted;
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
	p = nt_process_table_add(&d->table, seen->pid, start_ns, &owner, seen->is_called, &evicted);
	if (!p)
		d->stats.over_cap++;
	if (evicted)
		evict_process(d, evicted);
	return p;
}

static void report(struct nt_discover *d, struct nt_mapping_process *p,
		   struct nt_process_table_file *m, const struct nt_catalog_file *held)
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
	free(nt_take(m->name)); /* names can be long and are used once */
}

/* Records a file of interest of the process, and reports it once. */
static void add_file(struct nt_discover *d, const struct nt_catalog_waiter *seen,
		     const struct nt_catalog_file *held)
{
	struct nt_mapping_process *p = nt_process_table_find(&d->table, seen->pid);
	struct nt_process_table_file *m, file = {
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
		/* It may by now be another program's mapping, at another address. */
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
	m = nt_process_table_add_file(p, &file, seen->name);
	if (!m) {
		d->stats.over_cap++;
		return;
	}
	report(d, p, m, held);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void refuse(struct nt_discover *d, struct nt_catalog_file *file, enum nt_refusal why,
		   uint64_t retry_ns, const char *name, uint32_t pid)
{
	file->state = NT_CATALOG_REFUSED;
	file->retry_ns = retry_ns;
	d->stats.refused[why]++;
	if (d->options.handler.refused)
		d->options.handler.refused(d->options.handler.data, pid, name, why);
}

static void request_symbols(struct nt_discover *d, const struct nt_inspector_task *task,
			    struct nt_catalog_file *file, int fd)
{
	const struct nt_inspector_task symbols = {
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

	if (nt_inspector_submit(d->inspector, &symbols, NULL, fd) == 0)
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

void nt_discover_take_file(struct nt_discover *d, const struct nt_inspector_task *task,
			   const struct nt_inspection_file *found, const char *name, int fd)
{
	struct nt_catalog_waiter waiter = {
		.pid = task->request.pid,
		/* A process that started during the scan is not late. */
		.is_late = task->is_late && task->start_ns < d->scan_begin_ns,
		.is_called = task->is_called,
		.start_ns = task->start_ns,
		.seen_ns = task->seen_ns ? task->seen_ns : task->begun_ns,
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
		/* Most programs hold no probed function: not worth a log line. */
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
		request_symbols(d, task, file, fd);
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

void nt_discover_take_symbols(struct nt_discover *d, struct nt_catalog_file *file, uint32_t pid,
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
