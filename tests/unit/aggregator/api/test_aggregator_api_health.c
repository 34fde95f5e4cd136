/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the REST interface says of itself, who may ask, and the one thing that it does. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/system/file.h"
#include "tests/unit/aggregator/api.h"

/* ---- health -------------------------------------------------------------------------------------- */

static void before_the_first_snapshot_lists_are_empty_and_it_is_not_ready(void **state)
{
	static const char *const lists[] = {"/api/v1/jobs", "/api/v1/slow-ranks",
					    "/api/v1/incidents", "/api/v1/nodes"};
	nt_autojson json_t *ready = NULL, *alive = NULL;

	(void)state;
	assert_int_equal(start((struct nt_api_options){0}), 0);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		nt_autojson json_t *list = get(lists[i]);

		assert_string_equal(names(list, "id"), "");
	}
	check_problem("/api/v1/jobs/00000000000000a1", 404, "no_such_job");
	ready = get_status("/readyz", 503);
	assert_string_equal(text(ready, "status"), "failing");
	alive = get("/healthz");
	assert_string_equal(text(alive, "status"), "ok");
}

static int check_result;

static int failing_check(void *data, char reason[160])
{
	(void)data;
	if (check_result)
		(void)snprintf(reason, 160, "it is stuck");
	return check_result;
}

static void a_vital_check_decides_health_and_any_check_readiness(void **state)
{
	static const struct nt_api_check checks[] = {
		{.name = "loop", .vital = true, .check = failing_check},
	};
	static const struct nt_api_check others[] = {
		{.name = "bus", .vital = false, .check = failing_check},
	};

	(void)state;
	nt_board_post(board, nt_test_snapshot());
	assert_int_equal(start((struct nt_api_options){.check = checks, .checks = 1}), 0);
	check_result = 0;
	json_decref(get_status("/healthz", 200));
	json_decref(get_status("/readyz", 200));
	check_result = -EIO;
	json_decref(get_status("/healthz", 503));
	json_decref(get_status("/readyz", 503));
	nt_api_stop(api);
	assert_int_equal(start((struct nt_api_options){.check = others, .checks = 1}), 0);
	json_decref(get_status("/healthz", 200));
	json_decref(get_status("/readyz", 503));
}

static void readiness_tells_of_silent_nodes_and_is_not_lost_by_them(void **state)
{
	nt_autojson json_t *ready = NULL, *empty = NULL;
	const json_t *checks;

	(void)state;
	nt_board_post(board, nt_test_snapshot());
	assert_int_equal(start((struct nt_api_options){0}), 0);
	ready = get_status("/readyz", 200);
	checks = json_object_get(ready, "checks");
	checks = json_array_get(checks, json_array_size(checks) - 1);
	assert_string_equal(text(checks, "name"), "agents");
	assert_true(json_is_true(json_object_get(checks, "ok")));
	assert_string_equal(text(checks, "detail"),
			    "1 of 2 nodes with ranks without data for 10 s");
	nt_board_post(board, nt_snapshot_new());
	empty = get_status("/readyz", 200);
	checks = json_object_get(empty, "checks");
	checks = json_array_get(checks, json_array_size(checks) - 1);
	assert_string_equal(text(checks, "detail"), "no agent reports a rank");
}

/* A file that may not grow: to SQLite the disk fails. tests/api/full_disk.py fills a real one. */
static void limit_files(rlim_t bytes)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit limit;

	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void with_a_disk_that_fails_it_is_not_ready_but_alive_and_tells_who_is_slow(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &nt_test_rank_5, 1);
	const struct nt_sink sink = nt_store_sink(store);
	nt_autojson json_t *ready = NULL, *slow = NULL;

	(void)state;
	limit_files(16 << 10);
	assert_true(sink.incident(sink.data, &incident) < 0);
	limit_files(RLIM_INFINITY);
	ready = get_status("/readyz", 503);
	assert_string_equal(text(json_array_get(json_object_get(ready, "checks"), 1), "detail"),
			    "the database cannot be written");
	json_decref(get_status("/healthz", 200));
	slow = get("/api/v1/slow-ranks");
	assert_string_equal(names(slow, "kind"), "node rank ");
	nt_store_tick(store, NT_TEST_TIME_NS);
	json_decref(get_status("/readyz", 200));
	json_decref(get_status("/api/v1/incidents/a1", 200));
}

/* ---- rebaseline ---------------------------------------------------------------------------------- */

static int rebaseline_result;

static int fake_rebaseline(void *data, const char *job_id)
{
	assert_ptr_equal(data, &rebaseline_result);
	assert_string_equal(job_id, "00000000000000a1");
	return rebaseline_result;
}

static int post_rebaseline(int result)
{
	http_auto struct http_reply reply = {0};

	rebaseline_result = result;
	reply = http_request(nt_api_port(api), "POST", "/api/v1/jobs/00000000000000a1/rebaseline",
			     "", "");
	return reply.status;
}

static void a_rebaseline_is_handed_on(void **state)
{
	const struct nt_api_options options = {
		.rebaseline = fake_rebaseline,
		.data = &rebaseline_result,
	};

	(void)state;
	assert_int_equal(start(options), 0);
	assert_int_equal(post_rebaseline(0), 202);
	assert_int_equal(post_rebaseline(-ENOENT), 404);
	assert_int_equal(post_rebaseline(-EBUSY), 503);
	assert_int_equal(post_rebaseline(-EIO), 500);
}

static void a_rebaseline_that_is_not_offered_is_404(void **state)
{
	(void)state;
	assert_int_equal(post_rebaseline(0), 404);
}

/* ---- metrics and the contract --------------------------------------------------------------------- */

static void metrics_hold_the_snapshots_rows_and_our_own(void **state)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "GET", "/metrics", "", NULL);

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_true(http_has(&reply, "Content-Type: text/plain; version=0.0.4"));
	assert_non_null(strstr(reply.body,
			       "# TYPE neutracer_aggregator_test_messages_total counter\n"
			       "neutracer_aggregator_test_messages_total{reason=\"late\"} "
			       "7\n"
			       "neutracer_aggregator_test_messages_total{reason=\"other\"} "
			       "12345678\n"));
	assert_non_null(strstr(reply.body, "\nneutracer_aggregator_test_jobs 2.5"));
	assert_non_null(strstr(reply.body, "\nneutracer_aggregator_store_healthy 1\n"));
	assert_non_null(strstr(reply.body, "\nneutracer_aggregator_http_connections_total "));
	assert_null(strstr(reply.body, "# EOF"));
}

static void openmetrics_is_given_to_who_asks_for_it(void **state)
{
	http_auto struct http_reply reply = http_request(
		nt_api_port(api), "GET", "/metrics",
		"Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n", NULL);

	(void)state;
	assert_int_equal(reply.status, 200);
	assert_true(http_has(&reply, "Content-Type: application/openmetrics-text; version=1.0.0"));
	assert_non_null(strstr(reply.body, "# TYPE neutracer_aggregator_test_messages counter\n"));
	assert_string_equal(reply.body + strlen(reply.body) - 6, "# EOF\n");
}

static int ranks_status(const char *wanted)
{
	char target[512];
	http_auto struct http_reply reply = {0};

	(void)snprintf(target, sizeof(target), "/metrics?ranks=%s", wanted);
	reply = http_request(nt_api_port(api), "GET", target, "", NULL);
	if (reply.status == 200)
		assert_null(strstr(reply.body, "neutracer_job_"));
	return reply.status;
}

static void ranks_are_requested_by_the_name_of_their_job(void **state)
{
	char longest[261];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[256] = '\0';
	assert_int_equal(ranks_status("llm-70b"), 200);
	assert_int_equal(ranks_status("nobody"), 200);
	assert_int_equal(ranks_status(""), 400);
	assert_int_equal(ranks_status(longest), 400);
	longest[255] = '\0';
	assert_int_equal(ranks_status(longest), 200);
	/* As many characters, one of which has two bytes. */
	memcpy(longest, "%C3%A9", 6);
	memset(longest + 6, 'x', 254);
	longest[260] = '\0';
	assert_int_equal(ranks_status(longest), 200);
}

static void the_contract_is_served_as_it_is(void **state)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "GET", "/openapi.yaml", "", NULL);
	nt_autobuf struct nt_buf file = {0};
	FILE *contract = fopen("docs/api/openapi.yaml", "r");

	(void)state;
	assert_non_null(contract);
	assert_int_equal(nt_buf_reserve(&file, 1 << 20), 0);
	file.len = fread(file.data, 1, 1 << 20, contract);
	(void)fclose(contract);
	assert_int_equal(reply.status, 200);
	assert_int_equal(strlen(reply.body), file.len);
	assert_memory_equal(reply.body, file.data, file.len);
}

static void everything_but_health_and_contract_wants_the_token(void **state)
{
	static const struct {
		const char *target;
		int status;
	} cases[] = {
		{"/healthz", 200},
		{"/readyz", 200},
		{"/openapi.yaml", 200},
		{"/metrics", 401},
		{"/api/v1/jobs", 401},
		{"/api/v1/slow-ranks", 401},
		{"/api/v1/incidents", 401},
		{"/api/v1/jobs/00000000000000a1", 401},
		{"/api/v1/nodes", 401},
		{"/api/v1/incidents/a1", 401},
		{"/api/v1/jobs/x/ranks", 401},
	};
	char token_file[SCRATCH_BYTES + 8], authorization[256];
	nt_autobuf struct nt_buf token = {0};

	(void)state;
	(void)snprintf(token_file, sizeof(token_file), "%s/token", dir);
	nt_board_post(board, nt_test_snapshot());
	assert_int_equal(start((struct nt_api_options){.token_file = token_file}), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		http_auto struct http_reply reply =
			http_request(nt_api_port(api), "GET", cases[i].target, "", NULL);

		assert_int_equal(reply.status, cases[i].status);
	}
	nt_api_stop(api);
	assert_int_equal(
		start((struct nt_api_options){.token_file = token_file, .metrics_open = true}), 0);
	{
		http_auto struct http_reply reply =
			http_request(nt_api_port(api), "GET", "/metrics", "", NULL);

		assert_int_equal(reply.status, 200);
	}
	{
		http_auto struct http_reply reply =
			http_request(nt_api_port(api), "GET", "/metrics?ranks=train", "", NULL);

		assert_int_equal(reply.status, 401);
	}
	assert_int_equal(nt_file_read(token_file, 4096, &token), 0);
	(void)snprintf(authorization, sizeof(authorization), "Authorization: Bearer %.*s\r\n",
		       (int)strcspn((const char *)token.data, "\n"), (const char *)token.data);
	{
		http_auto struct http_reply reply = http_request(
			nt_api_port(api), "GET", "/metrics?ranks=train", authorization, NULL);

		assert_int_equal(reply.status, 200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOARD(before_the_first_snapshot_lists_are_empty_and_it_is_not_ready),
		TEST_BOARD(a_vital_check_decides_health_and_any_check_readiness),
		TEST_BOARD(readiness_tells_of_silent_nodes_and_is_not_lost_by_them),
		TEST(with_a_disk_that_fails_it_is_not_ready_but_alive_and_tells_who_is_slow),
		TEST_BOARD(a_rebaseline_is_handed_on),
		TEST(a_rebaseline_that_is_not_offered_is_404),
		TEST(metrics_hold_the_snapshots_rows_and_our_own),
		TEST(openmetrics_is_given_to_who_asks_for_it),
		TEST(ranks_are_requested_by_the_name_of_their_job),
		TEST(the_contract_is_served_as_it_is),
		TEST_BOARD(everything_but_health_and_contract_wants_the_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
