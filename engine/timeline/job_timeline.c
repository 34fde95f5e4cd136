/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline/job_timeline.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define MILLISECOND_NS 1000000ULL
#define JOB_BYTES      (32ULL << 20)
#define ALL_BYTES      (128ULL << 20)

/* The open cell of one rank: sums over its frames. */
struct timeline_sum {
	uint32_t rank;
	bool observed, has_own, has_waiting;
	uint64_t steps;
	double own_ns, waiting_ns;
	double excess; /* in hundredths of a step */
	uint32_t compared; /* frames in `excess` */
};

struct nt_job_timelines {
	struct nt_job_timelines_limits limits;
	struct nt_job_timelines_stats stats;
	struct nt_job_timeline *first; /* list */
};

struct nt_job_timeline {
	struct nt_job_timelines *all;
	struct nt_job_timeline *before, *after; /* of the list */
	struct nt_timeline_cell *cell[NT_TIMELINE_CELLS]; /* a ring */
	size_t oldest, cells;
	uint64_t bytes;
	/* The open cell. */
	uint64_t start_ns, end_ns; /* start 0: there is none */
	double step_ns; /* sum over `stepped` frames */
	uint32_t stepped;
	struct timeline_sum *sum; /* ascending by rank */
	size_t sums, sum_cap;
};

/* ---- cells ----------------------------------------------------------------------------------- */

static void unref_ranks(struct nt_timeline_ranks *ranks)
{
	if (ranks && atomic_fetch_sub_explicit(&ranks->refs, 1, memory_order_acq_rel) == 1)
		free(ranks);
}

struct nt_timeline_cell *nt_timeline_cell_ref(struct nt_timeline_cell *cell)
{
	atomic_fetch_add_explicit(&cell->refs, 1, memory_order_relaxed);
	return cell;
}

void nt_timeline_cell_unref(struct nt_timeline_cell *cell)
{
	if (!cell || atomic_fetch_sub_explicit(&cell->refs, 1, memory_order_acq_rel) > 1)
		return;
	unref_ranks(cell->ranks);
	free(cell);
}

const uint8_t *nt_timeline_values(const struct nt_timeline_cell *cell,
				  enum nt_timeline_series series)
{
	return &cell->value[(size_t)series * cell->ranks->count];
}

size_t nt_job_timeline_count(const struct nt_job_timeline *timeline)
{
	return timeline->cells;
}

struct nt_timeline_cell *nt_job_timeline_at(const struct nt_job_timeline *timeline, size_t index)
{
	return timeline->cell[(timeline->oldest + index) % NT_TIMELINE_CELLS];
}

/* ---- memory ---------------------------------------------------------------------------------- */

int nt_job_timelines_new(const struct nt_job_timelines_limits *limits,
			 struct nt_job_timelines **ret_timelines)
{
	struct nt_job_timelines *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	if (limits)
		all->limits = *limits;
	if (!all->limits.job_bytes)
		all->limits.job_bytes = JOB_BYTES;
	if (!all->limits.bytes)
		all->limits.bytes = ALL_BYTES;
	*ret_timelines = all;
	return 0;
}

void nt_job_timelines_free(struct nt_job_timelines *timelines)
{
	free(timelines);
}

void nt_job_timelines_stats(const struct nt_job_timelines *timelines,
			    struct nt_job_timelines_stats *ret_stats)
{
	*ret_stats = timelines->stats;
}

int nt_job_timeline_new(struct nt_job_timelines *timelines, struct nt_job_timeline **ret_timeline)
{
	struct nt_job_timeline *timeline = calloc(1, sizeof(*timeline));

	if (!timeline)
		return -ENOMEM;
	timeline->all = timelines;
	timeline->after = timelines->first;
	if (timelines->first)
		timelines->first->before = timeline;
	timelines->first = timeline;
	*ret_timeline = timeline;
	return 0;
}

static void drop_oldest(struct nt_job_timeline *timeline)
{
	struct nt_timeline_cell *cell = timeline->cell[timeline->oldest];

	timeline->cell[timeline->oldest] = NULL;
	timeline->oldest = (timeline->oldest + 1) % NT_TIMELINE_CELLS;
	timeline->cells--;
	timeline->bytes -= cell->bytes;
	timeline->all->stats.bytes_now -= cell->bytes;
	nt_timeline_cell_unref(cell);
}

void nt_job_timeline_free(struct nt_job_timeline *timeline)
{
	if (!timeline)
		return;
	while (timeline->cells)
		drop_oldest(timeline);
	if (timeline->before)
		timeline->before->after = timeline->after;
	else
		timeline->all->first = timeline->after;
	if (timeline->after)
		timeline->after->before = timeline->before;
	free(timeline->sum);
	free(timeline);
}

static struct nt_job_timeline *find_oldest(const struct nt_job_timelines *all)
{
	struct nt_job_timeline *oldest = NULL;

	for (struct nt_job_timeline *one = all->first; one; one = one->after)
		if (one->cells && (!oldest || nt_job_timeline_at(one, 0)->end_ns <
						      nt_job_timeline_at(oldest, 0)->end_ns))
			oldest = one;
	return oldest;
}

/* Of the job first, then of all: ended jobs give way to running ones. */
static void make_room(struct nt_job_timeline *timeline, size_t bytes)
{
	struct nt_job_timelines *all = timeline->all;

	if (timeline->cells == NT_TIMELINE_CELLS)
		drop_oldest(timeline);
	while (timeline->cells && timeline->bytes + bytes > all->limits.job_bytes) {
		drop_oldest(timeline);
		all->stats.evicted++;
	}
	while (all->stats.bytes_now + bytes > all->limits.bytes) {
		struct nt_job_timeline *oldest = find_oldest(all);

		if (!oldest)
			return;
		drop_oldest(oldest);
		all->stats.evicted++;
	}
}

/* ---- the open cell --------------------------------------------------------------------------- */

/* The ranks of the newest cell if they are those of the open one. */
static struct nt_timeline_ranks *same_ranks(const struct nt_job_timeline *timeline)
{
	struct nt_timeline_ranks *ranks;

	if (!timeline->cells)
		return NULL;
	ranks = nt_job_timeline_at(timeline, timeline->cells - 1)->ranks;
	if (ranks->count != timeline->sums)
		return NULL;
	for (size_t i = 0; i < timeline->sums; i++)
		if (ranks->rank[i] != timeline->sum[i].rank)
			return NULL;
	atomic_fetch_add_explicit(&ranks->refs, 1, memory_order_relaxed);
	return ranks;
}

static struct nt_timeline_ranks *copy_ranks(const struct nt_job_timeline *timeline)
{
	struct nt_timeline_ranks *ranks =
		calloc(1, sizeof(*ranks) + timeline->sums * sizeof(ranks->rank[0]));

	if (!ranks)
		return NULL;
	atomic_init(&ranks->refs, 1);
	ranks->count = timeline->sums;
	for (size_t i = 0; i < timeline->sums; i++)
		ranks->rank[i] = timeline->sum[i].rank;
	return ranks;
}

static uint8_t quantise_share(const struct timeline_sum *sum, bool is_known, double sum_ns,
			      double step_ns)
{
	double hundredths;

	if (!sum->observed)
		return NT_TIMELINE_UNKNOWN;
	if (!sum->steps)
		return NT_TIMELINE_NO_STEP;
	if (!is_known || !(step_ns > 0))
		return NT_TIMELINE_UNKNOWN;
	hundredths = round(100.0 * sum_ns / (double)sum->steps / step_ns);
	return (uint8_t)(NT_TIMELINE_ZERO + fmin(hundredths, NT_TIMELINE_MOST - NT_TIMELINE_ZERO));
}

static uint8_t quantise_excess(const struct timeline_sum *sum)
{
	if (!sum->compared)
		return NT_TIMELINE_UNKNOWN;
	return (uint8_t)(NT_TIMELINE_EVEN + (int)round(sum->excess / sum->compared));
}

static void fill_cell(const struct nt_job_timeline *timeline, struct nt_timeline_cell *cell)
{
	const size_t ranks = timeline->sums;

	for (size_t i = 0; i < ranks; i++) {
		const struct timeline_sum *sum = &timeline->sum[i];

		cell->value[NT_TIMELINE_OWN * ranks + i] =
			quantise_share(sum, sum->has_own, sum->own_ns, cell->step_ns);
		cell->value[NT_TIMELINE_WAITING * ranks + i] =
			quantise_share(sum, sum->has_waiting, sum->waiting_ns, cell->step_ns);
		cell->value[NT_TIMELINE_EXCESS * ranks + i] = quantise_excess(sum);
	}
}

/*
 * The list of ranks counts as the cell's that made it. It may outlive that cell, by one list for each
 * run of cells of the same ranks.
 */
static int close_open_cell(struct nt_job_timeline *timeline)
{
	struct nt_timeline_ranks *ranks = same_ranks(timeline);
	const size_t values = NT_TIMELINE_SERIES * timeline->sums;
	struct nt_timeline_cell *cell;
	size_t bytes = sizeof(*cell) + values;

	if (!ranks) {
		ranks = copy_ranks(timeline);
		bytes += sizeof(*ranks) + timeline->sums * sizeof(ranks->rank[0]);
	}
	cell = ranks ? calloc(1, sizeof(*cell) + values) : NULL;
	if (!cell) {
		unref_ranks(ranks);
		return -ENOMEM;
	}
	atomic_init(&cell->refs, 1);
	cell->bytes = bytes;
	cell->start_ns = timeline->start_ns / MILLISECOND_NS * MILLISECOND_NS;
	cell->end_ns = timeline->end_ns / MILLISECOND_NS * MILLISECOND_NS;
	cell->step_ns = timeline->stepped ? timeline->step_ns / timeline->stepped : 0;
	cell->ranks = ranks;
	fill_cell(timeline, cell);
	make_room(timeline, bytes);
	timeline->cell[(timeline->oldest + timeline->cells) % NT_TIMELINE_CELLS] = cell;
	timeline->cells++;
	timeline->bytes += bytes;
	timeline->all->stats.bytes_now += bytes;
	timeline->start_ns = 0;
	timeline->sums = 0;
	return 0;
}

static size_t count_new(const struct nt_job_timeline *timeline, const struct nt_frame *frame)
{
	size_t at = 0, count = 0;

	for (size_t i = 0; i < frame->ranks; i++) {
		while (at < timeline->sums && timeline->sum[at].rank < frame->rank[i].rank)
			at++;
		count += at == timeline->sums || timeline->sum[at].rank != frame->rank[i].rank;
	}
	return count;
}

/* Adds the frame's ranks to those of the open cell, which has room for them; both are ascending. */
static void join_ranks(struct nt_job_timeline *timeline, const struct nt_frame *frame, size_t count)
{
	size_t from = timeline->sums, i = frame->ranks, to = timeline->sums + count;

	timeline->sums = to;
	while (i > 0) {
		const uint32_t rank = frame->rank[i - 1].rank;

		if (from > 0 && timeline->sum[from - 1].rank >= rank) {
			i -= timeline->sum[from - 1].rank == rank;
			timeline->sum[--to] = timeline->sum[--from];
		} else {
			timeline->sum[--to] = (struct timeline_sum){.rank = rank};
			i--;
		}
	}
}

static int take_ranks(struct nt_job_timeline *timeline, const struct nt_frame *frame)
{
	size_t count = count_new(timeline, frame);
	struct timeline_sum *grown;
	int r;

	/* Processes that come and go within a cell. */
	if (count && timeline->sums && timeline->sums + count > NT_FRAME_MAX_RANKS) {
		r = close_open_cell(timeline);
		if (r < 0)
			return r;
		count = frame->ranks;
	}
	if (timeline->sums + count > timeline->sum_cap) {
		grown = reallocarray(timeline->sum, timeline->sums + count, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		timeline->sum = grown;
		timeline->sum_cap = timeline->sums + count;
	}
	if (count)
		join_ranks(timeline, frame, count);
	return 0;
}

static double hundredths(double value, double peers, double step_ns)
{
	return fmin(fmax(100.0 * (value - peers) / step_ns, -127.0), 127.0);
}

static void compare(struct timeline_sum *sum, const struct nt_detect *detect, double step_ns)
{
	struct nt_detect_rank_view view;
	double value, peers;

	if (!(step_ns > 0) || !nt_detect_rank(detect, sum->rank, &view))
		return;
	value = view.own_observable ? view.own_ns : view.host_ns;
	peers = view.own_observable ? view.own_peers_ns : view.host_peers_ns;
	if (!(peers > 0) || !isfinite(value) || !isfinite(peers))
		return;
	sum->excess += hundredths(value, peers, step_ns);
	sum->compared++;
}

/* Without observable work, the time in communication calls is all that is known. */
static void add_work(struct timeline_sum *sum, const struct nt_frame_rank *from)
{
	const bool has_own = from->own_tier == NT_FRAME_T2 || from->own_tier == NT_FRAME_T3;
	const bool has_host = from->own_tier == NT_FRAME_T1 && !from->no_host;
	const uint64_t work_ns = has_own ? from->own_ns : has_host ? from->host_ns : 0;

	sum->steps += from->steps;
	sum->has_waiting = true;
	if (has_own || has_host) {
		sum->has_own = true;
		sum->own_ns += (double)work_ns;
		sum->waiting_ns +=
			work_ns < from->step_ns ? (double)(from->step_ns - work_ns) : 0.0;
	} else {
		sum->waiting_ns += (double)from->comm_ns;
	}
}

static void add_frame(struct nt_job_timeline *timeline, const struct nt_detect *detect,
		      const struct nt_frame *frame)
{
	const double step_ns = nt_detect_step_ns(detect);
	bool has_steps = false;
	size_t at = 0;

	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *from = &frame->rank[i];
		struct timeline_sum *sum;

		while (timeline->sum[at].rank < from->rank)
			at++;
		sum = &timeline->sum[at];
		sum->observed |= from->observed;
		if (!from->observed || !from->steps)
			continue;
		has_steps = true;
		add_work(sum, from);
		compare(sum, detect, step_ns);
	}
	if (has_steps && step_ns > 0) {
		timeline->step_ns += step_ns;
		timeline->stepped++;
	}
}

int nt_job_timeline_add(struct nt_job_timeline *timeline, const struct nt_detect *detect,
			const struct nt_frame *frame)
{
	int r;

	/* After a gap a cell begins anew. */
	if (timeline->start_ns && frame->start_ns > timeline->end_ns &&
	    frame->start_ns - timeline->end_ns >= NT_TIMELINE_CELL_NS) {
		r = close_open_cell(timeline);
		if (r < 0)
			return r;
	}
	r = take_ranks(timeline, frame);
	if (r < 0 || !timeline->sums)
		return r;
	if (!timeline->start_ns) {
		timeline->start_ns = frame->start_ns ? frame->start_ns : 1;
		timeline->step_ns = 0;
		timeline->stepped = 0;
	}
	timeline->end_ns = frame->end_ns;
	add_frame(timeline, detect, frame);
	return frame->end_ns - timeline->start_ns >= NT_TIMELINE_CELL_NS ? close_open_cell(timeline)
									 : 0;
}
