/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/governor/waterfill.h"

#include <errno.h>
#include <stdlib.h>

/* Orders by owner, then by claim, smallest first. */
static int in_order(const void *a, const void *b)
{
	const struct nt_claim *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->wanted < y->wanted ? -1 : x->wanted > y->wanted;
}

static int least_first(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * The level that caps each claim so that all sum up to `most`. Claims are sorted, smallest first.
 */
static double find_level(const double *wanted, size_t count, double most)
{
	for (size_t i = 0; i < count; i++) {
		double level = most / (double)(count - i);

		if (wanted[i] >= level)
			return level;
		most -= wanted[i];
	}
	return count ? wanted[count - 1] : 0;
}

/* Sums the claims of each owner, in the order of the claims. Returns the number of owners. */
static size_t sum_owners(const struct nt_claim *claim, size_t count, double *sum)
{
	size_t owners = 0;

	for (size_t i = 0; i < count; i++) {
		if (!i || claim[i].owner != claim[i - 1].owner)
			sum[owners++] = 0;
		sum[owners - 1] += claim[i].wanted;
	}
	return owners;
}

/* Grants to the claims of one owner. wanted: room for as many numbers. */
static void grant(struct nt_claim *claim, size_t count, double most, double *wanted)
{
	double level;

	for (size_t i = 0; i < count; i++)
		wanted[i] = claim[i].wanted;
	level = find_level(wanted, count, most);
	for (size_t i = 0; i < count; i++)
		claim[i].granted = claim[i].wanted < level ? claim[i].wanted : level;
}

int nt_waterfill(struct nt_claim *claim, size_t count, double most)
{
	nt_autofree double *sum = calloc(count + 1, sizeof(*sum));
	nt_autofree double *wanted = calloc(count + 1, sizeof(*wanted));
	size_t owners;
	double level;

	if (!sum || !wanted)
		return -ENOMEM;
	qsort(claim, count, sizeof(*claim), in_order);
	owners = sum_owners(claim, count, sum);
	qsort(sum, owners, sizeof(*sum), least_first);
	level = find_level(sum, owners, most);
	for (size_t begin = 0, end; begin < count; begin = end) {
		for (end = begin; end < count && claim[end].owner == claim[begin].owner; end++)
			;
		grant(&claim[begin], end - begin, level, wanted);
	}
	return 0;
}
