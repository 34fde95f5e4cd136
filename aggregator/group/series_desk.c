/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/series_desk.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "common/base/duration.h"

enum {
	MAX_BYTES = 64 << 20,
};

struct series_rank {
	uint32_t number;
	float value[NT_SERIES_POINTS][NT_SERIES_METRIC_END]; /* as job->at_ns */
};

struct series_job {
	UT_hash_handle hh;
	char id[NT_JOB_ID_LEN + 1];
	bool is_lost; /* no memory to add it to the table */
	uint64_t frames; /* of the last point */
	uint64_t look; /* the last one that had it */
	uint64_t at_ns[NT_SERIES_POINTS]; /* a ring */
	size_t points; /* so far; the next one is at points % NT_SERIES_POINTS */
	struct series_rank *rank; /* ascending */
	size_t ranks, over_cap;
	struct nt_series_step step[NT_SERIES_STEPS]; /* a ring */
	size_t steps;
};

struct nt_series_desk {
	pthread_mutex_t lock;
	size_t max_ranks, ranks; /* of all jobs */
	struct series_job *job; /* by id */
	uint64_t looks, failed;
};

static const char *const names[NT_SERIES_METRIC_END] = {
	"step_seconds",    "own_seconds",           "own_peers_seconds",   "host_seconds",
	"blocked_seconds", "communication_seconds", "enqueue_lag_seconds", "kpi",
};

const char *nt_series_metric_name(enum nt_series_metric metric)
{
	return (unsigned int)metric < NT_SERIES_METRIC_END ? names[metric] : NULL;
}

enum nt_series_metric nt_series_metric_of(const char *name)
{
	for (unsigned int i = 0; i < NT_SERIES_METRIC_END; i++)
		if (!strcmp(name, names[i]))
			return (enum nt_series_metric)i;
	return NT_SERIES_METRIC_END;
}

int nt_series_desk_new(size_t max_bytes, struct nt_series_desk **ret_desk)
{
	struct nt_series_desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return -ENOMEM;
	pthread_mutex_init(&desk->lock, NULL);
	desk->max_ranks = (max_bytes ? max_bytes : MAX_BYTES) / sizeof(struct series_rank);
	*ret_desk = desk;
	return 0;
}

static void remove_job(struct nt_series_desk *desk, struct series_job *job)
{
	HASH_DEL(desk->job, job);
	desk->ranks -= job->ranks;
	free(job->rank);
	free(job);
}

void nt_series_desk_free(struct nt_series_desk *desk)
{
	struct series_job *job, *next;

	if (!desk)
		return;
	HASH_ITER(hh, desk->job, job, next)
	remove_job(desk, job);
	pthread_mutex_destroy(&desk->lock);
	free(desk);
}

/* ---- writing; the caller holds the lock ------------------------------------------------------ */

static float seconds(double ns, bool known)
{
	return known ? (float)(ns / (double)NT_SECOND) : NAN;
}

static void read_values(const struct nt_snapshot_rank *rank, float value[NT_SERIES_METRIC_END])
{
	const bool stepped = rank && rank->observed && rank->steps > 0;

	for (int i = 0; i < NT_SERIES_METRIC_END; i++)
		value[i] = NAN;
	if (!stepped)
		return;
	value[NT_SERIES_STEP] = seconds(rank->step_ns, true);
	value[NT_SERIES_OWN] = seconds(rank->own_ns, rank->own_observable);
	value[NT_SERIES_OWN_PEERS] = seconds(rank->own_peers_ns, rank->own_peers_ns > 0);
	value[NT_SERIES_HOST] = seconds(rank->host_ns, true);
	value[NT_SERIES_BLOCKED] = seconds(rank->blocked_ns, true);
	value[NT_SERIES_COMMUNICATION] = seconds(rank->comm_ns, true);
	value[NT_SERIES_ENQUEUE_LAG] = seconds(rank->gpu_lag_ns, rank->tier == NT_TIER_T3);
	value[NT_SERIES_KPI] = (float)rank->peer_deviation;
}

/* Whether the rank has a past: a process without a known rank, and a twin of a rank, has none. */
static bool is_kept(const struct nt_snapshot_job *job, size_t i)
{
	return job->rank[i].rank_known &&
	       (!i || !job->rank[i - 1].rank_known || job->rank[i - 1].rank != job->rank[i].rank);
}

/* At the cap those over it get a past once other jobs have made room. */
static bool has_room_for_more(const struct nt_series_desk *desk, const struct series_job *series)
{
	return series->over_cap && desk->ranks < desk->max_ranks;
}

static bool has_same_ranks(const struct series_job *series, const struct nt_snapshot_job *job)
{
	size_t count = 0;

	for (size_t i = 0; i < job->ranks; i++) {
		if (!is_kept(job, i))
			continue;
		if (count < series->ranks && series->rank[count].number != job->rank[i].rank)
			return false;
		count++;
	}
	return count == series->ranks + series->over_cap;
}

static void clear_rank(struct series_rank *rank, uint32_t number)
{
	rank->number = number;
	for (size_t i = 0; i < NT_SERIES_POINTS; i++)
		read_values(NULL, rank->value[i]);
}

/* Ranks came or went: those that stay keep their past. */
static int set_ranks(struct nt_series_desk *desk, struct series_job *series,
		     const struct nt_snapshot_job *job)
{
	const size_t room = desk->max_ranks - (desk->ranks - series->ranks);
	struct series_rank *rank = NULL;
	size_t wanted = 0, count = 0, old = 0;

	for (size_t i = 0; i < job->ranks; i++)
		wanted += is_kept(job, i);
	rank = calloc(wanted < room ? wanted + 1 : room + 1, sizeof(*rank));
	if (!rank)
		return -ENOMEM;
	for (size_t i = 0; i < job->ranks && count < room; i++) {
		if (!is_kept(job, i))
			continue;
		while (old < series->ranks && series->rank[old].number < job->rank[i].rank)
			old++;
		if (old < series->ranks && series->rank[old].number == job->rank[i].rank)
			rank[count++] = series->rank[old];
		else
			clear_rank(&rank[count++], job->rank[i].rank);
	}
	desk->ranks = desk->ranks - series->ranks + count;
	free(series->rank);
	series->rank = rank;
	series->ranks = count;
	series->over_cap = wanted - count;
	return 0;
}

static void add_step(struct series_job *series, const struct nt_snapshot_job *job)
{
	struct nt_series_step step = {
		.real_ns = job->last_seen_ns,
		.frame = job->frames,
		.step_s = seconds(job->step_ns, job->step_ns > 0),
		.completeness = (float)job->completeness,
		.live = job->live,
		.slowest_own_s = NAN,
	};

	for (size_t i = 0; i < job->ranks; i++) {
		float value[NT_SERIES_METRIC_END];

		read_values(&job->rank[i], value);
		if (isnan(value[NT_SERIES_OWN]) || value[NT_SERIES_OWN] <= step.slowest_own_s)
			continue;
		step.slowest_own_s = value[NT_SERIES_OWN];
		step.slowest_rank = job->rank[i].rank;
	}
	series->step[series->steps++ % NT_SERIES_STEPS] = step;
}

static void add_point(struct series_job *series, const struct nt_snapshot_job *job)
{
	const size_t at = series->points++ % NT_SERIES_POINTS;
	size_t next = 0;

	series->at_ns[at] = job->last_seen_ns;
	for (size_t i = 0; i < job->ranks && next < series->ranks; i++)
		if (is_kept(job, i))
			read_values(&job->rank[i], series->rank[next++].value[at]);
}

static struct series_job *add_job(struct nt_series_desk *desk, const char *id)
{
	struct series_job *series = calloc(1, sizeof(*series));

	if (!series)
		return NULL;
	memcpy(series->id, id, sizeof(series->id));
	HASH_ADD_STR(desk->job, id, series);
	if (!series->is_lost)
		return series;
	free(series);
	return NULL;
}

static int look_at_job(struct nt_series_desk *desk, const struct nt_snapshot_job *job)
{
	struct series_job *series;
	int r = 0;

	HASH_FIND_STR(desk->job, job->id, series);
	if (!series)
		series = add_job(desk, job->id);
	if (!series)
		return -ENOMEM;
	series->look = desk->looks;
	if (series->frames == job->frames)
		return 0;
	if (has_room_for_more(desk, series) || !has_same_ranks(series, job))
		r = set_ranks(desk, series, job);
	if (r < 0)
		return r;
	series->frames = job->frames;
	add_point(series, job);
	add_step(series, job);
	return 0;
}

void nt_series_desk_look(struct nt_series_desk *desk, const struct nt_snapshot *snapshot)
{
	struct series_job *series, *next;

	if (!desk)
		return;
	pthread_mutex_lock(&desk->lock);
	desk->looks++;
	for (size_t i = 0; i < snapshot->jobs; i++)
		if (!snapshot->job[i]->is_summary && look_at_job(desk, snapshot->job[i]) < 0)
			desk->failed++;
	HASH_ITER(hh, desk->job, series, next)
	if (series->look != desk->looks)
		remove_job(desk, series);
	pthread_mutex_unlock(&desk->lock);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const struct series_rank *find_rank(const struct series_job *series, uint32_t number)
{
	const struct series_rank *first = series->rank;
	size_t low = 0, high = first ? series->ranks : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (first[middle].number == number)
			return &first[middle];
		if (first[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

int nt_series_desk_rank(struct nt_series_desk *desk, const char *job_id, uint32_t number,
			enum nt_series_metric metric,
			struct nt_series_point ret_point[NT_SERIES_POINTS])
{
	const struct series_rank *rank;
	struct series_job *series;
	size_t first, count = 0;

	pthread_mutex_lock(&desk->lock);
	HASH_FIND_STR(desk->job, job_id, series);
	rank = series ? find_rank(series, number) : NULL;
	if (!series || !rank) {
		pthread_mutex_unlock(&desk->lock);
		return -ENOENT;
	}
	first = series->points > NT_SERIES_POINTS ? series->points - NT_SERIES_POINTS : 0;
	for (size_t i = first; i < series->points; i++)
		ret_point[count++] = (struct nt_series_point){
			.real_ns = series->at_ns[i % NT_SERIES_POINTS],
			.value = rank->value[i % NT_SERIES_POINTS][metric],
		};
	pthread_mutex_unlock(&desk->lock);
	return (int)count;
}

int nt_series_desk_steps(struct nt_series_desk *desk, const char *job_id,
			 struct nt_series_step ret_step[NT_SERIES_STEPS])
{
	struct series_job *series;
	size_t first, count = 0;

	pthread_mutex_lock(&desk->lock);
	HASH_FIND_STR(desk->job, job_id, series);
	if (!series) {
		pthread_mutex_unlock(&desk->lock);
		return -ENOENT;
	}
	first = series->steps > NT_SERIES_STEPS ? series->steps - NT_SERIES_STEPS : 0;
	for (size_t i = first; i < series->steps; i++)
		ret_step[count++] = series->step[i % NT_SERIES_STEPS];
	pthread_mutex_unlock(&desk->lock);
	return (int)count;
}

void nt_series_desk_stats(struct nt_series_desk *desk, struct nt_series_desk_stats *ret_stats)
{
	pthread_mutex_lock(&desk->lock);
	*ret_stats = (struct nt_series_desk_stats){
		.ranks = desk->ranks,
		.bytes = desk->ranks * sizeof(struct series_rank),
		.failed = desk->failed,
	};
	for (const struct series_job *one = desk->job; one; one = one->hh.next)
		ret_stats->ranks_over_cap += one->over_cap;
	pthread_mutex_unlock(&desk->lock);
}
