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
#include <uthash.h>

#include "agent/elf.h"
#include "agent/mapwatch.h"
#include "agent/probe.h"
#include "agent/proc.h"
#include "agent/subtree.h"
#include "common/clock.h"
#include "common/num.h"

enum {
	PROCESSES_MAX = 4096,
	FILES_MAX = 32, /* of one process */
	PROGRAMS_MAX = 4096, /* main programs whose symbols were looked at */
	PATH_BYTES = NT_PROC_PATH + 64,
	RECHECK_NS = 1000000000,
	RESCAN_NS = 1000000000, /* between scans, however many records are lost */
};

/* A file of interest in a process. */
struct mapped {
	dev_t dev;
	ino_t ino;
	uint64_t start, end; /* of the mapping; 0 for a main program */
	enum nt_library library;
	bool executable, late;
	bool reported;
	char *name;
};

struct process {
	uint32_t pid;
	uint64_t start_ns;
	bool inside; /* the subtree */
	struct mapped mapped[FILES_MAX];
	size_t files;
	UT_hash_handle hh;
};

/* What a main program was found to be. A changed file is another program. */
struct program_key {
	dev_t dev;
	ino_t ino;
	int64_t size, changed_ns;
};

struct program {
	struct program_key key;
	bool of_interest;
	UT_hash_handle hh;
};

struct nt_discover {
	struct nt_discover_handler handler;
	struct nt_subtree *subtree;
	struct nt_mapwatch *watch;
	struct process *process;
	struct program *program;
	size_t programs;
	bool rescan, scanning_first;
	uint64_t rechecked_ns, scanned_ns;
	struct nt_discover_stats stats;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- one process -------------------------------------------------------------------------- */

static struct process *find_process(struct nt_discover *d, uint32_t pid)
{
	struct process *p;

	HASH_FIND(hh, d->process, &pid, sizeof(pid), p);
	return p;
}

static void forget(struct nt_discover *d, struct process *p)
{
	for (size_t i = 0; i < p->files; i++)
		free(p->mapped[i].name);
	HASH_DEL(d->process, p);
	free(p);
}

static void end_process(struct nt_discover *d, struct process *p, uint64_t boot_ns)
{
	uint32_t pid = p->pid;
	uint64_t start_ns = p->start_ns;
	bool reported = false;

	for (size_t i = 0; i < p->files; i++)
		reported |= p->mapped[i].reported;
	forget(d, p);
	if (reported)
		d->handler.exited(d->handler.data, pid, start_ns, boot_ns);
}

/* The living process of this number; an entry of an earlier one is ended. NULL: none, or no room. */
static struct process *living_process(struct nt_discover *d, uint32_t pid)
{
	struct process *p = find_process(d, pid);
	uint64_t start_ns;

	if (nt_proc_start_ns(pid, &start_ns) < 0)
		return NULL;
	if (p && p->start_ns == start_ns)
		return p;
	if (p)
		end_process(d, p, nt_clock_boot_ns());
	if (HASH_COUNT(d->process) >= PROCESSES_MAX) {
		d->stats.over_cap++;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->start_ns = start_ns;
	HASH_ADD(hh, d->process, pid, sizeof(p->pid), p);
	return p;
}

/*
 * A path by which we can open the file: through the process's own root where that leads to the
 * same inode, else through the mapping itself (deleted, or hidden under a mount).
 */
static bool path_of(uint32_t pid, const struct mapped *m, const char *name, uint64_t ino,
		    char *path, struct stat *st)
{
	struct stat by_root;
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

static void report(struct nt_discover *d, struct process *p, struct mapped *m)
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
}

/* It was moved into the subtree: what it maps since before is news. */
static void come_inside(struct nt_discover *d, struct process *p)
{
	p->inside = true;
	for (size_t i = 0; i < p->files; i++)
		report(d, p, &p->mapped[i]);
}

/* Notes a file of interest and reports it, once. */
static void add_file(struct nt_discover *d, uint32_t pid, const struct mapped *seen,
		     const char *name, uint64_t ino)
{
	struct process *p = find_process(d, pid);
	struct mapped *m;
	char path[PATH_BYTES];
	struct stat st;

	if (!path_of(pid, seen, name, ino, path, &st)) {
		d->stats.unreadable++;
		return;
	}
	for (size_t i = 0; p && i < p->files; i++)
		if (p->mapped[i].dev == st.st_dev && p->mapped[i].ino == st.st_ino)
			return;
	p = living_process(d, pid);
	if (!p)
		return;
	if (p->files == FILES_MAX) {
		d->stats.over_cap++;
		return;
	}
	m = &p->mapped[p->files];
	*m = *seen;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	m->late = d->scanning_first;
	m->name = strdup(name);
	if (!m->name)
		return;
	p->files++;
	if (p->inside || !nt_subtree_holds(d->subtree, pid))
		report(d, p, m);
	else
		come_inside(d, p);
}

/* ---- libraries and main programs ---------------------------------------------------------- */

struct place {
	struct nt_discover *d;
	uint32_t pid;
};

static void see_mapping(void *data, const struct nt_mapping *mapping)
{
	const struct place *place = data;
	struct mapped m = {
		.start = mapping->start,
		.end = mapping->end,
		.library = nt_probe_library_of(base_of(mapping->path)),
	};

	if (m.library != NT_LIBRARY_UNKNOWN)
		add_file(place->d, place->pid, &m, mapping->path, mapping->ino);
}

/* Does the program hold a library of ours, linked statically? */
static bool holds_library(const char *path)
{
	static const char *const prefixes[] = {"ncclComm", "cudaLaunchKernel", "MPI_Init",
					       "_ZN4gloo9allreduce"};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	if (nt_elf_open(path, &elf) < 0)
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (nt_elf_has_prefix(elf, prefixes[i]))
			return true;
	return false;
}

/* As before if it was looked at before. The table is emptied when it is full. */
static bool is_program_of_interest(struct nt_discover *d, const char *path, const struct stat *st)
{
	struct program_key key;
	struct program *program, *next;

	memset(&key, 0, sizeof(key)); /* the padding is part of the hash */
	key.dev = st->st_dev;
	key.ino = st->st_ino;
	key.size = st->st_size;
	key.changed_ns = st->st_ctim.tv_sec * (int64_t)NT_SECOND + st->st_ctim.tv_nsec;
	HASH_FIND(hh, d->program, &key, sizeof(key), program);
	if (program)
		return program->of_interest;
	if (d->programs == PROGRAMS_MAX) {
		d->stats.over_cap++;
		HASH_ITER(hh, d->program, program, next)
		{
			HASH_DEL(d->program, program);
			free(program);
		}
		d->programs = 0;
	}
	program = calloc(1, sizeof(*program));
	if (!program)
		return false;
	program->key = key;
	program->of_interest = holds_library(path);
	HASH_ADD(hh, d->program, key, sizeof(program->key), program);
	d->programs++;
	return program->of_interest;
}

static void see_program(struct nt_discover *d, uint32_t pid)
{
	struct mapped m = {.library = NT_LIBRARY_UNKNOWN, .executable = true};
	char path[64], name[NT_PROC_PATH];
	struct stat st;
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	/* Kernel threads have none; a short-lived process is gone by now. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !is_program_of_interest(d, path, &st))
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
	struct place place = {.d = d, .pid = pid};

	if (nt_proc_mappings(pid, see_mapping, &place) == -EACCES)
		d->stats.unreadable++;
	see_program(d, pid);
}

/* ---- records ------------------------------------------------------------------------------ */

struct check {
	const struct process *process;
	size_t still; /* files of it that are mapped still */
};

static void check_mapping(void *data, const struct nt_mapping *mapping)
{
	struct check *check = data;

	for (size_t i = 0; i < check->process->files; i++)
		if (strcmp(check->process->mapped[i].name, mapping->path) == 0)
			check->still++;
}

/* A known process runs another program: it begins anew, unless that maps the same files. */
static void see_exec(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	struct process *p = find_process(d, pid);
	struct check check = {.process = p};

	if (p && (nt_proc_mappings(pid, check_mapping, &check) < 0 || !check.still))
		end_process(d, p, boot_ns);
	see_program(d, pid);
}

/* A child has its parent's mappings, without a record of them. */
static void see_fork(struct nt_discover *d, uint32_t pid, uint32_t parent)
{
	if (find_process(d, parent))
		see_process(d, pid);
}

static void see_exit(struct nt_discover *d, uint32_t pid, uint64_t boot_ns)
{
	struct process *p = find_process(d, pid);

	if (p && nt_proc_has_ended(pid))
		end_process(d, p, boot_ns);
}

static void take_record(void *data, struct nt_map_record *record)
{
	struct nt_discover *d = data;
	struct place place = {.d = d, .pid = record->pid};
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
	while ((entry = readdir(dir)))
		if (nt_num_u32(entry->d_name, strlen(entry->d_name), 1, INT32_MAX, &pid) == 0)
			see_process(d, pid);
	(void)closedir(dir);
	return 0;
}

/* Ends whose records were lost, and processes that were moved into the subtree. */
static void recheck(struct nt_discover *d)
{
	struct process *p, *next;
	uint64_t now_ns = nt_clock_boot_ns(), start_ns;

	HASH_ITER(hh, d->process, p, next)
	{
		int r = nt_proc_start_ns(p->pid, &start_ns);

		if (r == -ESRCH || (r == 0 && start_ns != p->start_ns)) {
			end_process(d, p, now_ns);
			continue;
		}
		if (!p->inside && nt_subtree_holds(d->subtree, p->pid))
			come_inside(d, p);
	}
}

int nt_discover_new(const char *cgroup, const struct nt_discover_handler *handler,
		    struct nt_discover **ret_discover)
{
	nt_auto(nt_discover) struct nt_discover *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
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
	struct program *program, *next_program;
	struct process *p, *next;

	if (!discover)
		return;
	HASH_ITER(hh, discover->process, p, next)
	forget(discover, p);
	HASH_ITER(hh, discover->program, program, next_program)
	{
		HASH_DEL(discover->program, program);
		free(program);
	}
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

void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats)
{
	*ret_stats = discover->stats;
	ret_stats->processes = HASH_COUNT(discover->process);
}
