/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Derived steps of all ranks, paired. A rank that lacks the record of a call that ends a step has one step
 * less, so that its later steps would be compared with those of other ranks one step before. Members of a
 * collective leave it together: the ends of a rank's steps keep their distance to those of another one,
 * which is that of the clocks. Thus an end that one rank lacks is known from the others.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_LAG = 8, /* ends that are lost before the first one */
	MAX_COMPARED = 256, /* ends by which a lag is chosen */
	NEAR_PART = 4, /* two ends are one within this part of a step */
	SAME_PART = 16, /* an end that several ranks have beyond the others, too */
	DRIFT_PART = 8, /* of a deviation, taken for that of the clocks */
	MIN_MATCHES = 4,
};

/* Share of the ends that fit, of two recordings of one job; and of the best lag's, for another lag. */
static const double most_ends = 0.7, as_many = 0.9;
/* Lags are alike if one is at most so many times farther apart, or by so much. */
static const double as_near = 2.0, near_ns = 2000.0;
/* The members of a collective leave it within this time, in which none of them computes. */
static const uint64_t leave_ns = 50000;

/* The ends of a rank's steps. */
struct rank_ends {
	struct nt_kineto_rank *rank;
	uint64_t class; /* the communicator of the calls that end its steps */
	uint64_t *end; /* by its own clock, ascending */
	size_t ends;
	size_t *place; /* of each end the common one, or SIZE_MAX */
	uint64_t *shift_ns; /* at each end, to the clock of the common ones; modulo 2^64 */
	uint64_t *common_ns; /* of each common end the time by its own clock */
	size_t from, to; /* the first and the last common end that it has */
	bool is_known;
};

struct alignment {
	struct rank_ends *rank;
	size_t ranks;
	uint64_t *common_ns; /* the ends of the steps of the job, by the clock of one rank */
	size_t commons;
	uint64_t step_ns;
};

/* How two lists fit. */
struct lag_fit {
	ptrdiff_t lag;
	size_t matches;
	double apart_ns; /* the mean deviation */
	uint64_t shift_ns; /* at the first end, in either direction */
};

static void release(struct alignment *alignment)
{
	for (size_t i = 0; i < alignment->ranks; i++) {
		free(alignment->rank[i].end);
		free(alignment->rank[i].place);
		free(alignment->rank[i].shift_ns);
		free(alignment->rank[i].common_ns);
	}
	free(alignment->rank);
	free(alignment->common_ns);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Pairs the first `ends` ends of a rank with the n of another list, from a lag on: the first end is that many
 * places behind in the list. Sets place and shift_ns.
 */
static struct lag_fit follow(struct rank_ends *of, size_t ends, const uint64_t *to, size_t n,
			     ptrdiff_t lag, uint64_t step_ns)
{
	const size_t first = lag < 0 ? (size_t)-lag : 0;
	struct lag_fit fit = {.lag = lag};
	size_t at = lag > 0 ? (size_t)lag : 0, last = SIZE_MAX;
	uint64_t last_ns = 0, sum_ns = 0;
	uint64_t shift_ns;

	if (first >= ends || at >= n)
		return fit;
	shift_ns = to[at] - of->end[first];
	fit.shift_ns = apart(to[at], of->end[first]);
	for (size_t i = 0; i < ends; i++) {
		const uint64_t want_ns = of->end[i] + shift_ns;
		uint64_t off_ns;

		of->place[i] = SIZE_MAX;
		of->shift_ns[i] = shift_ns;
		if (i < first)
			continue;
		while (at + 1 < n && apart(to[at + 1], want_ns) < apart(to[at], want_ns))
			at++;
		off_ns = apart(to[at], want_ns);
		if (off_ns > step_ns / NEAR_PART)
			continue;
		/* Of two ends at one, the nearer. */
		if (last != SIZE_MAX && of->place[last] == at) {
			if (off_ns >= last_ns)
				continue;
			of->place[last] = SIZE_MAX;
			fit.matches--;
			sum_ns -= last_ns;
		}
		of->place[i] = at;
		fit.matches++;
		sum_ns += off_ns;
		shift_ns += (uint64_t)((int64_t)(to[at] - want_ns) / DRIFT_PART);
		of->shift_ns[i] = shift_ns;
		last = i;
		last_ns = off_ns;
	}
	/* The first end fits by itself. */
	fit.apart_ns = fit.matches > 1 ? (double)sum_ns / (double)(fit.matches - 1) : 0.0;
	return fit;
}

static size_t try_lags(struct rank_ends *of, const uint64_t *to, size_t n, ptrdiff_t middle,
		       uint64_t step_ns, struct lag_fit *fit)
{
	const size_t ends = of->ends < MAX_COMPARED ? of->ends : MAX_COMPARED;
	size_t fits = 0;

	for (ptrdiff_t lag = middle - MAX_LAG; lag <= middle + MAX_LAG; lag++) {
		const size_t from = lag > 0 ? (size_t)lag : 0;
		const size_t most = n > from + 2 * MAX_COMPARED ? from + 2 * MAX_COMPARED : n;

		fit[fits++] = follow(of, ends, to, most, lag, step_ns);
	}
	return fits;
}

/*
 * The lag by which the ends of a rank keep their distance to those of the list. Where several do, as of
 * ranks that share no call, the one by which the clocks are nearly equal, else that of the first ends.
 */
static ptrdiff_t choose_lag(struct rank_ends *of, const uint64_t *to, size_t n, uint64_t step_ns)
{
	struct lag_fit fit[2 * (2 * MAX_LAG + 1)];
	const struct lag_fit *best = NULL;
	size_t fits = try_lags(of, to, n, 0, step_ns, fit), most = 0, at = 0;
	double least_ns = 0.0;
	bool any = false;

	while (at + 1 < n && to[at] < of->end[0])
		at++;
	if (at > MAX_LAG && of->end[0] <= to[n - 1])
		fits += try_lags(of, to, n, (ptrdiff_t)at, step_ns, &fit[fits]);
	for (size_t i = 0; i < fits; i++)
		most = fit[i].matches > most ? fit[i].matches : most;
	for (size_t i = 0; i < fits; i++) {
		if ((double)fit[i].matches < as_many * (double)most ||
		    (any && fit[i].apart_ns >= least_ns))
			continue;
		least_ns = fit[i].apart_ns;
		any = true;
	}
	for (size_t i = 0; i < fits; i++) {
		const bool near = fit[i].shift_ns <= step_ns / 2;

		if ((double)fit[i].matches < as_many * (double)most ||
		    fit[i].apart_ns > as_near * least_ns + near_ns)
			continue;
		if (!best || near > (best->shift_ns <= step_ns / 2) ||
		    (near == (best->shift_ns <= step_ns / 2) && labs(fit[i].lag) < labs(best->lag)))
			best = &fit[i];
	}
	return best ? best->lag : 0;
}

/* Finds the common ends on a rank; `to`: their times on another one. */
static void place_ends(struct rank_ends *of, const uint64_t *to, size_t n, uint64_t step_ns)
{
	const size_t fewer = of->ends < n ? of->ends : n;
	const ptrdiff_t lag = choose_lag(of, to, n, step_ns);
	const struct lag_fit fit = follow(of, of->ends, to, n, lag, step_ns);
	uint64_t shift_ns = of->shift_ns[0];
	size_t at = 0;

	of->is_known =
		fit.matches >= MIN_MATCHES && (double)fit.matches >= most_ends * (double)fewer;
	if (!of->is_known)
		return;
	of->from = n;
	for (size_t j = 0; j < n; j++) {
		uint64_t time_ns;

		while (at < of->ends && (of->place[at] == SIZE_MAX || of->place[at] < j))
			shift_ns = of->shift_ns[at++];
		time_ns = to[j] - shift_ns - leave_ns;
		if (at < of->ends && of->place[at] == j) {
			time_ns = of->end[at];
			of->from = of->from < j ? of->from : j;
			of->to = j;
		}
		of->common_ns[j] =
			j && of->common_ns[j - 1] > time_ns ? of->common_ns[j - 1] : time_ns;
	}
}

/* Ranks are in the order of their classes: of each, the first one that fits is compared with the others. */
static void place_all(struct alignment *all)
{
	const struct rank_ends *like = NULL;

	for (size_t i = 0; i < all->ranks; i++) {
		struct rank_ends *of = &all->rank[i];

		if (like && like->class != of->class)
			like = NULL;
		place_ends(of, like ? like->common_ns : all->common_ns, all->commons, all->step_ns);
		if (!like && of->class && of->is_known)
			like = of;
	}
}

/* Adds to `list` the ends that the rank has beyond the common ones, by the clock of these. */
static size_t list_others(const struct alignment *all, const struct rank_ends *of, uint64_t *list)
{
	size_t others = 0, at = SIZE_MAX;

	for (size_t i = 0; i < of->ends; i++) {
		if (of->place[i] != SIZE_MAX)
			at = of->place[i];
		else if (at != SIZE_MAX && at < of->to)
			list[others++] = of->end[i] + all->common_ns[at] - of->common_ns[at];
	}
	return others;
}

/* Of sorted ends, those that at least half of the ranks have. Returns their number. */
static size_t keep_frequent(uint64_t *list, size_t n, uint64_t together_ns, size_t ranks)
{
	size_t kept = 0;

	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && list[end] - list[end - 1] <= together_ns;)
			end++;
		if ((end - i) * 2 >= ranks)
			list[kept++] = list[i + (end - i) / 2];
	}
	return kept;
}

/* Of each common end: the ranks that were recorded then, and those that have it. */
struct end_votes {
	size_t recorded, have;
};

static void count_votes(const struct alignment *all, struct end_votes *votes)
{
	for (size_t i = 0; i < all->ranks; i++) {
		const struct rank_ends *of = &all->rank[i];

		if (!of->is_known)
			continue;
		votes[of->from].recorded++;
		votes[of->to + 1].recorded--;
		for (size_t j = 0; j < of->ends; j++)
			if (of->place[j] != SIZE_MAX)
				votes[of->place[j]].have++;
	}
	for (size_t j = 0; j < all->commons; j++)
		votes[j + 1].recorded += votes[j].recorded;
}

/*
 * The common ends were those of one rank, which may lack some or have others: takes those that half of the
 * ranks have. -ENOMEM.
 */
static int vote(struct alignment *all)
{
	nt_autofree struct end_votes *votes = calloc(all->commons + 2, sizeof(*votes));
	nt_autofree uint64_t *list = NULL;
	size_t most = all->commons, known = 0, others = 0, n;

	for (size_t i = 0; i < all->ranks; i++)
		most += all->rank[i].ends;
	list = calloc(most + 1, sizeof(*list));
	if (!list || !votes)
		return -ENOMEM;
	for (size_t i = 0; i < all->ranks; i++) {
		known += all->rank[i].is_known;
		if (all->rank[i].is_known)
			others += list_others(all, &all->rank[i], &list[others]);
	}
	count_votes(all, votes);
	qsort(list, others, sizeof(*list), by_time);
	n = keep_frequent(list, others, all->step_ns / SAME_PART, known);
	for (size_t j = 0; j < all->commons; j++)
		if (votes[j].have * 2 >= votes[j].recorded)
			list[n++] = all->common_ns[j];
	qsort(list, n, sizeof(*list), by_time);
	free(all->common_ns);
	all->common_ns = nt_take(list);
	all->commons = n;
	return 0;
}

/* Whether each step of the job is one of some rank. */
static bool is_whole(const struct alignment *all, struct end_votes *votes)
{
	count_votes(all, votes);
	for (size_t j = 0; j + 1 < all->commons; j++)
		if (!votes[j].recorded)
			return false;
	return all->commons > 1;
}

/* Gives the rank the steps between the common ends, from its first one to its last one. */
static int cut_anew(const struct rank_ends *of)
{
	const size_t steps = of->to - of->from;
	struct nt_kineto_interval *step = calloc(steps + 1, sizeof(*step));

	if (!step)
		return -ENOMEM;
	for (size_t i = 0; i < steps; i++) {
		step[i].start_ns = i ? step[i - 1].end_ns : of->common_ns[of->from];
		step[i].end_ns = of->common_ns[of->from + i + 1];
	}
	free(of->rank->step);
	of->rank->step = step;
	of->rank->steps = steps;
	of->rank->ahead = of->from;
	return 0;
}

static int cut_all(struct alignment *all)
{
	nt_autofree struct end_votes *votes = calloc(all->commons + 2, sizeof(*votes));
	int r = 0;

	if (!votes)
		return -ENOMEM;
	if (!is_whole(all, votes))
		return 0;
	for (size_t i = 0; i < all->ranks && r == 0; i++)
		if (all->rank[i].is_known)
			r = cut_anew(&all->rank[i]);
	return r;
}

/* The communicator of the calls that end its steps: that of the last one; 0: not known. */
static uint64_t class_of(const struct nt_kineto_rank *rank)
{
	for (size_t i = rank->comms; i-- > 0;)
		if (rank->comm[i]->ends_step)
			return rank->comm[i]->group ? rank->group[rank->comm[i]->group - 1].id : 0;
	return 0;
}

static int list_ends(struct rank_ends *of, struct nt_kineto_rank *rank)
{
	of->rank = rank;
	of->class = class_of(rank);
	of->ends = rank->steps + 1;
	of->end = calloc(of->ends, sizeof(*of->end));
	of->place = calloc(of->ends, sizeof(*of->place));
	of->shift_ns = calloc(of->ends, sizeof(*of->shift_ns));
	if (!of->end || !of->place || !of->shift_ns)
		return -ENOMEM;
	of->end[0] = rank->step[0].start_ns;
	for (size_t i = 1; i < of->ends; i++) {
		of->end[i] = rank->step[i - 1].end_ns;
		if (of->end[i] < of->end[i - 1])
			of->end[i] = of->end[i - 1];
	}
	return 0;
}

static int by_class(const void *a, const void *b)
{
	const struct rank_ends *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_ends(const void *a, const void *b)
{
	const struct rank_ends *x = a, *y = b;

	if (x->ends != y->ends)
		return x->ends < y->ends ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Starts with the ends of a rank that has as many as most ranks. Orders the ranks by their classes. */
static int choose_common(struct alignment *all)
{
	const struct rank_ends *best = all->rank;
	nt_autofree uint64_t *length = NULL;
	size_t most = 0;

	qsort(all->rank, all->ranks, sizeof(*all->rank), by_ends);
	for (size_t i = 0, end; i < all->ranks; i = end) {
		for (end = i + 1; end < all->ranks && all->rank[end].ends == all->rank[i].ends;)
			end++;
		if (end - i < most)
			continue;
		most = end - i;
		best = &all->rank[i];
	}
	all->commons = best->ends;
	all->common_ns = calloc(best->ends, sizeof(*all->common_ns));
	length = calloc(best->ends, sizeof(*length));
	if (!all->common_ns || !length)
		return -ENOMEM;
	memcpy(all->common_ns, best->end, best->ends * sizeof(*all->common_ns));
	for (size_t i = 1; i < best->ends; i++)
		length[i - 1] = best->end[i] - best->end[i - 1];
	qsort(length, best->ends - 1, sizeof(*length), by_time);
	all->step_ns = length[(best->ends - 1) / 2];
	qsort(all->rank, all->ranks, sizeof(*all->rank), by_class);
	return 0;
}

static int place_anew(struct alignment *all)
{
	for (size_t i = 0; i < all->ranks; i++) {
		struct rank_ends *of = &all->rank[i];

		free(of->common_ns);
		of->common_ns = calloc(all->commons + 1, sizeof(*of->common_ns));
		if (!of->common_ns)
			return -ENOMEM;
	}
	place_all(all);
	return 0;
}

int nt_kineto_align_steps(const struct nt_kineto_ranks *in)
{
	__attribute__((cleanup(release))) struct alignment all = {0};
	int r = 0;

	all.rank = calloc(in->ranks + 1, sizeof(*all.rank));
	if (!all.rank)
		return -ENOMEM;
	for (size_t i = 0; i < in->ranks && r == 0; i++) {
		if (in->rank[i].steps && !in->rank[i].cuts)
			return 0;
		if (in->rank[i].steps)
			r = list_ends(&all.rank[all.ranks++], &in->rank[i]);
	}
	if (r < 0 || all.ranks < 2)
		return r;
	r = choose_common(&all);
	r = r ?: place_anew(&all);
	r = r ?: vote(&all);
	if (r < 0 || all.commons < 2)
		return r;
	r = place_anew(&all);
	return r ?: cut_all(&all);
}
