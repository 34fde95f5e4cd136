/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Arrival times of the collectives in profiler traces. A call of one rank is paired with those of
 * the other members by its number (`Seq`). Without numbers it is paired by time. No member leaves a
 * collective before the last one has entered it, so the kernels of one call overlap. The order on
 * each rank proves nothing, as a profiler may record other calls on each rank.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

/* A call on one rank. */
struct arrival {
	uint64_t comm; /* of traces without groups: the name */
	uint64_t number; /* 0: to be paired by time */
	const struct nt_kineto_interval *kernel;
	const struct nt_kineto_group *group;
	uint32_t rank;
};

static int by_call(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	/* Calls without a number follow each other on each rank. */
	if (!x->number && x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	/* Sorted by time: lateness is relative to the median. */
	if (x->kernel->start_ns != y->kernel->start_ns)
		return x->kernel->start_ns < y->kernel->start_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_arrival(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->kernel->start_ns != y->kernel->start_ns)
		return x->kernel->start_ns < y->kernel->start_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

struct row {
	uint64_t start_ns;
	struct nt_trace_collective collective;
};

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return strcmp(x->collective.name, y->collective.name);
}

/* All calls to pair, and the table that they become. */
struct pairing {
	const struct nt_kineto_ranks *in;
	bool grouped;
	struct arrival *call, *one; /* one: the calls of one collective */
	struct row *row;
	size_t calls, rows, *next; /* next: of each rank */
	size_t members; /* given ranks of the communicator */
};

static void release(struct pairing *pairing)
{
	free(pairing->call);
	free(pairing->one);
	free(pairing->row);
	free(pairing->next);
}

/* The number of given ranks in the group. */
static size_t count_members(const struct pairing *pairing, uint64_t comm)
{
	const struct nt_kineto_ranks *in = pairing->in;
	size_t n = 0;

	if (!pairing->grouped)
		return in->ranks;
	for (size_t i = 0; i < in->ranks; i++)
		for (size_t j = 0; j < in->rank[i].groups; j++)
			n += in->rank[i].group[j].used && in->rank[i].group[j].id == comm;
	return n;
}

/* Adds a row for calls that are sorted by arrival; none for calls that not all members made. */
static void describe(struct pairing *pairing, const struct arrival *call, size_t n)
{
	const struct nt_kineto_interval *first = call[0].kernel, *last = call[n - 1].kernel;
	struct row row = {
		.start_ns = first->start_ns,
		.collective = {.number = first->number,
			       .ranks = n,
			       .last_rank = call[n - 1].rank,
			       /* Of two ranks the first is the one to compare with. */
			       .lateness_ns = last->start_ns - call[(n - 1) / 2].kernel->start_ns,
			       .spread_ns = last->start_ns - first->start_ns,
			       .transfer_ns = UINT64_MAX},
	};

	if (n != pairing->members || (pairing->grouped && n < 2))
		return;
	(void)snprintf(row.collective.name, sizeof(row.collective.name), "%s%s%s", first->name,
		       call[0].group ? " " : "", call[0].group ? call[0].group->name : "");
	for (size_t i = 0; i < n; i++) {
		const uint64_t took_ns = call[i].kernel->end_ns - call[i].kernel->start_ns;

		if (call[i].kernel->op != first->op)
			return;
		if (took_ns < row.collective.transfer_ns)
			row.collective.transfer_ns = took_ns;
	}
	pairing->row[pairing->rows++] = row;
}

/* Whether the call had ended when the last member entered. */
static bool is_over(const struct nt_kineto_interval *kernel, uint64_t entered_ns)
{
	return kernel->end_ns <= entered_ns && kernel->start_ns < entered_ns;
}

/* Pairs the calls of one communicator, which are sorted by rank, by their overlap. */
static void pair_by_time(struct pairing *pairing, const struct arrival *call, size_t n)
{
	size_t ranks = 0;

	for (size_t i = 0; i < n; i++)
		if (i == 0 || call[i].rank != call[i - 1].rank)
			pairing->next[ranks++] = i;
	if (ranks != pairing->members)
		return;
	for (;;) {
		uint64_t entered_ns = 0;
		bool settled = false;

		/* The call of the rank whose next one starts last: others may be behind it. */
		while (!settled) {
			settled = true;
			for (size_t i = 0; i < ranks; i++) {
				size_t *at = &pairing->next[i];

				while (is_over(call[*at].kernel, entered_ns)) {
					if (++*at == n || call[*at].rank != call[*at - 1].rank)
						return;
				}
				if (call[*at].kernel->start_ns > entered_ns) {
					entered_ns = call[*at].kernel->start_ns;
					settled = false;
				}
			}
		}
		for (size_t i = 0; i < ranks; i++)
			pairing->one[i] = call[pairing->next[i]];
		qsort(pairing->one, ranks, sizeof(*pairing->one), by_arrival);
		describe(pairing, pairing->one, ranks);
		for (size_t i = 0; i < ranks; i++) {
			const size_t at = ++pairing->next[i];

			if (at == n || call[at].rank != call[at - 1].rank)
				return;
		}
	}
}

static void list_calls(struct pairing *pairing)
{
	const struct nt_kineto_ranks *in = pairing->in;

	for (size_t i = 0; i < in->ranks; i++) {
		const struct nt_kineto_rank *rank = &in->rank[i];

		for (size_t j = 0; j < rank->comms; j++) {
			const struct nt_kineto_interval *kernel = rank->comm[j];
			struct arrival *call = &pairing->call[pairing->calls];

			if (pairing->grouped && !nt_kineto_is_synchronising(kernel))
				continue;
			*call = (struct arrival){.kernel = kernel, .rank = rank->rank};
			call->comm = nt_hash_text(NT_HASH_SEED, kernel->name);
			if (pairing->grouped) {
				call->group = &rank->group[kernel->group - 1];
				call->comm = call->group->id;
				call->number = kernel->stated ? kernel->number : 0;
			}
			pairing->calls++;
		}
	}
}

static void pair_calls(struct pairing *pairing)
{
	const struct arrival *call = pairing->call;
	size_t end;

	for (size_t i = 0; i < pairing->calls; i = end) {
		for (end = i + 1; end < pairing->calls && call[end].comm == call[i].comm &&
				  call[end].number == call[i].number;)
			end++;
		if (i == 0 || call[i].comm != call[i - 1].comm)
			pairing->members = count_members(pairing, call[i].comm);
		if (call[i].number)
			describe(pairing, &call[i], end - i);
		else
			pair_by_time(pairing, &call[i], end - i);
	}
	if (pairing->rows)
		qsort(pairing->row, pairing->rows, sizeof(*pairing->row), by_start);
}

int nt_kineto_add_collectives(const struct nt_kineto_ranks *in, struct nt_trace *trace)
{
	__attribute__((cleanup(release))) struct pairing pairing = {
		.in = in, .grouped = nt_kineto_has_groups(in)};
	size_t calls = 0;

	for (size_t i = 0; i < in->ranks; i++)
		calls += in->rank[i].comms;
	pairing.call = calloc(calls + 1, sizeof(*pairing.call));
	pairing.one = calloc(in->ranks + 1, sizeof(*pairing.one));
	pairing.next = calloc(in->ranks + 1, sizeof(*pairing.next));
	pairing.row = calloc(calls + 1, sizeof(*pairing.row));
	if (!pairing.call || !pairing.one || !pairing.next || !pairing.row)
		return -ENOMEM;
	list_calls(&pairing);
	if (pairing.calls)
		qsort(pairing.call, pairing.calls, sizeof(*pairing.call), by_call);
	pair_calls(&pairing);
	trace->collective = calloc(pairing.rows + 1, sizeof(*trace->collective));
	if (!trace->collective)
		return -ENOMEM;
	for (size_t i = 0; i < pairing.rows; i++) {
		trace->collective[i] = pairing.row[i].collective;
		/* Without groups there is one sequence. */
		if (!pairing.grouped)
			trace->collective[i].number = i + 1;
	}
	trace->collectives = pairing.rows;
	return 0;
}
