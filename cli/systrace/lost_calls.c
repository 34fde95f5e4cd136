/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/systrace/lost_calls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	LOST_PART = 8, /* a step lacks one call, or at most this part of them */
};

/* Share of the steps that have a kind of call, if it is one of each step. */
static const double most_steps = 0.7;

/* A call of a kind, or the calls of that kind in one step. */
struct kind_value {
	uint32_t kind;
	uint64_t value;
};

/* The usual calls of a kind in a step, and how long one takes. */
struct usual_calls {
	uint64_t calls, length_ns;
};

static int by_kind_value(const void *a, const void *b)
{
	const struct kind_value *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

static int by_kind(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The calls of each kind in the step, by kind. Returns the number of kinds. kind: room for its calls. */
static size_t count_kinds(const struct nt_markers *markers, const struct nt_timeline_step *step,
			  uint32_t *kind, struct kind_value *count)
{
	const size_t n = step->last - step->first + 1;
	size_t counts = 0;

	for (size_t i = 0; i < n; i++)
		kind[i] = markers->op[step->first + i].kind;
	qsort(kind, n, sizeof(*kind), by_kind);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && kind[end] == kind[i];)
			end++;
		count[counts++] = (struct kind_value){kind[i], end - i};
	}
	return counts;
}

/* The medians of the values of each kind; a kind with less than that many has none. */
static void find_medians(struct kind_value *value, size_t values, double least,
			 struct usual_calls *usual, bool of_lengths)
{
	qsort(value, values, sizeof(*value), by_kind_value);
	for (size_t i = 0, end; i < values; i = end) {
		for (end = i + 1; end < values && value[end].kind == value[i].kind;)
			end++;
		if ((double)(end - i) < least)
			continue;
		*(of_lengths ? &usual[value[i].kind].length_ns : &usual[value[i].kind].calls) =
			value[i + (end - i) / 2].value;
	}
}

/* What the step lacks of all usual calls, and how long these take. */
static void find_lost(const struct usual_calls *usual, const struct usual_calls *all,
		      const struct kind_value *count, size_t counts, struct nt_timeline_step *step)
{
	uint64_t lost = all->calls * step->count, lost_ns = all->length_ns * step->count;

	for (size_t i = 0; i < counts; i++) {
		const struct usual_calls *of = &usual[count[i].kind];
		const uint64_t most = of->calls * step->count;
		const uint64_t had = count[i].value < most ? count[i].value : most;

		lost -= had;
		lost_ns -= had * of->length_ns;
	}
	step->lost_ns = lost <= 1 || lost * LOST_PART <= all->calls * step->count ? lost_ns : 0;
}

/* The gaps between the calls of a step. */
static uint64_t gaps_of(const struct nt_timeline *line, const struct nt_timeline_step *step)
{
	uint64_t comm_from, comm_to, device;

	nt_timeline_sum(line, step->start_ns, &comm_from, &device);
	nt_timeline_sum(line, step->end_ns, &comm_to, &device);
	return step->end_ns - step->start_ns - (comm_to - comm_from);
}

/* A lost call beside another one left no gap. value: room for the steps. */
static void limit_lost(const struct nt_timeline *line, struct kind_value *value,
		       struct nt_steps *steps)
{
	uint64_t median;

	for (size_t i = 0; i < steps->steps; i++)
		value[i] = (struct kind_value){0, gaps_of(line, &steps->step[i]) /
							  steps->step[i].count};
	qsort(value, steps->steps, sizeof(*value), by_kind_value);
	median = value[steps->steps / 2].value;
	for (size_t i = 0; i < steps->steps; i++) {
		struct nt_timeline_step *step = &steps->step[i];
		const uint64_t gaps = gaps_of(line, step), usual = median * step->count;
		const uint64_t more = gaps > usual ? gaps - usual : 0;

		step->lost_ns = step->lost_ns < more ? step->lost_ns : more;
	}
}

int nt_lost_calls_find(const struct nt_markers *markers, const struct nt_timeline *line,
		       struct nt_steps *steps)
{
	nt_autofree struct kind_value *value = calloc(markers->ops + 1, sizeof(*value));
	nt_autofree uint32_t *kind = calloc(markers->ops + 1, sizeof(*kind));
	nt_autofree struct usual_calls *usual = calloc((size_t)markers->kinds + 1, sizeof(*usual));
	struct usual_calls all = {0};
	size_t values = 0;

	if (!value || !kind || !usual)
		return -ENOMEM;
	for (size_t i = 0; i < steps->steps; i++)
		values += count_kinds(markers, &steps->step[i], kind, &value[values]);
	find_medians(value, values, most_steps * (double)steps->steps, usual, false);
	for (size_t i = 0; i < markers->ops; i++)
		value[i] = (struct kind_value){markers->op[i].kind,
					       markers->op[i].end_ns - markers->op[i].start_ns};
	find_medians(value, markers->ops, 0.0, usual, true);
	for (uint32_t i = 0; i < markers->kinds; i++) {
		all.calls += usual[i].calls;
		all.length_ns += usual[i].calls * usual[i].length_ns;
	}
	for (size_t i = 0; i < steps->steps; i++) {
		const size_t counts = count_kinds(markers, &steps->step[i], kind, value);

		find_lost(usual, &all, value, counts, &steps->step[i]);
	}
	limit_lost(line, value, steps);
	return 0;
}
