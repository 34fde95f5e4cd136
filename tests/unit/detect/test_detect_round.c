/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One round of a group: who is in it, what each is held against, and what is remembered of it. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

/* Ranks whose own work is 80 ms of a step of 90 ms; nothing is random. */
static void begin_job(struct job *job, uint32_t ranks)
{
	sim_init(&job->sim, ranks, 1);
	job->sim.blocking = true;
	job->detect = sim_detect();
}

static void end_job(struct job *job)
{
	sim_free(&job->sim);
	nt_detect_free(job->detect);
}

static const struct nt_track *own_of(const struct job *job, uint32_t rank)
{
	return &job->detect->rank[rank].track[NT_SERIES_OWN];
}

static struct nt_group *group_of(const struct job *job, uint32_t rank)
{
	return &job->detect->roles.group[job->detect->rank[rank].group];
}

static void assert_near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * fabs(want) + 1e-9)
		print_error("%.9g, not %.9g\n", got, want);
	assert_true(fabs(got - want) <= 1e-6 * fabs(want) + 1e-9);
}

/* ---- who is in it -------------------------------------------------------------------------------- */

static void all_but_an_eighth_are_waited_for_three_frames(void **state)
{
	struct job job;
	uint64_t start_ns;

	(void)state;
	begin_job(&job, 16);
	sim_pass(&job.sim, job.detect, 2);
	assert_int_equal(group_of(&job, 0)->rounds, 2);
	for (uint32_t i = 0; i < 2; i++)
		job.sim.rank[i].stuck = true;
	sim_pass(&job.sim, job.detect, 1);
	assert_int_equal(group_of(&job, 0)->rounds, 3);
	assert_int_equal(job.detect->rank[0].rounds, 2);
	assert_int_equal(job.detect->rank[2].rounds, 3);
	job.sim.rank[2].stuck = true;
	start_ns = job.sim.now_ns;
	for (uint32_t i = 1; i < 3; i++) {
		sim_pass(&job.sim, job.detect, 1);
		assert_int_equal(group_of(&job, 0)->rounds, 3);
		assert_int_equal(group_of(&job, 0)->waited, i);
		assert_true(group_of(&job, 0)->wait_start_ns == start_ns);
	}
	sim_pass(&job.sim, job.detect, 1);
	assert_int_equal(group_of(&job, 0)->rounds, 4);
	assert_int_equal(group_of(&job, 0)->waited, 0);
	assert_true(group_of(&job, 0)->wait_start_ns == start_ns);
	assert_near(group_of(&job, 0)->window_ns, (double)(job.sim.now_ns - start_ns));
	assert_int_equal(job.detect->rank[2].rounds, 3);
	assert_int_equal(job.detect->rank[3].rounds, 4);
	/* What it summed up in three frames is a pace. */
	assert_near(job.detect->rank[3].step_metric[NT_STEP_METRIC_OWN], 80.0 * SIM_MS);
	/* Those that have ended are not waited for. */
	job.sim.rank[2].ended = true;
	start_ns = job.sim.now_ns;
	sim_pass(&job.sim, job.detect, 1);
	assert_int_equal(group_of(&job, 0)->rounds, 4);
	job.sim.rank[1].ended = true;
	job.sim.rank[0].silent = true;
	sim_pass(&job.sim, job.detect, 1);
	assert_int_equal(group_of(&job, 0)->rounds, 5);
	assert_true(group_of(&job, 0)->wait_start_ns == start_ns);
	end_job(&job);
}

static void a_step_metric_is_of_one_step_whatever_the_window(void **state)
{
	struct job job;
	struct nt_frame_rank *rank;
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	(void)state;
	begin_job(&job, 2);
	(void)sim_next(&job.sim);
	rank = &job.sim.out[1];
	/* Six steps of 90 ms in a window that holds nine of them. */
	rank->window_ns = 9ull * 90 * SIM_MS;
	rank->on_cpu_ns = 9ull * 50 * SIM_MS;
	rank->run_queue_ns = 9ull * 1 * SIM_MS;
	rank->io_ns = 9ull * 2 * SIM_MS;
	rank->gc_ns = 9ull * 3 * SIM_MS;
	rank->read_bytes = 9 * 4;
	rank->write_bytes = 9 * 5;
	rank->major_faults = 9 * 6;
	assert_int_equal(nt_detect_step(job.detect, &job.sim.frame, &finding, &findings), 0);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_OWN], 80.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_OWN_BLOCKED], 70.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_HOST], 10.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_BLOCKED], 70.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_COMM], 10.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_STEP], 90.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_ON_CPU], 50.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_RUN_QUEUE], 1.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_IO], 2.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_GC], 3.0 * SIM_MS);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_READ], 4.0);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_WRITE], 5.0);
	assert_near(job.detect->rank[1].step_metric[NT_STEP_METRIC_FAULTS], 6.0);
	/* Without a window nothing is known of the thread. */
	(void)sim_next(&job.sim);
	job.sim.out[1].window_ns = 0;
	job.sim.out[1].on_cpu_ns = 5;
	assert_int_equal(nt_detect_step(job.detect, &job.sim.frame, &finding, &findings), 0);
	assert_true(job.detect->rank[1].step_metric[NT_STEP_METRIC_ON_CPU] == 0.0);
	end_job(&job);
}

static void whose_tier_tells_of_no_work_is_in_no_contest(void **state)
{
	const struct nt_finding *finding = NULL;
	struct job job;
	size_t findings = 0;

	(void)state;
	begin_job(&job, 4);
	for (uint32_t i = 0; i < 2; i++) {
		(void)sim_next(&job.sim);
		for (uint32_t j = 0; j < 4; j++)
			job.sim.out[j].own_tier = 0;
		assert_int_equal(nt_detect_step(job.detect, &job.sim.frame, &finding, &findings),
				 0);
	}
	assert_int_equal(group_of(&job, 0)->rounds, 2);
	assert_int_equal(job.detect->rank[0].rounds, 2);
	for (int i = 0; i < NT_SERIES_END; i++) {
		assert_true(group_of(&job, 0)->median[i] == -1.0);
		assert_int_equal(job.detect->rank[0].track[i].frame, 0);
	}
	end_job(&job);
}

/* ---- against peers ------------------------------------------------------------------------------- */

static void a_rank_is_held_against_the_median_of_the_others(void **state)
{
	const struct nt_track *track;
	struct job job;

	(void)state;
	begin_job(&job, 8);
	/* The step is 110 ms then. */
	job.sim.rank[3].device = 90.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	track = own_of(&job, 3);
	assert_int_equal(track->mode, NT_MODE_PEERS);
	assert_int_equal(track->peers_seen, 7);
	assert_int_equal(track->tier, NT_FRAME_T2);
	assert_near(track->value, 100.0 * SIM_MS);
	assert_near(track->peers, 80.0 * SIM_MS);
	assert_near(track->peer_deviation, 0.25);
	assert_near(track->width, 0.01);
	assert_near(track->residual, 20.0 / 110.0);
	assert_true(track->growth == 0.0);
	assert_true(track->level.sum == 2.0);
	assert_near(track->level.cost, 20.0 / 110.0);
	assert_near(track->level.peer_deviation, 0.25);
	assert_int_equal(track->level.onset_frame, 1);
	assert_true(track->level.onset_ns == 1700000000ull * SIM_SECOND);
	assert_int_equal(track->shift.windows, 0);
	assert_near(own_of(&job, 0)->peers, 80.0 * SIM_MS);
	assert_true(own_of(&job, 0)->peer_deviation == 0.0);
	assert_true(own_of(&job, 0)->level.sum == 0.0);
	assert_near(group_of(&job, 0)->median[NT_SERIES_OWN], 80.0 * SIM_MS);
	assert_near(group_of(&job, 0)->median[NT_SERIES_HOST], 10.0 * SIM_MS);
	assert_near(group_of(&job, 0)->step_ns, 110.0 * SIM_MS);
	assert_int_equal(group_of(&job, 0)->tier[NT_SERIES_OWN], NT_FRAME_T2);
	/* Who was slowest, and by how much of the step. */
	assert_int_equal(group_of(&job, 0)->past->slowest[0], 3);
	assert_near(group_of(&job, 0)->past->worst.value[0], 20.0 / 110.0);
	sim_pass(&job.sim, job.detect, 2);
	assert_true(own_of(&job, 3)->level.sum == 6.0);
	assert_int_equal(own_of(&job, 3)->level.windows, 3);
	assert_int_equal(own_of(&job, 3)->level.costly, 3);
	assert_int_equal(own_of(&job, 3)->past.count, 3);
	end_job(&job);
}

/* Of 5 ms of host work a hundredth of the step is the least that it is held against. */
static void little_work_is_held_against_a_hundredth_of_the_step(void **state)
{
	const struct nt_track *host;
	struct job job;

	(void)state;
	begin_job(&job, 8);
	for (uint32_t i = 0; i < 8; i++) {
		job.sim.rank[i].tier = NT_FRAME_T1;
		job.sim.rank[i].device = 90.0 * SIM_MS;
		job.sim.rank[i].host = 0.0;
	}
	/* It holds up all: the step is 104 ms. */
	job.sim.rank[3].host = 4.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	host = &job.detect->rank[3].track[NT_SERIES_HOST];
	assert_int_equal(host->tier, NT_FRAME_T1);
	assert_near(host->peer_deviation, 4.0 / 1.04);
	assert_near(host->residual, 4.0 / 104.0);
	assert_int_equal(own_of(&job, 3)->tier, 0);
	assert_true(group_of(&job, 0)->median[NT_SERIES_OWN] == -1.0);
	end_job(&job);
}

static void ranks_of_another_tier_are_not_compared(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 7);
	for (uint32_t i = 0; i < 4; i++)
		job.sim.rank[i].tier = NT_FRAME_T3;
	sim_pass(&job.sim, job.detect, 1);
	assert_int_equal(own_of(&job, 0)->peers_seen, 3);
	assert_near(own_of(&job, 0)->value, 70.0 * SIM_MS);
	assert_int_equal(own_of(&job, 4)->frame, 0);
	/* As many of each: the higher. */
	job.sim.rank[3].absent = true;
	sim_pass(&job.sim, job.detect, 3);
	assert_int_equal(own_of(&job, 0)->peers_seen, 2);
	assert_int_equal(own_of(&job, 4)->frame, 0);
	/* More of the lower. Who changed his tier begins anew. */
	job.sim.rank[2].tier = NT_FRAME_T2;
	sim_pass(&job.sim, job.detect, 3);
	assert_int_equal(own_of(&job, 4)->peers_seen, 3);
	assert_int_equal(own_of(&job, 2)->tier, NT_FRAME_T2);
	assert_near(own_of(&job, 2)->value, 80.0 * SIM_MS);
	assert_in_range(own_of(&job, 2)->past.count, 1, 3);
	/* Where nobody tells own work any more, there is no median of it. */
	for (uint32_t i = 0; i < 7; i++)
		job.sim.rank[i].tier = NT_FRAME_T1;
	sim_pass(&job.sim, job.detect, 3);
	assert_true(group_of(&job, 0)->median[NT_SERIES_OWN] == -1.0);
	end_job(&job);
}

/* ---- against the past ---------------------------------------------------------------------------- */

static void a_rank_alone_is_held_against_its_own_past(void **state)
{
	const struct nt_track *track;
	struct job job;

	(void)state;
	begin_job(&job, 1);
	sim_pass(&job.sim, job.detect, 19);
	assert_int_equal(own_of(&job, 0)->mode, NT_MODE_NONE);
	assert_true(own_of(&job, 0)->peers == 0.0);
	assert_int_equal(own_of(&job, 0)->peers_seen, 0);
	assert_false(own_of(&job, 0)->past.ready);
	sim_pass(&job.sim, job.detect, 1);
	assert_true(own_of(&job, 0)->past.ready);
	job.sim.rank[0].device = 90.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	track = own_of(&job, 0);
	assert_int_equal(track->mode, NT_MODE_PAST);
	assert_near(track->growth, 0.25);
	assert_near(track->width, 0.01);
	assert_near(track->residual, 20.0 / 110.0);
	assert_true(track->level.sum == 2.0);
	assert_true(track->shift.sum == 2.0);
	assert_near(track->level.peer_deviation, 0.25);
	assert_near(track->shift.cost, 20.0 / 110.0);
	end_job(&job);
}

static void two_populations_are_held_against_their_own_pasts(void **state)
{
	const struct nt_group_past *past;
	struct job job;
	uint64_t start_ns;

	(void)state;
	begin_job(&job, 8);
	sim_pass(&job.sim, job.detect, 1);
	start_ns = job.sim.now_ns;
	for (uint32_t i = 0; i < 4; i++)
		job.sim.rank[2 * i].device = 94.0 * SIM_MS;
	/* Own work is 80 or 104 ms, the step 114 ms; in the middle lie 92 ms. */
	sim_pass(&job.sim, job.detect, 1);
	past = group_of(&job, 0)->past;
	assert_int_equal(own_of(&job, 0)->mode, NT_MODE_NONE);
	assert_int_equal(past->apart, 1);
	assert_true(past->apart_since_ns == start_ns);
	assert_near(past->apart_low, 80.0 * SIM_MS);
	assert_near(past->apart_high, 104.0 * SIM_MS);
	assert_near(past->apart_gap, 0.3);
	assert_near(past->apart_cost, 24.0 / 114.0);
	assert_near(group_of(&job, 0)->median[NT_SERIES_OWN], 80.0 * SIM_MS);
	/* The slowest of two populations is nobody's turn. */
	assert_true(past->worst.value[1] == 0.0);
	for (uint32_t i = 2; i <= 41; i++) {
		sim_pass(&job.sim, job.detect, 1);
		past = group_of(&job, 0)->past;
		assert_int_equal(past->apart, i < 40 ? i : 40);
	}
	assert_true(past->apart_since_ns == start_ns);
	/* Another gap counts a tenth each time. */
	for (uint32_t i = 0; i < 4; i++)
		job.sim.rank[2 * i].device = 102.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	past = group_of(&job, 0)->past;
	assert_near(past->apart_gap, 0.3 + 0.1 * (0.4 - 0.3));
	for (uint32_t i = 0; i < 4; i++)
		job.sim.rank[2 * i].device = 70.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	past = group_of(&job, 0)->past;
	assert_int_equal(past->apart, 39);
	assert_near(past->apart_gap, 0.95 * 0.31);
	assert_true(past->apart_cost == 0.0);
	end_job(&job);
}

/* Own work is 80 ms of both, then 50 and 100: both pasts explain it, of which neither does half. */
static void a_gap_that_came_up_is_no_second_population(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 2);
	sim_pass(&job.sim, job.detect, NT_PAST_WINDOWS + 2);
	job.sim.rank[0].device = 40.0 * SIM_MS;
	job.sim.rank[1].device = 90.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 3);
	assert_near(own_of(&job, 1)->value, 100.0 * SIM_MS);
	assert_near(own_of(&job, 1)->growth, 0.25);
	assert_near(own_of(&job, 0)->value, 50.0 * SIM_MS);
	assert_int_equal(group_of(&job, 0)->past->apart, 0);
	end_job(&job);
}

static void of_two_ranks_the_slower_must_stay_the_slower(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 2);
	job.sim.rank[1].device = 90.0 * SIM_MS;
	for (uint32_t i = 1; i < 4; i++) {
		sim_pass(&job.sim, job.detect, 1);
		assert_int_equal(group_of(&job, 0)->past->apart, i);
		assert_int_equal(group_of(&job, 0)->past->apart_slower, 1);
	}
	assert_near(group_of(&job, 0)->past->apart_low, 80.0 * SIM_MS);
	assert_near(group_of(&job, 0)->past->apart_high, 100.0 * SIM_MS);
	job.sim.rank[1].device = 70.0 * SIM_MS;
	job.sim.rank[0].device = 90.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	assert_int_equal(group_of(&job, 0)->past->apart, 1);
	assert_int_equal(group_of(&job, 0)->past->apart_slower, 0);
	end_job(&job);
}

static void expect_no_culprit(const struct nt_detect *detect, uint32_t rank)
{
	for (size_t i = 0; sim_firing(detect, i); i++)
		for (size_t j = 0; j < sim_firing(detect, i)->culprits; j++)
			assert_int_not_equal(sim_firing(detect, i)->culprit[j].rank, rank);
}

/* The slow one of two has a short past, and then both have a third more work. */
static void what_two_ranks_share_is_known_with_an_incomplete_past(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 2);
	sim_pass(&job.sim, job.detect, 4);
	job.sim.rank[0].device = 130.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 24);
	assert_int_equal(sim_firing(job.detect, 0)->culprit[0].rank, 0);
	job.sim.rank[0].device = 165.0 * SIM_MS;
	job.sim.rank[1].device = 95.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 3);
	job.sim.rank[0].device = 95.0 * SIM_MS;
	for (uint32_t i = 0; i < 40; i++) {
		sim_pass(&job.sim, job.detect, 1);
		expect_no_culprit(job.detect, 1);
	}
	end_job(&job);
}

/* ---- evidence ------------------------------------------------------------------------------------ */

static void means_are_learned_while_nothing_is_suspicious_and_evidence_then(void **state)
{
	struct job job;
	const struct nt_detect_rank *rank;

	(void)state;
	begin_job(&job, 8);
	sim_pass(&job.sim, job.detect, 1);
	rank = &job.detect->rank[3];
	assert_true(rank->has_metric_mean);
	assert_near(rank->metric_mean[NT_STEP_METRIC_OWN], 80.0 * SIM_MS);
	for (uint32_t i = 0; i < 8; i++)
		job.sim.rank[i].device = 80.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	rank = &job.detect->rank[3];
	assert_near(rank->metric_mean[NT_STEP_METRIC_OWN], 81.0 * SIM_MS);
	assert_true(rank->evidence.weight == 0.0);
	job.sim.rank[3].device = 110.0 * SIM_MS;
	/* A sum of two is less than a quarter of what is needed. */
	sim_pass(&job.sim, job.detect, 1);
	rank = &job.detect->rank[3];
	assert_near(rank->metric_mean[NT_STEP_METRIC_OWN], 81.0 * SIM_MS);
	assert_in_range((uint64_t)job.detect->threshold, 9, 15);
	assert_true(rank->evidence.weight == 0.0);
	sim_pass(&job.sim, job.detect, 1);
	rank = &job.detect->rank[3];
	assert_near(rank->evidence.weight, 1.0);
	assert_near(rank->evidence.value[NT_STEP_METRIC_OWN], 120.0 * SIM_MS);
	assert_near(rank->evidence.peers[NT_STEP_METRIC_OWN], 90.0 * SIM_MS);
	job.sim.rank[3].device = 149.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 1);
	rank = &job.detect->rank[3];
	assert_near(rank->evidence.weight, 1.95);
	assert_near(rank->evidence.value[NT_STEP_METRIC_OWN], (120.0 + 39.0 / 1.95) * SIM_MS);
	assert_near(rank->evidence.peers[NT_STEP_METRIC_OWN], 90.0 * SIM_MS);
	end_job(&job);
}

static void own_work_that_is_not_observed_is_in_no_mean(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 8);
	for (uint32_t i = 0; i < 12; i++) {
		job.sim.rank[3].tier = i % 3 ? NT_FRAME_T2 : NT_FRAME_T1;
		sim_pass(&job.sim, job.detect, 1);
		assert_near(job.detect->rank[3].metric_mean[NT_STEP_METRIC_OWN],
			    i ? 80.0 * SIM_MS : 0.0);
		assert_true(job.detect->rank[3].metric_mean[NT_STEP_METRIC_HOST] > 0.0);
	}
	end_job(&job);
}

static void who_is_seen_in_another_way_is_no_measure_of_hosts(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 8);
	for (uint32_t i = 4; i < 8; i++) {
		job.sim.rank[i].tier = NT_FRAME_T0;
		job.sim.rank[i].host = 60.0 * SIM_MS;
	}
	job.sim.rank[3].device = 110.0 * SIM_MS;
	sim_pass(&job.sim, job.detect, 10);
	assert_near(job.detect->rank[3].evidence.value[NT_STEP_METRIC_HOST], 10.0 * SIM_MS);
	assert_near(job.detect->rank[3].evidence.peers[NT_STEP_METRIC_HOST], 10.0 * SIM_MS);
	assert_int_equal(job.detect->rank[3].track[NT_SERIES_HOST].peers_seen, 3);
	assert_false(job.detect->rank[4].has_metric_mean);
	assert_true(job.detect->rank[4].evidence.weight == 0.0);
	end_job(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_but_an_eighth_are_waited_for_three_frames),
		cmocka_unit_test(a_step_metric_is_of_one_step_whatever_the_window),
		cmocka_unit_test(whose_tier_tells_of_no_work_is_in_no_contest),
		cmocka_unit_test(a_rank_is_held_against_the_median_of_the_others),
		cmocka_unit_test(little_work_is_held_against_a_hundredth_of_the_step),
		cmocka_unit_test(ranks_of_another_tier_are_not_compared),
		cmocka_unit_test(a_rank_alone_is_held_against_its_own_past),
		cmocka_unit_test(two_populations_are_held_against_their_own_pasts),
		cmocka_unit_test(a_gap_that_came_up_is_no_second_population),
		cmocka_unit_test(of_two_ranks_the_slower_must_stay_the_slower),
		cmocka_unit_test(what_two_ranks_share_is_known_with_an_incomplete_past),
		cmocka_unit_test(means_are_learned_while_nothing_is_suspicious_and_evidence_then),
		cmocka_unit_test(own_work_that_is_not_observed_is_in_no_mean),
		cmocka_unit_test(who_is_seen_in_another_way_is_no_measure_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
