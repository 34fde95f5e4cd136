/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Small reads from processes that the loop waits for, since what it does next depends on them: memory,
 * environment, counters of I/O. Each is done by a worker; one that waits for longer than
 * NT_REMOTE_STALL_NS is killed, and the process is quarantined. Process and owner have an allowance
 * (agent/discover/allowance.h) of the time that the loop spends here.
 *
 * Errors: -ETIMEDOUT for a stall, -EBUSY where the process is quarantined, its allowance is spent or no
 * worker can be had, else as the system call says.
 */
#ifndef NT_AGENT_DISCOVER_REMOTE_H
#define NT_AGENT_DISCOVER_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/discover/quarantine.h"
#include "agent/discover/worker.h"
#include "agent/host/memory.h"
#include "agent/identity/environ.h"
#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

#define NT_REMOTE_STALL_NS 200000000ULL
#define NT_REMOTE_BUSY_NS  1000000000ULL /* for a worker that gets no processor */
#define NT_REMOTE_KNOWN_NS 100000000ULL /* a process is believed to be the same for so long */

struct nt_remote;

struct nt_remote_hooks {
	/* A read has stalled. owner.id 0: not known. held: and its owner is quarantined now. */
	void (*stalled)(void *data, uint32_t pid, const struct nt_owner *owner, bool held);
	void *data;
};

struct nt_remote_stats {
	uint64_t stalled; /* reads that were given up */
	uint64_t refused; /* reads of those in quarantine, and without a worker */
	uint64_t over_allowance; /* reads that were not tried, since the allowance was spent */
	uint64_t debts_over_cap; /* as of nt_allowance_over_cap() */
};

/* workers and quarantine are borrowed. */
NT_MUST_CHECK int nt_remote_new(struct nt_workers *workers, struct nt_quarantine *quarantine,
				const struct nt_remote_hooks *hooks, struct nt_remote **ret_remote);
void nt_remote_free(struct nt_remote *remote);
NT_DEFINE_AUTO(nt_remote, nt_remote_free)

/* A reader of memory that borrows the remote. */
struct nt_memory nt_remote_memory(struct nt_remote *remote);
NT_MUST_CHECK int nt_remote_environ(struct nt_remote *remote, uint32_t pid,
				    struct nt_environ *ret_environ);
/* The text of /proc/PID/task/TID/io, of which the length is returned: at most size bytes. */
NT_MUST_CHECK ssize_t nt_remote_io(struct nt_remote *remote, uint32_t pid, uint32_t tid, char *text,
				   size_t size);

void nt_remote_stats(const struct nt_remote *remote, struct nt_remote_stats *ret_stats);

#endif
