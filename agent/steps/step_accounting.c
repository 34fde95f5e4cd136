/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/step_accounting.h"

#include <string.h>

enum {
	FEW_LAUNCHES = 2, /* not in an own span: a copy, a counter */
	SETTLE_NS = 100000000,
};

/* ---- spans ---------------------------------------------------------------------------------- */

/* Inserts [start, end), merged with what it touches. False: full. */
static bool insert(struct nt_accounting_spans *spans, uint64_t start, uint64_t end)
{
	uint32_t at = spans->count, first;

	if (start >= end)
		return true;
	while (at > 0 && spans->span[at - 1].start_ns > end)
		at--;
	/* Spans [first, at) touch the new one. */
	first = at;
	while (first > 0 && spans->span[first - 1].end_ns >= start)
		first--;
	if (first == at) {
		if (spans->count == NT_ACCOUNTING_SPANS)
			return false;
		memmove(&spans->span[at + 1], &spans->span[at],
			(spans->count - at) * sizeof(spans->span[0]));
		spans->span[at] = (struct nt_accounting_span){start, end};
		spans->count++;
		return true;
	}
	if (spans->span[first].start_ns < start)
		start = spans->span[first].start_ns;
	if (spans->span[at - 1].end_ns > end)
		end = spans->span[at - 1].end_ns;
	spans->span[first] = (struct nt_accounting_span){start, end};
	memmove(&spans->span[first + 1], &spans->span[at],
		(spans->count - at) * sizeof(spans->span[0]));
	spans->count -= at - first - 1;
	return true;
}

static void drop_before(struct nt_accounting_spans *spans, uint64_t ns)
{
	uint32_t gone = 0;

	while (gone < spans->count && spans->span[gone].end_ns <= ns)
		gone++;
	memmove(spans->span, spans->span + gone, (spans->count - gone) * sizeof(spans->span[0]));
	spans->count -= gone;
	if (spans->count && spans->span[0].start_ns < ns)
		spans->span[0].start_ns = ns;
}

/* Walks [from, to) in pieces within which no span of any of the three begins or ends. */
static void measure(struct nt_accounting *work, uint64_t from, uint64_t to)
{
	const struct nt_accounting_spans *all[3] = {&work->comm, &work->sync, &work->own};
	uint32_t at[3] = {0};
	struct nt_accounting_step *sums = &work->sums;

	while (from < to) {
		uint64_t next = to, piece;
		bool in[3];

		for (int i = 0; i < 3; i++) {
			const struct nt_accounting_span *span;

			while (at[i] < all[i]->count && all[i]->span[at[i]].end_ns <= from)
				at[i]++;
			span = at[i] < all[i]->count ? &all[i]->span[at[i]] : NULL;
			in[i] = span && span->start_ns <= from;
			if (in[i] && span->end_ns < next)
				next = span->end_ns;
			else if (span && !in[i] && span->start_ns < next)
				next = span->start_ns;
		}
		piece = next - from;
		if (in[0])
			sums->comm_ns += piece;
		else if (in[1])
			sums->blocked_ns += piece;
		else
			sums->host_ns += piece;
		if (!in[0] && (work->asynchronous ? in[2] : true)) {
			sums->own_ns += piece;
			sums->own_blocked_ns += in[1] ? piece : 0;
		}
		from = next;
	}
}

static void measure_until(struct nt_accounting *work, uint64_t ns)
{
	if (ns <= work->measured_ns)
		return;
	if (work->start_ns)
		measure(work, work->measured_ns, ns);
	drop_before(&work->comm, ns);
	drop_before(&work->sync, ns);
	drop_before(&work->own, ns);
	work->measured_ns = ns;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Delivers a step whose end is known. */
static void deliver(struct nt_accounting *work)
{
	struct nt_accounting_step *sums = &work->sums;

	measure_until(work, work->end_ns);
	sums->start_ns = work->start_ns;
	sums->end_ns = work->end_ns;
	sums->asynchronous = work->asynchronous;
	sums->number = work->number;
	sums->launches = work->end_launches - work->launches_begin;
	if (work->ready_count == NT_ACCOUNTING_READY)
		work->overrun++;
	else
		work->ready[work->ready_count++] = *sums;
	*sums = (struct nt_accounting_step){0};
	work->start_ns = work->end_ns;
	work->launches_begin = work->end_launches;
	work->number = work->end_number;
	work->end_ns = 0;
}

static void add(struct nt_accounting *work, struct nt_accounting_spans *spans, uint64_t start,
		uint64_t end)
{
	if (start < work->measured_ns) {
		work->late_ns += (end < work->measured_ns ? end : work->measured_ns) - start;
		start = work->measured_ns;
	}
	if (insert(spans, start, end))
		return;
	/* Full: spans after the middle are measured now. */
	if (work->end_ns && work->end_ns <= spans->span[NT_ACCOUNTING_SPANS / 2].start_ns)
		deliver(work);
	measure_until(work, spans->span[NT_ACCOUNTING_SPANS / 2].start_ns);
	if (start < work->measured_ns)
		start = work->measured_ns;
	(void)insert(spans, start, end);
}

void nt_accounting_comm(struct nt_accounting *work, uint64_t entry_ns, uint64_t ret_ns)
{
	add(work, &work->comm, entry_ns, ret_ns);
}

void nt_accounting_sync(struct nt_accounting *work, uint64_t entry_ns, uint64_t ret_ns)
{
	add(work, &work->sync, entry_ns, ret_ns);
}

void nt_accounting_own(struct nt_accounting *work, uint64_t start_ns, uint64_t end_ns,
		       uint64_t launches, uint32_t local_syncs)
{
	add(work, &work->own, start_ns, end_ns);
	work->sums.covered_launches += launches;
	work->sums.local_syncs += local_syncs;
}

void nt_accounting_boundary(struct nt_accounting *work, uint64_t boundary_ns, uint64_t launches,
			    uint64_t number)
{
	if (work->end_ns)
		deliver(work);
	if (boundary_ns <= work->start_ns)
		return;
	if (!work->start_ns) {
		/* The first boundary: nothing before it belongs to a step. */
		measure_until(work, boundary_ns);
		work->start_ns = boundary_ns;
		work->launches_begin = launches;
		work->number = number;
		work->sums = (struct nt_accounting_step){0};
		return;
	}
	work->end_ns = boundary_ns;
	work->end_launches = launches;
	work->end_number = number;
	if (!work->overlapping)
		deliver(work);
}

void nt_accounting_reset(struct nt_accounting *work)
{
	if (work->end_ns)
		deliver(work);
	work->start_ns = 0;
	work->sums = (struct nt_accounting_step){0};
}

void nt_accounting_settle(struct nt_accounting *work, uint64_t ns)
{
	if (work->end_ns && ns > work->end_ns + SETTLE_NS)
		deliver(work);
}

bool nt_accounting_next(struct nt_accounting *work, struct nt_accounting_step *ret_step)
{
	if (!work->ready_count)
		return false;
	*ret_step = work->ready[0];
	work->ready_count--;
	memmove(work->ready, work->ready + 1, work->ready_count * sizeof(work->ready[0]));
	return true;
}

bool nt_accounting_is_covered(const struct nt_accounting_step *step)
{
	return !step->asynchronous || step->launches <= FEW_LAUNCHES ||
	       step->covered_launches * 2 >= step->launches;
}
