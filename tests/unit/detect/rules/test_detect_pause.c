/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that stand: how long they may, who is missed, who is waited for and who is at work. */
#include "tests/unit/detect/detect_job.h"

#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/rules/hang.h"
#include "detect/rules/mismatch.h"

/* ---- pauses ---------------------------------------------------------------------------------- */

/* One frame in which nobody ends a step; it ends then. */
static void stand_until(struct job *job, uint64_t end_ns)
{
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].stuck = true;
	job->sim.now_ns = end_ns - SIM_SECOND / 2;
	(void)sim_next(&job->sim);
	assert_true(job->sim.frame.end_ns == end_ns);
	step(job, &job->sim.frame);
}

static const struct nt_detect_incident *pause_of(const struct job *job)
{
	return nt_incidents_find(job->detect, NT_FAMILY_PAUSE, 0);
}

static void a_job_may_stand_for_half_an_hour_or_ten_times_as_long_as_it_did(void **state)
{
	const uint64_t half_hour_ns = 1800ull * SIM_SECOND;
	struct job *job = *state;
	uint64_t moved_ns;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	moved_ns = job->sim.now_ns;
	assert_true(job->detect->step.moved_ns == moved_ns);
	stand_until(job, moved_ns + half_hour_ns - 1);
	assert_null(pause_of(job));
	stand_until(job, moved_ns + half_hour_ns);
	assert_non_null(pause_of(job));
	assert_true(pause_of(job)->since_ns == moved_ns);
	assert_true(pause_of(job)->evidence[0].value == 1800.0);
	sim_unstick(&job->sim);
	sim_pass(&job->sim, job->detect, 5);
	assert_null(pause_of(job));
	/* So long it has stood, and went on. */
	assert_true(job->detect->step.longest_pause_ns > half_hour_ns);
	moved_ns = job->sim.now_ns;
	job->detect->step.longest_pause_ns = half_hour_ns;
	stand_until(job, moved_ns + 10 * half_hour_ns - 1);
	assert_null(pause_of(job));
	stand_until(job, moved_ns + 10 * half_hour_ns);
	assert_non_null(pause_of(job));
	assert_true(pause_of(job)->evidence[0].peers == 1800.0);
}

static void who_goes_on_calling_does_not_stand(void **state)
{
	struct job *job = *state;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	for (int i = 0; i < 5; i++) {
		job->sim.comm[0].last++;
		stand_until(job, job->sim.now_ns + 1000ull * SIM_SECOND);
		assert_true(job->detect->step.moved_ns == job->sim.now_ns);
		assert_null(pause_of(job));
	}
}

/* Steps that were counted before it fell silent, or ended, are none of now. */
static void who_is_not_heard_of_does_not_move_the_job(void **state)
{
	struct job *job = *state;
	uint64_t moved_ns;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	moved_ns = job->sim.now_ns;
	job->sim.rank[1].silent = true;
	job->sim.rank[2].ended = job->sim.rank[2].finalized = true;
	job->detect->rank[1].steps = job->detect->rank[2].steps = 3;
	stand_until(job, moved_ns + SIM_SECOND);
	assert_int_equal(job->detect->rank[1].steps, 3);
	assert_int_equal(job->detect->rank[2].steps, 3);
	assert_true(job->detect->step.moved_ns == moved_ns);
	/* And those of the one that is heard of are. */
	job->detect->rank[0].steps = 3;
	stand_until(job, moved_ns + 2ull * SIM_SECOND);
	assert_true(job->detect->step.moved_ns == moved_ns + 2ull * SIM_SECOND);
}

/* ---- who is gone ----------------------------------------------------------------------------- */

static void who_is_gone_is_missed_after_five_seconds_by_those_that_wait(void **state)
{
	struct job *job = *state;
	const struct nt_detect_incident *missing;
	uint64_t gone_ns;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	gone_ns = job->sim.now_ns - 7;
	sim_stick(&job->sim, 10, 1);
	job->sim.rank[1].ended = true;
	job->sim.rank[1].ended_ns = gone_ns;
	stand_until(job, gone_ns + 5ull * SIM_SECOND - 1);
	assert_null(nt_incidents_find(job->detect, NT_FAMILY_MISSING, 0));
	stand_until(job, gone_ns + 5ull * SIM_SECOND);
	missing = nt_incidents_find(job->detect, NT_FAMILY_MISSING, 0);
	assert_non_null(missing);
	assert_true(missing->since_ns == gone_ns);
	assert_int_equal(missing->listed, 1);
	assert_int_equal(missing->list[0], 1);
	assert_true(missing->evidence[0].value == 5.0);
	/* A second one: the first that went tells since when. */
	job->sim.rank[2].ended = true;
	job->sim.rank[2].ended_ns = gone_ns + SIM_SECOND;
	stand_until(job, gone_ns + 8ull * SIM_SECOND);
	missing = nt_incidents_find(job->detect, NT_FAMILY_MISSING, 0);
	assert_int_equal(missing->listed, 2);
	assert_int_equal(missing->list[1], 2);
	assert_true(missing->evidence[0].value == 8.0);
}

static void who_said_good_bye_or_is_not_known_is_not_missed(void **state)
{
	struct job *job = *state;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	sim_stick(&job->sim, 10, 1);
	job->sim.rank[1].ended = true;
	job->sim.rank[1].ended_ns = job->sim.now_ns;
	job->sim.rank[1].finalized = true;
	stand_until(job, job->sim.now_ns + 10ull * SIM_SECOND);
	assert_null(nt_incidents_find(job->detect, NT_FAMILY_MISSING, 0));
	job->sim.rank[1].finalized = false;
	job->sim.rank[1].known = false;
	stand_until(job, job->sim.now_ns + 10ull * SIM_SECOND);
	assert_null(nt_incidents_find(job->detect, NT_FAMILY_MISSING, 0));
	job->sim.rank[1].known = true;
	stand_until(job, job->sim.now_ns + 10ull * SIM_SECOND);
	assert_non_null(nt_incidents_find(job->detect, NT_FAMILY_MISSING, 0));
}

/* ---- who holds up ---------------------------------------------------------------------------- */

static const struct nt_detect_incident *stall_of(const struct job *job)
{
	return nt_incidents_find(job->detect, NT_FAMILY_STALL, 0);
}

/* All but rank 1 have been in the next call since then, which is told. */
static uint64_t hold_up(struct job *job)
{
	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	job->sim.comm[0].last++;
	sim_stick(&job->sim, 10, 1);
	job->sim.rank[1].behind = 1;
	return job->sim.now_ns;
}

static void who_is_waited_for_is_named_after_fifteen_seconds(void **state)
{
	struct job *job = *state;
	const uint64_t since_ns = hold_up(job);
	const struct nt_detect_incident *stall;

	/* One of them came a little later; the first tells since when. */
	job->sim.rank[2].inside_since += 1000;
	stand_until(job, since_ns + 15ull * SIM_SECOND - 1);
	assert_null(stall_of(job));
	stand_until(job, since_ns + 15ull * SIM_SECOND);
	stall = stall_of(job);
	assert_non_null(stall);
	assert_int_equal(stall->class, NT_CLASS_HANG);
	assert_int_equal(stall->cause, NT_EVIDENCE_TEXT_LAGGARD);
	assert_int_equal(stall->kind, NT_CULPRIT_RANK);
	assert_int_equal(stall->listed, 1);
	assert_int_equal(stall->list[0], 1);
	assert_true(stall->since_ns == since_ns);
	assert_true(stall->cost == -1.0);
	assert_int_equal(stall->tier, NT_FRAME_T2);
	assert_int_equal(stall->evidences, 1);
	assert_int_equal(stall->evidence[0].what, NT_EVIDENCE_TEXT_WAITING);
	assert_true(stall->evidence[0].value == 15.0);
	assert_true(stall->evidence[0].peers == 15.0);
}

/* That clears nobody: what it was named for goes on, as far as is known. */
static void who_was_named_and_is_not_heard_of_stays_named(void **state)
{
	struct job *job = *state;
	const uint64_t since_ns = hold_up(job);

	stand_until(job, since_ns + 15ull * SIM_SECOND);
	assert_non_null(stall_of(job));
	job->sim.rank[1].silent = true;
	for (uint64_t i = 16; i < 22; i++) {
		stand_until(job, since_ns + i * SIM_SECOND);
		assert_non_null(stall_of(job));
		assert_int_equal(stall_of(job)->listed, 1);
		assert_int_equal(stall_of(job)->list[0], 1);
		assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_LAGGARD);
	}
}

static void who_works_meanwhile_is_a_slow_host_for_ten_minutes(void **state)
{
	struct job *job = *state;
	const uint64_t since_ns = hold_up(job);

	job->sim.rank[1].state = 'D';
	stand_until(job, since_ns + 15ull * SIM_SECOND - 1);
	assert_null(stall_of(job));
	stand_until(job, since_ns + 15ull * SIM_SECOND);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HOST);
	assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_SLOW_HOST);
	assert_true(stall_of(job)->note);
	stand_until(job, since_ns + 600ull * SIM_SECOND - 1);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HOST);
	stand_until(job, since_ns + 600ull * SIM_SECOND);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HANG);
	assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_SLOW_HOST);
	assert_false(stall_of(job)->note);
}

/* One that waits for its device is acquitted: what the other does tells whether they work. */
static void who_waits_for_its_device_does_not_tell_whether_the_late_ones_work(void **state)
{
	struct job *job = *state;
	const uint64_t since_ns = hold_up(job);

	job->sim.rank[2].behind = 1;
	job->sim.rank[2].in_call = false;
	job->sim.rank[2].synchronising = true;
	job->sim.rank[1].state = 'D';
	stand_until(job, since_ns + 15ull * SIM_SECOND);
	assert_non_null(stall_of(job));
	assert_int_equal(stall_of(job)->listed, 1);
	assert_int_equal(stall_of(job)->list[0], 1);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HOST);
	assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_SLOW_HOST);
	/* It stops to work: more than five seconds later it hangs. */
	job->sim.rank[1].state = 'S';
	stand_until(job, since_ns + 20ull * SIM_SECOND);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HOST);
	stand_until(job, since_ns + 20ull * SIM_SECOND + 1);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HANG);
	assert_int_equal(stall_of(job)->listed, 1);
}

static void where_all_are_in_the_call_it_is_the_network(void **state)
{
	struct job *job = *state;
	uint64_t since_ns;

	add_comms(job, 1);
	/* How long a step takes is known. */
	sim_pass(&job->sim, job->detect, 30);
	sim_stick(&job->sim, 10, UINT32_MAX);
	since_ns = job->sim.now_ns;
	/* All have to have been there for so long. */
	job->sim.rank[0].inside_since++;
	stand_until(job, since_ns + 15ull * SIM_SECOND);
	assert_null(stall_of(job));
	stand_until(job, since_ns + 15ull * SIM_SECOND + 1);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HANG);
	assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_NETWORK);
	assert_int_equal(stall_of(job)->kind, NT_CULPRIT_COMMUNICATOR);
	assert_int_equal(stall_of(job)->comm, 10);
	assert_int_equal(stall_of(job)->listed, RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(stall_of(job)->list[i], i);
	assert_true(stall_of(job)->since_ns == since_ns);
}

/* Where they are known to agree they are told soon, else when all have waited long. */
static void calls_that_differ_are_told_after_two_seconds_where_there_is_trust(void **state)
{
	struct job *job = *state;
	struct nt_detect_comm *comm;
	uint64_t since_ns;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	comm = nt_detect_comm_find(job->detect->comms, 10);
	assert_non_null(comm);
	sim_stick(&job->sim, 10, UINT32_MAX);
	job->sim.rank[1].inside_count = 999;
	since_ns = job->sim.now_ns;
	comm->agreed = 3;
	stand_until(job, since_ns + 2ull * SIM_SECOND - 1);
	assert_null(stall_of(job));
	/* In this frame they agree once more, on what they called before. */
	comm->agreed = 1;
	stand_until(job, since_ns + 2ull * SIM_SECOND);
	assert_int_equal(comm->agreed, 2);
	assert_null(stall_of(job));
	comm->agreed = 3;
	stand_until(job, since_ns + 2ull * SIM_SECOND + 1);
	assert_non_null(stall_of(job));
	assert_int_equal(stall_of(job)->class, NT_CLASS_MISMATCH);
	assert_int_equal(stall_of(job)->list[0], 1);
	assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_STALL), 0);
	comm->agreed = 0;
	stand_until(job, since_ns + 15ull * SIM_SECOND - 1);
	assert_null(stall_of(job));
	stand_until(job, since_ns + 15ull * SIM_SECOND);
	assert_int_equal(stall_of(job)->class, NT_CLASS_MISMATCH);
}

static void where_one_is_not_observed_nobody_is_named(void **state)
{
	struct job *job = *state;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 30);
	sim_stick(&job->sim, 10, UINT32_MAX);
	job->sim.rank[1].silent = true;
	stand_until(job, job->sim.now_ns + 20ull * SIM_SECOND);
	assert_non_null(stall_of(job));
	assert_int_equal(stall_of(job)->class, NT_CLASS_HANG);
	assert_int_equal(stall_of(job)->listed, 0);
	assert_int_equal(stall_of(job)->comm, 0);
}

static void who_stayed_inside_when_others_came_out_is_named(void **state)
{
	struct job *job = *state;

	add_comms(job, 1);
	sim_pass(&job->sim, job->detect, 5);
	sim_stick(&job->sim, 10, 1);
	stand_until(job, job->sim.now_ns + 20ull * SIM_SECOND);
	assert_non_null(stall_of(job));
	assert_int_equal(stall_of(job)->class, NT_CLASS_HANG);
	assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_DEVICE_OR_LINK);
	assert_int_equal(stall_of(job)->listed, 2);
	assert_int_equal(stall_of(job)->list[0], 0);
	assert_int_equal(stall_of(job)->list[1], 2);
}

static void most_of_the_members_at_work_are_a_pause_of_all(void **state)
{
	struct job *job = *state;
	const uint64_t since_ns = hold_up(job);

	for (uint32_t i = 1; i < RANKS; i++) {
		job->sim.rank[i].behind = 1;
		job->sim.rank[i].in_call = false;
		job->sim.rank[i].state = 'D';
	}
	stand_until(job, since_ns + 20ull * SIM_SECOND);
	assert_null(stall_of(job));
	/* One of the two does nothing, and has not for five seconds: both are waited for. */
	job->sim.rank[2].state = 'S';
	stand_until(job, since_ns + 25ull * SIM_SECOND);
	assert_null(stall_of(job));
	stand_until(job, since_ns + 25ull * SIM_SECOND + 1);
	assert_non_null(stall_of(job));
	assert_int_equal(stall_of(job)->listed, 2);
	assert_int_equal(stall_of(job)->class, NT_CLASS_HANG);
	assert_int_equal(stall_of(job)->cause, NT_EVIDENCE_TEXT_LAGGARD);
}

static void who_is_busy_is_seen_by_its_bytes_and_its_time(void **state)
{
	static const struct {
		struct nt_frame_rank seen;
		bool working;
	} then[] = {
		{{.state = 'S'}, false},
		{{.state = 'D'}, true},
		{{.window_ns = SIM_SECOND, .read_bytes = 1 << 17}, true},
		{{.window_ns = SIM_SECOND, .read_bytes = (1 << 17) - 1}, false},
		{{.window_ns = SIM_SECOND, .write_bytes = 1 << 17}, true},
		{{.window_ns = SIM_SECOND, .write_bytes = (1 << 17) - 1}, false},
		{{.window_ns = SIM_SECOND / 2, .write_bytes = 1 << 16}, true},
		{{.window_ns = 1000, .on_cpu_ns = 100}, true},
		{{.window_ns = 1000, .on_cpu_ns = 99}, false},
		{{.window_ns = 1000, .io_ns = 100}, true},
		{{.window_ns = 1000, .io_ns = 99}, false},
		{{.window_ns = 0, .on_cpu_ns = 1, .io_ns = 1}, false},
	};
	struct job *job = *state;

	job->detect->end_ns = 77;
	job->detect->frames = 7;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_detect_rank rank = {.worked_ns = 3};

		nt_hang_note(job->detect, &rank, &then[i].seen);
		assert_int_equal(rank.worked_ns, then[i].working ? 77 : 3);
		assert_int_equal(rank.seen_ns, 77);
		assert_int_equal(rank.seen_frame, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(a_job_may_stand_for_half_an_hour_or_ten_times_as_long_as_it_did),
		JOB_TEST(who_goes_on_calling_does_not_stand),
		JOB_TEST(who_is_not_heard_of_does_not_move_the_job),
		JOB_TEST(who_is_gone_is_missed_after_five_seconds_by_those_that_wait),
		JOB_TEST(who_said_good_bye_or_is_not_known_is_not_missed),
		JOB_TEST(who_is_waited_for_is_named_after_fifteen_seconds),
		JOB_TEST(who_was_named_and_is_not_heard_of_stays_named),
		JOB_TEST(who_works_meanwhile_is_a_slow_host_for_ten_minutes),
		JOB_TEST(who_waits_for_its_device_does_not_tell_whether_the_late_ones_work),
		JOB_TEST(where_all_are_in_the_call_it_is_the_network),
		JOB_TEST(calls_that_differ_are_told_after_two_seconds_where_there_is_trust),
		JOB_TEST(where_one_is_not_observed_nobody_is_named),
		JOB_TEST(who_stayed_inside_when_others_came_out_is_named),
		JOB_TEST(most_of_the_members_at_work_are_a_pause_of_all),
		JOB_TEST(who_is_busy_is_seen_by_its_bytes_and_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
