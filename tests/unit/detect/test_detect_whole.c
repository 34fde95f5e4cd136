/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The job against its own past, on numbers that the test puts there. */
#include "tests/unit/detect/detect_whole.h"

#include "detect/baseline/baseline_reset.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "detect/model/step.h"
#include "detect/rules/step_judge.h"

/* A step of 1000 that was 800, with a sum that is just enough; ranks work 600, and collect for 100. */
/* Learns from what the ranks' rounds would have told, were their tracks as they are now. */
static void learn(struct job *job)
{
	struct nt_detect *detect = job->detect;
	struct nt_scratch *scratch = &detect->scratch;

	memset(scratch->judged, 0, sizeof(scratch->judged));
	for (uint32_t i = 0; i < RANKS; i++) {
		scratch->step_metric_step[i] = detect->rank[i].step_metric[NT_STEP_METRIC_STEP];
		scratch->gc[i] = detect->rank[i].step_metric[NT_STEP_METRIC_GC];
		for (int j = 0; j < NT_SERIES_END; j++) {
			const struct nt_track *track = &detect->rank[i].track[j];
			const bool judged = track->frame == detect->frames;

			scratch->judged[j] += judged;
			scratch->contribution[i].of[j] = (struct nt_track_contribution){
				.growth = judged && track->past.ready ? track->growth : NAN,
				.slow_cost = track->slow_cost,
				.centre = track->past.value_centre,
				.spread = track->past.value_width,
			};
		}
	}
	assert_int_equal(nt_detect_step_learn(detect, &job->sim.frame), 0);
}

static struct nt_job_wide *prepare(struct job *job)
{
	struct nt_detect *detect = job->detect;
	struct nt_job_wide *wide = &detect->step.job_wide[NT_SERIES_OWN];

	nt_incidents_begin(detect);
	detect->threshold = 10.0;
	for (uint32_t i = 0; i < RANKS; i++) {
		detect->rank[i].round_frame = detect->frames;
		detect->rank[i].tier = NT_FRAME_T2;
		detect->rank[i].step_metric[NT_STEP_METRIC_GC] = 0.0;
		for (int j = 0; j < NT_SERIES_END; j++) {
			detect->rank[i].track[j].past.ready = true;
			detect->rank[i].track[j].past.value_centre = j ? 250.0 : 350.0;
		}
	}
	/* The rounds so far are no such steps: the last one alone counts. */
	nt_history_forget(&detect->step.history, 0);
	detect->step.step_ns = 1000.0;
	detect->step.past.ready = true;
	detect->step.past.value_centre = 800.0;
	detect->step.history = (struct nt_history){0};
	for (uint32_t i = 0; i < 2; i++)
		nt_history_add(&detect->step.history,
			       &(const struct nt_history_round){
				       .start_ns = 4242 + i, .steps = 1.0, .step_ns = 1000.0});
	wide->level = (struct nt_cusum){
		.sum = 20.0, .windows = 1, .costly = 1, .cost = 0.25, .onset_ns = 4242};
	wide->dropped_ns = 0;
	detect->step.job_wide[NT_SERIES_HOST] = (struct nt_job_wide){.growth = 0.0};
	return wide;
}

static const struct nt_detect_incident *check_job(struct job *job)
{
	assert_int_equal(nt_detect_step_check(job->detect, &job->sim.frame), 0);
	return nt_incidents_find(job->detect, NT_FAMILY_JOB_WIDE, 0);
}

static bool is_told(struct job *job)
{
	const bool told = check_job(job) != NULL;

	assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_JOB_WIDE), 0);
	return told;
}

static void what_all_have_together_is_told_with_its_numbers(void **state)
{
	struct job *job = *state;
	const struct nt_detect_incident *told;

	(void)prepare(job);
	job->detect->rank[2].tier = NT_FRAME_T3;
	told = check_job(job);
	assert_non_null(told);
	assert_true(told->cost == 0.25);
	assert_true(told->since_ns == 4242);
	assert_int_equal(told->cause, NT_EVIDENCE_TEXT_NONE);
	assert_int_equal(told->tier, NT_FRAME_T3);
	assert_int_equal(told->evidences, 1);
	assert_int_equal(told->evidence[0].what, NT_EVIDENCE_TEXT_ALL_OWN_WORK);
	assert_true(told->evidence[0].value == 600.0 / 1e6);
	/* What a window holds is no measure of the mean: without the excess it may be less than nothing. */
	assert_true(told->evidence[0].peers == 350.0 / 1e6);
	assert_int_equal(told->evidence[0].windows, 1);
}

static void the_host_is_told_where_own_work_did_not_grow(void **state)
{
	struct job *job = *state;
	struct nt_job_wide *wide = prepare(job);
	const struct nt_detect_incident *told;

	job->detect->step.job_wide[NT_SERIES_HOST] = *wide;
	wide->level.sum = 19.0;
	told = check_job(job);
	assert_non_null(told);
	assert_int_equal(told->evidence[0].what, NT_EVIDENCE_TEXT_ALL_HOST_WORK);
	assert_true(told->evidence[0].value == 500.0 / 1e6);
}

static void it_must_be_sure_last_cost_and_show_in_the_step(void **state)
{
	struct job *job = *state;
	struct nt_job_wide *wide = prepare(job);

	assert_true(is_told(job));
	wide = prepare(job);
	wide->level.sum = 19.99;
	assert_false(is_told(job));
	wide = prepare(job);
	wide->level.costly = 0;
	assert_false(is_told(job));
	(void)prepare(job);
	job->detect->step.past.ready = false;
	assert_false(is_told(job));
	wide = prepare(job);
	wide->level.cost = 0.0300001;
	assert_true(is_told(job));
	wide = prepare(job);
	wide->level.cost = 0.0299999;
	assert_false(is_told(job));
	/* Twice that of the job's step: 60 of 1000. */
	wide = prepare(job);
	wide->level.cost = 0.04;
	job->detect->step.past.value_centre = 939.999;
	assert_true(is_told(job));
	wide = prepare(job);
	wide->level.cost = 0.04;
	job->detect->step.past.value_centre = 940.001;
	assert_false(is_told(job));
	/* At least half of it: 125. */
	(void)prepare(job);
	job->detect->step.past.value_centre = 875.0;
	assert_true(is_told(job));
	(void)prepare(job);
	job->detect->step.past.value_centre = 875.001;
	assert_false(is_told(job));
}

/* What an incident with a culprit costs since before is no change of the whole job. */
static void what_an_earlier_incident_costs_is_not_told_again(void **state)
{
	static const struct {
		uint64_t since_ns;
		double cost;
		bool told;
	} other[] = {{4242, 0.1, false}, {4242, 0.07, true}, {4243, 0.1, true}};
	struct job *job = *state;

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct nt_detect_incident incident = {
			.family = NT_FAMILY_NETWORK,
			.state = NT_INCIDENT_FIRING,
			.since_ns = other[i].since_ns,
			.cost = other[i].cost,
			.lost_time = {.before_ns = 800.0},
		};
		struct nt_detect_incident *open[2] = {&incident};
		struct nt_incidents *incidents = &job->detect->incidents;
		const struct nt_incidents kept = *incidents;

		(void)prepare(job);
		/* A fifth of the step, of which half of a quarter must remain. */
		incidents->open = open;
		incidents->opens = 1;
		incidents->open_cap = 2;
		assert_int_equal(nt_detect_step_check(job->detect, &job->sim.frame), 0);
		assert_int_equal(incidents->opens, other[i].told ? 2 : 1);
		free(other[i].told ? open[1] : NULL);
		incidents->open = kept.open;
		incidents->opens = kept.opens;
		incidents->open_cap = kept.open_cap;
	}
}

static void half_of_it_in_the_collector_is_the_collectors(void **state)
{
	struct job *job = *state;

	for (int i = 0; i < 2; i++) {
		(void)prepare(job);
		job->detect->step.gc_ns = i ? 125.0 : 124.999;
		assert_int_equal(check_job(job)->cause,
				 i ? NT_EVIDENCE_TEXT_HOST_GC : NT_EVIDENCE_TEXT_NONE);
		assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_JOB_WIDE), 0);
	}
}

/* Each pauses in its own time: the job waits for one or another of them each step. */
static void what_the_job_feels_is_what_it_costs(void **state)
{
	static const struct {
		double cost, was, told;
	} then[] = {
		{0.25, 800.0, 0.25}, {0.15, 800.0, 0.2}, {0.1, 800.0, 0.2}, {0.09, 800.0, 0.09}};
	struct job *job = *state;

	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_job_wide *wide = prepare(job);

		wide->level.cost = then[i].cost;
		job->detect->step.past.value_centre = then[i].was;
		assert_true(fabs(check_job(job)->cost - then[i].told) < 1e-9);
		assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_JOB_WIDE), 0);
	}
}

static void after_half_an_hour_it_is_the_new_normal(void **state)
{
	struct job *job = *state;
	const uint64_t half_hour_ns = 1800ull * SIM_SECOND;
	struct nt_job_wide *wide;

	(void)prepare(job);
	assert_non_null(check_job(job));
	job->detect->end_ns = 4242 + half_hour_ns - 1;
	(void)prepare(job);
	assert_non_null(check_job(job));
	assert_true(job->detect->step.past.ready);
	job->detect->end_ns++;
	(void)prepare(job);
	assert_null(check_job(job));
	assert_false(job->detect->step.past.ready);
	/* And so where all became faster. */
	for (int i = 0; i < 2; i++) {
		wide = prepare(job);
		wide->level.sum = 0.0;
		job->detect->step.job_wide[i].dropped_ns = job->detect->end_ns - half_hour_ns + 1;
		assert_null(check_job(job));
		assert_true(job->detect->step.past.ready);
		job->detect->step.job_wide[i].dropped_ns--;
		assert_null(check_job(job));
		assert_false(job->detect->step.past.ready);
	}
}

static void soil(struct job *job)
{
	struct nt_detect *detect = job->detect;

	(void)prepare(job);
	detect->step.moved_ns = 5;
	detect->step.longest_pause_ns = 6;
	for (uint32_t i = 0; i < RANKS; i++) {
		struct nt_detect_rank *rank = &detect->rank[i];

		rank->in_incident = i == 1;
		rank->accepted = false;
		rank->has_metric_mean = true;
		for (int j = 0; j < NT_SERIES_END; j++) {
			rank->track[j].past.count = 1;
			rank->track[j].level.sum = 1.0;
			rank->track[j].shift.sum = 1.0;
		}
	}
	for (uint32_t i = 0; i < detect->roles.groups; i++)
		detect->roles.group[i].past->apart = 7;
}

static void another_normal_forgets_all_but_who_is_in_an_incident(void **state)
{
	struct job *job = *state;
	struct nt_detect *detect = job->detect;

	for (int all = 0; all < 2; all++) {
		soil(job);
		nt_normal_forget(detect, all);
		for (uint32_t i = 0; i < RANKS; i++) {
			const struct nt_detect_rank *rank = &detect->rank[i];
			const bool kept = i == 1 && !all;

			assert_int_equal(rank->has_metric_mean, kept);
			assert_int_equal(rank->accepted, all);
			for (int j = 0; j < NT_SERIES_END; j++) {
				assert_int_equal(rank->track[j].past.count, kept);
				assert_true(rank->track[j].level.sum == kept);
				assert_true(rank->track[j].shift.sum == kept);
			}
		}
		for (uint32_t i = 0; i < detect->roles.groups; i++)
			assert_int_equal(detect->roles.group[i].past->apart, 0);
		assert_true(detect->step.step_ns == 1000.0);
		assert_int_equal(detect->step.moved_ns, 5);
		assert_int_equal(detect->step.longest_pause_ns, 6);
		assert_false(detect->step.past.ready);
		assert_true(detect->step.job_wide[0].level.sum == 0.0);
	}
	/* Once accepted, it stays so. */
	nt_normal_forget(detect, false);
	assert_true(detect->rank[0].accepted);
}

/* Three of four ranks grew at least by what all did together; a fifth that has no past does not count. */
static void the_growth_of_all_is_what_three_of_four_have(void **state)
{
	struct job *job = *state;
	struct nt_detect *detect = job->detect;
	struct nt_job_wide *wide = prepare(job);

	wide->level = (struct nt_cusum){.sum = 0.0};
	for (uint32_t i = 0; i < RANKS; i++) {
		struct nt_track *track = &detect->rank[i].track[NT_SERIES_OWN];

		detect->rank[i].step_metric[NT_STEP_METRIC_STEP] = 1000.0;
		track->frame = i == 5 ? 0 : detect->frames;
		track->past.ready = true;
		track->past.value_centre = 500.0;
		track->growth = 0.1 * (i + 1);
	}
	learn(job);
	/* Of 0.1 to 0.5 the first quarter. */
	assert_true(fabs(wide->growth - 0.2) < 1e-12);
	assert_true(wide->drop == 0.0);
	assert_int_equal(wide->level.windows, 1);
	assert_true(fabs(wide->level.cost - 0.1) < 1e-12);
	assert_true(wide->level.sum == 2.0);
	/* One without a past is a fifth of five: four are enough. */
	detect->rank[1].track[NT_SERIES_OWN].past.ready = false;
	learn(job);
	assert_true(fabs(wide->growth - 0.1) < 1e-12);
	assert_int_equal(wide->level.windows, 2);
	detect->rank[2].track[NT_SERIES_OWN].past.ready = false;
	learn(job);
	assert_true(wide->growth == 0.0);
	assert_int_equal(wide->level.windows, 2);
}

static void a_drop_of_all_is_dated(void **state)
{
	struct job *job = *state;
	struct nt_detect *detect = job->detect;
	struct nt_job_wide *wide = prepare(job);
	static const double fall[] = {-0.031, -0.2, -0.0299, -0.03};

	for (int i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < RANKS; j++) {
			struct nt_track *track = &detect->rank[j].track[NT_SERIES_OWN];

			track->frame = detect->frames;
			track->past.ready = true;
			track->growth = fall[i];
		}
		detect->end_ns = (uint64_t)(100 + i);
		learn(job);
		assert_true(wide->drop == fall[i]);
		assert_int_equal(wide->dropped_ns, i < 2 ? 100 : i == 2 ? 0 : 103);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(what_all_have_together_is_told_with_its_numbers),
		JOB_TEST(the_host_is_told_where_own_work_did_not_grow),
		JOB_TEST(it_must_be_sure_last_cost_and_show_in_the_step),
		JOB_TEST(what_an_earlier_incident_costs_is_not_told_again),
		JOB_TEST(half_of_it_in_the_collector_is_the_collectors),
		JOB_TEST(what_the_job_feels_is_what_it_costs),
		JOB_TEST(after_half_an_hour_it_is_the_new_normal),
		JOB_TEST(another_normal_forgets_all_but_who_is_in_an_incident),
		JOB_TEST(the_growth_of_all_is_what_three_of_four_have),
		JOB_TEST(a_drop_of_all_is_dated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
