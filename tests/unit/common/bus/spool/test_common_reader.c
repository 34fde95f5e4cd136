/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readers who are behind, and what they can count on. */
#include <errno.h>
#include <limits.h>

#include "common/bus/bus_spool.h"
#include "tests/unit/common/spool.h"

enum {
	BACKLOG = 300,
	AT_MOST = 65, /* records until something new is seen */
};

static void a_long_backlog_hides_nothing_that_is_new(void **state)
{
	const char *dir = *state;
	char url[PATH_BYTES + sizeof("spool:")];
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, NULL);
	struct nt_bus_record record;
	unsigned int n = 0;

	for (uint64_t i = 1000; i < 1000 + BACKLOG; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 8), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(
		nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW | 1U << NT_TOPIC_NODE, &reader), 0);
	assert_true(nt_bus_reader_fd(reader) >= 0);
	assert_int_equal(read_number(reader), 1000);
	/* Older than all that is left, and so the next as soon as it is seen. */
	assert_int_equal(publish(bus, NT_TOPIC_NODE, 7, 8), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	do {
		assert_int_equal(nt_bus_reader_next(reader, 0, &record), 1);
		n++;
	} while (record.topic != NT_TOPIC_NODE);
	assert_in_range(n, 1, AT_MOST);
	assert_int_equal(number_of(&record), 7);
}

static void a_reader_that_starts_at_the_oldest_has_missed_nothing(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position = {.topic = NT_TOPIC_WINDOW};

	publish_many(dir, &small, 0, 1000, 400);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_true(read_number(reader) > 0);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
	/* Who says where, is told by how much it came too late, and once. */
	position.offset = 1;
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	position.offset = read_number(reader);
	assert_int_equal(nt_bus_reader_missed(reader), position.offset - 1);
	(void)read_number(reader);
	assert_int_equal(nt_bus_reader_missed(reader), position.offset - 1);
}

static void the_lock_is_not_for_the_world(void **state)
{
	const char *dir = *state;
	nt_autoclose int fd = -1;
	struct stat st;

	publish_many(dir, NULL, 0, 1, 8);
	fd = open_partition(dir, NT_TOPIC_WINDOW, 0);
	assert_int_equal(fstatat(fd, "lock", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777 & ~0640, 0);
	assert_int_equal(st.st_mode & 0600, 0600);
}

/* So many bytes are kept for what is behind it: topic, partition, segment. */
static void a_path_may_be_almost_as_long_as_the_kernel_takes(void **state)
{
	static char path[PATH_MAX];

	(void)state;
	for (size_t len = 0; len < PATH_MAX; len += len ? 1 : PATH_MAX - 70) {
		struct nt_bus_reader *reader = NULL;

		for (size_t i = 0; i < len; i++)
			path[i] = i % 200 ? 'x' : '/';
		path[len] = '\0';
		assert_int_equal(nt_spool_reader_open(path, 1, &reader), !len ? -EINVAL
									 : len < PATH_MAX - 64
										 ? 0
										 : -ENAMETOOLONG);
		nt_bus_reader_close(reader);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(a_long_backlog_hides_nothing_that_is_new),
		SPOOL_TEST(a_reader_that_starts_at_the_oldest_has_missed_nothing),
		SPOOL_TEST(the_lock_is_not_for_the_world),
		cmocka_unit_test(a_path_may_be_almost_as_long_as_the_kernel_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
