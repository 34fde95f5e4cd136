/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The quarantine: processes and owners that stalled a worker and are not inspected for a while. A
 * process is quarantined after one stall, its owner after NT_QUARANTINE_STRIKES. Each term is twice
 * as long as the last, which bounds the time that one owner can take, however many processes it
 * starts.
 *
 * Pure: time is an argument (ns of any clock), and /proc is not read.
 */
#ifndef NT_AGENT_DISCOVER_QUARANTINE_H
#define NT_AGENT_DISCOVER_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

enum {
	/* At the cap the largest owner's entry that is released first is evicted. */
	NT_QUARANTINE_PROCESSES = 1024,
	NT_QUARANTINE_OWNERS = 256,
	NT_QUARANTINE_STRIKES = 3,
};

#define NT_QUARANTINE_PROCESS_NS     10000000000ULL /* the first term */
#define NT_QUARANTINE_PROCESS_MAX_NS 600000000000ULL
#define NT_QUARANTINE_OWNER_NS       60000000000ULL
#define NT_QUARANTINE_OWNER_MAX_NS   3600000000000ULL
#define NT_QUARANTINE_FORGET_NS      3600000000000ULL /* strikes expire after this */
#define NT_QUARANTINE_SPEND_NS       500000000ULL /* sum of short waits in a minute: a strike */

struct nt_quarantine;

struct nt_quarantine_stats {
	uint64_t processes, owners; /* quarantined now */
	uint64_t strikes, over_cap; /* so far */
	uint64_t lost; /* so far: evicted processes with postponed work */
};

NT_MUST_CHECK int nt_quarantine_new(struct nt_quarantine **ret_quarantine);
void nt_quarantine_free(struct nt_quarantine *quarantine);
NT_DEFINE_AUTO(nt_quarantine, nt_quarantine_free)

/* A fast check: true if nothing is quarantined. */
bool nt_quarantine_is_empty(const struct nt_quarantine *quarantine);

/* True if this process or its owner is quarantined. owner 0: not known. */
bool nt_quarantine_holds(const struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			 uint64_t owner, uint64_t now_ns);

/* Records a stall. True: its owner is quarantined by that. */
bool nt_quarantine_strike(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			  uint64_t owner, uint64_t now_ns);

/* Records a short wait. Too many of them count as a strike. */
bool nt_quarantine_spend(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			 uint64_t owner, uint64_t spent_ns, uint64_t now_ns);

/* Records postponed work: nt_quarantine_due() returns the process later. */
void nt_quarantine_postpone(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			    uint64_t owner, uint64_t now_ns);
/* Takes a process whose term is over and that has postponed work; each once. False: none. */
bool nt_quarantine_due(struct nt_quarantine *quarantine, uint64_t now_ns, uint32_t *ret_pid,
		       uint64_t *ret_start_ns);

void nt_quarantine_stats(const struct nt_quarantine *quarantine, uint64_t now_ns,
			 struct nt_quarantine_stats *ret_stats);

#endif
