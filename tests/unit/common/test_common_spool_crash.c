/* SPDX-License-Identifier: GPL-3.0-or-later */
/* kill -9 at any instant, and a full disk. */
#include "tests/unit/common/spool.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* Publishes numbers from `from` on until it is killed, and tells how far it got. */
static void write_until_killed(const char *dir, enum nt_topic topic, uint64_t from, int report)
{
	const struct nt_bus_options options = {.segment_bytes = 16 << 10, .max_bytes = 64 << 20};
	char url[PATH_BYTES];
	struct nt_bus *bus = NULL;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	if (nt_bus_open(url, &options, &bus) < 0)
		_exit(1);
	for (uint64_t i = from;; i++) {
		if (publish(bus, topic, i, 8 + i * 31 % 600) < 0)
			_exit(1);
		if (i % 5 == 0 && (nt_bus_flush(bus) < 0 || write(report, &i, sizeof(i)) < 0))
			_exit(1);
	}
}

/* Kills a writer after some reports. Returns the last number that it reported. */
static uint64_t run_and_kill(const char *dir, enum nt_topic topic, uint64_t from, int reports)
{
	struct timespec instant = {0, (long)(from * 7919 % 400) * 1000};
	uint64_t flushed = 0, got;
	int report[2], status;
	pid_t pid;

	assert_int_equal(pipe(report), 0);
	pid = fork();
	if (pid == 0)
		write_until_killed(dir, topic, from, report[1]);
	assert_true(pid > 0);
	(void)close(report[1]);
	for (int i = 0; i < reports; i++) {
		assert_int_equal(read(report[0], &got, sizeof(got)), sizeof(got));
		flushed = got;
	}
	(void)nanosleep(&instant, NULL); /* not waiting for anything: any instant will do */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(report[0], &got, sizeof(got)) == sizeof(got))
		flushed = got;
	(void)close(report[0]);
	return flushed;
}

static void kill_9_at_any_instant_loses_nothing_that_was_flushed(void **state)
{
	uint64_t next = 1;

	for (int round = 0; round < 40; round++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		uint64_t flushed = run_and_kill(*state, NT_TOPIC_WINDOW, next, 1 + round % 7);
		struct nt_bus_record record;
		uint64_t last = 0;
		int r;

		reader = open_reader(*state, NT_TOPIC_WINDOW);
		while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
			assert_int_equal(number_of(&record), last + 1);
			last++;
			assert_int_equal(record.value_len, 8 + last * 31 % 600);
		}
		assert_int_equal(r, 0);
		assert_true(last >= flushed);
		assert_int_equal(corrupt_frames(reader), 0);
		next = last + 1;
	}
}

static void kill_9_in_a_compaction_loses_no_key(void **state)
{
	uint64_t next = 1;

	for (int round = 0; round < 40; round++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		uint64_t flushed = run_and_kill(*state, NT_TOPIC_CONTROL, next, 20 + round % 7);
		uint64_t last = 0, next_offset = 0, newest[10] = {0};
		struct nt_bus_record record;
		int r;

		reader = open_reader(*state, NT_TOPIC_CONTROL);
		while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
			assert_true(record.offset >= next_offset);
			next_offset = record.offset + 1;
			last = number_of(&record);
			assert_true(newest[last % 10] < last);
			newest[last % 10] = last;
		}
		assert_int_equal(r, 0);
		assert_true(last >= flushed);
		assert_int_equal(corrupt_frames(reader), 0);
		for (uint64_t i = last > 9 ? last - 9 : 1; i <= last; i++)
			assert_int_equal(newest[i % 10], i);
		next = last + 1;
	}
	assert_true(measure(*state, NT_TOPIC_CONTROL, 0).bytes < 128 << 10);
}

/* Publishes until the disk is full, makes room, goes on. Runs in a process of its own. */
static int fill_the_disk(const char *dir, int (*make_room)(const char *dir))
{
	const struct nt_bus_options options = {.segment_bytes = 32 << 10, .max_bytes = 64 << 20};
	struct nt_bus *bus = open_bus(dir, &options);
	struct nt_bus_reader *reader = open_reader(dir, NT_TOPIC_WINDOW);
	uint64_t number = 0, kept = 0, last = 0;
	struct nt_bus_record record;
	struct nt_bus_stats stats;
	int r = 0, failures = 0;

	while (failures < 20 && number < 100000) {
		number++;
		r = publish(bus, NT_TOPIC_WINDOW, number, 8 + number * 31 % 600);
		if (r == 0 && number % 10 == 0)
			r = nt_bus_flush(bus);
		if (r < 0 && r != -ENOSPC)
			return 2;
		failures += r < 0;
	}
	nt_bus_stats(bus, &stats);
	if (failures < 20 || !stats.dropped_full)
		return 3;
	if (make_room(dir) < 0)
		return 4;
	for (int i = 0; i < 100; i++)
		if (publish(bus, NT_TOPIC_WINDOW, ++number, 100) < 0)
			return 5;
	if (nt_bus_flush(bus) < 0)
		return 6;
	nt_bus_stats(bus, &stats);
	if (stats.published + stats.dropped_full != number)
		return 7;
	while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
		if (number_of(&record) <= last)
			return 8;
		last = number_of(&record);
		kept++;
	}
	if (r < 0 || last != number || kept != stats.published || corrupt_frames(reader))
		return 9;
	nt_bus_reader_close(reader);
	nt_bus_close(bus);
	return 0;
}

static int remove_filler(const char *dir)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/filler", dir);
	return unlink(path);
}

static int raise_limit(const char *dir)
{
	struct rlimit limit;

	(void)dir;
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return -1;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &limit);
}

static void assert_child_is_content(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_full_disk_costs_what_did_not_fit_and_no_more(void **state)
{
	const char *dir = *state;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("skip: root: needs a small file system of its own\n");
		skip();
	}
	pid = fork();
	if (pid == 0) {
		static char filler[64 << 10];
		char path[PATH_BYTES];

		(void)snprintf(path, sizeof(path), "%s/filler", dir);
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", dir, "tmpfs", 0, "size=256k") < 0 ||
		    nt_file_create(path, 0600, filler, sizeof(filler)) < 0)
			_exit(1);
		_exit(fill_the_disk(dir, remove_filler));
	}
	assert_child_is_content(pid);
}

/* No file may grow over 20 KiB, which is less than a segment. */
static void a_file_size_limit_is_a_full_disk(void **state)
{
	const char *dir = *state;
	pid_t pid = fork();

	if (pid == 0) {
		struct sigaction ignore = {.sa_handler = SIG_IGN};
		struct rlimit limit;

		if (sigaction(SIGXFSZ, &ignore, NULL) < 0 || getrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(1);
		limit.rlim_cur = 20 << 10;
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(1);
		_exit(fill_the_disk(dir, raise_limit));
	}
	assert_child_is_content(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(kill_9_at_any_instant_loses_nothing_that_was_flushed),
		SPOOL_TEST(kill_9_in_a_compaction_loses_no_key),
		SPOOL_TEST(a_full_disk_costs_what_did_not_fit_and_no_more),
		SPOOL_TEST(a_file_size_limit_is_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
