/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The Python interpreters of the ranks of this node, whose collections of garbage are timed: one
 * process each, from when it has become a rank to its end. No other Python of the host is touched.
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
	NT_GC_INTERPRETER_FILES = 8, /* of one process that are looked at */
};

/* Is a mapped file an interpreter, by its name ("libpython3.11.so.1.0")? */
bool nt_gc_interpreter_is_library(const char *basename);

/*
 * Calls fn with each file of a process that may hold its interpreter, a regular one and not open for
 * reading yet (O_PATH): a libpython first, its program last. May block: for workers. Ends with the first result that is not -ENOENT, and returns it; -ENOENT:
 * there was none.
 */
typedef int (*nt_gc_interpreter_fn)(void *data, int fd, const struct stat *st);
NT_MUST_CHECK int nt_gc_interpreter_find(uint32_t pid, nt_gc_interpreter_fn fn, void *data);

struct nt_gc_interpreters;

struct nt_gc_interpreters_hooks {
	/*
	 * -ENOENT: the process runs none, or one that tells nothing. -EINPROGRESS: it is being looked
	 * for, and nt_gc_interpreters_found() will say.
	 */
	int (*attach)(void *data, uint32_t pid, uint64_t start_boot_ns,
		      struct nt_gc_probe **ret_span);
	void (*detach)(void *data, struct nt_gc_probe *span);
	void *data;
};

struct nt_gc_interpreters_stats {
	uint64_t attached; /* now */
	uint64_t over_cap; /* processes left out: too many */
	/* processes whose interpreter the kernel, or its file, did not let us watch */
	uint64_t failed;
};

NT_MUST_CHECK int nt_gc_interpreters_new(const struct nt_gc_interpreters_hooks *hooks,
					 struct nt_gc_interpreters **ret_interpreters);
/* Detaches all. Accepts NULL. */
void nt_gc_interpreters_free(struct nt_gc_interpreters *interpreters);
NT_DEFINE_AUTO(nt_gc_interpreters, nt_gc_interpreters_free)

/* A process has become a rank. */
void nt_gc_interpreters_add(struct nt_gc_interpreters *interpreters, uint32_t pid,
			    uint64_t start_boot_ns);
void nt_gc_interpreters_end(struct nt_gc_interpreters *interpreters, uint32_t pid,
			    uint64_t start_boot_ns);

/* Attaches to one that was added: reading a file and making links takes a while. */
void nt_gc_interpreters_attach(struct nt_gc_interpreters *interpreters);
/* What came of one that was looked for. Takes over the span, which may be of one that has ended. */
void nt_gc_interpreters_found(struct nt_gc_interpreters *interpreters, uint32_t pid,
			      uint64_t start_boot_ns, int result, struct nt_gc_probe *span);
/* Lets go of one that has ended, which takes 0.1 s, and by perf links 0.2 s. */
void nt_gc_interpreters_detach(struct nt_gc_interpreters *interpreters);

void nt_gc_interpreters_stats(const struct nt_gc_interpreters *interpreters,
			      struct nt_gc_interpreters_stats *ret_stats);

#endif
