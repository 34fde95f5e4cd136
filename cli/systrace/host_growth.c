/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The host's part of own work where it is less than half of a gap. */
#include "cli/systrace/read_systrace_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/sort.h"

enum {
	MIN_PEERS = 3,
	LEAST_PART = 16, /* of the piece: less is the jitter of launches */
};

static const double least_ns = 100000; /* as long as a launch takes */

static int by_stage(const void *a, const void *b)
{
	const struct nt_systrace_part *x = a, *y = b;

	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static double middle_of(double *value, size_t n)
{
	nt_sort_select(value, n, n / 2, n / 2 + 1);
	return value[n / 2];
}

/* Takes what the host's part grew by off the device's. */
static void move(const struct nt_systrace_part *part, double early_ns, double rest_ns,
		 struct nt_frame_rank *rank)
{
	const double grown_ns = part->early_ns - early_ns;
	uint64_t host_ns;

	if (grown_ns < least_ns || grown_ns < (part->early_ns + part->rest_ns) / LEAST_PART ||
	    grown_ns <= part->rest_ns - rest_ns)
		return;
	host_ns = (uint64_t)(grown_ns * part->steps);
	host_ns = host_ns < rank->own_blocked_ns ? host_ns : rank->own_blocked_ns;
	rank->own_blocked_ns -= host_ns;
	rank->host_ns += host_ns;
}

int nt_systrace_name_growth(struct nt_systrace_part *part, size_t parts, struct nt_frame_rank *rank)
{
	nt_autofree double *value = calloc(parts + 1, sizeof(*value));

	if (!value)
		return -ENOMEM;
	if (parts)
		qsort(part, parts, sizeof(*part), by_stage);
	for (size_t i = 0, end; i < parts; i = end) {
		double early_ns, rest_ns;

		for (end = i; end < parts && part[end].stage == part[i].stage; end++)
			value[end - i] = part[end].early_ns;
		if (end - i < MIN_PEERS)
			continue;
		early_ns = middle_of(value, end - i);
		for (size_t j = i; j < end; j++)
			value[j - i] = part[j].rest_ns;
		rest_ns = middle_of(value, end - i);
		for (size_t j = i; j < end; j++)
			move(&part[j], early_ns, rest_ns, &rank[part[j].at]);
	}
	return 0;
}
