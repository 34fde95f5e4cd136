/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/system/clock.h"

static const struct nt_owner one = {.id = 5, .name = "user 65534"};
static const struct nt_owner other = {.id = 6, .name = "pod p"};

static void a_cap_is_told_once_and_again_after_a_clear_minute(void **state)
{
	struct nt_limits limits = {0};
	struct nt_share share;
	uint64_t now_ns = NT_HOUR;

	(void)state;
	nt_share_init(&share, 10);
	assert_int_equal(nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns), NT_LIMIT_NONE);
	nt_share_miss(&share, &one, 1);
	assert_int_equal(nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns), NT_LIMIT_BEGINS);
	/* It flickers. */
	for (int i = 0; i < 100; i++) {
		nt_share_forgive(&share);
		assert_int_equal(
			nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns += NT_SECOND),
			NT_LIMIT_NONE);
		nt_share_miss(&share, &one, 1);
		assert_int_equal(
			nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns += 50 * NT_SECOND),
			NT_LIMIT_NONE);
	}
	nt_share_forgive(&share);
	assert_int_equal(nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns += NT_MINUTE - 1),
			 NT_LIMIT_NONE);
	assert_int_equal(nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns += 1),
			 NT_LIMIT_ENDS);
	assert_int_equal(nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns += NT_HOUR),
			 NT_LIMIT_NONE);
	nt_share_miss(&share, &one, 1);
	assert_int_equal(nt_limits_look(&limits, NT_LIMIT_KEYS, &share, now_ns), NT_LIMIT_BEGINS);
	nt_share_release(&share);
}

static void the_owner_with_the_most_is_named(void **state)
{
	struct nt_node_limit list[NT_LIMIT_END];
	struct nt_limits limits = {0};
	char text[NT_LIMIT_TEXT];
	struct nt_share share;

	(void)state;
	nt_share_init(&share, 1024);
	assert_int_equal(nt_limits_list(&limits, list), 0);
	nt_share_miss(&share, &one, 1);
	(void)nt_limits_look(&limits, NT_LIMIT_PROCESSES, &share, 1);
	assert_string_equal(nt_limit_text(&limits, NT_LIMIT_PROCESSES, text),
			    "1 process left out, of user 65534 (cap 1024)");
	nt_share_miss(&share, &one, 75);
	(void)nt_limits_look(&limits, NT_LIMIT_PROCESSES, &share, 1);
	assert_string_equal(nt_limit_text(&limits, NT_LIMIT_PROCESSES, text),
			    "76 processes left out, of user 65534 (cap 1024)");
	nt_share_miss(&share, &other, 4);
	(void)nt_limits_look(&limits, NT_LIMIT_PROCESSES, &share, 1);
	assert_string_equal(nt_limit_text(&limits, NT_LIMIT_PROCESSES, text),
			    "80 processes left out, 76 of them of user 65534 (cap 1024)");
	assert_int_equal(nt_limits_list(&limits, list), 1);
	assert_string_equal(list[0].what, "processes");
	assert_string_equal(list[0].unit, "processes");
	assert_string_equal(list[0].owner, "user 65534");
	assert_int_equal(list[0].left_out, 80);
	assert_int_equal(list[0].owner_left_out, 76);
	assert_int_equal(list[0].cap, 1024);
	nt_share_release(&share);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cap_is_told_once_and_again_after_a_clear_minute),
		cmocka_unit_test(the_owner_with_the_most_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
