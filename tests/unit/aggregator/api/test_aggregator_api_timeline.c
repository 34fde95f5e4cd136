/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GET /api/v1/jobs/{id}/timeline: rank × time as bytes. */
#include "tests/unit/aggregator/api.h"

#include <stdlib.h>

#include <openssl/evp.h>

#define JOB "/api/v1/jobs/00000000000000a1/timeline"

enum {
	MOST_BYTES = 4096,
};

/* The bytes of a series, padded with 0. */
static void decode(const json_t *timeline, const char *series, uint8_t bytes[MOST_BYTES])
{
	const char *coded = text(timeline, series);

	memset(bytes, 0, MOST_BYTES);
	assert_true(strlen(coded) / 4 * 3 <= MOST_BYTES);
	assert_true(EVP_DecodeBlock(bytes, (const uint8_t *)coded, (int)strlen(coded)) >= 0);
}

static int number(const json_t *object, const char *name)
{
	return (int)json_integer_value(json_object_get(object, name));
}

static void each_rank_has_a_row_of_cells(void **state)
{
	nt_autojson json_t *timeline = get(JOB);
	const json_t *cells = json_object_get(timeline, "cells");
	uint8_t own[MOST_BYTES], waiting[MOST_BYTES], excess[MOST_BYTES];

	(void)state;
	assert_int_equal(number(timeline, "ranks"), NT_TEST_RANKS);
	assert_int_equal(number(timeline, "rows"), NT_TEST_RANKS);
	assert_int_equal(json_array_size(cells), NT_TEST_CELLS);
	assert_int_equal(json_array_size(json_object_get(timeline, "row_ranks")), NT_TEST_RANKS);
	assert_string_equal(text(json_array_get(cells, NT_TEST_CELLS - 1), "end"),
			    "2026-11-21T03:00:12.000Z");
	decode(timeline, "own", own);
	decode(timeline, "waiting", waiting);
	decode(timeline, "excess", excess);
	for (int row = 0; row < NT_TEST_RANKS - 1; row++) {
		const bool is_slow = row == NT_TEST_SLOW_RANK;
		const int last = (row + 1) * NT_TEST_CELLS - 1;

		assert_int_equal(own[last], NT_TIMELINE_ZERO + (is_slow ? 98 : 70));
		assert_int_equal(waiting[last], NT_TIMELINE_ZERO + (is_slow ? 2 : 30));
		assert_true((excess[last] > NT_TIMELINE_EVEN + 2) == is_slow);
	}
	assert_int_equal(own[NT_TEST_RANKS * NT_TEST_CELLS - 1], NT_TIMELINE_UNKNOWN);
}

static void only_cells_after_a_time_and_rows_from_one_on(void **state)
{
	nt_autojson json_t *timeline = get(JOB "?since=2026-11-21T02:59:52Z&first=5&limit=2");
	uint8_t own[MOST_BYTES];

	(void)state;
	assert_int_equal(json_array_size(json_object_get(timeline, "cells")), 2);
	assert_int_equal(number(timeline, "first"), 5);
	assert_int_equal(number(timeline, "rows"), NT_TEST_RANKS);
	assert_int_equal(json_array_size(json_object_get(timeline, "row_ranks")), 2);
	decode(timeline, "own", own);
	assert_memory_equal(own, ((uint8_t[]){100, 100, 72, 72, 0}), 5);
}

static void a_row_of_several_ranks_shows_the_worst_one(void **state)
{
	nt_autojson json_t *timeline = get(JOB "?per_row=3&since=2026-11-21T03:00:02Z");
	const json_t *ranks = json_object_get(timeline, "row_ranks");
	uint8_t own[MOST_BYTES];

	(void)state;
	assert_int_equal(number(timeline, "rows"), 3);
	assert_int_equal(json_array_size(ranks), 3);
	assert_int_equal(json_integer_value(json_array_get(ranks, 1)), 3);
	decode(timeline, "own", own);
	assert_memory_equal(own, ((uint8_t[]){72, 100, 72}), 3);
}

static void nothing_new_is_an_empty_list_of_cells(void **state)
{
	nt_autojson json_t *timeline = get(JOB "?since=2026-11-21T03:00:12Z");
	nt_autojson json_t *beyond = get(JOB "?first=4294967295");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(timeline, "cells")), 0);
	assert_string_equal(text(timeline, "own"), "");
	assert_int_equal(json_array_size(json_object_get(beyond, "row_ranks")), 0);
	assert_string_equal(text(beyond, "excess"), "");
}

static void a_job_without_a_timeline_has_no_rows(void **state)
{
	nt_autojson json_t *timeline = get("/api/v1/jobs/00000000000000b2/timeline");

	(void)state;
	assert_int_equal(number(timeline, "ranks"), 0);
	assert_int_equal(number(timeline, "rows"), 0);
	assert_int_equal(json_array_size(json_object_get(timeline, "cells")), 0);
}

static void an_unchanged_timeline_is_not_sent_again(void **state)
{
	http_auto struct http_reply reply = http_request(nt_api_port(api), "GET", JOB, "", NULL);
	const char *etag = strstr(reply.head, "ETag: ");
	char header[256];

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_non_null(etag);
	(void)snprintf(header, sizeof(header), "If-None-Match: %.*s\r\n",
		       (int)strcspn(etag + 6, "\r\n"), etag + 6);
	{
		http_auto struct http_reply again =
			http_request(nt_api_port(api), "GET", JOB, header, NULL);

		assert_int_equal(again.status, 304);
	}
}

static void bad_parameters_are_refused(void **state)
{
	(void)state;
	check_problem(JOB "?first=-1", 400, "bad_parameter");
	check_problem(JOB "?first=4294967296", 400, "bad_parameter");
	check_problem(JOB "?per_row=0", 400, "bad_parameter");
	check_problem(JOB "?per_row=4097", 400, "bad_parameter");
	check_problem(JOB "?limit=1001", 400, "bad_parameter");
	check_problem(JOB "?since=yesterday", 400, "bad_parameter");
	check_problem(JOB "?cursor=r1", 400, "unknown_parameter");
	check_problem("/api/v1/jobs/00000000000000ff/timeline", 404, "no_such_job");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_rank_has_a_row_of_cells),
		TEST(only_cells_after_a_time_and_rows_from_one_on),
		TEST(a_row_of_several_ranks_shows_the_worst_one),
		TEST(nothing_new_is_an_empty_list_of_cells),
		TEST(a_job_without_a_timeline_has_no_rows),
		TEST(an_unchanged_timeline_is_not_sent_again),
		TEST(bad_parameters_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
