/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which class a slow rank has, from the evidence on itself. */
#include "tests/unit/detect/detect_frames.h"

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, 8, 31);
	job->sim.jitter = 0.02;
	job->detect = sim_detect();
	*state = job;
	return 0;
}

static int end(void **state)
{
	struct job *job = *state;

	nt_detect_free(job->detect);
	sim_free(&job->sim);
	free(job);
	return 0;
}

static void all_tier(struct job *job, uint8_t tier)
{
	for (uint32_t i = 0; i < job->sim.ranks; i++)
		job->sim.rank[i].tier = tier;
}

static const struct nt_finding *find(struct job *job, uint32_t rank)
{
	assert_in_range(sim_run(&job->sim, job->detect, 30), 5, 12);
	assert_names_rank(sim_firing(job->detect, 0), rank);
	return sim_firing(job->detect, 0);
}

static void long_device_time_is_compute(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	finding = find(job, 3);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_null(finding->cause);
	assert_int_equal(finding->tier, NT_FRAME_T2);
	assert_int_equal(finding->severity, NT_SEVERITY_WARNING);
	/* Steps of 106 ms instead of 92, which is the slowest of eight ranks that vary. */
	assert_true(finding->slowdown > 1.1 && finding->slowdown < 1.2);
	assert_int_equal(finding->culprit[0].peer_count, 7);
	assert_string_equal(finding->evidence[0].what, "own work of the step");
	assert_true(finding->evidence[0].value > 95.0 && finding->evidence[0].value < 107.0);
	assert_true(finding->evidence[0].peers > 75.0 && finding->evidence[0].peers < 85.0);
	assert_true(finding->confidence > 0.99);
}

static void long_kernels_at_t3_are_compute(void **state)
{
	struct job *job = *state;

	all_tier(job, NT_FRAME_T3);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
	assert_int_equal(sim_firing(job->detect, 0)->tier, NT_FRAME_T3);
}

static void a_slow_gpu_behind_a_host_that_runs_ahead_does_not_show(void **state)
{
	struct job *job = *state;

	all_tier(job, NT_FRAME_T1);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 2.0;
	sim_pass(&job->sim, job->detect, 200);
	assert_accuses_nobody(job->detect);
}

static void host_work_without_a_cause_is_host(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_null(sim_firing(job->detect, 0)->cause);
}

static void host_work_at_t1_is_found_by_the_step_that_grew(void **state)
{
	struct job *job = *state;

	all_tier(job, NT_FRAME_T1);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_int_equal(sim_firing(job->detect, 0)->tier, NT_FRAME_T1);
}

static void a_host_bound_rank_at_t1_is_found_from_the_start(void **state)
{
	struct job *job = *state;

	all_tier(job, NT_FRAME_T1);
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].device = 0.0;
	job->sim.rank[3].host = 30.0 * SIM_MS;
	job->sim.comm[0].transfer = 0.1 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
}

static void host_work_that_the_device_hides_is_nobodys_fault(void **state)
{
	struct job *job = *state;

	/* 20 ms more of host work, and as much less waiting for the device. */
	all_tier(job, NT_FRAME_T1);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 20.0 * SIM_MS;
	job->sim.rank[3].device -= 20.0 * SIM_MS;
	assert_int_equal(sim_run(&job->sim, job->detect, 200), 201);
}

static void at_t3_late_launches_are_the_hosts(void **state)
{
	struct job *job = *state;

	all_tier(job, NT_FRAME_T3);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
}

static void run_queue_delay_is_cpu_contention(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].run_queue = 25.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "cpu contention");
}

static void pauses_of_the_collector_are_named(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].gc = 28.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "garbage collection");
}

static void waiting_for_reads_is_data_loading(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].io = 28.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "data loading");
}

static void waiting_for_writes_is_a_checkpoint(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].io = 28.0 * SIM_MS;
	job->sim.rank[3].write = 1 << 20;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "checkpoint");
}

static void the_same_bytes_in_more_time_are_the_storages(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].read = 1 << 20;
		job->sim.rank[i].io = 2.0 * SIM_MS;
	}
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].io = 30.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_STORAGE);
}

static void major_faults_are_named(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].faults = 600;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "page faults");
}

/* Whether a rank of four is accused that is slower from the start by this factor. */
static bool is_accused_of_four(double factor)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;
	bool accused;

	sim_init(&sim, 4, 31);
	sim.jitter = 0.002;
	for (uint32_t i = 0; i < 4; i++) {
		sim.rank[i].tier = NT_FRAME_T3;
		sim.rank[i].host = 0.0;
	}
	sim.rank[3].device *= factor;
	sim_pass(&sim, detect, 60);
	accused = sim_firing(detect, 0) != NULL;
	if (accused)
		assert_names_rank(sim_firing(detect, 0), 3);
	nt_detect_free(detect);
	sim_free(&sim);
	return accused;
}

/* Three peers are alike by chance now and then, so that more is demanded than of many. */
static void one_of_four_that_hardly_differ_is_named_from_a_twelfth_on(void **state)
{
	(void)state;
	assert_true(is_accused_of_four(1.09));
	assert_false(is_accused_of_four(1.07));
}

static bool has_row(const struct nt_finding *finding, const char *what)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (!strcmp(finding->evidence[i].what, what))
			return true;
	return false;
}

static void a_gpu_that_is_held_down_by_temperature_is_named_for_it(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	job->sim.rank[3].thermal = 0.9;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "gpu temperature");
	assert_true(has_row(sim_firing(job->detect, 0),
			    "time per step that temperature held the gpu's clock down"));
}

/* Of both, what the hardware does to protect itself matters more. */
static void hardware_that_slows_itself_down_is_named_first(void **state)
{
	struct job *job = *state;

	all_tier(job, NT_FRAME_T3);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	job->sim.rank[3].thermal = 0.9;
	job->sim.rank[3].hardware = 0.9;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "gpu hardware slowdown");
}

/* GPUs at work are at their power limit: that does not explain why one of them is slow. */
static void a_power_cap_that_peers_have_too_is_no_cause(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].power = 0.6;
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	job->sim.rank[3].power = 1.0;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
	assert_null(sim_firing(job->detect, 0)->cause);
	assert_true(has_row(sim_firing(job->detect, 0),
			    "time per step that a power cap held the gpu's clock down"));
}

static void a_power_cap_of_one_is_its_cause(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	job->sim.rank[3].power = 1.0;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "gpu power cap");
}

static void memory_errors_of_one_gpu_are_its_cause(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 1.3;
	job->sim.rank[3].gpu_errors = 2;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "gpu memory errors");
}

/* A host fault is not the GPU's, whatever its clock. */
static void a_late_host_is_not_explained_by_its_gpu(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host += 30.0 * SIM_MS;
	job->sim.rank[3].io = 28.0 * SIM_MS;
	job->sim.rank[3].thermal = 1.0;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "data loading");
}

/* A clock that is held down accuses nobody: the job may wait for something else. */
static void a_hot_gpu_that_is_not_slow_is_nobody(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].thermal = 1.0;
	sim_pass(&job->sim, job->detect, 60);
	assert_int_equal(sim_open(job->detect), 0);
}

/* An MPI job: no GPU, all work is the thread's. */
static void no_gpu(struct job *job, double on_cpu)
{
	job->sim.blocking = true;
	for (uint32_t i = 0; i < job->sim.ranks; i++) {
		job->sim.rank[i].no_gpu = true;
		job->sim.rank[i].host = 80.0 * SIM_MS;
		job->sim.rank[i].device = 0.0;
		job->sim.rank[i].on_cpu = on_cpu;
	}
}

static void without_a_gpu_time_on_the_cpu_is_compute(void **state)
{
	struct job *job = *state;

	no_gpu(job, 80.0 * SIM_MS);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host *= 1.4;
	job->sim.rank[3].on_cpu *= 1.4;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
}

static void a_library_that_spins_does_not_hide_computing(void **state)
{
	struct job *job = *state;

	/* All are on the CPU all the time, in their work or in their calls. */
	no_gpu(job, 90.0 * SIM_MS);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host *= 1.4;
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].on_cpu = 122.0 * SIM_MS;
	assert_int_equal(find(job, 3)->class, NT_CLASS_COMPUTE);
}

static void without_a_gpu_sleeping_is_not_compute(void **state)
{
	struct job *job = *state;

	no_gpu(job, 5.0 * SIM_MS);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host *= 1.4;
	assert_int_equal(find(job, 3)->class, NT_CLASS_HOST);
}

static void without_any_word_of_the_thread_the_cause_is_unknown(void **state)
{
	struct job *job = *state;

	no_gpu(job, 0.0);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].host *= 1.4;
	assert_int_equal(find(job, 3)->class, NT_CLASS_UNKNOWN);
}

static void a_rank_whose_number_is_a_guess_is_not_accused(void **state)
{
	struct job *job = *state;

	job->sim.rank[3].known = false;
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 2.0;
	sim_pass(&job->sim, job->detect, 100);
	assert_accuses_nobody(job->detect);
}

static void a_victim_of_lateness_is_not_named(void **state)
{
	struct job *job = *state;

	/* Everybody but rank 3 waits a lot, and is blocked a lot. */
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device *= 3.0;
	sim_pass(&job->sim, job->detect, 300);
	assert_names_rank(sim_firing(job->detect, 0), 3);
	assert_null(sim_firing(job->detect, 1));
}

static void tiers_are_not_mixed_in_one_comparison(void **state)
{
	struct job *job = *state;

	/* Rank 5 counts kernels alone, the others their host's work, too. */
	job->sim.rank[5].tier = NT_FRAME_T3;
	job->sim.rank[5].device *= 3.0;
	assert_int_equal(sim_run(&job->sim, job->detect, 200), 201);
}

static void what_costs_less_than_three_percent_is_left_alone(void **state)
{
	struct job *job = *state;

	job->sim.jitter = 0.002;
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].device += 2.0 * SIM_MS;
	assert_int_equal(sim_run(&job->sim, job->detect, 300), 301);
}

static void a_healthy_spread_since_the_first_step_is_the_fleets(void **state)
{
	struct job *job = *state;

	job->sim.jitter = 0.005;
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].device *= 1.0 + 0.012 * (double)i;
	assert_int_equal(sim_run(&job->sim, job->detect, 600), 601);
	/* And a fault of a rank that is slow by nature is found above it. */
	job->sim.rank[7].device *= 1.2;
	assert_int_equal(find(job, 7)->class, NT_CLASS_COMPUTE);
}

static void one_rank_far_out_of_a_narrow_fleet_is_found_from_the_start(void **state)
{
	struct job *job = *state;

	job->sim.jitter = 0.003;
	job->sim.rank[6].device *= 1.08;
	job->sim.rank[6].host *= 1.08;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 20, 30);
	assert_names_rank(sim_firing(job->detect, 0), 6);
}

/* Peers that differ by 2 % are no exact reference: their median may be as far from the fleet's. */
static void a_slow_tail_of_a_wide_fleet_is_found_beyond_doubt_only(void **state)
{
	static const double nature[] = {0.97, 1.02, 0.98, 1.0, 0.96, 1.03, 1.0, 0.99};
	struct job *job = *state;
	struct sim *sim = &job->sim;

	sim->jitter = 0.003;
	for (uint32_t i = 0; i < 8; i++) {
		sim->rank[i].device *= nature[i];
		sim->rank[i].host *= nature[i];
	}
	sim->rank[6].device *= 1.1;
	sim->rank[6].host *= 1.1;
	assert_int_equal(sim_run(sim, job->detect, 200), 201);
	sim->rank[6].device *= 1.2;
	sim->rank[6].host *= 1.2;
	assert_in_range(sim_run(sim, job->detect, 60), 5, 15);
	assert_names_rank(sim_firing(job->detect, 0), 6);
}

/* Eight ranks that share few processors with other programs: own work holds some of the waiting. */
static void where_all_wait_for_processors_a_little_more_proves_nothing(void **state)
{
	static const double factor[] = {1.08, 1.08, 1.5, 1.5};
	static const double run_queue[] = {0.0, 28.0, 28.0, 500.0};
	/* In calls that spin: most of the waiting is in there. */
	static const double transfer[] = {0.0, 0.0, 0.0, 700.0};
	static const bool named[] = {true, false, true, true};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 8, 61);
		sim.jitter = 0.01;
		sim.blocking = transfer[i] > 0.0;
		sim.comm[0].timed = sim.blocking;
		sim.comm[0].transfer += transfer[i] / 2.0 * SIM_MS;
		for (uint32_t j = 0; j < sim.ranks; j++)
			sim.rank[j].run_queue = run_queue[i] * SIM_MS;
		sim_pass(&sim, detect, 40);
		sim.rank[3].device *= factor[i];
		sim_pass(&sim, detect, 60);
		assert_int_equal(sim_open(detect), named[i]);
		if (named[i])
			assert_names_rank(sim_firing(detect, 0), 3);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* From outside a kernel ends when the thread that awaits it runs again. */
static void device_time_that_is_waiting_for_a_processor_is_the_hosts(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 62);
	sim.jitter = 0.01;
	sim_pass(&sim, detect, 40);
	sim.rank[5].device *= 1.5;
	sim.rank[5].run_queue = 30.0 * SIM_MS;
	sim_pass(&sim, detect, 40);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HOST);
	assert_string_equal(sim_firing(detect, 0)->cause, "cpu contention");
	assert_int_equal(sim_firing(detect, 0)->culprit[0].rank, 5);
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_time_that_is_waiting_for_a_processor_is_the_hosts),
		cmocka_unit_test(where_all_wait_for_processors_a_little_more_proves_nothing),
		CASE(long_device_time_is_compute),
		CASE(long_kernels_at_t3_are_compute),
		CASE(a_slow_gpu_behind_a_host_that_runs_ahead_does_not_show),
		CASE(host_work_without_a_cause_is_host),
		CASE(host_work_at_t1_is_found_by_the_step_that_grew),
		CASE(a_host_bound_rank_at_t1_is_found_from_the_start),
		CASE(host_work_that_the_device_hides_is_nobodys_fault),
		CASE(at_t3_late_launches_are_the_hosts),
		CASE(run_queue_delay_is_cpu_contention),
		CASE(pauses_of_the_collector_are_named),
		CASE(waiting_for_reads_is_data_loading),
		CASE(waiting_for_writes_is_a_checkpoint),
		CASE(the_same_bytes_in_more_time_are_the_storages),
		CASE(major_faults_are_named),
		CASE(one_of_four_that_hardly_differ_is_named_from_a_twelfth_on),
		CASE(a_gpu_that_is_held_down_by_temperature_is_named_for_it),
		CASE(hardware_that_slows_itself_down_is_named_first),
		CASE(a_power_cap_that_peers_have_too_is_no_cause),
		CASE(a_power_cap_of_one_is_its_cause),
		CASE(memory_errors_of_one_gpu_are_its_cause),
		CASE(a_late_host_is_not_explained_by_its_gpu),
		CASE(a_hot_gpu_that_is_not_slow_is_nobody),
		CASE(without_a_gpu_time_on_the_cpu_is_compute),
		CASE(a_library_that_spins_does_not_hide_computing),
		CASE(without_a_gpu_sleeping_is_not_compute),
		CASE(without_any_word_of_the_thread_the_cause_is_unknown),
		CASE(a_rank_whose_number_is_a_guess_is_not_accused),
		CASE(a_victim_of_lateness_is_not_named),
		CASE(tiers_are_not_mixed_in_one_comparison),
		CASE(what_costs_less_than_three_percent_is_left_alone),
		CASE(a_healthy_spread_since_the_first_step_is_the_fleets),
		CASE(one_rank_far_out_of_a_narrow_fleet_is_found_from_the_start),
		CASE(a_slow_tail_of_a_wide_fleet_is_found_beyond_doubt_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
