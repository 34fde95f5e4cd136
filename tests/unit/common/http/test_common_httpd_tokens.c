/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tokens of the HTTP server: scopes, failures, and the file that holds them. */
#include <sys/stat.h>

#include "common/http/token.h"
#include "common/system/file.h"
#include "tests/unit/common/httpd_echo.h"

static int set_up_tokens(void **state)
{
	static const char tokens[] = "# two people\n"
				     "administrator-0123456789\n"
				     "  reader-0123456789ab read # may look\n";
	struct nt_httpd_options with = options();

	with.token_file = token_file;
	with.max_auth_failures = 3;
	return set_up_files(state) ||
	       nt_file_create(token_file, 0600, tokens, sizeof(tokens) - 1) < 0 || start(&with);
}

/* ---- tokens -------------------------------------------------------------------------------------- */

#define ADMIN "Authorization: Bearer administrator-0123456789\r\n"
#define READ  "Authorization: Bearer reader-0123456789ab\r\n"

static void a_token_opens_what_its_scope_covers(void **state)
{
	uint16_t port = nt_httpd_port(httpd);

	(void)state;
	check(get("/open", ""), 200, NULL);
	check(get("/things/a", ADMIN), 200, NULL);
	check(get("/things/a", READ), 200, NULL);
	check(get("/things/a", "Authorization: bearer  reader-0123456789ab\r\n"), 200, NULL);
	check(http_request(port, "POST", "/things/a", ADMIN, ""), 200, NULL);
	check(http_request(port, "POST", "/things/a", READ, ""), 403, "scope_read");
}

static void without_a_valid_token_it_is_401_and_after_many_429(void **state)
{
	struct nt_httpd_stats stats;

	(void)state;
	{
		http_auto struct http_reply reply = get("/things/a", "");

		assert_int_equal(reply.status, 401);
		assert_true(http_has(&reply, "WWW-Authenticate: Bearer"));
		assert_non_null(strstr(reply.body, "no_token"));
	}
	check(get("/things/a", "Authorization: Bearer administrator-0123456788\r\n"), 401,
	      "invalid_token");
	check(get("/things/a", "Authorization: Basic administrator-0123456789\r\n"), 401,
	      "invalid_token");
	{
		http_auto struct http_reply reply = get("/things/a", "Authorization: Bearer x\r\n");

		assert_int_equal(reply.status, 429);
		assert_true(http_has(&reply, "Retry-After: "));
	}
	/* A client with a token is served beside a client of the same address without one. */
	check(get("/things/a", READ), 200, NULL);
	nt_httpd_stats(httpd, &stats);
	assert_int_equal(stats.auth_failures, 3);
	assert_int_equal(stats.auth_limited, 1);
}

static void a_refused_body_is_not_kept(void **state)
{
	char body[90];

	(void)state;
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	check(http_request(nt_httpd_port(httpd), "POST", "/things/a", "", body), 401, "no_token");
}

/* ---- tokens as files ----------------------------------------------------------------------------- */

static void a_missing_token_file_is_made_for_its_owner_alone(void **state)
{
	struct nt_httpd_options with = options();
	nt_autofree char *token = NULL;
	char header[200];
	struct stat st;

	(void)state;
	with.token_file = token_file;
	assert_int_equal(start(&with), 0);
	assert_int_equal(stat(token_file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(nt_token_read(token_file, &token), 0);
	assert_int_equal(strlen(token), 64);
	(void)snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n", token);
	check(get("/things/a", header), 200, NULL);
	check(get("/things/a", ""), 401, "no_token");
}

static void tokens_that_are_not_those_of_the_file_are_counted(void **state)
{
	static const char tokens[] = "old-token-0123456789\n";
	struct nt_httpd_options with = options();
	struct nt_httpd_stats stats;

	(void)state;
	assert_int_equal(nt_file_create(token_file, 0600, tokens, sizeof(tokens) - 1), 0);
	with.token_file = token_file;
	assert_int_equal(start(&with), 0);
	assert_int_equal(unlink(token_file), 0);
	nt_httpd_stats(httpd, &stats);
	assert_true(stats.tokens_are_old);
}

#define TEST_TOKENS(fn) cmocka_unit_test_setup_teardown(fn, set_up_tokens, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_TOKENS(a_token_opens_what_its_scope_covers),
		TEST_TOKENS(without_a_valid_token_it_is_401_and_after_many_429),
		TEST_TOKENS(a_refused_body_is_not_kept),
		TEST_FILES(a_missing_token_file_is_made_for_its_owner_alone),
		TEST_FILES(tokens_that_are_not_those_of_the_file_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
