/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What one pass of the detection costs: a new window of a job, all its ranks in memory, through all
 * detectors to findings. Twenty-four windows are learned from before; then so many are measured in a
 * healthy job, and so many with the incident of a slow rank open.
 *
 *	detect RANKS TP PP PASSES [FILE]
 *
 * Prints: ranks, median CPU milliseconds of a pass, healthy and with the incident, the longest of all,
 * CPU milliseconds of the one-dimensional DBSCAN of the last window, its eps, pairs of ranks within
 * eps of each other, and CPU milliseconds of a bare walk over as many bytes as a pass has to do with:
 * what the machine's memory alone makes of more ranks. FILE gets what DBSCAN was given, as doubles, and the labels that it gave, as
 * doubles.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/parse_number.h"
#include "detect/detect.h"
#include "detect/math/dbscan.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"

enum {
	LEARN = 24,
	SETTLE = 14, /* windows from the fault to the first that is measured */
	STEPS = 6, /* of a window */
	NODE_RANKS = 8,
	COMMS = 4, /* of a rank */
	SAMPLED = 2, /* calls of a communicator and window */
	LINE = 64, /* bytes that memory is read by */
	/* A rank in the window and in what is known. */
	RANK_BYTES = sizeof(struct nt_frame_rank) + COMMS * sizeof(struct nt_frame_comm) +
		     COMMS * SAMPLED * sizeof(struct nt_frame_sample) +
		     sizeof(struct nt_detect_rank),
	MAX_PASSES = 101,
	DEVICE_NS = 70000000,
	HOST_NS = 10000000,
	TRANSFER_NS = 2000000, /* of a step */
	LATEST_NS = 1000000,
	OP = 1,
	OP_SEND = 10,
};

/* Members of a communicator are `first`, first + stride, ... */
struct group {
	uint32_t first, stride, members, calls;
	uint64_t last;
	struct nt_frame_signature recent[NT_FRAME_RECENT];
	uint8_t kind;
};

struct bench_job {
	uint32_t ranks, tp, pp, dp;
	struct group *group;
	uint32_t groups;
	struct nt_frame frame;
	struct nt_frame_rank *rank;
	struct nt_frame_comm *comm;
	struct nt_frame_op *op;
	struct nt_frame_sample *sample;
	double *value; /* own work of a step */
	uint32_t slow; /* rank, or none */
	uint64_t now_ns, seed;
};

static double draw(struct bench_job *job)
{
	/* splitmix64 */
	uint64_t z = (job->seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double draw_normal(struct bench_job *job)
{
	const double a = 1.0 - draw(job), b = draw(job);

	return sqrt(-2.0 * log(a)) * cos(6.283185307179586 * b);
}

static void add_group(struct bench_job *job, uint32_t first, uint32_t stride, uint32_t members,
		      uint32_t calls, uint8_t kind)
{
	job->group[job->groups++] = (struct group){
		.first = first, .stride = stride, .members = members, .calls = calls, .kind = kind};
}

/* Tensor place first, then replica, then stage; a group's id is its place among all, from 1 on. */
static int make_job(struct bench_job *job)
{
	const uint32_t tp = job->tp, dp = job->dp, pp = job->pp, n = job->ranks;

	job->group = calloc((size_t)pp * dp + (size_t)tp * pp + (size_t)tp * dp + 1,
			    sizeof(*job->group));
	job->rank = calloc(n, sizeof(*job->rank));
	job->comm = calloc((size_t)n * COMMS, sizeof(*job->comm));
	job->op = calloc((size_t)n * COMMS, sizeof(*job->op));
	job->sample = calloc((size_t)n * COMMS * SAMPLED, sizeof(*job->sample));
	job->value = calloc(n, sizeof(*job->value));
	if (!job->group || !job->rank || !job->comm || !job->op || !job->sample || !job->value)
		return -ENOMEM;
	for (uint32_t i = 0; tp > 1 && i < pp * dp; i++)
		add_group(job, i * tp, 1, tp, 64, NT_FRAME_SYNCHRONISING);
	for (uint32_t i = 0; i < tp * pp; i++)
		add_group(job, i % tp + tp * dp * (i / tp), tp, dp, 4, NT_FRAME_SYNCHRONISING);
	for (uint32_t i = 0; pp > 1 && i < tp * dp; i++)
		add_group(job, i, tp * dp, pp, 16, NT_FRAME_POINT_TO_POINT);
	if (tp * pp > 1)
		add_group(job, 0, 1, n, 1, NT_FRAME_SYNCHRONISING);
	return 0;
}

static void free_job(struct bench_job *job)
{
	free(job->group);
	free(job->rank);
	free(job->comm);
	free(job->op);
	free(job->sample);
	free(job->value);
}

/* The groups of a rank, ascending. */
static uint32_t groups_of(const struct bench_job *job, uint32_t rank, uint32_t *ret_group)
{
	const uint32_t tp = job->tp, dp = job->dp, pp = job->pp;
	const uint32_t stage = rank / (tp * dp);
	uint32_t n = 0, base = 0;

	if (tp > 1) {
		ret_group[n++] = rank / tp;
		base += pp * dp;
	}
	ret_group[n++] = base + stage * tp + rank % tp;
	base += tp * pp;
	if (pp > 1)
		ret_group[n++] = base + rank % (tp * dp);
	if (tp * pp > 1)
		ret_group[n++] = job->groups - 1;
	return n;
}

static void fill_comms(struct bench_job *job, uint32_t at, struct nt_frame_rank *rank, double wait)
{
	uint32_t group[COMMS];

	rank->comm = &job->comm[(size_t)at * COMMS];
	rank->comms = groups_of(job, at, group);
	for (size_t i = 0; i < rank->comms; i++) {
		const struct group *mine = &job->group[group[i]];
		struct nt_frame_op *op = &job->op[(size_t)at * COMMS + i];

		*op = (struct nt_frame_op){
			.op = mine->kind == NT_FRAME_POINT_TO_POINT ? OP_SEND : OP,
			.kind = mine->kind,
			.calls = (uint64_t)mine->calls * STEPS,
			.bytes = (uint64_t)mine->calls * STEPS *
				 (mine->calls == 4 ? 1 << 27 : 1 << 16),
			.first = mine->last - (uint64_t)mine->calls * STEPS + 1,
			.last = mine->last,
			.timed_calls = (uint64_t)mine->calls * STEPS,
			.sum_ns = (uint64_t)(wait * STEPS),
			.min_ns = TRANSFER_NS / mine->calls,
		};
		job->comm[(size_t)at * COMMS + i] = (struct nt_frame_comm){
			.id = group[i] + 1,
			.rank = (at - mine->first) / mine->stride,
			.size = mine->members,
			.epoch = 1,
			.last = mine->last,
			.rolling_hash = mine->last * 77,
			.op = op,
			.ops = 1,
			.recent = mine->recent,
			.recents = NT_FRAME_RECENT,
		};
	}
}

/* Calls that all members sampled, sorted as a frame wants them. */
static size_t fill_samples(struct bench_job *job)
{
	size_t n = 0;

	for (uint32_t i = 0; i < job->groups; i++) {
		const struct group *group = &job->group[i];

		if (group->kind != NT_FRAME_SYNCHRONISING)
			continue;
		for (uint64_t call = 0; call < SAMPLED; call++) {
			for (uint32_t j = 0; j < group->members; j++) {
				const uint64_t late =
					j ? (uint64_t)(draw(job) * LATEST_NS) : LATEST_NS;

				job->sample[n++] = (struct nt_frame_sample){
					.comm = i + 1,
					.epoch = 1,
					.number = group->last - SAMPLED + 1 + call,
					.bytes = group->calls == 4 ? 1 << 27 : 1 << 16,
					.op = OP,
					.kind = group->kind,
					.rank = group->first + j * group->stride,
					.arrive_ns = job->now_ns + late,
					.release_ns =
						job->now_ns + 1000000 + TRANSFER_NS / group->calls,
				};
			}
		}
	}
	return n;
}

static void fill_groups(struct bench_job *job)
{
	for (uint32_t i = 0; i < job->groups; i++) {
		struct group *group = &job->group[i];

		group->last += (uint64_t)group->calls * STEPS;
		for (uint32_t j = 0; j < NT_FRAME_RECENT; j++)
			group->recent[j] = (struct nt_frame_signature){
				.number = group->last + j + 1 > NT_FRAME_RECENT
						  ? group->last + j + 1 - NT_FRAME_RECENT
						  : 0,
				.count = 1000,
				.type = 7,
				.op = group->kind == NT_FRAME_POINT_TO_POINT ? OP_SEND : OP};
	}
}

static const struct nt_frame *next_frame(struct bench_job *job)
{
	double longest = 0.0, step;

	fill_groups(job);
	for (uint32_t i = 0; i < job->ranks; i++) {
		double factor = 1.0 + 0.02 * draw_normal(job);

		if (i == job->slow)
			factor *= 1.3;
		job->value[i] = (DEVICE_NS + HOST_NS) * fmax(0.5, factor);
		longest = fmax(longest, job->value[i]);
	}
	step = longest + TRANSFER_NS;
	job->frame.start_ns = job->now_ns;
	job->now_ns += (uint64_t)(step * STEPS);
	job->frame.end_ns = job->now_ns;
	for (uint32_t i = 0; i < job->ranks; i++) {
		const double part = job->value[i] / (DEVICE_NS + HOST_NS);
		struct nt_frame_rank *rank = &job->rank[i];

		*rank = (struct nt_frame_rank){
			.rank = i,
			.node = i / NODE_RANKS,
			.steps = STEPS,
			.own_tier = NT_FRAME_T2,
			.rank_known = true,
			.observed = true,
			.uses_gpu = true,
			.own_ns = (uint64_t)(job->value[i] * STEPS),
			.own_blocked_ns = (uint64_t)(DEVICE_NS * part * STEPS),
			.host_ns = (uint64_t)(HOST_NS * part * STEPS),
			.blocked_ns = (uint64_t)(DEVICE_NS * part * STEPS),
			.comm_ns = (uint64_t)((step - job->value[i]) * STEPS),
			.step_ns = (uint64_t)(step * STEPS),
			.launches = 600,
			.window_ns = (uint64_t)(step * STEPS),
			.on_cpu_ns = (uint64_t)(HOST_NS * part * STEPS),
			.run_queue_ns = (uint64_t)(draw(job) * 1e5),
			.write_bytes = 4096,
			.state = 'S',
			.stage = -1,
			.replica = -1,
		};
		fill_comms(job, i, rank, step - job->value[i]);
	}
	job->frame.rank = job->rank;
	job->frame.ranks = job->ranks;
	job->frame.sample = job->sample;
	job->frame.samples = fill_samples(job);
	job->frame.expected_ranks = job->ranks;
	job->frame.completeness = 1.0;
	return &job->frame;
}

static double cpu_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* CPU time of so many passes, each of a fresh window; the last findings. */
static int pass(struct bench_job *job, struct nt_detect *detect, uint32_t passes, double *ret_ms)
{
	for (uint32_t i = 0; i < passes; i++) {
		const struct nt_frame *frame = next_frame(job);
		const struct nt_finding *finding = NULL;
		const double begin = cpu_ms();
		size_t findings = 0;
		int r = nt_detect_step(detect, frame, &finding, &findings);

		if (r < 0)
			return r;
		ret_ms[i] = cpu_ms() - begin;
	}
	return 0;
}

static bool is_found(const struct nt_detect *detect, uint32_t rank)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	nt_detect_open(detect, &finding, &findings);
	return findings == 1 && finding->state == NT_INCIDENT_FIRING && finding->culprits == 1 &&
	       finding->culprit[0].kind == NT_CULPRIT_RANK && finding->culprit[0].rank == rank;
}

/* The space detector's DBSCAN of the window, alone; with its input and its labels in a file. */
static int cluster(const struct bench_job *job, uint32_t passes, const char *path, double *ret_ms,
		   double *ret_eps, double *ret_pairs)
{
	const uint32_t n = job->ranks;
	double *peer_deviation = calloc(3 * (size_t)n, sizeof(*peer_deviation)),
	       *sorted = peer_deviation ? peer_deviation + n : NULL;
	double *told = peer_deviation ? sorted + n : NULL, middle, ms[MAX_PASSES];
	uint32_t *label = calloc(n, sizeof(*label));
	int r = peer_deviation && label ? 0 : -ENOMEM;
	FILE *file = NULL;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		sorted[i] = job->value[i];
	if (r == 0) {
		middle = nt_stats_median_of(sorted, n);
		for (uint32_t i = 0; i < n; i++)
			peer_deviation[i] = (job->value[i] - middle) / middle;
		memcpy(sorted, peer_deviation, n * sizeof(*peer_deviation));
		nt_stats_sort(sorted, n);
		*ret_eps = nt_stats_core(sorted, n) * fmax(0.75, 2.0 * sqrt(8.0 / n));
	}
	for (uint32_t i = 0; r == 0 && i < passes; i++) {
		const double begin = cpu_ms();

		memcpy(sorted, peer_deviation, n * sizeof(*peer_deviation));
		nt_stats_sort(sorted, n);
		(void)nt_dbscan_sorted(sorted, n, *ret_eps, 1, label);
		ms[i] = cpu_ms() - begin;
	}
	for (uint32_t i = 0, end = 0; r == 0 && i < n; i++) {
		while (end < n && sorted[end] - sorted[i] <= *ret_eps)
			end++;
		*ret_pairs += 2.0 * (end - i) - 1.0;
	}
	if (r == 0)
		*ret_ms = nt_stats_median_of(ms, passes);
	if (r == 0 && path) {
		for (uint32_t i = 0; i < n; i++)
			told[i] = label[i];
		file = fopen(path, "w");
		if (!file || fwrite(sorted, sizeof(*sorted), 2 * (size_t)n, file) != 2 * (size_t)n)
			r = -EIO;
	}
	if (file && fclose(file) != 0)
		r = -EIO;
	free(peer_deviation);
	free(label);
	return r;
}

/* Reads and writes one word of every line. */
static int walk(const struct bench_job *job, uint32_t passes, double *ret_ms)
{
	const size_t lines = (size_t)job->ranks * RANK_BYTES / LINE;
	volatile uint64_t *word = calloc(lines, LINE);
	double ms[MAX_PASSES];

	if (!word)
		return -ENOMEM;
	/* The first one is for the pages. */
	for (uint32_t i = 0; i <= passes; i++) {
		const double begin = cpu_ms();

		for (size_t line = 0; line < lines; line++)
			word[line * (LINE / sizeof(*word))]++;
		if (i > 0)
			ms[i - 1] = cpu_ms() - begin;
	}
	*ret_ms = nt_stats_median_of(ms, passes);
	free((void *)(uintptr_t)word);
	return 0;
}

static int measure(struct bench_job *job, uint32_t passes, const char *path)
{
	const struct nt_rules rules = nt_rules_default();
	double healthy[MAX_PASSES], faulty[MAX_PASSES], rest[LEARN], longest = 0.0;
	struct nt_detect *detect = NULL;
	double dbscan_ms = 0.0, eps = 0.0, pairs = 0.0, walk_ms = 0.0;
	int r = nt_detect_new(&rules, 1, 1, &detect);

	job->slow = UINT32_MAX;
	if (r == 0)
		r = pass(job, detect, LEARN, rest);
	if (r == 0)
		r = pass(job, detect, passes, healthy);
	job->slow = job->ranks / 8 * 3;
	if (r == 0)
		r = pass(job, detect, SETTLE, rest);
	if (r == 0)
		r = pass(job, detect, passes, faulty);
	if (r == 0 && !is_found(detect, job->slow)) {
		(void)fprintf(stderr, "detect: the slow rank is not what was found\n");
		r = -EPROTO;
	}
	nt_detect_free(detect);
	if (r == 0)
		r = cluster(job, passes, path, &dbscan_ms, &eps, &pairs);
	if (r == 0)
		r = walk(job, passes, &walk_ms);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < passes; i++)
		longest = fmax(longest, fmax(healthy[i], faulty[i]));
	(void)printf("%u %.3f %.3f %.3f %.4f %.6g %.0f %.4f\n", job->ranks,
		     nt_stats_median_of(healthy, passes), nt_stats_median_of(faulty, passes),
		     longest, dbscan_ms, eps, pairs, walk_ms);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench_job job = {.seed = 1, .now_ns = 1700000000ull * 1000000000};
	uint32_t number[4];
	int r = 0;

	for (int i = 0; i < 4 && r == 0; i++)
		r = argc < 5 ? -EINVAL
			     : nt_parse_u32(argv[i + 1], strlen(argv[i + 1]), 1, NT_FRAME_MAX_RANKS,
					    &number[i]);
	if (r < 0 || number[0] % (number[1] * number[2]) || number[3] > MAX_PASSES) {
		(void)fprintf(stderr, "usage: detect RANKS TP PP PASSES [FILE]\n");
		return 2;
	}
	job.ranks = number[0];
	job.tp = number[1];
	job.pp = number[2];
	job.dp = job.ranks / job.tp / job.pp;
	r = make_job(&job);
	if (r == 0)
		r = measure(&job, number[3], argc > 5 ? argv[5] : NULL);
	free_job(&job);
	if (r < 0)
		(void)fprintf(stderr, "detect: error %d\n", -r);
	return r < 0;
}
