/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which jobs, attempts and ranks the messages of a key are taken for. */
#include <errno.h>

#include "engine/job_state.h"
#include "tests/unit/engine/job_parties.h"

/* Both at once, a window of the one and then of the other. */
static void run_parties(const struct party *a, const struct party *b, uint64_t from_ms,
			uint64_t to_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 500) {
		run_party(a, at, at + 500);
		run_party(b, at, at + 500);
	}
}

/* ---- keys and splits ---------------------------------------------------------------------------- */

static void all_ranks_of_a_key_are_one_job(void **state)
{
	const struct party a = {&agent, 0, 4, 8, 100, 0xabc}, b = {&other, 4, 4, 8, 100, 0xabc};

	(void)state;
	run_parties(&a, &b, 0, 10000);
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->sessions, 8);
	assert_int_equal(job_at(0)->live, 8);
	assert_int_equal(job_at(0)->size, 8);
	assert_int_equal(job_at(0)->nodes, 2);
	assert_int_equal(job_at(0)->attempt, 1);
	assert_string_equal(job_at(0)->name, "llm");
	assert_string_equal(job_at(0)->namespace, "train");
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(job_at(0)->session[i]->rank, i);
}

static void two_keys_are_two_jobs(void **state)
{
	struct feed_agent second = feed_agent("n0", "another");
	const struct party a = {&agent, 0, 2, 2, 100, 0xabc}, b = {&second, 0, 2, 2, 200, 0xdef};

	(void)state;
	run_parties(&a, &b, 0, 5000);
	assert_int_equal(HASH_COUNT(nt_jobs_keys(nt_engine_jobs(engine))), 2);
	assert_int_equal(counters()->jobs, 2);
	assert_int_equal(counters()->splits, 0);
}

static void the_same_rank_alive_twice_splits_the_key(void **state)
{
	/* Without communicators only the ranks tell. */
	const struct party a = {&agent, 0, 2, 2, 100, 0}, b = {&other, 0, 2, 2, 200, 0};

	(void)state;
	run_parties(&a, &b, 0, 10000);
	assert_int_equal(only_key()->jobs, 2);
	assert_int_equal(job_at(0)->live, 2);
	assert_int_equal(job_at(1)->live, 2);
	assert_int_equal(job_at(1)->attempt, 1);
	assert_int_not_equal(job_at(0)->id, job_at(1)->id);
	assert_int_not_equal(job_at(0)->hash, job_at(1)->hash);
	assert_int_equal(counters()->splits, 1);
}

static void communicators_keep_jobs_of_one_key_apart(void **state)
{
	const struct party a = {&agent, 0, 4, 4, 100, 0xaaa}, b = {&other, 0, 4, 4, 200, 0xbbb};

	(void)state;
	run_parties(&a, &b, 0, 10000);
	assert_int_equal(only_key()->jobs, 2);
	for (size_t n = 0; n < 2; n++) {
		const struct nt_job *job = job_at(n);

		assert_int_equal(job->live, 4);
		assert_int_equal(job->nodes, 1);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(job->session[i]->shared_comms, 1);
	}
}

static void sets_of_ranks_that_share_no_communicator_are_two_jobs(void **state)
{
	/* No rank twice, but each half has a communicator as large as the job. */
	struct party a = {&agent, 0, 2, 2, 100, 0xaaa}, b = {&other, 2, 2, 2, 200, 0xbbb};

	(void)state;
	run_parties(&a, &b, 0, 10000);
	assert_int_equal(only_key()->jobs, 2);
}

/* Two communicators of all ranks; steps take so long that their first windows hold different ones. */
static void ranks_of_long_steps_wait_for_a_common_communicator(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 20000; at += 500)
		for (uint32_t rank = 0; rank < 2; rank++) {
			const bool calls = at % 6000 == 0;
			struct feed_window window = {
				.rank = rank,
				.size = 2,
				.comm = !calls                   ? 0
					: (at / 6000 + rank) % 2 ? 0xa
								 : 0xb,
				.comm_size = 2,
				.calls = 1,
			};

			push_window(&agent, at, window);
		}
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 2);
}

static void parts_that_share_a_communicator_of_some_ranks_are_one_job(void **state)
{
	/* Data-parallel pairs (0,2), (1,3) and tensor-parallel pairs (0,1), (2,3). */
	(void)state;
	for (uint64_t at = 0; at < 10000; at += 500)
		for (uint32_t rank = 0; rank < 4; rank++) {
			struct feed_window window = {
				.rank = rank,
				.size = 4,
				.comm = at % 1000 ? 0xd0 + rank % 2 : 0xe0 + rank / 2,
				.comm_size = 2,
			};

			push_window(&agent, at, window);
		}
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 4);
}

/* ---- attempts ----------------------------------------------------------------------------------- */

static void new_processes_after_the_old_ones_ended_are_the_next_attempt(void **state)
{
	const struct party first = {&agent, 0, 4, 4, 100, 0xaaa};
	struct party second = {&agent, 0, 4, 4, 200, 0xbbb, {.process_ms = 9000}};

	(void)state;
	run_party(&first, 0, 8000);
	end_party(&first, 8000);
	run_party(&second, 10000, 20000);
	assert_int_equal(only_key()->jobs, 2);
	assert_int_equal(job_at(0)->live, 0);
	assert_int_equal(job_at(0)->ended_ns, REAL_0 + 8500 * MS);
	assert_true(job_at(0)->closed);
	assert_int_equal(job_at(1)->live, 4);
	assert_int_equal(job_at(1)->attempt, 2);
	assert_int_equal(job_at(0)->hash, job_at(1)->hash);
	assert_int_not_equal(job_at(0)->id, job_at(1)->id);
	assert_int_equal(counters()->attempts, 1);
}

static void a_job_is_over_though_its_agent_has_nothing_more_to_say(void **state)
{
	const struct party party = {&agent, 0, 4, 4, 100, 0xaaa};

	(void)state;
	run_party(&party, 0, 8000);
	end_party(&party, 8000);
	assert_int_equal(job_at(0)->live, 4);
	assert_int_equal(nt_engine_sweep(engine, 5 * SECOND), 0);
	assert_int_equal(job_at(0)->live, 0);
	assert_true(job_at(0)->closed);
	assert_int_equal(job_at(0)->ended_ns, REAL_0 + 8500 * MS);
}

static void an_agent_whose_clock_is_ahead_does_not_hurry_other_jobs(void **state)
{
	struct feed_agent ahead = feed_agent("n2", "another");
	const struct party party = {&agent, 0, 2, 2, 100, 0xaaa};
	const struct party hasty = {&ahead, 0, 2, 2, 100, 0xbbb};

	(void)state;
	for (uint64_t at = 0; at < 10000; at += 500) {
		run_party(&party, at, at + 500);
		run_party(&hasty, at + 50000, at + 50500);
		assert_int_equal(nt_engine_sweep(engine, 0), 0);
	}
	assert_int_equal(counters()->session.late_windows, 0);
	assert_int_equal(counters()->early_windows, 0);
}

static void ends_that_nobody_saw_do_not_hold_up_the_next_attempt(void **state)
{
	/* The agent was killed with the job, and both came back. */
	const struct party first = {&agent, 0, 2, 2, 100, 0xaaa};
	struct party second = {&agent, 0, 2, 2, 200, 0xbbb, {.process_ms = 20000}};

	(void)state;
	run_party(&first, 0, 8000);
	agent.boot++;
	agent.seq = 0;
	run_party(&second, 21000, 40000);
	assert_int_equal(job_at(1)->attempt, 2);
	assert_int_equal(job_at(1)->live, 2);
	assert_int_equal(job_at(0)->live, 0); /* its living agent no longer reports it */
}

static void the_restart_count_of_the_launcher_numbers_attempts(void **state)
{
	const struct party party = {&agent, 0, 2, 2, 100, 0xaaa, {.attempt_hint = 4}};

	(void)state;
	run_party(&party, 0, 5000);
	assert_int_equal(job_at(0)->attempt, 5);
}

static void a_restarted_agent_goes_on_with_the_same_job(void **state)
{
	const struct party a = {&agent, 0, 2, 4, 100, 0xaaa};
	struct party b = {&other, 2, 2, 4, 100, 0xaaa};

	(void)state;
	run_parties(&a, &b, 0, 10000);
	other.boot++;
	other.seq = 0;
	b.like.epoch = 77; /* it counts anew */
	run_party(&a, 10000, 12000);
	run_parties(&a, &b, 12000, 20000);
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 4);
	assert_int_equal(job_at(0)->sessions, 4);
	assert_int_equal(counters()->jobs, 1);
}

static void a_process_that_takes_over_a_rank_among_the_living_replaces_it(void **state)
{
	const struct party party = {&agent, 0, 4, 4, 100, 0xaaa};
	const struct party rest = {&agent, 0, 3, 4, 100, 0xaaa};
	const struct party new = {&agent, 3, 1, 4, 300, 0xaaa, {.process_ms = 11000}};
	const struct party one = {&agent, 3, 1, 4, 100, 0xaaa};

	(void)state;
	run_party(&party, 0, 8000);
	run_party(&rest, 8000, 8500);
	end_party(&one, 8000);
	run_party(&rest, 8500, 12000);
	run_parties(&rest, &new, 12000, 20000);
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 4);
	assert_int_equal(job_at(0)->sessions - job_at(0)->retired, 4);
	assert_int_equal(job_at(0)->session[3]->pid, 303);
	assert_int_equal(counters()->replaced_ranks, 1);
}

/* ---- ranks that are not known ------------------------------------------------------------------- */

static void ranks_that_are_not_known_come_last_and_keep_their_number(void **state)
{
	const struct party known = {&agent, 0, 2, 4, 100, 0xaaa};
	const struct party guessed = {&other, 0, 2, 4, 200, 0xaaa, {.rank_unknown = true}};

	(void)state;
	run_parties(&known, &guessed, 0, 10000);
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 4);
	assert_int_equal(job_at(0)->session[0]->number, 0);
	assert_int_equal(job_at(0)->session[1]->number, 1);
	assert_int_equal(job_at(0)->session[2]->number, NT_JOB_FIRST_UNKNOWN);
	assert_int_equal(job_at(0)->session[3]->number, NT_JOB_FIRST_UNKNOWN + 1);
	assert_false(job_at(0)->session[2]->rank_known);
}

static void a_rank_that_becomes_known_takes_its_place(void **state)
{
	const struct party known = {&agent, 0, 3, 4, 100, 0xaaa};
	struct party late = {&other, 0, 1, 4, 200, 0xaaa, {.rank_unknown = true}};

	(void)state;
	run_parties(&known, &late, 0, 8000);
	assert_int_equal(job_at(0)->session[3]->number, NT_JOB_FIRST_UNKNOWN);
	late.first = 3;
	late.pid -= 3; /* the same process */
	late.like.rank_unknown = false;
	run_parties(&known, &late, 8000, 16000);
	assert_int_equal(job_at(0)->sessions, 4);
	assert_int_equal(job_at(0)->session[3]->number, 3);
	assert_true(job_at(0)->session[3]->rank_known);
}

static void a_rank_that_is_anothers_is_never_accused(void **state)
{
	/* One communicator says that they belong together, and both say that they are rank 1. */
	const struct party a = {&agent, 0, 2, 3, 100, 0xaaa}, b = {&other, 1, 1, 3, 200, 0xaaa};

	(void)state;
	run_parties(&a, &b, 0, 10000);
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 3);
	assert_int_equal(job_at(0)->session[2]->number, NT_JOB_FIRST_UNKNOWN);
	assert_false(job_at(0)->session[2]->rank_known);
	assert_int_equal(counters()->conflicting_ranks, 1);
}

static void several_ranks_of_one_process_are_several_sessions(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 5000; at += 500)
		for (uint32_t rank = 0; rank < 4; rank++) {
			struct feed_window window = {
				.rank = rank, .size = 4, .pid = 77, .comm = 0xaaa};

			push_window(&agent, at, window);
		}
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->live, 4);
	assert_int_equal(HASH_COUNT(only_key()->process), 1);
}

/* ---- totals ------------------------------------------------------------------------------------- */

static void totals_count_each_window_once_also_late_ones(void **state)
{
	const struct party a = {&agent, 0, 2, 4, 100, 0xaaa}, b = {&other, 2, 2, 4, 100, 0xaaa};
	const struct nt_session_series *series;

	(void)state;
	run_parties(&a, &b, 0, 10000);
	run_party(&b, 3000, 3500); /* sequence numbers go on: it is not a duplicate, but late */
	assert_int_equal(counters()->session.late_windows, 2);
	series = job_at(0)->session[0]->series;
	assert_int_equal(HASH_COUNT(series), 1);
	assert_int_equal(series->calls, 20 * 5);
	assert_int_equal(series->bytes, 20 * 5 * 4096);
	assert_int_equal(job_at(0)->session[2]->series->calls, 21 * 5);
	assert_int_equal(job_at(0)->session[2]->steps, 21 * 5);
}

/* ---- caps --------------------------------------------------------------------------------------- */

static void a_job_is_renamed_by_the_rank_that_named_it(void **state)
{
	const struct party first = {&agent, 0, 1, 2, 100, 0xaaa, {.job = "python-1a2b"}};
	const struct party second = {&other, 1, 1, 2, 100, 0xaaa, {.job = "other"}};
	const struct party late = {&agent, 0, 1, 2, 100, 0xaaa, {.job = "train"}};

	(void)state;
	for (uint64_t at = 0; at < 4000; at += 500)
		run_parties(&first, &second, at, at + 500);
	assert_string_equal(job_at(0)->name, "python-1a2b");
	for (uint64_t at = 4000; at < 8000; at += 500)
		run_parties(&late, &second, at, at + 500);
	assert_string_equal(job_at(0)->name, "train");
	assert_int_equal(only_key()->jobs, 1);
}

/* ---- saved -------------------------------------------------------------------------------------- */

static void the_model_survives_a_restart(void **state)
{
	const struct party a = {&agent, 0, 2, 5, 100, 0xaaa};
	const struct party b = {&other, 2, 2, 5, 100, 0xaaa, {.gpu = "GPU-1", .pod = "p"}};
	const struct party guessed = {&agent, 0, 1, 5, 900, 0xaaa, {.rank_unknown = true}};
	nt_autobuf struct nt_buf before = {0}, after = {0};

	(void)state;
	for (uint64_t at = 0; at < 10000; at += 500) {
		run_parties(&a, &b, at, at + 500);
		run_party(&guessed, at, at + 500);
	}
	assert_int_equal(nt_jobs_save(nt_engine_jobs(engine), &before), 0);
	start_engine();
	assert_int_equal(nt_jobs_load(nt_engine_jobs(engine), before.data, before.len), 0);
	assert_int_equal(nt_jobs_save(nt_engine_jobs(engine), &after), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
	assert_int_equal(job_at(0)->live, 5);
	assert_string_equal(nt_rank_session_text(job_at(0)->session[2], NT_RANK_SESSION_GPU),
			    "GPU-1");
	/* And goes on as the same job. */
	run_parties(&a, &b, 10000, 15000);
	assert_int_equal(only_key()->jobs, 1);
	assert_int_equal(job_at(0)->sessions, 5);
	assert_int_equal(counters()->jobs, 0);
}

static void a_damaged_model_is_refused_at_every_length(void **state)
{
	const struct party a = {&agent, 0, 2, 4, 100, 0xaaa}, b = {&other, 2, 2, 4, 100, 0xaaa};
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	run_parties(&a, &b, 0, 3000);
	assert_int_equal(nt_jobs_save(nt_engine_jobs(engine), &buf), 0);
	for (size_t len = 0; len < buf.len; len++) {
		start_engine();
		assert_int_equal(nt_jobs_load(nt_engine_jobs(engine), buf.data, len), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_ranks_of_a_key_are_one_job),
		TEST(a_job_is_renamed_by_the_rank_that_named_it),
		TEST(two_keys_are_two_jobs),
		TEST(the_same_rank_alive_twice_splits_the_key),
		TEST(communicators_keep_jobs_of_one_key_apart),
		TEST(sets_of_ranks_that_share_no_communicator_are_two_jobs),
		TEST(ranks_of_long_steps_wait_for_a_common_communicator),
		TEST(parts_that_share_a_communicator_of_some_ranks_are_one_job),
		TEST(new_processes_after_the_old_ones_ended_are_the_next_attempt),
		TEST(a_job_is_over_though_its_agent_has_nothing_more_to_say),
		TEST(an_agent_whose_clock_is_ahead_does_not_hurry_other_jobs),
		TEST(ends_that_nobody_saw_do_not_hold_up_the_next_attempt),
		TEST(the_restart_count_of_the_launcher_numbers_attempts),
		TEST(a_restarted_agent_goes_on_with_the_same_job),
		TEST(a_process_that_takes_over_a_rank_among_the_living_replaces_it),
		TEST(ranks_that_are_not_known_come_last_and_keep_their_number),
		TEST(a_rank_that_becomes_known_takes_its_place),
		TEST(a_rank_that_is_anothers_is_never_accused),
		TEST(several_ranks_of_one_process_are_several_sessions),
		TEST(totals_count_each_window_once_also_late_ones),
		TEST(the_model_survives_a_restart),
		TEST(a_damaged_model_is_refused_at_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
