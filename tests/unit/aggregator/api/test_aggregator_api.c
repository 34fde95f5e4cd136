/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the REST interface says of jobs, ranks, nodes and incidents. */
#include <errno.h>

#include "common/system/clock.h"
#include "tests/unit/aggregator/api.h"

/* ---- slow ranks ---------------------------------------------------------------------------------- */

static void slow_ranks_come_worst_first_and_without_notes(void **state)
{
	nt_autojson json_t *list = get("/api/v1/slow-ranks");
	const json_t *rank = json_array_get(json_object_get(list, "items"), 1);

	(void)state;
	assert_string_equal(names(list, "kind"), "node rank ");
	assert_true(json_is_null(json_object_get(list, "next")));
	assert_int_equal(json_integer_value(json_object_get(rank, "rank")), 5);
	assert_string_equal(text(rank, "node"), "gpu-07");
	assert_string_equal(text(rank, "job"), "llm-70b");
	assert_string_equal(text(rank, "class"), "compute");
	assert_true(json_is_null(json_object_get(rank, "cause")));
	assert_string_equal(text(rank, "since"), "2026-11-21T03:00:12Z");
	assert_string_equal(text(rank, "tier"), "T2");
	assert_string_equal(text(rank, "incident"), "00000000000000f1");
	assert_int_equal(json_array_size(json_object_get(rank, "peers")), 3);
}

static const json_t *slow_rank(const json_t *list, const char *kind)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(list, "items"), i, item)
	{
		if (!strcmp(text(item, "kind"), kind))
			return item;
	}
	fail_msg("no culprit of kind %s", kind);
	return NULL;
}

/* The board's snapshot is read by nobody else yet. */
static struct nt_snapshot_job *slow_job(struct nt_snapshot *snapshot)
{
	return (struct nt_snapshot_job *)(uintptr_t)snapshot->job[0];
}

static void a_slow_rank_says_whether_it_is_still_observed(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	nt_autojson json_t *all = get("/api/v1/slow-ranks"), *one = NULL, *none = NULL;

	(void)state;
	assert_true(json_is_true(json_object_get(slow_rank(all, "rank"), "observed")));
	assert_true(json_is_true(json_object_get(slow_rank(all, "node"), "observed")));
	assert_true(json_number_value(json_object_get(slow_rank(all, "rank"), "completeness")) ==
		    1);
	((struct nt_snapshot_rank *)(uintptr_t)slow_job(snapshot)->rank)[5].silent = true;
	nt_board_post(board, snapshot);
	one = get("/api/v1/slow-ranks");
	assert_true(json_is_false(json_object_get(slow_rank(one, "rank"), "observed")));
	assert_true(json_is_true(json_object_get(slow_rank(one, "node"), "observed")));
	snapshot = nt_test_snapshot();
	slow_job(snapshot)->state = NT_JOB_UNOBSERVED;
	nt_board_post(board, snapshot);
	none = get("/api/v1/slow-ranks");
	assert_true(json_is_false(json_object_get(slow_rank(none, "rank"), "observed")));
	assert_true(json_is_false(json_object_get(slow_rank(none, "node"), "observed")));
}

static void slow_ranks_of_a_past_time_come_from_the_store(void **state)
{
	static const struct {
		const char *time, *ids;
	} cases[] = {
		{"2026-11-21T03:00:11Z", ""},    {"2026-11-21T03:00:12Z", "a1 "},
		{"2026-11-21T03:59:59Z", "a1 "}, {"2026-11-21T04:00:12Z", ""},
		{"1969-01-01T00:00:00Z", ""},    {"9999-01-01T00:00:00Z", ""},
		{"2300-01-01T00:00:00Z", ""},
	};

	(void)state;
	put("a1", "resolved");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char target[128];
		nt_autojson json_t *list = NULL;

		(void)snprintf(target, sizeof(target), "/api/v1/slow-ranks?at=%s", cases[i].time);
		list = get(target);
		assert_string_equal(names(list, "incident"), cases[i].ids);
	}
	json_decref(get_status("/api/v1/slow-ranks?at=yesterday", 400));
}

static void a_cursor_leads_to_the_rest_of_the_slow_ranks(void **state)
{
	nt_autojson json_t *first = get("/api/v1/slow-ranks?limit=1");
	nt_autojson json_t *second = NULL;
	char target[256];

	(void)state;
	assert_string_equal(names(first, "kind"), "node ");
	(void)snprintf(target, sizeof(target), "/api/v1/slow-ranks?limit=1&cursor=%s",
		       text(first, "next"));
	second = get(target);
	assert_string_equal(names(second, "kind"), "rank ");
	assert_true(json_is_null(json_object_get(second, "next")));
}

static void slow_ranks_are_filtered_by_job_class_and_time(void **state)
{
	static const struct {
		const char *target, *kinds;
	} cases[] = {
		{"/api/v1/slow-ranks?job=llm-70b", "node rank "},
		{"/api/v1/slow-ranks?job=00000000000000a1", "node rank "},
		{"/api/v1/slow-ranks?job=10.0.0.1:29500/run", "node rank "},
		{"/api/v1/slow-ranks?job=resnet", ""},
		{"/api/v1/slow-ranks?class=compute", "node rank "},
		{"/api/v1/slow-ranks?class=network", ""},
		{"/api/v1/slow-ranks?since=2026-11-21T03:00:12Z", "node rank "},
		{"/api/v1/slow-ranks?since=2026-11-21T03:00:13Z", ""},
		{"/api/v1/slow-ranks?since=1600-01-01T00:00:00Z", "node rank "},
		{"/api/v1/slow-ranks?since=9999-01-01T00:00:00Z", ""},
		{"/api/v1/slow-ranks?since=1970-01-01T00:00:00%2B01:00", "node rank "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nt_autojson json_t *list = get(cases[i].target);

		assert_string_equal(names(list, "kind"), cases[i].kinds);
	}
}

static void parameters_that_are_wrong_are_400(void **state)
{
	(void)state;
	check_problem("/api/v1/slow-ranks?class=slow", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?since=yesterday", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?since=2026-02-30T00:00:00Z", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?at=2026-13-01T00:00:00Z", 400, "bad_parameter");
	check_problem("/api/v1/incidents?since=2026-11-21T24:00:00Z", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?job=", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?limit=0", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?limit=1001", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?limit=1x", 400, "bad_parameter");
	check_problem("/api/v1/slow-ranks?cursor=s1", 400, "bad_cursor");
	check_problem("/api/v1/jobs?cursor=r1", 400, "bad_cursor");
	check_problem("/api/v1/jobs?state=slow", 400, "bad_parameter");
	check_problem("/api/v1/jobs/00000000000000a1/ranks?cursor=r-1", 400, "bad_cursor");
	check_problem("/api/v1/incidents?cursor=i0", 400, "bad_cursor");
	check_problem("/api/v1/incidents?cursor=oa", 400, "bad_cursor");
	check_problem("/api/v1/incidents?state=pending", 400, "bad_parameter");
	check_problem("/api/v1/incidents?severity=", 400, "bad_parameter");
	check_problem("/api/v1/nodes?cursor=x", 400, "bad_cursor");
	check_problem("/api/v1/jobs?lmit=3", 400, "unknown_parameter");
}

/* ---- jobs, ranks, nodes --------------------------------------------------------------------------- */

static void jobs_come_living_first(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs");
	nt_autojson json_t *running = get("/api/v1/jobs?state=running");

	(void)state;
	assert_string_equal(names(list, "state"), "running hung ended ");
	assert_string_equal(names(running, "name"), "llm-70b ");
}

static void pages_of_jobs_miss_none(void **state)
{
	char target[256] = "/api/v1/jobs?limit=1", seen[8192] = "";

	(void)state;
	for (int i = 0; i < 3; i++) {
		nt_autojson json_t *list = get(target);
		size_t len = strlen(seen);

		(void)snprintf(seen + len, sizeof(seen) - len, "%s", names(list, "id"));
		(void)snprintf(target, sizeof(target), "/api/v1/jobs?limit=1&cursor=%s",
			       text(list, "next"));
	}
	assert_string_equal(seen, "00000000000000a1 00000000000000c3 00000000000000b2 ");
	assert_non_null(strstr(target, "(none)"));
}

static void a_job_from_a_stranger_is_text_and_nothing_else(void **state)
{
	nt_autojson json_t *job = get("/api/v1/jobs/00000000000000c3");

	(void)state;
	assert_string_equal(text(job, "name"), "\xef\xbf\xbd<b>\"evil\"\x1b[31m");
}

static void a_job_tells_its_open_incidents_and_its_step(void **state)
{
	nt_autojson json_t *job = get("/api/v1/jobs/00000000000000a1");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(job, "incidents")), 2);
	assert_float_equal(nt_json_get_number(job, "step_seconds", 0), 0.43, 1e-9);
	assert_true(json_is_null(json_object_get(job, "ended")));
	assert_int_equal(json_integer_value(json_object_get(job, "live")), NT_TEST_RANKS);
}

static void what_is_not_there_is_404(void **state)
{
	(void)state;
	check_problem("/api/v1/jobs/nobody", 404, "no_such_job");
	check_problem("/api/v1/jobs/nobody/ranks", 404, "no_such_job");
	check_problem("/api/v1/incidents/nobody", 404, "no_such_incident");
	check_problem("/api/v2/jobs", 404, "no_such_path");
}

static void ranks_tell_their_calls_and_bytes_exactly(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs/00000000000000a1/ranks");
	const json_t *rank = json_array_get(json_object_get(list, "items"), 2);
	const json_t *op = json_array_get(json_object_get(rank, "operations"), 0);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(list, "items")), NT_TEST_RANKS);
	assert_string_equal(text(op, "communicator"), "feedface12345678");
	assert_string_equal(text(op, "operation"), "all-reduce");
	assert_int_equal(json_integer_value(json_object_get(op, "calls")), 1000);
	assert_int_equal(json_integer_value(json_object_get(op, "bytes")), 1LL << 40);
	assert_string_equal(text(json_object_get(rank, "inside"), "operation"), "all-reduce");
	assert_string_equal(text(rank, "state"), "running");
}

/* The agent sends what it likes. */
static void counters_beyond_json_are_the_largest_number(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	struct nt_snapshot_rank *rank =
		(struct nt_snapshot_rank *)(uintptr_t)slow_job(snapshot)->rank;
	nt_autojson json_t *list = NULL, *communicators = NULL;
	struct nt_snapshot_op op = *rank[0].op;
	const json_t *item;

	(void)state;
	op.calls = UINT64_MAX;
	op.bytes = 1ULL << 63;
	for (int i = 0; i < 2; i++) {
		rank[i].launches = rank[i].lost = UINT64_MAX;
		rank[i].op = &op;
		rank[i].ops = 1;
	}
	nt_board_post(board, snapshot);
	list = get("/api/v1/jobs/00000000000000a1/ranks");
	item = json_array_get(json_object_get(list, "items"), 0);
	assert_int_equal(json_integer_value(json_object_get(item, "launches")), INT64_MAX);
	assert_int_equal(json_integer_value(json_object_get(item, "lost_events")), INT64_MAX);
	item = json_array_get(json_object_get(item, "operations"), 0);
	assert_int_equal(json_integer_value(json_object_get(item, "calls")), INT64_MAX);
	communicators = get("/api/v1/jobs/00000000000000a1/communicators");
	item = json_array_get(json_object_get(communicators, "items"), 0);
	item = json_array_get(json_object_get(item, "operations"), 0);
	assert_int_equal(json_integer_value(json_object_get(item, "calls")), INT64_MAX);
	assert_int_equal(json_integer_value(json_object_get(item, "bytes")), INT64_MAX);
}

static void pages_of_ranks_miss_none(void **state)
{
	char target[256] = "/api/v1/jobs/00000000000000a1/ranks?limit=3";
	size_t seen = 0;

	(void)state;
	for (;;) {
		nt_autojson json_t *list = get(target);
		const json_t *items = json_object_get(list, "items");

		for (size_t i = 0; i < json_array_size(items); i++)
			assert_int_equal(json_integer_value(
						 json_object_get(json_array_get(items, i), "rank")),
					 seen++);
		if (json_is_null(json_object_get(list, "next")))
			break;
		(void)snprintf(target, sizeof(target),
			       "/api/v1/jobs/00000000000000a1/ranks?limit=3&cursor=%s",
			       text(list, "next"));
	}
	assert_int_equal(seen, NT_TEST_RANKS);
}

static void ranks_are_filtered_by_node(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs/00000000000000a1/ranks?node=gpu-03");

	(void)state;
	assert_string_equal(names(list, "node"), "gpu-03 gpu-03 ");
}

static void nodes_are_listed_by_name_and_state(void **state)
{
	nt_autojson json_t *first = get("/api/v1/nodes?limit=1");
	nt_autojson json_t *second = get("/api/v1/nodes?cursor=ngpu-01");
	nt_autojson json_t *silent = get("/api/v1/nodes?state=unobserved");

	(void)state;
	assert_string_equal(names(first, "node"), "gpu-01 ");
	assert_string_equal(text(first, "next"), "ngpu-01");
	assert_string_equal(names(second, "node"), "gpu-02 ");
	assert_string_equal(names(silent, "node"), "gpu-02 ");
}

static void a_node_tells_which_caps_are_reached_and_by_whom(void **state)
{
	nt_autojson json_t *list = get("/api/v1/nodes");
	const json_t *items = json_object_get(list, "items"), *limit;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(json_array_get(items, 0), "limits")), 0);
	limit = json_array_get(json_object_get(json_array_get(items, 1), "limits"), 0);
	assert_string_equal(text(limit, "what"), "processes");
	assert_string_equal(text(limit, "unit"), "processes");
	assert_string_equal(text(limit, "owner"), "user 65534");
	assert_int_equal(json_integer_value(json_object_get(limit, "left_out")), 412);
	assert_int_equal(json_integer_value(json_object_get(limit, "owner_left_out")), 400);
	assert_int_equal(json_integer_value(json_object_get(limit, "cap")), 1024);
}

/* One job in which every rank is slow and is compared with all the others. */
static void post_large_job(uint32_t *peers, size_t count)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **list = nt_snapshot_alloc(snapshot, 1, sizeof(*list));
	struct nt_snapshot_job *job =
		nt_test_job("00000000000000d4", "large", "large", NT_JOB_RUNNING);
	struct nt_culprit *culprit = nt_snapshot_job_alloc(job, count, sizeof(*culprit));
	struct nt_snapshot_rank *rank = nt_snapshot_job_alloc(job, count, sizeof(*rank));
	struct nt_wire_incident incident;

	assert_true(snapshot && list && culprit && rank);
	for (size_t i = 0; i < count; i++) {
		peers[i] = (uint32_t)i;
		culprit[i] = nt_test_rank_5;
		culprit[i].rank = (uint32_t)i;
		culprit[i].peers = peers;
		culprit[i].peer_count = count;
		rank[i] = (struct nt_snapshot_rank){.rank = (uint32_t)i,
						    .node = "",
						    .namespace = "",
						    .pod = "",
						    .container = "",
						    .gpu = "",
						    .process = "",
						    .peers = peers,
						    .peer_count = count};
	}
	incident = nt_test_incident("00000000000000f9", "firing", culprit, count);
	nt_test_set_incidents(job, &incident, 1);
	job->rank = rank;
	job->ranks = count;
	*list = job;
	snapshot->job = list;
	snapshot->jobs = 1;
	nt_board_post(board, snapshot);
}

static void pages_of_a_large_job_stay_small_and_miss_none(void **state)
{
	enum { RANKS = 2000 };
	static uint32_t peers[RANKS];
	char target[256] = "/api/v1/slow-ranks?limit=1000";
	size_t seen = 0, pages = 0;

	(void)state;
	post_large_job(peers, RANKS);
	for (;;) {
		nt_autojson json_t *list = get(target);
		const json_t *items = json_object_get(list, "items");

		assert_true(json_array_size(items) > 0 && json_array_size(items) < 200);
		assert_int_equal(
			json_integer_value(json_object_get(json_array_get(items, 0), "rank")),
			seen);
		seen += json_array_size(items);
		pages++;
		if (json_is_null(json_object_get(list, "next")))
			break;
		(void)snprintf(target, sizeof(target), "/api/v1/slow-ranks?limit=1000&cursor=%s",
			       text(list, "next"));
	}
	assert_int_equal(seen, RANKS);
	assert_true(pages > 10);
}

static void a_rank_lists_some_of_its_peers_and_counts_them_all(void **state)
{
	enum { RANKS = 2000 };
	static uint32_t peers[RANKS];
	nt_autojson json_t *list = NULL;
	const json_t *rank;

	(void)state;
	post_large_job(peers, RANKS);
	list = get("/api/v1/jobs/00000000000000d4/ranks?limit=1");
	rank = json_array_get(json_object_get(list, "items"), 0);
	assert_int_equal(json_array_size(json_object_get(rank, "peers")), 64);
	assert_int_equal(json_integer_value(json_object_get(rank, "peer_count")), RANKS);
}

/* ---- incidents ----------------------------------------------------------------------------------- */

static const char whole_incident[] =
	"{\"id\":\"a1\",\"state\":\"resolved\",\"severity\":\"critical\",\"class\":\"compute\","
	"\"cause\":null,\"job\":\"llm-70b\",\"attempt\":1,\"namespace\":\"train\",\"culprits\":[{"
	"\"kind\":\"rank\",\"rank\":5,\"node\":\"gpu-07\",\"pod\":\"llm-70b-5\",\"container\":"
	"\"worker\",\"gpu\":null,\"peers\":[1,3,7]}],\"since\":\"2026-11-21T03:00:12Z\",\"until\":"
	"\"2026-11-21T04:00:12Z\",\"seen\":\"2026-11-21T03:00:31Z\",\"slowdown\":1.31,\"cost\":{"
	"\"gpu_hours\":12.4,\"currency\":null,\"money\":null,\"energy_kwh\":null,\"co2_kg\":null},"
	"\"tier\":\"T2\",\"own_source\":\"calls\",\"confidence\":0.98,\"completeness\":1.0,\"evidence\":[{\"what\":"
	"\"own work of the step\",\"unit\":\"ms\",\"value\":412.0,\"peers\":314.5,\"width\":3.1,"
	"\"method\":\"ratio\",\"windows\":9}],\"summary\":"
	"\"rank 5 computes 31 % slower than its 3 peers\",\"stacks\":[],"
	"\"handling\":{\"acknowledged\":null,\"silenced\":null,\"notes\":0},\"notes\":[]}\n";

static void an_incident_is_the_documented_object_to_the_byte(void **state)
{
	(void)state;
	put("a1", "resolved");
	{
		http_auto struct http_reply reply =
			http_request(nt_api_port(api), "GET", "/api/v1/incidents/a1", "", NULL);

		assert_int_equal(reply.status, 200);
		assert_string_equal(reply.body, whole_incident);
		assert_true(http_has(&reply, "ETag: \"a1-3-0\"\r\n"));
	}
	{
		http_auto struct http_reply reply =
			http_request(nt_api_port(api), "GET", "/api/v1/incidents/a1",
				     "If-None-Match: \"a1-3-0\"\r\n", NULL);

		assert_int_equal(reply.status, 304);
	}
}

static void an_open_incident_is_found_although_the_store_does_not_have_it(void **state)
{
	nt_autojson json_t *incident = get("/api/v1/incidents/00000000000000f2");

	(void)state;
	assert_string_equal(text(incident, "state"), "firing");
}

static void incidents_come_newest_first_and_page_by_page(void **state)
{
	char target[256] = "/api/v1/incidents?limit=2", seen[8192] = "";

	(void)state;
	put("a", "resolved");
	put("b", "firing");
	put("c", "firing");
	for (int i = 0; i < 2; i++) {
		nt_autojson json_t *list = get(target);
		size_t len = strlen(seen);

		(void)snprintf(seen + len, sizeof(seen) - len, "%s| ", names(list, "id"));
		(void)snprintf(target, sizeof(target), "/api/v1/incidents?limit=2&cursor=%s",
			       text(list, "next"));
	}
	assert_string_equal(seen, "c b | a | ");
}

static void incidents_are_filtered_also_by_the_id_of_a_job(void **state)
{
	nt_autojson json_t *by_id = NULL, *other = NULL, *firing = NULL, *future = NULL;

	(void)state;
	put("a", "resolved");
	put("b", "firing");
	by_id = get("/api/v1/incidents?job=00000000000000a1");
	other = get("/api/v1/incidents?job=00000000000000b2");
	firing = get("/api/v1/incidents?state=firing&severity=critical&class=compute");
	future = get("/api/v1/incidents?since=2300-01-01T00:00:00Z");
	assert_string_equal(names(future, "id"), "");
	assert_string_equal(names(by_id, "id"), "b a ");
	assert_string_equal(names(other, "id"), "");
	assert_string_equal(names(firing, "id"), "b ");
}

static void links_name_both_ends_and_what_is_not_known_is_null(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs/00000000000000a1/links"), *page = NULL;
	nt_autojson json_t *rest = NULL, *none = NULL, *fewer = NULL;
	struct nt_snapshot *snapshot;
	char target[256];
	const json_t *items = json_object_get(list, "items"), *first, *second, *third, *end;

	(void)state;
	assert_int_equal(json_array_size(items), 3);
	first = json_array_get(items, 0);
	second = json_array_get(items, 1);
	third = json_array_get(items, 2);
	end = json_object_get(first, "to");
	assert_int_equal(json_integer_value(json_object_get(end, "rank")), 1);
	assert_string_equal(nt_json_get_text(end, "node", ""), "gpu-01");
	assert_string_equal(nt_json_get_text(end, "address", ""), "fe80::2");
	assert_true(nt_json_get_number(first, "bytes_per_second", 0) == 11.5e9);
	assert_true(nt_json_get_number(first, "latency_seconds", 0) == 12500e-9);
	assert_true(nt_json_get_number(first, "latency_most_seconds", 0) == 410e-6);
	assert_true(nt_json_get_number(first, "error_ratio", 0) == 0.05);
	assert_int_equal(json_integer_value(json_object_get(first, "error_status")), 12);
	assert_true(json_is_null(json_object_get(first, "retransmits")));
	assert_string_equal(nt_json_get_text(third, "transport", ""), "tcp");
	assert_int_equal(json_integer_value(json_object_get(third, "sockets")), 2);
	assert_true(nt_json_get_number(third, "latency_seconds", 0) == 180e-6);
	assert_true(nt_json_get_number(third, "retransmit_ratio", 0) == 0.003);
	assert_true(json_is_null(json_object_get(third, "errors")));
	assert_true(json_is_null(json_object_get(third, "requests_per_second")));
	/* Not visible: never 0. */
	assert_int_equal(json_integer_value(json_object_get(second, "not_visible")), 1);
	assert_true(json_is_null(json_object_get(second, "bytes_per_second")));
	assert_true(json_is_null(json_object_get(second, "latency_seconds")));
	assert_true(json_is_null(json_object_get(second, "error_ratio")));
	end = json_object_get(second, "to");
	assert_true(json_is_null(json_object_get(end, "rank")));
	assert_string_equal(nt_json_get_text(end, "address", ""), "lid 7");
	assert_int_equal(json_integer_value(json_object_get(list, "over_cap")), 7);
	assert_int_equal(json_array_size(json_object_get(list, "not_visible")), 2);
	page = get("/api/v1/jobs/00000000000000a1/links?limit=1");
	(void)snprintf(target, sizeof(target), "/api/v1/jobs/00000000000000a1/links?cursor=%s",
		       text(page, "next"));
	rest = get(target);
	assert_int_equal(json_array_size(json_object_get(rest, "items")), 2);
	assert_true(json_is_null(json_object_get(rest, "next")));
	/* The first link is gone meanwhile: no other one is skipped. */
	snapshot = nt_test_snapshot();
	slow_job(snapshot)->link++;
	slow_job(snapshot)->links--;
	nt_board_post(board, snapshot);
	fewer = get(target);
	assert_true(json_equal(json_object_get(fewer, "items"), json_object_get(rest, "items")));
	check_problem("/api/v1/jobs/00000000000000a1/links?cursor=l1", 400, "bad_cursor");
	check_problem("/api/v1/jobs/00000000000000a1/links?cursor=l1-0-1-1-1", 400, "bad_cursor");
	none = get("/api/v1/jobs/00000000000000b2/links");
	assert_int_equal(json_array_size(json_object_get(none, "items")), 0);
}

static void without_a_store_the_open_incidents_are_shown(void **state)
{
	nt_autojson json_t *list = NULL, *info = NULL, *page = NULL, *rest = NULL;

	(void)state;
	nt_store_close(store);
	store = NULL;
	nt_board_post(board, nt_test_snapshot());
	assert_int_equal(start((struct nt_api_options){0}), 0);
	list = get("/api/v1/incidents");
	assert_string_equal(names(list, "id"),
			    "00000000000000f1 00000000000000f2 00000000000000f3 ");
	info = get("/api/v1/incidents?severity=info");
	assert_string_equal(names(info, "id"), "00000000000000f3 ");
	page = get("/api/v1/incidents?limit=2");
	assert_string_equal(names(page, "id"), "00000000000000f1 00000000000000f2 ");
	assert_string_equal(text(page, "next"), "o00000000000000f2");
	rest = get("/api/v1/incidents?limit=2&cursor=o00000000000000f2");
	assert_string_equal(names(rest, "id"), "00000000000000f3 ");
	assert_true(json_is_null(json_object_get(rest, "next")));
	check_problem("/api/v1/incidents?cursor=i1", 400, "bad_cursor");
	check_problem("/api/v1/incidents?cursor=o", 400, "bad_cursor");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slow_ranks_come_worst_first_and_without_notes),
		TEST(a_slow_rank_says_whether_it_is_still_observed),
		TEST(slow_ranks_of_a_past_time_come_from_the_store),
		TEST(a_cursor_leads_to_the_rest_of_the_slow_ranks),
		TEST(slow_ranks_are_filtered_by_job_class_and_time),
		TEST(parameters_that_are_wrong_are_400),
		TEST(jobs_come_living_first),
		TEST(pages_of_jobs_miss_none),
		TEST(a_job_from_a_stranger_is_text_and_nothing_else),
		TEST(a_job_tells_its_open_incidents_and_its_step),
		TEST(what_is_not_there_is_404),
		TEST(ranks_tell_their_calls_and_bytes_exactly),
		TEST(counters_beyond_json_are_the_largest_number),
		TEST(pages_of_ranks_miss_none),
		TEST(ranks_are_filtered_by_node),
		TEST(nodes_are_listed_by_name_and_state),
		TEST(a_node_tells_which_caps_are_reached_and_by_whom),
		TEST(pages_of_a_large_job_stay_small_and_miss_none),
		TEST(a_rank_lists_some_of_its_peers_and_counts_them_all),
		TEST(an_incident_is_the_documented_object_to_the_byte),
		TEST(an_open_incident_is_found_although_the_store_does_not_have_it),
		TEST(incidents_come_newest_first_and_page_by_page),
		TEST(incidents_are_filtered_also_by_the_id_of_a_job),
		TEST(links_name_both_ends_and_what_is_not_known_is_null),
		TEST_BOARD(without_a_store_the_open_incidents_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
