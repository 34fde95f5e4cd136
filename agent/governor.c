/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/governor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bundle.h"
#include "agent/governor_impl.h"
#include "common/clock.h"

#define SAMPLE_MIN_NS  (50 * NT_MILLISECOND)
#define SMOOTH_NS      (500 * NT_MILLISECOND) /* what lasts shorter than this is a burst */
#define SMOOTH_MOST_NS (2 * NT_SECOND) /* the same of a rank with long steps */
#define BURST_NS       (250.0 * NT_MILLISECOND) /* a burst's cost is a share of this, at least */
#define CALM_NS        (10 * NT_SECOND) /* so long under half of the budget: nothing is shed */
#define PERIOD_NS      (2 * NT_SECOND)
#define LONG_PERIOD_NS (3 * NT_SECOND) /* of slices that would be too short in the other */
#define LAST_PERIOD_NS (16 * NT_SECOND) /* of ranks with long steps: PERIOD_NS, doubled */
#define WHOLE_KEEP_NS  (2 * NT_MINUTE) /* a step's length holds so long after it was seen */
#define QUIET_LEAST_NS (200 * NT_MILLISECOND)
#define QUIET_MOST_NS  (10 * NT_SECOND) /* the same of one that has gone on again and again */

enum {
	SLICE_MIN = 50, /* permille: 100 ms of PERIOD_NS */
	LONG_SLICE_MIN = 34, /* permille: 100 ms of LONG_PERIOD_NS */
	LOOK_FEW = 50, /* hits in a look: 5,000 a second are few */
	DUTY_STEP = 4, /* a share of slices that differs by less than a quarter stays as it is */
	SEARCH_SLICES = 4, /* of one period, before steps are looked for in longer slices */
};

/* Costs are shares of one core. */
static const double aim = 0.7; /* of the budget: what is shed, is shed down to this */
static const double calm = 0.5; /* of the budget */
/* A process that mostly sleeps is slowed by a share of the time that passes, not of what it uses. */
static const double cpu_least = 1; /* cores that the budget is a share of, at least */
static const double burst_times = 20; /* so many budgets are no burst to be waited for */

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
	process->plan.period_ns = PERIOD_NS;
	process->own_permille = process->event_permille = NT_GOVERNOR_WHOLE;
	process->quiet_least_ns = QUIET_LEAST_NS;
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

/* ---- rates ----------------------------------------------------------------------------------- */

static double cost_of(const struct nt_governor *governor, uint16_t row)
{
	switch (nt_target_kind_of(nt_probe_row(row))) {
	case NT_TARGET_COUNT:
		return (double)governor->options.count_ns;
	case NT_TARGET_ENTRY:
		return (double)governor->options.entry_ns;
	default:
		return (double)governor->options.pair_ns;
	}
}

static bool is_counted(uint16_t row)
{
	return nt_target_kind_of(nt_probe_row(row)) == NT_TARGET_COUNT;
}

static bool is_counter_shed(const struct nt_governed *process, int counter)
{
	static const enum nt_subject subjects[NT_COUNTER_END] = {
		[NT_COUNTER_LAUNCH] = NT_SUBJECT_LAUNCH,
		[NT_COUNTER_COPY] = NT_SUBJECT_COPY,
		[NT_COUNTER_ALLOC] = NT_SUBJECT_ALLOC,
		[NT_COUNTER_FREE] = NT_SUBJECT_ALLOC,
		[NT_COUNTER_SYNC] = NT_SUBJECT_SYNC,
		[NT_COUNTER_DRIVER_LAUNCH] = NT_SUBJECT_DRIVER,
		[NT_COUNTER_DRIVER_COPY] = NT_SUBJECT_DRIVER,
		[NT_COUNTER_DRIVER_ALLOC] = NT_SUBJECT_DRIVER,
		[NT_COUNTER_GC] = NT_SUBJECT_GC,
	};

	return process->plan.shed >> subjects[counter] & 1;
}

static void smooth(float *value, double now, double weight)
{
	*value = (float)((double)*value + (now - (double)*value) * weight);
}

/* The hits of a row since the last sample: its events, and those without one. */
static uint64_t hits_of(const struct nt_governed *process,
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
	uint64_t hits = hits_of(process, counters, row);

	process->hits[row] = 0;
	if (counters)
		process->unseen[row] = counters->unseen[row];
	return hits;
}

static uint64_t take_calls(struct nt_governed *process, const struct nt_process_counters *counters,
			   int counter)
{
	uint64_t calls = 0;

	if (!counters)
		return 0;
	if (counters->calls[counter] > process->calls[counter])
		calls = counters->calls[counter] - process->calls[counter];
	process->calls[counter] = counters->calls[counter];
	return calls;
}

/* What it would cost is known from the time before. */
static bool is_detached(const struct nt_governed *process, uint16_t row)
{
	return nt_governor_is_hot(&process->plan, row) ||
	       (process->plan.shed >> nt_probe_row(row)->subject & 1);
}

/*
 * Of event rows; those of the counters are `counted`. NT_COUNTER_SYNC's hits are unseen ones of rows.
 * True: something was called.
 */
static bool take_rates(struct nt_governor *governor, struct nt_governed *process,
		       const struct nt_process_counters *counters, double elapsed_ns,
		       double observed_ns, double weight)
{
	uint16_t rows = nt_probe_rows();
	double events = 0;
	bool called = false;

	for (uint16_t row = 0; row < rows && row < NT_ROWS_MAX; row++) {
		uint64_t seen = process->hits[row];
		uint64_t hits = take_hits(process, counters, row);
		double time_ns = nt_probe_stays(nt_probe_row(row)) ? elapsed_ns : observed_ns;

		if (time_ns <= 0 || is_detached(process, row))
			continue;
		called |= hits > 0;
		if (hits || process->cost[row] > 0)
			smooth(&process->cost[row], (double)hits * cost_of(governor, row) / time_ns,
			       weight);
		events += (double)seen;
	}
	for (int i = 0; i < NT_COUNTER_END; i++) {
		uint64_t calls = take_calls(process, counters, i);

		if (observed_ns <= 0 || i == NT_COUNTER_SYNC || i == NT_COUNTER_GC ||
		    is_counter_shed(process, i))
			continue;
		called |= calls > 0;
		smooth(&process->counted[i],
		       (double)calls * (double)governor->options.count_ns / observed_ns, weight);
	}
	if (observed_ns > 0)
		process->events += (events / observed_ns * 1e9 - process->events) * weight;
	return called;
}

/*
 * A slice, or two short ones, without a call: it hangs, or does something else. Each time that it goes on
 * after all it has to be quiet for twice as long: pauses between bursts are none.
 */
static bool is_quiet(const struct nt_governed *process)
{
	uint64_t slice_ns = process->plan.period_ns / NT_GOVERNOR_WHOLE * process->duty;

	return process->quiet_ns >= process->quiet_least_ns && process->quiet_ns >= slice_ns;
}

static void go_on(struct nt_governed *process)
{
	if (process->plan.governed && is_quiet(process) && process->quiet_least_ns < QUIET_MOST_NS)
		process->quiet_least_ns *= 2;
	process->quiet_ns = 0;
}

/* ---- decisions ------------------------------------------------------------------------------- */

struct demand {
	double stays, rest; /* of what is neither hot nor shed */
	double of[NT_SUBJECT_END]; /* of the rest */
};

/* Rows that are counted share their counter: its cost is the first one's. */
static double row_cost(const struct nt_governed *process, uint16_t row)
{
	const struct nt_probe *probe = nt_probe_row(row);

	return is_counted(row) ? (double)process->counted[probe->counter]
			       : (double)process->cost[row];
}

static struct demand find_demand(const struct nt_governed *process, uint32_t shed)
{
	bool taken[NT_COUNTER_END] = {false};
	struct demand demand = {0};
	uint16_t rows = nt_probe_rows();

	for (uint16_t row = 0; row < rows && row < NT_ROWS_MAX; row++) {
		const struct nt_probe *probe = nt_probe_row(row);
		double cost = row_cost(process, row);

		if (cost <= 0 || nt_governor_is_hot(&process->plan, row) ||
		    (shed >> probe->subject & 1))
			continue;
		if (is_counted(row) && taken[probe->counter])
			continue;
		if (is_counted(row))
			taken[probe->counter] = true;
		if (nt_probe_stays(probe)) {
			demand.stays += cost;
			continue;
		}
		demand.rest += cost;
		demand.of[probe->subject] += cost;
	}
	return demand;
}

static void set_hot(struct nt_governed *process, uint16_t row, bool hot)
{
	uint64_t bit = 1ULL << row % 64;

	if (hot)
		process->plan.hot[row / 64] |= bit;
	else
		process->plan.hot[row / 64] &= ~bit;
	process->plan.hot_count += hot ? 1 : UINT32_MAX;
	process->looked[row] = 0;
	process->plan.version++;
}

/* Rows whose cost would take half of the budget in the shortest slice, or all the time if they stay. */
static bool find_hot(struct nt_governed *process, double budget)
{
	uint16_t rows = nt_probe_rows();
	bool any = false;

	for (uint16_t row = 0; row < rows && row < NT_ROWS_MAX; row++) {
		double cost = row_cost(process, row), share;

		if (cost <= 0 || nt_governor_is_hot(&process->plan, row))
			continue;
		share = nt_probe_stays(nt_probe_row(row)) ? 1 : LONG_SLICE_MIN / 1000.0;
		if (cost * share <= budget / 2)
			continue;
		set_hot(process, row, true);
		any = true;
	}
	return any;
}

/* The least useful first; what is left at the end is communication. */
static const enum nt_subject order[] = {
	NT_SUBJECT_ALLOC,  NT_SUBJECT_COPY,   NT_SUBJECT_ORDER,
	NT_SUBJECT_LAUNCH, NT_SUBJECT_DRIVER, NT_SUBJECT_SYNC,
};

/*
 * Steps that are not measured may be longer than the slices are, whatever was taken for a step. All
 * lengths are tried in turn, for there may be no steps at all.
 */
static void search_steps(struct nt_governed *process, uint64_t now_ns)
{
	uint64_t period_ns = process->plan.period_ns;
	bool measures = process->measured != process->measured_before;

	process->measured_before = process->measured;
	if (!process->is_rank || !process->plan.governed)
		process->least_period_ns = 0;
	if (!process->is_rank || !process->plan.governed || measures || is_quiet(process)) {
		process->measured_ns = now_ns;
		if (now_ns - process->lengthened_ns >= WHOLE_KEEP_NS)
			process->least_period_ns = 0; /* what is known by now may do */
		return;
	}
	if (now_ns - process->measured_ns < SEARCH_SLICES * period_ns)
		return;
	if (period_ns == LONG_PERIOD_NS)
		period_ns = PERIOD_NS;
	process->least_period_ns = period_ns < LAST_PERIOD_NS ? 2 * period_ns : 0;
	process->lengthened_ns = process->measured_ns = now_ns;
}

/* Longer periods begin where shorter ones do, so that ranks of unlike cost are observed together. */
static uint64_t find_period(const struct nt_governed *process)
{
	uint64_t period_ns = process->least_period_ns ? process->least_period_ns : PERIOD_NS;

	while (period_ns < LAST_PERIOD_NS &&
	       period_ns / NT_GOVERNOR_WHOLE * process->duty < process->whole_ns)
		period_ns *= 2;
	return period_ns == PERIOD_NS && process->duty < SLICE_MIN ? LONG_PERIOD_NS : period_ns;
}

static void set_duty(struct nt_governed *process, double permille, uint64_t now_ns)
{
	uint32_t wanted = permille >= NT_GOVERNOR_WHOLE ? NT_GOVERNOR_WHOLE : (uint32_t)permille;
	uint32_t least = LONG_SLICE_MIN, now = process->duty;

	if (wanted < least)
		wanted = least;
	if (wanted >= NT_GOVERNOR_WHOLE || now >= NT_GOVERNOR_WHOLE ||
	    wanted <= now - now / DUTY_STEP || wanted >= now + now / DUTY_STEP)
		process->duty = wanted;
	search_steps(process, now_ns);
	process->plan.period_ns = find_period(process);
}

/* Is the longest slice long enough for its steps? */
static bool has_whole_steps(const struct nt_governed *process, double rest, double left)
{
	return rest <= left || left * (double)LAST_PERIOD_NS >= rest * (double)process->whole_ns;
}

/* What is left of the rest without what steps can do without. */
static double least_rest(const struct demand *demand)
{
	double rest = demand->rest;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (order[i] != NT_SUBJECT_SYNC)
			rest -= demand->of[order[i]];
	return rest;
}

/* What has to be shed so that what is left can be observed in slices. Takes it out of the demand. */
static uint32_t choose_subjects(const struct nt_governed *process, double left,
				struct demand *demand)
{
	bool for_steps = process->whole_ns && has_whole_steps(process, least_rest(demand), left);
	uint32_t shed = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (demand->rest * LONG_SLICE_MIN / 1000.0 <= left &&
		    (!for_steps || order[i] == NT_SUBJECT_SYNC ||
		     has_whole_steps(process, demand->rest, left)))
			break;
		if (demand->of[order[i]] <= 0)
			continue;
		shed |= 1U << order[i];
		demand->rest -= demand->of[order[i]];
	}
	return shed;
}

/* Sheds until what is left costs the aim. */
static void shed(struct nt_governed *process, double budget, uint64_t now_ns)
{
	struct demand demand;
	uint32_t shed;
	double left;

	(void)find_hot(process, budget);
	demand = find_demand(process, 0);
	left = budget * aim - demand.stays;
	if (left < 0)
		left = 0;
	shed = choose_subjects(process, left, &demand);
	if (shed != process->plan.shed) {
		process->plan.shed = shed;
		process->plan.version++;
		process->shed_since_ns = now_ns;
	}
	process->own_permille =
		demand.rest > left ? left / demand.rest * NT_GOVERNOR_WHOLE : NT_GOVERNOR_WHOLE;
	set_duty(process,
		 process->own_permille < process->event_permille ? process->own_permille
								 : process->event_permille,
		 now_ns);
	process->plan.governed = true;
}

static void let_be(struct nt_governed *process)
{
	process->plan.governed = false;
	process->quiet_least_ns = QUIET_LEAST_NS;
	process->duty = NT_GOVERNOR_WHOLE;
	process->own_permille = NT_GOVERNOR_WHOLE;
	process->plan.shed = 0;
	process->plan.version++;
	process->calm_since_ns = 0;
}

static bool is_calm(const struct nt_governed *process, double total, double budget)
{
	return total <= budget * calm && !process->plan.hot_count &&
	       process->event_permille >= NT_GOVERNOR_WHOLE;
}

/* Whether what was shed is still called so often is found out by attaching it. */
static void try_again(struct nt_governed *process, uint64_t now_ns)
{
	for (uint16_t row = 0; row < nt_probe_rows() && row < NT_ROWS_MAX; row++)
		if (process->plan.shed >> nt_probe_row(row)->subject & 1)
			process->cost[row] = 0;
	for (int i = 0; i < NT_COUNTER_END; i++)
		if (is_counter_shed(process, i))
			process->counted[i] = 0;
	process->plan.shed = 0;
	process->plan.version++;
	process->shed_since_ns = now_ns;
}

static void decide(struct nt_governed *process, double budget, uint64_t now_ns)
{
	struct demand demand;
	double total;
	bool limited = process->event_permille < NT_GOVERNOR_WHOLE;

	if (process->plan.shed && now_ns - process->shed_since_ns >= CALM_NS)
		try_again(process, now_ns);
	demand = find_demand(process, 0);
	total = demand.stays + demand.rest;
	if (!process->plan.governed) {
		if (total > budget || limited)
			shed(process, budget, now_ns);
		return;
	}
	if (!is_calm(process, total, budget)) {
		process->calm_since_ns = 0;
		shed(process, budget, now_ns);
	} else if (!process->calm_since_ns) {
		process->calm_since_ns = now_ns;
	} else if (now_ns - process->calm_since_ns >= CALM_NS) {
		let_be(process);
	}
}

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

/* What is found in one slice may be lost with the next: it is remembered for a while. */
static void take_steps(struct nt_governed *process, const struct nt_governor_sample *sample)
{
	process->is_rank = sample->is_rank;
	process->measured = sample->measured;
	if (sample->whole_ns) {
		process->whole_ns = sample->whole_ns;
		process->whole_seen_ns = sample->now_ns;
	} else if (!sample->is_rank || sample->now_ns - process->whole_seen_ns >= WHOLE_KEEP_NS) {
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

bool nt_governor_sample(struct nt_governor *governor, uint32_t pid,
			const struct nt_governor_sample *sample)
{
	struct nt_governed *process = find(governor, pid);
	struct nt_governor_plan before;
	double elapsed_ns, observed_ns, weight, cpu;
	bool first;

	if (!process)
		return false;
	if (process->started && sample->now_ns < process->sampled_ns + SAMPLE_MIN_NS)
		return false;
	before = process->plan;
	first = !process->started;
	elapsed_ns = first ? 0 : (double)(sample->now_ns - process->sampled_ns);
	observed_ns = first ? 0 : (double)(sample->observed_ns - process->observed_ns);
	weight = elapsed_ns / smooth_of(process);
	if (weight > 1)
		weight = 1;
	cpu = first ? 0 : (double)(sample->cpu_ns - process->cpu_ns) / elapsed_ns;
	process->cpu = process->cpu > 0 ? process->cpu + (cpu - process->cpu) * weight : cpu;
	if (cpu > 0) {
		double budget = budget_of(governor, process);

		/* What is far over the budget is believed at once. */
		if (observed_ns > 0 && process->started) {
			double burst = 0;

			for (uint16_t row = 0; row < nt_probe_rows() && row < NT_ROWS_MAX; row++)
				burst += (double)hits_of(process, sample->counters, row) *
					 cost_of(governor, row);
			for (int i = 0; sample->counters && i < NT_COUNTER_END; i++)
				burst += i == NT_COUNTER_SYNC || i == NT_COUNTER_GC
						 ? 0
						 : (double)(sample->counters->calls[i] -
							    process->calls[i]) *
							   (double)governor->options.count_ns;
			if (burst / (observed_ns > BURST_NS ? observed_ns : BURST_NS) >
			    budget * burst_times)
				weight = 1;
		}
	}
	if (!take_rates(governor, process, sample->counters, elapsed_ns, observed_ns, weight))
		process->quiet_ns += (uint64_t)observed_ns;
	else
		go_on(process);
	take_steps(process, sample);
	process->started = true;
	process->owner = sample->owner;
	process->unsampled_ns = 0;
	process->sampled_ns = sample->now_ns;
	process->cpu_ns = sample->cpu_ns;
	process->observed_ns = sample->observed_ns;
	if (!first)
		decide(process, budget_of(governor, process), sample->now_ns);
	/* Without calls it costs nothing, and a rank that comes late to a hang is seen. */
	process->plan.permille = is_quiet(process) ? NT_GOVERNOR_WHOLE : process->duty;
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
		counted[i] = (double)take_calls(process, counters, i);
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
		if (is_counted(row))
			hits = counted[probe->counter];
		if (hits > LOOK_FEW &&
		    hits * cost_of(governor, row) / (double)look_ns > budget * calm)
			continue;
		set_hot(process, row, false);
		process->cost[row] = 0;
		if (is_counted(row))
			process->counted[probe->counter] = 0;
	}
	return has_changed(governor, &before, &process->plan);
}

/* ---- figures --------------------------------------------------------------------------------- */

const struct nt_governor_plan *nt_governor_plan(const struct nt_governor *governor, uint32_t pid)
{
	const struct nt_governed *process = find(governor, pid);

	return process ? &process->plan : NULL;
}

double nt_governor_cost(const struct nt_governor *governor, uint32_t pid)
{
	const struct nt_governed *process = find(governor, pid);
	struct demand demand;

	if (!process || process->cpu <= 0)
		return 0;
	demand = find_demand(process, process->plan.shed);
	return (demand.stays + demand.rest * process->plan.permille / 1000.0) / process->cpu;
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
