/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void an_impossible_answer_of_a_worker_is_refused(void **state)
{
	static struct nt_ras_answer answer;

	(void)state;
	answer.comms = 1;
	answer.comm[0] = (struct nt_ras_comm){.hash = 1, .rank = 1, .size = 2};
	assert_true(nt_ras_is_sound(&answer));
	answer.comm[0].rank = 2;
	assert_false(nt_ras_is_sound(&answer));
	answer.comm[0] = (struct nt_ras_comm){.rank = 1, .size = 2};
	assert_false(nt_ras_is_sound(&answer));
	answer.comm[0] = (struct nt_ras_comm){.hash = 1, .size = NT_RAS_RANKS + 1};
	assert_false(nt_ras_is_sound(&answer));
	answer.comms = NT_RAS_COMMS + 1;
	assert_false(nt_ras_is_sound(&answer));
}

static uint64_t results_of(const struct nt_ras *ras)
{
	struct nt_ras_stats stats;
	uint64_t sum = 0;

	nt_ras_stats(ras, &stats);
	for (int i = 0; i < NT_RAS_RESULT_END; i++)
		sum += stats.results[i];
	return sum;
}

static void a_process_that_is_gone_is_a_failed_request(void **state)
{
	const struct nt_ras_want want = {
		.pid = 0x7fffffff, .start_ns = 1, .file = 7, .has_node = true};
	const struct timespec pause = {.tv_nsec = 1000000};
	nt_auto(nt_ras) struct nt_ras *ras = NULL;
	struct nt_workers workers = {0};
	struct nt_ras_want asked;
	struct nt_ras_stats stats;

	(void)state;
	assert_int_equal(nt_ras_new(&workers, &ras), 0);
	assert_null(nt_ras_take(ras, NT_SECOND, &asked));
	nt_ras_ask(ras, &want, 1, NT_SECOND);
	assert_int_equal(workers.started, 1);
	nt_ras_ask(ras, &want, 1, 2 * NT_HOUR); /* one at a time */
	assert_int_equal(workers.started, 1);
	while (!results_of(ras)) {
		assert_null(nt_ras_take(ras, NT_SECOND, &asked));
		(void)nanosleep(&pause, NULL);
	}
	nt_ras_stats(ras, &stats);
	assert_int_equal(stats.results[NT_RAS_FAILED], 1);
	assert_int_equal(workers.killed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_impossible_answer_of_a_worker_is_refused),
		cmocka_unit_test(a_process_that_is_gone_is_a_failed_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
