/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams of events: news and pings arrive, ids resume, limits hold, and slow clients are cut off. */
#include "tests/unit/common/httpd_echo.h"

#include <time.h>

#include "common/http/event_ring.h"

static struct nt_event_ring *ring;

static int stream(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)data;
	reply->stream = (struct nt_httpd_stream){
		.is_wanted = true,
		.after = nt_httpd_query(request, "after"),
		.topic = nt_httpd_query(request, "topic"),
	};
	return 0;
}

static const struct nt_httpd_route stream_routes[] = {
	{"GET", "/events", NT_HTTPD_OPEN, "text/event-stream", "after topic", stream},
	{"GET", "/vital", NT_HTTPD_OPEN, "text/plain", NULL, echo, true},
};

static int start_with(uint64_t ping_ns, uint64_t life_ns)
{
	struct nt_httpd_options with = options();

	with.route = stream_routes;
	with.routes = sizeof(stream_routes) / sizeof(stream_routes[0]);
	with.events = ring;
	with.max_streams = 4;
	with.max_streams_per_ip = 3;
	with.stream_ping_ns = ping_ns;
	with.stream_life_ns = life_ns;
	return start(&with);
}

static int set_up_ring(void **state)
{
	return set_up_files(state) ||
	       nt_event_ring_new(&(struct nt_event_ring_options){.max_events = 1 << 16,
								 .max_bytes = 64 << 20},
				 &ring);
}

static int set_up_stream(void **state)
{
	return set_up_ring(state) || start_with(10 * NT_MINUTE, 10 * NT_MINUTE);
}

static int tear_down_stream(void **state)
{
	int r = tear_down(state);

	nt_event_ring_free(ring);
	return r;
}

static void post(const char *data, const char *topic)
{
	assert_int_equal(
		nt_event_ring_post(
			ring, &(struct nt_event){.kind = "job", .topic = {topic}, .data = data}),
		0);
}

static int open_stream(const char *target)
{
	char request[256];
	int fd = http_connect(nt_httpd_port(httpd));
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", target);

	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	return fd;
}

/* Reads until the text is there. What is read stays in the buffer, with a NUL at its end. */
static void read_until(int fd, struct nt_buf *got, const char *text)
{
	for (;;) {
		ssize_t n;

		assert_int_equal(nt_buf_reserve(got, 4097), 0);
		got->data[got->len] = '\0';
		if (strstr((char *)got->data, text))
			return;
		n = recv(fd, got->data + got->len, 4096, 0);
		if (n <= 0)
			print_message("no '%s' in:\n%s\n", text, (char *)got->data);
		assert_true(n > 0);
		got->len += (size_t)n;
	}
}

static struct nt_httpd_stats stats(void)
{
	struct nt_httpd_stats now;

	nt_httpd_stats(httpd, &now);
	return now;
}

static void wait_for_streams(uint64_t count)
{
	while (stats().streams_now != count)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void news_arrive_as_they_happen(void **state)
{
	nt_autobuf struct nt_buf got = {0};
	nt_autoclose int fd = open_stream("/events");

	(void)state;
	read_until(fd, &got, "event: ping\n");
	assert_non_null(strstr((char *)got.data, "HTTP/1.1 200"));
	assert_non_null(strstr((char *)got.data, "Content-Type: text/event-stream\r\n"));
	assert_non_null(strstr((char *)got.data, "retry: 3000\n\n"));
	post("first", NULL);
	read_until(fd, &got, "data: first\n\n");
	post("second", NULL);
	read_until(fd, &got, "data: second\n\n");
}

static void a_stream_resumes_after_the_given_id(void **state)
{
	nt_autobuf struct nt_buf got = {0};
	char id[NT_EVENT_ID_BYTES], target[128];
	nt_autoclose int fd = -1;

	(void)state;
	post("old", NULL);
	post("missed", NULL);
	nt_event_ring_id(ring, 1, id);
	(void)snprintf(target, sizeof(target), "/events?after=%s", id);
	fd = open_stream(target);
	read_until(fd, &got, "data: missed\n\n");
	assert_null(strstr((char *)got.data, "data: old"));
	assert_null(strstr((char *)got.data, "reset"));
}

static void an_unknown_id_is_answered_by_a_reset(void **state)
{
	nt_autobuf struct nt_buf got = {0};
	nt_autoclose int fd = -1;

	(void)state;
	post("old", NULL);
	fd = open_stream("/events?after=0123456789abcdef-7");
	read_until(fd, &got, "event: reset\n");
	post("new", NULL);
	read_until(fd, &got, "data: new\n\n");
	assert_null(strstr((char *)got.data, "data: old"));
}

static void a_topic_filters(void **state)
{
	nt_autobuf struct nt_buf got = {0};
	nt_autoclose int fd = open_stream("/events?topic=mine");

	(void)state;
	read_until(fd, &got, "event: ping\n");
	post("other", "others");
	post("mine", "mine");
	read_until(fd, &got, "data: mine\n\n");
	assert_null(strstr((char *)got.data, "data: other"));
}

static void a_stream_without_news_gets_pings(void **state)
{
	nt_autobuf struct nt_buf got = {0};
	nt_autoclose int fd = -1;
	char *first;

	(void)state;
	assert_int_equal(start_with(NT_SECOND / 20, 10 * NT_MINUTE), 0);
	fd = open_stream("/events");
	read_until(fd, &got, "event: ping\n");
	first = strstr((char *)got.data, "event: ping\n");
	memcpy(first, "Event", 5);
	read_until(fd, &got, "event: ping\n");
}

static void a_stream_ends_after_its_life(void **state)
{
	http_auto struct http_reply reply = {0};

	(void)state;
	assert_int_equal(start_with(NT_MINUTE, NT_SECOND / 20), 0);
	reply = get("/events", "");
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "event: ping\n"));
	wait_for_streams(0);
	assert_int_equal(stats().streams_dropped, 0);
}

static void beyond_the_share_of_an_address_a_stream_is_refused(void **state)
{
	int fd[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		fd[i] = open_stream("/events");
	wait_for_streams(3);
	check(get("/events", ""), 503, "too_many_streams");
	assert_int_equal(stats().streams_refused, 1);
	check(get("/vital", ""), 200, NULL);
	/* The place of one that has gone is free soon. */
	(void)close(fd[0]);
	wait_for_streams(2);
	fd[0] = open_stream("/events");
	wait_for_streams(3);
	for (size_t i = 0; i < 3; i++)
		(void)close(fd[i]);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
	static char data[NT_EVENT_DATA_BYTES];
	nt_autoclose int fd = -1;

	(void)state;
	assert_int_equal(start_with(NT_SECOND / 5, 10 * NT_MINUTE), 0);
	memset(data, 'x', sizeof(data) - 1);
	fd = open_stream("/events");
	wait_for_streams(1);
	/* More than the buffers of both sockets take. */
	for (int i = 0; i < 1000; i++)
		post(data, NULL);
	wait_for_streams(0);
	assert_int_equal(stats().streams_dropped, 1);
}

static void a_client_behind_the_ring_is_dropped(void **state)
{
	nt_autobuf struct nt_buf got = {0};
	static char data[NT_EVENT_DATA_BYTES];
	nt_autoclose int fd = open_stream("/events");

	(void)state;
	read_until(fd, &got, "event: ping\n");
	memset(data, 'x', sizeof(data) - 1);
	/* More than the ring and the sockets hold together. */
	for (int i = 0; i < 4000; i++)
		post(data, NULL);
	while (recv(fd, data, sizeof(data), 0) > 0)
		;
	assert_int_equal(stats().streams_dropped, 1);
}

static void a_server_with_open_streams_stops(void **state)
{
	nt_autoclose int fd = open_stream("/events"), other = open_stream("/events");

	(void)state;
	(void)fd;
	(void)other;
	wait_for_streams(2);
	nt_httpd_stop(httpd);
	httpd = NULL;
}

#define STREAM(fn) cmocka_unit_test_setup_teardown(fn, set_up_stream, tear_down_stream)
#define RING(fn)   cmocka_unit_test_setup_teardown(fn, set_up_ring, tear_down_stream)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STREAM(news_arrive_as_they_happen),
		STREAM(a_stream_resumes_after_the_given_id),
		STREAM(an_unknown_id_is_answered_by_a_reset),
		STREAM(a_topic_filters),
		RING(a_stream_without_news_gets_pings),
		RING(a_stream_ends_after_its_life),
		STREAM(beyond_the_share_of_an_address_a_stream_is_refused),
		RING(a_client_that_does_not_read_is_cut_off),
		STREAM(a_client_behind_the_ring_is_dropped),
		STREAM(a_server_with_open_streams_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
