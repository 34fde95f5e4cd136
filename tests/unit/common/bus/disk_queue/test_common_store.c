/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/disk_queue/store.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/common/spool.h"

enum {
	BIG = 1000, /* bytes of a record */
	CAP = 256 << 10,
};

static const struct nt_disk_queue_limits limits = {.max_bytes = CAP};

static struct nt_disk_queue_store *open_store(const char *dir)
{
	struct nt_disk_queue_store *store = NULL;

	assert_int_equal(nt_disk_queue_store_open(dir, &limits, &store), 0);
	return store;
}

static int add(struct nt_disk_queue_store *store, enum nt_topic topic, uint64_t number, size_t size)
{
	char value[4096] = {0};
	const struct nt_bus_record record = {
		.topic = topic,
		.key = "key",
		.key_len = 3,
		.value = value,
		.value_len = size,
		.real_ns = number,
	};

	memcpy(value, &number, sizeof(number));
	return nt_disk_queue_store_add(store, &record);
}

static void add_all(struct nt_disk_queue_store *store, enum nt_topic topic, uint64_t from,
		    uint64_t to, size_t size)
{
	for (uint64_t number = from; number < to; number++)
		assert_int_equal(add(store, topic, number, size), 0);
}

/* Its number, or 0 without one. */
static uint64_t peek(struct nt_disk_queue_store *store, enum nt_topic *ret_topic)
{
	struct nt_bus_record record;
	int r = nt_disk_queue_store_peek(store, &record);

	assert_true(r == 0 || r == 1);
	if (r == 0)
		return 0;
	assert_int_equal(record.key_len, 3);
	assert_int_equal(record.real_ns, number_of(&record));
	*ret_topic = record.topic;
	return record.real_ns;
}

/* Hands on and settles all there is, and says how many. They must come in order. */
static uint64_t take_all(struct nt_disk_queue_store *store, enum nt_topic topic)
{
	uint64_t count = 0, last = 0, number;
	enum nt_topic got;

	while ((number = peek(store, &got))) {
		assert_int_equal(got, topic);
		assert_true(number > last);
		last = number;
		nt_disk_queue_store_take(store, ++count);
		nt_disk_queue_store_settle(store, count);
	}
	nt_disk_queue_store_settle(store, count);
	return count;
}

static struct nt_disk_queue_counters counters(const struct nt_disk_queue_store *store,
					      enum nt_disk_queue_class class)
{
	struct nt_disk_queue_counters got;

	nt_disk_queue_store_counters(store, class, &got);
	assert_int_equal(got.found + got.stored,
			 got.drained + got.evicted + got.expired + got.corrupt + got.left);
	return got;
}

static void what_goes_in_comes_out_once_and_in_order(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);

	add_all(store, NT_TOPIC_WINDOW, 1, 101, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).left, 100);
	assert_int_equal(take_all(store, NT_TOPIC_WINDOW), 100);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).drained, 100);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).left, 0);
	assert_int_equal(nt_disk_queue_store_bytes(store), 0);
	assert_int_equal(measure(*state, NT_TOPIC_WINDOW, 0).segments, 0);
	/* And again, in the same place. */
	add_all(store, NT_TOPIC_WINDOW, 101, 111, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_int_equal(take_all(store, NT_TOPIC_WINDOW), 10);
}

static void what_matters_most_comes_out_first(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
	const uint64_t want[] = {1, 2, 3, 4, 5};
	enum nt_topic topic;

	assert_int_equal(add(store, NT_TOPIC_DETAIL, 5, 8), 0);
	assert_int_equal(add(store, NT_TOPIC_DLQ, 4, 8), 0);
	assert_int_equal(add(store, NT_TOPIC_NODE, 3, 8), 0);
	assert_int_equal(add(store, NT_TOPIC_WINDOW, 1, 8), 0);
	assert_int_equal(add(store, NT_TOPIC_WINDOW, 2, 8), 0);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(peek(store, &topic), want[i]);
		nt_disk_queue_store_take(store, i + 1);
	}
	assert_int_equal(peek(store, &topic), 0);
}

static void a_segment_stays_until_all_of_it_is_settled(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
	enum nt_topic topic;

	add_all(store, NT_TOPIC_WINDOW, 1, 4, 8);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	for (uint64_t i = 1; i < 4; i++) {
		assert_int_equal(peek(store, &topic), i);
		nt_disk_queue_store_take(store, i);
	}
	nt_disk_queue_store_settle(store, 2);
	assert_int_equal(measure(*state, NT_TOPIC_WINDOW, 0).segments, 1);
	nt_disk_queue_store_settle(store, 3);
	assert_int_equal(measure(*state, NT_TOPIC_WINDOW, 0).segments, 0);
}

static void what_was_not_settled_comes_again_after_a_restart(void **state)
{
	struct nt_disk_queue_store *store = open_store(*state);
	enum nt_topic topic;

	add_all(store, NT_TOPIC_WINDOW, 1, 101, BIG);
	nt_disk_queue_store_free(store);

	store = open_store(*state);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).found, 100);
	for (uint64_t i = 1; i < 51; i++) {
		assert_int_equal(peek(store, &topic), i);
		nt_disk_queue_store_take(store, i);
	}
	nt_disk_queue_store_settle(store, 40);
	nt_disk_queue_store_free(store);

	store = open_store(*state);
	/* Whole segments went. */
	assert_in_range(peek(store, &topic), 30, 41);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).found, 101 - peek(store, &topic));
	add_all(store, NT_TOPIC_WINDOW, 101, 111, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_int_equal(take_all(store, NT_TOPIC_WINDOW), counters(store, 0).found + 10);
	nt_disk_queue_store_free(store);
}

static void two_processes_do_not_share_a_disk_queue(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
	struct nt_disk_queue_store *other = NULL;

	assert_int_equal(nt_disk_queue_store_open(*state, &limits, &other), -EWOULDBLOCK);
	assert_null(other);
}

static void at_the_cap_the_oldest_of_a_class_goes_and_is_counted(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
	struct nt_disk_queue_counters got;
	enum nt_topic topic;

	add_all(store, NT_TOPIC_WINDOW, 1, 1001, BIG);
	assert_true(nt_disk_queue_store_bytes(store) <= CAP);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	got = counters(store, NT_DISK_QUEUE_VERDICT);
	assert_int_equal(got.stored, 1000);
	assert_int_equal(got.evicted + got.left, 1000);
	assert_int_equal(got.dropped, 0);
	assert_in_range(got.left, CAP / BIG * 3 / 4, CAP / BIG);
	/* All that is left is the newest. */
	assert_int_equal(peek(store, &topic), got.evicted + 1);
	assert_int_equal(take_all(store, NT_TOPIC_WINDOW), got.left);
}

static void the_least_important_goes_first_however_new_it_is(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
	struct nt_disk_queue_counters verdict, other, detail;

	add_all(store, NT_TOPIC_DLQ, 1, 51, BIG);
	add_all(store, NT_TOPIC_DETAIL, 1001, 1101, BIG);
	add_all(store, NT_TOPIC_WINDOW, 1, 141, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	detail = counters(store, NT_DISK_QUEUE_DETAIL);
	assert_true(detail.evicted > 30 && detail.left > 0);
	assert_int_equal(counters(store, NT_DISK_QUEUE_OTHER).evicted, 0);

	add_all(store, NT_TOPIC_NODE, 141, 221, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	other = counters(store, NT_DISK_QUEUE_OTHER);
	assert_int_equal(counters(store, NT_DISK_QUEUE_DETAIL).evicted, 100);
	assert_true(other.evicted > 0 && other.left > 0);

	add_all(store, NT_TOPIC_WINDOW, 221, 421, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_int_equal(counters(store, NT_DISK_QUEUE_OTHER).evicted, 50);
	verdict = counters(store, NT_DISK_QUEUE_VERDICT);
	assert_true(verdict.evicted > 100);
	assert_int_equal(verdict.evicted + verdict.left, 420);
}

static void what_matters_less_never_drives_out_what_matters_more(void **state)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
	uint64_t evicted;
	int r;

	add_all(store, NT_TOPIC_WINDOW, 1, 401, BIG);
	evicted = counters(store, NT_DISK_QUEUE_VERDICT).evicted;
	for (uint64_t i = 0; i < 100; i++) {
		r = add(store, NT_TOPIC_DETAIL, i, BIG);
		assert_true(r == 0 || r == -ENOSPC);
	}
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).evicted, evicted);
	assert_true(counters(store, NT_DISK_QUEUE_DETAIL).dropped > 50);
	assert_int_equal(counters(store, NT_DISK_QUEUE_DETAIL).dropped +
				 counters(store, NT_DISK_QUEUE_DETAIL).stored,
			 100);
}

static void what_is_too_old_goes_and_is_counted(void **state)
{
	const struct nt_disk_queue_limits aged = {.max_bytes = CAP, .max_age_ns = 100};
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = NULL;
	enum nt_topic topic;

	assert_int_equal(nt_disk_queue_store_open(*state, &aged, &store), 0);
	add_all(store, NT_TOPIC_WINDOW, 1, 51, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	nt_disk_queue_store_expire(store, 99);
	nt_disk_queue_store_expire(store, 101);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).expired, 0);
	nt_disk_queue_store_expire(store, 130);
	assert_in_range(counters(store, NT_DISK_QUEUE_VERDICT).expired, 20, 30);
	assert_int_equal(peek(store, &topic), counters(store, NT_DISK_QUEUE_VERDICT).expired + 1);
	nt_disk_queue_store_expire(store, 1000);
	/* But for the one that is being read. */
	assert_in_range(counters(store, NT_DISK_QUEUE_VERDICT).left, 1, 8);
}

static void a_torn_tail_is_cut_off_and_counted(void **state)
{
	struct nt_disk_queue_store *store = open_store(*state);
	char path[PATH_BYTES];
	struct stat st;

	add_all(store, NT_TOPIC_WINDOW, 1, 6, BIG);
	nt_disk_queue_store_free(store);
	segment_path(*state, 0, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);

	store = open_store(*state);
	assert_int_equal(nt_disk_queue_store_torn(store), 1);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).found, 4);
	add_all(store, NT_TOPIC_WINDOW, 6, 8, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_int_equal(take_all(store, NT_TOPIC_WINDOW), 6);
	nt_disk_queue_store_free(store);
}

static void a_damaged_record_is_passed_over_and_counted(void **state)
{
	struct nt_disk_queue_store *store = open_store(*state);
	char path[PATH_BYTES];
	int fd;

	add_all(store, NT_TOPIC_WINDOW, 1, 21, BIG);
	nt_disk_queue_store_free(store);
	segment_path(*state, 0, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "?", 1, 2 * BIG), 1);
	assert_int_equal(close(fd), 0);

	store = open_store(*state);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).found, 20);
	assert_int_equal(take_all(store, NT_TOPIC_WINDOW), 19);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).corrupt, 1);
	assert_int_equal(nt_disk_queue_store_bytes(store), 0);
	nt_disk_queue_store_free(store);
}

static void a_segment_that_is_gone_is_counted_and_passed_over(void **state)
{
	struct nt_disk_queue_store *store = open_store(*state);
	char path[PATH_BYTES];

	add_all(store, NT_TOPIC_WINDOW, 1, 21, BIG);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	segment_path(*state, 0, path);
	assert_int_equal(unlink(path), 0);
	assert_in_range(take_all(store, NT_TOPIC_WINDOW), 10, 15);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).corrupt +
				 counters(store, NT_DISK_QUEUE_VERDICT).drained,
			 20);
	nt_disk_queue_store_free(store);
}

static void a_lower_cap_is_kept_after_a_restart(void **state)
{
	const struct nt_disk_queue_limits wide = {.max_bytes = 4 * CAP};
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = NULL;
	enum nt_topic topic;

	assert_int_equal(nt_disk_queue_store_open(*state, &wide, &store), 0);
	add_all(store, NT_TOPIC_WINDOW, 1, 801, BIG);
	nt_disk_queue_store_free(nt_take(store));
	store = open_store(*state);
	assert_int_equal(counters(store, NT_DISK_QUEUE_VERDICT).found, 800);
	assert_int_equal(add(store, NT_TOPIC_WINDOW, 801, BIG), 0);
	assert_int_equal(nt_disk_queue_store_flush(store), 0);
	assert_true(nt_disk_queue_store_bytes(store) <= CAP);
	assert_int_equal(peek(store, &topic), counters(store, NT_DISK_QUEUE_VERDICT).evicted + 1);
}

/* Killed at any instant: what was flushed is there, and nothing is there that was settled. */
static void a_killed_writer_loses_nothing_that_was_flushed(void **state)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct nt_disk_queue_store *store = open_store(*state);

		add_all(store, NT_TOPIC_WINDOW, 1, 51, BIG);
		if (nt_disk_queue_store_flush(store) == 0)
			(void)!write(ready[1], "!", 1);
		for (uint64_t i = 51;; i++)
			if (add(store, NT_TOPIC_WINDOW, i, BIG) < 0)
				_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	{
		nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = open_store(*state);
		struct nt_disk_queue_counters found = counters(store, NT_DISK_QUEUE_VERDICT);
		enum nt_topic topic;
		uint64_t first = peek(store, &topic);

		/* Of a writer that went on for a while only the newest may be left. */
		if (first == 1)
			assert_true(found.found >= 50);
		assert_int_equal(take_all(store, NT_TOPIC_WINDOW), found.found);
	}
	(void)close(ready[0]);
	(void)close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(what_goes_in_comes_out_once_and_in_order),
		SPOOL_TEST(what_matters_most_comes_out_first),
		SPOOL_TEST(a_segment_stays_until_all_of_it_is_settled),
		SPOOL_TEST(what_was_not_settled_comes_again_after_a_restart),
		SPOOL_TEST(two_processes_do_not_share_a_disk_queue),
		SPOOL_TEST(at_the_cap_the_oldest_of_a_class_goes_and_is_counted),
		SPOOL_TEST(the_least_important_goes_first_however_new_it_is),
		SPOOL_TEST(what_matters_less_never_drives_out_what_matters_more),
		SPOOL_TEST(what_is_too_old_goes_and_is_counted),
		SPOOL_TEST(a_torn_tail_is_cut_off_and_counted),
		SPOOL_TEST(a_damaged_record_is_passed_over_and_counted),
		SPOOL_TEST(a_segment_that_is_gone_is_counted_and_passed_over),
		SPOOL_TEST(a_lower_cap_is_kept_after_a_restart),
		SPOOL_TEST(a_killed_writer_loses_nothing_that_was_flushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
