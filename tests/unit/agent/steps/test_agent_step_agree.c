/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Jobs of several ranks whose buckets are equal calls: all ranks must find the same step, whatever
 * is slow. Thousands of jobs, each with other times, are led from a seed.
 */
#include "agent/steps/step.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/parse_number.h"

#define MS 1e6

enum {
	RANKS = 3,
	BUCKETS = 8, /* at most */
	STEPS = 80,
	JOBS = 1000, /* where NT_STEP_JOBS does not say otherwise */
};

enum style {
	BLOCKING, /* MPI: a bucket is computed, then reduced */
	WAITING, /* the same, reduced by a non-blocking call and its completion */
	CHECKED, /* NCCL: each bucket's own work is awaited before its reduction is enqueued */
	BATCHED, /* NCCL: all is enqueued at once, and awaited at the end of the step */
	POOL, /* Gloo: one thread reduces what is ready, beside the work */
	STYLES,
};

struct job {
	uint64_t seed;
	enum style style;
	uint32_t buckets, layers;
	double compute_ns, forward; /* of a step; the part of it before the first gradient */
	double jitter, transfer_ns, slow_transfer_ns;
	uint32_t slow_from, slow_until; /* steps */
	uint32_t loss_every; /* 0: never */
	bool launches;
	double factor[RANKS]; /* of the compute */
	double pauses; /* how often something takes five times as long */
};

struct rank {
	struct nt_step *step;
	double now_ns;
	uint64_t launches;
	uint64_t calls, unseen, begins, last_begin;
};

static double draw(struct job *job)
{
	job->seed = job->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(job->seed >> 11) / 9007199254740992.0;
}

static double between(struct job *job, double low, double high)
{
	return low + (high - low) * draw(job);
}

/* Of a normal distribution, nearly. */
static double jitter(struct job *job)
{
	double sum = -6.0;

	for (int i = 0; i < 12; i++)
		sum += draw(job);
	return fmax(0.2, 1.0 + job->jitter * sum) * (draw(job) < job->pauses ? 5 : 1);
}

static void begin_job(struct job *job, uint64_t seed)
{
	*job = (struct job){.seed = seed * 0x9e3779b97f4a7c15ULL + 1};
	(void)draw(job);
	job->style = (enum style)(draw(job) * STYLES);
	job->buckets = draw(job) < 0.5 ? 4 : 2 + (uint32_t)(draw(job) * (BUCKETS - 1));
	/* Layers that do not divide by the buckets make some of these later than others. */
	job->layers = job->buckets + (uint32_t)(draw(job) * 2 * job->buckets);
	job->compute_ns = between(job, 5, 200) * MS;
	job->forward = between(job, 0.25, 0.4);
	job->jitter = between(job, 0.002, 0.05);
	job->transfer_ns = job->compute_ns / job->buckets * between(job, 0.02, 0.5);
	job->slow_transfer_ns = job->transfer_ns * between(job, 2, 50);
	job->slow_from = draw(job) < 0.5 ? 0 : (uint32_t)between(job, 2, 60);
	job->slow_until = draw(job) < 0.5 ? STEPS : job->slow_from + (uint32_t)between(job, 2, 40);
	job->loss_every = draw(job) < 0.5 ? 0 : draw(job) < 0.7 ? 1 : 10;
	job->launches = job->style == CHECKED || job->style == BATCHED || draw(job) < 0.3;
	for (int i = 0; i < RANKS; i++)
		job->factor[i] = 1;
	job->pauses = draw(job) < 0.7 ? 0 : 0.01;
	if (draw(job) < 0.5)
		job->factor[(int)(draw(job) * RANKS)] = between(job, 1.1, 2);
}

static void call(struct rank *rank, uint64_t bytes, double entry_ns, double ret_ns)
{
	struct nt_step_call c = {
		.comm = 1,
		.comm_size = RANKS,
		.op = NT_OP_ALL_REDUCE,
		.bytes = bytes,
		.type = 7,
		.entry_ns = (uint64_t)entry_ns,
		.ret_ns = (uint64_t)ret_ns,
		.launches = rank->launches,
	};

	if (rank->calls++ < rank->unseen)
		return;
	if (!nt_step_call(rank->step, &c))
		return;
	rank->begins++;
	rank->last_begin = rank->calls;
}

static uint32_t layers_until(const struct job *job, uint32_t bucket)
{
	return ((bucket + 1) * job->layers + job->buckets - 1) / job->buckets;
}

/* What a rank computes, and launches, before it has the gradients of the bucket. */
static double compute(struct job *job, int r, struct rank *rank, uint32_t bucket)
{
	uint32_t layers = layers_until(job, bucket) - (bucket ? layers_until(job, bucket - 1) : 0);
	double ns = (1 - job->forward) * layers / job->layers + (bucket ? 0 : job->forward);

	if (job->launches)
		rank->launches += 20 * layers + (bucket ? 0 : 10 * job->layers + 3);
	return ns * job->compute_ns * job->factor[r] * jitter(job);
}

static double latest(const double *ns)
{
	double most = ns[0];

	for (int i = 1; i < RANKS; i++)
		most = fmax(most, ns[i]);
	return most;
}

static void lead_step(struct job *job, struct rank *rank, uint32_t number)
{
	bool slow = number >= job->slow_from && number < job->slow_until;
	double transfer = slow ? job->slow_transfer_ns : job->transfer_ns, free_ns = 0, end = 0;
	double ready[RANKS];

	if (job->style == BATCHED)
		for (int i = 0; i < RANKS; i++)
			rank[i].now_ns += 0.1 * MS * jitter(job);
	for (uint32_t b = 0; b < job->buckets; b++) {
		for (int i = 0; i < RANKS; i++) {
			double ns = compute(job, i, &rank[i], b);

			/* The host is ahead of its device. */
			rank[i].now_ns += job->style == BATCHED ? 0.05 * ns : ns;
			ready[i] = rank[i].now_ns;
			if (job->style == POOL)
				ready[i] = fmax(ready[i], free_ns);
		}
		end = fmax(latest(ready), free_ns) + transfer * jitter(job);
		free_ns = end;
		for (int i = 0; i < RANKS; i++) {
			double ret_ns = end + 0.01 * MS * draw(job);
			bool blocks = job->style == BLOCKING || job->style == POOL;

			call(&rank[i], 16 << 20, ready[i], blocks ? ret_ns : 0);
			if (job->style == WAITING)
				nt_step_wait(rank[i].step, (uint64_t)(ready[i] + 0.01 * MS),
					     (uint64_t)ret_ns);
			if (job->style == BLOCKING || job->style == WAITING)
				rank[i].now_ns = ret_ns;
		}
	}
	if (job->style == BATCHED)
		end += job->compute_ns * latest(job->factor);
	for (int i = 0; i < RANKS; i++) {
		rank[i].now_ns = fmax(rank[i].now_ns, end) + 0.05 * MS * draw(job);
		if (job->launches)
			rank[i].launches += 2;
	}
	if (!job->loss_every || number % job->loss_every)
		return;
	for (int i = 0; i < RANKS; i++)
		ready[i] = rank[i].now_ns;
	end = latest(ready) + 0.05 * MS;
	for (int i = 0; i < RANKS; i++) {
		call(&rank[i], 12, ready[i],
		     job->style == CHECKED || job->style == BATCHED ? 0 : end);
		rank[i].now_ns = end;
	}
}

struct verdict {
	bool differs, wrong, none;
};

static struct verdict judge(const struct job *job, const struct rank *rank)
{
	struct verdict v = {0};
	struct nt_step_info first, info;
	uint32_t period = job->buckets;

	nt_step_info(rank[0].step, &first);
	for (int i = 0; i < RANKS; i++) {
		nt_step_info(rank[i].step, &info);
		v.differs |= info.period != first.period || info.anchor_kind != first.anchor_kind ||
			     info.anchors != first.anchors ||
			     rank[i].last_begin != rank[0].last_begin;
		v.none |= !info.found || info.period == 1;
		v.wrong |= info.found && info.period != 1 && info.period != period &&
			   !(job->loss_every == 1 && info.period == period + 1);
	}
	return v;
}

static struct verdict lead(uint64_t seed, uint32_t from)
{
	struct verdict v = {0}, now;
	struct rank rank[RANKS];
	struct job job;

	begin_job(&job, seed);
	for (int i = 0; i < RANKS; i++) {
		rank[i] = (struct rank){.now_ns = 1e9 + MS * draw(&job)};
		/* An agent that comes in mid-step. */
		if (draw(&job) < 0.3)
			rank[i].unseen = (uint64_t)between(&job, 0, 3 * BUCKETS);
		assert_int_equal(nt_step_new(&rank[i].step), 0);
	}
	for (uint32_t s = 0; s < STEPS; s++) {
		lead_step(&job, rank, s);
		if (s < from)
			continue;
		now = judge(&job, rank);
		v.differs |= now.differs;
		v.wrong |= now.wrong;
		v.none |= now.none;
	}
	for (int i = 0; i < RANKS; i++)
		nt_step_free(rank[i].step);
	return v;
}

static uint32_t count_jobs(void)
{
	const char *text = getenv("NT_STEP_JOBS");
	uint32_t jobs;

	return text && nt_parse_u32(text, strlen(text), 1, 1000000, &jobs) == 0 ? jobs : JOBS;
}

static void ranks_of_one_job_find_the_same_step(void **state)
{
	uint32_t differ = 0, wrong = 0, none = 0, jobs = count_jobs();

	(void)state;
	for (uint64_t seed = 0; seed < jobs; seed++) {
		struct verdict v = lead(seed, 40);

		differ += v.differs;
		wrong += v.wrong;
		none += v.none;
	}
	print_message("%u differ, %u wrong, %u not found, of %u\n", differ, wrong, none, jobs);
	/* Of 10,000 jobs 5, 2 and 3. */
	assert_true(differ <= jobs / 1000 && wrong <= jobs / 2000 && none <= jobs / 1000);
}

static void steps_of_one_call_are_not_joined_whatever_their_times(void **state)
{
	uint32_t joined = 0, jobs = count_jobs() / 5;

	(void)state;
	for (uint64_t seed = 0; seed < jobs; seed++) {
		struct nt_step_info info;
		struct rank rank[RANKS];
		struct job job;

		begin_job(&job, seed);
		job.buckets = 1;
		job.jitter = between(&job, 0.002, 0.3);
		for (int i = 0; i < RANKS; i++) {
			rank[i] = (struct rank){.now_ns = 1e9};
			assert_int_equal(nt_step_new(&rank[i].step), 0);
		}
		for (uint32_t s = 0; s < 4 * STEPS; s++)
			lead_step(&job, rank, s);
		for (int i = 0; i < RANKS; i++) {
			nt_step_info(rank[i].step, &info);
			joined += info.period > 1 && !(job.loss_every == 1 && info.period == 2);
			nt_step_free(rank[i].step);
		}
	}
	print_message("%u of %u joined\n", joined, RANKS * jobs);
	assert_true(joined <= jobs / 1000);
}

/* ---- what tells, one by one ------------------------------------------------------------------- */

/* Rounds of four equal calls: the gaps before them, and what is launched in these. */
static void lead_rounds(struct rank *rank, uint32_t rounds, const double *gap_ms,
			const uint32_t *launches, double transfer_ms)
{
	for (uint32_t i = 0; i < 4 * rounds; i++) {
		rank->now_ns += gap_ms[i % 4] * MS;
		rank->launches += launches ? launches[i % 4] : 0;
		call(rank, 16 << 20, rank->now_ns, rank->now_ns + transfer_ms * MS);
		rank->now_ns += transfer_ms * MS;
	}
}

static struct nt_step_info info_of(const struct rank *rank)
{
	struct nt_step_info info;

	nt_step_info(rank->step, &info);
	return info;
}

static void start(struct rank *rank)
{
	*rank = (struct rank){.now_ns = 1e9};
	assert_int_equal(nt_step_new(&rank->step), 0);
}

static const double equal_ms[4] = {6, 6, 6, 6}, round_ms[4] = {25, 6, 6, 6};

static void launches_tell_where_times_are_all_alike(void **state)
{
	static const uint32_t launches[4] = {90, 30, 30, 30};
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 6, equal_ms, launches, 20);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(rank.calls - rank.last_begin, 3); /* the one after the most launches */
	nt_step_free(rank.step);
}

static void equal_launches_are_a_step_each_whatever_the_times(void **state)
{
	static const uint32_t launches[4] = {500, 500, 500, 501};
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 60, round_ms, launches, 1);
	assert_int_equal(info_of(&rank).period, 1);
	nt_step_free(rank.step);
}

static void launches_correct_what_times_told(void **state)
{
	static const uint32_t none[4], launches[4] = {30, 90, 30, 30};
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 10, round_ms, none, 1);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(rank.calls - rank.last_begin, 3);
	lead_rounds(&rank, 200, round_ms, launches, 1);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(rank.calls - rank.last_begin, 2);
	nt_step_free(rank.step);
}

static void a_slow_transfer_does_not_hide_the_step(void **state)
{
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 12, round_ms, NULL, 1000);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(rank.calls - rank.last_begin, 3);
	nt_step_free(rank.step);
}

static void a_step_is_kept_when_only_its_times_change(void **state)
{
	static const double half_ms[4] = {6, 1, 6, 1};
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 12, round_ms, NULL, 1);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(info_of(&rank).found_count, 2);
	lead_rounds(&rank, 200, equal_ms, NULL, 100);
	lead_rounds(&rank, 200, half_ms, NULL, 1);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(info_of(&rank).found_count, 2);
	assert_int_equal(rank.calls - rank.last_begin, 3);
	nt_step_free(rank.step);
}

static void half_of_a_step_becomes_the_whole_when_more_is_seen(void **state)
{
	static const double half_ms[4] = {20, 1, 20, 1}, whole_ms[4] = {30, 1, 15, 1};
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 8, half_ms, NULL, 1);
	assert_int_equal(info_of(&rank).period, 2);
	lead_rounds(&rank, 100, whole_ms, NULL, 1);
	assert_int_equal(info_of(&rank).period, 4);
	assert_int_equal(rank.calls - rank.last_begin, 3);
	nt_step_free(rank.step);
}

static void parts_of_a_step_are_no_steps_after_a_gap(void **state)
{
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 40, round_ms, NULL, 1); /* of 47 ms */
	assert_int_equal(info_of(&rank).period, 4);
	for (int gap = 0; gap < 3; gap++) {
		uint64_t begins = rank.begins;

		rank.now_ns += 1000 * MS;
		nt_step_gap(rank.step);
		lead_rounds(&rank, 8, round_ms, NULL, 1);
		assert_in_range(rank.begins - begins, 3, 7);
		assert_int_equal(rank.calls - rank.last_begin, 3);
		assert_in_range(info_of(&rank).step_ns, 40 * MS, 50 * MS);
		assert_false(info_of(&rank).is_unsure);
	}
	/* Where too little is seen to find it again, nothing is a step. */
	for (int gap = 0; gap < 2; gap++) {
		uint64_t begins = rank.begins;

		rank.now_ns += 1000 * MS;
		nt_step_gap(rank.step);
		lead_rounds(&rank, 1, round_ms, NULL, 1);
		assert_true(rank.begins == begins);
		assert_true(info_of(&rank).is_unsure);
		assert_in_range(info_of(&rank).step_ns, 30 * MS, 50 * MS);
	}
	nt_step_free(rank.step);
}

static void steps_that_became_shorter_are_believed_after_some_gaps(void **state)
{
	struct rank rank;

	(void)state;
	start(&rank);
	lead_rounds(&rank, 40, round_ms, NULL, 1);
	for (int gap = 0; gap < 20; gap++) {
		nt_step_gap(rank.step);
		for (int i = 0; i < 10; i++) {
			rank.now_ns += 5 * MS;
			call(&rank, 8 << 20, rank.now_ns, rank.now_ns + MS);
		}
	}
	assert_false(info_of(&rank).is_unsure);
	assert_in_range(info_of(&rank).step_ns, 4 * MS, 6 * MS);
	assert_int_equal(rank.calls, rank.last_begin);
	nt_step_free(rank.step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_one_job_find_the_same_step),
		cmocka_unit_test(steps_of_one_call_are_not_joined_whatever_their_times),
		cmocka_unit_test(launches_tell_where_times_are_all_alike),
		cmocka_unit_test(equal_launches_are_a_step_each_whatever_the_times),
		cmocka_unit_test(launches_correct_what_times_told),
		cmocka_unit_test(a_slow_transfer_does_not_hide_the_step),
		cmocka_unit_test(a_step_is_kept_when_only_its_times_change),
		cmocka_unit_test(half_of_a_step_becomes_the_whole_when_more_is_seen),
		cmocka_unit_test(parts_of_a_step_are_no_steps_after_a_gap),
		cmocka_unit_test(steps_that_became_shorter_are_believed_after_some_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
