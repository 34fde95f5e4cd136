/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sessions of the HTTP server: cookies, CSRF tokens, requests of other sites. */
#include "common/http/event_ring.h"
#include "common/http/session.h"
#include "common/system/file.h"
#include "tests/unit/common/httpd_echo.h"

#include <time.h>

static struct nt_event_ring *ring;

static int begin_session(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	struct nt_httpd_session session;
	int r = nt_httpd_session_begin(request, reply, &session);

	(void)data;
	if (r == -EACCES)
		return nt_httpd_problem(reply, request, 403, "cookie_not_accepted", "no");
	return r < 0 ? r : nt_buf_printf(&reply->body, "%d %s", session.scope, session.csrf);
}

static int get_session(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	struct nt_httpd_session session;

	(void)data;
	if (nt_httpd_session_get(request, &session) < 0)
		return nt_httpd_problem(reply, request, 404, "no_session", "none");
	return nt_buf_printf(&reply->body, "%s %s", nt_httpd_identity(request)->name, session.csrf);
}

static int end_session(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	(void)data;
	return nt_httpd_session_end(request, reply);
}

static int stream(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	reply->stream = (struct nt_event_wish){.is_wanted = true};
	return 0;
}

static const struct nt_httpd_route session_routes[] = {
	{"POST", "/session", NT_HTTPD_READ, "text/plain", NULL, begin_session},
	{"GET", "/session", NT_HTTPD_READ, "text/plain", NULL, get_session},
	{"DELETE", "/session", NT_HTTPD_READ, "text/plain", NULL, end_session},
	{"GET", "/things/{id}", NT_HTTPD_READ, "text/plain", NULL, echo},
	{"POST", "/things/{id}", NT_HTTPD_ADMIN, "text/plain", NULL, echo},
	{"GET", "/events", NT_HTTPD_READ, "text/event-stream", NULL, stream},
	{"GET", "/page", NT_HTTPD_OPEN, "text/html; charset=utf-8", NULL, echo},
	{"POST", "/notes", NT_HTTPD_READ, "text/plain", NULL, echo},
};

static const char tokens[] = "administrator-0123456789 admin alice\n"
			     "reader-0123456789ab read\n";

static int set_up_sessions(void **state)
{
	struct nt_httpd_options with = options();

	with.route = session_routes;
	with.routes = sizeof(session_routes) / sizeof(session_routes[0]);
	with.token_file = token_file;
	with.stream_ping_ns = with.stream_life_ns = 10 * NT_MINUTE;
	if (nt_event_ring_new(NULL, &ring) < 0)
		return -1;
	with.events = ring;
	return set_up_files(state) ||
	       nt_file_create(token_file, 0600, tokens, sizeof(tokens) - 1) < 0 || start(&with);
}

static int tear_down_sessions(void **state)
{
	int r = tear_down(state);

	nt_event_ring_free(ring);
	ring = NULL;
	return r;
}

#define ADMIN "Authorization: Bearer administrator-0123456789\r\n"
#define READ  "Authorization: Bearer reader-0123456789ab\r\n"

/* A client with a session: header lines for its requests. */
struct browser {
	char cookie[128], csrf[128];
};

static struct browser log_in(const char *token)
{
	http_auto struct http_reply reply =
		http_request(nt_httpd_port(httpd), "POST", "/session", token, "");
	static const char name[] = "\r\nSet-Cookie: neutracer_session=";
	const char *cookie = strstr(reply.head, name);
	struct browser browser;

	assert_int_equal(reply.status, 200);
	assert_non_null(cookie);
	cookie += sizeof(name) - 1;
	assert_int_equal(strspn(cookie, "0123456789abcdef"), 64);
	assert_int_equal(strncmp(cookie + 64, "; Path=/; HttpOnly; SameSite=Strict\r\n", 37), 0);
	(void)snprintf(browser.cookie, sizeof(browser.cookie),
		       "Cookie: neutracer_session=%.64s\r\n", cookie);
	(void)snprintf(browser.csrf, sizeof(browser.csrf), "X-CSRF-Token: %.64s\r\n",
		       reply.body + 2);
	return browser;
}

/* Sends up to four pieces of a header. */
static struct http_reply ask(const char *method, const char *target, const char *one,
			     const char *two, const char *three)
{
	char headers[1024];

	(void)snprintf(headers, sizeof(headers), "%s%s%s", one, two, three);
	return http_request(nt_httpd_port(httpd), method, target, headers,
			    strcmp(method, "GET") != 0 ? "" : NULL);
}

static void a_token_is_exchanged_for_a_cookie(void **state)
{
	struct browser browser = log_in(ADMIN);

	(void)state;
	check(ask("GET", "/things/a", browser.cookie, "", ""), 200, NULL);
	{
		http_auto struct http_reply reply = ask("GET", "/session", browser.cookie, "", "");

		assert_int_equal(strncmp(reply.body, "alice ", 6), 0);
		assert_int_equal(strncmp(reply.body + 6, browser.csrf + 14, 64), 0);
		assert_false(http_has(&reply, "Set-Cookie"));
	}
	check(ask("GET", "/session", ADMIN, "", ""), 404, "no_session");
	check(ask("GET", "/session", "", "", ""), 401, "no_token");
}

static void a_proxy_may_use_the_header_authorization(void **state)
{
	static const char basic[] = "Authorization: Basic cHJveHk6c2VjcmV0\r\n";
	struct browser browser = log_in(ADMIN);

	(void)state;
	check(ask("GET", "/things/a", basic, browser.cookie, ""), 200, NULL);
	check(ask("POST", "/things/a", basic, browser.cookie, ""), 403, "csrf");
	check(ask("POST", "/things/a", basic, browser.cookie, browser.csrf), 200, NULL);
	check(ask("GET", "/things/a", basic, browser.cookie, "Sec-Fetch-Site: cross-site\r\n"), 401,
	      "cross_site");
	check(ask("GET", "/things/a", basic, "", ""), 401, "invalid_token");
	check(ask("GET", "/things/a", "Authorization: Bearer\r\n", browser.cookie, ""), 401,
	      "invalid_token");
}

static void a_write_with_a_cookie_needs_its_csrf_token(void **state)
{
	struct browser browser = log_in(ADMIN), other = log_in(ADMIN);

	(void)state;
	check(ask("POST", "/things/a", browser.cookie, "", ""), 403, "csrf");
	check(ask("POST", "/things/a", browser.cookie, "X-CSRF-Token: \r\n", ""), 403, "csrf");
	check(ask("POST", "/things/a", browser.cookie, other.csrf, ""), 403, "csrf");
	check(ask("POST", "/notes", browser.cookie, "", ""), 403, "csrf");
	check(ask("DELETE", "/session", browser.cookie, "", ""), 403, "csrf");
	check(ask("POST", "/things/a", browser.cookie, browser.csrf, ""), 200, NULL);
	check(ask("POST", "/things/a", ADMIN, "", ""), 200, NULL);
	check(ask("POST", "/things/a", browser.csrf, "", ""), 401, "no_token");
}

static void a_session_of_a_reader_writes_nothing(void **state)
{
	struct browser browser = log_in(READ);

	(void)state;
	check(ask("POST", "/things/a", browser.cookie, browser.csrf, ""), 403, "scope_read");
	check(ask("POST", "/notes", browser.cookie, browser.csrf, ""), 200, NULL);
}

static void another_site_cannot_use_a_cookie(void **state)
{
	static const char *const bad[] = {
		"Sec-Fetch-Site: cross-site\r\n",
		"Sec-Fetch-Site: same-site\r\n",
		"Sec-Fetch-Site: \r\n",
		"Origin: null\r\n",
		"Origin: http://evil.example\r\n",
		"Origin: http://test:81\r\n",
		"Origin: http://test.evil\r\n",
		"Origin: test\r\n",
	};
	static const char *const good[] = {
		"Sec-Fetch-Site: same-origin\r\n",
		"Origin: http://test\r\n",
		"Origin: https://test\r\n", /* a proxy may end TLS */
		"Sec-Fetch-Site: same-origin\r\nOrigin: http://TEST\r\n",
	};
	struct browser browser = log_in(ADMIN);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check(ask("POST", "/things/a", browser.cookie, browser.csrf, bad[i]), 403,
		      "cross_site");
		check(ask("GET", "/things/a", browser.cookie, bad[i], ""), 401, "cross_site");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check(ask("POST", "/things/a", browser.cookie, browser.csrf, good[i]), 200, NULL);
	check(ask("GET", "/things/a", browser.cookie, "Sec-Fetch-Site: none\r\n", ""), 200, NULL);
	check(ask("POST", "/things/a", browser.cookie, browser.csrf, "Sec-Fetch-Site: none\r\n"),
	      403, "cross_site");
}

static void a_token_in_the_request_takes_precedence(void **state)
{
	struct browser browser = log_in(ADMIN);

	(void)state;
	check(ask("POST", "/things/a", READ, browser.cookie, browser.csrf), 403, "scope_read");
	check(ask("GET", "/things/a", "Authorization: Bearer x\r\n", browser.cookie, ""), 401,
	      "invalid_token");
	check(ask("GET", "/things/a", ADMIN, READ, ""), 400, "bad_header");
	check(ask("GET", "/things/a", ADMIN, ADMIN, ""), 400, "bad_header");
}

static void a_session_cannot_be_fixed_or_begun_with_a_cookie(void **state)
{
	static const char fixed[] = "Cookie: neutracer_session="
				    "0123456789abcdef0123456789abcdef"
				    "0123456789abcdef0123456789abcdef\r\n";
	struct browser old = log_in(READ), browser;
	char headers[512];

	(void)state;
	check(ask("GET", "/things/a", fixed, "", ""), 401, "invalid_token");
	(void)snprintf(headers, sizeof(headers), "%s%s", ADMIN, fixed);
	browser = log_in(headers);
	assert_string_not_equal(browser.cookie, fixed);
	check(ask("GET", "/things/a", fixed, "", ""), 401, "invalid_token");
	check(ask("POST", "/session", browser.cookie, browser.csrf, ""), 403,
	      "cookie_not_accepted");

	/* Who logs in again has one session. */
	(void)snprintf(headers, sizeof(headers), "%s%s", ADMIN, old.cookie);
	browser = log_in(headers);
	check(ask("GET", "/things/a", old.cookie, "", ""), 401, "invalid_token");
	check(ask("GET", "/things/a", browser.cookie, "", ""), 200, NULL);
}

static void an_ended_session_is_not_accepted(void **state)
{
	struct browser browser = log_in(READ);

	(void)state;
	{
		http_auto struct http_reply reply =
			ask("DELETE", "/session", browser.cookie, browser.csrf, "");

		assert_true(http_has(&reply, "Set-Cookie: neutracer_session=; Path=/; HttpOnly; "
					     "SameSite=Strict; Max-Age=0\r\n"));
	}
	check(ask("GET", "/things/a", browser.cookie, "", ""), 401, "invalid_token");
}

static void behind_a_proxy_that_ends_tls_the_cookie_is_secure(void **state)
{
	static const char proxy[] = "X-Forwarded-Proto: https\r\n";
	http_auto struct http_reply reply = http_request(nt_httpd_port(httpd), "POST", "/session",
							 "X-Forwarded-Proto: https\r\n" ADMIN, "");
	struct browser browser = log_in(ADMIN);
	char headers[512];

	(void)state;
	assert_non_null(strstr(reply.head, "; HttpOnly; SameSite=Strict; Secure\r\n"));
	(void)snprintf(headers, sizeof(headers), "%s%s", proxy, browser.cookie);
	check(ask("POST", "/things/a", headers, browser.csrf, "Origin: http://test\r\n"), 403,
	      "cross_site");
	check(ask("POST", "/things/a", headers, browser.csrf, "Origin: https://test\r\n"), 200,
	      NULL);
}

static void two_cookies_or_two_headers_of_them_authorize_nothing(void **state)
{
	struct browser browser = log_in(ADMIN);
	char twice[512];

	(void)state;
	(void)snprintf(twice, sizeof(twice), "Cookie: neutracer_session=%.64s; %s",
		       browser.cookie + 26, browser.cookie + 8);
	check(ask("GET", "/things/a", twice, "", ""), 401, "invalid_token");
	check(ask("GET", "/things/a", browser.cookie, browser.cookie, ""), 400, "bad_header");
	(void)snprintf(twice, sizeof(twice), "Cookie: theme=dark; %s", browser.cookie + 8);
	check(ask("GET", "/things/a", twice, "", ""), 200, NULL);
}

static void long_and_many_cookies_are_refused_and_harm_nobody(void **state)
{
	nt_autobuf struct nt_buf cookie = {0};
	struct browser browser = log_in(READ);

	(void)state;
	assert_int_equal(nt_buf_printf(&cookie, "Cookie: "), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(nt_buf_printf(&cookie, "a%d=%d; ", i, i), 0);
	assert_int_equal(nt_buf_printf(&cookie, "neutracer_session=%066d\r\n", 0), 0);
	check(get("/things/a", (const char *)cookie.data), 401, "invalid_token");
	nt_buf_clear(&cookie);
	/* More than libmicrohttpd's memory for a connection holds: it closes the connection. */
	assert_int_equal(nt_buf_printf(&cookie, "Cookie: "), 0);
	for (int i = 0; i < 1200; i++)
		assert_int_equal(nt_buf_printf(&cookie, "a%d=%d; ", i, i), 0);
	assert_int_equal(nt_buf_printf(&cookie, "%s", browser.cookie + 8), 0);
	{
		http_auto struct http_reply reply = get("/things/a", (const char *)cookie.data);

		assert_true(reply.status == 0 || reply.status >= 400);
	}
	nt_buf_clear(&cookie);
	assert_int_equal(nt_buf_printf(&cookie, "Cookie: neutracer_session=%017000d\r\n", 0), 0);
	check(get("/things/a", (const char *)cookie.data), 431, "headers_too_large");
	check(ask("GET", "/things/a", browser.cookie, "", ""), 200, NULL);
}

/* The file is looked at once a second. */
static void a_session_ends_with_its_token(void **state)
{
	static const char reader[] = "reader-0123456789ab read\n";
	struct browser of_alice = log_in(ADMIN), of_reader = log_in(READ);
	struct nt_httpd_stats stats;
	int status = 200;

	(void)state;
	assert_int_equal(unlink(token_file), 0);
	assert_int_equal(nt_file_create(token_file, 0600, reader, sizeof(reader) - 1), 0);
	while (status == 200) {
		http_auto struct http_reply reply =
			ask("GET", "/things/a", of_alice.cookie, "", "");

		status = reply.status;
	}
	assert_int_equal(status, 401);
	check(ask("GET", "/things/a", of_reader.cookie, "", ""), 200, NULL);
	nt_httpd_stats(httpd, &stats);
	assert_int_equal(stats.sessions.now, 1);
	assert_int_equal(stats.sessions.ended, 1);
}

/* Its stream of events. Nothing is read of it yet. */
static int open_stream(const char *headers)
{
	char request[256];
	int fd = http_connect(nt_httpd_port(httpd));
	int n = snprintf(request, sizeof(request), "GET /events HTTP/1.1\r\nHost: t\r\n%s\r\n",
			 headers);

	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	return fd;
}

static uint64_t streams(void)
{
	struct nt_httpd_stats stats;

	nt_httpd_stats(httpd, &stats);
	return stats.streams_now;
}

static void wait_for_streams(uint64_t count)
{
	while (streams() != count)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void a_stream_ends_with_its_session_or_token(void **state)
{
	static const char reader[] = "reader-0123456789ab read\n";
	struct browser one = log_in(ADMIN), other = log_in(ADMIN), of_reader = log_in(READ);
	nt_autoclose int ended = open_stream(one.cookie), of_cookie = open_stream(other.cookie);
	nt_autoclose int of_token = open_stream(ADMIN), kept = open_stream(of_reader.cookie);
	http_auto struct http_reply reply = {0};

	(void)state;
	wait_for_streams(4);
	check(ask("DELETE", "/session", one.cookie, one.csrf, ""), 200, NULL);
	reply = http_receive(ended);
	assert_int_equal(reply.status, 200);
	assert_int_equal(streams(), 3);

	assert_int_equal(unlink(token_file), 0);
	assert_int_equal(nt_file_create(token_file, 0600, reader, sizeof(reader) - 1), 0);
	wait_for_streams(1);
	check(ask("GET", "/things/a", of_reader.cookie, "", ""), 200, NULL);
	assert_int_equal(streams(), 1);
	(void)of_cookie;
	(void)of_token;
	(void)kept;
}

/* ---- protection in the browser ------------------------------------------------------------------ */

static void check_protection(struct http_reply reply, const char *policy)
{
	static const char *const lines[] = {
		"X-Content-Type-Options: nosniff\r\n",
		"Referrer-Policy: no-referrer\r\n",
		"X-Frame-Options: DENY\r\n",
		"Cross-Origin-Resource-Policy: same-origin\r\n",
	};
	http_auto struct http_reply own = reply;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_true(http_has(&own, lines[i]));
	assert_true(http_has(&own, policy));
	assert_false(http_has(&own, "Access-Control-"));
}

static void a_reply_is_not_framed_and_only_a_page_loads_its_own_files(void **state)
{
	static const char nothing[] = "Content-Security-Policy: default-src 'none'; "
				      "frame-ancestors 'none'; base-uri 'none'; "
				      "form-action 'none'\r\n";
	static const char own_files[] =
		"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
		"connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
		"base-uri 'none'; form-action 'none'\r\n";

	(void)state;
	check_protection(get("/page", ""), own_files);
	check_protection(get("/things/a", READ), nothing);
	check_protection(get("/things/a", ""), nothing);
	check_protection(get("/none", "Origin: http://evil.example\r\n"), nothing);
}

#define TEST_SESSIONS(fn) cmocka_unit_test_setup_teardown(fn, set_up_sessions, tear_down_sessions)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_SESSIONS(a_token_is_exchanged_for_a_cookie),
		TEST_SESSIONS(a_proxy_may_use_the_header_authorization),
		TEST_SESSIONS(a_write_with_a_cookie_needs_its_csrf_token),
		TEST_SESSIONS(a_session_of_a_reader_writes_nothing),
		TEST_SESSIONS(another_site_cannot_use_a_cookie),
		TEST_SESSIONS(a_token_in_the_request_takes_precedence),
		TEST_SESSIONS(a_session_cannot_be_fixed_or_begun_with_a_cookie),
		TEST_SESSIONS(an_ended_session_is_not_accepted),
		TEST_SESSIONS(behind_a_proxy_that_ends_tls_the_cookie_is_secure),
		TEST_SESSIONS(two_cookies_or_two_headers_of_them_authorize_nothing),
		TEST_SESSIONS(long_and_many_cookies_are_refused_and_harm_nobody),
		TEST_SESSIONS(a_session_ends_with_its_token),
		TEST_SESSIONS(a_stream_ends_with_its_session_or_token),
		TEST_SESSIONS(a_reply_is_not_framed_and_only_a_page_loads_its_own_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
