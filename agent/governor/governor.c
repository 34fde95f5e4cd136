/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/governor/governor_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/system/clock.h"

#define SAMPLE_MIN_NS  (50 * NT_MILLISECOND)
#define SMOOTH_NS      (500 * NT_MILLISECOND) /* shorter peaks are bursts */
#define SMOOTH_MOST_NS (2 * NT_SECOND) /* the same for a rank with long steps */
#define BURST_NS       (250.0 * NT_MILLISECOND) /* a burst's cost is averaged over at least this */

enum {
	LOOK_FEW = 50, /* hits in a look: 5,000 a second are few */
};

/* Costs are shares of one core. */

/* A process that mostly sleeps is slowed in proportion to the time that passes. */
static const double cpu_least = 1; /* least number of cores that the budget is a share of */
static const double observed_times = 5; /* what the observed time stands for at most */
static const double burst_times = 20; /* a burst over this many budgets counts at once */

int nt_governor_new(const struct nt_governor_options *options, struct nt_governor **ret_governor)
{
	struct nt_governor *governor = calloc(1, sizeof(*governor));

	if (!governor)
		return -ENOMEM;
	governor->options = *options;
	*ret_governor = governor;
	return 0;
}

void nt_governor_drop(struct nt_governor *governor, struct nt_governed *process)
{
	HASH_DEL(governor->process, process);
	free(process);
}

void nt_governor_free(struct nt_governor *governor)
{
	struct nt_governed *process, *next;

	if (!governor)
		return;
	HASH_ITER(hh, governor->process, process, next)
	nt_governor_drop(governor, process);
	free(governor);
}

static struct nt_governed *find(const struct nt_governor *governor, uint32_t pid)
{
	struct nt_governed *process = NULL;

	HASH_FIND(hh, governor->process, &pid, sizeof(pid), process);
	return process;
}

void nt_governor_meet(struct nt_governor *governor, uint32_t pid)
{
	struct nt_governed *process;

	if (find(governor, pid))
		return;
	if (HASH_COUNT(governor->process) >= NT_GOVERNOR_PROCESSES) {
		governor->over_cap++;
		return;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return;
	process->pid = pid;
	process->plan.permille = process->duty = NT_GOVERNOR_WHOLE;
	process->plan.period_ns = NT_GOVERNOR_PERIOD_NS;
	process->own_permille = process->event_permille = NT_GOVERNOR_WHOLE;
	process->quiet_least_ns = NT_GOVERNOR_QUIET_LEAST_NS;
	HASH_ADD(hh, governor->process, pid, sizeof(process->pid), process);
	if (process->is_lost)
		free(process);
}

void nt_governor_end(struct nt_governor *governor, uint32_t pid)
{
	struct nt_governed *process = find(governor, pid);

	if (process)
		nt_governor_drop(governor, process);
}

bool nt_governor_hit(struct nt_governor *governor, uint32_t pid, uint16_t row)
{
	struct nt_governed *process = find(governor, pid);

	governor->events++;
	if (!process)
		return false;
	if (row >= NT_ROWS_MAX)
		return true;
	if (nt_governor_is_hot(&process->plan, row))
		process->looked[row]++;
	else
		process->hits[row]++;
	return true;
}

bool nt_governor_event(struct nt_governor *governor, uint32_t pid)
{
	struct nt_governed *process = find(governor, pid);

	governor->events++;
	if (process)
		process->others++;
	return process != NULL;
}

/* ---- samples --------------------------------------------------------------------------------- */

static double budget_of(const struct nt_governor *governor, const struct nt_governed *process)
{
	return governor->options.budget * (process->cpu > cpu_least ? process->cpu : cpu_least);
}

static bool has_changed(struct nt_governor *governor, const struct nt_governor_plan *before,
			const struct nt_governor_plan *now)
{
	bool changed = before->version != now->version || before->governed != now->governed ||
		       before->permille != now->permille || before->period_ns != now->period_ns;

	governor->decisions += changed;
	return changed;
}

/* A step's length may not be found in every slice: it is kept for a while. */
static void take_steps(struct nt_governed *process, const struct nt_governor_sample *sample)
{
	process->is_rank = sample->is_rank;
	process->measured = sample->measured;
	if (sample->whole_ns) {
		process->whole_ns = sample->whole_ns;
		process->whole_seen_ns = sample->now_ns;
	} else if (!sample->is_rank ||
		   sample->now_ns - process->whole_seen_ns >= NT_GOVERNOR_WHOLE_KEEP_NS) {
		process->whole_ns = 0;
	}
}

/* Calls of a rank come in bursts, once a step. */
static double smooth_of(const struct nt_governed *process)
{
	uint64_t ns = process->whole_ns / 2;

	if (process->is_rank && !process->whole_ns)
		ns = 2 * SMOOTH_NS;
	if (ns > SMOOTH_MOST_NS)
		ns = SMOOTH_MOST_NS;
	return (double)(ns > SMOOTH_NS ? ns : SMOOTH_NS);
}

static double weight_of(const struct nt_governed *process, double ns)
{
	double smooth_ns = smooth_of(process);

	return ns < smooth_ns ? ns / smooth_ns : 1;
}

/*
 * Of rates over the observed time: the first milliseconds of a slice may hold a burst, and prove
 * little.
 */
static double observed_weight_of(const struct nt_governed *process,
				 const struct nt_governor_span *span)
{
	double ns = span->observed_ns * observed_times;

	return weight_of(process, ns < span->elapsed_ns ? ns : span->elapsed_ns);
}

/* The cost of all calls since the last sample, in ns. */
static double cost_since(const struct nt_governor *governor, const struct nt_governed *process,
			 const struct nt_process_counters *counters)
{
	double cost_ns = 0;

	for (uint16_t row = 0; row < nt_probe_rows() && row < NT_ROWS_MAX; row++)
		cost_ns += (double)nt_governor_hits_of(process, counters, row) *
			   nt_governor_cost_of(governor, row);
	for (int i = 0; counters && i < NT_COUNTER_END; i++)
		if (i != NT_COUNTER_SYNC && i != NT_COUNTER_GC)
			cost_ns += (double)(counters->calls[i] - process->calls[i]) *
				   (double)governor->options.count_ns;
	return cost_ns;
}

/* Costs far over the budget are not smoothed. */
static bool is_burst(const struct nt_governor *governor, const struct nt_governed *process,
		     const struct nt_process_counters *counters, double observed_ns)
{
	double most_ns = (observed_ns > BURST_NS ? observed_ns : BURST_NS) *
			 budget_of(governor, process) * burst_times;

	return observed_ns > 0 && cost_since(governor, process, counters) > most_ns;
}

bool nt_governor_sample(struct nt_governor *governor, uint32_t pid,
			const struct nt_governor_sample *sample)
{
	struct nt_governed *process = find(governor, pid);
	struct nt_governor_plan before;
	struct nt_governor_span span = {0};
	double cpu = 0;
	bool first;

	if (!process)
		return false;
	if (process->started && sample->now_ns < process->sampled_ns + SAMPLE_MIN_NS)
		return false;
	before = process->plan;
	first = !process->started;
	if (!first) {
		span.elapsed_ns = (double)(sample->now_ns - process->sampled_ns);
		span.observed_ns = (double)(sample->observed_ns - process->observed_ns);
		cpu = (double)(sample->cpu_ns - process->cpu_ns) / span.elapsed_ns;
	}
	span.weight = weight_of(process, span.elapsed_ns);
	span.observed_weight = observed_weight_of(process, &span);
	process->cpu = process->cpu > 0 ? process->cpu + (cpu - process->cpu) * span.weight : cpu;
	if (cpu > 0 && is_burst(governor, process, sample->counters, span.observed_ns))
		span.weight = span.observed_weight = 1;
	if (!nt_governor_take_rates(governor, process, sample->counters, &span))
		process->quiet_ns += (uint64_t)span.observed_ns;
	else
		nt_governor_go_on(process);
	take_steps(process, sample);
	process->started = true;
	process->owner = sample->owner;
	process->unsampled_ns = 0;
	process->sampled_ns = sample->now_ns;
	process->cpu_ns = sample->cpu_ns;
	process->observed_ns = sample->observed_ns;
	if (!first)
		nt_governor_decide(process, budget_of(governor, process), sample->now_ns);
	/*
	 * A quiet process costs nothing. Observed all the time, a rank that arrives late in a hang
	 * is seen.
	 */
	process->plan.permille = nt_governor_is_quiet(process) ? NT_GOVERNOR_WHOLE : process->duty;
	return has_changed(governor, &before, &process->plan);
}

bool nt_governor_looked(struct nt_governor *governor, uint32_t pid, uint64_t look_ns,
			const struct nt_process_counters *counters)
{
	struct nt_governed *process = find(governor, pid);
	double budget, counted[NT_COUNTER_END] = {0};
	struct nt_governor_plan before;
	uint16_t rows = nt_probe_rows();

	if (!process || !look_ns)
		return false;
	before = process->plan;
	budget = budget_of(governor, process);
	for (int i = 0; i < NT_COUNTER_END; i++)
		counted[i] = (double)nt_governor_take_calls(process, counters, i);
	for (uint16_t row = 0; row < rows && row < NT_ROWS_MAX; row++) {
		const struct nt_probe *probe = nt_probe_row(row);
		double hits;

		if (!nt_governor_is_hot(&process->plan, row))
			continue;
		hits = process->looked[row];
		if (counters)
			hits += (uint32_t)(counters->unseen[row] - process->unseen[row]);
		if (counters)
			process->unseen[row] = counters->unseen[row];
		process->looked[row] = 0;
		if (nt_governor_is_counted(row))
			hits = counted[probe->counter];
		if (hits > LOOK_FEW && hits * nt_governor_cost_of(governor, row) / (double)look_ns >
					       budget * NT_GOVERNOR_CALM)
			continue;
		nt_governor_set_hot(process, row, false);
		process->cost[row] = 0;
		if (nt_governor_is_counted(row))
			process->counted[probe->counter] = 0;
	}
	return has_changed(governor, &before, &process->plan);
}

double nt_governor_detail_share(const struct nt_governor *governor, uint32_t pid, double wanted,
				uint64_t look_ns, uint64_t detail_ns)
{
	const struct nt_governed *process = find(governor, pid);
	struct nt_governor_demand demand;
	double calls = 0, left, cost;

	if (governor->options.budget <= 0 || !process)
		return 1;
	if (process->plan.governed)
		return 0;
	demand = nt_governor_find_demand(process, process->plan.shed);
	for (int i = 0; i < NT_COUNTER_END && governor->options.count_ns; i++)
		calls += (double)process->counted[i] * 1e9 / (double)governor->options.count_ns;
	left = budget_of(governor, process) * NT_GOVERNOR_AIM - demand.stays - demand.rest -
	       calls * (double)look_ns / 1e9;
	if (left <= 0)
		return 0;
	cost = (wanted < calls ? wanted : calls) * (double)detail_ns / 1e9;
	return cost > left ? left / cost : 1;
}

/* ---- figures --------------------------------------------------------------------------------- */

const struct nt_governor_plan *nt_governor_plan(const struct nt_governor *governor, uint32_t pid)
{
	const struct nt_governed *process = find(governor, pid);

	return process ? &process->plan : NULL;
}

void nt_governor_stats(const struct nt_governor *governor, struct nt_governor_stats *ret_stats)
{
	struct nt_governor_stats stats = {
		.decisions = governor->decisions,
		.over_cap = governor->over_cap,
	};

	for (const struct nt_governed *p = governor->process; p; p = p->hh.next) {
		stats.governed += p->plan.governed;
		stats.sliced += p->plan.permille < NT_GOVERNOR_WHOLE;
		stats.hot_functions += p->plan.hot_count;
		stats.shed_subjects += (uint32_t)__builtin_popcount(p->plan.shed);
	}
	*ret_stats = stats;
}
