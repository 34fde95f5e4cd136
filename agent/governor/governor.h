/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The governor: decides what is observed of a process, to keep the cost of its probes within a
 * budget. It has no clock and makes no system call; agent/governor/own_links.h applies its plans.
 *
 * The cost of a process is the sum over its functions of hits × the cost of a hit, divided by the
 * time observed. Hit costs are measured on this host. The budget is a share of the processor time
 * of the process, or of one core if it uses less. A process that sleeps is slowed in proportion to
 * the time that passes. Excess cost is shed in this order:
 *
 * 1. A function that alone takes half of the budget in the shortest slice is *hot*. It is detached,
 *    and attached again for 10 ms every 10 s (a *look*).
 * 2. All other functions except staying ones (nt_probe_stays()) are observed in *slices*. A slice
 *    lies at the start of each period of the real time, so that the ranks of a job are observed
 *    together. A rank's period is chosen so that whole steps fit into a slice.
 * 3. If even the shortest slice costs too much, whole subjects are shed, the least useful first.
 *    Their order is allocations, copies, the order of streams, launches, driver, synchronising
 *    calls. The same subjects except synchronising calls are shed if no whole step would fit into
 *    the longest slice.
 *
 * The agent's own processor time for the events of all processes has a budget too. It is divided by
 * water-filling, among owners first and then among the processes of each: the largest claims are
 * limited first.
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
	NT_GOVERNOR_PROCESSES = 8192, /* further processes are not governed, and counted */
	NT_GOVERNOR_WHOLE = 1000, /* permille: always observed */
};

struct nt_governor_options {
	double budget; /* of the processor time of a process: 0.01 is 1 % */
	double agent_budget; /* of one core, to handle the events of all processes; 0: no limit */
	uint64_t count_ns, entry_ns, pair_ns; /* cost of a hit, by nt_probe_target_kind */
};

/* The plan of a process: what of it is observed. */
struct nt_governor_plan {
	bool governed; /* something is shed */
	uint32_t permille; /* observed part of the time: NT_GOVERNOR_WHOLE, or the slices */
	uint64_t period_ns; /* of the slices */
	uint32_t shed; /* bits of enum nt_subject that are not observed at all */
	uint32_t hot_count;
	uint64_t hot[(NT_ROWS_MAX + 63) / 64]; /* bits of rows that are observed in looks alone */
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
	uint64_t owner; /* id of struct nt_owner; 0: not known, treated as one owner */
	bool is_rank; /* it makes steps, which should be measured */
	uint64_t measured; /* steps so far */
	uint64_t whole_ns; /* shortest slice that contains a whole step; 0: not known */
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
 * Adds a process. It is governed until nt_governor_end(), or until it was not sampled for a minute.
 * No effect at the cap or without memory.
 */
void nt_governor_meet(struct nt_governor *governor, uint32_t pid);
/*
 * Counts an event of the row. False: the process is not known, and only the agent's total counts
 * it.
 */
bool nt_governor_hit(struct nt_governor *governor, uint32_t pid, uint16_t row);
/* Counts an event whose hit the kernel side counts as unseen: a verb. False: as above. */
bool nt_governor_event(struct nt_governor *governor, uint32_t pid);
/*
 * Adds the time that the agent took to handle an event of the process. Without it all events cost
 * the same.
 */
void nt_governor_spend(struct nt_governor *governor, uint32_t pid, uint64_t ns);
/*
 * Accounts for the time since the last sample. A sample less than 50 ms after another is ignored.
 * True: the plan of the process has changed. False also if the process is not known.
 */
bool nt_governor_sample(struct nt_governor *governor, uint32_t pid,
			const struct nt_governor_sample *sample);
/* Accounts for a look of look_ns, after all its hits. True: as above. */
bool nt_governor_looked(struct nt_governor *governor, uint32_t pid, uint64_t look_ns,
			const struct nt_process_counters *counters);
/*
 * To be called once a second: event_ns is the agent's processor time for the events since the last
 * call. Removes processes that were not sampled for a minute.
 */
void nt_governor_budget(struct nt_governor *governor, uint64_t event_ns, uint64_t elapsed_ns);
void nt_governor_end(struct nt_governor *governor, uint32_t pid);

/*
 * Sampled calls at level L1 are the first that the budget sheds: they get what the rest leaves of it.
 * Returns the part of `wanted` calls a second that it allows, 0 to 1. look_ns: what each counted call
 * costs more while any are sampled; detail_ns: what a sampled one costs more.
 */
double nt_governor_detail_share(const struct nt_governor *governor, uint32_t pid, double wanted,
				uint64_t look_ns, uint64_t detail_ns);

/* NULL: the process is not known, and all of it is observed. */
const struct nt_governor_plan *nt_governor_plan(const struct nt_governor *governor, uint32_t pid);

void nt_governor_stats(const struct nt_governor *governor, struct nt_governor_stats *ret_stats);

#endif
