/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes and owners that made a worker wait, and are left alone for a while: a process after one
 * stall, its owner after NT_QUARANTINE_STRIKES. Each time lasts twice as long as the last, so that
 * what one owner can take from the loop is bounded however many processes it starts.
 *
 * Pure: time is an argument (ns of any clock), and nothing here reads /proc.
 */
#ifndef NT_AGENT_DISCOVER_QUARANTINE_H
#define NT_AGENT_DISCOVER_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

enum {
	/* At the cap one of the owner with the most makes room, the one that is free first. */
	NT_QUARANTINE_PROCESSES = 1024,
	NT_QUARANTINE_OWNERS = 256,
	NT_QUARANTINE_STRIKES = 3,
};

#define NT_QUARANTINE_PROCESS_NS     10000000000ULL /* the first time */
#define NT_QUARANTINE_PROCESS_MAX_NS 600000000000ULL
#define NT_QUARANTINE_OWNER_NS       60000000000ULL
#define NT_QUARANTINE_OWNER_MAX_NS   3600000000000ULL
#define NT_QUARANTINE_FORGET_NS      3600000000000ULL /* strikes without another one */
#define NT_QUARANTINE_SPEND_NS       500000000ULL /* waits that were short, in a minute: a strike */

struct nt_quarantine;

struct nt_quarantine_stats {
	uint64_t processes, owners; /* quarantined now */
	uint64_t strikes, over_cap; /* so far */
	uint64_t lost; /* so far: processes with something postponed that had to make room */
};

NT_MUST_CHECK int nt_quarantine_new(struct nt_quarantine **ret_quarantine);
void nt_quarantine_free(struct nt_quarantine *quarantine);
NT_DEFINE_AUTO(nt_quarantine, nt_quarantine_free)

/* Nothing is in it: the cheap answer to most questions. */
bool nt_quarantine_is_empty(const struct nt_quarantine *quarantine);

/* Is this process left alone, for itself or for its owner? owner 0: not known. */
bool nt_quarantine_holds(const struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			 uint64_t owner, uint64_t now_ns);

/* It stalled a worker. True: its owner is quarantined by that. */
bool nt_quarantine_strike(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			  uint64_t owner, uint64_t now_ns);

/* It made a worker wait, if not for long. As a strike where it is too often. */
bool nt_quarantine_spend(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			 uint64_t owner, uint64_t spent_ns, uint64_t now_ns);

/* Something about it was left undone: it comes back by nt_quarantine_due(). */
void nt_quarantine_postpone(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			    uint64_t owner, uint64_t now_ns);
/* A process whose time is over, and of which something was postponed; each once. False: none. */
bool nt_quarantine_due(struct nt_quarantine *quarantine, uint64_t now_ns, uint32_t *ret_pid,
		       uint64_t *ret_start_ns);

void nt_quarantine_stats(const struct nt_quarantine *quarantine, uint64_t now_ns,
			 struct nt_quarantine_stats *ret_stats);

#endif
