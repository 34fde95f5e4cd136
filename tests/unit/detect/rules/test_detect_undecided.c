/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Notes on what deviates while no rank is accused. */
#include "tests/unit/detect/detect_frames.h"

enum {
	SHORT = 41,
	LEARN = 40,
	LONG = 200, /* windows */
};

static const struct nt_finding *find_note(const struct nt_detect *detect)
{
	for (uint32_t i = 0; sim_firing(detect, i); i++)
		if (sim_firing(detect, i)->cause &&
		    strncmp(sim_firing(detect, i)->cause, "no verdict", 10) == 0)
			return sim_firing(detect, i);
	return NULL;
}

/* Two windows of five cost 5 % each: often, though less than an incident must cost. */
static void a_rank_that_is_often_behind_is_noted(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *note;
	double device;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 61);
	device = sim.rank[3].device;
	sim_pass(&sim, detect, LEARN);
	for (uint32_t i = 0; i < LONG; i++) {
		sim.rank[3].device = device * (i % 5 < 2 ? 1.06 : 1.0);
		sim_pass(&sim, detect, 1);
	}
	note = find_note(detect);
	assert_names_rank(note, 3);
	assert_int_equal(note->severity, NT_SEVERITY_INFO);
	assert_string_equal(note->cause, "no verdict: it costs less than the size floor");
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Too few windows for a verdict, but each costs as much as a step. Said when no more will follow. */
static void a_recording_ends_with_what_it_has_too_little_of(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	double device;
	struct sim sim;

	(void)state;
	sim_init(&sim, 2, 62);
	sim.jitter = 0.01;
	device = sim.rank[0].device;
	for (uint32_t i = 0; i < SHORT; i++) {
		sim.rank[0].device = device * (i > 15 && i % 3 == 0 ? 2.2 : 1.0);
		sim_pass(&sim, detect, 1);
		assert_int_equal(sim_open(detect), 0);
	}
	assert_int_equal(nt_detect_finish(detect, &finding, &findings), 0);
	assert_int_equal(findings, 0);
	assert_int_equal(nt_detect_remark(detect, &finding, &findings), 0);
	assert_int_equal(findings, 1);
	assert_names_rank(finding, 0);
	assert_int_equal(finding->state, NT_INCIDENT_FIRING);
	assert_int_equal(finding->severity, NT_SEVERITY_INFO);
	assert_string_equal(finding->cause, "no verdict: the evidence is below the threshold");
	/* Once. */
	assert_int_equal(nt_detect_remark(detect, &finding, &findings), 0);
	assert_int_equal(findings, 0);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Plays a recording of 35 rounds of random lengths, of which nine are `times` longer on all ranks. */
static size_t play_recording(double times, double random, uint64_t *ret_since_ns)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	double device[4];
	struct sim sim;

	sim_init(&sim, 4, 64);
	sim.jitter = 0.01;
	for (uint32_t j = 0; j < 4; j++)
		device[j] = sim.rank[j].device;
	for (uint32_t i = 0; i < 35; i++) {
		const double length = (i >= 16 && i < 25 ? times : 1.0) *
				      (1.0 + random * (2.0 * sim_uniform(&sim) - 1.0));

		for (uint32_t j = 0; j < 4; j++)
			sim.rank[j].device = device[j] * length;
		sim_pass(&sim, detect, 1);
	}
	assert_int_equal(sim_open(detect), 0);
	assert_int_equal(nt_detect_remark(detect, &finding, &findings), 0);
	*ret_since_ns = findings ? finding->since_ns : 0;
	if (findings) {
		assert_int_equal(finding->class, NT_CLASS_JOB_WIDE);
		assert_int_equal(finding->culprits, 0);
		assert_int_equal(finding->severity, NT_SEVERITY_INFO);
	}
	sim_free(&sim);
	nt_detect_free(detect);
	return findings;
}

static void a_recording_in_which_some_rounds_are_longer_is_remarked(void **state)
{
	uint64_t since_ns;

	(void)state;
	assert_int_equal(play_recording(2.0, 0.0, &since_ns), 1);
	assert_true(since_ns > 0);
	assert_int_equal(play_recording(1.0, 0.0, &since_ns), 0);
	assert_int_equal(play_recording(1.0, 0.4, &since_ns), 0);
	assert_int_equal(play_recording(1.2, 0.0, &since_ns), 0);
}

/* A pair of which rank 1's host works `host` longer and its device `device`, since the start. */
static const struct nt_finding *play_pair(struct sim *sim, struct nt_detect *detect, double host,
					  double device)
{
	sim_init(sim, 2, 63);
	sim->jitter = 0.01;
	sim->rank[0].tier = sim->rank[1].tier = NT_FRAME_T3;
	sim->rank[1].host += host;
	sim->rank[1].device += device;
	sim_pass(sim, detect, LONG);
	return find_note(detect);
}

static void of_two_hosts_the_one_that_works_longer_is_noted(void **state)
{
	static const struct {
		double host, device;
		bool noted;
	} pair[] = {
		{20.0, 0.0, true},
		{5.0, 0.0, false}, /* too little */
		{20.0, -20.0, false}, /* nobody waits for it */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++) {
		struct nt_detect *detect = sim_detect();
		const struct nt_finding *note;
		struct sim sim;

		note = play_pair(&sim, detect, pair[i].host * SIM_MS, pair[i].device * SIM_MS);
		assert_int_equal(note != NULL, pair[i].noted);
		if (note) {
			assert_names_rank(note, 1);
			assert_int_equal(note->severity, NT_SEVERITY_INFO);
			assert_int_equal(note->class, NT_CLASS_HOST);
			assert_string_equal(
				note->cause,
				"no verdict: of two ranks it is not known which is normal");
		}
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/* The second stage has more work for its devices, and the host of its rank 3 is late. */
static void uneven_stages_do_not_hide_a_late_host(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 2, 2, 65);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < 4; i++) {
		sim.rank[i].tier = NT_FRAME_T3;
		sim.rank[i].device *= i < 2 ? 1.0 : 1.4;
	}
	sim.rank[3].host += 20.0 * SIM_MS;
	sim_pass(&sim, detect, LONG);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_IMBALANCE);
	assert_names_rank(find_note(detect), 3);
	assert_int_equal(find_note(detect)->class, NT_CLASS_HOST);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Bursts of other jobs' traffic: steps are longer now and then, and no rank's work is. */
static void lost_time_without_a_culprit_is_noted(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *note;
	double transfer;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 71);
	transfer = sim.comm[0].transfer;
	sim.jitter = 0.01;
	sim_pass(&sim, detect, LEARN);
	for (uint32_t i = 0; i < LONG; i++) {
		sim.comm[0].transfer = transfer * (i % 5 > 1 ? 1.0 : 10.0);
		sim_pass(&sim, detect, 1);
	}
	note = find_note(detect);
	assert_non_null(note);
	assert_int_equal(note->severity, NT_SEVERITY_INFO);
	assert_int_equal(note->class, NT_CLASS_JOB_WIDE);
	assert_int_equal(note->culprits, 0);
	assert_string_equal(note->cause, "no verdict: no rank, link or host explains it");
	assert_true(note->slowdown > 1.1);
	assert_true(note->gpu_hours < 0.0);
	sim.comm[0].transfer = transfer;
	/* It ends with what it notes. */
	sim_pass(&sim, detect, LONG);
	assert_null(find_note(detect));
	sim_free(&sim);
	nt_detect_free(detect);
}

static void a_job_with_hiccups_is_not_noted(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, seed % 2 ? 8 : 64, 81 + seed);
		sim.jitter = 0.02;
		sim.outliers = 0.01;
		for (uint32_t i = 0; i < LEARN + LONG; i++) {
			sim_pass(&sim, detect, 1);
			assert_null(find_note(detect));
		}
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/* An accused rank says it all, and so does the time after it. */
static void a_verdict_needs_no_note(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 91);
	sim.jitter = 0.01;
	sim_pass(&sim, detect, LEARN);
	for (uint32_t i = 0; i < 2 * LONG; i++) {
		if (i == 0)
			sim.rank[3].device *= 1.5;
		if (i == LONG)
			sim.rank[3].device /= 1.5;
		sim_pass(&sim, detect, 1);
		assert_null(find_note(detect));
	}
	sim_free(&sim);
	nt_detect_free(detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_is_often_behind_is_noted),
		cmocka_unit_test(a_recording_ends_with_what_it_has_too_little_of),
		cmocka_unit_test(a_recording_in_which_some_rounds_are_longer_is_remarked),
		cmocka_unit_test(of_two_hosts_the_one_that_works_longer_is_noted),
		cmocka_unit_test(uneven_stages_do_not_hide_a_late_host),
		cmocka_unit_test(lost_time_without_a_culprit_is_noted),
		cmocka_unit_test(a_job_with_hiccups_is_not_noted),
		cmocka_unit_test(a_verdict_needs_no_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
