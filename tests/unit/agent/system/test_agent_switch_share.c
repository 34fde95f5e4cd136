/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What single context switches stand for while they are observed in slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/system/switch_share.h"

static void an_event_has_the_share_that_held_then(void **state)
{
	struct nt_switch_share share = {.now = 1.0};

	(void)state;
	assert_true(nt_switch_share_at(&share, 0) == 1.0);
	nt_switch_share_set(&share, 0.25, 1000);
	assert_true(nt_switch_share_at(&share, 999) == 1.0);
	assert_true(nt_switch_share_at(&share, 1000) == 0.25);
	nt_switch_share_set(&share, 0.5, 2000);
	assert_true(nt_switch_share_at(&share, 1999) == 0.25);
	assert_true(nt_switch_share_at(&share, 2000) == 0.5);
}

/* 100 before slices, 10 in the first and 20 in the second one. */
static void drops_have_the_share_that_held_as_they_were_dropped(void **state)
{
	__u64 counted[NT_HOST_EVENT_END] = {[NT_HOST_EVENT_OUT] = 100};
	struct nt_dropped_events events = {0};

	(void)state;
	nt_dropped_events_settle(&events, counted, 1.0);
	assert_int_equal(counted[NT_HOST_EVENT_OUT], 0);
	counted[NT_HOST_EVENT_OUT] = 10;
	nt_dropped_events_settle(&events, counted, 0.5);
	counted[NT_HOST_EVENT_OUT] = 20;
	assert_true(nt_dropped_events_take(&events, counted, NT_HOST_EVENT_OUT, 0.25) ==
		    100 + 10 * 2 + 20 * 4);
	assert_true(nt_dropped_events_take(&events, counted, NT_HOST_EVENT_OUT, 0.25) == 0);
}

static void only_context_switches_have_a_share(void **state)
{
	__u64 counted[NT_HOST_EVENT_END];
	struct nt_dropped_events events = {0};

	(void)state;
	for (int i = 0; i < NT_HOST_EVENT_END; i++)
		counted[i] = 3;
	nt_dropped_events_settle(&events, counted, 0.5);
	for (enum nt_host_event_kind kind = NT_HOST_EVENT_OUT; kind < NT_HOST_EVENT_END; kind++)
		assert_true(nt_dropped_events_take(&events, counted, kind, 0.5) ==
			    (kind <= NT_HOST_EVENT_IN ? 6 : 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_has_the_share_that_held_then),
		cmocka_unit_test(drops_have_the_share_that_held_as_they_were_dropped),
		cmocka_unit_test(only_context_switches_have_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
