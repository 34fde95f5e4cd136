/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/recurrence.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_STEPS = 64, /* of different length that are looked at */
	MIN_TIMES = 3, /* required repetitions of a step */
	SURE_TIMES = 20, /* repetitions of a longer step before it is preferred */
	LOG_STEPS = 5, /* at least, from one entry of a log to the next */
	WORK_TIMES = 10, /* work that is in so many steps is part of each */
	LENGTH_PART = 8, /* the length of a step varies by at most this part */
	SCALAR_BYTES = 64, /* at most: a loss, a norm */
};

/* Share of calls in steps of about the same length, and of steps with each kind of work. */
static const double most_steps = 0.7;
/* A step is as regular as another one whose share is larger by less than this. */
static const double as_good = 0.2;
/* The pause between two steps, by that between layers. */
static const double long_pause = 1.5;
/* Of two anchors one is taken for its share if these differ by more: records of the other may be lost. */
static const double lost_anchors = 0.25;

/* Equal calls in a row. */
struct call_run {
	uint64_t shape; /* of the kind */
	uint32_t kind, length;
	uint32_t end, work; /* calls up to its end, and those of them that are no scalars */
};

struct recurring_step {
	struct nt_recurrence found;
	uint32_t work; /* its calls that are no scalars, the median */
};

bool nt_recurrence_is_scalar(uint64_t shape)
{
	return shape >> 32 && shape >> 32 <= SCALAR_BYTES;
}

static int by_kind(const void *a, const void *b)
{
	const struct call_run *x = a, *y = b;

	/* Ranks of a job number their kinds differently. */
	if (x->shape != y->shape)
		return x->shape < y->shape ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint32_t cut_runs(const uint32_t *call, uint32_t n, const uint64_t *shape,
			 struct call_run *run)
{
	uint32_t runs = 0, work = 0;

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && call[end] == call[i];)
			end++;
		work += nt_recurrence_is_scalar(shape[call[i]]) ? 0 : end - i;
		run[runs++] = (struct call_run){shape[call[i]], call[i], end - i, end, work};
	}
	qsort(run, runs, sizeof(*run), by_kind);
	return runs;
}

/* Whether a stretch of so many calls is a step of about that length. */
static bool is_step(uint32_t calls, uint32_t length)
{
	const uint32_t more = calls > length ? calls - length : length - calls;

	return more <= length / LENGTH_PART;
}

/*
 * The step that runs of one kind end, of at least that length. Its length is without scalars: they are
 * exchanged beside some steps, too. length: room for those of the stretches between the runs.
 */
static struct recurring_step measure(const struct call_run *run, uint32_t runs, uint32_t least,
				     uint32_t *length)
{
	struct recurring_step step = {.found = {.anchor = run->kind, .run = least}};
	const struct call_run *first = NULL, *last = NULL;
	uint32_t n = 0, regular = 0, times = 0;

	for (uint32_t i = 0; i < runs; i++) {
		if (run[i].length < least)
			continue;
		if (last && run[i].work > last->work)
			length[n++] = run[i].work - last->work;
		first = first ? first : &run[i];
		last = &run[i];
	}
	if (n < MIN_TIMES)
		return step;
	qsort(length, n, sizeof(*length), by_value);
	step.work = length[n / 2];
	for (uint32_t i = 0; i < n; i++)
		if (is_step(length[i], step.work)) {
			regular += length[i];
			times++;
		}
	step.found.share = (double)regular / (last->work - first->work);
	step.found.calls = (uint32_t)lround(step.found.share * (last->end - first->end) / times);
	return step;
}

/* Of two kinds that end steps of one length, the same one on all ranks. */
static bool is_better_anchor(const struct nt_recurrence *a, const struct nt_recurrence *b,
			     const uint64_t *shape, const uint32_t *times, uint32_t n)
{
	const bool scalar = nt_recurrence_is_scalar(shape[a->anchor]);
	const bool single = times[a->anchor] <= 1.5 * n / a->calls;

	if (fabs(a->share - b->share) > lost_anchors)
		return a->share > b->share;
	if (scalar != nt_recurrence_is_scalar(shape[b->anchor]))
		return scalar;
	if (single != (times[b->anchor] <= 1.5 * n / b->calls))
		return single;
	return shape[a->anchor] < shape[b->anchor];
}

/* Keeps steps by length, the shortest first, one of about each length. */
static uint32_t keep(struct recurring_step *step, uint32_t steps,
		     const struct recurring_step *found, const uint64_t *shape,
		     const uint32_t *times, uint32_t n)
{
	uint32_t at = 0;

	while (at < steps && step[at].work < found->work && !is_step(found->work, step[at].work))
		at++;
	if (at < steps && is_step(found->work, step[at].work)) {
		if (is_better_anchor(&found->found, &step[at].found, shape, times, n))
			step[at] = *found;
		return steps;
	}
	if (at == MAX_STEPS)
		return steps;
	steps -= steps == MAX_STEPS;
	memmove(&step[at + 1], &step[at], (steps - at) * sizeof(*step));
	step[at] = *found;
	return steps + 1;
}

/* The calls; of all kinds, how many there are, and the shape. idle_ns: NULL if it is not known. */
struct call_sequence {
	const uint32_t *call;
	const uint64_t *idle_ns;
	uint64_t *gap_ns; /* room for as many as calls */
	uint32_t n;
	const uint64_t *shape;
	const uint32_t *times;
	uint32_t kinds;
};

/* The steps that contain a kind, with the last one. */
struct contained {
	uint32_t steps, last;
};

/* Of all kinds, the steps that contain it. Returns the number of steps. */
static uint32_t count_steps(const struct call_sequence *all, const struct nt_recurrence *step,
			    struct contained *in)
{
	uint32_t steps = 1, run = 0;

	memset(in, 0, all->kinds * sizeof(*in));
	for (uint32_t i = 0; i < all->n; i++) {
		struct contained *of = &in[all->call[i]];

		if (of->last != steps) {
			of->last = steps;
			of->steps++;
		}
		run = all->call[i] == step->anchor ? run + 1 : 0;
		steps += run >= step->run && (i + 1 == all->n || all->call[i + 1] != step->anchor);
	}
	return steps;
}

/* Whether most of these steps have each kind of work that recurs. in: room for all kinds. */
static bool has_all_work(const struct call_sequence *all, const struct nt_recurrence *step,
			 struct contained *in)
{
	const uint32_t steps = count_steps(all, step, in);

	for (uint32_t i = 0; i < all->kinds; i++)
		if (in[i].steps >= WORK_TIMES && in[i].steps < most_steps * steps &&
		    !nt_recurrence_is_scalar(all->shape[i]))
			return false;
	return true;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * The longest time between two calls that are no scalars, of each step with scalars or of each without:
 * their median. 0: there are none. What is idle beside a scalar counts to that between the others.
 */
static uint64_t median_gap(const struct call_sequence *all, const struct nt_recurrence *step,
			   bool with_scalars)
{
	uint64_t gap_ns = 0, most_ns = 0;
	bool has_scalars = false;
	uint32_t run = 0, gaps = 0;

	for (uint32_t i = 0; i < all->n; i++) {
		gap_ns += all->idle_ns[i];
		run = all->call[i] == step->anchor ? run + 1 : 0;
		if (nt_recurrence_is_scalar(all->shape[all->call[i]])) {
			has_scalars = true;
			continue;
		}
		most_ns = gap_ns > most_ns ? gap_ns : most_ns;
		gap_ns = 0;
		if (run < step->run || (i + 1 < all->n && all->call[i + 1] == step->anchor))
			continue;
		if (has_scalars == with_scalars)
			all->gap_ns[gaps++] = most_ns;
		has_scalars = false;
		most_ns = 0;
	}
	qsort(all->gap_ns, gaps, sizeof(*all->gap_ns), by_time);
	return gaps ? all->gap_ns[gaps / 2] : 0;
}

/*
 * Whether the scalars that some of the shorter steps have are entries of a log. Beside a scalar that ends each
 * of them another one is. Else they are rare, and those with scalars pause no longer than the others: the
 * pause between two steps is longer than that between layers. Few alike are a step's micro-batches.
 */
static bool has_log(const struct call_sequence *all, const struct nt_recurrence *longer,
		    const struct nt_recurrence *shorter)
{
	uint64_t usual_ns;

	if (nt_recurrence_is_scalar(all->shape[shorter->anchor]))
		return true;
	if (!all->idle_ns || longer->calls / LOG_STEPS < shorter->calls)
		return false;
	usual_ns = median_gap(all, shorter, false);
	return usual_ns && (double)median_gap(all, shorter, true) < long_pause * (double)usual_ns;
}

/* Whether most of the longer steps have a kind that the shorter ones lack. in: room for all kinds. */
static bool has_more_kinds(const struct call_sequence *all, const struct nt_recurrence *longer,
			   const struct nt_recurrence *shorter, struct contained *in)
{
	const bool is_logged = has_log(all, longer, shorter);
	const uint32_t steps = count_steps(all, longer, in);

	for (uint32_t i = 0; i < all->kinds; i++)
		if (all->times[i] + 1.0 < 0.9 * all->n / shorter->calls &&
		    in[i].steps >= most_steps * steps &&
		    !(is_logged && nt_recurrence_is_scalar(all->shape[i])))
			return true;
	return false;
}

/* The shortest step that is about as regular as any; of layers that are alike, the longer one that holds all. */
static struct nt_recurrence choose(const struct call_sequence *all,
				   const struct recurring_step *step, uint32_t steps,
				   struct contained *in)
{
	struct nt_recurrence best = {0};
	double most = 0.0;

	for (uint32_t i = 0; i < steps; i++)
		most = step[i].found.share > most ? step[i].found.share : most;
	for (uint32_t i = 0; i < steps; i++) {
		const struct nt_recurrence *found = &step[i].found;

		if (found->share + as_good < most)
			continue;
		if (!best.calls ||
		    (found->share + as_good >= best.share && found->calls <= all->n / SURE_TIMES &&
		     has_more_kinds(all, found, &best, in)))
			best = *found;
	}
	return best;
}

int nt_recurrence_find(const uint32_t *call, uint32_t n, const uint64_t *idle_ns,
		       const uint64_t *shape, const uint32_t *times, uint32_t kinds,
		       struct nt_recurrence *ret_recurrence)
{
	nt_autofree struct call_run *run = calloc((size_t)n + 1, sizeof(*run));
	nt_autofree uint32_t *length = calloc((size_t)n + 1, sizeof(*length));
	nt_autofree struct contained *in = calloc((size_t)kinds + 1, sizeof(*in));
	nt_autofree uint64_t *gap_ns = calloc((size_t)n + 1, sizeof(*gap_ns));
	const struct call_sequence all = {call, idle_ns, gap_ns, n, shape, times, kinds};
	struct recurring_step step[MAX_STEPS];
	uint32_t runs, steps = 0, whole = 0;

	*ret_recurrence = (struct nt_recurrence){0};
	if (!run || !length || !in || !gap_ns)
		return -ENOMEM;
	runs = cut_runs(call, n, shape, run);
	for (uint32_t i = 0, end; i < runs; i = end) {
		uint32_t longest = 0;

		for (end = i; end < runs && run[end].kind == run[i].kind; end++)
			longest = run[end].length > longest ? run[end].length : longest;
		for (uint32_t least = 1; least <= longest && least <= n / 2; least *= 2) {
			const struct recurring_step found =
				measure(&run[i], end - i, least, length);

			if (found.found.share >= most_steps && found.found.calls > 1 &&
			    found.found.calls <= n / MIN_TIMES)
				steps = keep(step, steps, &found, shape, times, n);
		}
	}
	for (uint32_t i = 0; i < steps; i++)
		if (has_all_work(&all, &step[i].found, in))
			step[whole++] = step[i];
	*ret_recurrence = choose(&all, step, whole, in);
	return 0;
}
