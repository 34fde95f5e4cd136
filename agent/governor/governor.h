/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The governor: keeps what probes cost a traced process under a budget, by deciding what of it is
 * observed. It has no clock and makes no system call; agent/governor/own_links.h carries out what it decides.
 *
 * The cost of a process is the sum over its functions of hits × the cost of a hit, as measured on this
 * host, divided by the time in which they were observed. The budget is a share of the processor time
 * of the process, or of one core where it uses less: a process that sleeps is slowed by what its calls
 * cost of the time that passes. What exceeds the budget is shed in this order:
 *
 * 1. A function that alone would exceed the budget in the shortest slice is *hot*: it is detached, and
 *    looked at again for 10 ms every 10 s.
 * 2. All other functions but those that stay (nt_probe_stays()) are observed in *slices*: at the start
 *    of each period of the real time, so that the ranks of a job are observed at the same time. The
 *    period of a rank is so long that whole steps lie within a slice.
 * 3. Where even the shortest slice costs too much, whole subjects are shed, the least useful first:
 *    allocations, copies, the order of streams, launches, synchronising calls. The same, but for
 *    synchronising calls, where otherwise no whole step would lie within the longest slice.
 *
 * The events of all processes together have a budget too, of the agent's own processor time. It is
 * divided by water-filling, among owners first and then among the processes of each: what asks for the
 * most is limited first.
 */
#ifndef NT_AGENT_GOVERNOR_GOVERNOR_H
#define NT_AGENT_GOVERNOR_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probes/probe.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"

enum {
	NT_GOVERNOR_PROCESSES = 8192, /* beyond that a process is not governed, and counted */
	NT_GOVERNOR_WHOLE = 1000, /* permille: observed all the time */
};

struct nt_governor_options {
	double budget; /* of the processor time of a process: 0.01 is 1 % */
	double agent_budget; /* of one core, for handling the events of all processes; 0: no limit */
	uint64_t count_ns, entry_ns, pair_ns; /* what a hit costs, by nt_probe_target_kind */
};

/* What is observed of a process. */
struct nt_governor_plan {
	bool governed; /* something is shed */
	uint32_t permille; /* of the time that is observed: NT_GOVERNOR_WHOLE, or the slices */
	uint64_t period_ns; /* of the slices */
	uint32_t shed; /* bits of enum nt_subject that are not observed at all */
	uint32_t hot_count;
	uint64_t hot[NT_ROWS_MAX / 64]; /* bits of rows that are not observed but for looks */
	uint64_t version; /* changes with `shed` and `hot` */
};

static inline bool nt_governor_is_hot(const struct nt_governor_plan *plan, uint16_t row)
{
	return row < NT_ROWS_MAX && (plan->hot[row / 64] >> row % 64 & 1);
}

/* Totals of a process at one instant. */
struct nt_governor_sample {
	uint64_t now_ns; /* boot time */
	uint64_t cpu_ns; /* of the process so far */
	uint64_t observed_ns; /* boot time in which it was observed so far */
	uint64_t owner; /* id of struct nt_owner; 0: not known, which is one owner */
	bool is_rank; /* it makes steps, which are to be measured */
	uint64_t measured; /* steps so far */
	uint64_t whole_ns; /* observed for so long at a time, its steps can be; 0: not known */
	const struct nt_process_counters *counters; /* NULL: none */
};

struct nt_governor_stats {
	uint64_t governed, sliced, hot_functions, shed_subjects; /* now */
	uint64_t decisions; /* plans that changed, so far */
	uint64_t over_cap;
};

struct nt_governor;

NT_MUST_CHECK int nt_governor_new(const struct nt_governor_options *options,
				  struct nt_governor **ret_governor);
void nt_governor_free(struct nt_governor *governor);
NT_DEFINE_AUTO(nt_governor, nt_governor_free)

/*
 * The process is governed from now on, until nt_governor_end() or until it was not sampled for a
 * minute. Not beyond the cap, nor without memory.
 */
void nt_governor_meet(struct nt_governor *governor, uint32_t pid);
/* An event of the row has come. False: the process is not known, and the event counts as the agent's. */
bool nt_governor_hit(struct nt_governor *governor, uint32_t pid, uint16_t row);
/* Handling an event of the process took the agent so long. Without this, events of all cost the same. */
void nt_governor_spend(struct nt_governor *governor, uint32_t pid, uint64_t ns);
/*
 * Accounts for the time since the last sample; a sample less than 50 ms after another is passed over.
 * True: the plan of the process has changed. False as well where the process is not known.
 */
bool nt_governor_sample(struct nt_governor *governor, uint32_t pid,
			const struct nt_governor_sample *sample);
/* A look at the hot functions took so long; all its hits have been given. True: as above. */
bool nt_governor_looked(struct nt_governor *governor, uint32_t pid, uint64_t look_ns,
			const struct nt_process_counters *counters);
/*
 * Once a second: event_ns is the agent's processor time for the events since the last time. Forgets
 * processes that were not sampled for a minute.
 */
void nt_governor_balance(struct nt_governor *governor, uint64_t event_ns, uint64_t elapsed_ns);
void nt_governor_end(struct nt_governor *governor, uint32_t pid);

/* NULL: the process is not known, and all of it is observed. */
const struct nt_governor_plan *nt_governor_plan(const struct nt_governor *governor, uint32_t pid);

void nt_governor_stats(const struct nt_governor *governor, struct nt_governor_stats *ret_stats);

#endif
