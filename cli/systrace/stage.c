/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/systrace/stage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Disjoint sets of ranks; each is represented by its lowest one. */
static uint32_t find(uint32_t *set, uint32_t rank)
{
	while (set[rank] != rank) {
		set[rank] = set[set[rank]];
		rank = set[rank];
	}
	return rank;
}

static void join(uint32_t *set, uint32_t a, uint32_t b)
{
	a = find(set, a);
	b = find(set, b);
	if (a < b)
		set[b] = a;
	else
		set[a] = b;
}

static int by_comm(const void *a, const void *b)
{
	const struct nt_stage_link *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Whether two members are in one pipeline: the whole job, or ranks that share an embedding. */
static bool holds_neighbours(const struct nt_stage_link *link, size_t n, uint32_t *pipeline,
			     size_t *seen, size_t mark)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t first = find(pipeline, link[i].rank);

		if (seen[first] == mark)
			return true;
		seen[first] = mark;
	}
	return false;
}

int nt_stage_find(struct nt_stage_link *link, size_t links, size_t ranks, int32_t *ret_stage)
{
	nt_autofree uint32_t *pipeline = calloc(ranks + 1, sizeof(*pipeline));
	nt_autofree uint32_t *stage = calloc(ranks + 1, sizeof(*stage));
	nt_autofree size_t *seen = calloc(ranks + 1, sizeof(*seen));
	nt_autofree uint32_t *members = calloc(ranks + 1, sizeof(*members));

	if (!pipeline || !stage || !seen || !members)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranks; i++)
		pipeline[i] = stage[i] = i;
	if (links)
		qsort(link, links, sizeof(*link), by_comm);
	for (int pass = NT_STAGE_SENDS; pass <= NT_STAGE_REDUCES; pass++) {
		for (size_t i = 0, end; i < links; i = end) {
			unsigned int use = 0;

			for (end = i; end < links && link[end].comm == link[i].comm; end++)
				use |= link[end].use;
			/* With a reduction it is more than a pipeline. */
			if (!(pass == NT_STAGE_SENDS ? use == NT_STAGE_SENDS
						     : use & NT_STAGE_REDUCES))
				continue;
			if (pass == NT_STAGE_REDUCES &&
			    holds_neighbours(&link[i], end - i, pipeline, seen, end))
				continue;
			for (size_t j = i + 1; j < end; j++)
				join(pass == NT_STAGE_SENDS ? pipeline : stage, link[i].rank,
				     link[j].rank);
		}
	}
	for (uint32_t i = 0; i < ranks; i++)
		members[find(stage, i)]++;
	for (uint32_t i = 0; i < ranks; i++)
		ret_stage[i] = members[find(stage, i)] > 1 ? (int32_t)find(stage, i) : -1;
	return 0;
}
