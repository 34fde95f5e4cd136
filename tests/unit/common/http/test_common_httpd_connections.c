/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Connections of the HTTP server: slow ones, too many of them, several requests on one. */
#include "common/system/clock.h"
#include "tests/unit/common/httpd_echo.h"

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
/* Each of the server's threads accepts connections in its own time. */
static void wait_for_connections(uint64_t count)
{
	struct nt_httpd_stats stats;

	do
		nt_httpd_stats(httpd, &stats);
	while (stats.connections_now != count);
}

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
	wait_for_connections(4);
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
	wait_for_connections(0);
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
	wait_for_connections(8);
	check(get("/vital", ""), 200, NULL);
	check(get("/open", ""), 503, "busy");
	for (int i = 0; i < 8; i++)
		assert_int_equal(close(all[i]), 0);
}

/* Begins to read a large reply, and reads no further. */
static int read_slowly(void)
{
	static const char request[] = "GET /large HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
	int fd = http_connect(nt_httpd_port(httpd));
	char byte;

	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	return fd;
}

static void replies_that_are_not_read_do_not_fill_the_memory(void **state)
{
	struct nt_httpd_options with = options();
	nt_autoclose int slow = -1;

	(void)state;
	with.max_replies_bytes = 3 * (uint64_t)LARGE_BYTES; /* an address: one of them */
	assert_int_equal(start(&with), 0);
	slow = read_slowly();
	for (int i = 0; i < 2; i++) {
		http_auto struct http_reply reply = get("/large", "");

		assert_int_equal(reply.status, 503);
		assert_true(http_has(&reply, "Retry-After: 5"));
		assert_non_null(strstr(reply.body, "\"busy\""));
	}
	check(get("/open", ""), 200, NULL); /* small ones are always sent */
	{
		http_auto struct http_reply rest = http_receive(slow);
		http_auto struct http_reply reply = {0};

		assert_true(rest.text.len > LARGE_BYTES);
		wait_for_connections(0);
		reply = get("/large", "");
		assert_int_equal(reply.status, 200);
	}
	/* Nor do those of clients that go away. */
	assert_int_equal(close(read_slowly()), 0);
	wait_for_connections(0);
	check(get("/large", ""), 200, NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FILES(a_header_that_drips_is_cut_off),
		TEST_FILES(a_body_that_drips_is_cut_off),
		TEST_FILES(while_all_connections_are_taken_only_vital_routes_are_answered),
		TEST_FILES(slow_clients_in_reserved_slots_do_not_keep_a_probe_out),
		TEST_FILES(beyond_its_share_an_address_gets_vital_routes_alone),
		TEST_FILES(replies_that_are_not_read_do_not_fill_the_memory),
		TEST(a_connection_serves_several_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
