/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The audit log: its caps, its file, and what of requests is in it. */
#include "aggregator/api/audit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/system/file.h"
#include "tests/unit/aggregator/api.h"

static char audit_file[SCRATCH_BYTES + 16], token_file[SCRATCH_BYTES + 16];
static struct nt_audit *audit;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool holds, fails;
} disk = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

/* Stands in for that of the C library. */
int fdatasync(int fd)
{
	bool fails;

	(void)pthread_mutex_lock(&disk.lock);
	while (disk.holds)
		(void)pthread_cond_wait(&disk.changed, &disk.lock);
	fails = disk.fails;
	(void)pthread_mutex_unlock(&disk.lock);
	if (!fails)
		return fsync(fd);
	errno = EIO;
	return -1;
}

static void set_disk(bool holds, bool fails)
{
	(void)pthread_mutex_lock(&disk.lock);
	disk.holds = holds;
	disk.fails = fails;
	(void)pthread_cond_broadcast(&disk.changed);
	(void)pthread_mutex_unlock(&disk.lock);
}

static int set_up_file(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(audit_file, sizeof(audit_file), "%s/audit", dir);
	return nt_audit_open(audit_file, &audit);
}

static int tear_down_file(void **state)
{
	(void)state;
	set_disk(false, false);
	nt_audit_close(audit);
	audit = NULL;
	scratch_remove(dir);
	return 0;
}

static void reopen(void)
{
	nt_audit_close(audit);
	audit = NULL;
	assert_int_equal(nt_audit_open(audit_file, &audit), 0);
}

static void add(unsigned int status, const char *body)
{
	const struct nt_httpd_identity identity = {NT_TOKEN_ADMIN, true, "alice"};
	const struct nt_httpd_write write = {
		.identity = &identity,
		.certificate = "a host",
		.address = "2001:db8::1",
		.method = "POST",
		.path = "/api/v1/levels",
		.request_id = "0123456789abcdef",
		.body = body,
		.body_len = strlen(body),
		.status = status,
	};

	nt_audit_add(audit, &write, NT_TEST_TIME_NS);
}

static struct nt_audit_stats stats(void)
{
	struct nt_audit_stats now;

	nt_audit_stats(audit, &now);
	return now;
}

/* How many entries are below `before`; the newest of them. */
static size_t list(uint64_t before, struct nt_audit_entry *ret_newest)
{
	static struct nt_audit_entry entry[NT_AUDIT_MAX_CHANGES + NT_AUDIT_MAX_REFUSED + 1];
	size_t count = nt_audit_list(audit, before, sizeof(entry) / sizeof(entry[0]), entry);

	for (size_t i = 1; i < count; i++)
		assert_true(entry[i].number < entry[i - 1].number);
	if (count)
		*ret_newest = entry[0];
	return count;
}

/* A file whose lines are counted. */
static size_t lines(void)
{
	nt_autobuf struct nt_buf text = {0};
	size_t count = 0;

	assert_int_equal(nt_file_read(audit_file, 32 << 20, &text), 0);
	for (size_t i = 0; i < text.len; i++)
		count += text.data[i] == '\n';
	return count;
}

static void an_entry_is_the_same_after_a_restart(void **state)
{
	struct nt_audit_entry before, after;
	struct stat file;

	(void)state;
	add(202, "{\"level\": 2, \"note\": \"\xc3\xbc\"}");
	add(403, "");
	assert_int_equal(list(2, &before), 1);
	assert_string_equal(before.token, "alice");
	assert_string_equal(before.body, "{\"level\": 2, \"note\": \"\xc3\xbc\"}");
	reopen();
	assert_int_equal(list(UINT64_MAX, &after), 2);
	assert_int_equal(after.status, 403);
	assert_int_equal(list(2, &after), 1);
	assert_memory_equal(&after, &before, sizeof(after));
	assert_int_equal(stat(audit_file, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	add(202, "");
	assert_int_equal(list(UINT64_MAX, &after), 3);
	assert_int_equal(after.number, 3);
}

static void refused_requests_do_not_displace_changes(void **state)
{
	struct nt_audit_entry newest;

	(void)state;
	add(202, "the only change");
	for (int i = 0; i < NT_AUDIT_MAX_REFUSED + 10; i++)
		add(401, "");
	assert_int_equal(list(UINT64_MAX, &newest), NT_AUDIT_MAX_REFUSED + 1);
	assert_int_equal(list(2, &newest), 1);
	assert_string_equal(newest.body, "the only change");
	assert_int_equal(stats().dropped, 10);
	assert_int_equal(stats().refused, NT_AUDIT_MAX_REFUSED + 10);
	assert_int_equal(stats().changes, 1);
}

static void the_file_is_rewritten_at_twice_the_caps(void **state)
{
	const size_t cap = NT_AUDIT_MAX_CHANGES + NT_AUDIT_MAX_REFUSED;
	struct nt_audit_entry newest;

	(void)state;
	for (size_t i = 0; i < 2 * cap; i++)
		add(202, "");
	assert_int_equal(lines(), 2 * cap);
	add(202, "one more");
	assert_int_equal(stats().dropped, 2 * cap + 1 - NT_AUDIT_MAX_CHANGES);
	reopen(); /* its thread ends first */
	assert_int_equal(lines(), NT_AUDIT_MAX_CHANGES);
	add(401, "");
	assert_int_equal(lines(), NT_AUDIT_MAX_CHANGES + 1);
	reopen();
	assert_int_equal(list(UINT64_MAX, &newest), NT_AUDIT_MAX_CHANGES + 1);
	assert_int_equal(list(newest.number, &newest), NT_AUDIT_MAX_CHANGES);
	assert_string_equal(newest.body, "one more");
	assert_int_equal(stats().unreadable, 0);
	assert_int_equal(stats().dropped, 0);
}

enum {
	ADDERS = 4,
	EACH = 12000,
};

static void *add_many(void *data)
{
	for (int i = 0; i < EACH; i++)
		add(202, data ? data : "busy");
	return NULL;
}

static void what_is_added_while_the_file_is_rewritten_is_in_it(void **state)
{
	struct nt_audit_entry newest;
	pthread_t thread[ADDERS];

	(void)state;
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_many, NULL), 0);
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(stats().unwritten, 0);
	reopen();
	assert_in_range(lines(), NT_AUDIT_MAX_CHANGES,
			4 * (NT_AUDIT_MAX_CHANGES + NT_AUDIT_MAX_REFUSED));
	assert_int_equal(stats().unreadable, 0);
	assert_int_equal(list(UINT64_MAX, &newest), NT_AUDIT_MAX_CHANGES);
	assert_int_equal(newest.number, ADDERS * EACH);
	/* None is missing among the newest. */
	assert_int_equal(list(newest.number - NT_AUDIT_MAX_CHANGES + 2, &newest), 1);
}

/* ---- a slow disk ----------------------------------------------------------------------------- */

static void *add_one(void *is_added)
{
	add(202, "waits");
	atomic_store((atomic_bool *)is_added, true);
	return NULL;
}

/* The disk is slow while the file is written anew, until the file has all the lines it may have. */
static void add_to_slow_disk(size_t most, atomic_bool *is_added, pthread_t *thread)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	set_disk(true, false);
	for (size_t i = 0; i < most; i++)
		add(202, "");
	assert_int_equal(lines(), most);
	assert_int_equal(pthread_create(thread, NULL, add_one, is_added), 0);
	/* It is counted under the lock, which is free only when it waits or has returned. */
	while (stats().changes == most)
		(void)nanosleep(&pause, NULL);
	assert_int_equal(lines(), most);
	assert_int_equal(stats().unwritten, 0);
	assert_false(atomic_load(is_added));
}

static void an_entry_waits_for_a_disk_that_is_too_slow(void **state)
{
	const size_t most = 4 * (NT_AUDIT_MAX_CHANGES + NT_AUDIT_MAX_REFUSED);
	atomic_bool is_added = false;
	struct nt_audit_entry newest;
	pthread_t thread;

	(void)state;
	add_to_slow_disk(most, &is_added, &thread);
	set_disk(false, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(stats().unwritten, 0);
	reopen();
	assert_in_range(lines(), NT_AUDIT_MAX_CHANGES, 2 * NT_AUDIT_MAX_CHANGES);
	/* Once, not twice: a number that does not rise is unreadable. */
	assert_int_equal(stats().unreadable, 0);
	assert_int_equal(list(UINT64_MAX, &newest), NT_AUDIT_MAX_CHANGES);
	assert_int_equal(newest.number, most + 1);
	assert_string_equal(newest.body, "waits");
	/* None is missing among the newest. */
	assert_int_equal(list(newest.number - NT_AUDIT_MAX_CHANGES + 2, &newest), 1);
}

static void an_entry_does_not_wait_for_a_disk_that_fails(void **state)
{
	const size_t most = 4 * (NT_AUDIT_MAX_CHANGES + NT_AUDIT_MAX_REFUSED);
	enum {
		TRIED_AFTER = 256,
	};
	atomic_bool is_added = false;
	struct nt_audit_entry newest;
	pthread_t thread;

	(void)state;
	add_to_slow_disk(most, &is_added, &thread);
	set_disk(false, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(lines(), most);
	assert_int_equal(stats().unwritten, 1);
	/* It is tried again after so many, and then has them all. */
	set_disk(false, false);
	for (int i = 1; i < TRIED_AFTER; i++)
		add(202, "");
	assert_int_equal(stats().unwritten, TRIED_AFTER);
	reopen();
	assert_int_equal(lines(), NT_AUDIT_MAX_CHANGES);
	assert_int_equal(list(UINT64_MAX, &newest), NT_AUDIT_MAX_CHANGES);
	assert_int_equal(newest.number, most + TRIED_AFTER);
}

/* ---- lines and files ------------------------------------------------------------------------- */

static void a_long_body_is_cut_between_characters(void **state)
{
	char body[NT_AUDIT_BODY_BYTES + 3];
	struct nt_audit_entry newest;

	(void)state;
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	memcpy(body + NT_AUDIT_BODY_BYTES - 1, "\xc3\xbc", 2);
	add(202, body);
	assert_int_equal(list(UINT64_MAX, &newest), 1);
	assert_int_equal(strlen(newest.body), NT_AUDIT_BODY_BYTES - 1);
	add(202, "\xff\xc3(\n\x1b\xe2\x80\xae");
	assert_int_equal(list(UINT64_MAX, &newest), 2);
	assert_string_equal(newest.body, "?\?(?\?\?");
	memset(body, '"', NT_AUDIT_BODY_BYTES); /* the longest line */
	add(202, body);
	reopen();
	assert_int_equal(list(UINT64_MAX, &newest), 3);
	assert_int_equal(strlen(newest.body), NT_AUDIT_BODY_BYTES);
}

#define LINE(number, status)                                                                       \
	"{\"number\":" number ",\"time\":\"2026-01-01T00:00:00Z\",\"status\":" status "}\n"

static void lines_that_are_no_entries_are_left_out_and_counted(void **state)
{
	static const char *const bad[] = {
		"\n",
		"garbage\n",
		"[]\n",
		LINE("0", "202"),
		LINE("-1", "202"),
		LINE("1000000000000000000", "202"),
		LINE("7", "99"),
		LINE("7", "600"),
		LINE("\"7\"", "202"),
		"{\"number\":7,\"status\":202}\n",
		"{\"number\":7,\"time\":\"2026-01-01T00:00:00Z\",\"status\":202,\"method\":"
		"\"TOO-LONG\"}\n",
		LINE("3", "202"), /* its number is taken */
	};
	nt_autobuf struct nt_buf text = {0};
	struct nt_audit_entry newest;

	(void)state;
	assert_int_equal(nt_buf_printf(&text, LINE("3", "202")), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(nt_buf_printf(&text, "%s", bad[i]), 0);
	assert_int_equal(nt_buf_printf(&text, "{\"number\":9,\"ti"), 0); /* a full disk */
	assert_int_equal(unlink(audit_file), 0);
	assert_int_equal(nt_file_create(audit_file, 0600, text.data, text.len), 0);
	reopen();
	assert_int_equal(list(UINT64_MAX, &newest), 1);
	assert_int_equal(newest.number, 3);
	assert_int_equal(stats().unreadable, sizeof(bad) / sizeof(bad[0]) + 1);
	add(202, "after a torn line");
	reopen();
	assert_int_equal(list(UINT64_MAX, &newest), 2);
	assert_string_equal(newest.body, "after a torn line");
}

static void a_file_that_is_too_large_is_moved_away(void **state)
{
	struct nt_audit_entry newest;
	char old[SCRATCH_BYTES + 24];
	struct stat file;

	(void)state;
	add(202, "");
	assert_int_equal(truncate(audit_file, 64 << 20), 0);
	reopen();
	assert_int_equal(list(UINT64_MAX, &newest), 0);
	assert_int_equal(stats().unreadable, 1);
	(void)snprintf(old, sizeof(old), "%s.old", audit_file);
	assert_int_equal(stat(old, &file), 0);
	add(202, "");
	assert_int_equal(lines(), 1);
}

/* A full disk: no file of this process grows beyond this size. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void an_entry_that_cannot_be_written_is_kept_and_counted(void **state)
{
	struct nt_audit_entry newest;
	struct stat file;

	(void)state;
	assert_int_equal(sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), 0);
	add(202, "before");
	assert_int_equal(stat(audit_file, &file), 0);
	limit_files((rlim_t)file.st_size + 10);
	add(202, "torn");
	add(202, "none");
	limit_files(RLIM_INFINITY);
	assert_int_equal(stats().unwritten, 2);
	add(202, "after");
	assert_int_equal(list(UINT64_MAX, &newest), 4);
	reopen();
	assert_int_equal(stats().unreadable, 1);
	assert_int_equal(list(UINT64_MAX, &newest), 2);
	assert_string_equal(newest.body, "after");
}

static void a_file_that_cannot_be_opened_is_an_error(void **state)
{
	struct nt_audit *none = NULL;

	(void)state;
	assert_int_equal(nt_audit_open("/proc/none/audit", &none), -ENOENT);
	assert_int_equal(nt_audit_open(dir, &none), -EISDIR);
	assert_int_equal(symlink("elsewhere", audit_file), -1); /* it is there */
	assert_int_equal(unlink(audit_file), 0);
	assert_int_equal(symlink("elsewhere", audit_file), 0);
	assert_int_equal(nt_audit_open(audit_file, &none), -EINVAL);
	assert_int_equal(nt_audit_open("/dev/zero", &none), -EINVAL);
	assert_null(none);
}

/* ---- requests ----------------------------------------------------------------------------------- */

static int rebaseline(void *data, const char *job_id)
{
	(void)data;
	return strcmp(job_id, "00000000000000a1") ? -ENOENT : 0;
}

static int set_up_api(void **state)
{
	static const char tokens[] = "administrator-0123456789 admin alice\n"
				     "reader-0123456789ab read\n";

	if (set_up_board(state))
		return -1;
	nt_board_post(board, nt_test_snapshot());
	(void)snprintf(token_file, sizeof(token_file), "%s/token", dir);
	return nt_file_create(token_file, 0600, tokens, sizeof(tokens) - 1) < 0 ||
	       start((struct nt_api_options){
		       .token_file = token_file, .rebaseline = rebaseline, .max_auth_failures = 3});
}

#define ADMIN "Authorization: Bearer administrator-0123456789\r\n"
#define READ  "Authorization: Bearer reader-0123456789ab\r\n"

static int ask(const char *method, const char *target, const char *headers, const char *body)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), method, target, headers, body);

	return reply.status;
}

static json_t *get_audit(const char *query)
{
	char target[64];
	http_auto struct http_reply reply = {0};
	json_t *json = NULL;

	(void)snprintf(target, sizeof(target), "/api/v1/audit%s", query);
	reply = http_request(nt_api_port(api), "GET", target, ADMIN, NULL);
	assert_int_equal(reply.status, 200);
	assert_null(strstr(reply.body, "0123456789ab")); /* no part of a token */
	assert_int_equal(nt_json_load(reply.body, strlen(reply.body), &json), 0);
	return json;
}

static void writes_are_listed_with_who_what_and_result(void **state)
{
	nt_autojson json_t *all = NULL;

	(void)state;
	assert_int_equal(ask("POST", "/api/v1/jobs/00000000000000a1/rebaseline", ADMIN, "{}"), 202);
	assert_int_equal(ask("POST", "/api/v1/jobs/x%22y%0az/rebaseline", ADMIN, ""), 400);
	assert_int_equal(ask("POST", "/api/v1/jobs/x%22y%2Fz/rebaseline", ADMIN, ""), 404);
	assert_int_equal(ask("POST", "/api/v1/jobs/00000000000000a1/rebaseline", READ, "secret"),
			 403);
	assert_int_equal(ask("POST", "/api/v1/levels", "", ""), 401);
	assert_int_equal(ask("POST", "/api/v1/session", READ, "reader-0123456789ab"), 200);
	all = get_audit("");
	assert_string_equal(names(all, "path"), "/api/v1/session /api/v1/levels "
						"/api/v1/jobs/00000000000000a1/rebaseline "
						"/api/v1/jobs/x%22y%2Fz/rebaseline "
						"/api/v1/jobs/00000000000000a1/rebaseline ");
	assert_string_equal(names(all, "token"), "line 2 (none) line 2 alice alice ");
	assert_string_equal(names(all, "body"), "(none) (none) (none) (none) {} ");
	assert_string_equal(names(all, "address"),
			    "127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1 ");
}

static void reads_and_what_is_over_the_limit_are_not_listed(void **state)
{
	nt_autojson json_t *all = NULL;

	(void)state;
	assert_int_equal(ask("GET", "/api/v1/jobs", ADMIN, NULL), 200);
	assert_int_equal(ask("POST", "/api/v1/none", ADMIN, ""), 404);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask("POST", "/api/v1/levels", "", ""), 401);
	assert_int_equal(ask("POST", "/api/v1/levels", "", ""), 429);
	all = get_audit("");
	assert_string_equal(names(all, "path"), "/api/v1/levels /api/v1/levels /api/v1/levels ");
}

static void pages_of_the_audit_log_follow_each_other(void **state)
{
	nt_autojson json_t *one = NULL, *other = NULL;
	char query[64];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask("POST", "/api/v1/session", READ, ""), 200);
	one = get_audit("?limit=2");
	(void)snprintf(query, sizeof(query), "?limit=2&cursor=%s", text(one, "next"));
	other = get_audit(query);
	assert_int_equal(json_array_size(json_object_get(one, "items")), 2);
	assert_int_equal(json_array_size(json_object_get(other, "items")), 1);
	assert_string_equal(text(other, "next"), "(none)");
	assert_int_equal(ask("GET", "/api/v1/audit", READ, NULL), 403);
	assert_int_equal(ask("GET", "/api/v1/audit?cursor=2", ADMIN, NULL), 400);
	assert_int_equal(ask("GET", "/api/v1/audit?cursor=a0", ADMIN, NULL), 400);
}

#define TEST_FILE(fn) cmocka_unit_test_setup_teardown(fn, set_up_file, tear_down_file)
#define TEST_API(fn)  cmocka_unit_test_setup_teardown(fn, set_up_api, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FILE(an_entry_is_the_same_after_a_restart),
		TEST_FILE(refused_requests_do_not_displace_changes),
		TEST_FILE(the_file_is_rewritten_at_twice_the_caps),
		TEST_FILE(what_is_added_while_the_file_is_rewritten_is_in_it),
		TEST_FILE(an_entry_waits_for_a_disk_that_is_too_slow),
		TEST_FILE(an_entry_does_not_wait_for_a_disk_that_fails),
		TEST_FILE(a_long_body_is_cut_between_characters),
		TEST_FILE(lines_that_are_no_entries_are_left_out_and_counted),
		TEST_FILE(a_file_that_is_too_large_is_moved_away),
		TEST_FILE(an_entry_that_cannot_be_written_is_kept_and_counted),
		TEST_FILE(a_file_that_cannot_be_opened_is_an_error),
		TEST_API(writes_are_listed_with_who_what_and_result),
		TEST_API(reads_and_what_is_over_the_limit_are_not_listed),
		TEST_API(pages_of_the_audit_log_follow_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
