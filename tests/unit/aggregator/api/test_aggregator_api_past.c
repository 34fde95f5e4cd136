/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The past of a job over REST, its communicators, and the agents. */
#include <errno.h>

#include "tests/unit/aggregator/api.h"

#define JOB "/api/v1/jobs/00000000000000a1"

static struct nt_series_desk *desk;

/* Three frames, the last one with the figures of the invented job. */
static int set_up_past(void **state)
{
	if (set_up_board(state) || nt_series_desk_new(0, &desk))
		return -1;
	nt_board_post(board, nt_test_snapshot());
	for (uint64_t i = 1; i <= 3; i++) {
		struct nt_snapshot *snapshot = nt_test_snapshot();

		((struct nt_snapshot_job *)snapshot->job[0])->frames = i;
		((struct nt_snapshot_job *)snapshot->job[0])->last_seen_ns = i * NT_SECOND;
		nt_series_desk_look(desk, snapshot);
		nt_snapshot_release(snapshot);
	}
	return start((struct nt_api_options){.series_desk = desk});
}

static int tear_down_past(void **state)
{
	int r = tear_down(state);

	nt_series_desk_free(desk);
	return r;
}

static double number(const json_t *object, const char *name)
{
	return nt_json_get_number(object, name, -1);
}

static void a_series_has_a_point_for_each_window_the_oldest_first(void **state)
{
	nt_autojson json_t *series = get(JOB "/ranks/5/series?metric=own_seconds");
	const json_t *items = json_object_get(series, "items");

	(void)state;
	assert_string_equal(text(series, "unit"), "seconds");
	assert_int_equal(json_array_size(items), 3);
	assert_string_equal(text(json_array_get(items, 0), "at"), "1970-01-01T00:00:01Z");
	assert_true(number(json_array_get(items, 2), "value") > 0.41);
	assert_true(number(json_array_get(items, 2), "value") < 0.42);
}

static void steps_come_newest_first_and_page_by_page(void **state)
{
	nt_autojson json_t *first = get(JOB "/steps?limit=2");
	nt_autojson json_t *rest = get(JOB "/steps?limit=2&cursor=w2");
	const json_t *step = json_array_get(json_object_get(first, "items"), 0);

	(void)state;
	assert_true(number(step, "window") > 2.5);
	assert_true(number(step, "slowest_rank") > 4.5 && number(step, "slowest_rank") < 5.5);
	assert_string_equal(text(first, "next"), "w2");
	assert_int_equal(json_array_size(json_object_get(rest, "items")), 1);
	assert_true(json_is_null(json_object_get(rest, "next")));
}

static void a_communicator_sums_the_calls_of_its_ranks(void **state)
{
	nt_autojson json_t *list = get(JOB "/communicators");
	const json_t *one = json_array_get(json_object_get(list, "items"), 0);
	const json_t *operation = json_array_get(json_object_get(one, "operations"), 0);

	(void)state;
	assert_string_equal(text(one, "id"), "feedface12345678");
	assert_int_equal(json_array_size(json_object_get(one, "ranks")), NT_TEST_RANKS);
	assert_string_equal(text(operation, "operation"), "all-reduce");
	assert_int_equal(json_integer_value(json_object_get(operation, "calls")), 8000);
}

static void an_agent_has_the_sum_of_its_ranks_and_its_limits(void **state)
{
	nt_autojson json_t *list = get("/api/v1/agents");
	nt_autojson json_t *one = get("/api/v1/agents?node=gpu-02");
	const json_t *agent = json_array_get(json_object_get(one, "items"), 0);

	(void)state;
	assert_string_equal(names(list, "node"), "gpu-01 gpu-02 ");
	assert_string_equal(names(one, "node"), "gpu-02 ");
	assert_string_equal(text(agent, "state"), "unobserved");
	assert_int_equal(json_integer_value(json_object_get(agent, "ranks")), 2);
	assert_int_equal(json_array_size(json_object_get(agent, "limits")), 1);
}

static void what_is_not_there_is_named(void **state)
{
	static const struct {
		const char *target;
		int status;
	} cases[] = {
		{JOB "/ranks/5/series", 400},
		{JOB "/ranks/5/series?metric=own", 400},
		{JOB "/ranks/99/series?metric=kpi", 404},
		{JOB "/ranks/x/series?metric=kpi", 404},
		{JOB "/ranks/4294967296/series?metric=kpi", 404},
		{"/api/v1/jobs/00000000000000ff/steps", 404},
		{JOB "/steps?cursor=2", 400},
		{JOB "/communicators?cursor=cx", 400},
		{"/api/v1/agents?cursor=1", 400},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		json_decref(get_status(cases[i].target, cases[i].status));
}

#define TEST_PAST(fn) cmocka_unit_test_setup_teardown(fn, set_up_past, tear_down_past)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_PAST(a_series_has_a_point_for_each_window_the_oldest_first),
		TEST_PAST(steps_come_newest_first_and_page_by_page),
		TEST_PAST(a_communicator_sums_the_calls_of_its_ranks),
		TEST_PAST(an_agent_has_the_sum_of_its_ranks_and_its_limits),
		TEST_PAST(what_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
