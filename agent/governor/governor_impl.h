/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The governor's state; for agent/governor/governor*.c alone. */
#ifndef NT_AGENT_GOVERNOR_GOVERNOR_IMPL_H
#define NT_AGENT_GOVERNOR_GOVERNOR_IMPL_H

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/governor/governor.h"
#include "common/system/clock.h"

#define NT_GOVERNOR_CALM      0.5 /* of the budget */
#define NT_GOVERNOR_AIM       0.7 /* of the budget: target of shedding */
#define NT_GOVERNOR_PERIOD_NS (2 * NT_SECOND)
#define NT_GOVERNOR_WHOLE_KEEP_NS                                                                  \
	(2 * NT_MINUTE) /* a step's length stays valid this long after a sample */
#define NT_GOVERNOR_QUIET_LEAST_NS (200 * NT_MILLISECOND) /* without a call */

struct nt_governed {
	uint32_t pid;
	bool is_lost;
	bool started; /* it was sampled before */
	uint64_t owner;
	uint64_t unsampled_ns; /* since the last sample, counted by balances */
	uint64_t sampled_ns, cpu_ns, observed_ns; /* as of the last sample */
	uint64_t calls[NT_COUNTER_END];
	uint32_t unseen[NT_ROWS_MAX];
	uint32_t hits[NT_ROWS_MAX]; /* events since the last sample */
	uint32_t others; /* events whose hits are in unseen, since the last sample */
	uint32_t looked[NT_ROWS_MAX]; /* of hot rows since the last look */
	float cost[NT_ROWS_MAX]; /* smoothed, while observed */
	float counted[NT_COUNTER_END]; /* the same for calls that are only counted */
	double cpu; /* cores, smoothed */
	double events; /* per second while observed, smoothed */
	uint64_t spent, spent_ns; /* events handled since the last balance, and the time for it */
	double event_ns; /* agent's cost per event, smoothed; 0: not known */
	uint8_t balances; /* so far, up to the first few */
	/* Observed part of the time: by its own budget, by the agent's, and in effect. */
	double own_permille, event_permille;
	uint32_t duty;
	uint64_t quiet_ns; /* observed since the last hit … */
	uint64_t quiet_least_ns; /* … the process is quiet from this on */
	bool is_rank;
	uint64_t whole_ns, whole_seen_ns; /* last sampled, and when */
	uint64_t measured, measured_before; /* steps */
	/* time of the last one, or when the period was lengthened for want of one */
	uint64_t measured_ns;
	uint64_t least_period_ns,
		lengthened_ns; /* since shorter ones measured none; and since when */
	uint64_t calm_since_ns; /* 0: it is not calm */
	uint64_t shed_since_ns; /* since when `shed` is as it is */
	struct nt_governor_plan plan;
	UT_hash_handle hh;
};

struct nt_governor {
	struct nt_governor_options options;
	struct nt_governed *process; /* uthash, owned */
	uint64_t events; /* of all processes, since the last balance */
	uint64_t decisions, over_cap;
};

/* The time since the last sample, and the weights of rates over it. */
struct nt_governor_span {
	double elapsed_ns, observed_ns;
	double weight, observed_weight; /* up to 1 */
};

void nt_governor_drop(struct nt_governor *governor, struct nt_governed *process);

/* agent/governor/governor_rate.c: the cost of one hit of the row, in ns. */
double nt_governor_cost_of(const struct nt_governor *governor, uint16_t row);
/* True if the row's calls are only counted. */
bool nt_governor_is_counted(uint16_t row);
bool nt_governor_is_counter_shed(const struct nt_governed *process, int counter);
/* The hits of a row since the last sample: its events, and those without one. */
uint64_t nt_governor_hits_of(const struct nt_governed *process,
			     const struct nt_process_counters *counters, uint16_t row);
/* Calls since the last call of this function. counters: NULL is none. */
uint64_t nt_governor_take_calls(struct nt_governed *process,
				const struct nt_process_counters *counters, int counter);
/*
 * Updates the costs of event rows and counters. Hits of NT_COUNTER_SYNC are the unseen hits of
 * rows. True: there were calls.
 */
bool nt_governor_take_rates(struct nt_governor *governor, struct nt_governed *process,
			    const struct nt_process_counters *counters,
			    const struct nt_governor_span *span);

/* agent/governor/governor_decision.c */
struct nt_governor_demand {
	double stays, rest; /* costs of what is neither hot nor shed */
	double of[NT_SUBJECT_END]; /* of the rest */
};

/* The demand without the subjects in `shed` (bits). */
struct nt_governor_demand nt_governor_find_demand(const struct nt_governed *process, uint32_t shed);
/* True if a slice, or two short ones, had no call: the process hangs or is idle. */
bool nt_governor_is_quiet(const struct nt_governed *process);
/* To be called on calls: ends a quiet time. */
void nt_governor_go_on(struct nt_governed *process);
void nt_governor_set_hot(struct nt_governed *process, uint16_t row, bool hot);
/* Computes the plan. budget: cores. */
void nt_governor_decide(struct nt_governed *process, double budget, uint64_t now_ns);

#endif
