/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/gc_interpreter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/host/proc.h"
#include "agent/host/root_path.h"

/* ---- finding ------------------------------------------------------------------------------ */

bool nt_gc_interpreter_is_library(const char *basename)
{
	static const char stem[] = "libpython";
	const char *tail = basename + sizeof(stem) - 1;

	if (strncmp(basename, stem, sizeof(stem) - 1) != 0 || !isdigit((unsigned char)*tail))
		return false;
	tail = strstr(tail, ".so");
	return tail && (tail[3] == '\0' || tail[3] == '.');
}

struct interpreter_search {
	uint32_t pid;
	nt_gc_interpreter_fn fn;
	void *data;
	uint64_t ino[NT_GC_INTERPRETER_FILES]; /* that were inspected */
	size_t inos;
	int result;
};

static void try_file(struct interpreter_search *search, int fd, const struct stat *st)
{
	if (search->result == -ENOENT && fd >= 0)
		search->result = search->fn(search->data, fd, st);
}

static void try_mapping(void *data, const struct nt_mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');
	struct interpreter_search *search = data;
	nt_autoclose int fd = -1;
	struct stat st;

	if (!slash || !nt_gc_interpreter_is_library(slash + 1) ||
	    search->inos == NT_GC_INTERPRETER_FILES)
		return;
	for (size_t i = 0; i < search->inos; i++)
		if (search->ino[i] == mapping->ino)
			return;
	search->ino[search->inos++] = mapping->ino;
	fd = nt_root_path_open_mapping(search->pid, mapping, &st);
	try_file(search, fd, &st);
}

int nt_gc_interpreter_find(uint32_t pid, nt_gc_interpreter_fn fn, void *data)
{
	struct interpreter_search search = {.pid = pid, .fn = fn, .data = data, .result = -ENOENT};
	nt_autoclose int fd = -1;
	struct stat st;
	char path[64];
	int r;

	r = nt_proc_mappings(pid, try_mapping, &search);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = nt_root_path_follow(path, &st);
	try_file(&search, fd, &st);
	return search.result;
}

/* ---- those of the ranks ------------------------------------------------------------------- */

struct interpreter {
	uint32_t pid;
	uint64_t start_ns;
	bool waits; /* it has not been searched yet */
	bool is_lost; /* out of memory when it was added */
	struct nt_gc_probe *probe; /* owned; NULL: none */
	struct interpreter *next; /* in the list `ended` */
	UT_hash_handle hh;
};

struct nt_gc_interpreters {
	struct nt_gc_interpreters_hooks hooks;
	struct interpreter *interpreter; /* uthash, owned */
	struct interpreter *ended; /* owned: have a probe, and are no longer in the table */
	uint32_t ended_count; /* also capped: detaching is slower than adding */
	uint32_t waiting;
	struct nt_gc_interpreters_stats stats;
};

int nt_gc_interpreters_new(const struct nt_gc_interpreters_hooks *hooks,
			   struct nt_gc_interpreters **ret_interpreters)
{
	struct nt_gc_interpreters *interpreters = calloc(1, sizeof(*interpreters));

	if (!interpreters)
		return -ENOMEM;
	interpreters->hooks = *hooks;
	*ret_interpreters = interpreters;
	return 0;
}

static void detach(struct nt_gc_interpreters *interpreters, struct nt_gc_probe *probe)
{
	if (!probe)
		return;
	interpreters->hooks.detach(interpreters->hooks.data, probe);
	interpreters->stats.attached--;
}

void nt_gc_interpreters_free(struct nt_gc_interpreters *interpreters)
{
	struct interpreter *interpreter, *next;

	if (!interpreters)
		return;
	HASH_ITER(hh, interpreters->interpreter, interpreter, next)
	{
		HASH_DEL(interpreters->interpreter, interpreter);
		detach(interpreters, interpreter->probe);
		free(interpreter);
	}
	while (interpreters->ended)
		nt_gc_interpreters_detach(interpreters);
	free(interpreters);
}

void nt_gc_interpreters_add(struct nt_gc_interpreters *interpreters, uint32_t pid,
			    uint64_t start_boot_ns)
{
	struct interpreter *interpreter;

	HASH_FIND(hh, interpreters->interpreter, &pid, sizeof(pid), interpreter);
	if (interpreter && interpreter->start_ns == start_boot_ns)
		return;
	if (interpreter) /* its exit was not reported */
		nt_gc_interpreters_end(interpreters, pid, interpreter->start_ns);
	if (HASH_COUNT(interpreters->interpreter) + interpreters->ended_count >=
	    NT_GC_INTERPRETERS_MAX) {
		interpreters->stats.over_cap++;
		return;
	}
	interpreter = calloc(1, sizeof(*interpreter));
	if (interpreter) {
		interpreter->pid = pid;
		interpreter->start_ns = start_boot_ns;
		interpreter->waits = true;
		HASH_ADD(hh, interpreters->interpreter, pid, sizeof(interpreter->pid), interpreter);
	}
	if (!interpreter || interpreter->is_lost) {
		interpreters->stats.failed++;
		free(interpreter);
		return;
	}
	interpreters->waiting++;
}

void nt_gc_interpreters_end(struct nt_gc_interpreters *interpreters, uint32_t pid,
			    uint64_t start_boot_ns)
{
	struct interpreter *interpreter;

	HASH_FIND(hh, interpreters->interpreter, &pid, sizeof(pid), interpreter);
	if (!interpreter || interpreter->start_ns != start_boot_ns)
		return;
	HASH_DEL(interpreters->interpreter, interpreter);
	interpreters->waiting -= interpreter->waits;
	if (!interpreter->probe) {
		free(interpreter);
		return;
	}
	interpreter->next = interpreters->ended;
	interpreters->ended = interpreter;
	interpreters->ended_count++;
}

static void count_result(struct nt_gc_interpreters *interpreters, int result)
{
	if (result >= 0)
		interpreters->stats.attached++;
	else if (result != -ENOENT && result != -ESRCH && result != -EINPROGRESS)
		interpreters->stats.failed++;
}

void nt_gc_interpreters_attach(struct nt_gc_interpreters *interpreters)
{
	struct interpreter *interpreter = interpreters->interpreter;
	int r;

	if (!interpreters->waiting)
		return;
	while (interpreter && !interpreter->waits)
		interpreter = interpreter->hh.next;
	if (!interpreter)
		return;
	interpreter->waits = false;
	interpreters->waiting--;
	r = interpreters->hooks.attach(interpreters->hooks.data, interpreter->pid,
				       interpreter->start_ns, &interpreter->probe);
	count_result(interpreters, r);
}

void nt_gc_interpreters_found(struct nt_gc_interpreters *interpreters, uint32_t pid,
			      uint64_t start_boot_ns, int result, struct nt_gc_probe *probe)
{
	struct interpreter *interpreter;

	count_result(interpreters, result);
	HASH_FIND(hh, interpreters->interpreter, &pid, sizeof(pid), interpreter);
	if (interpreter && interpreter->start_ns == start_boot_ns && !interpreter->probe)
		interpreter->probe = probe;
	else
		detach(interpreters, probe);
}

void nt_gc_interpreters_detach(struct nt_gc_interpreters *interpreters)
{
	struct interpreter *interpreter = interpreters->ended;

	if (!interpreter)
		return;
	interpreters->ended = interpreter->next;
	interpreters->ended_count--;
	detach(interpreters, interpreter->probe);
	free(interpreter);
}

void nt_gc_interpreters_stats(const struct nt_gc_interpreters *interpreters,
			      struct nt_gc_interpreters_stats *ret_stats)
{
	*ret_stats = interpreters->stats;
}
