/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/token.h"
#include "tests/unit/http.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], token_file[SCRATCH_BYTES + 8];
static struct nt_httpd *httpd;

/* What the request was: "segment|query|length of the body". */
static int echo(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const char *q = nt_httpd_query(request, "q");
	size_t len;

	assert_ptr_equal(data, &httpd);
	(void)nt_httpd_body(request, &len);
	return nt_buf_printf(&reply->body, "%s|%s|%zu", nt_httpd_segment(request, 0), q ? q : "-",
			     len);
}

static int tagged(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	(void)snprintf(reply->etag, sizeof(reply->etag), "v1");
	return nt_buf_printf(&reply->body, "tagged");
}

static int broken(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	assert_int_equal(nt_buf_printf(&reply->body, "half an answer"), 0);
	return -EIO;
}

static const struct nt_httpd_route routes[] = {
	{"GET", "/open", NT_HTTPD_OPEN, "text/plain; charset=utf-8", "q", echo},
	{"GET", "/vital", NT_HTTPD_OPEN, "text/plain", NULL, echo, true},
	{"GET", "/things/{id}", NT_HTTPD_READ, "text/plain", "q limit", echo},
	{"POST", "/things/{id}", NT_HTTPD_ADMIN, "text/plain", NULL, echo},
	{"GET", "/tagged", NT_HTTPD_OPEN, "text/plain", NULL, tagged},
	{"GET", "/broken", NT_HTTPD_OPEN, "text/plain", NULL, broken},
};

static struct nt_httpd_options options(void)
{
	return (struct nt_httpd_options){
		.listen = "127.0.0.1:0",
		.route = routes,
		.routes = sizeof(routes) / sizeof(routes[0]),
		.data = &httpd,
		.max_body_bytes = 100,
	};
}

static int start(const struct nt_httpd_options *with)
{
	struct nt_httpd_error error;
	int r = nt_httpd_start(with, &httpd, &error);

	if (r < 0)
		print_message("%s\n", error.text);
	return r;
}

static int set_up_files(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(token_file, sizeof(token_file), "%s/token", dir);
	return 0;
}

static int set_up(void **state)
{
	struct nt_httpd_options with = options();

	return set_up_files(state) || start(&with);
}

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

static int tear_down(void **state)
{
	(void)state;
	nt_httpd_stop(httpd);
	httpd = NULL;
	scratch_remove(dir);
	return 0;
}

static struct http_reply get(const char *target, const char *headers)
{
	return http_request(nt_httpd_port(httpd), "GET", target, headers, NULL);
}

/* The status, and in a problem its code. */
static void check(struct http_reply reply, int status, const char *code)
{
	http_auto struct http_reply own = reply;

	assert_int_equal(own.status, status);
	assert_true(http_has(&own, "X-Request-Id: "));
	if (!code)
		return;
	assert_true(http_has(&own, "Content-Type: application/problem+json\r\n"));
	assert_non_null(own.body);
	assert_non_null(strstr(own.body, code));
}

/* ---- targets ------------------------------------------------------------------------------------- */

static void a_handler_gets_decoded_segments_and_parameters(void **state)
{
	http_auto struct http_reply reply = get("/things/a%2Fb%20c?q=%C3%BC+x%26", "");

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "a/b c|ü x&|0");
	assert_true(http_has(&reply, "Content-Type: text/plain\r\n"));
}

static void a_path_that_is_not_there_is_404(void **state)
{
	(void)state;
	check(get("/", ""), 404, "no_such_path");
	check(get("/things", ""), 404, "no_such_path");
	check(get("/things/", ""), 404, "no_such_path");
	check(get("/things/a/b", ""), 404, "no_such_path");
	check(get("/open/", ""), 404, "no_such_path");
	check(get("//open", ""), 404, "no_such_path");
}

static void a_target_that_is_no_text_is_400(void **state)
{
	(void)state;
	check(get("/things/%00", ""), 400, "bad_target");
	check(get("/things/%zz", ""), 400, "bad_target");
	check(get("/things/%ff", ""), 400, "bad_target");
	check(get("/things/a?q=%0a", ""), 400, "bad_target");
	check(get("/things/a?q=1&q=2", ""), 400, "bad_target");
}

static void an_unknown_parameter_is_400_and_the_known_ones_are_named(void **state)
{
	http_auto struct http_reply reply = get("/things/a?lim=1", "");

	(void)state;
	assert_int_equal(reply.status, 400);
	assert_non_null(strstr(reply.body, "unknown_parameter"));
	assert_non_null(strstr(reply.body, "q limit"));
}

static void an_absolute_target_is_served(void **state)
{
	(void)state;
	check(get("http://elsewhere:80/open", ""), 200, NULL);
}

/* The request as it is, with what may hold a NUL. */
static struct http_reply exchange(const void *request, size_t len)
{
	return http_exchange(nt_httpd_port(httpd), request, len);
}

#define EXCHANGE(text) exchange(text, sizeof(text) - 1)
#define END            "Host: t\r\nConnection: close\r\n\r\n"

static void a_nul_byte_in_the_target_is_400(void **state)
{
	(void)state;
	check(EXCHANGE("GET /open\0 HTTP/1.1\r\n" END), 400, "bad_target");
	check(EXCHANGE("GET /open\0/more HTTP/1.1\r\n" END), 400, "bad_target");
	check(EXCHANGE("GET /open?q=1\0 HTTP/1.1\r\n" END), 400, "bad_target");
	check(EXCHANGE("GET \0/open HTTP/1.1\r\n" END), 400, "bad_target");
	check(get("/open%00", ""), 400, "bad_target");
	check(EXCHANGE("GET /open?q=1 HTTP/1.1\r\n" END), 200, NULL);
}

static void a_target_whose_host_cannot_be_is_400(void **state)
{
	static const char *const bad[] = {"http:///open",           "http://user@test/open",
					  "http://test:99999/open", "http://te<st/open",
					  "http://[::1/open",       "http://[]/open"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(get(bad[i], ""), 400, "bad_target");
	check(get("http://[::1]:80/open", ""), 200, NULL);
}

static void a_target_over_the_cap_is_414_and_headers_are_431(void **state)
{
	char target[6000], header[24000];

	(void)state;
	memset(target, 'a', sizeof(target) - 1);
	target[0] = '/';
	target[sizeof(target) - 1] = '\0';
	check(get(target, ""), 414, "target_too_long");
	memset(header, 'a', sizeof(header) - 1);
	memcpy(header, "X-Long: ", 8);
	memcpy(header + sizeof(header) - 3, "\r\n", 3);
	check(get("/open", header), 431, "headers_too_large");
}

/* ---- methods ------------------------------------------------------------------------------------- */

static void head_is_get_without_a_body(void **state)
{
	http_auto struct http_reply reply =
		http_request(nt_httpd_port(httpd), "HEAD", "/open", "", NULL);

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_true(http_has(&reply, "Content-Length: 4\r\n"));
	assert_string_equal(reply.body, "");
}

static void another_method_is_405_with_those_that_are_allowed(void **state)
{
	static const char *const methods[] = {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		http_auto struct http_reply reply =
			http_request(nt_httpd_port(httpd), methods[i], "/things/a", "", NULL);

		assert_int_equal(reply.status, 405);
		assert_true(http_has(&reply, "Allow: GET, HEAD, POST\r\n"));
	}
}

/* ---- framing ------------------------------------------------------------------------------------- */

#define POST  "POST /things/a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
#define CHUNK "\r\n2\r\n{}\r\n0\r\n\r\n"

static void a_body_whose_end_can_be_read_in_two_ways_is_400(void **state)
{
	(void)state;
	check(EXCHANGE(POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" CHUNK), 400,
	      "bad_header");
	check(EXCHANGE(POST "Transfer-Encoding: chunked\r\ncontent-length: 2\r\n" CHUNK), 400,
	      "bad_header");
	check(EXCHANGE(POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "), 400,
	      "bad_header");
	check(EXCHANGE(POST "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}"), 400,
	      "bad_header");
	check(EXCHANGE(POST "Transfer-Encoding: chunked\r\n" CHUNK), 200, NULL);
	check(EXCHANGE(POST "Content-Length: 2\r\n\r\n{}"), 200, NULL);
}

static void a_transfer_encoding_other_than_chunked_is_400(void **state)
{
	(void)state;
	check(EXCHANGE(POST "Transfer-Encoding: gzip\r\n" CHUNK), 400, "bad_header");
	check(EXCHANGE(POST "Transfer-Encoding: gzip, chunked\r\n" CHUNK), 400, "bad_header");
	check(EXCHANGE(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" CHUNK),
	      400, "bad_header");
	check(EXCHANGE("POST /things/a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" CHUNK), 400,
	      "bad_header");
}

static void two_hosts_or_one_that_cannot_be_are_400(void **state)
{
	(void)state;
	check(get("/open", "Host: other\r\n"), 400, "bad_header");
	check(EXCHANGE("GET /open HTTP/1.1\r\nConnection: close\r\nHost: a b\r\n\r\n"), 400,
	      "bad_header");
	check(EXCHANGE("GET /open HTTP/1.1\r\nConnection: close\r\nHost:\r\n\r\n"), 200, NULL);
	check(EXCHANGE("GET /open HTTP/1.1\r\nConnection: close\r\nHost: [::1]:9480\r\n\r\n"), 200,
	      NULL);
}

/* ---- bodies and types ---------------------------------------------------------------------------- */

static void a_body_reaches_the_handler(void **state)
{
	http_auto struct http_reply reply =
		http_request(nt_httpd_port(httpd), "POST", "/things/a",
			     "Content-Type: application/json; charset=utf-8\r\n", "{\"a\": 1}");

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "a|-|8");
}

static void a_body_over_the_cap_is_413(void **state)
{
	char body[102];

	(void)state;
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	check(http_request(nt_httpd_port(httpd), "POST", "/things/a", "", body), 413,
	      "body_too_large");
	body[100] = '\0';
	check(http_request(nt_httpd_port(httpd), "POST", "/things/a", "", body), 200, NULL);
	{
		/* A length that is no number is libmicrohttpd's own to refuse. */
		http_auto struct http_reply reply =
			http_request(nt_httpd_port(httpd), "POST", "/things/a",
				     "Content-Length: 99999999999999999999\r\n", NULL);

		assert_int_equal(reply.status, 413);
	}
}

static void a_body_over_the_cap_in_chunks_is_413(void **state)
{
	static const char chunks[] =
		"POST /things/a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
		"Transfer-Encoding: chunked\r\n\r\n"
		"40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n"
		"40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n"
		"0\r\n\r\n";
	struct nt_httpd_stats stats;

	(void)state;
	check(http_exchange(nt_httpd_port(httpd), chunks, sizeof(chunks) - 1), 413,
	      "body_too_large");
	nt_httpd_stats(httpd, &stats);
	assert_int_equal(stats.bodies_too_large, 1);
}

static void a_body_that_is_not_json_is_415(void **state)
{
	(void)state;
	check(http_request(nt_httpd_port(httpd), "POST", "/things/a",
			   "Content-Type: text/plain\r\n", "x"),
	      415, "not_json");
	check(http_request(nt_httpd_port(httpd), "POST", "/things/a",
			   "Content-Type: application/jsonish\r\n", "x"),
	      415, "not_json");
}

static void an_answer_that_is_not_accepted_is_406(void **state)
{
	(void)state;
	check(get("/open", "Accept: text/html\r\n"), 406, "not_acceptable");
	check(get("/open", "Accept: text/html;q=0.9, text/plain;q=0\r\n"), 406, "not_acceptable");
	check(get("/open", "Accept: text/html, TEXT/plain;q=0.5\r\n"), 200, NULL);
	check(get("/open", "Accept: text/*\r\n"), 200, NULL);
	check(get("/open", "Accept: image/png, */*;q=0.1\r\n"), 200, NULL);
}

/* ---- answers ------------------------------------------------------------------------------------- */

static void a_known_etag_is_304(void **state)
{
	http_auto struct http_reply reply = get("/tagged", "If-None-Match: W/\"v0\", \"v1\"\r\n");

	(void)state;
	assert_int_equal(reply.status, 304);
	assert_true(http_has(&reply, "ETag: \"v1\"\r\n"));
	assert_string_equal(reply.body, "");
	check(get("/tagged", "If-None-Match: \"v0\"\r\n"), 200, NULL);
	check(get("/tagged", "If-None-Match: *\r\n"), 304, NULL);
}

static void a_handler_that_fails_is_500_and_counted(void **state)
{
	http_auto struct http_reply reply = get("/broken", "");
	struct nt_httpd_stats stats;

	(void)state;
	assert_int_equal(reply.status, 500);
	assert_null(strstr(reply.body, "half"));
	nt_httpd_stats(httpd, &stats);
	assert_int_equal(stats.handler_errors, 1);
	assert_int_equal(stats.requests[5], 1);
}

static void request_ids_differ(void **state)
{
	http_auto struct http_reply one = get("/open", ""), other = get("/open", "");
	const char *id = strstr(one.head, "X-Request-Id: ");

	(void)state;
	assert_non_null(id);
	assert_null(strstr(other.head, strndupa(id, 30)));
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
	/* Who has a token is not shut out by somebody beside him who has none. */
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

/* ---- connections --------------------------------------------------------------------------------- */

/* Sends a byte each 100 ms, which is never idle, until the other side has closed. */
static void drip(int fd)
{
	const struct timeval pause = {.tv_usec = 100000};
	char byte;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof(pause));
	while (send(fd, "G", 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) != 0)
		continue;
	assert_int_equal(close(fd), 0);
}

static void is_reaped(uint64_t times)
{
	struct nt_httpd_stats stats;

	nt_httpd_stats(httpd, &stats);
	assert_int_equal(stats.reaped, times);
	check(get("/open", ""), 200, NULL);
}

static void a_header_that_drips_is_cut_off(void **state)
{
	struct nt_httpd_options with = options();

	(void)state;
	with.header_timeout_ns = NT_SECOND / 2;
	with.request_timeout_ns = NT_MINUTE;
	assert_int_equal(start(&with), 0);
	drip(http_connect(nt_httpd_port(httpd)));
	is_reaped(1);
}

static void a_body_that_drips_is_cut_off(void **state)
{
	static const char head[] = "POST /things/a HTTP/1.1\r\nHost: t\r\n"
				   "Content-Length: 99\r\n\r\n";
	struct nt_httpd_options with = options();
	int fd;

	(void)state;
	with.header_timeout_ns = NT_MINUTE;
	with.request_timeout_ns = NT_SECOND / 2;
	assert_int_equal(start(&with), 0);
	fd = http_connect(nt_httpd_port(httpd));
	assert_int_equal(send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL), sizeof(head) - 1);
	drip(fd);
	is_reaped(1);
}

/* All ordinary connections are taken by clients that send nothing. */
static void while_all_connections_are_taken_only_vital_routes_are_answered(void **state)
{
	struct nt_httpd_options with = options();
	struct nt_httpd_stats stats;
	int all[4];

	(void)state;
	with.max_connections = 4;
	with.header_timeout_ns = NT_MINUTE;
	assert_int_equal(start(&with), 0);
	for (int i = 0; i < 4; i++)
		all[i] = http_connect(nt_httpd_port(httpd));
	for (int i = 0; i < 100; i++) {
		http_auto struct http_reply reply = get("/vital", "");

		assert_int_equal(reply.status, 200);
	}
	{
		http_auto struct http_reply reply = get("/open", "");

		assert_int_equal(reply.status, 503);
		assert_true(http_has(&reply, "Retry-After: "));
		assert_true(http_has(&reply, "Connection: close"));
		assert_non_null(strstr(reply.body, "\"busy\""));
	}
	check(http_request(nt_httpd_port(httpd), "POST", "/things/a", "", "{}"), 503, "busy");
	nt_httpd_stats(httpd, &stats);
	assert_int_equal(stats.over_limit, 102);
	for (int i = 0; i < 4; i++)
		assert_int_equal(close(all[i]), 0);
	/* The server learns of it in its own time. */
	do
		nt_httpd_stats(httpd, &stats);
	while (stats.connections_now);
	check(get("/open", ""), 200, NULL);
}

static void slow_clients_in_reserved_slots_do_not_keep_a_probe_out(void **state)
{
	struct nt_httpd_options with = options();
	struct nt_httpd_stats stats;
	int all[400];

	(void)state;
	with.max_connections = 1;
	with.header_timeout_ns = NT_MINUTE;
	assert_int_equal(start(&with), 0);
	for (int i = 0; i < 400; i++)
		all[i] = http_connect(nt_httpd_port(httpd));
	check(get("/vital", ""), 200, NULL);
	nt_httpd_stats(httpd, &stats);
	assert_true(stats.evicted > 0);
	for (int i = 0; i < 400; i++)
		assert_int_equal(close(all[i]), 0);
}

static void beyond_its_share_an_address_gets_vital_routes_alone(void **state)
{
	struct nt_httpd_options with = options();
	int all[8];

	(void)state;
	with.max_connections_per_ip = 8;
	with.header_timeout_ns = NT_MINUTE;
	assert_int_equal(start(&with), 0);
	for (int i = 0; i < 8; i++)
		all[i] = http_connect(nt_httpd_port(httpd));
	check(get("/vital", ""), 200, NULL);
	check(get("/open", ""), 503, "busy");
	for (int i = 0; i < 8; i++)
		assert_int_equal(close(all[i]), 0);
}

static void a_connection_serves_several_requests(void **state)
{
	static const char two[] = "GET /open?q=1 HTTP/1.1\r\nHost: t\r\n\r\n"
				  "GET /open?q=2 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
	http_auto struct http_reply reply =
		http_exchange(nt_httpd_port(httpd), two, sizeof(two) - 1);

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "|1|0HTTP/1.1 200 OK"));
	assert_non_null(strstr(reply.body, "|2|0"));
}

/* ---- starting ------------------------------------------------------------------------------------ */

static void refused_with(const struct nt_httpd_options *with, int want, const char *why)
{
	struct nt_httpd_error error;

	assert_int_equal(nt_httpd_start(with, &httpd, &error), want);
	assert_null(httpd);
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void an_address_that_cannot_be_is_refused_in_words(void **state)
{
	static const char *const bad[] = {"", "9480", "127.0.0.1", "127.0.0.1:", ":1:70000", ":80"};
	struct nt_httpd_options with = options();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		with.listen = bad[i];
		refused_with(&with, -EINVAL, "no address to listen on");
	}
}

static void a_port_in_use_is_refused_in_words(void **state)
{
	struct nt_httpd_options with = options();
	struct nt_httpd *first;
	char text[64];

	(void)state;
	assert_int_equal(start(&with), 0);
	first = nt_take(httpd);
	(void)snprintf(text, sizeof(text), "127.0.0.1:%u", nt_httpd_port(first));
	with.listen = text;
	refused_with(&with, -EADDRINUSE, text + 10);
	nt_httpd_stop(first);
}

static void tls_needs_both_files_and_they_must_be_there(void **state)
{
	struct nt_httpd_options with = options();

	(void)state;
	with.tls_cert_file = "/no/such/cert.pem";
	refused_with(&with, -EINVAL, "both");
	with.tls_key_file = "/no/such/key.pem";
	refused_with(&with, -ENOENT, "/no/such/cert.pem");
}

#define TEST(fn)        cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
#define TEST_TOKENS(fn) cmocka_unit_test_setup_teardown(fn, set_up_tokens, tear_down)
#define TEST_FILES(fn)  cmocka_unit_test_setup_teardown(fn, set_up_files, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_handler_gets_decoded_segments_and_parameters),
		TEST(a_path_that_is_not_there_is_404),
		TEST(a_target_that_is_no_text_is_400),
		TEST(an_unknown_parameter_is_400_and_the_known_ones_are_named),
		TEST(an_absolute_target_is_served),
		TEST(a_nul_byte_in_the_target_is_400),
		TEST(a_target_whose_host_cannot_be_is_400),
		TEST(a_target_over_the_cap_is_414_and_headers_are_431),
		TEST(head_is_get_without_a_body),
		TEST(another_method_is_405_with_those_that_are_allowed),
		TEST(a_body_whose_end_can_be_read_in_two_ways_is_400),
		TEST(a_transfer_encoding_other_than_chunked_is_400),
		TEST(two_hosts_or_one_that_cannot_be_are_400),
		TEST(a_body_reaches_the_handler),
		TEST(a_body_over_the_cap_is_413),
		TEST(a_body_over_the_cap_in_chunks_is_413),
		TEST(a_body_that_is_not_json_is_415),
		TEST(an_answer_that_is_not_accepted_is_406),
		TEST(a_known_etag_is_304),
		TEST(a_handler_that_fails_is_500_and_counted),
		TEST(request_ids_differ),
		TEST_TOKENS(a_token_opens_what_its_scope_covers),
		TEST_TOKENS(without_a_valid_token_it_is_401_and_after_many_429),
		TEST_TOKENS(a_refused_body_is_not_kept),
		TEST_FILES(a_missing_token_file_is_made_for_its_owner_alone),
		TEST_FILES(tokens_that_are_not_those_of_the_file_are_counted),
		TEST_FILES(a_header_that_drips_is_cut_off),
		TEST_FILES(a_body_that_drips_is_cut_off),
		TEST_FILES(while_all_connections_are_taken_only_vital_routes_are_answered),
		TEST_FILES(slow_clients_in_reserved_slots_do_not_keep_a_probe_out),
		TEST_FILES(beyond_its_share_an_address_gets_vital_routes_alone),
		TEST(a_connection_serves_several_requests),
		TEST_FILES(an_address_that_cannot_be_is_refused_in_words),
		TEST_FILES(a_port_in_use_is_refused_in_words),
		TEST_FILES(tls_needs_both_files_and_they_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
