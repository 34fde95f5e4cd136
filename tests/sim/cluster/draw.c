/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/draw.h"

#include <math.h>

#include "common/base/hash.h"
#include "tests/sim/cluster/chance.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum {
	LEARN = 28, /* windows before a fault: there is a past by then */
	LAST = 50, /* windows of a fault at least */
};

struct draw {
	struct cl_scenario s;
	uint64_t random;
	double window; /* steps in one */
};

static double between(struct draw *d, double low, double high)
{
	return low + (high - low) * cl_chance(&d->random);
}

/* Each size as likely as any other. */
static double scaled(struct draw *d, double low, double high)
{
	return low * pow(high / low, cl_chance(&d->random));
}

static uint32_t below(struct draw *d, uint32_t n)
{
	return (uint32_t)(cl_chance(&d->random) * n);
}

static bool often(struct draw *d, double chance)
{
	return cl_chance(&d->random) < chance;
}

static uint32_t one_of(struct draw *d, const uint32_t *list, size_t count)
{
	return list[below(d, (uint32_t)count)];
}

static uint32_t steps(const struct draw *d, double windows)
{
	return (uint32_t)ceil(windows * d->window);
}

static void draw_layout(struct draw *d)
{
	static const uint32_t tensors[] = {1, 1, 1, 1, 2, 3, 4, 8};
	static const uint32_t stages[] = {1, 1, 1, 1, 2, 3, 4, 5};
	static const uint32_t replicas[] = {2,  3,  4,  5,  6,  7,  8,  9,  10,
					    12, 15, 16, 20, 24, 30, 40, 48, 96};
	static const uint32_t nodes[] = {1, 2, 3, 4, 6, 8, 8, 16};
	struct cl_scenario *s = &d->s;

	do {
		s->tp = one_of(d, tensors, COUNT(tensors));
		s->pp = one_of(d, stages, COUNT(stages));
		s->dp = one_of(d, replicas, COUNT(replicas));
	} while (cl_scenario_ranks(s) < 4 || cl_scenario_ranks(s) > 512);
	if (often(d, 0.2)) {
		do
			s->ep = 1 + below(d, s->dp);
		while (s->dp % s->ep || (s->ep == s->dp && s->tp > 1));
	}
	s->sharded = s->ep == 1 && s->tp == 1 && often(d, 0.2);
	s->microbatches = s->pp > 1 ? 2 + below(d, 7) : 1 + below(d, 2);
	/* What is seldom within a step is told from what is often. */
	s->layers = (uint32_t)scaled(d, s->tp > 1 || s->ep > 1 ? 6 : 1, 40);
	s->buckets = (uint32_t)scaled(d, 1, s->tp > 1 ? 5 : 16);
	do
		s->node_ranks = one_of(d, nodes, COUNT(nodes));
	while (cl_scenario_nodes(s) < 2);
}

static void draw_pace(struct draw *d)
{
	struct cl_scenario *s = &d->s;

	s->mode = (enum cl_mode)below(d, CL_MODE_END);
	s->step_s = scaled(d, 0.05, often(d, 0.2) ? 30 : 3);
	s->jitter = scaled(d, 0.002, 0.02);
	s->spread = often(d, 0.3) ? between(d, 0, 0.02) : 0;
	s->hiccups = often(d, 0.1) ? scaled(d, 0.001, 0.01) : 0;
	s->aligned_end = often(d, 0.7);
	s->rendezvous = s->mode == CL_BLOCKING && often(d, 0.4);
	s->ring = s->rendezvous && s->aligned_end && s->tp == 1 && s->ep == 1 && often(d, 0.5);
	s->counters = often(d, 0.3);
	d->window = s->step_s < s->window_s ? ceil(s->window_s / s->step_s) : 1;
}

static void draw_weather(struct draw *d)
{
	struct cl_weather *w = &d->s.weather;

	if (often(d, 0.35)) {
		w->lost = often(d, 0.5) ? between(d, 0, 0.03) : 0;
		w->doubled = often(d, 0.5) ? between(d, 0, 0.03) : 0;
		w->late = often(d, 0.5) ? between(d, 0, 0.2) : 0;
		if (d->s.mode == CL_PLUGIN)
			w->intervals_lost = w->lost / 10;
	}
	if (often(d, 0.4)) {
		w->clock_offset_s = between(d, 0, 0.005);
		w->clock_drift = between(d, 0, 2e-5);
	}
}

/* Agents that see the job late or in part, ranks that are numbered otherwise, steps of another kind. */
static void draw_oddities(struct draw *d)
{
	struct cl_scenario *s = &d->s;
	const uint32_t ranks = cl_scenario_ranks(s);

	if (often(d, 0.35) && ranks > 4)
		s->stride = 2 + below(d, ranks - 3);
	if (often(d, 0.25)) {
		s->evaluation = steps(d, scaled(d, 1, 8));
		s->evaluate_every = 12 + (uint32_t)(s->evaluation * between(d, 4, 12));
	}
	if (often(d, 0.2))
		s->late_agents = 1 + below(d, steps(d, 12));
	if (often(d, 0.2))
		s->start_s = scaled(d, 0.1, 10);
	if (often(d, 0.4) && s->mode == CL_PLUGIN)
		s->bare = between(d, 0.1, 0.7);
}

/* What a fault of this kind is like. */
static const struct {
	enum cl_fault_kind kind;
	double chance;
	double low, high; /* how much longer work takes, or a step: in parts */
	bool of_step; /* seconds, as a part of the step */
	bool from_start, lasts; /* always there; it cannot end or come and go */
} kinds[] = {
	{CL_COMPUTE_RANK, 10, 0.05, 3},
	{CL_COMPUTE_NODE, 3, 0.08, 2},
	{CL_COMPUTE_HALF, 2, 0.08, 1},
	{CL_BATCH, 2, 0.1, 1.5},
	{CL_LATE_STAGE, 2, 0.15, 0.6},
	{CL_UNEVEN, 1, 0.2, 1, false, true, true},
	{CL_LOADER, 4, 0.05, 0.8, true},
	{CL_CONTENTION, 3, 0.06, 0.8, true},
	{CL_GC_RANK, 2, 0.1, 0.8, true},
	{CL_GC_ALL, 1, 0.1, 0.6, true},
	{CL_CHECKPOINT_RANK, 1, 10, 60, false, false, true},
	{CL_CHECKPOINT_ALL, 1, 10, 60, false, false, true},
	{CL_NIC, 4, 0.5, 7},
	{CL_PATH, 2, 0.5, 7},
	{CL_EXIT, 1, 0, 0, false, false, true},
	{CL_LAGGARD, 1, 0, 0, false, false, true},
	{CL_MISMATCH, 1, 0, 0, false, false, true},
	{CL_NETWORK_HANG, 1, 0, 0, false, false, true},
	{CL_AGENT_DIES, 1, 0, 0, false, false, true},
	{CL_AGENT_RESTARTS, 2, 0, 0, false, false, true},
	{CL_COUNTERS, 1, 500, 5000},
};

static size_t draw_kind(struct draw *d)
{
	double all = 0, at;

	for (size_t i = 0; i < COUNT(kinds); i++)
		all += kinds[i].chance;
	at = all * cl_chance(&d->random);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		at -= kinds[i].chance;
		if (at < 0)
			return i;
	}
	return 0;
}

static bool is_of_node(enum cl_fault_kind kind)
{
	return kind == CL_COMPUTE_NODE || kind == CL_CONTENTION || kind == CL_NIC ||
	       kind == CL_PATH || kind == CL_AGENT_DIES || kind == CL_AGENT_RESTARTS ||
	       kind == CL_COUNTERS;
}

static bool stands(enum cl_fault_kind kind)
{
	return kind == CL_EXIT || kind == CL_LAGGARD || kind == CL_MISMATCH ||
	       kind == CL_NETWORK_HANG;
}

static void draw_when(struct draw *d, struct cl_fault *f, uint32_t earliest)
{
	const double late = between(d, LEARN, LEARN + 25);

	f->from = earliest + steps(d, late);
	/* What holds the job is a call of training. */
	while (stands(f->kind) && cl_scenario_is_evaluation(&d->s, f->from))
		f->from++;
	f->until = UINT32_MAX;
	if (often(d, 0.15))
		f->ramp = steps(d, between(d, 2, 25));
	if (often(d, 0.12)) {
		f->of = 2 + below(d, 8);
		f->on = 1 + below(d, f->of);
	}
	if (often(d, 0.3))
		f->until = f->from + f->ramp + steps(d, between(d, 25, 60));
}

/* False: nothing of that kind can happen in this layout. */
static bool draw_fault(struct draw *d, uint32_t earliest, struct cl_fault *ret_fault)
{
	const size_t which = draw_kind(d);
	const uint32_t ranks = cl_scenario_ranks(&d->s), nodes = cl_scenario_nodes(&d->s);
	struct cl_fault f = {.kind = kinds[which].kind, .until = UINT32_MAX};
	const double part =
		kinds[which].low > 0 ? scaled(d, kinds[which].low, kinds[which].high) : 0;

	draw_when(d, &f, earliest);
	if (kinds[which].lasts) {
		f.until = UINT32_MAX;
		f.ramp = f.on = f.of = 0;
	}
	if (kinds[which].from_start || (f.kind == CL_LATE_STAGE && often(d, 0.4)) ||
	    (f.kind == CL_COMPUTE_RANK && part > 0.3 && d->s.dp > 4 && often(d, 0.15)))
		f = (struct cl_fault){.kind = f.kind, .until = UINT32_MAX};
	f.factor = kinds[which].of_step ? part * d->s.step_s : 1 + part;
	if (f.kind == CL_CHECKPOINT_RANK || f.kind == CL_CHECKPOINT_ALL || f.kind == CL_COUNTERS)
		f.factor = part;
	f.target = is_of_node(f.kind) ? below(d, nodes) : below(d, ranks);
	if (f.kind == CL_LATE_STAGE)
		f.target = below(d, d->s.pp);
	if (f.kind == CL_PATH)
		f.peer = (f.target + 1 + below(d, nodes - 1)) % nodes;
	*ret_fault = f;
	return f.kind != CL_LATE_STAGE || d->s.pp > 1;
}

static void draw_faults(struct draw *d)
{
	const double many = cl_chance(&d->random);
	const uint32_t faults = many < 0.2 ? 0 : many < 0.75 ? 1 : 2;
	struct cl_scenario *s = &d->s;
	uint32_t earliest = s->late_agents, end = earliest + steps(d, LEARN + LAST);

	while (s->faults < faults) {
		struct cl_fault f;
		uint32_t over;

		if (!draw_fault(d, earliest, &f))
			continue;
		s->fault[s->faults++] = f;
		/* Until it is found, or is over for good. */
		over = f.until == UINT32_MAX ? f.from + f.ramp + steps(d, LAST) : f.until;
		if (f.until != UINT32_MAX || stands(f.kind))
			over += (uint32_t)fmax(steps(d, 45), 150 / s->step_s);
		if (over > end)
			end = over;
		/* After one that holds the job for good there is no other. */
		if (stands(f.kind))
			break;
		if (often(d, 0.3))
			earliest = f.until != UINT32_MAX ? f.until : f.from;
	}
	s->steps = end;
}

/* About how many calls a rank makes in a step. */
static double calls_a_step(const struct cl_scenario *s)
{
	double each = (s->tp > 1) + (s->ep > 1) + 1.5 * s->sharded;

	return 2.0 * s->microbatches * (s->layers * each + 2 * (s->pp > 1)) + s->buckets + 4;
}

/* Is the seed's job one of the large ones? They make more calls than others may. */
static bool is_large(uint64_t seed, double calls)
{
	const double least_calls = 3e5, large = 0.08;
	uint64_t random = nt_hash_mix(seed + 0x1a49e);

	(void)cl_chance(&random);
	return calls >= least_calls && cl_chance(&random) < large;
}

/* What came to be drawn later has chances of its own: a seed's job stays what it was. */
static struct draw draw_once(uint64_t seed, uint64_t attempt, bool large)
{
	struct draw d = {.s = cl_scenario_default(),
			 .random = (seed << 20) + attempt + 0x6a09e667f3bcc909ULL};
	uint64_t later = nt_hash_mix((seed << 20) + attempt), first;

	(void)cl_chance(&d.random);
	d.s.seed = seed;
	draw_layout(&d);
	draw_pace(&d);
	draw_weather(&d);
	first = d.random;
	d.random = later;
	if (large)
		d.s.dp *= 2 + below(&d, 31);
	draw_oddities(&d);
	d.random = first;
	draw_faults(&d);
	return d;
}

struct cl_scenario cl_draw(uint64_t seed, double calls)
{
	const uint32_t least_large = 513, most_large = 4096;
	const bool large = is_large(seed, calls);

	for (uint64_t attempt = 0;; attempt++) {
		const struct draw d = draw_once(seed, attempt, large);
		const uint32_t ranks = cl_scenario_ranks(&d.s);

		if (large && (ranks < least_large || ranks > most_large))
			continue;
		if (!cl_scenario_check(&d.s) &&
		    calls_a_step(&d.s) * d.s.steps * ranks <= (large ? 4 : 1) * calls)
			return d.s;
	}
}
