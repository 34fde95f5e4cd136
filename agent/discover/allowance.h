/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The time of the loop that reading from processes may take: so much a second for each process and for
 * each owner, and some in advance. What is spent is a debt, which time pays off; at its limit there is
 * nothing to spend until some of it is paid. What a process's calls cause, and what the agent
 * reads of its own accord at each window, are separate accounts.
 *
 * Pure: time is an argument (ns of any clock).
 */
#ifndef NT_AGENT_DISCOVER_ALLOWANCE_H
#define NT_AGENT_DISCOVER_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_ALLOWANCE_PROCESSES = 1024, /* with debts; at the cap the one with the least goes */
	NT_ALLOWANCE_OWNERS = 256, /* of each account */
	/* One so-manyth of the time that passes. */
	NT_ALLOWANCE_PROCESS_PART = 100, /* 10 ms a second */
	NT_ALLOWANCE_OWNER_PART = 50, /* 20 ms: one process leaves half to the others */
	NT_ALLOWANCE_WINDOW_PART = 10, /* 100 ms: a thousand ranks take 40 */
};

/* The highest debts. */
#define NT_ALLOWANCE_PROCESS_NS 100000000ULL
#define NT_ALLOWANCE_OWNER_NS   400000000ULL /* some hundred ranks that start together take 100 ms */

enum nt_allowance_account {
	NT_ALLOWANCE_CALLS, /* of a process and of its owner */
	NT_ALLOWANCE_WINDOWS, /* of the owner alone */
};

struct nt_allowance;

NT_MUST_CHECK int nt_allowance_new(struct nt_allowance **ret_allowance);
void nt_allowance_free(struct nt_allowance *allowance);
NT_DEFINE_AUTO(nt_allowance, nt_allowance_free)

/* May more be spent on this process? owner 0: not known, and all of those are one. */
bool nt_allowance_has(const struct nt_allowance *allowance, enum nt_allowance_account account,
		      uint32_t pid, uint64_t start_ns, uint64_t owner, uint64_t now_ns);
void nt_allowance_spend(struct nt_allowance *allowance, enum nt_allowance_account account,
			uint32_t pid, uint64_t start_ns, uint64_t owner, uint64_t spent_ns,
			uint64_t now_ns);

/* Debts so far that were forgotten before they were paid: their places were needed. */
uint64_t nt_allowance_over_cap(const struct nt_allowance *allowance);

#endif
