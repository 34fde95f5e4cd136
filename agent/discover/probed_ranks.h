/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The Python interpreters of this node's ranks, whose garbage collections are timed. Each is probed
 * from when its process becomes a rank to its end. No other Python process is probed.
 */
#ifndef NT_AGENT_DISCOVER_GC_INTERPRETER_H
#define NT_AGENT_DISCOVER_GC_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

struct nt_gc_probe;

enum {
	NT_GC_INTERPRETERS_MAX = 1024, /* processes */
	NT_GC_INTERPRETER_FILES = 8, /* inspected per process */
};

/* True if a mapped file is an interpreter by its name ("libpython3.11.so.1.0"). */
bool nt_gc_interpreter_is_library(const char *basename);

/*
 * Calls fn with each file that may hold the process's interpreter: libpython first, the program
 * last. Each is a regular file opened with O_PATH. Stops at the first result other than -ENOENT and
 * returns it; -ENOENT: none. May block: for workers.
 */
typedef int (*nt_gc_interpreter_fn)(void *data, int fd, const struct stat *st);
NT_MUST_CHECK int nt_gc_interpreter_find(uint32_t pid, nt_gc_interpreter_fn fn, void *data);

struct nt_gc_interpreters;

struct nt_gc_interpreters_hooks {
	/*
	 * -ENOENT: the process has no interpreter that can be probed. -EINPROGRESS: the search goes
	 * on, and ends with nt_gc_interpreters_found().
	 */
	int (*attach)(void *data, uint32_t pid, uint64_t start_boot_ns,
		      struct nt_gc_probe **ret_probe);
	void (*detach)(void *data, struct nt_gc_probe *probe);
	void *data;
};

struct nt_gc_interpreters_stats {
	uint64_t attached; /* now */
	uint64_t over_cap; /* processes left out: too many */
	/* processes whose interpreter could not be probed */
	uint64_t failed;
};

NT_MUST_CHECK int nt_gc_interpreters_new(const struct nt_gc_interpreters_hooks *hooks,
					 struct nt_gc_interpreters **ret_interpreters);
/* Detaches all. Accepts NULL. */
void nt_gc_interpreters_free(struct nt_gc_interpreters *interpreters);
NT_DEFINE_AUTO(nt_gc_interpreters, nt_gc_interpreters_free)

/* To be called when a process becomes a rank. */
void nt_gc_interpreters_add(struct nt_gc_interpreters *interpreters, uint32_t pid,
			    uint64_t start_boot_ns);
void nt_gc_interpreters_end(struct nt_gc_interpreters *interpreters, uint32_t pid,
			    uint64_t start_boot_ns);

/* Attaches to one interpreter that was added. Reading the file and making links may block. */
void nt_gc_interpreters_attach(struct nt_gc_interpreters *interpreters);
/* The result of a search. Takes over the probe, even if its process has ended. */
void nt_gc_interpreters_found(struct nt_gc_interpreters *interpreters, uint32_t pid,
			      uint64_t start_boot_ns, int result, struct nt_gc_probe *probe);
/* Detaches one that has ended, which takes 0.1 s, and 0.2 s with perf links. */
void nt_gc_interpreters_detach(struct nt_gc_interpreters *interpreters);

void nt_gc_interpreters_stats(const struct nt_gc_interpreters *interpreters,
			      struct nt_gc_interpreters_stats *ret_stats);

#endif
