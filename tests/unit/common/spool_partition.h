/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A test's partition, its writing side, and the headers of its segments. */
#ifndef NT_TESTS_UNIT_COMMON_SPOOL_PARTITION_H
#define NT_TESTS_UNIT_COMMON_SPOOL_PARTITION_H

#include "common/bus/spool/partition.h"
#include "common/bus/spool/scan.h"
#include "tests/unit/common/spool.h"

enum {
	FRAME = NT_SPOOL_FRAME_BYTES + 8,
	CLOSED = NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES,
};

static const struct nt_spool_limits roomy = {
	.max_bytes = 1 << 20, .segment_bytes = 512 << 10, .max_keys = 100};

struct place {
	char *dir;
	int topic;
	struct nt_bus_stats stats;
	struct nt_spool_partition *partition;
};

static inline void reopen(struct place *place, const struct nt_spool_limits *limits)
{
	nt_spool_partition_free(place->partition);
	place->partition = NULL;
	assert_int_equal(
		nt_spool_partition_open(place->topic, 0, limits, &place->stats, &place->partition),
		0);
}

/* A partition of topic control, empty. */
static inline int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	nt_autoclose int root = -1;

	if (!place || make_scratch((void **)&place->dir) < 0)
		return -1;
	assert_int_equal(nt_spool_make_root(place->dir, &root), 0);
	assert_int_equal(nt_spool_make_dir(root, nt_topic_name(NT_TOPIC_CONTROL), &place->topic),
			 0);
	reopen(place, &roomy);
	*state = place;
	return 0;
}

static inline int remove_place(void **state)
{
	struct place *place = *state;

	nt_spool_partition_free(place->partition);
	(void)close(place->topic);
	(void)remove_scratch((void **)&place->dir);
	free(place);
	return 0;
}

static inline const struct nt_bus_record *record_of(uint64_t number, uint64_t real_ns)
{
	static uint64_t value;
	static char key;
	static struct nt_bus_record record;

	value = number;
	key = (char)('0' + number % 10);
	record = (struct nt_bus_record){
		.topic = NT_TOPIC_CONTROL,
		.key = &key,
		.key_len = 1,
		.value = &value,
		.value_len = sizeof(value) - 1,
		.real_ns = real_ns,
	};
	return &record;
}

static inline void add(struct place *place, uint64_t number, uint64_t real_ns)
{
	assert_int_equal(nt_spool_partition_add(place->partition, record_of(number, real_ns)), 0);
}

static inline void flush(struct place *place)
{
	assert_int_equal(nt_spool_partition_flush(place->partition), 0);
}

static inline int open_base(const struct place *place, uint64_t base)
{
	int fd = -1;

	assert_int_equal(nt_spool_open_segment(place->partition->dirfd, base, &fd), 0);
	return fd;
}

static inline void assert_seal(const struct place *place, uint64_t base, uint64_t end,
			       uint64_t records, uint64_t newest_real_ns)
{
	nt_autoclose int fd = open_base(place, base);
	struct nt_spool_seal seal = {0};

	assert_int_equal(nt_spool_read_seal(fd, &seal), 0);
	assert_int_equal(seal.end, end);
	assert_int_equal(seal.records, records);
	assert_int_equal(seal.newest_real_ns, newest_real_ns);
}

static inline uint64_t size_of(const struct place *place, uint64_t base)
{
	nt_autoclose int fd = open_base(place, base);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

static inline void put_sealed(const struct place *place, uint64_t base, uint64_t end)
{
	const struct nt_spool_header header = {.log = 9, .base = base};
	const struct nt_spool_seal seal = {.end = end};
	uint8_t bytes[CLOSED];
	char name[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;

	nt_spool_header_write(&header, bytes);
	nt_spool_seal_write(&seal, header.log, bytes + NT_SPOOL_HEADER_BYTES);
	nt_spool_segment_name(base, name);
	fd = openat(place->partition->dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)

#endif
