/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles by REST, and the desk that keeps them. */
#include <errno.h>

#include "common/base/parse_number.h"
#include "tests/unit/aggregator/api.h"
#include "tests/unit/aggregator/level_desk.h"

static struct desk_scene scene;
static struct nt_profile_desk *profiles;

static int set_up_desk(void **state)
{
	if (set_up_board(state))
		return -1;
	nt_board_post(board, nt_test_snapshot());
	if (desk_scene_open(&scene, dir) < 0 || nt_profile_desk_new(&profiles) < 0)
		return -1;
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	return start((struct nt_api_options){.level_desk = scene.desk, .profile_desk = profiles});
}

static int tear_down_desk(void **state)
{
	nt_api_stop(api);
	api = NULL;
	nt_profile_desk_free(profiles);
	desk_scene_close(&scene);
	return tear_down(state);
}

#define TEST_DESK(fn) cmocka_unit_test_setup_teardown(fn, set_up_desk, tear_down_desk)

static json_t *post(const char *body, int status, const char *code)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "POST", "/api/v1/profiles",
			     "Content-Type: application/json\r\n", body);
	json_t *json = NULL;

	assert_int_equal(reply.status, status);
	assert_int_equal(nt_json_load(reply.body, strlen(reply.body), &json), 0);
	if (code)
		assert_string_equal(text(json, "code"), code);
	return json;
}

/* Requests one of rank 5, and gives its path. */
static json_t *request_one(char path[64], uint64_t *ret_id)
{
	json_t *json = post("{\"job\":\"llm-70b\",\"rank\":5}", 202, NULL);

	assert_string_equal(text(json, "state"), "waiting");
	assert_int_equal(
		nt_parse_hex(text(json, "id"), strlen(text(json, "id")), UINT64_MAX, ret_id), 0);
	assert_int_not_equal(*ret_id, 0);
	(void)snprintf(path, 64, "/api/v1/profiles/%s", text(json, "id"));
	return json;
}

static void give(const char *key, const struct nt_wire_profile *profile)
{
	struct nt_message message = {.key = key, .body = NT_BODY_WINDOW};
	struct nt_wire_profile copy = *profile;

	message.window.profile = &copy;
	message.window.profiles = 1;
	assert_int_equal(nt_profile_desk_take(profiles, &message), 0);
}

static void expect_state(const char *path, const char *state)
{
	nt_autojson json_t *json = get(path);

	assert_string_equal(text(json, "state"), state);
}

static void a_profile_runs_and_completes(void **state)
{
	static struct nt_wire_stack_frame frame[] = {{.function = "f\x01", .file = "/a.py"},
						     {.function = "g", .file = "", .native = true}};
	static uint32_t number[] = {1, 0}, wrong[] = {2};
	static struct nt_wire_profile_stack stack[] = {{"main", true, 40, number, 2, 3}};
	static struct nt_wire_profile_stack bad[] = {{"main", true, 40, wrong, 1, 0}};
	nt_autojson json_t *begun = NULL, *whole = NULL;
	struct nt_wire_profile profile = {.reason = "", .interpreter = "CPython 3.11"};
	struct nt_profile_desk_stats stats;
	const json_t *item;
	char path[64];
	uint64_t id;

	(void)state;
	begun = request_one(path, &id);
	assert_int_equal(nt_json_get_number(begun, "hz", 0), 49);
	assert_int_equal(nt_json_get_number(begun, "seconds", 0), 10);
	assert_string_equal(text(begun, "kind"), "all");
	expect_state(path, "waiting");
	profile.request = id;
	profile.is_running = true;
	give("another key", &profile);
	expect_state(path, "waiting");
	give(text(begun, "job_key"), &profile);
	expect_state(path, "running");

	profile.is_running = false;
	profile.frame = frame;
	profile.frames = 2;
	profile.stack = bad;
	profile.stacks = 1;
	give(text(begun, "job_key"), &profile);
	expect_state(path, "running");
	profile.stack = stack;
	profile.taken = 50;
	profile.missed = 2;
	profile.left_out = 4;
	profile.torn = 5;
	profile.empty = 6;
	profile.cpu_ns = 20 * NT_MILLISECOND;
	give(text(begun, "job_key"), &profile);
	whole = get(path);
	assert_string_equal(text(whole, "state"), "complete");
	assert_int_equal(nt_json_get_number(whole, "samples", 0), 40);
	assert_int_equal(nt_json_get_number(whole, "lost", 0), 4);
	assert_int_equal(nt_json_get_number(whole, "torn", 0), 5);
	assert_int_equal(nt_json_get_number(whole, "empty", 0), 6);
	assert_true(nt_json_get_number(whole, "cpu_s", 0) == 0.02);
	item = json_array_get(json_object_get(whole, "frames"), 0);
	assert_string_equal(text(item, "function"), "f?");
	item = json_array_get(json_object_get(whole, "stacks"), 0);
	assert_string_equal(text(item, "state"), "on-cpu");
	assert_int_equal(json_array_size(json_object_get(item, "frames")), 2);
	/* What comes later is not taken. */
	profile.stacks = 0;
	give(text(begun, "job_key"), &profile);
	nt_profile_desk_stats(profiles, &stats);
	assert_int_equal(stats.taken, 1);
	assert_int_equal(stats.malformed, 1);
	assert_int_equal(stats.unknown, 2);
}

static void the_oldest_is_replaced(void **state)
{
	char path[64], other[64];
	uint64_t id;

	(void)state;
	json_decref(request_one(path, &id));
	for (int i = 1; i < NT_PROFILE_DESK_KEPT; i++)
		json_decref(request_one(other, &id));
	expect_state(path, "waiting");
	json_decref(request_one(other, &id));
	check_problem(path, 404, "no_such_profile");
	expect_state(other, "waiting");
}

static void nothing_in_time_is_expired(void **state)
{
	nt_autoprofile struct nt_profile_view view = {0};
	const uint64_t now_ns = nt_clock_real_ns();
	char path[64];
	uint64_t id;

	(void)state;
	json_decref(request_one(path, &id));
	assert_int_equal(nt_profile_desk_get(profiles, id, now_ns + NT_MINUTE, &view), 0);
	assert_int_equal(view.progress, NT_PROFILE_WAITING);
	assert_int_equal(nt_profile_desk_get(profiles, id, now_ns + NT_HOUR, &view), 0);
	assert_int_equal(view.progress, NT_PROFILE_EXPIRED);
	expect_state(path, "expired");
}

static void a_fault_is_named(void **state)
{
	static const struct {
		const char *body, *detail;
	} faults[] = {
		{"", "the body must be a JSON object"},
		{"{\"job\":\"llm-70b\",\"rank\":1,\"level\":5}", "the members are"},
		{"{\"rank\":1}", "'job' is a text"},
		{"{\"job\":\"\",\"rank\":1}", "'job' is a text"},
		{"{\"job\":\"llm-70b\"}", "'rank' is a whole number"},
		{"{\"job\":\"llm-70b\",\"rank\":-1}", "'rank' is a whole number"},
		{"{\"job\":\"llm-70b\",\"rank\":1,\"seconds\":0}", "'seconds' is"},
		{"{\"job\":\"llm-70b\",\"rank\":1,\"seconds\":61}", "'seconds' is"},
		{"{\"job\":\"llm-70b\",\"rank\":1,\"hz\":100}", "'hz' is"},
		{"{\"job\":\"llm-70b\",\"rank\":1,\"kind\":\"cpu\"}", "'kind' is"},
		{"{\"job\":\"llm-70b\",\"rank\":1,\"kind\":7}", "'kind' is"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		nt_autojson json_t *problem = post(faults[i].body, 400, "bad_request");

		assert_non_null(strstr(text(problem, "detail"), faults[i].detail));
	}
	json_decref(post("{\"job\":\"llm\",\"rank\":1}", 404, "no_such_job"));
	json_decref(post("{\"job\":\"llm-70b\",\"rank\":8}", 404, "no_such_rank"));
	check_problem("/api/v1/profiles/0123456789abcdef", 404, "no_such_profile");
	check_problem("/api/v1/profiles/0000000000000000", 404, "no_such_profile");
	check_problem("/api/v1/profiles/x", 404, "no_such_profile");
}

static void profiles_of_a_job_that_has_ended_are_listed(void **state)
{
	static const char *const asked[] = {"llm-70b", "00000000000000a1", "10.0.0.1:29500/run"};
	struct nt_snapshot *snapshot = nt_test_snapshot();
	nt_autojson json_t *begun = NULL, *kept = NULL, *none = NULL;
	char path[64], target[96];
	uint64_t id;

	(void)state;
	begun = request_one(path, &id);
	assert_string_equal(text(begun, "job_key"), "10.0.0.1:29500/run");
	none = get("/api/v1/profiles?job=resnet");
	assert_string_equal(names(none, "rank"), "");
	((struct nt_snapshot_job *)(uintptr_t)snapshot->job[0])->ended_ns = NT_TEST_TIME_NS;
	nt_board_post(board, snapshot);
	for (size_t i = 0; i < 3; i++) {
		nt_autojson json_t *list = NULL;

		(void)snprintf(target, sizeof(target), "/api/v1/profiles?job=%s", asked[i]);
		list = get(target);
		assert_string_equal(names(list, "job_key"), "10.0.0.1:29500/run ");
	}
	nt_board_post(board, nt_snapshot_new());
	kept = get("/api/v1/profiles?job=10.0.0.1:29500/run");
	assert_string_equal(names(kept, "job_key"), "10.0.0.1:29500/run ");
	check_problem("/api/v1/profiles?job=llm-70b", 404, "no_such_job");
}

static void without_a_desk_none_is_offered(void **state)
{
	(void)state;
	assert_int_equal(start((struct nt_api_options){0}), 0);
	json_decref(post("{\"job\":\"llm-70b\",\"rank\":1}", 404, "not_offered"));
	check_problem("/api/v1/profiles/0123456789abcdef", 404, "not_offered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DESK(a_profile_runs_and_completes),
		TEST_DESK(the_oldest_is_replaced),
		TEST_DESK(nothing_in_time_is_expired),
		TEST_DESK(a_fault_is_named),
		TEST_DESK(profiles_of_a_job_that_has_ended_are_listed),
		TEST(without_a_desk_none_is_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
