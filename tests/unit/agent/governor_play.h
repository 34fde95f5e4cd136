/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated process under the governor: it calls functions, the governor selects the probes. */
#ifndef NT_TESTS_UNIT_AGENT_GOVERNOR_PLAY_H
#define NT_TESTS_UNIT_AGENT_GOVERNOR_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/governor/governor.h"
#include "agent/probes/probe.h"
#include "common/system/clock.h"

enum {
	PID = 7,
	OTHER = 8,
	TICK_MS = 100,
};

/* A process that calls some functions at constant rates, as seen by the governor. */
struct played {
	struct nt_governor *governor;
	uint64_t now_ns, cpu_ns, observed_ns;
	struct nt_process_counters counters;
	double cpu; /* cores */
	uint64_t events; /* passed to the governor */
	uint64_t owner;
	bool is_rank;
	uint64_t measured, whole_ns;
};

static const struct nt_governor_options options = {
	.budget = 0.01,
	.agent_budget = 10, /* irrelevant here */
	.count_ns = 500,
	.entry_ns = 700,
	.pair_ns = 1000,
};

static inline uint16_t row_of(const char *symbol)
{
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		if (strcmp(nt_probe_row(row)->symbol, symbol) == 0)
			return row;
	fail_msg("the table has no %s", symbol);
	return 0;
}

static inline void begin(struct played *played, const struct nt_governor_options *with)
{
	*played = (struct played){.now_ns = NT_SECOND, .observed_ns = NT_SECOND, .cpu = 1};
	assert_int_equal(nt_governor_new(with, &played->governor), 0);
}

/* Adds one tick's events, scaled by the fraction of time that the plan observes. */
static inline void hit(struct played *played, const char *symbol, double calls)
{
	const struct nt_governor_plan *plan = nt_governor_plan(played->governor, PID);
	uint16_t row = row_of(symbol);
	double share = plan ? plan->permille / 1000.0 : 1;

	if (plan && nt_probe_stays(nt_probe_row(row)))
		share = 1;
	if (plan &&
	    (nt_governor_is_hot(plan, row) || (plan->shed >> nt_probe_row(row)->subject & 1)))
		return;
	nt_governor_meet(played->governor, PID);
	for (double n = 0; n < calls * share; n++)
		(void)nt_governor_hit(played->governor, PID, row);
}

/* Runs so long at `calls` a second of the row, scaled by the observed fraction of time. */
static inline void play(struct played *played, uint32_t pid, const char *symbol, double calls,
			int ms)
{
	uint16_t row = row_of(symbol);
	bool counted = nt_probe_row(row)->counter >= 0 && !nt_probe_row(row)->returns;

	nt_governor_meet(played->governor, pid);
	for (int i = 0; i < ms / TICK_MS; i++) {
		const struct nt_governor_plan *plan = nt_governor_plan(played->governor, pid);
		double share = plan ? plan->permille / 1000.0 : 1;
		uint64_t hits;
		struct nt_governor_sample sample;

		if (plan && (nt_governor_is_hot(plan, row) ||
			     (plan->shed >> nt_probe_row(row)->subject & 1)))
			hits = 0;
		else
			hits = (uint64_t)(calls * share * TICK_MS / 1000);
		if (counted)
			played->counters.calls[nt_probe_row(row)->counter] += hits;
		for (uint64_t n = 0; !counted && n < hits; n++)
			(void)nt_governor_hit(played->governor, pid, row);
		played->events += counted ? 0 : hits;
		played->now_ns += TICK_MS * NT_MILLISECOND;
		played->cpu_ns += (uint64_t)(played->cpu * TICK_MS * NT_MILLISECOND);
		played->observed_ns += (uint64_t)(share * TICK_MS * NT_MILLISECOND);
		sample = (struct nt_governor_sample){
			.now_ns = played->now_ns,
			.cpu_ns = played->cpu_ns,
			.observed_ns = played->observed_ns,
			.owner = played->owner,
			.is_rank = played->is_rank,
			.measured = played->measured,
			.whole_ns = played->whole_ns,
			.counters = &played->counters,
		};
		(void)nt_governor_sample(played->governor, pid, &sample);
	}
}

static inline const struct nt_governor_plan *plan_of(const struct played *played)
{
	const struct nt_governor_plan *plan = nt_governor_plan(played->governor, PID);

	assert_non_null(plan);
	return plan;
}

#endif
