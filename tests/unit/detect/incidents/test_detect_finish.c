/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults that end before the recording does, or before the job stands still. */
#include "tests/unit/detect/detect_frames.h"

enum {
	LEARN = 40,
	LASTS = 20, /* windows of the fault */
	NOISE = 3, /* windows by which its end may be off */
};

struct run {
	struct sim sim;
	struct nt_detect *detect;
	uint64_t end_ns; /* of the fault */
};

/* A job of eight in which rank 3 is slow for a while. */
static void play_for(struct run *run, uint32_t lasts, uint32_t healthy)
{
	run->detect = sim_detect();
	sim_init(&run->sim, 8, 51);
	run->sim.jitter = 0.01;
	sim_pass(&run->sim, run->detect, LEARN);
	run->sim.rank[3].device *= 1.5;
	sim_pass(&run->sim, run->detect, lasts);
	assert_names_rank(sim_firing(run->detect, 0), 3);
	run->sim.rank[3].device /= 1.5;
	run->end_ns = run->sim.now_ns;
	sim_pass(&run->sim, run->detect, healthy);
}

static void play(struct run *run, uint32_t healthy)
{
	play_for(run, LASTS, healthy);
}

static void end(struct run *run)
{
	sim_free(&run->sim);
	nt_detect_free(run->detect);
}

static void assert_ends(const struct run *run, const struct nt_finding *finding)
{
	assert_int_equal(finding->state, NT_INCIDENT_RESOLVED);
	assert_names_rank(finding, 3);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_true(finding->until_ns <= run->end_ns);
	assert_true(run->end_ns - finding->until_ns <= NOISE * (uint64_t)SIM_SECOND);
}

static void a_fault_that_ended_in_a_recording_is_resolved(void **state)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	struct run run;

	(void)state;
	play(&run, 10);
	assert_int_equal(sim_firing(run.detect, 0)->state, NT_INCIDENT_FIRING);
	assert_int_equal(nt_detect_finish(run.detect, &finding, &findings), 0);
	assert_int_equal(findings, 1);
	assert_ends(&run, finding);
	assert_int_equal(sim_open(run.detect), 0);
	/* There is nothing left to end. */
	assert_int_equal(nt_detect_finish(run.detect, &finding, &findings), 0);
	assert_int_equal(findings, 0);
	end(&run);
}

/*
 * Its sums are still high at the end of the recording, as the rank is slower by a little than its peers.
 * The healthy steps are no part of its cost.
 */
static void a_short_fault_is_told_as_it_was(void **state)
{
	(void)state;
	for (uint32_t healthy = 7; healthy < 20; healthy++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;
		struct run run;

		play_for(&run, 8, 0);
		run.sim.rank[3].device *= 1.02;
		sim_pass(&run.sim, run.detect, healthy);
		assert_int_equal(nt_detect_finish(run.detect, &finding, &findings), 0);
		assert_int_equal(findings, 1);
		assert_ends(&run, finding);
		assert_true(fabs(finding->slowdown - 1.4) < 0.05);
		end(&run);
	}
}

static void a_fault_may_pause_for_some_windows(void **state)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	struct run run;

	(void)state;
	play(&run, 3);
	assert_int_equal(nt_detect_finish(run.detect, &finding, &findings), 0);
	assert_int_equal(findings, 0);
	assert_names_rank(sim_firing(run.detect, 0), 3);
	end(&run);
}

static void what_was_never_seen_has_no_end(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	size_t findings = 1;

	(void)state;
	assert_int_equal(nt_detect_finish(detect, &finding, &findings), 0);
	assert_int_equal(findings, 0);
	nt_detect_free(detect);
}

/* It would fire in the next window: of a recording there is none. */
static void what_is_pending_at_the_end_of_a_recording_is_told(void **state)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	struct run run = {.detect = sim_detect()};

	(void)state;
	sim_init(&run.sim, 8, 51);
	run.sim.jitter = 0.01;
	sim_pass(&run.sim, run.detect, LEARN);
	run.sim.rank[3].device *= 1.5;
	while (!sim_open(run.detect))
		sim_pass(&run.sim, run.detect, 1);
	assert_null(sim_firing(run.detect, 0));
	assert_int_equal(nt_detect_finish(run.detect, &finding, &findings), 0);
	assert_int_equal(findings, 0);
	assert_int_equal(nt_detect_remark(run.detect, &finding, &findings), 0);
	assert_int_equal(findings, 1);
	assert_int_equal(finding->state, NT_INCIDENT_FIRING);
	assert_names_rank(finding, 3);
	end(&run);
}

/* No window is judged while the job hangs: the fault before it keeps its figures, and ends. */
static void a_hang_does_not_keep_an_ended_fault(void **state)
{
	const struct nt_finding *finding = NULL;
	double slowdown;
	size_t findings;
	struct run run;

	(void)state;
	play(&run, 0);
	slowdown = sim_firing(run.detect, 0)->slowdown;
	sim_pass(&run.sim, run.detect, 12);
	finding = sim_firing(run.detect, 0);
	assert_names_rank(finding, 3);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_true(fabs(finding->slowdown - slowdown) < 0.05);
	sim_stick(&run.sim, run.sim.comm[0].id, 5);
	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(
			nt_detect_step(run.detect, sim_next(&run.sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			if (finding[j].class != NT_CLASS_HANG &&
			    finding[j].state == NT_INCIDENT_RESOLVED) {
				assert_ends(&run, &finding[j]);
				end(&run);
				return;
			}
	}
	fail_msg("the fault has not ended");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_that_ended_in_a_recording_is_resolved),
		cmocka_unit_test(a_short_fault_is_told_as_it_was),
		cmocka_unit_test(a_fault_may_pause_for_some_windows),
		cmocka_unit_test(what_was_never_seen_has_no_end),
		cmocka_unit_test(what_is_pending_at_the_end_of_a_recording_is_told),
		cmocka_unit_test(a_hang_does_not_keep_an_ended_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
