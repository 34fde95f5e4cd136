/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A test's spool in a scratch directory: helpers to write, read and measure it. */
#ifndef NT_TESTS_UNIT_COMMON_SPOOL_H
#define NT_TESTS_UNIT_COMMON_SPOOL_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/bus/bus_spool.h"
#include "common/bus/spool/dir.h"
#include "common/bus/spool/frame.h"
#include "common/system/file.h"
#include "tests/unit/scratch.h"

enum {
	PATIENCE_MS = 10000, /* timeout of expected events; reached only by failing tests */
	PATH_BYTES = 256,
};

/* Segments of 8 KiB under a cap of 64 KiB. */
static const struct nt_bus_options small = {.max_bytes = 64 << 10, .segment_bytes = 8 << 10};

#define SPOOL_TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

static inline int make_scratch(void **state)
{
	char *dir = malloc(SCRATCH_BYTES);

	if (!dir || scratch_make_in_memory(dir) < 0)
		return -1;
	*state = dir;
	return 0;
}

static inline int remove_scratch(void **state)
{
	scratch_remove(*state);
	free(*state);
	return 0;
}

static inline struct nt_bus *open_bus(const char *dir, const struct nt_bus_options *options)
{
	char url[PATH_BYTES + sizeof("spool:")];
	struct nt_bus *bus = NULL;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(nt_bus_open(url, options, &bus), 0);
	return bus;
}

static inline struct nt_bus_reader *open_reader(const char *dir, enum nt_topic topic)
{
	char url[PATH_BYTES + sizeof("spool:")];
	struct nt_bus_reader *reader = NULL;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(nt_bus_reader_open(url, 1U << topic, &reader), 0);
	return reader;
}

/* A record of `size` bytes that begins with the number; key "k" and a digit of it. */
static inline int publish(struct nt_bus *bus, enum nt_topic topic, uint64_t number, size_t size)
{
	char value[4096] = {0}, key[2] = {'k', (char)('0' + number % 10)};
	const struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = sizeof(key),
		.value = value,
		.value_len = size,
		.real_ns = number,
	};

	memcpy(value, &number, sizeof(number));
	return nt_bus_publish(bus, &record);
}

static inline void publish_many(const char *dir, const struct nt_bus_options *options,
				uint64_t from, uint64_t to, size_t size)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, options);

	for (uint64_t i = from; i < to; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, size), 0);
}

static inline uint64_t number_of(const struct nt_bus_record *record)
{
	uint64_t number;

	assert_true(record->value_len >= sizeof(number));
	memcpy(&number, record->value, sizeof(number));
	return number;
}

static inline uint64_t read_number(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;

	/*
	 * Mostly available at once, and then without watches, whose removal is slow in the kernel.
	 */
	if (nt_bus_reader_next(reader, 0, &record) == 0)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	return number_of(&record);
}

static inline void assert_nothing_more(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 0);
}

static inline uint64_t corrupt_frames(const struct nt_bus_reader *reader)
{
	struct nt_bus_stats stats;

	nt_bus_reader_stats(reader, &stats);
	return stats.corrupt_frames;
}

/* Opens DIR/neutracer.<topic>.v1/PARTITION. */
static inline int open_partition(const char *dir, enum nt_topic topic, uint32_t partition)
{
	char path[PATH_BYTES];
	int fd;

	(void)snprintf(path, sizeof(path), "%.200s/%s/%u", dir, nt_topic_name(topic), partition);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline void segment_path(const char *dir, uint64_t base, char path[PATH_BYTES])
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(base, name);
	(void)snprintf(path, PATH_BYTES, "%.200s/%s/0/%s", dir, nt_topic_name(NT_TOPIC_WINDOW),
		       name);
}

static inline void read_segment(const char *dir, struct nt_buf *buf)
{
	char path[PATH_BYTES];

	segment_path(dir, 0, path);
	assert_int_equal(nt_file_read(path, NT_BUF_MAX, buf), 0);
}

/* Makes DIR/<i> a spool whose only segment has these bytes. */
static inline void make_spool(const char *dir, unsigned int i, const uint8_t *data, size_t size,
			      char ret_spool[PATH_BYTES])
{
	char path[PATH_BYTES];

	(void)snprintf(ret_spool, PATH_BYTES, "%.200s/%u", dir, i);
	segment_path(ret_spool, 0, path);
	assert_int_equal(nt_file_make_parent(path, 0750), 0);
	assert_int_equal(nt_file_create(path, 0640, data, size), 0);
}

struct usage {
	uint64_t bytes;
	unsigned int segments, drafts;
};

static inline struct usage measure(const char *dir, enum nt_topic topic, uint32_t partition)
{
	nt_autosegments struct nt_spool_segments segments = {0};
	nt_autoclose int fd = open_partition(dir, topic, partition);
	struct usage usage = {0};

	assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	for (size_t i = 0; i < segments.count; i++) {
		char name[NT_SPOOL_NAME_BYTES];
		struct stat st;

		nt_spool_segment_name(segments.base[i], name);
		assert_int_equal(fstatat(fd, name, &st, 0), 0);
		usage.bytes += (uint64_t)st.st_size;
		nt_spool_draft_name(segments.base[i], name);
		usage.drafts += fstatat(fd, name, &st, 0) == 0;
	}
	usage.segments = (unsigned int)segments.count;
	return usage;
}

#endif
