/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "common/clock.h"
#include "tests/api/picture.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];
static struct nt_store *store;
static unsigned int queued;

static const char *const receivers[] = {"webhook"};

static int open_with(const struct nt_store_options *options)
{
	struct nt_store_error error;
	int r = nt_store_open(options, &store, &error);

	if (r < 0)
		print_message("%s\n", error.text);
	return r;
}

static int open_store(void)
{
	return open_with(
		&(struct nt_store_options){.path = path, .receiver = receivers, .receivers = 1});
}

static int set_up_files(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	queued = 0;
	return 0;
}

static int set_up(void **state)
{
	return set_up_files(state) || open_store();
}

static int tear_down(void **state)
{
	(void)state;
	nt_store_close(store);
	store = NULL;
	scratch_remove(dir);
	return 0;
}

static void reopen(void)
{
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_store(), 0);
}

static void on_queued(void *data)
{
	(void)data;
	queued++;
}

static int put(const struct nt_incident *incident)
{
	const struct nt_sink sink = nt_store_sink(store);

	return sink.incident(sink.data, incident);
}

static int put_as(const char *id, const char *state, const char *severity, uint64_t version)
{
	struct nt_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);

	incident.severity = severity;
	incident.version = version;
	return put(&incident);
}

static size_t count_listed(const struct nt_store_filter *filter)
{
	nt_autopage struct nt_store_page page = {0};

	assert_int_equal(nt_store_list(store, filter, &page), 0);
	return page.count;
}

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
		struct nt_incident incident;

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

static void filters_take_what_fits_all_of_them(void **state)
{
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
#undef COUNT
}

/* ---- the state of the detection ------------------------------------------------------------------- */

struct want {
	const struct nt_state_set *set;
	int calls;
};

static int compare_set(void *data, const struct nt_state_set *set)
{
	struct want *want = data;

	want->calls++;
	assert_int_equal(set->real_ns, want->set->real_ns);
	assert_int_equal(set->items, want->set->items);
	assert_int_equal(set->positions, want->set->positions);
	for (size_t i = 0; i < set->items; i++) {
		assert_string_equal(set->item[i].name, want->set->item[i].name);
		assert_int_equal(set->item[i].size, want->set->item[i].size);
		assert_memory_equal(set->item[i].bytes, want->set->item[i].bytes,
				    set->item[i].size);
	}
	for (size_t i = 0; i < set->positions; i++) {
		assert_int_equal(set->position[i].topic, want->set->position[i].topic);
		assert_int_equal(set->position[i].partition, want->set->position[i].partition);
		assert_int_equal(set->position[i].offset, want->set->position[i].offset);
	}
	return 7;
}

static const struct nt_state_item items[] = {
	{"ingest", "\0\1\2", 3},
	{"job-00a1", "", 0},
};

static const struct nt_bus_position positions[] = {
	{NT_TOPIC_CONTROL, 0, 12},
	{NT_TOPIC_WINDOW, 3, 1ULL << 40},
};

static const struct nt_state_set whole = {NT_TEST_TIME_NS, items, 2, positions, 2};

static void no_state_yet_is_enoent(void **state)
{
	const struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &whole};

	(void)state;
	assert_int_equal(states.load(states.data, compare_set, &want), -ENOENT);
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
	assert_int_equal(states.load(states.data, compare_set, &want), 7);
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
	assert_int_equal(states.load(states.data, compare_set, &want), 7);
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
	assert_int_equal(states.load(states.data, compare_set, &want), 7);
	nt_store_stats(store, &stats);
	assert_int_equal(stats.write_errors, 1);
	assert_false(stats.healthy);
	assert_int_equal(states.save(states.data, &whole), 0);
	nt_store_stats(store, &stats);
	assert_true(stats.healthy);
}

/* ---- the outbox ---------------------------------------------------------------------------------- */

/* What is due at this time, or "" where nothing is; it is then sent. */
static const char *send_next(uint64_t real_ns, enum nt_outbox_result result)
{
	static char id[160];
	struct nt_outbox_message message;
	uint64_t next_ns;
	int r = nt_store_outbox_next(store, real_ns, &message, &next_ns);

	assert_true(r >= 0);
	if (!r)
		return "";
	(void)snprintf(id, sizeof(id), "%s", message.id);
	assert_int_equal(
		nt_store_outbox_done(store, message.number, result, real_ns, real_ns + NT_MINUTE),
		0);
	nt_outbox_message_release(&message);
	return id;
}

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
	assert_int_equal(nt_store_outbox_next(store, 2, &message, &next_ns), 0);
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
	assert_int_equal(nt_store_outbox_next(store, 1, &first, &next_ns), 1);
	reopen(); /* as after a crash between sending and noting */
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	assert_int_equal(nt_store_outbox_next(store, 1, &again, &next_ns), 1);
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
	assert_int_equal(nt_store_outbox_next(store, 1, &message, &next_ns), 1);
	assert_non_null(strstr(message.body, "{\"type\":\"incident.firing\",\"timestamp\":"
					     "\"2026-11-21T03:00:31Z\",\"data\":{\"id\":\"a1\","));
	assert_int_equal(strlen(message.body), message.body_len);
	nt_outbox_message_release(&message);
}

/* ---- files --------------------------------------------------------------------------------------- */

static void write_file(const char *content, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(content, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static uint64_t file_sum(void)
{
	FILE *file = fopen(path, "r");
	uint64_t sum = 0;
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		sum = sum * 31 + (uint64_t)c;
	(void)fclose(file);
	return sum;
}

static void refused_with(int want, const char *why)
{
	const struct nt_store_options options = {.path = path};
	uint64_t before = file_sum();
	struct nt_store_error error;

	assert_int_equal(nt_store_open(&options, &store, &error), want);
	assert_null(store);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, why));
	assert_int_equal(file_sum(), before);
}

static void a_file_that_is_no_database_is_refused_by_name_and_left_alone(void **state)
{
	char text[8192];

	(void)state;
	memset(text, 'x', sizeof(text));
	write_file(text, sizeof(text));
	refused_with(-EBADMSG, "no database");
}

static void run_sql(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_database_of_another_program_is_refused_and_left_alone(void **state)
{
	(void)state;
	run_sql("CREATE TABLE songs (title TEXT)");
	refused_with(-EBADMSG, "another program");
}

static void a_store_of_a_newer_version_is_refused_and_left_alone(void **state)
{
	(void)state;
	assert_int_equal(open_store(), 0);
	nt_store_close(store);
	store = NULL;
	run_sql("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
	refused_with(-ENOTSUP, "newer version");
}

static void a_damaged_store_is_refused_and_left_alone(void **state)
{
	char junk[4096];
	int fd;

	(void)state;
	assert_int_equal(open_store(), 0);
	for (int i = 0; i < 50; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "id-%d", i);
		assert_int_equal(put_as(id, "resolved", "critical", 1), 0);
	}
	nt_store_close(store);
	store = NULL;
	memset(junk, 0x5a, sizeof(junk));
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, junk, sizeof(junk), 3 * 4096), sizeof(junk));
	assert_int_equal(close(fd), 0);
	refused_with(-EBADMSG, "damaged");
}

static void a_second_process_is_refused(void **state)
{
	struct nt_store *first;

	(void)state;
	assert_int_equal(open_store(), 0);
	first = nt_take(store);
	refused_with(-EBUSY, "another process");
	nt_store_close(first);
}

static void the_files_are_the_owners_alone(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
}

static void missing_directories_are_made(void **state)
{
	char deep[SCRATCH_BYTES + 32];

	(void)state;
	(void)snprintf(deep, sizeof(deep), "%s/a/b/store.db", dir);
	assert_int_equal(open_with(&(struct nt_store_options){.path = deep}), 0);
}

/* A file that may not grow is what a full disk looks like to SQLite. */
static void ignore_file_limit(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void what_a_full_disk_refuses_is_written_when_it_has_room_again(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_store_stats stats;
	char id[16];
	int r = 0, i;

	(void)state;
	ignore_file_limit();
	limit_files(256 << 10);
	for (i = 0; i < 1000 && r == 0; i++) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		r = put_as(id, "resolved", "critical", 1);
	}
	assert_true(r < 0);
	nt_store_stats(store, &stats);
	assert_false(stats.healthy);
	assert_int_equal(stats.unsaved_now, 1);
	assert_true(stats.write_errors > 0);
	assert_true(stats.problem[0]);
	assert_int_equal(nt_store_get(store, id, &message), -ENOENT);

	limit_files(RLIM_INFINITY);
	nt_store_tick(store, NT_TEST_TIME_NS);
	nt_store_stats(store, &stats);
	assert_true(stats.healthy);
	assert_int_equal(stats.unsaved_now, 0);
	assert_int_equal(nt_store_get(store, id, &message), 0);
}

static void incidents_in_memory_have_a_cap_and_the_oldest_go_first(void **state)
{
	struct nt_message *message = NULL;
	struct nt_store_stats stats;
	char id[16];

	(void)state;
	ignore_file_limit();
	limit_files(16 << 10);
	for (int i = 0; i < NT_STORE_MAX_UNSAVED + 3; i++) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		assert_true(put_as(id, "firing", "info", 1) < 0);
	}
	limit_files(RLIM_INFINITY);
	nt_store_stats(store, &stats);
	assert_int_equal(stats.unsaved_now, NT_STORE_MAX_UNSAVED);
	assert_int_equal(stats.unsaved_dropped, 3);
	nt_store_tick(store, NT_TEST_TIME_NS);
	assert_int_equal(nt_store_get(store, "id-2", &message), -ENOENT);
	assert_int_equal(nt_store_get(store, id, &message), 0);
	nt_message_free(message);
}

static void a_state_never_overtakes_an_incident_that_waits(void **state)
{
	const struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &whole};

	(void)state;
	ignore_file_limit();
	limit_files(16 << 10);
	assert_true(put_as("a1", "firing", "info", 1) < 0);
	assert_true(states.save(states.data, &whole) < 0);
	limit_files(RLIM_INFINITY);
	assert_int_equal(states.load(states.data, compare_set, &want), -ENOENT);
	assert_int_equal(states.save(states.data, &whole), 0);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 10}), 1);
}

/* ---- pruning ------------------------------------------------------------------------------------- */

static void the_oldest_resolved_ones_give_way_at_the_cap_and_open_ones_stay(void **state)
{
	struct nt_store_options options = {.path = path, .max_incidents = 10};
	struct nt_store_stats stats;
	char id[16];

	(void)state;
	assert_int_equal(open_with(&options), 0);
	assert_int_equal(put_as("open", "firing", "info", 1), 0);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		assert_int_equal(put_as(id, "resolved", "info", 1), 0);
	}
	nt_store_tick(store, NT_TEST_TIME_NS);
	nt_store_stats(store, &stats);
	assert_int_equal(stats.incidents_now, 10);
	assert_int_equal(stats.pruned, 11);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 100}), 10);
	assert_int_equal(count_listed(&(struct nt_store_filter){.state = "firing", .limit = 100}),
			 1);
}

static void resolved_ones_give_way_at_their_age(void **state)
{
	struct nt_store_options options = {.path = path, .max_age_ns = NT_DAY};

	(void)state;
	assert_int_equal(open_with(&options), 0);
	assert_int_equal(put_as("old", "resolved", "info", 1), 0);
	nt_store_tick(store, NT_TEST_TIME_NS + NT_DAY);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 100}), 1);
	nt_store_tick(store, NT_TEST_TIME_NS + NT_DAY + NT_HOUR + 1);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 100}), 0);
}

static void what_still_has_to_be_sent_is_not_pruned(void **state)
{
	struct nt_store_options options = {
		.path = path, .max_incidents = 1, .receiver = receivers, .receivers = 1};
	char id[16];

	(void)state;
	assert_int_equal(open_with(&options), 0);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		assert_int_equal(put_as(id, "firing", "critical", 1), 0);
		assert_int_equal(put_as(id, "resolved", "critical", 2), 0);
	}
	nt_store_tick(store, NT_TEST_TIME_NS);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 100}), 3);
	while (*send_next(1, NT_OUTBOX_SENT))
		;
	nt_store_tick(store, NT_TEST_TIME_NS);
	assert_int_equal(count_listed(&(struct nt_store_filter){.limit = 100}), 1);
}

static void the_file_keeps_under_its_cap_by_pruning(void **state)
{
	struct nt_store_options options = {.path = path, .max_bytes = 512 << 10};
	struct nt_store_stats stats;
	char id[16];

	(void)state;
	assert_int_equal(open_with(&options), 0);
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		(void)!put_as(id, "resolved", "info", 1);
		if (i % 100 == 0)
			nt_store_tick(store, NT_TEST_TIME_NS);
	}
	nt_store_tick(store, NT_TEST_TIME_NS);
	nt_store_stats(store, &stats);
	assert_true(stats.healthy);
	assert_true(stats.pruned > 0);
	assert_int_equal(stats.write_errors, 0);
	assert_true(stats.file_bytes_now <= 512 << 10);
}

#define TEST(fn)      cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
#define TEST_FILE(fn) cmocka_unit_test_setup_teardown(fn, set_up_files, tear_down)

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
		TEST_FILE(a_file_that_is_no_database_is_refused_by_name_and_left_alone),
		TEST_FILE(a_database_of_another_program_is_refused_and_left_alone),
		TEST_FILE(a_store_of_a_newer_version_is_refused_and_left_alone),
		TEST_FILE(a_damaged_store_is_refused_and_left_alone),
		TEST_FILE(a_second_process_is_refused),
		TEST(the_files_are_the_owners_alone),
		TEST_FILE(missing_directories_are_made),
		TEST(what_a_full_disk_refuses_is_written_when_it_has_room_again),
		TEST(incidents_in_memory_have_a_cap_and_the_oldest_go_first),
		TEST(a_state_never_overtakes_an_incident_that_waits),
		TEST_FILE(the_oldest_resolved_ones_give_way_at_the_cap_and_open_ones_stay),
		TEST_FILE(resolved_ones_give_way_at_their_age),
		TEST_FILE(what_still_has_to_be_sent_is_not_pruned),
		TEST_FILE(the_file_keeps_under_its_cap_by_pruning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
