/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents, the state of the detection and the outbox come back as they went in. */
#include <sqlite3.h>

#include "aggregator/store/store_impl.h"
#include "tests/unit/aggregator/store.h"

/* ---- incidents ----------------------------------------------------------------------------------- */

static void an_incident_comes_back_as_it_went_in(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(nt_store_get(store, "a1", &message), 0);
	assert_string_equal(message->incident.id, "a1");
	assert_string_equal(message->incident.state, "firing");
	assert_int_equal(message->incident.culprit[0].rank, 5);
	assert_int_equal(message->incident.since_real_ns, NT_TEST_TIME_NS);
}

static void an_unknown_incident_is_enoent_and_leaves_the_output_alone(void **state)
{
	struct nt_message *message = NULL;

	(void)state;
	assert_int_equal(nt_store_get(store, "nobody", &message), -ENOENT);
	assert_null(message);
}

static void a_version_that_is_not_newer_is_dropped(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_store_stats stats;

	(void)state;
	assert_int_equal(put_as("a1", "resolved", "critical", 5), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 5), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 4), 0);
	assert_int_equal(nt_store_get(store, "a1", &message), 0);
	assert_string_equal(message->incident.state, "resolved");
	nt_store_stats(store, &stats);
	assert_int_equal(stats.incidents_stale, 2);
	assert_int_equal(stats.incidents_now, 1);
}

static void pending_incidents_are_not_kept(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "pending", "critical", 1), 0);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 10}), 0);
}

static void an_id_that_is_empty_or_too_long_is_refused(void **state)
{
	char id[NT_STORE_MAX_NAME + 1];

	(void)state;
	memset(id, 'a', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	assert_int_equal(put_as(id, "firing", "critical", 1), -EINVAL);
	assert_int_equal(put_as("", "firing", "critical", 1), -EINVAL);
	id[NT_STORE_MAX_NAME - 1] = '\0';
	assert_int_equal(put_as(id, "firing", "critical", 1), 0);
}

static void a_list_goes_from_the_newest_page_by_page_and_misses_none(void **state)
{
	struct nt_store_filter filter = {.limit = 4};
	size_t seen = 0, pages = 0;
	char id[32];

	(void)state;
	for (int i = 0; i < 10; i++) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		assert_int_equal(put_as(id, "resolved", "critical", 1), 0);
	}
	do {
		nt_autopage struct nt_store_page page = {0};

		assert_int_equal(nt_store_list(store, &filter, &page), 0);
		for (size_t i = 0; i < page.count; i++) {
			(void)snprintf(id, sizeof(id), "id-%d", 9 - (int)seen++);
			assert_string_equal(page.incident[i]->incident.id, id);
		}
		/* One that comes in between does not move the pages. */
		(void)snprintf(id, sizeof(id), "late-%zu", pages++);
		assert_int_equal(put_as(id, "firing", "critical", 1), 0);
		filter.before = page.next;
	} while (filter.before);
	assert_int_equal(seen, 10);
	assert_int_equal(pages, 3);
}

static void huge_incidents_make_pages_short(void **state)
{
	enum { CULPRITS = 18, PEERS = 16384 };
	struct nt_store_filter filter = {.limit = 100};
	static struct nt_culprit culprit[CULPRITS];
	static uint32_t peers[PEERS];
	size_t seen = 0, pages = 0;
	char id[16];

	(void)state;
	for (uint32_t i = 0; i < PEERS; i++)
		peers[i] = 100000 + i;
	for (int i = 0; i < CULPRITS; i++) {
		culprit[i] = nt_test_rank_5;
		culprit[i].peers = peers;
		culprit[i].peer_count = PEERS;
	}
	for (int i = 0; i < 5; i++) {
		struct nt_wire_incident incident;

		(void)snprintf(id, sizeof(id), "id-%d", i);
		incident = nt_test_incident(id, "resolved", culprit, CULPRITS);
		assert_int_equal(put(&incident), 0);
	}
	do {
		nt_autopage struct nt_store_page page = {0};

		assert_int_equal(nt_store_list(store, &filter, &page), 0);
		assert_true(page.count > 0);
		seen += page.count;
		pages++;
		filter.before = page.next;
	} while (filter.before);
	assert_int_equal(seen, 5);
	assert_int_equal(pages, 2);
}

/* Asks SQLite how it would find them. */
static void check_plan(const struct nt_store_filter *filter, const char *index)
{
	char query[NT_STORE_LIST_SQL], sql[NT_STORE_LIST_SQL + 32], plan[4096] = "";
	sqlite3_stmt *explain;
	sqlite3 *db;

	nt_store_list_sql(filter, query);
	(void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", query);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &explain, NULL), SQLITE_OK);
	while (sqlite3_step(explain) == SQLITE_ROW) {
		size_t len = strlen(plan);

		(void)snprintf(plan + len, sizeof(plan) - len, "%s\n",
			       (const char *)sqlite3_column_text(explain, 3));
	}
	assert_int_equal(sqlite3_finalize(explain), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	if (strstr(plan, "SCAN incident") || strstr(plan, "ORDER BY") || !strstr(plan, index))
		fail_msg("%s", plan);
}

static void lists_of_a_job_and_of_a_state_use_an_index(void **state)
{
	(void)state;
	check_plan(&(struct nt_store_filter){.job = "llm-70b"}, "incident_key");
	check_plan(&(struct nt_store_filter){.job = "llm-70b", .attempt = 2, .state = "firing"},
		   "USING");
	check_plan(&(struct nt_store_filter){.state = "firing"}, "incident_state");
	check_plan(&(struct nt_store_filter){.before = 7}, "INTEGER PRIMARY KEY");
}

static int stop_at_second(void *data, const char *id, const char *job_key, uint32_t attempt)
{
	int *calls = data;

	assert_string_equal(id, *calls ? "b" : "c");
	assert_string_equal(job_key, "10.0.0.1:29500/run");
	assert_int_equal(attempt, 1);
	return ++*calls == 2 ? -EIO : 0;
}

static void firing_incidents_are_told_newest_first_until_an_error(void **state)
{
	int calls = 0;

	(void)state;
	assert_int_equal(put_as("a", "firing", "critical", 1), 0);
	assert_int_equal(put_as("b", "firing", "info", 1), 0);
	assert_int_equal(put_as("r", "resolved", "critical", 1), 0);
	assert_int_equal(put_as("c", "firing", "critical", 1), 0);
	assert_int_equal(nt_store_each_firing(store, stop_at_second, &calls), -EIO);
	assert_int_equal(calls, 2);
}

static void filters_take_what_fits_all_of_them(void **state)
{
	struct nt_wire_incident named = nt_test_incident("d", "resolved", NULL, 0);

	(void)state;
	assert_int_equal(put_as("a", "firing", "critical", 1), 0);
	assert_int_equal(put_as("b", "firing", "info", 1), 0);
	assert_int_equal(put_as("c", "resolved", "critical", 1), 0);
#define COUNT(...) count_listed(&(struct nt_store_filter){.limit = 10, __VA_ARGS__})
	assert_int_equal(COUNT(), 3);
	assert_int_equal(COUNT(.state = "firing"), 2);
	assert_int_equal(COUNT(.state = "firing", .severity = "info"), 1);
	assert_int_equal(COUNT(.class = "network"), 0);
	assert_int_equal(COUNT(.job = "llm-70b"), 3);
	assert_int_equal(COUNT(.job = "10.0.0.1:29500/run", .attempt = 1), 3);
	assert_int_equal(COUNT(.job = "10.0.0.1:29500/run", .attempt = 2), 0);
	assert_int_equal(COUNT(.job = "' OR 1=1 --"), 0);
	assert_int_equal(COUNT(.since_ns = NT_TEST_TIME_NS), 3);
	assert_int_equal(COUNT(.since_ns = NT_TEST_TIME_NS + 1), 0);
	named.job = "lmp-eadf";
	assert_int_equal(put(&named), 0);
	assert_int_equal(COUNT(.job = "lmp"), 1);
	assert_int_equal(COUNT(.job = "lmp-eadf"), 1);
	assert_int_equal(COUNT(.job = "lm"), 0);
	assert_int_equal(COUNT(.job = "llm"), 0); /* "70b" is no part of a key */
#undef COUNT
}

/* ---- the state of the detection ------------------------------------------------------------------- */

static void no_state_yet_is_enoent(void **state)
{
	const struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &whole};

	(void)state;
	assert_int_equal(states.load(states.data, 0, compare_set, &want), -ENOENT);
	assert_int_equal(want.calls, 0);
}

static void a_state_comes_back_with_its_positions_after_a_restart(void **state)
{
	struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &whole};

	(void)state;
	assert_int_equal(states.save(states.data, &whole), 0);
	reopen();
	states = nt_store_states(store);
	assert_int_equal(states.load(states.data, 0, compare_set, &want), 7);
	assert_int_equal(want.calls, 1);
}

static void a_new_state_replaces_the_old_one_whole(void **state)
{
	const struct nt_state_set smaller = {NT_TEST_TIME_NS + 1, items, 1, positions + 1, 1};
	const struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &smaller};

	(void)state;
	assert_int_equal(states.save(states.data, &whole), 0);
	assert_int_equal(states.save(states.data, &smaller), 0);
	assert_int_equal(states.load(states.data, 0, compare_set, &want), 7);
}

static void a_state_that_cannot_be_saved_whole_leaves_the_old_one(void **state)
{
	const struct nt_state_item twice[] = {{"same", "1", 1}, {"same", "2", 1}};
	const struct nt_state_set bad = {NT_TEST_TIME_NS + 1, twice, 2, positions, 2};
	const struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &whole};
	struct nt_store_stats stats;

	(void)state;
	assert_int_equal(states.save(states.data, &whole), 0);
	assert_true(states.save(states.data, &bad) < 0);
	assert_int_equal(states.load(states.data, 0, compare_set, &want), 7);
	nt_store_stats(store, &stats);
	assert_int_equal(stats.write_errors, 1);
	assert_false(stats.healthy);
	assert_int_equal(states.save(states.data, &whole), 0);
	nt_store_stats(store, &stats);
	assert_true(stats.healthy);
}

/* ---- the outbox ---------------------------------------------------------------------------------- */

static void one_incident_makes_one_firing_and_one_resolved_message(void **state)
{
	(void)state;
	nt_store_on_queued(store, on_queued, NULL);
	for (uint64_t version = 1; version <= 5; version++)
		assert_int_equal(put_as("a1", "firing", "critical", version), 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 6), 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 7), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "msg_a1_firing_critical");
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "msg_a1_resolved");
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "");
	assert_int_equal(queued, 2);
}

static void a_rise_of_the_severity_is_told_and_a_fall_is_not(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "warning", 1), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "msg_a1_firing_warning");
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "msg_a1_firing_critical");
	assert_int_equal(put_as("a1", "firing", "warning", 3), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 4), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "");
}

static void a_graver_message_takes_the_place_of_one_that_was_never_tried(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "warning", 1), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	nt_store_stats(store, &stats);
	assert_int_equal(stats.outbox_now, 1);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "msg_a1_firing_critical");
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "");
}

static void information_is_never_sent(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "info", 1), 0);
	assert_int_equal(put_as("a1", "resolved", "info", 2), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "");
}

static void a_resolution_waits_until_its_alarm_is_done_with(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 2), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_RETRY), "msg_a1_firing_critical");
	assert_int_equal(nt_store_outbox_next(store, "webhook", 2, &message, &next_ns), 0);
	assert_int_equal(next_ns, 1 + NT_MINUTE);
	assert_string_equal(send_next(1 + NT_MINUTE, NT_OUTBOX_EXPIRED), "msg_a1_firing_critical");
	assert_string_equal(send_next(1 + NT_MINUTE, NT_OUTBOX_SENT), "msg_a1_resolved");
}

static void whose_alarm_was_refused_is_not_told_of_the_end(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	assert_int_equal(put_as("before", "firing", "critical", 1), 0);
	assert_int_equal(put_as("before", "resolved", "critical", 2), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_FAILED), "msg_before_firing_critical");
	assert_int_equal(put_as("after", "firing", "critical", 1), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_FAILED), "msg_after_firing_critical");
	assert_int_equal(put_as("after", "resolved", "critical", 2), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "");
	nt_store_stats(store, &stats);
	assert_int_equal(stats.queue_skipped, 2);
	assert_int_equal(stats.outbox_now, 0);
}

static void what_was_not_noted_as_sent_is_sent_again_with_the_same_id_and_body(void **state)
{
	struct nt_outbox_message first, again;
	uint64_t next_ns;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(nt_store_outbox_next(store, "webhook", 1, &first, &next_ns), 1);
	reopen(); /* as after a crash between sending and noting */
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	assert_int_equal(nt_store_outbox_next(store, "webhook", 1, &again, &next_ns), 1);
	assert_string_equal(first.id, again.id);
	assert_string_equal(first.body, again.body);
	assert_int_equal(first.attempts, 1);
	assert_int_equal(again.attempts, 2);
	nt_outbox_message_release(&first);
	nt_outbox_message_release(&again);
}

static void what_was_sent_is_not_sent_again_after_a_restart(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "msg_a1_firing_critical");
	reopen();
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	assert_string_equal(send_next(1, NT_OUTBOX_SENT), "");
}

static void a_message_holds_the_incident_as_rest_shows_it(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(nt_store_outbox_next(store, "webhook", 1, &message, &next_ns), 1);
	assert_non_null(strstr(message.body, "{\"type\":\"incident.firing\",\"timestamp\":"
					     "\"2026-11-21T03:00:31Z\",\"data\":{\"id\":\"a1\","));
	assert_int_equal(strlen(message.body), message.body_len);
	nt_outbox_message_release(&message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_incident_comes_back_as_it_went_in),
		TEST(an_unknown_incident_is_enoent_and_leaves_the_output_alone),
		TEST(a_version_that_is_not_newer_is_dropped),
		TEST(pending_incidents_are_not_kept),
		TEST(an_id_that_is_empty_or_too_long_is_refused),
		TEST(a_list_goes_from_the_newest_page_by_page_and_misses_none),
		TEST(huge_incidents_make_pages_short),
		TEST(lists_of_a_job_and_of_a_state_use_an_index),
		TEST(firing_incidents_are_told_newest_first_until_an_error),
		TEST(filters_take_what_fits_all_of_them),
		TEST(no_state_yet_is_enoent),
		TEST(a_state_comes_back_with_its_positions_after_a_restart),
		TEST(a_new_state_replaces_the_old_one_whole),
		TEST(a_state_that_cannot_be_saved_whole_leaves_the_old_one),
		TEST(one_incident_makes_one_firing_and_one_resolved_message),
		TEST(a_rise_of_the_severity_is_told_and_a_fall_is_not),
		TEST(a_graver_message_takes_the_place_of_one_that_was_never_tried),
		TEST(information_is_never_sent),
		TEST(a_resolution_waits_until_its_alarm_is_done_with),
		TEST(whose_alarm_was_refused_is_not_told_of_the_end),
		TEST(what_was_not_noted_as_sent_is_sent_again_with_the_same_id_and_body),
		TEST(what_was_sent_is_not_sent_again_after_a_restart),
		TEST(a_message_holds_the_incident_as_rest_shows_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
