/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The web page: what the server itself promises of it. A browser opens it in tests/page/live.py. */
#include "tests/unit/aggregator/api.h"

static struct http_reply fetch(const char *target, const char *headers)
{
	return http_request(nt_api_port(api), "GET", target, headers, NULL);
}

static void has(const struct http_reply *reply, const char *header)
{
	if (!strstr(reply->head, header))
		fail_msg("no '%s' in: %s", header, reply->head);
}

static void the_page_has_a_strict_policy(void **state)
{
	http_auto struct http_reply reply = fetch("/", "");

	(void)state;
	assert_int_equal(reply.status, 200);
	has(&reply, "Content-Type: text/html; charset=utf-8\r\n");
	has(&reply, "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src "
		    "'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
		    "base-uri 'none'; form-action 'none'\r\n");
	has(&reply, "X-Content-Type-Options: nosniff\r\n");
	assert_null(strstr(reply.body, "<script>"));
	assert_null(strstr(reply.body, "<style"));
	assert_null(strstr(reply.body, "style="));
	assert_null(strstr(reply.body, "http://"));
	assert_null(strstr(reply.body, "https://"));
}

/* Serves a file of the page, and all that its text names between the two pieces. */
static void follow(const char *text, const char *before, const char *after, const char *prefix,
		   int depth)
{
	assert_true(depth < 8);
	for (const char *at = strstr(text, before); at; at = strstr(at, before)) {
		char target[128];
		const char *end;

		at += strlen(before);
		end = strstr(at, after);
		assert_non_null(end);
		(void)snprintf(target, sizeof(target), "%s%.*s", prefix, (int)(end - at), at);
		{
			http_auto struct http_reply reply = fetch(target, "");
			const bool is_script = strncmp(end - 3, ".js", 3) == 0;

			if (reply.status != 200)
				fail_msg("%s: status %d", target, reply.status);
			has(&reply, is_script ? "Content-Type: text/javascript; charset=utf-8\r\n"
					      : "Content-Type: text/css; charset=utf-8\r\n");
			if (is_script)
				follow(reply.body, " from \"./", "\"", "/page/", depth + 1);
		}
	}
}

static void every_file_that_the_page_names_is_served(void **state)
{
	http_auto struct http_reply reply = fetch("/", "");

	(void)state;
	follow(reply.body, "href=\"page/", "\"", "/page/", 0);
	follow(reply.body, "src=\"page/", "\"", "/page/", 0);
}

static void an_unchanged_file_is_not_sent_again(void **state)
{
	http_auto struct http_reply reply = fetch("/page/main.js", "");
	const char *etag = strstr(reply.head, "ETag: ");
	char header[256];

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_non_null(etag);
	(void)snprintf(header, sizeof(header), "If-None-Match: %.*s\r\n",
		       (int)strcspn(etag + 6, "\r\n"), etag + 6);
	{
		http_auto struct http_reply again = fetch("/page/main.js", header);
		http_auto struct http_reply other = fetch("/page/dom.js", header);

		assert_int_equal(again.status, 304);
		assert_int_equal(other.status, 200);
	}
}

static void other_files_do_not_exist(void **state)
{
	(void)state;
	check_problem("/page/none.js", 404, "no_such_file");
	check_problem("/page/%2e%2e", 404, "no_such_file");
	check_problem("/page", 404, "no_such_path");
	check_problem("/page/main.js?v=1", 400, "unknown_parameter");
	check_problem("/?next=x", 400, "unknown_parameter");
}

static void the_page_needs_no_token_and_its_data_does(void **state)
{
	char path[SCRATCH_BYTES + 16];

	(void)state;
	nt_api_stop(nt_take(api));
	(void)snprintf(path, sizeof(path), "%s/token", dir);
	assert_int_equal(start((struct nt_api_options){.token_file = path}), 0);
	{
		http_auto struct http_reply page = fetch("/", "");
		http_auto struct http_reply script = fetch("/page/main.js", "");
		http_auto struct http_reply data =
			fetch("/api/v1/jobs/00000000000000a1/timeline", "");

		assert_int_equal(page.status, 200);
		assert_int_equal(script.status, 200);
		assert_int_equal(data.status, 401);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_page_has_a_strict_policy),
		TEST(every_file_that_the_page_names_is_served),
		TEST(an_unchanged_file_is_not_sent_again),
		TEST(other_files_do_not_exist),
		TEST(the_page_needs_no_token_and_its_data_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
