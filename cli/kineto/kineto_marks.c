/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Steps of a rank whose collectives are all equal, as gradient buckets of one size are. The kernels
 * between them repeat once per step. A kernel's place is the number of collectives launched before
 * it. The period of a kind of kernel is the number of collectives after which its places repeat.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MIN_TIMES = 4, /* repetitions of a kind */
	/* So many percent of distances are equal, and so many of the collectives are explained. */
	REGULAR_PERCENT = 80,
	MOST_PERCENT = 120,
	/* A period of fewer kernels is of something rarer than steps, such as a log entry. */
	KERNEL_PERCENT = 10,
};

/* A kernel between the collectives. */
struct kernel_place {
	uint32_t kind, place;
};

/* A kernel in the order of launches. */
struct launched {
	uint64_t time_ns;
	struct nt_kineto_interval *kernel;
};

/* A kind of kernel with a period. */
struct mark {
	uint32_t kind, period, per_step;
	uint32_t limit; /* a distance of more places begins a step */
	bool compact; /* in one place of a step */
	size_t at, kernels; /* its part of the list */
};

static int by_kind(const void *a, const void *b)
{
	const struct kernel_place *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int by_launch(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

/*
 * All kernels in the order in which the host launched them. Without launches it is the device's, in
 * which kernels of two streams have no fixed order.
 */
static struct launched *order_kernels(const struct nt_kineto_rank *rank)
{
	struct launched *order = calloc(rank->kernels, sizeof(*order));

	if (!order)
		return NULL;
	for (size_t i = 0; i < rank->kernels; i++) {
		struct nt_kineto_interval *kernel = &rank->kernel[i];

		order[i].kernel = kernel;
		order[i].time_ns = kernel->start_ns;
		if (!rank->has_launches)
			continue;
		/* The few without a launch stay behind the one before them. */
		order[i].time_ns = kernel->launched_ns ?: order[i ? i - 1 : 0].time_ns;
	}
	if (rank->has_launches)
		qsort(order, rank->kernels, sizeof(*order), by_launch);
	return order;
}

/* Places the kernels that are no collectives. Returns their number. */
static size_t place_kernels(const struct nt_kineto_rank *rank, const struct launched *order,
			    struct kernel_place *placed)
{
	uint32_t place = 0;
	size_t count = 0;

	for (size_t i = 0; i < rank->kernels; i++) {
		if (order[i].kernel->comm)
			place++;
		else
			placed[count++] = (struct kernel_place){order[i].kernel->kind, place};
	}
	if (count)
		qsort(placed, count, sizeof(*placed), by_kind);
	return count;
}

/* Whether that many times that many places are about all places. */
static bool explains(uint64_t period, uint64_t times, uint64_t places)
{
	const uint64_t part = period * times * 100;

	return part >= places * REGULAR_PERCENT && part <= places * MOST_PERCENT;
}

/* The median distance, if most others equal it; else 0. Sorts them. */
static uint32_t regular_distance(uint32_t *distance, size_t count)
{
	uint32_t median;
	size_t equal = 0;

	if (count + 1 < MIN_TIMES)
		return 0;
	qsort(distance, count, sizeof(*distance), by_value);
	median = distance[count / 2];
	for (size_t i = 0; i < count; i++)
		equal += distance[i] == median;
	return equal * 100 >= count * REGULAR_PERCENT ? median : 0;
}

/* Distances between the places of a kind that follow more than `limit` behind the last one. */
static size_t list_distances(const struct kernel_place *placed, size_t count, uint32_t limit,
			     uint32_t *distance)
{
	uint32_t begin = placed[0].place;
	size_t found = 0;

	for (size_t i = 1; i < count; i++) {
		if (placed[i].place - placed[i - 1].place <= limit)
			continue;
		distance[found++] = placed[i].place - begin;
		begin = placed[i].place;
	}
	return found;
}

/*
 * The period of a kind: it is in every n-th place, or in several of every n. Those of a step follow
 * each other more closely than those of two steps.
 */
static bool find_period(const struct kernel_place *placed, uint32_t places, uint32_t *distance,
			struct mark *mark)
{
	size_t count;

	mark->kind = placed[0].kind;
	mark->limit = 0;
	count = list_distances(placed, mark->kernels, 0, distance);
	mark->period = regular_distance(distance, count);
	mark->compact = mark->period && explains(mark->period, count + 1, places);
	if (!mark->compact) {
		if (count + 1 < MIN_TIMES)
			return false;
		qsort(distance, count, sizeof(*distance), by_value);
		mark->limit = distance[count / 4];
		count = list_distances(placed, mark->kernels, mark->limit, distance);
		mark->period = regular_distance(distance, count);
	}
	mark->per_step = (uint32_t)((mark->kernels + count / 2) / (count + 1));
	return mark->period && explains(mark->period, count + 1, places);
}

static size_t list_marks(const struct kernel_place *placed, size_t count, uint32_t places,
			 uint32_t *distance, struct mark *mark)
{
	size_t marks = 0;

	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && placed[end].kind == placed[i].kind;)
			end++;
		mark[marks] = (struct mark){.at = i, .kernels = end - i};
		marks += find_period(&placed[i], places, distance, &mark[marks]);
	}
	return marks;
}

/* The longest period that is that of many kernels: a layer of a network repeats in a step. */
static uint32_t choose_period(const struct mark *mark, size_t marks, size_t kernels)
{
	uint32_t longest = 0;

	for (size_t i = 0; i < marks; i++) {
		size_t equal = 0;

		if (mark[i].period <= longest)
			continue;
		for (size_t j = 0; j < marks; j++)
			equal += mark[j].period == mark[i].period ? mark[j].kernels : 0;
		if (equal * 100 >= kernels * KERNEL_PERCENT)
			longest = mark[i].period;
	}
	return longest;
}

/* Of the marks of a period one that is the same on all ranks: their counts and names are equal. */
static const struct mark *choose_mark(const struct mark *mark, size_t marks, uint32_t period)
{
	const struct mark *best = NULL;

	for (size_t i = 0; i < marks; i++) {
		const struct mark *one = &mark[i];

		if (one->period != period)
			continue;
		if (!best || one->compact > best->compact ||
		    (one->compact == best->compact &&
		     (one->per_step > best->per_step ||
		      (one->per_step == best->per_step && one->kind < best->kind))))
			best = one;
	}
	return best;
}

/* A step ends with the collective before the mark. */
static void end_steps(const struct nt_kineto_rank *rank, const struct launched *order,
		      const struct mark *mark)
{
	struct nt_kineto_interval *last = NULL;
	uint32_t place = 0, before = 0;
	bool any = false;

	for (size_t i = 0; i < rank->kernels; i++) {
		struct nt_kineto_interval *kernel = order[i].kernel;

		if (kernel->comm) {
			last = kernel;
			place++;
		} else if (kernel->kind == mark->kind) {
			if (last && (!any || place - before > mark->limit))
				last->ends_step = true;
			before = place;
			any = true;
		}
	}
}

int nt_kineto_mark_steps(struct nt_kineto_rank *rank)
{
	nt_autofree struct launched *order = order_kernels(rank);
	nt_autofree struct kernel_place *placed = calloc(rank->kernels, sizeof(*placed));
	nt_autofree uint32_t *distance = calloc(rank->kernels, sizeof(*distance));
	nt_autofree struct mark *mark = calloc(rank->kernels, sizeof(*mark));
	size_t count, marks;
	uint32_t period;

	if (!order || !placed || !distance || !mark)
		return -ENOMEM;
	count = place_kernels(rank, order, placed);
	marks = list_marks(placed, count, (uint32_t)rank->comms, distance, mark);
	period = choose_period(mark, marks, count);
	if (!period)
		return 0;
	end_steps(rank, order, choose_mark(mark, marks, period));
	rank->step_calls = period;
	return 0;
}
