/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Start time, state and executable mappings of a process, from /proc. */
#ifndef NT_AGENT_HOST_PROC_H
#define NT_AGENT_HOST_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/cleanup.h"

enum {
	NT_PROC_PATH = 4096, /* holds a path as the kernel shows it, its NUL included */
};

/* Boot time of the process's start. -ESRCH: no such process, or all its threads have ended. */
NT_MUST_CHECK int nt_proc_start_ns(uint32_t pid, uint64_t *ret_start_ns);

/* The state letter of /proc/PID/stat: 'R' is runnable, 'S' and 'D' wait. */
NT_MUST_CHECK int nt_proc_state(uint32_t pid, char *ret_state);

/* True if the process is gone, or a zombie whose last thread has ended. */
bool nt_proc_has_ended(uint32_t pid);

/* A file-backed executable mapping. */
struct nt_mapping {
	uint64_t start, end;
	uint64_t offset; /* of `start` in the file */
	uint64_t ino;
	const char *path; /* as the process sees it, without " (deleted)"; valid until fn returns */
	bool deleted;
};

typedef void (*nt_mapping_fn)(void *data, const struct nt_mapping *mapping);

/* Calls fn for at most NT_PROC_MAPPINGS mappings. -ESRCH and the like if the process is gone. */
NT_MUST_CHECK int nt_proc_mappings(uint32_t pid, nt_mapping_fn fn, void *data);

enum {
	NT_PROC_MAPPINGS = 65536,
};

/* Parses one line of /proc/PID/maps in place. False: not executable, no file, or malformed. */
bool nt_proc_parse_mapping(char *line, struct nt_mapping *ret_mapping);

/* Removes a trailing " (deleted)"; false if there is none. */
bool nt_proc_cut_deleted(char *path);

#endif
