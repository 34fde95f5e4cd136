/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/token.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "common/system/file.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], token_file[SCRATCH_BYTES + 8];

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(token_file, sizeof(token_file), "%s/token", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void write_tokens(const char *text)
{
	(void)unlink(token_file);
	assert_int_equal(nt_file_create(token_file, 0600, text, strlen(text)), 0);
}

static int open_tokens(struct nt_tokens **ret_tokens)
{
	struct nt_token_error error;
	int r = nt_tokens_open(token_file, ret_tokens, &error);

	if (r < 0)
		assert_non_null(strstr(error.text, token_file));
	return r;
}

static void a_token_file_with_mistakes_is_refused_by_name(void **state)
{
	static const char *const bad[] = {
		"",
		"# nothing\n\n",
		"short\n",
		"administrator-0123456789 owner\n",
		"administrator-0123456789 read more\n",
		"administrat\001r-0123456789\n",
	};
	struct nt_tokens *tokens = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_tokens(bad[i]);
		assert_int_equal(open_tokens(&tokens), -EINVAL);
		assert_null(tokens);
	}
}

static void more_tokens_than_the_cap_are_refused(void **state)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	nt_autobuf struct nt_buf text = {0};

	(void)state;
	for (int i = 0; i < NT_TOKEN_MAX_COUNT; i++)
		assert_int_equal(nt_buf_printf(&text, "token-0123456789-%d\n", i), 0);
	write_tokens((const char *)text.data);
	assert_int_equal(open_tokens(&tokens), 0);
	assert_int_equal(nt_buf_printf(&text, "token-0123456789-%d\n", 99), 0);
	write_tokens((const char *)text.data);
	assert_int_equal(open_tokens(&(struct nt_tokens *){NULL}), -EINVAL);
}

static enum nt_token_scope scope_of(struct nt_tokens *tokens, const char *token, uint64_t now_ns)
{
	return nt_tokens_check(tokens, token, strlen(token), now_ns);
}

static void a_changed_token_file_counts_within_a_second_and_a_bad_one_not_at_all(void **state)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	uint64_t now_ns = 10 * NT_SECOND;

	(void)state;
	write_tokens("old-token-0123456789\n");
	assert_int_equal(open_tokens(&tokens), 0);
	assert_int_equal(scope_of(tokens, "old-token-0123456789", now_ns), NT_TOKEN_ADMIN);
	write_tokens("new-token-0123456789 read\n");
	assert_int_equal(scope_of(tokens, "old-token-0123456789", now_ns), NT_TOKEN_ADMIN);
	now_ns += NT_SECOND;
	assert_int_equal(scope_of(tokens, "old-token-0123456789", now_ns), NT_TOKEN_NONE);
	assert_int_equal(scope_of(tokens, "new-token-0123456789", now_ns), NT_TOKEN_READ);
	write_tokens("oops\n");
	now_ns += NT_SECOND;
	assert_int_equal(scope_of(tokens, "new-token-0123456789", now_ns), NT_TOKEN_READ);
	assert_int_equal(scope_of(tokens, "oops", now_ns), NT_TOKEN_NONE);
}

static void whether_the_tokens_are_still_those_of_the_file_is_told(void **state)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	uint64_t now_ns = 10 * NT_SECOND;

	(void)state;
	write_tokens("old-token-0123456789\n");
	assert_int_equal(open_tokens(&tokens), 0);
	assert_false(nt_tokens_are_old(tokens, now_ns += NT_SECOND));
	write_tokens("oops\n");
	assert_true(nt_tokens_are_old(tokens, now_ns += NT_SECOND));
	assert_int_equal(scope_of(tokens, "old-token-0123456789", now_ns), NT_TOKEN_ADMIN);
	write_tokens("new-token-0123456789\n");
	assert_false(nt_tokens_are_old(tokens, now_ns += NT_SECOND));
	assert_int_equal(unlink(token_file), 0);
	assert_true(nt_tokens_are_old(tokens, now_ns += NT_SECOND));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_token_file_with_mistakes_is_refused_by_name),
		TEST(more_tokens_than_the_cap_are_refused),
		TEST(a_changed_token_file_counts_within_a_second_and_a_bad_one_not_at_all),
		TEST(whether_the_tokens_are_still_those_of_the_file_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
