/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of the store: whose it is, what is refused, a full disk, and what goes at its caps. */
#include "tests/unit/aggregator/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <sqlite3.h>

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
	refused_with(-EBADMSG, "not a database");
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
	assert_int_equal(states.load(states.data, 0, compare_set, &want), -ENOENT);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
