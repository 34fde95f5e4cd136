/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a session states of its GPUs by its windows. */
#include "engine/rank_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/system/clock.h"

enum {
	T = 1000000000,
};

static void count(struct nt_rank_session *session, const struct nt_host_evidence *host,
		  uint64_t end_ns)
{
	struct nt_rank_session_counters counters = {0};
	const struct nt_message message = {.window = {.host = *host}};

	assert_int_equal(nt_rank_session_count(session, &message, end_ns, &counters), 0);
}

/* The driver is read once a second, and windows may be shorter. */
static void what_gpus_compute_holds_until_the_next_reading(void **state)
{
	const struct nt_host_evidence read = {.gpu_activity_ns = 2 * NT_SECOND,
					      .gpu_sm_ns = NT_SECOND,
					      .gpu_nvlink_bytes = 3000},
				      none = {.gpu_clock_mhz = 990};
	struct nt_rank_session *session = calloc(1, sizeof(*session));

	(void)state;
	assert_non_null(session);
	count(session, &none, T);
	assert_false(session->gpu.activity.known);
	count(session, &read, T + NT_SECOND);
	assert_true(session->gpu.activity.known);
	assert_true(session->gpu.activity.sm == 0.5);
	assert_true(session->gpu.activity.tensor == 0.0);
	assert_true(session->gpu.activity.nvlink == 1500.0);
	count(session, &none, T + 4 * NT_SECOND);
	assert_true(session->gpu.activity.known && session->gpu.activity.sm == 0.5);
	count(session, &none, T + 4 * NT_SECOND + 1);
	assert_false(session->gpu.activity.known);
	nt_rank_session_free(session);
}

static void a_share_is_at_most_the_whole(void **state)
{
	const struct nt_host_evidence host = {.gpu_activity_ns = 1, .gpu_sm_ns = UINT64_MAX};
	struct nt_rank_session *session = calloc(1, sizeof(*session));

	(void)state;
	assert_non_null(session);
	count(session, &host, T);
	assert_true(session->gpu.activity.sm == 1.0);
	nt_rank_session_free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_gpus_compute_holds_until_the_next_reading),
		cmocka_unit_test(a_share_is_at_most_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
