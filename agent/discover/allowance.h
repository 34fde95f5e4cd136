/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Time budgets for reads from processes: a rate for each process and each owner, with a burst. Time
 * spent becomes a debt, which is paid off at the rate; at the limit reads are refused. Reads caused
 * by a process's calls, and the agent's own reads at each window, are separate accounts.
 *
 * Pure: time is an argument (ns of any clock).
 */
#ifndef NT_AGENT_DISCOVER_ALLOWANCE_H
#define NT_AGENT_DISCOVER_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_ALLOWANCE_PROCESSES = 1024, /* with debts; at the cap the smallest debt is dropped */
	NT_ALLOWANCE_OWNERS = 256, /* of each account */
	/* The rate is time / PART. */
	NT_ALLOWANCE_PROCESS_PART = 100, /* 10 ms a second */
	NT_ALLOWANCE_OWNER_PART = 50, /* 20 ms: one process uses at most half */
	NT_ALLOWANCE_WINDOW_PART = 10, /* 100 ms a second: a thousand ranks take 40 */
};

/* Debt limits. */
#define NT_ALLOWANCE_PROCESS_NS 100000000ULL
#define NT_ALLOWANCE_OWNER_NS   400000000ULL /* a few hundred ranks started at once take 100 ms */

enum nt_allowance_account {
	NT_ALLOWANCE_CALLS, /* charged to a process and its owner */
	NT_ALLOWANCE_WINDOWS, /* charged to the owner alone */
};

struct nt_allowance;

NT_MUST_CHECK int nt_allowance_new(struct nt_allowance **ret_allowance);
void nt_allowance_free(struct nt_allowance *allowance);
NT_DEFINE_AUTO(nt_allowance, nt_allowance_free)

/* True if the process may be read. owner 0: not known; all such processes share one account. */
bool nt_allowance_has(const struct nt_allowance *allowance, enum nt_allowance_account account,
		      uint32_t pid, uint64_t start_ns, uint64_t owner, uint64_t now_ns);
void nt_allowance_spend(struct nt_allowance *allowance, enum nt_allowance_account account,
			uint32_t pid, uint64_t start_ns, uint64_t owner, uint64_t spent_ns,
			uint64_t now_ns);

/* Debts so far that were dropped unpaid for want of places. */
uint64_t nt_allowance_over_cap(const struct nt_allowance *allowance);

#endif
