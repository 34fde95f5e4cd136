/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Levels of detail by REST. */
#include <errno.h>

#include "tests/unit/aggregator/api.h"
#include "tests/unit/aggregator/level_desk.h"

static struct desk_scene scene;

static int set_up_desk(void **state)
{
	if (set_up_board(state))
		return -1;
	nt_board_post(board, nt_test_snapshot());
	if (desk_scene_open(&scene, dir) < 0)
		return -1;
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	return start((struct nt_api_options){.level_desk = scene.desk});
}

static int tear_down_desk(void **state)
{
	nt_api_stop(api);
	api = NULL;
	desk_scene_close(&scene);
	return tear_down(state);
}

#define TEST_DESK(fn) cmocka_unit_test_setup_teardown(fn, set_up_desk, tear_down_desk)

/* The document; its code is `code`, or its status 202 for NULL. */
static json_t *post(const char *body, int status, const char *code)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "POST", "/api/v1/levels",
			     "Content-Type: application/json\r\n", body);
	json_t *json = NULL;

	assert_int_equal(reply.status, status);
	assert_int_equal(nt_json_load(reply.body, strlen(reply.body), &json), 0);
	if (code)
		assert_string_equal(text(json, "code"), code);
	return json;
}

static void a_level_is_set_and_listed(void **state)
{
	nt_autojson json_t *set = NULL, *list = NULL, *none = NULL, *page = NULL, *rest = NULL;
	char target[256];
	const json_t *item;

	(void)state;
	set = post("{\"job\":\"llm-70b\",\"rank\":5,\"level\":2,\"ttl_s\":60}", 202, NULL);
	assert_string_equal(text(set, "kind"), "rank");
	assert_string_equal(text(set, "job"), "00000000000000a1");
	assert_int_equal(nt_json_get_number(set, "rank", -1), 5);
	json_decref(post("{\"node\":\"gpu-01\",\"level\":1}", 202, NULL));
	json_decref(post("{\"job\":\"00000000000000a1\",\"level\":1}", 202, NULL));
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	list = get("/api/v1/levels");
	assert_string_equal(names(list, "kind"), "node job rank ");
	item = json_array_get(json_object_get(list, "items"), 2);
	assert_int_equal(nt_json_get_number(item, "ranks", 0), 1);
	item = json_array_get(json_object_get(list, "items"), 0);
	assert_int_equal(nt_json_get_number(item, "ranks", 0), 2);
	item = json_array_get(json_object_get(list, "items"), 1);
	assert_int_equal(nt_json_get_number(item, "ranks", 0), NT_TEST_RANKS);
	assert_int_equal(nt_json_get_number(item, "in_force", -1), 0);
	assert_true(json_is_false(json_object_get(item, "automatic")));
	none = get("/api/v1/levels?node=gpu-02");
	assert_string_equal(names(none, "kind"), "");
	page = get("/api/v1/levels?limit=1");
	assert_string_equal(names(page, "kind"), "node ");
	(void)snprintf(target, sizeof(target), "/api/v1/levels?limit=1&job=llm-70b&cursor=%s",
		       text(page, "next"));
	json_decref(page);
	page = get(target);
	assert_string_equal(names(page, "kind"), "job ");
	/* Another level before the cursor: nothing is repeated. */
	json_decref(post("{\"node\":\"gpu-02\",\"level\":1}", 202, NULL));
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	(void)snprintf(target, sizeof(target), "/api/v1/levels?cursor=%s", text(page, "next"));
	rest = get(target);
	assert_string_equal(names(rest, "kind"), "rank ");
	check_problem("/api/v1/levels?cursor=l1", 400, "bad_cursor");
	check_problem("/api/v1/levels?cursor=x1", 400, "bad_cursor");
}

static void levels_of_a_job_that_is_not_known_are_found_by_its_key(void **state)
{
	const struct nt_level_target target = {NT_LEVEL_RANK, "key", 3};
	nt_autojson json_t *list = NULL, *none = NULL;
	struct nt_level_entry entry;

	(void)state;
	assert_int_equal(nt_level_desk_set(scene.desk, &target, 1, NT_MINUTE, &entry), 0);
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	list = get("/api/v1/levels?job=key");
	assert_string_equal(names(list, "job_key"), "key ");
	none = get("/api/v1/levels?job=ke");
	assert_string_equal(names(none, "job_key"), "");
}

static void a_fault_is_named(void **state)
{
	static const struct {
		const char *body, *detail;
	} faults[] = {
		{"", "the body must be a JSON object"},
		{"[1]", "the body must be a JSON object"},
		{"{\"level\":1,\"node\":\"a\",\"ttl\":5}", "the members are"},
		{"{\"level\":1}", "either 'node' or 'job'"},
		{"{\"level\":1,\"node\":\"a\",\"job\":\"b\"}", "either 'node' or 'job'"},
		{"{\"level\":1,\"node\":\"\"}", "'node' is a text"},
		{"{\"level\":1,\"job\":7}", "'job' is a text"},
		{"{\"level\":1,\"node\":\"gpu-01\",\"rank\":1}", "'rank' belongs to a 'job'"},
		{"{\"level\":1,\"job\":\"llm-70b\",\"rank\":-1}", "'rank' is a whole number"},
		{"{\"level\":1,\"job\":\"llm-70b\",\"rank\":4294967296}", "'rank' is a whole"},
		{"{\"job\":\"llm-70b\"}", "'level' is 0, 1, 2 or 3"},
		{"{\"job\":\"llm-70b\",\"level\":4}", "'level' is 0, 1, 2 or 3"},
		{"{\"job\":\"llm-70b\",\"level\":1.5}", "'level' is 0, 1, 2 or 3"},
		{"{\"job\":\"llm-70b\",\"level\":1,\"ttl_s\":0}", "'ttl_s' is a whole number"},
		{"{\"job\":\"llm-70b\",\"level\":1,\"ttl_s\":86401}", "'ttl_s' is a whole"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		nt_autojson json_t *problem = post(faults[i].body, 400, "bad_request");

		assert_non_null(strstr(text(problem, "detail"), faults[i].detail));
	}
	json_decref(post("{\"job\":\"llm\",\"level\":1}", 404, "no_such_job"));
	json_decref(post("{\"job\":\"resnet\",\"level\":1}", 404, "no_such_job")); /* ended */
	json_decref(post("{\"job\":\"llm-70b\",\"rank\":8,\"level\":1}", 404, "no_such_rank"));
	json_decref(post("{\"node\":\"gpu-09\",\"level\":1}", 404, "no_such_node"));
}

static void a_full_queue_is_503(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NT_LEVEL_DESK_WAITING; i++) {
		const struct nt_level_target target = {NT_LEVEL_RANK, "key", i};
		struct nt_level_entry entry;

		assert_int_equal(nt_level_desk_set(scene.desk, &target, 1, NT_MINUTE, &entry), 0);
	}
	json_decref(post("{\"node\":\"gpu-01\",\"level\":1}", 503, "busy"));
}

static void without_a_desk_it_is_not_offered(void **state)
{
	(void)state;
	json_decref(post("{\"node\":\"gpu-01\",\"level\":1}", 404, "not_offered"));
	check_problem("/api/v1/levels", 404, "not_offered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DESK(a_level_is_set_and_listed),
		TEST_DESK(levels_of_a_job_that_is_not_known_are_found_by_its_key),
		TEST_DESK(a_fault_is_named),
		TEST_DESK(a_full_queue_is_503),
		TEST(without_a_desk_it_is_not_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
