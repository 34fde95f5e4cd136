/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests and replies of the HTTP server, and how it starts. */
#include "tests/unit/common/httpd_echo.h"

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
		refused_with(&with, -EINVAL, "invalid listen address");
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
		TEST_FILES(an_address_that_cannot_be_is_refused_in_words),
		TEST_FILES(a_port_in_use_is_refused_in_words),
		TEST_FILES(tls_needs_both_files_and_they_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
