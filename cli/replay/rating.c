/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/replay/rating.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/search.h"
#include "detect/math/peer_clusters.h"
#include "detect/math/stats.h"

enum {
	SERIES = 2, /* own work, host work */
	NO_RANK = UINT32_MAX,
};

/* The detector's state of a rank. */
struct rated_rank {
	uint32_t rank;
	bool known, observable;
	bool has_steps; /* in this frame */
	bool fresh; /* judged in this frame, not only in an earlier one */
	bool visited;
	double value[SERIES], peers[SERIES];
	double cusum;
	const uint32_t *peer;
	size_t peer_count;
};

struct nt_rater {
	struct nt_rules rules;
	struct rated_rank *seen, *before; /* of this frame and the last, each ascending */
	struct nt_rating *rating;
	uint32_t *member, *label; /* member: indices into seen */
	double *value, *sorted;
	size_t befores, cap;
};

int nt_rater_new(const struct nt_rules *rules, struct nt_rater **ret_rater)
{
	struct nt_rater *rater = calloc(1, sizeof(*rater));

	if (!rater)
		return -ENOMEM;
	rater->rules = *rules;
	*ret_rater = rater;
	return 0;
}

void nt_rater_free(struct nt_rater *rater)
{
	if (!rater)
		return;
	free(rater->seen);
	free(rater->before);
	free(rater->rating);
	free(rater->member);
	free(rater->label);
	free(rater->value);
	free(rater->sorted);
	free(rater);
}

static int grow(void **array, size_t count, size_t size)
{
	void *grown = reallocarray(*array, count, size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

static int make_room(struct nt_rater *rater, size_t ranks)
{
	const size_t cap = ranks + ranks / 4 + 16;

	if (ranks <= rater->cap)
		return 0;
	if (grow((void **)&rater->seen, cap, sizeof(*rater->seen)) < 0 ||
	    grow((void **)&rater->before, cap, sizeof(*rater->before)) < 0 ||
	    grow((void **)&rater->rating, cap, sizeof(*rater->rating)) < 0 ||
	    grow((void **)&rater->member, cap, sizeof(*rater->member)) < 0 ||
	    grow((void **)&rater->label, cap, sizeof(*rater->label)) < 0 ||
	    grow((void **)&rater->value, cap, sizeof(*rater->value)) < 0 ||
	    grow((void **)&rater->sorted, cap, sizeof(*rater->sorted)) < 0)
		return -ENOMEM;
	rater->cap = cap;
	return 0;
}

static bool is_equal(const struct rated_rank *a, const struct rated_rank *b)
{
	for (int i = 0; i < SERIES; i++)
		if (a->value[i] != b->value[i] || a->peers[i] != b->peers[i])
			return false;
	return a->cusum == b->cusum;
}

/* The detector keeps the values of the last round: those that changed are of this one. */
static void look(struct nt_rater *rater, const struct nt_detect *detect,
		 const struct nt_frame *frame)
{
	size_t at = 0;

	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *from = &frame->rank[i];
		struct rated_rank *seen = &rater->seen[i];
		struct nt_detect_rank_view view;

		*seen = (struct rated_rank){.rank = from->rank};
		if (!nt_detect_rank(detect, from->rank, &view))
			continue;
		seen->known = from->observed;
		seen->observable = view.own_observable;
		seen->has_steps = from->steps > 0;
		seen->value[0] = view.own_ns;
		seen->peers[0] = view.own_peers_ns;
		seen->value[1] = view.host_ns;
		seen->peers[1] = view.host_peers_ns;
		seen->cusum = view.cusum;
		seen->peer = view.peers;
		seen->peer_count = view.peer_count;
		while (at < rater->befores && rater->before[at].rank < from->rank)
			at++;
		seen->fresh = at == rater->befores || rater->before[at].rank != from->rank ||
			      !is_equal(&rater->before[at], seen);
	}
}

static uint32_t find(const struct nt_rater *rater, size_t ranks, uint32_t rank)
{
	size_t low;

	if (rank < ranks && rater->seen[rank].rank == rank)
		return rank;
	low = nt_search_first(0, ranks, i, rater->seen[i].rank >= rank);
	return low < ranks && rater->seen[low].rank == rank ? (uint32_t)low : NO_RANK;
}

/* Collects the rank at this index and its peers, if present in the frame. */
static size_t gather(struct nt_rater *rater, size_t ranks, size_t first)
{
	const struct rated_rank *seen = &rater->seen[first];
	size_t n = 0, steps = 0;

	rater->seen[first].visited = true;
	if (seen->known)
		rater->member[n++] = (uint32_t)first;
	for (size_t i = 0; i < seen->peer_count; i++) {
		const uint32_t index = find(rater, ranks, seen->peer[i]);

		if (index == NO_RANK || rater->seen[index].visited)
			continue;
		rater->seen[index].visited = true;
		if (rater->seen[index].known)
			rater->member[n++] = index;
	}
	for (size_t i = 0; i < n; i++)
		steps += rater->seen[rater->member[i]].has_steps;
	/* Bit-identical values do not change: then the step counts decide. */
	for (size_t i = 0; i < n && steps >= n - n / 8; i++)
		rater->seen[rater->member[i]].fresh |= rater->seen[rater->member[i]].has_steps;
	return n;
}

/* The frame's step time if the detector has not learned the job's yet. */
static double step_of(const struct nt_detect *detect, const struct nt_frame *frame)
{
	double step = nt_detect_step_ns(detect);

	for (size_t i = 0; i < frame->ranks && step <= 0.0; i++)
		if (frame->rank[i].steps)
			step = (double)frame->rank[i].step_ns / frame->rank[i].steps;
	return step;
}

/* As in the detection: the more peers, the smaller the gap that separates two clusters. */
static double reach(size_t n)
{
	return fmax(0.75, 2.0 * sqrt(8.0 / fmax(8.0, (double)n)));
}

/*
 * The value above which a rank is outside the largest cluster. INFINITY: no rank is, with fewer
 * than three ranks, or two populations of which neither is normal.
 */
static double cluster_end(struct nt_rater *rater, size_t n, double step)
{
	const struct nt_rules *rules = &rater->rules;
	const double middle = nt_stats_median(rater->sorted, n);
	const double base = fmax(fmax(middle, rules->peer_deviation_floor * step), 1.0);
	struct nt_peer_clusters space;

	if (n < 3)
		return INFINITY;
	for (size_t i = 0; i < n; i++)
		rater->sorted[i] = (rater->sorted[i] - middle) / base;
	space = nt_peer_clusters_split(
		rater->sorted, n,
		reach(n) * fmax(rules->peer_deviation_floor, nt_stats_core(rater->sorted, n)),
		rater->label);
	/* One of three is always a third. */
	if (n > 3 && space.two &&
	    fabs(space.other - space.normal) * base > rules->size_floor * step)
		return INFINITY;
	return middle + space.high * base;
}

static bool takes_part(const struct rated_rank *seen, int series)
{
	return seen->fresh && (series == 1 || seen->observable) &&
	       (seen->value[series] > 0.0 || seen->peers[series] > 0.0);
}

static void rate_series(struct nt_rater *rater, size_t members, int series, double step)
{
	size_t n = 0;
	double end;

	for (size_t i = 0; i < members; i++) {
		const struct rated_rank *seen = &rater->seen[rater->member[i]];

		if (!takes_part(seen, series))
			continue;
		rater->value[n] = rater->sorted[n] = seen->value[series];
		n++;
	}
	if (n < 2)
		return;
	nt_stats_sort(rater->sorted, n);
	end = cluster_end(rater, n, step);
	for (size_t i = 0; i < members; i++) {
		const uint32_t index = rater->member[i];
		const struct rated_rank *seen = &rater->seen[index];
		struct nt_rating *rating = &rater->rating[index];
		const double excess = (seen->value[series] - seen->peers[series]) / step;
		const bool marked = seen->value[series] > end && excess >= rater->rules.size_floor;

		if (!takes_part(seen, series))
			continue;
		if (rating->judged && (marked < rating->marked ||
				       (marked == rating->marked && excess <= rating->excess)))
			continue;
		rating->judged = true;
		rating->marked = marked;
		rating->host = series == 1;
		rating->value_ns = seen->value[series];
		rating->peers_ns = seen->peers[series];
		rating->excess = excess;
	}
}

int nt_rater_rate(struct nt_rater *rater, const struct nt_detect *detect,
		  const struct nt_frame *frame, const struct nt_rating **ret_rating)
{
	const double step = step_of(detect, frame);
	struct rated_rank *swap;

	if (make_room(rater, frame->ranks + 1) < 0)
		return -ENOMEM;
	look(rater, detect, frame);
	for (size_t i = 0; i < frame->ranks; i++)
		rater->rating[i] = (struct nt_rating){.rank = frame->rank[i].rank,
						      .node = frame->rank[i].node};
	for (size_t i = 0; i < frame->ranks && step > 0.0; i++) {
		size_t members;

		if (rater->seen[i].visited)
			continue;
		members = gather(rater, frame->ranks, i);
		for (int series = 0; series < SERIES; series++)
			rate_series(rater, members, series, step);
	}
	/* Pointers into the detector are invalid after this call. */
	for (size_t i = 0; i < frame->ranks; i++)
		rater->seen[i].peer = NULL;
	swap = rater->before;
	rater->before = rater->seen;
	rater->seen = swap;
	rater->befores = frame->ranks;
	*ret_rating = rater->rating;
	return 0;
}
