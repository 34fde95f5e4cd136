/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbers of the example in docs/verdicts.md, stage by stage. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"

enum {
	RANKS = 8,
	SLOW = 3,
	HEALTHY_WINDOWS = 120, /* a minute */
	FIRED = 7, /* windows from the onset to the incident */
	CAPPED = 11,
};

static const double before_ms[RANKS] = {79.6, 80.2, 79.9, 80.4, 79.7, 80.1, 80.6, 80.0};
static const double slow_ms = 105.6, host_ms = 10.0;

struct job {
	struct sim sim;
	struct nt_detect *detect;
	uint64_t onset_ns;
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, RANKS, 1);
	/* Two reductions a step. */
	job->sim.comm[0].transfer = 19.4 / 2 * SIM_MS;
	job->sim.steps = 5;
	for (uint32_t i = 0; i < RANKS; i++) {
		job->sim.rank[i].host = host_ms * SIM_MS;
		job->sim.rank[i].device = (before_ms[i] - host_ms) * SIM_MS;
	}
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, HEALTHY_WINDOWS);
	assert_int_equal(sim_open(job->detect), 0);
	job->onset_ns = job->sim.now_ns;
	job->sim.rank[SLOW].device = (slow_ms - host_ms) * SIM_MS;
	job->sim.steps = 4;
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

static const struct nt_track *track(const struct job *job, uint32_t rank)
{
	return &job->detect->rank[rank].track[NT_SERIES_OWN];
}

static void assert_about(double value, double want, double within)
{
	if (!(fabs(value - want) <= within))
		fail_msg("%.9g is not %g, within %g", value, want, within);
}

static void ranks_are_compared_with_the_median_of_their_peers(void **state)
{
	static const double peers_ms[RANKS] = {80.1, 80.0, 80.1, 80.0, 80.1, 80.0, 80.0, 80.1};
	static const double percent[RANKS] = {-0.62, 0.25, -0.25, 32.0, -0.50, 0.13, 0.75, -0.13};
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 1);
	assert_int_equal(job->sim.frame.end_ns - job->sim.frame.start_ns, SIM_SECOND / 2);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(track(job, i)->mode, NT_MODE_PEERS);
		assert_about(track(job, i)->peers / SIM_MS, peers_ms[i], 1e-6);
		assert_about(100.0 * track(job, i)->peer_deviation, percent[i], 0.006);
		assert_about(track(job, i)->width, 0.01, 1e-9);
	}
	assert_about(100.0 * track(job, SLOW)->past.peer_deviation_centre, 0.5, 0.01);
}

static void the_spread_of_the_deviations_is_below_the_floor(void **state)
{
	/* In ascending order: of each rank from its peers, and of the values from their median. */
	const double peers[RANKS] = {-0.5 / 80.1, -0.4 / 80.1, -0.2 / 80.1, -0.1 / 80.1,
				     0.1 / 80.0,  0.2 / 80.0,  0.6 / 80.0,  25.6 / 80.0};
	const double median[RANKS] = {-0.45 / 80.05, -0.35 / 80.05, -0.15 / 80.05, -0.05 / 80.05,
				      0.05 / 80.05,  0.15 / 80.05,  0.55 / 80.05,  25.55 / 80.05};

	(void)state;
	assert_about(100.0 * nt_stats_width(peers, RANKS), 0.77, 0.005);
	assert_about(100.0 * nt_stats_core(median, RANKS), 0.66, 0.005);
}

static void the_sum_of_the_slow_rank_alone_grows_by_two_to_the_cap(void **state)
{
	struct job *job = *state;

	assert_about(job->detect->threshold, 10.77, 0.005);
	for (uint32_t i = 1; i <= CAPPED; i++) {
		sim_pass(&job->sim, job->detect, 1);
		assert_about(track(job, SLOW)->level.sum, i < CAPPED ? 2.0 * i : 21.54, 0.01);
		assert_about(track(job, SLOW)->shift.sum, track(job, SLOW)->level.sum, 1e-9);
		for (uint32_t j = 0; j < RANKS; j++)
			assert_true(j == SLOW || track(job, j)->level.sum == 0.0);
		assert_int_equal(sim_open(job->detect), i >= FIRED - 1);
		assert_true(!sim_firing(job->detect, 0) == (i < FIRED));
	}
	assert_int_equal(track(job, SLOW)->level.onset_ns, job->onset_ns);
}

static void the_incident_fires_with_the_cost_of_the_fault(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_pass(&job->sim, job->detect, FIRED);
	assert_about(100.0 * nt_cusum_cost(&track(job, SLOW)->shift), 20.2, 0.05);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, SLOW);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_null(finding->cause);
	assert_int_equal(finding->tier, NT_FRAME_T2);
	assert_int_equal(finding->severity, NT_SEVERITY_CRITICAL);
	assert_int_equal(finding->since_ns, job->onset_ns);
	assert_int_equal(finding->seen_ns - finding->since_ns, 3500000000);
	assert_about(finding->slowdown, 1.25, 0.005);
	assert_about(finding->gpu_hours, 0.0016, 0.00005);
	assert_about(1.0 - finding->confidence, 3e-10, 0.5e-10);
	assert_about(finding->completeness, 1.0, 0.0);
	sim_pass(&job->sim, job->detect, 120 - FIRED);
	assert_about(sim_firing(job->detect, 0)->gpu_hours, 0.027, 0.0005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranks_are_compared_with_the_median_of_their_peers,
						begin, end),
		cmocka_unit_test(the_spread_of_the_deviations_is_below_the_floor),
		cmocka_unit_test_setup_teardown(
			the_sum_of_the_slow_rank_alone_grows_by_two_to_the_cap, begin, end),
		cmocka_unit_test_setup_teardown(the_incident_fires_with_the_cost_of_the_fault,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
