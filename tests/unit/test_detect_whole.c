/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roles against roles, and the job against its own past, on numbers that the test puts there. */
#include "detect_frames.h"

#include "detect/balance.h"
#include "detect/core.h"
#include "detect/incident_raise.h"
#include "detect/incident_retire.h"
#include "detect/incident_settle.h"
#include "detect/normal.h"
#include "detect/step.h"
#include "detect/step_judge.h"

enum {
	RANKS = 6,
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

/* Six ranks, of which two share each of three stages. */
static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init_ranks(&job->sim, RANKS, 1);
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].stage = (int32_t)(i / 2);
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 2);
	assert_int_equal(job->detect->roles.groups, 3);
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

/* ---- roles --------------------------------------------------------------------------------------- */

/* One more round, in which the roles work so long, in a step of 1000. */
static void judge_roles(struct job *job, double a, double b, double c)
{
	const double median[] = {a, b, c};

	job->detect->frames++;
	job->detect->start_ns += 10;
	job->detect->end_ns += 10;
	nt_incidents_begin(job->detect);
	for (uint32_t i = 0; i < 3; i++) {
		struct nt_group *group = &job->detect->roles.group[i];

		group->round_frame = median[i] < 0.0 ? 0 : job->detect->frames;
		group->median[NT_SERIES_OWN] = median[i];
		group->tier[NT_SERIES_OWN] = NT_FRAME_T2;
		group->step_ns = 1000.0;
		group->wait_start_ns = job->detect->start_ns;
		group->past->worst = (struct nt_ring){0};
	}
	assert_int_equal(nt_balance_check(job->detect, &job->sim.frame), 0);
}

static const struct nt_incident *imbalance(const struct job *job)
{
	return nt_incidents_find(job->detect, NT_FAMILY_IMBALANCE, 0);
}

static void a_role_is_held_against_the_median_of_the_others(void **state)
{
	struct job *job = *state;
	const struct nt_group *group = job->detect->roles.group;

	judge_roles(job, 100.0, 200.0, 400.0);
	assert_true(group[0].excess == (100.0 - 300.0) / 300.0);
	assert_true(group[0].cost == -0.2);
	assert_true(group[1].excess == (200.0 - 250.0) / 250.0);
	assert_true(group[2].excess == (400.0 - 150.0) / 150.0);
	assert_true(group[2].cost == 0.25);
	assert_int_equal(group[0].long_rounds, 0);
	assert_int_equal(group[2].long_rounds, 1);
	/* Who had no round is not compared, and nobody with him. */
	judge_roles(job, 100.0, -1.0, 400.0);
	assert_true(group[2].excess == 3.0);
	assert_int_equal(group[2].long_rounds, 2);
	judge_roles(job, -1.0, -1.0, 400.0);
	assert_int_equal(group[2].long_rounds, 2);
	/* Nothing to do is a value. */
	judge_roles(job, 0.0, 0.0, 400.0);
	assert_int_equal(group[2].long_rounds, 3);
	assert_true(group[2].cost == 0.4);
}

static void only_roles_of_the_highest_tier_are_compared(void **state)
{
	struct job *job = *state;
	const struct nt_group *group = job->detect->roles.group;

	judge_roles(job, 100.0, 100.0, 400.0);
	assert_int_equal(group[2].long_rounds, 1);
	for (uint32_t i = 0; i < 3; i++)
		job->detect->roles.group[i].excess = 77.0;
	job->detect->roles.group[1].tier[NT_SERIES_OWN] = NT_FRAME_T3;
	assert_int_equal(nt_balance_check(job->detect, &job->sim.frame), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(group[i].excess == 77.0);
	job->detect->roles.group[0].tier[NT_SERIES_OWN] = NT_FRAME_T3;
	assert_int_equal(nt_balance_check(job->detect, &job->sim.frame), 0);
	assert_true(group[0].excess == 0.0 && group[1].excess == 0.0 && group[2].excess == 77.0);
	/* Wherever the one is that is of a higher tier. */
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t j = 0; j < 3; j++) {
			job->detect->roles.group[j].excess = 77.0;
			job->detect->roles.group[j].tier[NT_SERIES_OWN] =
				j == i ? NT_FRAME_T3 : NT_FRAME_T2;
		}
		assert_int_equal(nt_balance_check(job->detect, &job->sim.frame), 0);
		for (uint32_t j = 0; j < 3; j++)
			assert_true(group[j].excess == 77.0);
	}
}

static void a_tenth_more_and_three_hundredths_of_the_step_are_even(void **state)
{
	struct job *job = *state;
	const struct nt_group *group = job->detect->roles.group;

	judge_roles(job, 1000.0, 1000.0, 1100.0);
	assert_int_equal(group[2].long_rounds, 0);
	judge_roles(job, 1000.0, 1000.0, 1101.0);
	assert_int_equal(group[2].long_rounds, 1);
	judge_roles(job, 100.0, 100.0, 130.0);
	assert_int_equal(group[2].long_rounds, 0);
	judge_roles(job, 100.0, 100.0, 131.0);
	assert_int_equal(group[2].long_rounds, 1);
}

static void what_is_long_for_twenty_rounds_is_told(void **state)
{
	struct job *job = *state;
	struct nt_group *group = job->detect->roles.group;
	uint64_t since_ns;

	judge_roles(job, 100.0, 100.0, 100.0);
	judge_roles(job, 100.0, 100.0, 400.0);
	since_ns = job->detect->start_ns;
	for (uint32_t i = 2; i < 20; i++)
		judge_roles(job, 100.0, 100.0, 400.0);
	assert_int_equal(group[2].long_rounds, 19);
	assert_null(imbalance(job));
	judge_roles(job, 100.0, 100.0, 400.0);
	assert_non_null(imbalance(job));
	assert_true(imbalance(job)->since_ns == since_ns);
	assert_int_equal(imbalance(job)->listed, 2);
	assert_int_equal(imbalance(job)->list[0], 4);
	assert_int_equal(imbalance(job)->list[1], 5);
	assert_int_equal(imbalance(job)->tier, NT_FRAME_T2);
	assert_true(fabs(imbalance(job)->cost - 0.3) < 1e-12);
	assert_true(imbalance(job)->evidence[0].value == 400.0 / 1e6);
	assert_true(fabs(imbalance(job)->evidence[0].peers - 100.0 / 1e6) < 1e-15);
	assert_int_equal(imbalance(job)->evidence[0].windows, 20);
	assert_true(fabs(imbalance(job)->window_cost - 0.3) < 1e-12);
	/* It is remembered for as long again, and forgotten round by round. */
	for (uint32_t i = 0; i < 30; i++)
		judge_roles(job, 100.0, 100.0, 400.0);
	assert_int_equal(group[2].long_rounds, 40);
	judge_roles(job, 100.0, 100.0, 100.0);
	assert_int_equal(group[2].long_rounds, 39);
	assert_true(imbalance(job)->window_cost == 0.0);
	/* The dearest of several is told, with the ranks of all. */
	group[1].long_rounds = 20;
	judge_roles(job, 100.0, 300.0, 400.0);
	assert_int_equal(imbalance(job)->listed, 4);
	assert_true(imbalance(job)->evidence[0].value == 400.0 / 1e6);
	judge_roles(job, 100.0, 400.0, 300.0);
	assert_true(imbalance(job)->evidence[0].value == 400.0 / 1e6);
}

static void a_role_of_which_half_are_culprits_is_not_told(void **state)
{
	struct job *job = *state;
	struct nt_group *group = job->detect->roles.group;

	group[2].long_rounds = 30;
	job->detect->rank[4].in_incident = true;
	judge_roles(job, 100.0, 100.0, 400.0);
	assert_null(imbalance(job));
	job->detect->rank[4].in_incident = false;
	job->detect->rank[3].in_incident = true;
	judge_roles(job, 100.0, 100.0, 400.0);
	assert_non_null(imbalance(job));
}

/* Of one role only, of 32 rounds: so many cost a tenth, and so many times the same was slowest. */
static bool turns_are_told(struct job *job, uint32_t costly, uint32_t same, uint32_t rounds)
{
	struct nt_group *group = &job->detect->roles.group[0];
	const struct nt_incident *told;

	judge_roles(job, 100.0, 100.0, 100.0);
	group->past->worst = (struct nt_ring){.count = rounds};
	for (uint32_t i = 0; i < 32; i++) {
		group->past->worst.value[i] = i < costly ? 0.1 : 0.0999;
		group->past->slowest[i] = i < same ? 77 : i;
	}
	assert_int_equal(nt_balance_check(job->detect, &job->sim.frame), 0);
	told = imbalance(job);
	if (told) {
		assert_int_equal(told->listed, 0);
		assert_true(told->cost == 0.1);
		assert_true(told->evidence[0].value == 10.0);
		assert_int_equal(told->evidence[0].windows, 32);
		assert_true(told->window_cost == 0.1);
	}
	assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_IMBALANCE), 0);
	return told;
}

static void turns_are_taken_where_nearly_every_round_has_another_slowest(void **state)
{
	assert_true(turns_are_told(*state, 25, 10, 32));
	assert_false(turns_are_told(*state, 24, 10, 32));
	assert_false(turns_are_told(*state, 25, 11, 32));
	assert_false(turns_are_told(*state, 32, 1, 31));
	assert_true(turns_are_told(*state, 32, 1, 32));
}

static void take_turns(struct job *job, uint32_t which, double cost)
{
	struct nt_group_past *past = job->detect->roles.group[which].past;

	past->worst = (struct nt_ring){.count = NT_RING_MAX};
	for (uint32_t i = 0; i < NT_RING_MAX; i++) {
		past->worst.value[i] = cost;
		past->slowest[i] = i;
	}
}

static double cost_of_turns(struct job *job)
{
	double cost;

	assert_int_equal(nt_balance_check(job->detect, &job->sim.frame), 0);
	cost = imbalance(job) ? imbalance(job)->cost : 0.0;
	assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_IMBALANCE), 0);
	return cost;
}

static void of_several_roles_that_take_turns_the_dearest_is_told(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 3; i++) {
		judge_roles(job, 100.0, 100.0, 100.0);
		assert_true(cost_of_turns(job) == 0.0);
		take_turns(job, i, 0.25);
		assert_true(cost_of_turns(job) == 0.25);
		take_turns(job, (i + 1) % 3, 0.5);
		assert_true(cost_of_turns(job) == 0.5);
		/* Of one without a round nothing is known. */
		job->detect->roles.group[(i + 1) % 3].round_frame = 0;
		assert_true(cost_of_turns(job) == 0.25);
		job->detect->roles.group[i].round_frame = 0;
		assert_true(cost_of_turns(job) == 0.0);
	}
}

/* In a group of more than twenty somebody is slow for once in every round, unless few ever are. */
static void a_large_group_takes_turns_where_few_of_it_are_far(void **state)
{
	static const struct {
		uint32_t members;
		double entries;
		bool told;
	} groups[] = {{20, 70.0, true}, {21, 70.0, false}, {21, 10.0, true}, {21, 10.1, false},
		      {42, 5.0, true},  {42, 5.1, false},  {42, 0.0, true}};
	struct job *job = *state;
	struct nt_group *group = &job->detect->roles.group[1];
	const uint32_t members = group->members;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		judge_roles(job, 100.0, 100.0, 100.0);
		take_turns(job, 1, 0.25);
		group->members = groups[i].members;
		group->tail[NT_SERIES_OWN] =
			(struct nt_tail){.windows = 70.0, .entries = groups[i].entries};
		assert_true(cost_of_turns(job) == (groups[i].told ? 0.25 : 0.0));
		group->members = members;
	}
}

/* ---- the job ------------------------------------------------------------------------------------- */

/* A step of 1000 that was 800, with a sum that is just enough; ranks work 600, and collect for 100. */
/* Learns from what the ranks' rounds would have told, were their tracks as they are now. */
static void learn(struct job *job)
{
	struct nt_detect *detect = job->detect;
	struct nt_scratch *scratch = &detect->scratch;

	memset(scratch->judged, 0, sizeof(scratch->judged));
	for (uint32_t i = 0; i < RANKS; i++) {
		scratch->pace_step[i] = detect->rank[i].pace[NT_PACE_STEP];
		scratch->gc[i] = detect->rank[i].pace[NT_PACE_GC];
		for (int j = 0; j < NT_SERIES_END; j++) {
			const struct nt_track *track = &detect->rank[i].track[j];
			const bool judged = track->frame == detect->frames;

			scratch->judged[j] += judged;
			scratch->note[i].of[j] = (struct nt_note_track){
				.growth = judged && track->past.ready ? track->growth : NAN,
				.slow_cost = track->slow_cost,
				.centre = track->past.value_centre,
				.spread = track->past.value_width,
			};
		}
	}
	assert_int_equal(nt_step_learn(detect, &job->sim.frame), 0);
}

static struct nt_wide *prepare(struct job *job)
{
	struct nt_detect *detect = job->detect;
	struct nt_wide *wide = &detect->step.wide[NT_SERIES_OWN];

	nt_incidents_begin(detect);
	detect->threshold = 10.0;
	for (uint32_t i = 0; i < RANKS; i++) {
		detect->rank[i].round_frame = detect->frames;
		detect->rank[i].tier = NT_FRAME_T2;
		detect->rank[i].pace[NT_PACE_OWN] = 600.0;
		detect->rank[i].pace[NT_PACE_GC] = 0.0;
	}
	detect->step.step_ns = 1000.0;
	detect->step.past.ready = true;
	detect->step.past.value_centre = 800.0;
	wide->level = (struct nt_cusum){
		.sum = 20.0, .windows = 1, .costly = 1, .cost = 0.25, .onset_ns = 4242};
	wide->dropped_ns = 0;
	detect->step.wide[NT_SERIES_HOST] = (struct nt_wide){.growth = 0.0};
	return wide;
}

static const struct nt_incident *check_job(struct job *job)
{
	assert_int_equal(nt_step_check(job->detect, &job->sim.frame), 0);
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
	const struct nt_incident *told;

	(void)prepare(job);
	job->detect->rank[2].tier = NT_FRAME_T3;
	told = check_job(job);
	assert_non_null(told);
	assert_true(told->cost == 0.25);
	assert_true(told->since_ns == 4242);
	assert_int_equal(told->cause, NT_WORD_NONE);
	assert_int_equal(told->tier, NT_FRAME_T3);
	assert_int_equal(told->evidences, 1);
	assert_int_equal(told->evidence[0].what, NT_WORD_ALL_OWN_WORK);
	assert_true(told->evidence[0].value == 600.0 / 1e6);
	assert_true(told->evidence[0].peers == 350.0 / 1e6);
	assert_int_equal(told->evidence[0].windows, 1);
}

static void the_host_is_told_where_own_work_did_not_grow(void **state)
{
	struct job *job = *state;
	struct nt_wide *wide = prepare(job);
	const struct nt_incident *told;

	job->detect->step.wide[NT_SERIES_HOST] = *wide;
	wide->level.sum = 19.0;
	for (uint32_t i = 0; i < RANKS; i++)
		job->detect->rank[i].pace[NT_PACE_HOST] = 500.0;
	told = check_job(job);
	assert_non_null(told);
	assert_int_equal(told->evidence[0].what, NT_WORD_ALL_HOST_WORK);
	assert_true(told->evidence[0].value == 500.0 / 1e6);
}

static void it_must_be_sure_last_cost_and_show_in_the_step(void **state)
{
	struct job *job = *state;
	struct nt_wide *wide = prepare(job);

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

static void half_of_it_in_the_collector_is_the_collectors(void **state)
{
	struct job *job = *state;

	for (int i = 0; i < 2; i++) {
		(void)prepare(job);
		job->detect->step.gc_ns = i ? 125.0 : 124.999;
		assert_int_equal(check_job(job)->cause, i ? NT_WORD_HOST_GC : NT_WORD_NONE);
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
		struct nt_wide *wide = prepare(job);

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
	struct nt_wide *wide;

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
		job->detect->step.wide[i].dropped_ns = job->detect->end_ns - half_hour_ns + 1;
		assert_null(check_job(job));
		assert_true(job->detect->step.past.ready);
		job->detect->step.wide[i].dropped_ns--;
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
		struct nt_rank *rank = &detect->rank[i];

		rank->in_incident = i == 1;
		rank->accepted = false;
		rank->has_habit = true;
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
			const struct nt_rank *rank = &detect->rank[i];
			const bool kept = i == 1 && !all;

			assert_int_equal(rank->has_habit, kept);
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
		assert_true(detect->step.wide[0].level.sum == 0.0);
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
	struct nt_wide *wide = prepare(job);

	wide->level = (struct nt_cusum){.sum = 0.0};
	for (uint32_t i = 0; i < RANKS; i++) {
		struct nt_track *track = &detect->rank[i].track[NT_SERIES_OWN];

		detect->rank[i].pace[NT_PACE_STEP] = 1000.0;
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
	struct nt_wide *wide = prepare(job);
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

#define JOB_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(a_role_is_held_against_the_median_of_the_others),
		JOB_TEST(only_roles_of_the_highest_tier_are_compared),
		JOB_TEST(a_tenth_more_and_three_hundredths_of_the_step_are_even),
		JOB_TEST(what_is_long_for_twenty_rounds_is_told),
		JOB_TEST(a_role_of_which_half_are_culprits_is_not_told),
		JOB_TEST(turns_are_taken_where_nearly_every_round_has_another_slowest),
		JOB_TEST(of_several_roles_that_take_turns_the_dearest_is_told),
		JOB_TEST(a_large_group_takes_turns_where_few_of_it_are_far),
		JOB_TEST(what_all_have_together_is_told_with_its_numbers),
		JOB_TEST(the_host_is_told_where_own_work_did_not_grow),
		JOB_TEST(it_must_be_sure_last_cost_and_show_in_the_step),
		JOB_TEST(half_of_it_in_the_collector_is_the_collectors),
		JOB_TEST(what_the_job_feels_is_what_it_costs),
		JOB_TEST(after_half_an_hour_it_is_the_new_normal),
		JOB_TEST(another_normal_forgets_all_but_who_is_in_an_incident),
		JOB_TEST(the_growth_of_all_is_what_three_of_four_have),
		JOB_TEST(a_drop_of_all_is_dated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
