/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/token.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
	static const struct {
		const char *text, *wrong;
	} bad[] = {
		{"", "it holds no token"},
		{"# nothing\n\n", "it holds no token"},
		{"short\n", "line 1: a token has 16"},
		{"# one\n\nadministrator-0123456789 owner\n", "line 3: a scope is"},
		{"# one\nadministrator-0123456789\nreader-0123456789ab read\n"
		 "administrator-0123456789 read a\n",
		 "line 4: the token of line 2 is repeated"},
		{"administrator-0123456789 read my/name\n", "line 1: a name has"},
		{"administrator-0123456789 read a more\n", "line 1: there is more"},
		{"administrator-0123456789\nadministrat\001r-0123456789\n", "line 2: a token has"},
		{"administrator-0123456789 read "
		 "a-name-of-sixty-four-letters-which-is-one-more-than-is-accepted..\n",
		 "line 1: a name has"},
	};
	struct nt_tokens *tokens = NULL;
	struct nt_token_error error;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_tokens(bad[i].text);
		assert_int_equal(nt_tokens_open(token_file, &tokens, &error), -EINVAL);
		assert_null(tokens);
		assert_non_null(strstr(error.text, token_file));
		assert_non_null(strstr(error.text, bad[i].wrong));
	}
}

static void a_pipe_is_refused_before_it_is_opened(void **state)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	struct nt_token_error error;
	struct nt_token_holder holder;

	(void)state;
	(void)unlink(token_file);
	assert_int_equal(mkfifo(token_file, 0600), 0);
	assert_int_equal(nt_tokens_open(token_file, &tokens, &error), -EINVAL);
	assert_non_null(strstr(error.text, "not a regular file"));
	write_tokens("administrator-0123456789\n");
	assert_int_equal(open_tokens(&tokens), 0);
	(void)unlink(token_file);
	assert_int_equal(mkfifo(token_file, 0600), 0);
	assert_true(
		nt_tokens_find(tokens, "administrator-0123456789", 24, 10 * NT_SECOND, &holder));
	assert_true(nt_tokens_are_old(tokens, 10 * NT_SECOND, &error));
	assert_string_equal(error.text, "not a regular file");
}

static void check_holder(struct nt_tokens *tokens, const char *token, enum nt_token_scope scope,
			 const char *name)
{
	struct nt_token_holder holder, same;

	assert_true(nt_tokens_find(tokens, token, strlen(token), 0, &holder));
	assert_int_equal(holder.scope, scope);
	assert_string_equal(holder.name, name);
	assert_true(nt_tokens_find_sum(tokens, holder.sum, 0, &same));
	assert_string_equal(same.name, name);
	holder.sum[0] ^= 1;
	assert_false(nt_tokens_find_sum(tokens, holder.sum, 0, &same));
}

static void a_token_has_the_name_of_its_line(void **state)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;

	(void)state;
	write_tokens("# people\n"
		     "alices-old-token-0123 admin alice # until May\n"
		     "alices-new-token-0123\tadmin \t alice\r\n"
		     "grafanas-token-0123 read grafana.prod_1-2\n"
		     "token-without-name read# is no comment, so this is refused\n");
	assert_int_equal(open_tokens(&(struct nt_tokens *){NULL}), -EINVAL);
	write_tokens("# people\n"
		     "alices-old-token-0123 admin alice # until May\n"
		     "alices-new-token-0123\tadmin \t alice\r\n"
		     "grafanas-token-0123 read grafana.prod_1-2\n"
		     "token-without-name\n");
	assert_int_equal(open_tokens(&tokens), 0);
	check_holder(tokens, "alices-old-token-0123", NT_TOKEN_ADMIN, "alice");
	check_holder(tokens, "alices-new-token-0123", NT_TOKEN_ADMIN, "alice");
	check_holder(tokens, "grafanas-token-0123", NT_TOKEN_READ, "grafana.prod_1-2");
	check_holder(tokens, "token-without-name", NT_TOKEN_ADMIN, "line 5");
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
	struct nt_token_holder holder;

	return nt_tokens_find(tokens, token, strlen(token), now_ns, &holder) ? holder.scope
									     : NT_TOKEN_NONE;
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
	struct nt_token_error why;

	(void)state;
	write_tokens("old-token-0123456789\n");
	assert_int_equal(open_tokens(&tokens), 0);
	assert_false(nt_tokens_are_old(tokens, now_ns += NT_SECOND, NULL));
	write_tokens("new-token-0123456789\noops\n");
	assert_true(nt_tokens_are_old(tokens, now_ns += NT_SECOND, &why));
	assert_non_null(strstr(why.text, "line 2: a token has 16"));
	assert_int_equal(scope_of(tokens, "old-token-0123456789", now_ns), NT_TOKEN_ADMIN);
	write_tokens("new-token-0123456789\n");
	assert_false(nt_tokens_are_old(tokens, now_ns += NT_SECOND, NULL));
	assert_int_equal(unlink(token_file), 0);
	assert_true(nt_tokens_are_old(tokens, now_ns += NT_SECOND, &why));
	assert_string_equal(why.text, "No such file or directory");
}

/* The same inode and time: two changes within a tick of the file system's clock. */
static void a_change_that_leaves_the_time_as_it_was_is_seen(void **state)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	uint64_t now_ns = 10 * NT_SECOND;
	struct timespec times[2];
	struct stat before;
	int fd;

	(void)state;
	write_tokens("old-token-0123456789\n");
	assert_int_equal(stat(token_file, &before), 0);
	assert_int_equal(open_tokens(&tokens), 0);
	fd = open(token_file, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "new", 3), 3);
	times[0] = times[1] = before.st_mtim;
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(scope_of(tokens, "old-token-0123456789", now_ns), NT_TOKEN_NONE);
	assert_int_equal(scope_of(tokens, "new-token-0123456789", now_ns), NT_TOKEN_ADMIN);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_token_file_with_mistakes_is_refused_by_name),
		TEST(a_pipe_is_refused_before_it_is_opened),
		TEST(a_token_has_the_name_of_its_line),
		TEST(more_tokens_than_the_cap_are_refused),
		TEST(a_changed_token_file_counts_within_a_second_and_a_bad_one_not_at_all),
		TEST(a_change_that_leaves_the_time_as_it_was_is_seen),
		TEST(whether_the_tokens_are_still_those_of_the_file_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
