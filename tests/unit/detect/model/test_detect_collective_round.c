/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members of a communicator whose windows do not tell of the same calls in one frame. */
#include "tests/unit/detect/detect_job.h"

enum {
	DATA = 10,
};

/* What each member says in the frame, of calls of 5 ms that its device timed. */
struct part {
	uint32_t steps, calls, timed;
	bool by_host;
};

static void begin_calls(struct job *job)
{
	add_comms(job, 1);
	job->sim.comm[0].timed = true;
	job->sim.comm[0].by_gpu = RANKS;
	job->sim.comm[0].transfer = 5.0 * SIM_MS;
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].tier = NT_FRAME_T3;
}

static void say(struct job *job, const struct part *part)
{
	(void)sim_next(&job->sim);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct nt_frame_rank *rank = &job->sim.out[i];
		struct nt_frame_op *op = &job->sim.out_op[i];

		rank->step_ns = rank->step_ns / rank->steps * part[i].steps;
		rank->steps = part[i].steps;
		op->calls = part[i].calls;
		op->bytes = part[i].calls * UINT64_C(1000000);
		op->timed_calls = part[i].timed;
		op->by_gpu = !part[i].by_host;
	}
	step_now(job);
}

/* As all do, but for the last. */
static void say_but(struct job *job, struct part last)
{
	const struct part part[RANKS] = {{6, 12, 12, false}, {6, 12, 12, false}, last};

	say(job, part);
}

static const struct part whole = {6, 12, 12, false}, untimed = {6, 12, 0, false},
			 nothing = {0, 0, 0, false};

static uint64_t measured(const struct job *job)
{
	return network_of(job, DATA)->frame;
}

static void members_that_speak_one_after_the_other_are_measured_together(void **state)
{
	const struct part first[RANKS] = {whole, nothing, nothing};
	const struct part second[RANKS] = {nothing, whole, nothing};
	const struct part third[RANKS] = {whole, nothing, whole};
	struct job *job = *state;

	begin_calls(job);
	say(job, first);
	say(job, second);
	assert_int_equal(measured(job), 0);
	say(job, third);
	assert_int_equal(measured(job), 3);
	assert_int_equal(network_of(job, DATA)->method, NT_NETWORK_BY_GPU);
	assert_true(network_of(job, DATA)->step_ns > 80.0 * SIM_MS);
	/* And the next time anew. */
	say(job, third);
	assert_int_equal(measured(job), 3);
	say(job, second);
	assert_int_equal(measured(job), 5);
	assert_int_equal(nt_detect_lapsed_rounds(job->detect), 0);
}

static void who_ended_a_step_but_whose_device_told_of_no_call_is_waited_for(void **state)
{
	struct job *job = *state;

	begin_calls(job);
	say_but(job, whole);
	assert_int_equal(measured(job), 1);
	say_but(job, untimed);
	assert_int_equal(measured(job), 1);
	say_but(job, whole);
	assert_int_equal(measured(job), 3);
}

/* Two steps' calls in one window and none in the next, as where devices are far behind their hosts. */
static void calls_that_come_in_pairs_make_no_transfer_longer(void **state)
{
	struct job *job = *state;

	begin_calls(job);
	for (uint32_t i = 0; i < 40; i++) {
		const uint32_t calls = i % 2 ? 6 : 18;
		const struct part part = {6, calls, calls, false};
		const struct part all[RANKS] = {part, part, part};

		say(job, all);
	}
	assert_true(network_of(job, DATA)->past.ready);
	assert_true(network_of(job, DATA)->level.sum == 0.0);
	assert_true(fabs(network_of(job, DATA)->calls - 2.0) < 0.2);
	assert_true(fabs(nt_network_usual(network_of(job, DATA)) - 10.0 * SIM_MS) < SIM_MS);
	assert_true(fabs(network_of(job, DATA)->transfer - 10.0 * SIM_MS) < SIM_MS);
}

static void a_slow_network_is_told_though_no_frame_has_all_members(void **state)
{
	const struct part part[2][RANKS] = {{whole, untimed, untimed}, {untimed, whole, whole}};
	struct job *job = *state;
	const struct nt_finding *finding;

	begin_calls(job);
	for (uint32_t i = 0; i < 50; i++)
		say(job, part[i % 2]);
	assert_null(sim_firing(job->detect, 0));
	job->sim.comm[0].transfer *= 3.0;
	for (uint32_t i = 0; i < 20; i++)
		say(job, part[i % 2]);
	finding = sim_firing(job->detect, 0);
	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_NETWORK);
	assert_int_equal(finding->tier, NT_FRAME_T3);
	assert_int_equal(finding->culprit[0].rank_count, RANKS);
	assert_true(fabs(finding->evidence[0].value - 30.0) < 1.0);
	assert_true(fabs(finding->evidence[0].peers - 10.0) < 1.0);
	assert_null(sim_firing(job->detect, 1));
}

static void four_frames_are_waited_for_a_member_and_no_more(void **state)
{
	struct job *job = *state;

	begin_calls(job);
	for (uint32_t i = 1; i < NT_COLLECTIVE_ROUND_FRAMES; i++)
		say_but(job, nothing);
	say_but(job, whole);
	assert_int_equal(measured(job), NT_COLLECTIVE_ROUND_FRAMES);
	assert_int_equal(nt_detect_lapsed_rounds(job->detect), 0);
	for (uint32_t i = 0; i < NT_COLLECTIVE_ROUND_FRAMES; i++)
		say_but(job, nothing);
	assert_int_equal(nt_detect_lapsed_rounds(job->detect), 1);
	/* What the others said is gone with it, so this is one more that is whole. */
	say_but(job, whole);
	assert_int_equal(measured(job), 2 * NT_COLLECTIVE_ROUND_FRAMES + 1);
	/* The same where the last one speaks, and its device does not. */
	for (uint32_t i = 0; i < NT_COLLECTIVE_ROUND_FRAMES; i++)
		say_but(job, untimed);
	assert_int_equal(nt_detect_lapsed_rounds(job->detect), 2);
	assert_int_equal(measured(job), 2 * NT_COLLECTIVE_ROUND_FRAMES + 1);
	say_but(job, whole);
	assert_int_equal(measured(job), 3 * NT_COLLECTIVE_ROUND_FRAMES + 2);
}

static void who_speaks_twice_does_not_speak_for_another(void **state)
{
	const struct part part[RANKS] = {whole, nothing, nothing};
	struct job *job = *state;

	begin_calls(job);
	for (uint32_t i = 1; i < RANKS + 3; i++)
		say(job, part);
	assert_int_equal(measured(job), 0);
}

static void what_a_host_timed_and_what_a_device_timed_is_not_one_thing(void **state)
{
	const struct part by_host = {6, 12, 12, true};
	struct job *job = *state;

	begin_calls(job);
	say_but(job, by_host);
	assert_int_equal(measured(job), 0);
	/* Its host's time is no part of it, though it is shorter. */
	say_but(job, whole);
	assert_int_equal(measured(job), 2);
	assert_int_equal(network_of(job, DATA)->method, NT_NETWORK_BY_GPU);
	assert_true(job->detect->comm[0]->collective_round.frame == 0);
}

/* A window without the end of a step tells of calls all the same. */
static void calls_of_a_window_without_a_step_count(void **state)
{
	const struct part calls = {0, 12, 12, false}, steps = {6, 0, 0, false};
	const struct part first[RANKS] = {calls, calls, calls};
	const struct part second[RANKS] = {steps, steps, steps};
	struct job *job = *state;

	begin_calls(job);
	for (uint32_t i = 0; i < 40; i += 2) {
		say(job, first);
		assert_int_equal(measured(job), i);
		say(job, second);
		assert_int_equal(measured(job), i + 2);
	}
	assert_true(network_of(job, DATA)->calls == 2.0);
}

/* Nobody ends a step: what was said long ago is no part of what is said then. */
static void calls_without_any_step_are_forgotten(void **state)
{
	const struct part calls = {0, 12, 12, false};
	const struct part early[RANKS] = {calls, calls, calls};
	struct job *job = *state;

	begin_calls(job);
	for (uint32_t i = 0; i < NT_COLLECTIVE_ROUND_FRAMES; i++)
		say(job, early);
	assert_true(job->detect->comm[0]->collective_round.frame == 0);
	assert_int_equal(nt_detect_lapsed_rounds(job->detect), 0);
	say_but(job, whole);
	assert_true(fabs(network_of(job, DATA)->past.count - 1.0) < 0.1);
	assert_int_equal(measured(job), NT_COLLECTIVE_ROUND_FRAMES + 1);
}

/* All that was said so far is in the state. */
static void a_collective_round_goes_on_after_a_restart(void **state)
{
	const struct part part[3][RANKS] = {
		{whole, nothing, untimed}, {nothing, whole, untimed}, {untimed, nothing, whole}};
	const struct nt_rules rules = nt_rules_default();
	struct job *job = *state;
	struct nt_detect *other = sim_detect();

	begin_calls(job);
	for (uint32_t i = 0; i < 90; i++) {
		const struct nt_finding *finding = NULL;
		struct nt_detect *loaded = NULL;
		uint8_t *data = NULL, *mine = NULL;
		size_t size = 0, my_size = 0, findings = 0;

		if (i == 66)
			job->sim.comm[0].transfer *= 3.0;
		say(job, part[i % 3]);
		assert_int_equal(nt_detect_step(other, &job->sim.frame, &finding, &findings), 0);
		assert_int_equal(nt_detect_save(other, &data, &size), 0);
		assert_int_equal(nt_detect_load(&rules, data, size, &loaded), 0);
		assert_int_equal(nt_detect_save(job->detect, &mine, &my_size), 0);
		assert_int_equal(size, my_size);
		assert_memory_equal(data, mine, size);
		free(data);
		free(mine);
		nt_detect_free(other);
		other = loaded;
	}
	assert_non_null(sim_firing(other, 0));
	assert_int_equal(sim_firing(other, 0)->class, NT_CLASS_NETWORK);
	nt_detect_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(members_that_speak_one_after_the_other_are_measured_together),
		JOB_TEST(who_ended_a_step_but_whose_device_told_of_no_call_is_waited_for),
		JOB_TEST(calls_that_come_in_pairs_make_no_transfer_longer),
		JOB_TEST(a_slow_network_is_told_though_no_frame_has_all_members),
		JOB_TEST(four_frames_are_waited_for_a_member_and_no_more),
		JOB_TEST(who_speaks_twice_does_not_speak_for_another),
		JOB_TEST(what_a_host_timed_and_what_a_device_timed_is_not_one_thing),
		JOB_TEST(calls_of_a_window_without_a_step_count),
		JOB_TEST(calls_without_any_step_are_forgotten),
		JOB_TEST(a_collective_round_goes_on_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
