/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/replay/windows.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/search.h"
#include "proto/text.h"

_Static_assert(NT_WINDOWS_MAX_COLUMNS % 2 == 0, "columns are merged two by two");

int nt_windows_new(const struct nt_rules *rules, struct nt_windows **ret_windows)
{
	struct nt_windows *windows = calloc(1, sizeof(*windows));

	if (!windows)
		return -ENOMEM;
	windows->rules = *rules;
	*ret_windows = windows;
	return 0;
}

static void release_job(struct nt_windows_job *job)
{
	for (size_t i = 0; i < job->ranks; i++)
		free(job->rank[i].cell);
	free(job->rank);
	for (size_t i = 0; i < job->nodes; i++)
		free(job->node[i]);
	free(job->node);
	nt_rater_free(job->rater);
}

void nt_windows_free(struct nt_windows *windows)
{
	if (!windows)
		return;
	for (size_t i = 0; i < windows->jobs; i++)
		release_job(&windows->job[i]);
	free(windows->job);
	free(windows->window);
	free(windows->mark);
	free(windows);
}

/* NULL with *ret_error = 0: the cap is reached. */
static struct nt_windows_job *find_job(struct nt_windows *windows,
				       const struct nt_windows_names *names, int *ret_error)
{
	struct nt_windows_job *job;

	*ret_error = 0;
	/* Newest first: of several attempts only the last one continues. */
	for (size_t i = windows->jobs; i > 0; i--)
		if (windows->job[i - 1].id == names->id)
			return &windows->job[i - 1];
	if (windows->jobs == NT_WINDOWS_MAX_JOBS) {
		windows->jobs_left_out++;
		return NULL;
	}
	job = reallocarray(windows->job, windows->jobs + 1, sizeof(*job));
	if (!job) {
		*ret_error = -ENOMEM;
		return NULL;
	}
	windows->job = job;
	job += windows->jobs;
	*job = (struct nt_windows_job){.id = names->id, .attempt = names->attempt, .span = 1};
	(void)nt_text_clean(names->name, strlen(names->name), job->name, sizeof(job->name) - 1);
	(void)nt_text_clean(names->key, strlen(names->key), job->key, sizeof(job->key) - 1);
	*ret_error = nt_rater_new(&windows->rules, &job->rater);
	if (*ret_error < 0)
		return NULL;
	windows->jobs++;
	return job;
}

/* The index of the rank, or where to insert it. */
static size_t place_of(const struct nt_windows_job *job, uint32_t rank)
{
	if (rank < job->ranks && job->rank[rank].rank == rank)
		return rank;
	return nt_search_first(0, job->ranks, i, job->rank[i].rank >= rank);
}

const struct nt_windows_rank *nt_windows_find(const struct nt_windows_job *job, uint32_t rank)
{
	const size_t place = place_of(job, rank);

	return place < job->ranks && job->rank[place].rank == rank ? &job->rank[place] : NULL;
}

const char *nt_windows_node(const struct nt_windows_job *job, uint32_t index)
{
	return index < job->nodes && job->node[index] ? job->node[index] : "";
}

/* NULL with *ret_error = 0: the cap is reached. */
static struct nt_windows_rank *find_rank(struct nt_windows *windows, struct nt_windows_job *job,
					 uint32_t number, int *ret_error)
{
	const size_t place = place_of(job, number);
	struct nt_windows_rank *rank;

	*ret_error = 0;
	if (place < job->ranks && job->rank[place].rank == number)
		return &job->rank[place];
	if (windows->rows == NT_WINDOWS_MAX_RANKS) {
		windows->ranks_left_out++;
		return NULL;
	}
	*ret_error = -ENOMEM;
	if (job->ranks == job->rank_cap) {
		const size_t cap = job->rank_cap ? 2 * job->rank_cap : 16;

		rank = reallocarray(job->rank, cap, sizeof(*rank));
		if (!rank)
			return NULL;
		job->rank = rank;
		job->rank_cap = cap;
	}
	rank = &job->rank[place];
	memmove(rank + 1, rank, (job->ranks - place) * sizeof(*rank));
	*rank = (struct nt_windows_rank){.rank = number, .cell = calloc(1, NT_WINDOWS_MAX_COLUMNS)};
	if (!rank->cell) {
		memmove(rank, rank + 1, (job->ranks - place) * sizeof(*rank));
		return NULL;
	}
	job->ranks++;
	windows->rows++;
	*ret_error = 0;
	return rank;
}

static int name_node(struct nt_windows_job *job, const struct nt_windows_names *names,
		     uint32_t index)
{
	const char *name;

	/* NT_FRAME_NO_NODE exceeds all of them. */
	if (index >= NT_WINDOWS_MAX_NODES || !names->node ||
	    (index < job->nodes && job->node[index]))
		return 0;
	name = names->node(names->data, index);
	if (!name)
		return 0;
	if (index >= job->nodes) {
		const size_t nodes = (size_t)index + 1;
		char **grown = reallocarray(job->node, nodes, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(&grown[job->nodes], 0, (nodes - job->nodes) * sizeof(*grown));
		job->node = grown;
		job->nodes = nodes;
	}
	job->node[index] = strndup(name, NT_WINDOWS_NAME - 1);
	return job->node[index] ? 0 : -ENOMEM;
}

static double limit(double hundredths)
{
	return fmin(fmax(hundredths, -NT_CELL_LIMIT), NT_CELL_LIMIT);
}

uint8_t nt_windows_mean(const uint8_t *cell, size_t count)
{
	double sum = 0.0;
	uint32_t n = 0;

	if (count == 1)
		return cell[0];
	for (size_t i = 0; i < count; i++) {
		if (cell[i] == NT_CELL_NONE)
			continue;
		sum += limit((double)cell[i] - NT_CELL_EVEN);
		n++;
	}
	return n ? (uint8_t)(NT_CELL_EVEN + (int)round(sum / n)) : NT_CELL_NONE;
}

static void merge_columns(struct nt_windows_job *job)
{
	for (size_t i = 0; i < job->columns / 2; i++)
		job->column[i] = (struct nt_windows_column){job->column[2 * i].start_ns,
							    job->column[2 * i + 1].end_ns};
	for (size_t i = 0; i < job->ranks; i++) {
		uint8_t *cell = job->rank[i].cell;

		for (size_t c = 0; c < job->columns / 2; c++)
			cell[c] = nt_windows_mean(&cell[2 * c], 2);
		memset(&cell[job->columns / 2], NT_CELL_NONE,
		       NT_WINDOWS_MAX_COLUMNS - job->columns / 2);
	}
	job->columns /= 2;
	job->span *= 2;
}

static void open_column(struct nt_windows_job *job, const struct nt_frame *frame)
{
	const bool is_first = job->windows % job->span == 0;

	if (is_first && job->columns == NT_WINDOWS_MAX_COLUMNS) {
		merge_columns(job);
		open_column(job, frame);
		return;
	}
	if (is_first) {
		job->column[job->columns++].start_ns = frame->start_ns;
		job->open_since = job->windows;
	}
	job->column[job->columns - 1].end_ns = frame->end_ns;
}

/* Adds to the open column, which may already contain windows of the rank. */
static void add_to_cell(const struct nt_windows_job *job, struct nt_windows_rank *rank,
			double excess)
{
	const double hundredths = fmin(fmax(excess * 100.0, -127.0), 127.0);

	if (rank->open_since != job->open_since)
		rank->opens = 0;
	if (!rank->opens)
		rank->open_sum = 0.0;
	rank->open_since = job->open_since;
	rank->opens++;
	rank->open_sum += limit(hundredths);
	rank->cell[job->columns - 1] =
		(uint8_t)(NT_CELL_EVEN +
			  (int)round(job->span == 1 ? hundredths : rank->open_sum / rank->opens));
}

static void add_to_rank(const struct nt_windows_job *job, struct nt_windows_rank *rank,
			const struct nt_rating *rating, uint64_t start_ns)
{
	if (rating->node != NT_FRAME_NO_NODE || !rank->judged)
		rank->node = rating->node;
	if (!rating->judged)
		return;
	add_to_cell(job, rank, rating->excess);
	if (!rank->judged || rating->excess > rank->worst.excess) {
		rank->worst = (struct nt_windows_mark){rating->rank, rating->host, rating->value_ns,
						       rating->peers_ns, rating->excess};
		rank->worst_ns = start_ns;
	}
	rank->judged++;
	rank->marked += rating->marked;
	rank->excess += rating->excess;
}

static int list_window(struct nt_windows *windows, uint32_t job, const struct nt_frame *frame)
{
	if (windows->listed == NT_WINDOWS_MAX_LISTED) {
		windows->windows_left_out++;
		return 0;
	}
	if (windows->listed == windows->window_cap) {
		const size_t cap = windows->window_cap ? 2 * windows->window_cap : 64;
		struct nt_windows_window *grown =
			reallocarray(windows->window, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		windows->window = grown;
		windows->window_cap = cap;
	}
	windows->window[windows->listed++] = (struct nt_windows_window){
		.job = job,
		.number = windows->job[job].windows,
		.start_ns = frame->start_ns,
		.end_ns = frame->end_ns,
		.first = windows->marks,
	};
	return 0;
}

/* Adds to the window listed last; if this one is not listed, the mark is only counted. */
static int list_mark(struct nt_windows *windows, struct nt_windows_window *window,
		     const struct nt_rating *rating)
{
	if (window)
		window->marks++;
	if (!window || windows->marks == NT_WINDOWS_MAX_MARKS) {
		windows->marks_left_out++;
		return 0;
	}
	if (windows->marks == windows->mark_cap) {
		const size_t cap = windows->mark_cap ? 2 * windows->mark_cap : 64;
		struct nt_windows_mark *grown = reallocarray(windows->mark, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		windows->mark = grown;
		windows->mark_cap = cap;
	}
	windows->mark[windows->marks++] = (struct nt_windows_mark){
		rating->rank, rating->host, rating->value_ns, rating->peers_ns, rating->excess};
	window->kept++;
	return 0;
}

int nt_windows_add(struct nt_windows *windows, const struct nt_windows_names *names,
		   const struct nt_detect *detect, const struct nt_frame *frame)
{
	const size_t listed = windows->listed;
	const struct nt_rating *rating = NULL;
	struct nt_windows_window *window;
	struct nt_windows_job *job;
	int r;

	job = find_job(windows, names, &r);
	if (!job)
		return r;
	r = nt_rater_rate(job->rater, detect, frame, &rating);
	r = r ?: list_window(windows, (uint32_t)(job - windows->job), frame);
	if (r < 0)
		return r;
	window = windows->listed > listed ? &windows->window[listed] : NULL;
	open_column(job, frame);
	for (size_t i = 0; i < frame->ranks; i++) {
		struct nt_windows_rank *rank = find_rank(windows, job, rating[i].rank, &r);

		if (r < 0)
			return r;
		if (rank)
			add_to_rank(job, rank, &rating[i], frame->start_ns);
		r = name_node(job, names, rating[i].node);
		if (window)
			window->judged += rating[i].judged;
		if (r == 0 && rating[i].marked)
			r = list_mark(windows, window, &rating[i]);
		if (r < 0)
			return r;
	}
	job->windows++;
	return 0;
}
