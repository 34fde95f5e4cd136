/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Slow GPUs of jobs whose hosts run ahead (T1): their calls name no rank, and the driver of one GPU
 * does, or nobody.
 */
#include "tests/unit/detect/detect_frames.h"

#include "detect/thresholds/thresholds.h"

enum {
	RANKS = 8,
	SLOW = 3,
	BEFORE = 80, /* frames, half a second each */
	SINCE = 120,
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

static struct job *job_of(uint32_t ranks)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, ranks, 7);
	job->sim.jitter = 0.004;
	job->detect = sim_detect();
	for (uint32_t i = 0; i < ranks; i++) {
		job->sim.rank[i].tier = NT_FRAME_T1;
		job->sim.rank[i].sm = 0.85;
		job->sim.rank[i].waiting_sm = 0.15;
		job->sim.rank[i].tensor = 30.0 * SIM_MS;
	}
	return job;
}

static int begin(void **state)
{
	*state = job_of(RANKS);
	return 0;
}

static void free_job(struct job *job)
{
	nt_detect_free(job->detect);
	sim_free(&job->sim);
	free(job);
}

static int end(void **state)
{
	free_job(*state);
	return 0;
}

/* The clock of its GPU is so much slower, because of temperature. */
static void heat(struct job *job, uint32_t rank, double factor)
{
	job->sim.rank[rank].device *= factor;
	job->sim.rank[rank].tensor *= factor;
	job->sim.rank[rank].thermal = 0.9;
}

/* Runs frames; true: a rank was named, which *ret_at has the frame of. No other is. */
static bool is_named(struct job *job, uint32_t rank, uint32_t frames, uint32_t *ret_at)
{
	for (uint32_t i = 1; i <= frames; i++) {
		sim_pass(&job->sim, job->detect, 1);
		for (size_t j = 0; sim_firing(job->detect, j); j++) {
			const struct nt_finding *finding = sim_firing(job->detect, j);

			if (finding->class == NT_CLASS_JOB_WIDE)
				continue;
			assert_names_rank(finding, rank);
			*ret_at = i;
			return true;
		}
	}
	return false;
}

/* For a slow GPU: hosts and networks may be. */
static bool is_anybody_named(struct job *job, uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++) {
		sim_pass(&job->sim, job->detect, 1);
		for (size_t j = 0; sim_firing(job->detect, j); j++)
			if (sim_firing(job->detect, j)->class == NT_CLASS_COMPUTE)
				return true;
	}
	return false;
}

static const struct nt_finding_evidence *row(const struct nt_finding *finding, const char *what)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (strcmp(finding->evidence[i].what, what) == 0)
			return &finding->evidence[i];
	return NULL;
}

static void a_hot_gpu_is_named_after_so_many_seconds_of_readings(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;
	const struct nt_finding_evidence *tensor;
	uint64_t onset_ns;
	uint32_t at;

	sim_pass(&job->sim, job->detect, BEFORE);
	onset_ns = job->sim.now_ns;
	heat(job, SLOW, 1.3);
	assert_true(is_named(job, SLOW, SINCE, &at));
	finding = sim_firing(job->detect, 0);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_string_equal(finding->cause, "gpu temperature");
	assert_int_equal(finding->tier, NT_FRAME_T1);
	assert_true(job->sim.now_ns - onset_ns >= NT_GPU_KNOWN_NS);
	assert_true(job->sim.now_ns - onset_ns <= NT_GPU_KNOWN_NS + 3 * (uint64_t)SIM_SECOND);
	tensor = row(finding, "time per step in which the gpu's tensor cores computed");
	assert_non_null(tensor);
	assert_true(fabs(tensor->value - 39.0) < 0.5 && fabs(tensor->peers - 30.0) < 0.5);
	assert_non_null(row(finding, "time per step in which the gpu's multiprocessors had work"));
	assert_non_null(row(finding, "time per step that temperature held the gpu's clock down"));
	assert_true(finding->slowdown > 1.15 && finding->slowdown < 1.3);
	assert_null(sim_firing(job->detect, 1));
	/* It ends with the fault. */
	job->sim.rank[SLOW].device = 70.0 * SIM_MS;
	job->sim.rank[SLOW].tensor = 30.0 * SIM_MS;
	job->sim.rank[SLOW].thermal = 0.0;
	sim_pass(&job->sim, job->detect, 240);
	assert_int_equal(sim_open(job->detect), 0);
}

static void a_healthy_job_is_silent(void **state)
{
	struct job *job = *state;

	/* One is hot, and does not slow the job down. */
	sim_pass(&job->sim, job->detect, BEFORE);
	job->sim.rank[SLOW].thermal = 1.0;
	sim_pass(&job->sim, job->detect, SINCE);
	assert_int_equal(sim_open(job->detect), 0);
}

/* Its host is late, its GPU idle: all others wait in kernels, and are more active. */
static void a_late_host_lets_no_gpu_be_named(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, BEFORE);
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].no_host = true; /* or its host would be named */
	job->sim.rank[SLOW].host += 30.0 * SIM_MS;
	job->sim.rank[SLOW].waiting_sm = 0.0;
	job->sim.rank[5].thermal = 1.0;
	assert_false(is_anybody_named(job, SINCE));
}

/* A victim that spins with all multiprocessors, and is hot as well: its tensor cores do not spin. */
static void a_kernel_that_waits_on_the_whole_gpu_is_no_work(void **state)
{
	struct job *job = *state;

	job->sim.rank[5].waiting_sm = 1.0;
	sim_pass(&job->sim, job->detect, BEFORE);
	job->sim.rank[SLOW].device *= 1.3;
	job->sim.rank[SLOW].sm = 0.6;
	job->sim.rank[5].thermal = 1.0;
	assert_false(is_anybody_named(job, SINCE));
}

/* Its GPU is slow and nothing says why: memory, or more work. */
static void a_slow_gpu_without_a_reason_is_not_named(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	job->sim.rank[SLOW].thermal = 0.0;
	assert_false(is_anybody_named(job, SINCE));
}

/* The reason has to turn with the fault. */
static void a_gpu_that_was_hot_before_is_not_named(void **state)
{
	struct job *job = *state;

	job->sim.rank[SLOW].thermal = 0.9;
	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	assert_false(is_anybody_named(job, SINCE));
}

static void a_power_cap_of_all_names_nobody(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	job->sim.rank[SLOW].thermal = 0.0;
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].power = 0.9;
	assert_false(is_anybody_named(job, SINCE));
}

static void the_clock_must_explain_three_quarters_of_the_step(void **state)
{
	/* A step of 90 ms becomes 111: by 23 %, of which 17.5 are three quarters. */
	static const double part[] = {0.160, 0.190};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = job_of(RANKS);
		uint32_t at;

		sim_pass(&job->sim, job->detect, BEFORE);
		heat(job, SLOW, 1.3);
		job->sim.rank[SLOW].tensor = (1.0 + part[i]) * 30.0 * SIM_MS;
		if (i)
			assert_true(is_named(job, SLOW, SINCE, &at));
		else
			assert_false(is_anybody_named(job, SINCE));
		free_job(job);
	}
}

/* Half of the step's growth is more active multiprocessors: 10.5 of 21 ms. */
static void its_work_must_explain_half_of_the_step(void **state)
{
	static const double sm[] = {0.62, 0.68};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = job_of(RANKS);
		uint32_t at;

		for (uint32_t j = 0; j < RANKS; j++)
			job->sim.rank[j].sm = sm[i];
		sim_pass(&job->sim, job->detect, BEFORE);
		heat(job, SLOW, 1.3);
		if (i)
			assert_true(is_named(job, SLOW, SINCE, &at));
		else
			assert_false(is_anybody_named(job, SINCE));
		free_job(job);
	}
}

static void without_tensor_cores_nobody_is_named(void **state)
{
	static const double tensor[] = {0.8, 1.0}; /* of 90 ms */

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = job_of(RANKS);
		uint32_t at;

		for (uint32_t j = 0; j < RANKS; j++)
			job->sim.rank[j].tensor = tensor[i] * SIM_MS;
		sim_pass(&job->sim, job->detect, BEFORE);
		heat(job, SLOW, 1.3);
		if (i)
			assert_true(is_named(job, SLOW, SINCE, &at));
		else
			assert_false(is_anybody_named(job, SINCE));
		free_job(job);
	}
}

static void of_two_ranks_none_is_named(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 3; ranks++) {
		struct job *job = job_of(ranks);
		uint32_t at;

		sim_pass(&job->sim, job->detect, BEFORE);
		heat(job, 1, 1.3);
		if (ranks == 3)
			assert_true(is_named(job, 1, SINCE, &at));
		else
			assert_false(is_anybody_named(job, SINCE));
		free_job(job);
	}
}

/* The one that slows the job is named, and one that is hot and less slow is not. */
static void of_two_hot_gpus_the_one_that_all_wait_for_is_named(void **state)
{
	struct job *job = *state;
	uint32_t at;

	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	heat(job, 5, 1.1);
	assert_true(is_named(job, SLOW, SINCE, &at));
}

/* The network is slower. One waits in kernels on the whole GPU, is hot, and has more work as well. */
static void slow_network(struct job *job)
{
	job->sim.comm[0].transfer += 12.0 * SIM_MS;
	job->sim.rank[SLOW].waiting_sm = 1.0;
	job->sim.rank[SLOW].thermal = 1.0;
	job->sim.rank[SLOW].tensor *= 1.3;
}

/* Measured own work says that it is not slow. Where nothing measures it, it would be named. */
static void at_higher_tiers_own_work_decides(void **state)
{
	uint32_t at;

	(void)state;
	for (uint8_t tier = NT_FRAME_T1; tier <= NT_FRAME_T3; tier++) {
		struct job *job = job_of(RANKS);

		for (uint32_t i = 0; i < RANKS; i++)
			job->sim.rank[i].tier = tier;
		sim_pass(&job->sim, job->detect, BEFORE);
		slow_network(job);
		if (tier == NT_FRAME_T1)
			assert_true(is_named(job, SLOW, SINCE, &at));
		else
			assert_false(is_anybody_named(job, SINCE));
		free_job(job);
	}
}

/* All have more work for their tensor cores. */
static void more_work_of_all_is_no_slow_clock(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, BEFORE);
	slow_network(job);
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].tensor = 39.0 * SIM_MS;
	assert_false(is_anybody_named(job, SINCE));
}

/* By 4 % and by 7 %: what is too small to be a fault of the job is none of a rank. */
static void a_step_that_is_hardly_longer_is_no_fault(void **state)
{
	static const double factor[] = {1.055, 1.1};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = job_of(RANKS);
		uint32_t at;

		sim_pass(&job->sim, job->detect, BEFORE);
		heat(job, SLOW, factor[i]);
		if (i)
			assert_true(is_named(job, SLOW, SINCE, &at));
		else
			assert_false(is_anybody_named(job, SINCE));
		free_job(job);
	}
}

static void cool(struct job *job)
{
	job->sim.rank[SLOW].device = 70.0 * SIM_MS;
	job->sim.rank[SLOW].tensor = 30.0 * SIM_MS;
	job->sim.rank[SLOW].thermal = 0.0;
}

static void a_fault_that_ended_is_not_named_later(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	assert_false(is_anybody_named(job, 20));
	cool(job);
	assert_false(is_anybody_named(job, SINCE));
}

/* The GPU recovered, and the job is slow for another reason. */
static void what_lasts_longer_than_the_heat_has_another_reason(void **state)
{
	struct job *job = *state;
	uint32_t at;

	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	assert_true(is_named(job, SLOW, SINCE, &at));
	cool(job);
	job->sim.comm[0].transfer += 10.5 * SIM_MS;
	sim_pass(&job->sim, job->detect, 400);
	for (size_t i = 0; sim_firing(job->detect, i); i++)
		assert_int_equal(sim_firing(job->detect, i)->class, NT_CLASS_JOB_WIDE);
}

static void all_that_are_slow_enough_are_named(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	heat(job, 5, 1.28);
	assert_true(sim_run(&job->sim, job->detect, SINCE) <= SINCE);
	finding = sim_firing(job->detect, 0);
	assert_int_equal(finding->culprits, 2);
	assert_int_equal(finding->culprit[0].rank, SLOW);
	assert_int_equal(finding->culprit[1].rank, 5);
	/* The evidence is the slower one's. */
	assert_true(row(finding, "time per step in which the gpu's tensor cores computed")->value >
		    38.7);
}

/* That the job is slower is said first. Then it is explained, and the evidence remains. */
static void it_replaces_the_note_that_the_job_is_slower(void **state)
{
	struct nt_rules rules = nt_rules_default();
	struct job *job = *state;
	uint32_t at;

	nt_detect_free(job->detect);
	rules.resolve_min_ns = 5 * (uint64_t)SIM_SECOND;
	rules.resolve_windows = 5;
	assert_int_equal(nt_detect_new(&rules, 1, 1, &job->detect), 0);
	sim_pass(&job->sim, job->detect, BEFORE);
	heat(job, SLOW, 1.3);
	assert_false(is_named(job, SLOW, 20, &at));
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_JOB_WIDE);
	assert_true(is_named(job, SLOW, SINCE, &at));
	sim_pass(&job->sim, job->detect, 3);
	assert_int_equal(sim_open(job->detect), 1);
	for (uint32_t i = 0; i < 4 * SINCE; i++) {
		sim_pass(&job->sim, job->detect, 1);
		assert_names_rank(sim_firing(job->detect, 0), SLOW);
		assert_true(sim_firing(job->detect, 0)->confidence > 0.9);
	}
	assert_int_equal(sim_open(job->detect), 1);
}

/* Saved and loaded between the onset and the verdict. */
static void a_restart_in_between_changes_nothing(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	uint32_t at[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = job_of(RANKS);
		uint8_t *data;
		size_t size;

		sim_pass(&job->sim, job->detect, BEFORE);
		heat(job, SLOW, 1.3);
		sim_pass(&job->sim, job->detect, 15);
		if (i) {
			assert_int_equal(nt_detect_save(job->detect, &data, &size), 0);
			nt_detect_free(job->detect);
			assert_int_equal(nt_detect_load(&rules, data, size, &job->detect), 0);
			free(data);
		}
		assert_true(is_named(job, SLOW, SINCE, &at[i]));
		free_job(job);
	}
	assert_int_equal(at[0], at[1]);
}

/* The host of another is slow, which is known. */
static void beside_another_incident_nobody_is_named(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, BEFORE);
	job->sim.rank[5].host += 60.0 * SIM_MS;
	assert_true(sim_run(&job->sim, job->detect, SINCE) <= SINCE);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HOST);
	slow_network(job);
	job->sim.rank[SLOW].tensor *= 2.0;
	assert_false(is_anybody_named(job, 2 * SINCE));
}

/* Slow, and hot, since before its job was seen: there is nothing to compare with. */
static void a_gpu_that_is_slow_from_the_start_is_not_named(void **state)
{
	struct job *job = *state;

	heat(job, SLOW, 1.3);
	assert_false(is_anybody_named(job, BEFORE + SINCE));
}

#define JOB_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(a_hot_gpu_is_named_after_so_many_seconds_of_readings),
		JOB_TEST(a_healthy_job_is_silent),
		JOB_TEST(a_late_host_lets_no_gpu_be_named),
		JOB_TEST(a_kernel_that_waits_on_the_whole_gpu_is_no_work),
		JOB_TEST(a_slow_gpu_without_a_reason_is_not_named),
		JOB_TEST(a_gpu_that_was_hot_before_is_not_named),
		JOB_TEST(a_power_cap_of_all_names_nobody),
		cmocka_unit_test(the_clock_must_explain_three_quarters_of_the_step),
		cmocka_unit_test(its_work_must_explain_half_of_the_step),
		cmocka_unit_test(without_tensor_cores_nobody_is_named),
		cmocka_unit_test(of_two_ranks_none_is_named),
		JOB_TEST(of_two_hot_gpus_the_one_that_all_wait_for_is_named),
		cmocka_unit_test(at_higher_tiers_own_work_decides),
		JOB_TEST(more_work_of_all_is_no_slow_clock),
		cmocka_unit_test(a_step_that_is_hardly_longer_is_no_fault),
		JOB_TEST(a_fault_that_ended_is_not_named_later),
		JOB_TEST(what_lasts_longer_than_the_heat_has_another_reason),
		JOB_TEST(all_that_are_slow_enough_are_named),
		JOB_TEST(it_replaces_the_note_that_the_job_is_slower),
		cmocka_unit_test(a_restart_in_between_changes_nothing),
		JOB_TEST(beside_another_incident_nobody_is_named),
		JOB_TEST(a_gpu_that_is_slow_from_the_start_is_not_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
