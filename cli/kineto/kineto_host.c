/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the host did, from its runtime calls. A kernel belongs to the step in which it was launched:
 * the host may be several steps ahead of its device. Host work is the time in which the device had
 * computed all that was launched. Launches of the host, and its waits for the device, do not count.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/search.h"
#include "detect/thresholds/thresholds.h"

static int by_correlation(const void *a, const void *b)
{
	const struct nt_kineto_launch *x = a, *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Assigns to each kernel the call that launched it. Returns how many have one. */
static size_t match(struct nt_kineto_rank *rank)
{
	size_t found = 0;

	if (rank->launches)
		qsort(rank->launch, rank->launches, sizeof(*rank->launch), by_correlation);
	for (size_t i = 0; i < rank->kernels; i++) {
		struct nt_kineto_interval *kernel = &rank->kernel[i];
		const size_t at = nt_search_first(
			0, rank->launches, j, rank->launch[j].correlation >= kernel->correlation);

		if (!kernel->correlation || at == rank->launches ||
		    rank->launch[at].correlation != kernel->correlation)
			continue;
		kernel->called_ns = rank->launch[at].start_ns;
		kernel->launched_ns = rank->launch[at].end_ns;
		found++;
	}
	return found;
}

/* The step during which that time was, or the number of steps. */
static size_t step_at(const struct nt_kineto_rank *rank, uint64_t time_ns)
{
	const size_t next = nt_search_first(0, rank->steps, i, rank->step[i].start_ns > time_ns);

	if (!next || (next == rank->steps && time_ns > rank->step[next - 1].end_ns))
		return rank->steps;
	return next - 1;
}

/*
 * The longest time without a call in each step; calls ascend by start. That behind the last call of
 * a step is of the next one, as on the device.
 */
static void measure_gaps(const struct nt_kineto_rank *rank, const struct nt_kineto_launch *call,
			 uint64_t *ret_gap_ns)
{
	uint64_t busy_ns = rank->step[0].start_ns;
	size_t at = 0;

	for (size_t n = 0; n < rank->steps; n++) {
		ret_gap_ns[n] = 0;
		for (; at < rank->launches && call[at].start_ns < rank->step[n].end_ns; at++) {
			if (call[at].start_ns > busy_ns &&
			    call[at].start_ns - busy_ns > ret_gap_ns[n])
				ret_gap_ns[n] = call[at].start_ns - busy_ns;
			busy_ns = busy_ns > call[at].end_ns ? busy_ns : call[at].end_ns;
		}
	}
}

static int by_call(const void *a, const void *b)
{
	const struct nt_kineto_launch *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int find_gaps(struct nt_kineto_rank *rank)
{
	nt_autofree struct nt_kineto_launch *call = calloc(rank->launches, sizeof(*call));

	rank->gap_ns = calloc(rank->steps, sizeof(*rank->gap_ns));
	if (!call || !rank->gap_ns)
		return -ENOMEM;
	memcpy(call, rank->launch, rank->launches * sizeof(*call));
	qsort(call, rank->launches, sizeof(*call), by_call);
	measure_gaps(rank, call, rank->gap_ns);
	return 0;
}

/*
 * Moves the steps from the host's time to the device's. A step begins when the device has done what
 * was launched before: what the host did until the first kernel is of this step, even if the host
 * did it at the end of the step before.
 */
static int move_steps(struct nt_kineto_rank *rank)
{
	nt_autofree struct nt_kineto_interval *on_device = calloc(rank->steps, sizeof(*on_device));
	uint64_t busy_ns = 0;
	size_t kept = 0;

	if (!on_device)
		return -ENOMEM;
	for (size_t i = 0; i < rank->kernels; i++) {
		const struct nt_kineto_interval *kernel = &rank->kernel[i];
		const size_t n =
			kernel->launched_ns ? step_at(rank, kernel->launched_ns) : rank->steps;

		if (n < rank->steps && !on_device[n].end_ns) {
			/* What ran before the first kernel of all is not recorded. */
			on_device[n].start_ns =
				busy_ns && busy_ns < kernel->start_ns ? busy_ns : kernel->start_ns;
		}
		if (n < rank->steps && kernel->end_ns > on_device[n].end_ns)
			on_device[n].end_ns = kernel->end_ns;
		if (kernel->end_ns > busy_ns)
			busy_ns = kernel->end_ns;
	}
	for (size_t n = 0; n < rank->steps; n++) {
		if (!on_device[n].end_ns ||
		    (kept && on_device[n].start_ns < rank->step[kept - 1].start_ns))
			continue;
		rank->gap_ns[kept] = rank->gap_ns[n];
		rank->step[kept++] = on_device[n];
	}
	rank->steps = kept;
	return 0;
}

void nt_kineto_match_launches(struct nt_kineto_rank *rank)
{
	/* Rows of the runtime may be switched off, or cut. */
	rank->has_launches = match(rank) * 10 >= rank->kernels * 9;
}

int nt_kineto_place_steps(struct nt_kineto_rank *rank)
{
	int r;

	if (!rank->has_launches || !rank->steps || rank->cuts)
		return 0;
	r = find_gaps(rank);
	return r < 0 ? r : move_steps(rank);
}

/*
 * Waits of the host for its device in [from, to), which the launch of the kernel ends. comm_ns: until
 * then a collective ran, for whose end the launch may have waited.
 */
static uint64_t waited_ns(const struct nt_kineto_rank *rank,
			  const struct nt_kineto_interval *kernel, uint64_t from, uint64_t to,
			  uint64_t comm_ns)
{
	const uint64_t called_ns = kernel->called_ns > from ? kernel->called_ns : from;
	uint64_t held_ns, covered_ns;

	if (called_ns >= to)
		return nt_kineto_covered_ns(rank->wait, rank->waits, from, to);
	held_ns = comm_ns < to ? comm_ns : to;
	held_ns = held_ns > called_ns ? held_ns - called_ns : 0;
	covered_ns = nt_kineto_covered_ns(rank->wait, rank->waits, called_ns, to);
	/* A copy is both. */
	return nt_kineto_covered_ns(rank->wait, rank->waits, from, called_ns) +
	       (held_ns > covered_ns ? held_ns : covered_ns);
}

uint64_t nt_kineto_late_ns(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to)
{
	size_t at = nt_search_first(0, rank->kernels, i, rank->kernel[i].start_ns >= from);
	uint64_t busy_ns = from, comm_ns = 0, sum = 0;

	/* A kernel of the step before may still run. */
	for (size_t i = at, looked = 0; i-- > 0 && looked < 64; looked++) {
		uint64_t *until = rank->kernel[i].comm ? &comm_ns : &busy_ns;

		if (rank->kernel[i].end_ns > *until)
			*until = rank->kernel[i].end_ns;
	}
	for (; at < rank->kernels && rank->kernel[at].start_ns < to; at++) {
		const struct nt_kineto_interval *kernel = &rank->kernel[at];
		uint64_t launched_ns = kernel->launched_ns;

		if (kernel->comm) {
			if (kernel->end_ns > comm_ns)
				comm_ns = kernel->end_ns;
			continue;
		}
		if (launched_ns > kernel->start_ns)
			launched_ns = kernel->start_ns;
		if (launched_ns > busy_ns)
			sum += launched_ns - busy_ns -
			       waited_ns(rank, kernel, busy_ns, launched_ns, comm_ns);
		if (kernel->end_ns > busy_ns)
			busy_ns = kernel->end_ns;
	}
	return sum;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int nt_kineto_spread_late(const struct nt_kineto_rank *rank, uint64_t *late_ns)
{
	nt_autofree uint64_t *stall_ns = calloc(rank->steps + 1, sizeof(*stall_ns));
	const size_t first = rank->steps < NT_PAST_WINDOWS ? rank->steps : NT_PAST_WINDOWS;
	uint64_t usual_ns;

	if (!stall_ns)
		return -ENOMEM;
	if (!rank->gap_ns || !rank->steps)
		return 0;
	memcpy(stall_ns, rank->gap_ns, first * sizeof(*stall_ns));
	qsort(stall_ns, first, sizeof(*stall_ns), by_time);
	usual_ns = stall_ns[first / 2];
	for (size_t n = 0; n < rank->steps; n++)
		stall_ns[n] = rank->gap_ns[n] > usual_ns ? rank->gap_ns[n] - usual_ns : 0;
	for (size_t n = 0, hidden = 0; n < rank->steps; n++) {
		const uint64_t paid_ns = late_ns[n] < stall_ns[n] ? late_ns[n] : stall_ns[n];

		/* What a file hides is not paid in the next one. */
		if (n && rank->step[n - 1].ends_file)
			hidden = 0;

		if (paid_ns * 2 < stall_ns[n]) {
			hidden++;
			continue;
		}
		/* The same stall: a longer one that was paid once is not theirs. */
		for (size_t i = n; hidden && i-- > n - hidden;)
			if (stall_ns[i] * 2 < paid_ns)
				hidden = n - i - 1;
		for (size_t i = n - hidden; i <= n; i++)
			late_ns[i] += paid_ns / (hidden + 1);
		late_ns[n] -= paid_ns;
		hidden = 0;
	}
	return 0;
}
