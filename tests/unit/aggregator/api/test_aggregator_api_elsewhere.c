/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the REST interface says of jobs that another aggregator owns, from the store. */
#include <errno.h>

#include "tests/unit/aggregator/api.h"

static struct nt_snapshot_job *head_of(const char *id, const char *key, uint32_t attempt)
{
	struct nt_snapshot_job *job = nt_snapshot_job_new();

	assert_non_null(job);
	(void)snprintf(job->id, sizeof(job->id), "%s", id);
	job->key = key;
	job->name = "llm-70b";
	job->owner = "";
	job->is_summary = true;
	job->attempt = attempt;
	job->size = job->live = 8;
	return job;
}

static void post_jobs(struct nt_snapshot_job *const *job, size_t count)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **list =
		nt_snapshot_alloc(snapshot, count, sizeof(const struct nt_snapshot_job *));

	assert_true(snapshot && list);
	for (size_t i = 0; i < count; i++)
		list[i] = job[i];
	snapshot->job = list;
	snapshot->jobs = count;
	nt_board_post(board, snapshot);
}

/* In place of the snapshot: one job, of which there is only a head. */
static void show_head(const char *owner)
{
	struct nt_snapshot_job *job = head_of("00000000000000aa", "10.0.0.1:29500/run", 1);

	job->owner = owner;
	post_jobs(&job, 1);
}

static void put_for(const char *id, const char *key, uint32_t attempt)
{
	struct nt_wire_incident incident = nt_test_incident(id, "firing", &nt_test_rank_5, 1);
	const struct nt_sink sink = nt_store_sink(store);

	incident.job_key = key;
	incident.attempt = attempt;
	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

static void jobs_of_other_aggregators_have_all_their_incidents(void **state)
{
	struct nt_snapshot_job *const job[] = {
		head_of("00000000000000c3", "b", 2),
		head_of("00000000000000a1", "b", 1),
		head_of("00000000000000b2", "a", 1),
	};
	static const size_t counts[] = {0, 1, 150};
	nt_autojson json_t *list = NULL, *one = NULL;
	char id[32];

	(void)state;
	for (size_t i = 0; i < counts[2]; i++) {
		(void)snprintf(id, sizeof(id), "%zu", i);
		put_for(id, "a", 1);
	}
	put_for("of b", "b", 1);
	put_for("of none", "b", 3);
	post_jobs(job, 3);
	list = get("/api/v1/jobs");
	assert_string_equal(names(list, "id"),
			    "00000000000000a1 00000000000000b2 00000000000000c3 ");
	for (size_t i = 0; i < 3; i++) {
		static const size_t order[] = {1, 2, 0};
		const json_t *item = json_array_get(json_object_get(list, "items"), i);

		assert_int_equal(json_array_size(json_object_get(item, "incidents")),
				 counts[order[i]]);
	}
	one = get("/api/v1/jobs/00000000000000b2");
	assert_int_equal(json_array_size(json_object_get(one, "incidents")), counts[2]);
}

static void a_job_of_another_aggregator_is_shown_with_what_is_stored_of_it(void **state)
{
	nt_autojson json_t *job = NULL, *slow = NULL;

	(void)state;
	put("theirs", "firing");
	show_head("http://two:9480");
	job = get("/api/v1/jobs/00000000000000aa");
	assert_string_equal(text(job, "owner"), "http://two:9480");
	assert_int_equal(json_array_size(json_object_get(job, "incidents")), 1);
	slow = get("/api/v1/slow-ranks");
	assert_string_equal(names(slow, "incident"), "theirs ");
}

static void count_slow_ranks(const char *parameters, size_t count)
{
	nt_autojson json_t *list = NULL;
	char target[128];

	(void)snprintf(target, sizeof(target), "/api/v1/slow-ranks?limit=1000%s", parameters);
	list = get(target);
	assert_int_equal(json_array_size(json_object_get(list, "items")), count);
	assert_true(json_is_null(json_object_get(list, "next")) == (count < 1000));
}

static void slow_ranks_are_found_behind_many_incidents_of_others(void **state)
{
	enum { OTHERS = NT_STORE_MAX_PAGE + 5 };
	char id[16];

	(void)state;
	put("theirs", "firing");
	for (int i = 0; i < OTHERS; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		put_for(id, "not shown", 1);
	}
	show_head("");
	count_slow_ranks("", 1);
	count_slow_ranks("&at=2026-11-21T03:00:12Z", 1000);
	count_slow_ranks("&at=2026-11-21T03:00:12Z&cursor=s3ff4f5c28f5c28f6-0-994", 6);
}

static void more_slow_ranks_than_fit_are_409(void **state)
{
	static struct nt_culprit culprit[NT_WIRE_MAX_CULPRITS];
	static const char *const ids[] = {"a", "b", "c", "d"};

	(void)state;
	for (size_t i = 0; i < NT_WIRE_MAX_CULPRITS; i++) {
		culprit[i] = nt_test_rank_5;
		culprit[i].peer_count = 0;
	}
	for (size_t i = 0; i < 4; i++) {
		struct nt_wire_incident incident =
			nt_test_incident(ids[i], "firing", culprit, NT_WIRE_MAX_CULPRITS);
		const struct nt_sink sink = nt_store_sink(store);

		count_slow_ranks("&at=2026-11-21T03:00:12Z", i ? 1000 : 0);
		assert_int_equal(sink.incident(sink.data, &incident), 0);
	}
	/* The first snapshot has the job: nothing of it is read from the store. */
	count_slow_ranks("", 2);
	check_problem("/api/v1/slow-ranks?at=2026-11-21T03:00:12Z", 409, "too_many_incidents");
	show_head("");
	check_problem("/api/v1/slow-ranks", 409, "too_many_incidents");
	count_slow_ranks("&class=network", 0);
}

static void who_owns_a_job_is_named_where_its_ranks_are_asked_for(void **state)
{
	nt_autojson json_t *problem = NULL, *unknown = NULL;

	(void)state;
	show_head("http://two:9480");
	check_problem("/api/v1/jobs/00000000000000aa/ranks", 503, "not_owner");
	problem = get_status("/api/v1/jobs/00000000000000aa/ranks", 503);
	assert_non_null(strstr(text(problem, "detail"), "http://two:9480"));
	show_head("");
	unknown = get_status("/api/v1/jobs/00000000000000aa/ranks", 503);
	assert_non_null(strstr(text(unknown, "detail"), "address is unknown"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(jobs_of_other_aggregators_have_all_their_incidents),
		TEST(a_job_of_another_aggregator_is_shown_with_what_is_stored_of_it),
		TEST(slow_ranks_are_found_behind_many_incidents_of_others),
		TEST(more_slow_ranks_than_fit_are_409),
		TEST(who_owns_a_job_is_named_where_its_ranks_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
