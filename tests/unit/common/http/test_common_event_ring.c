/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ring of events keeps the newest, and knows which of its ids it can resume from. */
#include "common/http/event_ring.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct nt_event_ring *ring;

static int set_up(void **state)
{
	(void)state;
	return nt_event_ring_new(
		&(struct nt_event_ring_options){.max_events = 4, .max_bytes = 4096}, &ring);
}

static int tear_down(void **state)
{
	(void)state;
	nt_event_ring_free(ring);
	return 0;
}

static int post(const char *data, const char *topic)
{
	return nt_event_ring_post(
		ring, &(struct nt_event){.kind = "job", .topic = {topic}, .data = data});
}

/* The data of the events after a number, each with a comma. */
static void check_data(uint64_t after, const char *topic, const char *expected)
{
	nt_autobuf struct nt_buf text = {0}, data = {0};

	assert_int_equal(nt_event_ring_read(ring, topic, 1 << 20, &after, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	assert_int_equal(nt_buf_append(&data, "", 0), 0);
	for (char *at = (char *)text.data; (at = strstr(at, "data: ")); at++)
		assert_int_equal(nt_buf_printf(&data, "%.*s,", (int)strcspn(at + 6, "\n"), at + 6),
				 0);
	assert_int_equal(nt_buf_append(&data, "", 1), 0);
	assert_string_equal((char *)data.data, expected);
	assert_int_equal(after, nt_event_ring_last(ring));
}

static void an_event_has_id_kind_and_data(void **state)
{
	nt_autobuf struct nt_buf text = {0};
	char id[NT_EVENT_ID_BYTES], expected[256];
	uint64_t number = 0;

	(void)state;
	assert_int_equal(post("{\"a\":1}", NULL), 0);
	assert_int_equal(nt_event_ring_read(ring, NULL, 1, &number, &text), 0);
	nt_event_ring_id(ring, 1, id);
	(void)snprintf(expected, sizeof(expected), "id: %s\nevent: job\ndata: {\"a\":1}\n\n", id);
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.data, expected, text.len);
	assert_int_equal(number, 1);
}

static void a_reader_of_a_topic_gets_only_its_events(void **state)
{
	(void)state;
	assert_int_equal(post("1", "one"), 0);
	assert_int_equal(post("2", "two"), 0);
	assert_int_equal(post("3", NULL), 0);
	check_data(0, NULL, "1,2,3,");
	check_data(0, "two", "2,");
	check_data(0, "on", "");
	check_data(2, NULL, "3,");
}

static void at_the_cap_the_oldest_goes_and_is_counted(void **state)
{
	nt_autobuf struct nt_buf text = {0};
	struct nt_event_ring_stats stats;
	uint64_t number = 0;

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(post("x", NULL), 0);
	nt_event_ring_stats(ring, &stats);
	assert_int_equal(stats.events, 4);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(nt_event_ring_read(ring, NULL, 1 << 20, &number, &text), -ESTALE);
	check_data(1, NULL, "x,x,x,x,");
}

static void the_cap_of_bytes_holds_too(void **state)
{
	struct nt_event_ring_stats stats;
	char data[3000];

	(void)state;
	memset(data, 'x', sizeof(data) - 1);
	data[sizeof(data) - 1] = '\0';
	assert_int_equal(post(data, NULL), 0);
	assert_int_equal(post(data, NULL), 0);
	nt_event_ring_stats(ring, &stats);
	assert_int_equal(stats.events, 1);
	assert_in_range(stats.bytes, sizeof(data), 4096);
}

static void what_would_break_the_stream_is_refused_and_counted(void **state)
{
	static char large[NT_EVENT_DATA_BYTES + 2], topic[NT_EVENT_TOPIC_BYTES + 1];
	struct nt_event_ring_stats stats;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	memset(topic, 'x', sizeof(topic) - 1);
	assert_int_equal(post("a\nevent: fake", NULL), -EINVAL);
	assert_int_equal(post("a\rb", NULL), -EINVAL);
	assert_int_equal(post(large, NULL), -EMSGSIZE);
	assert_int_equal(post("a", topic), -EMSGSIZE);
	nt_event_ring_stats(ring, &stats);
	assert_int_equal(stats.refused, 4);
	assert_int_equal(stats.posted, 0);
	assert_int_equal(nt_event_ring_last(ring), 0);
}

static void check_id(uint64_t number, int expected)
{
	char id[NT_EVENT_ID_BYTES];
	uint64_t found = UINT64_MAX;

	nt_event_ring_id(ring, number, id);
	assert_int_equal(nt_event_ring_find(ring, id, &found), expected);
	assert_int_equal(found, expected ? UINT64_MAX : number);
}

static void an_id_is_found_while_no_later_event_is_gone(void **state)
{
	(void)state;
	check_id(0, 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(post("x", NULL), 0);
	check_id(0, -ESTALE);
	check_id(1, -ESTALE);
	check_id(2, 0);
	check_id(6, 0);
	check_id(7, -ESTALE);
	check_id(UINT64_MAX, -ESTALE);
}

static void an_id_of_another_ring_is_stale_and_other_text_is_invalid(void **state)
{
	static const char *const invalid[] = {
		"",
		"1",
		"0123456789abcdef",
		"0123456789abcdef-",
		"0123456789abcdeg-1",
		"-1",
		"0123456789abcdef-x",
		"0123456789abcdef-99999999999999999999999",
	};
	struct nt_event_ring *other;
	char id[NT_EVENT_ID_BYTES];
	uint64_t number;

	(void)state;
	assert_int_equal(nt_event_ring_new(NULL, &other), 0);
	nt_event_ring_id(other, 0, id);
	nt_event_ring_free(other);
	assert_int_equal(nt_event_ring_find(ring, id, &number), -ESTALE);
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		assert_int_equal(nt_event_ring_find(ring, invalid[i], &number), -EINVAL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_event_has_id_kind_and_data),
		TEST(a_reader_of_a_topic_gets_only_its_events),
		TEST(at_the_cap_the_oldest_goes_and_is_counted),
		TEST(the_cap_of_bytes_holds_too),
		TEST(what_would_break_the_stream_is_refused_and_counted),
		TEST(an_id_is_found_while_no_later_event_is_gone),
		TEST(an_id_of_another_ring_is_stale_and_other_text_is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
