/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/level_target.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void each_form_is_read_and_written(void **state)
{
	static const struct {
		const char *text;
		struct nt_level_target target;
	} cases[] = {
		{"node:gpu-07", {NT_LEVEL_NODE, "gpu-07", 0}},
		{"job:10.0.0.1:29500/run/7", {NT_LEVEL_JOB, "10.0.0.1:29500/run/7", 0}},
		{"rank:10.0.0.1:29500/run/7", {NT_LEVEL_RANK, "10.0.0.1:29500/run", 7}},
		{"rank:k/4294967295", {NT_LEVEL_RANK, "k", UINT32_MAX}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_level_target target;
		char text[NT_LEVEL_TARGET];

		assert_int_equal(nt_level_target_parse(cases[i].text, &target), 0);
		assert_int_equal(target.kind, cases[i].target.kind);
		assert_string_equal(target.name, cases[i].target.name);
		assert_int_equal(target.rank, cases[i].target.rank);
		assert_true(nt_level_target_format(&target, text));
		assert_string_equal(text, cases[i].text);
	}
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"node",
		"node:",
		"job:",
		"rank:",
		"rank:k",
		"rank:k/",
		"rank:/1",
		"rank:k/-1",
		"rank:k/1x",
		"pod:x",
		"Node:x",
		"rank:k/4294967296",
	};
	char longest[NT_LEVEL_TARGET + 1];
	struct nt_level_target target;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(nt_level_target_parse(texts[i], &target), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "node:", 5);
	longest[NT_LEVEL_TARGET] = '\0';
	assert_int_equal(nt_level_target_parse(longest, &target), -EINVAL);
	longest[NT_LEVEL_TARGET - 1] = '\0';
	assert_int_equal(nt_level_target_parse(longest, &target), 0);
}

static void a_text_that_does_not_fit_is_not_written(void **state)
{
	struct nt_level_target target = {.kind = NT_LEVEL_RANK, .rank = UINT32_MAX};
	char text[NT_LEVEL_TARGET];

	(void)state;
	memset(target.name, 'x', sizeof(target.name) - 1);
	assert_false(nt_level_target_format(&target, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_is_read_and_written),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(a_text_that_does_not_fit_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
