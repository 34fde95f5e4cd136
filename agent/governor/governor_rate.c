/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cost of a process's calls, as shares of one core: rates of hits and counted calls, smoothed.
 */
#include "agent/governor/governor_impl.h"

#include "agent/probes/link_set.h"

double nt_governor_cost_of(const struct nt_governor *governor, uint16_t row)
{
	switch (nt_probe_target_kind_of(nt_probe_row(row))) {
	case NT_PROBE_TARGET_COUNT:
		return (double)governor->options.count_ns;
	case NT_PROBE_TARGET_ENTRY:
		return (double)governor->options.entry_ns;
	default:
		return (double)governor->options.pair_ns;
	}
}

bool nt_governor_is_counted(uint16_t row)
{
	return nt_probe_target_kind_of(nt_probe_row(row)) == NT_PROBE_TARGET_COUNT;
}

bool nt_governor_is_counter_shed(const struct nt_governed *process, int counter)
{
	static const enum nt_subject subjects[NT_COUNTER_END] = {
		[NT_COUNTER_LAUNCH] = NT_SUBJECT_LAUNCH,
		[NT_COUNTER_COPY] = NT_SUBJECT_COPY,
		[NT_COUNTER_ALLOC] = NT_SUBJECT_ALLOC,
		[NT_COUNTER_FREE] = NT_SUBJECT_ALLOC,
		[NT_COUNTER_SYNC] = NT_SUBJECT_SYNC,
		[NT_COUNTER_DRIVER_LAUNCH] = NT_SUBJECT_DRIVER,
		[NT_COUNTER_DRIVER_COPY] = NT_SUBJECT_DRIVER,
		[NT_COUNTER_DRIVER_ALLOC] = NT_SUBJECT_ALLOC,
		[NT_COUNTER_GC] = NT_SUBJECT_GC,
	};

	return process->plan.shed >> subjects[counter] & 1;
}

static void smooth(float *value, double now, double weight)
{
	*value = (float)((double)*value + (now - (double)*value) * weight);
}

/* The hits of a row since the last sample: its events, and those without one. */
uint64_t nt_governor_hits_of(const struct nt_governed *process,
			     const struct nt_process_counters *counters, uint16_t row)
{
	uint64_t hits = process->hits[row];

	if (counters)
		hits += (uint32_t)(counters->unseen[row] - process->unseen[row]);
	return hits;
}

static uint64_t take_hits(struct nt_governed *process, const struct nt_process_counters *counters,
			  uint16_t row)
{
	uint64_t hits = nt_governor_hits_of(process, counters, row);

	process->hits[row] = 0;
	if (counters)
		process->unseen[row] = counters->unseen[row];
	return hits;
}

uint64_t nt_governor_take_calls(struct nt_governed *process,
				const struct nt_process_counters *counters, int counter)
{
	uint64_t calls = 0;

	if (!counters)
		return 0;
	if (counters->calls[counter] > process->calls[counter])
		calls = counters->calls[counter] - process->calls[counter];
	process->calls[counter] = counters->calls[counter];
	return calls;
}

/* True if the row is detached: its cost is kept from before. */
static bool is_detached(const struct nt_governed *process, uint16_t row)
{
	return nt_governor_is_hot(&process->plan, row) ||
	       (process->plan.shed >> nt_probe_row(row)->subject & 1);
}

/*
 * Of event rows; those of counters are in `counted`. Hits of NT_COUNTER_SYNC are the unseen hits of
 * rows. True: there were calls.
 */
bool nt_governor_take_rates(struct nt_governor *governor, struct nt_governed *process,
			    const struct nt_process_counters *counters,
			    const struct nt_governor_span *span)
{
	uint16_t rows = nt_probe_rows();
	double events = process->others;
	bool called = false;

	process->others = 0;
	for (uint16_t row = 0; row < rows && row < NT_ROWS_MAX; row++) {
		uint64_t seen = process->hits[row];
		uint64_t hits = take_hits(process, counters, row);
		bool stays = nt_probe_stays(nt_probe_row(row));
		double time_ns = stays ? span->elapsed_ns : span->observed_ns;

		if (time_ns <= 0 || is_detached(process, row))
			continue;
		called |= hits > 0;
		if (hits || process->cost[row] > 0)
			smooth(&process->cost[row],
			       (double)hits * nt_governor_cost_of(governor, row) / time_ns,
			       stays ? span->weight : span->observed_weight);
		events += (double)seen;
	}
	for (int i = 0; i < NT_COUNTER_END; i++) {
		uint64_t calls = nt_governor_take_calls(process, counters, i);

		if (span->observed_ns <= 0 || i == NT_COUNTER_SYNC || i == NT_COUNTER_GC ||
		    nt_governor_is_counter_shed(process, i))
			continue;
		called |= calls > 0;
		smooth(&process->counted[i],
		       (double)calls * (double)governor->options.count_ns / span->observed_ns,
		       span->observed_weight);
	}
	if (span->observed_ns > 0)
		process->events += (events / span->observed_ns * 1e9 - process->events) *
				   span->observed_weight;
	return called;
}
