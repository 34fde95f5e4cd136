/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A disk that fails: each call of the file system fails once, the first, then the second, and so on.
 * What failed is told or did no harm; nothing is lost that was not counted, and it works again after.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/file.h>

#include "common/clock.h"
#include "common/spool/compact.h"
#include "common/spool/partition.h"
#include "common/spool/trim.h"
#include "tests/unit/spool.h"

/* ---- the calls that fail ------------------------------------------------------------------------- */

enum call {
	CALL_OPEN,
	CALL_FSTAT,
	CALL_FSTATAT,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_FTRUNCATE,
	CALL_SYNC,
	CALL_RENAME,
	CALL_UNLINK,
	CALL_MKDIR,
	CALL_FCHMOD,
	CALL_LIST,
	CALL_READ_DIR,
	CALL_LOCK,
	CALL_END,
};

static size_t countdown; /* 0: nothing fails */
static enum call failed; /* CALL_END: none yet */

static void fail_nth(size_t n)
{
	countdown = n;
	failed = CALL_END;
}

static bool fails(enum call call)
{
	if (!countdown || --countdown)
		return false;
	failed = call;
	errno = EIO;
	return true;
}

/* True where the n-th call was there to fail. From here on all goes well. */
static bool has_failed(void)
{
	countdown = 0;
	return failed != CALL_END;
}

/* They stand in front of those of the C library for all of this program. */
#define STANDS_IN(call, type, name, args, ...)                                                     \
	type fault_##name args __asm__(#name);                                                     \
	type fault_##name args                                                                     \
	{                                                                                          \
		static type(*real) args;                                                           \
                                                                                                   \
		if (!real)                                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                                 \
		return fails(call) ? FAILURE(type) : real(__VA_ARGS__);                            \
	}

#define FAILURE(type)   _Generic((type)0, DIR * : NULL, struct dirent * : NULL, default : -1)
#define DIRECTORY       DIR *
#define DIRECTORY_ENTRY struct dirent *

STANDS_IN(CALL_OPEN, int, open, (const char *path, int flags, mode_t mode), path, flags, mode)
STANDS_IN(CALL_OPEN, int, openat, (int dir, const char *path, int flags, mode_t mode), dir, path,
	  flags, mode)
STANDS_IN(CALL_FSTAT, int, fstat, (int fd, struct stat *st), fd, st)
STANDS_IN(CALL_FSTATAT, int, fstatat, (int dir, const char *path, struct stat *st, int flags), dir,
	  path, st, flags)
STANDS_IN(CALL_PREAD, ssize_t, pread, (int fd, void *to, size_t n, off_t at), fd, to, n, at)
STANDS_IN(CALL_PWRITE, ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), fd, from, n,
	  at)
STANDS_IN(CALL_FTRUNCATE, int, ftruncate, (int fd, off_t size), fd, size)
STANDS_IN(CALL_SYNC, int, fsync, (int fd), fd)
STANDS_IN(CALL_SYNC, int, fdatasync, (int fd), fd)
STANDS_IN(CALL_RENAME, int, renameat, (int a, const char *from, int b, const char *to), a, from, b,
	  to)
STANDS_IN(CALL_RENAME, int, renameat2,
	  (int a, const char *from, int b, const char *to, unsigned int flags), a, from, b, to,
	  flags)
STANDS_IN(CALL_UNLINK, int, unlinkat, (int dir, const char *path, int flags), dir, path, flags)
STANDS_IN(CALL_MKDIR, int, mkdir, (const char *path, mode_t mode), path, mode)
STANDS_IN(CALL_MKDIR, int, mkdirat, (int dir, const char *path, mode_t mode), dir, path, mode)
STANDS_IN(CALL_FCHMOD, int, fchmod, (int fd, mode_t mode), fd, mode)
STANDS_IN(CALL_LIST, DIRECTORY, fdopendir, (int fd), fd)
STANDS_IN(CALL_READ_DIR, DIRECTORY_ENTRY, readdir, (DIR * dir), dir)
STANDS_IN(CALL_LOCK, int, flock, (int fd, int how), fd, how)

static unsigned int closed_twice;

int fault_close(int fd) __asm__("close");
int fault_close(int fd)
{
	static int (*real)(int fd);
	int r;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "close");
	r = real(fd);
	/* By then it may be somebody else's. */
	closed_twice += r < 0 && errno == EBADF;
	return r;
}

/* ---- what is done with it ------------------------------------------------------------------------ */

enum {
	RECORDS = 60,
	RECORD_BYTES = 250,
	ENOUGH = 2000, /* calls; a sweep that does not end earlier is broken */
};

static const struct nt_bus_options synced = {.segment_bytes = 4 << 10, .sync = true};

/* A sweep ends with the first n for which no call was left to fail. */
#define SWEEP(n, dir)                                                                              \
	for (size_t n = 1, in_sweep = 1; in_sweep && place(dir, n);                                \
	     in_sweep = failed != CALL_END, n++)

static char where[PATH_BYTES];

/* A fresh directory for the n-th run, named in `where`. */
static bool place(const char *dir, size_t n)
{
	assert_true(n < ENOUGH);
	assert_int_equal(closed_twice, 0);
	if (n > 1)
		scratch_remove(where);
	(void)snprintf(where, sizeof(where), "%.200s/%zu", dir, n);
	fail_nth(0);
	return true;
}

struct count {
	uint64_t records, sum, newest[10];
};

static void note(struct count *count, const struct nt_bus_record *record)
{
	const uint64_t number = number_of(record);

	count->records++;
	count->sum += number;
	count->newest[number % 10] = number;
}

/* What is there, by a reader for whom nothing fails. Offsets rise. */
static struct count read_all(const char *dir, enum nt_topic topic)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = open_reader(dir, topic);
	struct nt_bus_record record;
	struct count count = {0};
	uint64_t next = 0;

	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		assert_true(record.offset >= next);
		next = record.offset + 1;
		note(&count, &record);
	}
	assert_int_equal(corrupt_frames(reader), 0);
	return count;
}

static void a_writer_counts_what_a_failing_disk_cost_and_says_so(void **state)
{
	SWEEP(n, *state)
	{
		struct nt_bus *bus = NULL;
		struct nt_bus_stats stats;
		char url[PATH_BYTES + sizeof("spool:")];
		unsigned int told = 0, refused = 0;
		int r;

		(void)snprintf(url, sizeof(url), "spool:%s", where);
		fail_nth(n);
		r = nt_bus_open(url, &synced, &bus);
		if (r < 0) {
			assert_int_equal(r, -EIO);
			assert_null(bus);
			told++;
			assert_int_equal(nt_bus_open(url, &synced, &bus), 0);
		}
		for (uint64_t i = 0; i < RECORDS; i++) {
			r = publish(bus, NT_TOPIC_WINDOW, i, RECORD_BYTES);
			assert_true(r == 0 || r == -EIO);
			refused += r < 0;
			if (i % 7 == 6) {
				r = nt_bus_flush(bus);
				assert_true(r == 0 || r == -EIO);
				told += r < 0;
			}
		}
		told += nt_bus_flush(bus) < 0;
		(void)has_failed();
		nt_bus_stats(bus, &stats);
		assert_int_equal(stats.published + stats.dropped_full, RECORDS);
		assert_true(!stats.dropped_full || told + refused);
		assert_true(stats.dropped_full >= refused);
		nt_bus_close(bus);
		assert_int_equal(read_all(where, NT_TOPIC_WINDOW).records, stats.published);
		/* One failure costs no more than what waited with it. */
		assert_true(stats.dropped_full <= 8);
		/* What makes or keeps a file never fails in silence; a seal alone may be missing. */
		if (failed == CALL_MKDIR || failed == CALL_RENAME || failed == CALL_FCHMOD ||
		    failed == CALL_LOCK)
			assert_true(told + refused);
	}
}

/* What no segment came of, in partition 0. */
static unsigned int drafts_left(enum nt_topic topic)
{
	int fd = open_partition(where, topic, 0);
	const struct dirent *entry;
	unsigned int drafts = 0;
	DIR *dir = fdopendir(fd);

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		drafts += strstr(entry->d_name, ".tmp") != NULL;
	(void)closedir(dir);
	return drafts;
}

static void what_was_promised_to_be_on_the_disk_is_or_the_flush_fails(void **state)
{
	unsigned int syncs = 0;

	SWEEP(n, *state)
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(where, &synced);
		int r;

		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, RECORD_BYTES), 0);
		fail_nth(n);
		r = nt_bus_flush(bus);
		assert_int_equal(r, has_failed() && failed != CALL_END ? -EIO : 0);
		syncs += failed == CALL_SYNC;
		if (failed != CALL_UNLINK)
			assert_int_equal(drafts_left(NT_TOPIC_WINDOW), 0);
	}
	/* The directory's and the file's. */
	assert_int_equal(syncs, 2);
}

static void write_much(const char *dir)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, &synced);

	for (uint64_t i = 1; i <= RECORDS; i++) {
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, RECORD_BYTES), 0);
		assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, RECORD_BYTES), 0);
	}
}

/* All that is left, however often it has to be asked. */
static unsigned int insist(struct nt_bus_reader *reader, struct count *count)
{
	struct nt_bus_record record;
	unsigned int told = 0;
	int r;

	while ((r = nt_bus_reader_next(reader, 0, &record)) != 0) {
		if (r == 1)
			note(count, &record);
		else
			assert_int_equal(r, -EIO);
		told += r < 0;
		assert_true(told < 3);
	}
	return told;
}

static void a_reader_says_that_it_could_not_read_and_then_reads_all(void **state)
{
	char spool[PATH_BYTES], url[PATH_BYTES + sizeof("spool:")];

	(void)snprintf(spool, sizeof(spool), "%.200s/spool", (const char *)*state);
	(void)snprintf(url, sizeof(url), "spool:%s", spool);
	write_much(spool);
	SWEEP(n, *state)
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		struct count count = {0};
		unsigned int told = 0;
		int r;

		fail_nth(n);
		r = nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader);
		if (r < 0) {
			assert_int_equal(r, -EIO);
			assert_null(reader);
			told++;
			assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader),
					 0);
		}
		told += insist(reader, &count);
		assert_int_equal(count.records, RECORDS);
		assert_int_equal(count.sum, RECORDS * (RECORDS + 1) / 2);
		assert_int_equal(nt_bus_reader_missed(reader), 0);
		assert_int_equal(corrupt_frames(reader), 0);
		/* Whether a segment has been replaced is asked once more, should it matter. */
		if (has_failed() && failed != CALL_FSTATAT)
			assert_int_equal(told, 1);
	}
}

/* What it was told of once, by its watches, it is not told of again. */
static void a_watching_reader_that_could_not_look_looks_again(void **state)
{
	SWEEP(n, *state)
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		nt_auto(nt_bus) struct nt_bus *first = open_bus(where, &synced), *second = NULL;
		struct count count = {0};
		unsigned int told;

		assert_int_equal(publish(first, NT_TOPIC_WINDOW, 1, RECORD_BYTES), 0);
		assert_int_equal(nt_bus_flush(first), 0);
		reader = open_reader(where, NT_TOPIC_WINDOW);
		assert_true(nt_bus_reader_fd(reader) >= 0);
		assert_int_equal(insist(reader, &count), 0);
		/* A partition more. */
		second = open_bus(where, &synced);
		assert_int_equal(publish(second, NT_TOPIC_WINDOW, 2, RECORD_BYTES), 0);
		assert_int_equal(nt_bus_flush(second), 0);
		fail_nth(n);
		told = insist(reader, &count);
		(void)has_failed();
		assert_int_equal(count.records, 2);
		if (failed == CALL_LIST || failed == CALL_READ_DIR || failed == CALL_OPEN)
			assert_int_equal(told, 1);
	}
}

static void a_reader_that_could_not_go_to_a_place_goes_there_the_next_time(void **state)
{
	char spool[PATH_BYTES];

	(void)snprintf(spool, sizeof(spool), "%.200s/spool", (const char *)*state);
	write_much(spool);
	SWEEP(n, *state)
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
			open_reader(spool, NT_TOPIC_WINDOW);
		struct count count = {0};
		unsigned int told = 0;

		fail_nth(n);
		for (int r = -1; r < 0; told += r < 0)
			r = nt_bus_reader_seek_time(reader, 40);
		told += insist(reader, &count);
		assert_int_equal(count.records, RECORDS - 39);
		assert_int_equal(nt_bus_reader_missed(reader), 0);
		for (int r = -1; r < 0; told += r < 0)
			r = nt_bus_reader_seek_end(reader);
		count = (struct count){0};
		told += insist(reader, &count);
		assert_int_equal(count.records, 0);
		assert_true(told < 3);
		if (has_failed() && (failed == CALL_LIST || failed == CALL_READ_DIR))
			assert_int_equal(told, 1);
	}
}

/* The partition 0 of a topic in `where`, with segments of ten records each. */
static struct nt_spool_partition *fill_partition(const struct nt_spool_limits *limits,
						 struct nt_bus_stats *stats, enum nt_topic topic,
						 int *ret_topic)
{
	struct nt_spool_partition *partition = NULL;
	nt_autoclose int root = -1;

	assert_int_equal(nt_spool_make_root(where, &root), 0);
	assert_int_equal(nt_spool_make_dir(root, nt_topic_name(topic), ret_topic), 0);
	assert_int_equal(nt_spool_partition_open(*ret_topic, 0, limits, stats, &partition), 0);
	for (uint64_t i = 1; i <= RECORDS; i++) {
		uint64_t value[8] = {i};
		const char key[2] = {'k', (char)('0' + i % 10)};
		const struct nt_bus_record record = {
			.topic = topic,
			.key = key,
			.key_len = sizeof(key),
			.value = value,
			.value_len = sizeof(value),
			.real_ns = i,
		};

		assert_int_equal(nt_spool_partition_add(partition, &record), 0);
		if (i % 10)
			continue;
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		nt_spool_partition_roll(partition);
	}
	return partition;
}

static void a_compaction_that_fails_leaves_the_newest_of_every_key(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = 4 << 10, .max_keys = 100};

	SWEEP(n, *state)
	{
		nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
		struct nt_bus_stats stats = {0};
		nt_autoclose int topic = -1;
		struct count count;
		struct usage usage;
		int r;

		partition = fill_partition(&limits, &stats, NT_TOPIC_CONTROL, &topic);
		fail_nth(n);
		r = nt_spool_compact(partition, 1);
		(void)has_failed();
		assert_true(r == 0 || r == -EIO);
		count = read_all(where, NT_TOPIC_CONTROL);
		for (uint64_t i = 0; i < 10; i++)
			assert_int_equal(count.newest[i], i ? RECORDS - 10 + i : RECORDS);
		usage = measure(where, NT_TOPIC_CONTROL, 0);
		assert_int_equal(usage.drafts, 0);
		if (r < 0)
			assert_int_equal(count.records, RECORDS);
		else
			assert_int_equal(count.records, 10);
		/* Who cannot look whether it is worth it compacts; leftovers go the next time. */
		if (failed != CALL_END && failed != CALL_OPEN && failed != CALL_FSTAT &&
		    failed != CALL_PREAD && failed != CALL_UNLINK)
			assert_int_equal(r, -EIO);
		assert_int_equal(nt_spool_compact(partition, 1), 0);
	}
}

/* Of some keys the newest is in the middle, where an older one must not be taken for it. */
static void a_segment_that_cannot_be_read_hides_no_newer_record(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = 4 << 10, .max_keys = 100};
	static const uint64_t numbers[] = {1, 2, 3, 4, 0, 11, 12, 0, 23, 24, 0};

	SWEEP(n, *state)
	{
		nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
		nt_autoclose int root = -1, topic = -1;
		struct nt_bus_stats stats = {0};
		struct count count;
		int r;

		assert_int_equal(nt_spool_make_root(where, &root), 0);
		assert_int_equal(nt_spool_make_dir(root, nt_topic_name(NT_TOPIC_CONTROL), &topic),
				 0);
		assert_int_equal(nt_spool_partition_open(topic, 0, &limits, &stats, &partition), 0);
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			const char key = (char)('0' + numbers[i] % 10);
			const struct nt_bus_record record = {
				.topic = NT_TOPIC_CONTROL,
				.key = &key,
				.key_len = 1,
				.value = &numbers[i],
				.value_len = sizeof(numbers[i]),
			};

			if (numbers[i]) {
				assert_int_equal(nt_spool_partition_add(partition, &record), 0);
				continue;
			}
			assert_int_equal(nt_spool_partition_flush(partition), 0);
			nt_spool_partition_roll(partition);
		}
		fail_nth(n);
		r = nt_spool_compact(partition, 1);
		(void)has_failed();
		count = read_all(where, NT_TOPIC_CONTROL);
		assert_int_equal(count.newest[1], 11);
		assert_int_equal(count.newest[2], 12);
		assert_int_equal(count.newest[3], 23);
		assert_int_equal(count.newest[4], 24);
		assert_int_equal(count.records, r < 0 ? 8 : 4);
	}
}

static void what_a_failing_trim_has_removed_is_counted(void **state)
{
	const struct nt_spool_limits limits = {.max_bytes = 8 << 10, .segment_bytes = 4 << 10};

	SWEEP(n, *state)
	{
		nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
		struct nt_bus_stats stats = {0};
		nt_autoclose int topic = -1;
		int r;

		partition = fill_partition(&limits, &stats, NT_TOPIC_WINDOW, &topic);
		fail_nth(n);
		r = nt_spool_trim(topic, partition, false, 1);
		(void)has_failed();
		assert_true(r == 0 || r == -EIO);
		assert_int_equal(read_all(where, NT_TOPIC_WINDOW).records + stats.evicted_records,
				 RECORDS);
		if (failed == CALL_LIST || failed == CALL_READ_DIR)
			assert_int_equal(r, -EIO);
		if (r < 0)
			assert_int_equal(stats.evicted_records, 0);
		if (failed == CALL_END)
			assert_true(stats.evicted_records > 0);
	}
}

static void a_recovery_that_fails_can_be_done_again(void **state)
{
	const struct nt_spool_limits limits = {.max_bytes = 1 << 20, .segment_bytes = 4 << 10};
	unsigned int unknown_sizes = 0;

	SWEEP(n, *state)
	{
		struct nt_spool_partition *partition = NULL;
		nt_autoclose int topic = -1, segment = -1;
		struct nt_bus_stats stats = {0};
		uint64_t value = 61, next;
		const struct nt_bus_record record = {
			.topic = NT_TOPIC_WINDOW,
			.key = "k1",
			.key_len = 2,
			.value = &value,
			.value_len = sizeof(value),
		};
		char path[PATH_BYTES];
		int r;

		partition = fill_partition(&limits, &stats, NT_TOPIC_WINDOW, &topic);
		assert_int_equal(nt_spool_partition_add(partition, &record), 0);
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		next = partition->next;
		nt_spool_partition_free(partition);
		partition = NULL;
		segment_path(where, 60, path);
		segment = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(segment, "torn", 4), 4);

		fail_nth(n);
		r = nt_spool_partition_open(topic, 0, &limits, &stats, &partition);
		(void)has_failed();
		assert_true(r == 0 || r == -EIO);
		assert_true((r == 0) == (partition != NULL));
		unknown_sizes += failed == CALL_FSTAT && r < 0;
		if (failed == CALL_FTRUNCATE || failed == CALL_LOCK || failed == CALL_LIST)
			assert_int_equal(r, -EIO);
		if (!partition)
			assert_int_equal(
				nt_spool_partition_open(topic, 0, &limits, &stats, &partition), 0);
		assert_true(partition->next >= next);
		assert_true(stats.recovered_torn >= 1);
		value++;
		assert_int_equal(nt_spool_partition_add(partition, &record), 0);
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		nt_spool_partition_free(partition);
		assert_int_equal(read_all(where, NT_TOPIC_WINDOW).records, RECORDS + 2);
	}
	/*
	 * Of the newest segment, before it is read, where its tail is searched, and after; older
	 * ones only help.
	 */
	assert_int_equal(unknown_sizes, 3);
}

/* Age is that of the newest record, or of the file where nothing tells that. */
static void a_segment_without_a_seal_is_as_old_as_its_file(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = 4 << 10, .max_age_ns = NT_HOUR};
	nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
	const uint64_t now_ns = nt_clock_real_ns();
	struct nt_bus_stats stats = {0};
	nt_autoclose int topic = -1;
	char path[PATH_BYTES];
	struct stat st;

	assert_true(place(*state, 1));
	partition = fill_partition(&limits, &stats, NT_TOPIC_WINDOW, &topic);
	segment_path(where, 0, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - NT_SPOOL_SEAL_BYTES), 0);
	assert_int_equal(nt_spool_trim(topic, partition, true, now_ns), 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_spool_trim(topic, partition, false, now_ns + 2 * NT_HOUR), 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_spool_trim(topic, partition, true, now_ns + 2 * NT_HOUR), 0);
	assert_true(stats.evicted_records >= RECORDS - 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(a_writer_counts_what_a_failing_disk_cost_and_says_so),
		SPOOL_TEST(what_was_promised_to_be_on_the_disk_is_or_the_flush_fails),
		SPOOL_TEST(a_reader_says_that_it_could_not_read_and_then_reads_all),
		SPOOL_TEST(a_watching_reader_that_could_not_look_looks_again),
		SPOOL_TEST(a_reader_that_could_not_go_to_a_place_goes_there_the_next_time),
		SPOOL_TEST(a_compaction_that_fails_leaves_the_newest_of_every_key),
		SPOOL_TEST(a_segment_that_cannot_be_read_hides_no_newer_record),
		SPOOL_TEST(what_a_failing_trim_has_removed_is_counted),
		SPOOL_TEST(a_recovery_that_fails_can_be_done_again),
		SPOOL_TEST(a_segment_without_a_seal_is_as_old_as_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
