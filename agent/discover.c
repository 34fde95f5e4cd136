/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records only say where to look: what is reported was seen in /proc, so that records of several
 * CPUs may come in any order.
 */
#include "agent/discover.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/mapwatch.h"
#include "agent/probe.h"
#include "agent/proc.h"
#include "agent/program.h"
#include "agent/roster.h"
#include "agent/subtree.h"
#include "common/clock.h"
#include "common/num.h"

enum {
	PATH_BYTES = NT_PROC_PATH + 64,
	RECHECK_NS = 1000000000,
	RESCAN_NS = 1000000000, /* between scans, however many records are lost */
	RECHECKED = 512, /* processes a second */
};

/* Between scans for those that were left out: where there is room for them, and to count them. */
#define READMIT_NS (10 * NT_SECOND)
#define RECOUNT_NS NT_MINUTE

struct nt_discover {
	struct nt_discover_handler handler;
	struct nt_subtree *subtree;
	struct nt_mapwatch *watch;
	struct nt_roster roster;
	struct nt_programs *programs;
	bool rescan, scanning_first, recalling;
	uint64_t rechecked_ns, scanned_ns;
	struct nt_discover_stats stats;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- one process -------------------------------------------------------------------------- */

static bool was_reported(const struct nt_roster_process *p)
{
	bool reported = false;

	for (size_t i = 0; i < p->files; i++)
		reported |= p->file[i].reported;
	return reported;
}

static void end_process(struct nt_discover *d, struct nt_roster_process *p, uint64_t boot_ns)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = was_reported(p);

	nt_roster_remove(&d->roster, p);
	if (reported)
		d->handler.exited(d->handler.data, pid, start_ns, boot_ns);
}

/* It makes room for another: what is known of it is given up, though it goes on. */
static void evict_process(struct nt_discover *d, struct nt_roster_process *p)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = was_reported(p);

	nt_roster_remove(&d->roster, p);
	d->stats.over_cap++;
	if (reported && d->handler.evicted)
		d->handler.evicted(d->handler.data, pid, start_ns);
}

/* The living process of this number; an entry of an earlier one is ended. NULL: none, or no room. */
static struct nt_roster_process *living_process(struct nt_discover *d, uint32_t pid)
{
	struct nt_roster_process *p = nt_roster_find(&d->roster, pid), *evicted;
	struct nt_owner owner;
	uint64_t start_ns;

	if (nt_proc_start_ns(pid, &start_ns) < 0)
		return NULL;
	if (p && p->start_ns == start_ns)
		return p;
	if (p)
		end_process(d, p, nt_clock_boot_ns());
	if (nt_owner_read(pid, &owner) < 0)
		return NULL;
	p = nt_roster_add(&d->roster, pid, start_ns, &owner, d->recalling, &evicted);
	if (!p)
		d->stats.over_cap++;
	if (evicted)
		evict_process(d, evicted);
	return p;
}

/*
 * A path by which we can open the file: through the process's own root where that leads to the
 * same inode, else through the mapping itself (deleted, or hidden under a mount).
 */
static bool path_of(uint32_t pid, const struct nt_roster_file *m, const char *name, uint64_t ino,
		    char *path, struct stat *st)
{
	struct stat by_root = {0};
	bool root;

	if (m->executable) {
		(void)snprintf(path, PATH_BYTES, "/proc/%u/exe", pid);
		return stat(path, st) == 0;
	}
	(void)snprintf(path, PATH_BYTES, "/proc/%u/root%s", pid, name);
	root = stat(path, &by_root) == 0;
	if (root && by_root.st_ino == ino) {
		*st = by_root;
		return true;
	}
	(void)snprintf(path, PATH_BYTES, "/proc/%u/map_files/%llx-%llx", pid,
		       (unsigned long long)m->start, (unsigned long long)m->end);
	if (stat(path, st) == 0)
		return true;
	/* Overlays show an inode number in some places and the one beneath it in others. */
	(void)snprintf(path, PATH_BYTES, "/proc/%u/root%s", pid, name);
	*st = by_root;
	return root;
}

static void report(struct nt_discover *d, struct nt_roster_process *p, struct nt_roster_file *m)
{
	char path[PATH_BYTES];
	struct stat st;
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

	if (m->reported || !p->inside)
		return;
	if (!path_of(p->pid, m, m->name, m->ino, path, &st) || st.st_dev != m->dev ||
	    st.st_ino != m->ino) {
		d->stats.unreadable++;
		return;
	}
	m->reported = true;
	d->stats.files++;
	d->handler.mapped(d->handler.data, &file);
	free(nt_take(m->name)); /* names can be long, and are needed once */
}

/* It was moved into the subtree: what it maps since before is news. */
static void come_inside(struct nt_discover *d, struct nt_roster_process *p)
{
	p->inside = true;
	for (size_t i = 0; i < p->files; i++)
		report(d, p, &p->file[i]);
}

static void report_or_come(struct nt_discover *d, struct nt_roster_process *p,
			   struct nt_roster_file *m)
{
	if (p->inside || !nt_subtree_holds(d->subtree, p->pid))
		report(d, p, m);
	else
		come_inside(d, p);
}

/* It may be the mapping of another program by now, at another place. */
static void see_again(struct nt_discover *d, struct nt_roster_process *p, struct nt_roster_file *m,
		      const struct nt_roster_file *seen)
{
	if (seen->seen_ns < m->seen_ns)
		return;
	m->seen_ns = seen->seen_ns;
	m->start = seen->start;
	m->end = seen->end;
	report_or_come(d, p, m);
}

/* Notes a file of interest and reports it, once. */
static void add_file(struct nt_discover *d, uint32_t pid, const struct nt_roster_file *seen,
		     const char *name, uint64_t ino)
{
	struct nt_roster_process *p = nt_roster_find(&d->roster, pid);
	struct nt_roster_file file = *seen, *m;
	char path[PATH_BYTES];
	struct stat st;

	if (!path_of(pid, seen, name, ino, path, &st)) {
		d->stats.unreadable++;
		return;
	}
	for (size_t i = 0; p && i < p->files; i++) {
		if (p->file[i].dev != st.st_dev || p->file[i].ino != st.st_ino)
			continue;
		see_again(d, p, &p->file[i], seen);
		return;
	}
	p = living_process(d, pid);
	if (!p)
		return;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	file.late = d->scanning_first;
	m = nt_roster_add_file(p, &file, name);
	if (!m) {
		d->stats.over_cap++;
		return;
	}
	report_or_come(d, p, m);
}

/* ---- libraries and main programs ---------------------------------------------------------- */

struct place {
	struct nt_discover *d;
	uint32_t pid;
	uint64_t seen_ns;
};

static void see_mapping(void *data, const struct nt_mapping *mapping)
{
	const struct place *place = data;
	struct nt_roster_file m = {
		.start = mapping->start,
		.end = mapping->end,
		.seen_ns = place->seen_ns,
		.library = nt_probe_library_of(base_of(mapping->path)),
	};

	if (m.library != NT_LIBRARY_UNKNOWN)
		add_file(place->d, place->pid, &m, mapping->path, mapping->ino);
}

static void see_program(struct nt_discover *d, uint32_t pid)
{
	struct nt_roster_file m = {
		.seen_ns = nt_clock_boot_ns(),
		.library = NT_LIBRARY_UNKNOWN,
		.executable = true,
	};
	char path[64], name[NT_PROC_PATH];
	struct stat st;
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	/* Kernel threads have none; a short-lived process is gone by now. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !nt_programs_hold(d->programs, path, &st))
		return;
	len = readlink(path, name, sizeof(name) - 1);
	if (len < 0)
		return;
	name[len] = '\0';
	(void)nt_proc_cut_deleted(name);
	add_file(d, pid, &m, name, st.st_ino);
}

static void see_process(struct nt_discover *d, uint32_t pid)
{
	struct place place = {.d = d, .pid = pid, .seen_ns = nt_clock_boot_ns()};

	if (nt_proc_mappings(pid, see_mapping, &place) == -EACCES)
		d->stats.unreadable++;
	see_program(d, pid);
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
	struct nt_roster_process *p = nt_roster_find(&d->roster, pid);
	size_t known = p ? p->files : 0;

	if (!p) {
		see_program(d, pid);
		return;
	}
	see_process(d, pid); /* which may have ended it, and begun another of this number */
	p = nt_roster_find(&d->roster, pid);
	if (!p || was_seen_since(p, known, boot_ns))
		return;
	end_process(d, p, boot_ns);
	see_process(d, pid);
}

/* A child has its parent's mappings, without a record of them. */
static void see_fork(struct nt_discover *d, uint32_t pid, uint32_t parent)
{
	if (nt_roster_find(&d->roster, parent))
		see_process(d, pid);
}

static void see_exit(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	struct nt_roster_process *p = nt_roster_find(&d->roster, pid);

	if (p && nt_proc_has_ended(pid))
		end_process(d, p, boot_ns);
}

static void take_record(void *data, struct nt_map_record *record)
{
	struct nt_discover *d = data;
	struct place place = {.d = d, .pid = record->pid, .seen_ns = record->boot_ns};
	struct nt_mapping mapping = {
		.start = record->start,
		.end = record->end,
		.ino = record->ino,
		.path = record->path,
	};

	switch (record->kind) {
	case NT_MAP_MAPPED:
		(void)nt_proc_cut_deleted(record->path);
		if (record->path[0] == '/')
			see_mapping(&place, &mapping);
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

static int scan(struct nt_discover *d)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	uint32_t pid;

	if (!dir)
		return -errno;
	d->stats.scans++;
	nt_roster_recount(&d->roster);
	while ((entry = readdir(dir)))
		if (nt_num_u32(entry->d_name, strlen(entry->d_name), 1, INT32_MAX, &pid) == 0)
			see_process(d, pid);
	(void)closedir(dir);
	return 0;
}

/* Ends whose records were lost, and processes that were moved into the subtree. */
static void recheck(struct nt_discover *d)
{
	uint64_t now_ns = nt_clock_boot_ns(), start_ns;
	size_t count = nt_roster_count(&d->roster);

	for (size_t i = 0; i < count && i < RECHECKED; i++) {
		struct nt_roster_process *p = nt_roster_turn(&d->roster);
		int r = nt_proc_start_ns(p->pid, &start_ns);

		if (r == -ESRCH || (r == 0 && start_ns != p->start_ns)) {
			end_process(d, p, now_ns);
			continue;
		}
		if (!p->inside && nt_subtree_holds(d->subtree, p->pid))
			come_inside(d, p);
	}
}

/* Those that were left out may have room by now, or be gone: a scan finds out. */
static void readmit(struct nt_discover *d, uint64_t now_ns)
{
	const uint64_t pause_ns = nt_share_has_room(&d->roster.share) ? READMIT_NS : RECOUNT_NS;
	struct nt_share_report report;

	if (now_ns - d->scanned_ns < pause_ns)
		return;
	nt_share_read(&d->roster.share, &report);
	d->rescan |= report.left_out > 0;
}

int nt_discover_new(const char *cgroup, const struct nt_discover_handler *handler,
		    struct nt_discover **ret_discover)
{
	nt_auto(nt_discover) struct nt_discover *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->programs = nt_programs_new();
	if (!d->programs)
		return -ENOMEM;
	nt_roster_init(&d->roster);
	d->handler = *handler;
	d->rescan = true;
	if (cgroup) {
		r = nt_subtree_new(cgroup, &d->subtree);
		if (r < 0)
			return r;
	}
	/* Before the scan, so that nothing falls between the two. */
	r = nt_mapwatch_new(&d->watch);
	if (r < 0)
		return r;
	*ret_discover = nt_take(d);
	return 0;
}

void nt_discover_free(struct nt_discover *discover)
{
	if (!discover)
		return;
	nt_roster_release(&discover->roster);
	nt_programs_free(discover->programs);
	nt_mapwatch_free(discover->watch);
	nt_subtree_free(discover->subtree);
	free(discover);
}

int nt_discover_fd(const struct nt_discover *discover)
{
	return nt_mapwatch_fd(discover->watch);
}

int nt_discover_run(struct nt_discover *discover)
{
	uint64_t now_ns = nt_clock_boot_ns();
	int64_t lost;
	int r;

	lost = nt_mapwatch_read(discover->watch, take_record, discover);
	if (lost < 0)
		return (int)lost;
	discover->stats.lost_records += (uint64_t)lost;
	discover->rescan |= lost > 0;
	readmit(discover, now_ns);
	if (discover->rescan && now_ns - discover->scanned_ns >= RESCAN_NS) {
		discover->rescan = false;
		discover->scanned_ns = now_ns;
		discover->scanning_first = discover->stats.scans == 0;
		r = scan(discover);
		discover->scanning_first = false;
		if (r < 0)
			return r;
	}
	if (now_ns - discover->rechecked_ns >= RECHECK_NS) {
		discover->rechecked_ns = now_ns;
		recheck(discover);
	}
	return 0;
}

bool nt_discover_is_complete(const struct nt_discover *discover)
{
	return !discover->rescan;
}

void nt_discover_called(struct nt_discover *discover, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_roster_process *p = nt_roster_find(&discover->roster, pid);

	if (p && p->start_ns == start_boot_ns)
		nt_share_call(&p->place);
}

void nt_discover_recall(struct nt_discover *discover, uint32_t pid)
{
	discover->recalling = true;
	see_process(discover, pid);
	discover->recalling = false;
}

const struct nt_share *nt_discover_share(const struct nt_discover *discover)
{
	return &discover->roster.share;
}

void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats)
{
	*ret_stats = discover->stats;
	ret_stats->processes = nt_roster_count(&discover->roster);
	ret_stats->over_cap += nt_programs_over_cap(discover->programs);
}
