/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Synchronous reads from other processes: memory, environment, I/O counters. A worker does each
 * read while the loop waits. A worker that blocks for longer than NT_PROCESS_READER_STALL_NS is
 * killed, and the process is quarantined. Processes and owners have an allowance of the loop's time
 * (agent/discover/allowance.h).
 *
 * Errors: -ETIMEDOUT: a stall; -EBUSY: the process is quarantined, its allowance is spent, or no
 * worker is available; else those of the system call.
 */
#ifndef NT_AGENT_DISCOVER_PROCESS_READER_H
#define NT_AGENT_DISCOVER_PROCESS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/discover/quarantine.h"
#include "agent/discover/worker.h"
#include "agent/host/memory.h"
#include "agent/identity/environ.h"
#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

#define NT_PROCESS_READER_STALL_NS 200000000ULL
#define NT_PROCESS_READER_BUSY_NS  1000000000ULL /* timeout of a worker that gets no processor */
/* for so long a pid is assumed to be the same process */
#define NT_PROCESS_READER_KNOWN_NS 100000000ULL

struct nt_process_reader;

struct nt_process_reader_hooks {
	/* A read stalled. owner.id 0: not known. held: its owner is quarantined now. */
	void (*stalled)(void *data, uint32_t pid, const struct nt_owner *owner, bool held);
	void *data;
};

struct nt_process_reader_stats {
	uint64_t stalled; /* reads that timed out */
	uint64_t refused; /* reads refused by quarantine, or for want of a worker */
	uint64_t over_allowance; /* reads refused because the allowance was spent */
	uint64_t debts_over_cap; /* as of nt_allowance_over_cap() */
};

/* workers and quarantine are borrowed. */
NT_MUST_CHECK int nt_process_reader_new(struct nt_workers *workers,
					struct nt_quarantine *quarantine,
					const struct nt_process_reader_hooks *hooks,
					struct nt_process_reader **ret_reader);
void nt_process_reader_free(struct nt_process_reader *reader);
NT_DEFINE_AUTO(nt_process_reader, nt_process_reader_free)

/* A memory reader; it borrows the reader. */
struct nt_memory nt_process_reader_memory(struct nt_process_reader *reader);
NT_MUST_CHECK int nt_process_reader_environ(struct nt_process_reader *reader, uint32_t pid,
					    struct nt_environ *ret_environ);
/* Reads /proc/PID/task/TID/io, at most size bytes; returns the length. */
NT_MUST_CHECK ssize_t nt_process_reader_io(struct nt_process_reader *reader, uint32_t pid,
					   uint32_t tid, char *text, size_t size);

void nt_process_reader_stats(const struct nt_process_reader *reader,
			     struct nt_process_reader_stats *ret_stats);

#endif
