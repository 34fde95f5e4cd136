/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/rules/first_death.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/duration.h"
#include "detect/model/detector_state.h"

enum {
	RANKS = 4,
	NOBODY = -1,
	FIRST_S = 1000, /* when the first rank ends */
};

static struct nt_detect_rank rank_of[RANKS];

/* All ranks ended, 10 ms after one another from rank 0 on, each by this signal or with this status. */
static void all_end(int signal, int status)
{
	for (uint32_t i = 0; i < RANKS; i++)
		rank_of[i] = (struct nt_detect_rank){
			.rank = i,
			.known = true,
			.ended = true,
			.ended_ns = FIRST_S * NT_SECOND + i * 10 * NT_MILLISECOND,
			.exit_signal = (uint8_t)signal,
			.exit_status = (uint8_t)status,
		};
}

/* The rank ends before all others, in its own way. */
static void ends_first(uint32_t rank, int signal, int status)
{
	rank_of[rank].ended_ns = (FIRST_S - 5) * NT_SECOND;
	rank_of[rank].exit_signal = (uint8_t)signal;
	rank_of[rank].exit_status = (uint8_t)status;
}

static int first(void)
{
	const struct nt_detect detect = {.rank = rank_of, .ranks = RANKS};
	const struct nt_detect_rank *found = nt_first_death(&detect);

	return found ? (int)found->rank : NOBODY;
}

static void a_rank_that_is_killed_and_ends_the_job_is_named(void **state)
{
	(void)state;
	/* The launcher ends the others. */
	all_end(SIGTERM, 0);
	ends_first(2, SIGKILL, 0);
	assert_int_equal(first(), 2);
	ends_first(2, SIGSEGV, 0);
	assert_int_equal(first(), 2);
	ends_first(2, 0, 1);
	assert_int_equal(first(), 2);
	/* A wrapper passes their signal on as a status. */
	all_end(0, 128 + SIGTERM);
	ends_first(3, 0, 1);
	assert_int_equal(first(), 3);
	/* They abort when they find that it is gone. */
	all_end(SIGABRT, 0);
	ends_first(1, SIGKILL, 0);
	assert_int_equal(first(), 1);
	/* They fail in the same way, but later. */
	all_end(0, 1);
	ends_first(1, 0, 1);
	assert_int_equal(first(), 1);
}

static void a_job_that_is_ended_from_outside_names_nobody(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGKILL, SIGHUP};

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		all_end(signals[i], 0);
		assert_int_equal(first(), NOBODY);
		/* However long the others take. */
		ends_first(2, signals[i], 0);
		assert_int_equal(first(), NOBODY);
		ends_first(2, 0, 128 + signals[i]);
		assert_int_equal(first(), NOBODY);
	}
}

static void a_launcher_kills_after_a_delay_but_a_whole_job_is_killed_at_once(void **state)
{
	(void)state;
	all_end(SIGKILL, 0);
	assert_int_equal(first(), NOBODY);
	/* Node by node. */
	rank_of[2].ended_ns = rank_of[0].ended_ns - 10 * NT_SECOND;
	assert_int_equal(first(), NOBODY);
	rank_of[2].ended_ns--;
	assert_int_equal(first(), 2);
}

/* MPICH's launcher sends SIGKILL within a millisecond. */
static void a_launcher_that_kills_the_rest_at_once_is_no_reason_of_the_first(void **state)
{
	(void)state;
	all_end(SIGKILL, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		rank_of[i].ended_by_parent = i != 2;
	rank_of[2].ended_ns = rank_of[0].ended_ns - 1000000;
	assert_int_equal(first(), 2);
	/* Its memory is freed after theirs. */
	rank_of[2].ended_ns = rank_of[0].ended_ns + 1000000;
	assert_int_equal(first(), 2);
	/* A scheduler's daemon, whose children all ranks are, kills them on request. */
	rank_of[2].ended_by_parent = true;
	assert_int_equal(first(), NOBODY);
	/* Two ranks were killed alike: the job is ended from outside. */
	rank_of[2].ended_by_parent = rank_of[1].ended_by_parent = false;
	assert_int_equal(first(), NOBODY);
	for (uint32_t i = 0; i < RANKS; i++)
		rank_of[i].ended_by_parent = false;
}

static void ranks_that_fail_together_have_one_reason(void **state)
{
	(void)state;
	all_end(0, 1);
	assert_int_equal(first(), NOBODY);
	all_end(SIGABRT, 0);
	assert_int_equal(first(), NOBODY);
	/* One of them only a second earlier. */
	all_end(0, 1);
	rank_of[3].ended_ns = rank_of[0].ended_ns - NT_SECOND;
	assert_int_equal(first(), NOBODY);
	rank_of[3].ended_ns--;
	assert_int_equal(first(), 3);
}

/* PyTorch ends all ranks at once when one fails: its GPU's error tells which. */
static void of_ranks_that_fail_together_the_one_with_a_gpu_error_is_named(void **state)
{
	(void)state;
	all_end(SIGABRT, 0);
	rank_of[3].xid = 79;
	rank_of[3].xid_ns = rank_of[3].ended_ns - 100 * NT_SECOND;
	assert_int_equal(first(), 3);
	/* Long ago. */
	rank_of[3].xid_ns = rank_of[3].ended_ns - 121 * NT_SECOND;
	assert_int_equal(first(), NOBODY);
	/* Two of them: neither is the first. */
	rank_of[3].xid_ns = rank_of[1].xid_ns = rank_of[3].ended_ns;
	rank_of[1].xid = 94;
	assert_int_equal(first(), NOBODY);
	/* Who ends a job from outside does not look at GPUs. */
	all_end(SIGTERM, 0);
	rank_of[3].xid = 63;
	rank_of[3].xid_ns = rank_of[3].ended_ns;
	assert_int_equal(first(), NOBODY);
	all_end(SIGKILL, 0);
	rank_of[3].xid = 63;
	rank_of[3].xid_ns = rank_of[3].ended_ns;
	assert_int_equal(first(), NOBODY);
	/* An orderly end is one. */
	all_end(0, 0);
	rank_of[3].xid = 63;
	rank_of[3].xid_ns = rank_of[3].ended_ns;
	assert_int_equal(first(), NOBODY);
}

static void an_orderly_end_names_nobody(void **state)
{
	(void)state;
	all_end(0, 0);
	assert_int_equal(first(), NOBODY);
	/* What fails after another has ended well did not end the job. */
	ends_first(1, 0, 0);
	rank_of[3].exit_status = 1;
	assert_int_equal(first(), NOBODY);
	/* After Finalize a status is the program's own affair. */
	all_end(0, 0);
	ends_first(2, 0, 3);
	rank_of[2].finalized = true;
	assert_int_equal(first(), NOBODY);
	/* A rank by a number that is not known is not accused. */
	all_end(SIGTERM, 0);
	ends_first(2, SIGKILL, 0);
	rank_of[2].known = false;
	assert_int_equal(first(), NOBODY);
}

static void the_order_of_ranks_makes_no_difference(void **state)
{
	struct nt_detect_rank other;

	(void)state;
	all_end(SIGTERM, 0);
	ends_first(0, SIGKILL, 0);
	other = rank_of[0];
	rank_of[0] = rank_of[3];
	rank_of[3] = other;
	assert_int_equal(first(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_is_killed_and_ends_the_job_is_named),
		cmocka_unit_test(a_job_that_is_ended_from_outside_names_nobody),
		cmocka_unit_test(a_launcher_kills_after_a_delay_but_a_whole_job_is_killed_at_once),
		cmocka_unit_test(a_launcher_that_kills_the_rest_at_once_is_no_reason_of_the_first),
		cmocka_unit_test(ranks_that_fail_together_have_one_reason),
		cmocka_unit_test(of_ranks_that_fail_together_the_one_with_a_gpu_error_is_named),
		cmocka_unit_test(an_orderly_end_names_nobody),
		cmocka_unit_test(the_order_of_ranks_makes_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
