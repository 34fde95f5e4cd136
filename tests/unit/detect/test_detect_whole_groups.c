/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roles against roles, on numbers that the test puts there. */
#include "tests/unit/detect/detect_whole.h"

#include "detect/baseline/baseline_reset.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "detect/rules/imbalance.h"
#include "detect/rules/whole_role.h"

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
	assert_int_equal(nt_imbalance_check(job->detect, &job->sim.frame), 0);
}

static const struct nt_detect_incident *imbalance(const struct job *job)
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
	assert_int_equal(nt_imbalance_check(job->detect, &job->sim.frame), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(group[i].excess == 77.0);
	job->detect->roles.group[0].tier[NT_SERIES_OWN] = NT_FRAME_T3;
	assert_int_equal(nt_imbalance_check(job->detect, &job->sim.frame), 0);
	assert_true(group[0].excess == 0.0 && group[1].excess == 0.0 && group[2].excess == 77.0);
	/* Wherever the one is that is of a higher tier. */
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t j = 0; j < 3; j++) {
			job->detect->roles.group[j].excess = 77.0;
			job->detect->roles.group[j].tier[NT_SERIES_OWN] =
				j == i ? NT_FRAME_T3 : NT_FRAME_T2;
		}
		assert_int_equal(nt_imbalance_check(job->detect, &job->sim.frame), 0);
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
	const struct nt_detect_incident *told;

	judge_roles(job, 100.0, 100.0, 100.0);
	group->past->worst = (struct nt_ring){.count = rounds};
	for (uint32_t i = 0; i < 32; i++) {
		group->past->worst.value[i] = i < costly ? 0.1 : 0.0999;
		group->past->slowest[i] = i < same ? 77 : i;
	}
	assert_int_equal(nt_imbalance_check(job->detect, &job->sim.frame), 0);
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

	assert_int_equal(nt_imbalance_check(job->detect, &job->sim.frame), 0);
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
			(struct nt_adaptation){.windows = 70.0, .entries = groups[i].entries};
		assert_true(cost_of_turns(job) == (groups[i].told ? 0.25 : 0.0));
		group->members = members;
	}
}

/* ---- a whole role that grew at once ----------------------------------------------------------- */

/* One more frame, in which the first role has a round, and the third one if `round`. */
static const struct nt_detect_incident *check_growth(struct job *job, bool round)
{
	struct nt_detect *detect = job->detect;

	detect->frames++;
	detect->start_ns += 10;
	detect->end_ns += 10;
	nt_incidents_begin(detect);
	detect->roles.group[0].round_frame = detect->frames;
	if (round)
		detect->roles.group[2].round_frame = detect->frames;
	assert_int_equal(nt_whole_role_check(detect, &job->sim.frame), 0);
	return nt_incidents_find(detect, NT_FAMILY_WHOLE_ROLE, 0);
}

/* From 100 to 140, in a step of 1000. */
static struct nt_group *grow(struct job *job)
{
	struct nt_group *group = &job->detect->roles.group[2];

	for (uint32_t i = 4; i < RANKS; i++)
		job->detect->rank[i].track[NT_SERIES_OWN].past =
			(struct nt_past){.ready = true, .value_centre = 100.0};
	group->jumped = true;
	group->shared_growth = 0.4;
	group->median[NT_SERIES_OWN] = 140.0;
	group->step_ns = 1000.0;
	group->together = group->computing = 2;
	return group;
}

static void a_role_is_named_by_half_of_its_ranks(void **state)
{
	struct job *job = *state;
	struct nt_group *group = grow(job);
	const struct nt_detect_incident *told;

	group->together = group->computing = 0;
	assert_null(check_growth(job, true));
	group->together = group->computing = 1;
	job->detect->rank[4].in_incident = true;
	assert_null(check_growth(job, true));
	job->detect->rank[4].in_incident = false;
	group->jumped = false;
	assert_null(check_growth(job, true));
	group->jumped = true;
	assert_null(check_growth(job, false));
	told = check_growth(job, true);
	assert_non_null(told);
	assert_int_equal(told->class, NT_CLASS_COMPUTE);
	assert_int_equal(told->kind, NT_CULPRIT_STAGE);
	assert_int_equal(told->listed, 2);
	assert_int_equal(told->list[0], 4);
	assert_int_equal(told->list[1], 5);
	assert_true(fabs(told->cost - 0.04) < 1e-12);
	assert_true(fabs(told->evidence[0].peers - 100.0 / 1e6) < 1e-15);
	group->computing = 0;
	assert_int_equal(check_growth(job, true)->class, NT_CLASS_UNKNOWN);
}

static void a_role_without_a_round_is_judged_by_its_next(void **state)
{
	struct job *job = *state;
	struct nt_group *group = grow(job);

	assert_true(fabs(check_growth(job, true)->window_cost - 0.04) < 1e-12);
	assert_false(check_growth(job, false)->judged);
	job->detect->rank[4].ended = true;
	assert_false(check_growth(job, false)->judged);
	/* No next one will come. */
	job->detect->rank[5].ended = true;
	assert_true(check_growth(job, false)->judged);
	assert_true(check_growth(job, false)->window_cost == 0.0);
	job->detect->rank[4].ended = job->detect->rank[5].ended = false;
	group->jumped = false;
	assert_true(check_growth(job, true)->judged);
	assert_true(check_growth(job, true)->window_cost == 0.0);
}

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
		JOB_TEST(a_role_is_named_by_half_of_its_ranks),
		JOB_TEST(a_role_without_a_round_is_judged_by_its_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
