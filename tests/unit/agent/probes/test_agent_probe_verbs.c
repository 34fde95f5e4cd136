/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of libibverbs and of its providers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/probes/probe.h"

/* They are called seldom, and all figures of RDMA depend on them. */
static void verbs_are_observed_at_any_cost_and_traffic_in_ranks_alone(void **state)
{
	size_t verbs = 0, traffic = 0;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		assert_int_equal(p->verb != 0, p->role == NT_ROLE_VERB);
		assert_int_equal(p->traffic, p->subject == NT_SUBJECT_RDMA);
		if (p->verb) {
			verbs++;
			assert_true(nt_probe_stays(p) && !p->hot && p->returns);
			assert_int_equal(NT_COOKIE_VERB(nt_probe_cookie(row)), p->verb);
			assert_true(p->verb < NT_VERB_END);
		}
		if (p->traffic) {
			traffic++;
			assert_true(nt_probe_is_of_rank(p) && p->hot && !nt_probe_stays(p));
		}
	}
	assert_int_equal(verbs, 13);
	assert_int_equal(traffic, 2);
}

/* Rows beyond the table's present end have a place in the cookie, apart from all other bits. */
static void the_cookie_has_room_for_every_row(void **state)
{
	(void)state;
	for (uint32_t row = 0; row < 1024; row++) {
		const uint64_t cookie = NT_COOKIE_OF_ROW(row);

		assert_int_equal(NT_COOKIE_ROW(cookie), row);
		assert_int_equal(NT_ROW_OF(NT_COOKIE_ROW(cookie | NT_ROW_OWN)), row);
		assert_int_equal(NT_COOKIE_STAYS(cookie), 0);
		assert_int_equal(NT_COOKIE_SLOT(cookie), 0);
		assert_int_equal(NT_COOKIE_DEREF_OFF(cookie), 0);
		assert_int_equal(NT_COOKIE_ID_WORD(cookie), 0);
		assert_int_equal(NT_COOKIE_ROW(~cookie & ~(1ULL << 15)), ~row & 0x3ff);
	}
	assert_true(NT_ROWS_MAX <= 1023); /* one is that of trials */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cookie_has_room_for_every_row),
		cmocka_unit_test(verbs_are_observed_at_any_cost_and_traffic_in_ranks_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
