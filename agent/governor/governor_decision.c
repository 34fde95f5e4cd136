/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Choice of a process's plan: hot functions are shed first, then whole subjects, and the rest is
 * observed in slices.
 */
#include "agent/governor/governor_impl.h"

#include "common/system/clock.h"

#define CALM_NS        (10 * NT_SECOND) /* under half of the budget this long: nothing is shed */
#define LONG_PERIOD_NS (3 * NT_SECOND) /* for slices that are too short in the default */
#define LAST_PERIOD_NS (16 * NT_SECOND) /* the most, reached by doubling for long steps */
#define QUIET_MOST_NS  (10 * NT_SECOND) /* cap of the doubling in nt_governor_go_on() */

enum {
	SLICE_MIN = 50, /* permille: 100 ms of the period */
	LONG_SLICE_MIN = 34, /* permille: 100 ms of LONG_PERIOD_NS */
	DUTY_STEP = 4, /* changes of the duty by less than a quarter are ignored */
	SEARCH_SLICES = 4, /* without a step, before longer slices are tried */
};

static const double aim = NT_GOVERNOR_AIM;

/*
 * A process is quiet after a slice, or two short ones, without a call: it hangs or is idle. Each
 * time that calls resume the required time doubles, since pauses between bursts are not quiet
 * times.
 */
bool nt_governor_is_quiet(const struct nt_governed *process)
{
	uint64_t slice_ns = process->plan.period_ns / NT_GOVERNOR_WHOLE * process->duty;

	return process->quiet_ns >= process->quiet_least_ns && process->quiet_ns >= slice_ns;
}

void nt_governor_go_on(struct nt_governed *process)
{
	if (process->plan.governed && nt_governor_is_quiet(process) &&
	    process->quiet_least_ns < QUIET_MOST_NS)
		process->quiet_least_ns *= 2;
	process->quiet_ns = 0;
}

/* Counted rows share their counter and its cost. */
static double row_cost(const struct nt_governed *process, uint16_t row)
{
	const struct nt_probe *probe = nt_probe_row(row);

	return nt_governor_is_counted(row) ? (double)process->counted[probe->counter]
					   : (double)process->cost[row];
}

struct nt_governor_demand nt_governor_find_demand(const struct nt_governed *process, uint32_t shed)
{
	bool taken[NT_COUNTER_END] = {false};
	struct nt_governor_demand demand = {0};
	uint16_t rows = nt_probe_rows();

	for (uint16_t row = 0; row < rows && row < NT_ROWS_MAX; row++) {
		const struct nt_probe *probe = nt_probe_row(row);
		double cost = row_cost(process, row);

		if (cost <= 0 || nt_governor_is_hot(&process->plan, row) ||
		    (shed >> probe->subject & 1))
			continue;
		if (nt_governor_is_counted(row) && taken[probe->counter])
			continue;
		if (nt_governor_is_counted(row))
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

void nt_governor_set_hot(struct nt_governed *process, uint16_t row, bool hot)
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

/*
 * Marks rows as hot that cost over half of the budget in the shortest slice, or, if they stay,
 * always.
 */
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
		nt_governor_set_hot(process, row, true);
		any = true;
	}
	return any;
}

/* Least useful first. Communication is never shed. */
static const enum nt_subject order[] = {
	NT_SUBJECT_RDMA,  NT_SUBJECT_ALLOC,  NT_SUBJECT_COPY,   NT_SUBJECT_GEMM,
	NT_SUBJECT_ORDER, NT_SUBJECT_LAUNCH, NT_SUBJECT_DRIVER, NT_SUBJECT_SYNC,
};

/*
 * If no steps are measured they may be longer than the slices, whatever their assumed length. All
 * lengths are tried in turn, since there may be no steps.
 */
static void search_steps(struct nt_governed *process, uint64_t now_ns)
{
	uint64_t period_ns = process->plan.period_ns;
	bool measures = process->measured != process->measured_before;

	process->measured_before = process->measured;
	if (!process->is_rank || !process->plan.governed)
		process->least_period_ns = 0;
	if (!process->is_rank || !process->plan.governed || measures ||
	    nt_governor_is_quiet(process)) {
		process->measured_ns = now_ns;
		if (now_ns - process->lengthened_ns >= NT_GOVERNOR_WHOLE_KEEP_NS)
			process->least_period_ns = 0; /* the length known by now may suffice */
		return;
	}
	if (now_ns - process->measured_ns < SEARCH_SLICES * period_ns)
		return;
	if (period_ns == LONG_PERIOD_NS)
		period_ns = NT_GOVERNOR_PERIOD_NS;
	process->least_period_ns = period_ns < LAST_PERIOD_NS ? 2 * period_ns : 0;
	process->lengthened_ns = process->measured_ns = now_ns;
}

/*
 * Periods are aligned: longer ones begin where shorter ones do, so that ranks of unequal cost are
 * observed together.
 */
static uint64_t find_period(const struct nt_governed *process)
{
	uint64_t period_ns =
		process->least_period_ns ? process->least_period_ns : NT_GOVERNOR_PERIOD_NS;

	while (period_ns < LAST_PERIOD_NS &&
	       period_ns / NT_GOVERNOR_WHOLE * process->duty < process->whole_ns)
		period_ns *= 2;
	return period_ns == NT_GOVERNOR_PERIOD_NS && process->duty < SLICE_MIN ? LONG_PERIOD_NS
									       : period_ns;
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

/* True if whole steps fit into the longest slice. */
static bool has_whole_steps(const struct nt_governed *process, double rest, double left)
{
	return rest <= left || left * (double)LAST_PERIOD_NS >= rest * (double)process->whole_ns;
}

/* The rest without all subjects that steps do not need. */
static double least_rest(const struct nt_governor_demand *demand)
{
	double rest = demand->rest;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (order[i] != NT_SUBJECT_SYNC)
			rest -= demand->of[order[i]];
	return rest;
}

/*
 * Chooses the subjects to shed so that the rest fits into slices. Subtracts them from the demand.
 */
static uint32_t choose_subjects(const struct nt_governed *process, double left,
				struct nt_governor_demand *demand)
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

/* Sheds until the remaining cost meets the target. */
static void shed(struct nt_governed *process, double budget, uint64_t now_ns)
{
	struct nt_governor_demand demand;
	uint32_t shed;
	double left;

	(void)find_hot(process, budget);
	demand = nt_governor_find_demand(process, 0);
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
	process->quiet_least_ns = NT_GOVERNOR_QUIET_LEAST_NS;
	process->duty = NT_GOVERNOR_WHOLE;
	process->own_permille = NT_GOVERNOR_WHOLE;
	process->plan.shed = 0;
	process->plan.version++;
	process->calm_since_ns = 0;
}

static bool is_calm(const struct nt_governed *process, double total, double budget)
{
	return total <= budget * NT_GOVERNOR_CALM && !process->plan.hot_count &&
	       process->event_permille >= NT_GOVERNOR_WHOLE;
}

/* Attaches shed subjects again to measure their current rate. */
static void try_again(struct nt_governed *process, uint64_t now_ns)
{
	for (uint16_t row = 0; row < nt_probe_rows() && row < NT_ROWS_MAX; row++)
		if (process->plan.shed >> nt_probe_row(row)->subject & 1)
			process->cost[row] = 0;
	for (int i = 0; i < NT_COUNTER_END; i++)
		if (nt_governor_is_counter_shed(process, i))
			process->counted[i] = 0;
	process->plan.shed = 0;
	process->plan.version++;
	process->shed_since_ns = now_ns;
}

void nt_governor_decide(struct nt_governed *process, double budget, uint64_t now_ns)
{
	struct nt_governor_demand demand;
	double total;
	bool limited = process->event_permille < NT_GOVERNOR_WHOLE;

	if (process->plan.shed && now_ns - process->shed_since_ns >= CALM_NS)
		try_again(process, now_ns);
	demand = nt_governor_find_demand(process, 0);
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
