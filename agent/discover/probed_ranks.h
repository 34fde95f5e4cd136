/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ranks of this node in whose process one file is probed: the Python interpreter, whose garbage
 * collections are timed, or the library that reports the GPU. A rank is probed from when its process
 * becomes one to its end, while the table is open. No other process is.
 */
#ifndef NT_AGENT_DISCOVER_PROBED_RANKS_H
#define NT_AGENT_DISCOVER_PROBED_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_rank_probe;

enum {
	NT_PROBED_RANKS_MAX = 1024, /* processes */
};

struct nt_probed_ranks;

struct nt_probed_ranks_hooks {
	/*
	 * -ENOENT: the process has no file that can be probed. -EINPROGRESS: the search goes
	 * on, and ends with nt_probed_ranks_found().
	 */
	int (*attach)(void *data, uint32_t pid, uint64_t start_boot_ns,
		      struct nt_rank_probe **ret_probe);
	void (*detach)(void *data, struct nt_rank_probe *probe);
	void *data;
};

struct nt_probed_ranks_stats {
	uint64_t attached; /* now */
	uint64_t over_cap; /* processes left out: too many */
	/* processes whose file could not be probed */
	uint64_t failed;
};

NT_MUST_CHECK int nt_probed_ranks_new(const struct nt_probed_ranks_hooks *hooks,
				      struct nt_probed_ranks **ret_ranks);
/* Detaches all. Accepts NULL. */
void nt_probed_ranks_free(struct nt_probed_ranks *ranks);
NT_DEFINE_AUTO(nt_probed_ranks, nt_probed_ranks_free)

/* To be called when a process becomes a rank. */
void nt_probed_ranks_add(struct nt_probed_ranks *ranks, uint32_t pid, uint64_t start_boot_ns);
void nt_probed_ranks_end(struct nt_probed_ranks *ranks, uint32_t pid, uint64_t start_boot_ns);
/* When a process that was added was started. False: it is not here. */
bool nt_probed_ranks_start_ns(const struct nt_probed_ranks *ranks, uint32_t pid,
			      uint64_t *ret_start_boot_ns);

/* Attaches to one rank that was added. Reading the file and making links may block. */
void nt_probed_ranks_attach(struct nt_probed_ranks *ranks);
/* The result of a search. Takes over the probe, even if its process has ended. */
void nt_probed_ranks_found(struct nt_probed_ranks *ranks, uint32_t pid, uint64_t start_boot_ns,
			   int result, struct nt_rank_probe *probe);
/* The process is not probed any more until its end. */
void nt_probed_ranks_refuse(struct nt_probed_ranks *ranks, uint32_t pid);
/*
 * All are probed again, but those whose file cannot be probed; or none is any more. Open at first. A
 * result that arrives while closed is detached at once.
 */
void nt_probed_ranks_open(struct nt_probed_ranks *ranks);
void nt_probed_ranks_close(struct nt_probed_ranks *ranks);
/* Detaches one that has ended: the hook is called for it. */
void nt_probed_ranks_detach(struct nt_probed_ranks *ranks);

void nt_probed_ranks_stats(const struct nt_probed_ranks *ranks,
			   struct nt_probed_ranks_stats *ret_stats);

#endif
