/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/json.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "common/system/json_append.h"
#include "tests/api/snapshot_scene.h"

/* Consumes json. The text without its last newline. */
static const char *dumped(json_t *json)
{
	static char text[8192];
	nt_autojson json_t *own = json;
	nt_autobuf struct nt_buf buf = {0};

	assert_non_null(own);
	assert_int_equal(nt_json_dump(own, false, &buf), 0);
	assert_true(buf.len > 0 && buf.len < sizeof(text));
	assert_int_equal(buf.data[buf.len - 1], '\n');
	(void)snprintf(text, sizeof(text), "%.*s", (int)buf.len - 1, (const char *)buf.data);
	return text;
}

static void unknown_values_are_null(void **state)
{
	(void)state;
	assert_string_equal(dumped(nt_json_text(NULL)), "null");
	assert_string_equal(dumped(nt_json_text("")), "null");
	assert_string_equal(dumped(nt_json_number(NAN)), "null");
	assert_string_equal(dumped(nt_json_number(-INFINITY)), "null");
	assert_string_equal(dumped(nt_json_number(0)), "0.0");
}

static void text_that_is_not_utf8_is_mended(void **state)
{
	(void)state;
	assert_string_equal(dumped(nt_json_text("gr\xc3\xbc\xc3")), "\"grü\xef\xbf\xbd\"");
	assert_string_equal(dumped(nt_json_text("\xed\xa0\x80")),
			    "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void times_have_a_fraction_only_where_they_need_one(void **state)
{
	(void)state;
	assert_string_equal(dumped(nt_json_time(NT_TEST_TIME_NS)), "\"2026-11-21T03:00:12Z\"");
	assert_string_equal(dumped(nt_json_time(NT_TEST_TIME_NS + 999999)),
			    "\"2026-11-21T03:00:12Z\"");
	assert_string_equal(dumped(nt_json_time(NT_TEST_TIME_NS + 250 * NT_MILLISECOND)),
			    "\"2026-11-21T03:00:12.250Z\"");
	assert_string_equal(dumped(nt_json_time(0)), "\"1970-01-01T00:00:00Z\"");
}

static void numbers_are_written_short_and_read_back(void **state)
{
	(void)state;
	assert_string_equal(dumped(nt_json_number(0.1 + 0.2)), "0.3");
	assert_string_equal(dumped(nt_json_number(1.31)), "1.31");
	assert_string_equal(dumped(nt_json_number(123456789)), "123456789.0");
}

static void each_kind_of_culprit_has_its_own_members(void **state)
{
	static uint32_t ranks[] = {4, 5};
	struct nt_culprit culprit = {.kind = "path", .node = "a", .peer = "b"};
	struct nt_wire_incident incident = nt_test_incident("x", "firing", &culprit, 1);
	nt_autojson json_t *path = nt_json_slow_rank(&incident, &culprit);
	nt_autojson json_t *communicator = NULL, *rank = NULL, *in_a_pod = NULL;

	(void)state;
	assert_string_equal(nt_json_get_text(path, "peer", ""), "b");
	assert_string_equal(nt_json_get_text(path, "namespace", ""), incident.namespace);
	assert_true(json_is_null(json_object_get(path, "rank")));
	assert_null(json_object_get(path, "ranks"));
	culprit = (struct nt_culprit){
		.kind = "communicator", .name = "tp", .ranks = ranks, .rank_count = 2};
	communicator = nt_json_slow_rank(&incident, &culprit);
	assert_int_equal(json_array_size(json_object_get(communicator, "ranks")), 2);
	assert_string_equal(nt_json_get_text(communicator, "name", ""), "tp");
	assert_null(json_object_get(communicator, "peer"));
	rank = nt_json_slow_rank(&incident, &nt_test_rank_5);
	assert_null(json_object_get(rank, "ranks"));
	assert_null(json_object_get(rank, "name"));
	assert_null(json_object_get(rank, "pod_uid"));
	culprit = (struct nt_culprit){.kind = "rank", .pod = "llm-5", .pod_uid = "u-5"};
	in_a_pod = nt_json_slow_rank(&incident, &culprit);
	assert_string_equal(nt_json_get_text(in_a_pod, "pod_uid", ""), "u-5");
}

static void only_some_kinds_accuse(void **state)
{
	static const struct {
		const char *kind;
		bool accuses;
	} cases[] = {{"rank", true},   {"node", true},          {"nic", true}, {"path", true},
		     {"stage", false}, {"communicator", false}, {"", false},   {NULL, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			nt_json_culprit_accuses(&(struct nt_culprit){.kind = cases[i].kind}),
			cases[i].accuses);
}

static void a_cost_that_is_known_is_shown_with_its_currency(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("x", "firing", &nt_test_rank_5, 1);
	nt_autojson json_t *object = NULL;

	(void)state;
	incident.cost =
		(struct nt_cost){.gpu_hours = 2, .money = 5, .has_money = true, .currency = "USD"};
	object = nt_json_incident(&incident);
	assert_string_equal(dumped(json_incref(json_object_get(object, "cost"))),
			    "{\"gpu_hours\":2.0,\"currency\":\"USD\",\"money\":5.0,"
			    "\"energy_kwh\":null,\"co2_kg\":null}");
}

static void a_cost_that_is_not_known_is_null(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("x", "firing", &nt_test_rank_5, 1);
	nt_autojson json_t *object = NULL;

	(void)state;
	incident.cost = (struct nt_cost){.gpu_hours_unknown = true, .currency = ""};
	object = nt_json_incident(&incident);
	assert_string_equal(dumped(json_incref(json_object_get(object, "cost"))),
			    "{\"gpu_hours\":null,\"currency\":null,\"money\":null,"
			    "\"energy_kwh\":null,\"co2_kg\":null}");
}

static void a_document_that_is_none_is_ebadmsg(void **state)
{
	static const char *const bad[] = {
		"", "{", "1", "\"text\"", "{\"a\":1}x", "{\"a\":\"\xff\"}", "null"};
	json_t *json = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(nt_json_load(bad[i], strlen(bad[i]), &json), -EBADMSG);
		assert_null(json);
	}
}

static void documents_have_a_cap_on_their_depth(void **state)
{
	static const char brackets[] = "[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]";
	nt_autojson json_t *json = NULL, *quoted = NULL;
	char text[2 * NT_JSON_MAX_DEPTH + 3];

	(void)state;
	memset(text, '[', NT_JSON_MAX_DEPTH);
	memset(text + NT_JSON_MAX_DEPTH, ']', NT_JSON_MAX_DEPTH);
	assert_int_equal(nt_json_load(text, 2 * NT_JSON_MAX_DEPTH, &json), 0);
	memset(text, '[', NT_JSON_MAX_DEPTH + 1);
	memset(text + NT_JSON_MAX_DEPTH + 1, ']', NT_JSON_MAX_DEPTH + 1);
	assert_int_equal(nt_json_load(text, 2 * NT_JSON_MAX_DEPTH + 2, &(json_t *){NULL}),
			 -EBADMSG);
	/* Brackets inside of text are no depth. */
	assert_int_equal(nt_json_load(brackets, sizeof(brackets) - 1, &quoted), 0);
}

static void a_full_buffer_keeps_what_it_had(void **state)
{
	nt_autojson json_t *json = json_pack("{s:s}", "name", "a long text for a small buffer");
	nt_autobuf struct nt_buf buf = {.max = 20};

	(void)state;
	assert_int_equal(nt_buf_append(&buf, "abc", 3), 0);
	assert_int_equal(nt_json_dump(json, false, &buf), -ENOBUFS);
	assert_int_equal(buf.len, 3);
}

/* jansson's text, which is the reference. */
static void assert_as_jansson(json_t *json)
{
	static const size_t flags[] = {
		JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9),
		JSON_COMPACT | JSON_ENCODE_ANY,
	};
	nt_autojson json_t *own = json;

	assert_non_null(own);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		nt_autofree char *expected = json_dumps(own, flags[i]);
		nt_autobuf struct nt_buf buf = {0};

		assert_non_null(expected);
		assert_int_equal(nt_json_append(own, flags[i], &buf), 0);
		assert_int_equal(buf.len, strlen(expected));
		assert_memory_equal(buf.data, expected, buf.len);
	}
}

static void text_is_that_of_jansson(void **state)
{
	static const double numbers[] = {
		0,        -0.0,  1,       -1.5,         0.1,  1e5,  123456789, 1234567890, 1e-5,
		-1.25e-9, 1e100, -3e-300, 0.0440432296, 1e21, 1e15, 1e16,      1e17};
	char text[2] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_as_jansson(json_real(numbers[i]));
	assert_as_jansson(json_integer(0));
	assert_as_jansson(json_integer(-7));
	assert_as_jansson(json_integer(INT64_MAX));
	assert_as_jansson(json_integer(INT64_MIN));
	for (int i = 1; i < 128; i++) {
		text[0] = (char)i;
		assert_as_jansson(json_pack("[s,{s:s}]", text, text, "gr\xc3\xbc\xc3\x9f"));
	}
	assert_as_jansson(json_stringn("a\0b", 3));
	assert_as_jansson(json_pack("{s:[],s:{},s:[b,b,n],s:[[i],{s:{s:f}}]}", "z", "a", "b", 1, 0,
				    "c", 5, "d", "e", 2.5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_values_are_null),
		cmocka_unit_test(text_that_is_not_utf8_is_mended),
		cmocka_unit_test(times_have_a_fraction_only_where_they_need_one),
		cmocka_unit_test(numbers_are_written_short_and_read_back),
		cmocka_unit_test(each_kind_of_culprit_has_its_own_members),
		cmocka_unit_test(only_some_kinds_accuse),
		cmocka_unit_test(a_cost_that_is_not_known_is_null),
		cmocka_unit_test(a_cost_that_is_known_is_shown_with_its_currency),
		cmocka_unit_test(a_document_that_is_none_is_ebadmsg),
		cmocka_unit_test(documents_have_a_cap_on_their_depth),
		cmocka_unit_test(a_full_buffer_keeps_what_it_had),
		cmocka_unit_test(text_is_that_of_jansson),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
