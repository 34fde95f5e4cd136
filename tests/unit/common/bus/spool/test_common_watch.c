/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readers where the kernel gives no watches: inotify's calls are this file's own, and may fail. */
#include "common/bus/spool/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "common/system/clock.h"
#include "tests/unit/scratch.h"

static bool has_instances, has_watches;

int inotify_init1(int flags)
{
	if (has_instances)
		return (int)syscall(SYS_inotify_init1, flags);
	errno = EMFILE;
	return -1;
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	if (has_watches)
		return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
	errno = ENOSPC;
	return -1;
}

struct place {
	char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 32];
};

static int make_place(void **state)
{
	struct place *place = malloc(sizeof(*place));

	if (!place || scratch_make_in_memory(place->dir) < 0)
		return -1;
	(void)snprintf(place->url, sizeof(place->url), "spool:%s/not/yet", place->dir);
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	const struct place *place = *state;

	scratch_remove(place->dir);
	free(*state);
	return 0;
}

/* Reads what a process publishes after the reader has begun to wait. */
static void read_from_another_process(const char *url)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	int status, n = 0;
	pid_t pid;

	assert_int_equal(nt_bus_reader_open(url, 1 << NT_TOPIC_WINDOW, &reader), 0);
	assert_int_equal(nt_bus_reader_next(reader, 1, &record), 0);
	assert_true(nt_bus_reader_fd(reader) < 0);
	pid = fork();
	if (pid == 0) {
		struct nt_bus *bus = NULL;

		if (nt_bus_open(url, NULL, &bus) < 0)
			_exit(1);
		for (int i = 0; i < 3; i++) {
			record = (struct nt_bus_record){.topic = NT_TOPIC_WINDOW, .value = "v"};
			if (nt_bus_publish(bus, &record) < 0 || nt_bus_flush(bus) < 0)
				_exit(1);
		}
		nt_bus_close(bus);
		_exit(0);
	}
	while (n < 3) {
		assert_int_equal(nt_bus_reader_next(reader, 10000, &record), 1);
		n++;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void without_inotify_a_reader_looks_at_intervals(void **state)
{
	const struct place *place = *state;

	has_instances = false;
	read_from_another_process(place->url);
}

static void without_a_watch_to_be_had_a_reader_looks_at_intervals(void **state)
{
	const struct place *place = *state;

	has_instances = true;
	has_watches = false;
	read_from_another_process(place->url);
}

static void looking_at_intervals_keeps_the_time_limit_and_does_not_spin(void **state)
{
	const struct place *place = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	uint64_t begin_ns;
	clock_t begin;

	has_instances = false;
	assert_int_equal(nt_bus_reader_open(place->url, 1 << NT_TOPIC_WINDOW, &reader), 0);
	begin_ns = nt_clock_mono_ns();
	begin = clock();
	assert_int_equal(nt_bus_reader_next(reader, 150, &record), 0);
	assert_true(nt_clock_mono_ns() - begin_ns >= 150 * NT_MILLISECOND);
	assert_true(clock() - begin < CLOCKS_PER_SEC / 20);
}

/* Each component of the path appears by itself; what else happens beside it ends no wait. */
static void a_directory_is_waited_for_component_by_component(void **state)
{
	const struct place *place = *state;
	struct nt_spool_watch watch;
	char path[SCRATCH_BYTES + 16], other[SCRATCH_BYTES + 16];

	has_instances = true;
	has_watches = true;
	nt_spool_watch_init(&watch);
	nt_spool_watch_open(&watch);
	(void)snprintf(path, sizeof(path), "%s/a/b", place->dir);
	nt_spool_watch_missing(&watch, path);
	assert_false(watch.is_partial);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NOTHING);

	(void)snprintf(other, sizeof(other), "%s/a", place->dir);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(nt_spool_watch_wait(&watch, 10000), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	nt_spool_watch_missing(&watch, path);
	(void)nt_spool_watch_drain(&watch); /* the end of the first watch */

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(nt_spool_watch_wait(&watch, 10000), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	nt_spool_watch_dir(&watch, path);
	nt_spool_watch_found(&watch);
	(void)nt_spool_watch_drain(&watch);

	/* The parents are nobody's business now. */
	(void)snprintf(other, sizeof(other), "%s/a/c", place->dir);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NOTHING);
	(void)snprintf(other, sizeof(other), "%s/a/b/c", place->dir);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	assert_int_equal(rmdir(other), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	assert_false(watch.is_partial);
	nt_spool_watch_close(&watch);
}

static void a_file_that_goes_changes_no_names(void **state)
{
	const struct place *place = *state;
	char path[SCRATCH_BYTES + 16];
	struct nt_spool_watch watch;
	int fd;

	has_instances = true;
	has_watches = true;
	nt_spool_watch_init(&watch);
	nt_spool_watch_open(&watch);
	nt_spool_watch_dir(&watch, place->dir);
	(void)snprintf(path, sizeof(path), "%s/file", place->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_DATA);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_DATA);
	/* Of a directory, only that it goes is told as such. */
	(void)snprintf(path, sizeof(path), "%s/dir", place->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	assert_int_equal(chmod(path, 0750), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_DATA);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(nt_spool_watch_drain(&watch), NT_SPOOL_NAMES);
	nt_spool_watch_close(&watch);
}

static void what_cannot_be_watched_is_told_by_each_kind_of_watch(void **state)
{
	const struct place *place = *state;
	struct nt_spool_watch watch;

	has_instances = true;
	has_watches = false;
	nt_spool_watch_init(&watch);
	nt_spool_watch_open(&watch);
	assert_false(watch.is_partial);
	nt_spool_watch_missing(&watch, "/nt-no-such-dir");
	assert_true(watch.is_partial);
	assert_int_equal(watch.waiting, -1);
	nt_spool_watch_close(&watch);

	nt_spool_watch_init(&watch);
	nt_spool_watch_open(&watch);
	nt_spool_watch_dir(&watch, place->dir);
	assert_true(watch.is_partial);
	nt_spool_watch_close(&watch);

	/* What is not there is another's business. */
	has_watches = true;
	nt_spool_watch_init(&watch);
	nt_spool_watch_open(&watch);
	nt_spool_watch_dir(&watch, "/nt-no-such-dir");
	assert_false(watch.is_partial);
	nt_spool_watch_missing(&watch, "/");
	assert_true(watch.is_partial);
	nt_spool_watch_close(&watch);
}

static void relative_and_odd_paths_have_parents_too(void **state)
{
	static const char *const paths[] = {"nt-no-such-dir", "./nt-no-such-dir/x",
					    "/nt-no-such-dir//x/", "../nt-no-such-dir"};

	(void)state;
	has_instances = true;
	has_watches = true;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct nt_spool_watch watch;

		nt_spool_watch_init(&watch);
		nt_spool_watch_open(&watch);
		nt_spool_watch_missing(&watch, paths[i]);
		assert_false(watch.is_partial);
		assert_true(watch.waiting >= 0);
		nt_spool_watch_close(&watch);
	}
}

/* What some call before it left in errno is nothing to it. */
static void a_wait_that_ends_in_time_is_no_error(void **state)
{
	struct nt_spool_watch watch;

	(void)state;
	has_instances = true;
	nt_spool_watch_init(&watch);
	for (int i = 0; i < 2; i++) {
		errno = EINTR;
		assert_int_equal(nt_spool_watch_wait(&watch, 0), 0);
		errno = EINTR;
		assert_int_equal(nt_spool_watch_wait(&watch, 1), 0);
		nt_spool_watch_open(&watch);
	}
	nt_spool_watch_close(&watch);
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(without_inotify_a_reader_looks_at_intervals),
		PLACE_TEST(without_a_watch_to_be_had_a_reader_looks_at_intervals),
		PLACE_TEST(looking_at_intervals_keeps_the_time_limit_and_does_not_spin),
		PLACE_TEST(a_directory_is_waited_for_component_by_component),
		PLACE_TEST(a_file_that_goes_changes_no_names),
		PLACE_TEST(what_cannot_be_watched_is_told_by_each_kind_of_watch),
		cmocka_unit_test(relative_and_odd_paths_have_parents_too),
		cmocka_unit_test(a_wait_that_ends_in_time_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
