/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of a segment, each alone: what is taken for a header, a frame, a seal, and what is not. */
#include "common/bus/spool/frame.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bus/spool/scan.h"

static const uint32_t log_id = 7, other_log = 8;

static void seal_bytes(uint8_t *bytes, size_t size)
{
	const uint32_t crc = htole32(nt_crc32c(0, bytes + 8, size - 8));

	memcpy(bytes + 4, &crc, sizeof(crc));
}

static void a_header_is_read_as_it_was_written(void **state)
{
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];

	(void)state;
	for (int compacted = 0; compacted < 2; compacted++) {
		const struct nt_spool_header header = {.is_compacted = compacted,
						       .log = log_id,
						       .base = NT_SPOOL_MAX_OFFSET,
						       .boot = 3,
						       .made_real_ns = 4};
		struct nt_spool_header read = {0};

		nt_spool_header_write(&header, bytes);
		assert_int_equal(nt_spool_header_read(bytes, sizeof(bytes), &read), 0);
		assert_int_equal(read.is_compacted, compacted);
		assert_int_equal(read.log, log_id);
		assert_int_equal(read.base, NT_SPOOL_MAX_OFFSET);
		assert_int_equal(read.boot, 3);
		assert_int_equal(read.made_real_ns, 4);
		assert_int_equal(nt_spool_header_read(bytes, sizeof(bytes) - 1, &read), -EBADMSG);
		for (size_t i = 0; i < sizeof(bytes); i++) {
			bytes[i] ^= 0x40;
			assert_int_equal(nt_spool_header_read(bytes, sizeof(bytes), &read),
					 -EBADMSG);
			bytes[i] ^= 0x40;
		}
	}
}

static void a_header_of_another_version_or_of_no_log_is_none(void **state)
{
	struct nt_spool_header header = {.log = log_id, .base = 1}, read;
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];

	(void)state;
	nt_spool_header_write(&header, bytes);
	bytes[8]++;
	seal_bytes(bytes, sizeof(bytes));
	assert_int_equal(nt_spool_header_read(bytes, sizeof(bytes), &read), -EBADMSG);
	header.log = 0;
	nt_spool_header_write(&header, bytes);
	assert_int_equal(nt_spool_header_read(bytes, sizeof(bytes), &read), -EBADMSG);
	header = (struct nt_spool_header){.log = log_id, .base = NT_SPOOL_MAX_OFFSET + 1};
	nt_spool_header_write(&header, bytes);
	assert_int_equal(nt_spool_header_read(bytes, sizeof(bytes), &read), -EBADMSG);
}

/* In memory that ends where the bytes do, for the sanitizers to see. */
static struct nt_spool_item parse(const uint8_t *bytes, size_t size, const uint32_t *log)
{
	uint8_t *exact = malloc(size ? size : 1);
	struct nt_spool_item item;

	assert_non_null(exact);
	memcpy(exact, bytes, size);
	item = nt_spool_parse(exact, size, log);
	item.frame.key = NULL;
	item.frame.value = NULL;
	free(exact);
	return item;
}

static size_t write_frame(uint8_t *bytes, uint32_t log, uint64_t offset)
{
	const struct nt_bus_record record = {
		.key = "key", .key_len = 3, .value = "value", .value_len = 5, .real_ns = 99};

	nt_spool_frame_write(&record, log, offset, bytes);
	assert_int_equal(nt_spool_frame_size(&record), NT_SPOOL_FRAME_BYTES + 8);
	assert_int_equal(nt_spool_frame_peek_size(bytes), NT_SPOOL_FRAME_BYTES + 8);
	return NT_SPOOL_FRAME_BYTES + 8;
}

static void a_frame_is_short_until_its_last_byte_is_there(void **state)
{
	uint8_t bytes[64];
	const size_t size = write_frame(bytes, log_id, 42);
	struct nt_spool_item item;

	(void)state;
	for (size_t i = 0; i < size; i++)
		assert_int_equal(parse(bytes, i, &log_id).found, NT_SPOOL_SHORT);
	item = nt_spool_parse(bytes, size, &log_id);
	assert_int_equal(item.found, NT_SPOOL_FRAME);
	assert_int_equal(item.log, log_id);
	assert_int_equal(item.frame.offset, 42);
	assert_int_equal(item.frame.real_ns, 99);
	assert_int_equal(item.frame.size, size);
	assert_int_equal(item.frame.key_len, 3);
	assert_memory_equal(item.frame.key, "key", 3);
	assert_int_equal(item.frame.value_len, 5);
	assert_memory_equal(item.frame.value, "value", 5);
	assert_int_equal(parse(bytes, size, NULL).found, NT_SPOOL_FRAME);
}

static void a_frame_with_any_byte_changed_is_not_taken(void **state)
{
	uint8_t bytes[64];
	const size_t size = write_frame(bytes, log_id, 42);

	(void)state;
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 1;
		assert_int_not_equal(parse(bytes, size, NULL).found, NT_SPOOL_FRAME);
		bytes[i] ^= 1;
	}
}

static void frames_and_seals_of_another_log_are_damage(void **state)
{
	const struct nt_spool_seal seal = {.end = 43};
	uint8_t bytes[64];
	size_t size = write_frame(bytes, log_id, 42);

	(void)state;
	assert_int_equal(parse(bytes, size, &other_log).found, NT_SPOOL_DAMAGED);
	size = write_frame(bytes, 0, 42);
	assert_int_equal(parse(bytes, size, NULL).found, NT_SPOOL_DAMAGED);
	nt_spool_seal_write(&seal, log_id, bytes);
	assert_int_equal(parse(bytes, NT_SPOOL_SEAL_BYTES, &other_log).found, NT_SPOOL_DAMAGED);
	nt_spool_seal_write(&seal, 0, bytes);
	assert_int_equal(parse(bytes, NT_SPOOL_SEAL_BYTES, NULL).found, NT_SPOOL_DAMAGED);
}

static void offsets_and_sizes_over_their_caps_are_damage(void **state)
{
	struct nt_spool_seal seal = {.end = NT_SPOOL_MAX_OFFSET};
	uint8_t bytes[64];
	size_t size = write_frame(bytes, log_id, NT_SPOOL_MAX_OFFSET);
	uint32_t sizes = htole32(3U << 24 | NT_BUS_MAX_VALUE);

	(void)state;
	assert_int_equal(parse(bytes, size, NULL).found, NT_SPOOL_FRAME);
	size = write_frame(bytes, log_id, NT_SPOOL_MAX_OFFSET + 1);
	assert_int_equal(parse(bytes, size, NULL).found, NT_SPOOL_DAMAGED);
	/* The largest value is waited for, a larger one is not. */
	size = write_frame(bytes, log_id, 42);
	memcpy(bytes + 12, &sizes, sizeof(sizes));
	assert_int_equal(parse(bytes, size, NULL).found, NT_SPOOL_SHORT);
	sizes = htole32(3U << 24 | (NT_BUS_MAX_VALUE + 1));
	memcpy(bytes + 12, &sizes, sizeof(sizes));
	assert_int_equal(parse(bytes, size, NULL).found, NT_SPOOL_DAMAGED);
	nt_spool_seal_write(&seal, log_id, bytes);
	assert_int_equal(parse(bytes, NT_SPOOL_SEAL_BYTES, NULL).found, NT_SPOOL_SEAL);
	seal.end++;
	nt_spool_seal_write(&seal, log_id, bytes);
	assert_int_equal(parse(bytes, NT_SPOOL_SEAL_BYTES, NULL).found, NT_SPOOL_DAMAGED);
}

static void a_seal_is_whole_or_none(void **state)
{
	const struct nt_spool_seal seal = {.end = 43, .newest_real_ns = 5, .records = 6};
	uint8_t bytes[NT_SPOOL_SEAL_BYTES];
	struct nt_spool_item item;

	(void)state;
	nt_spool_seal_write(&seal, log_id, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(parse(bytes, i, &log_id).found, NT_SPOOL_SHORT);
	item = parse(bytes, sizeof(bytes), &log_id);
	assert_int_equal(item.found, NT_SPOOL_SEAL);
	assert_int_equal(item.seal.end, 43);
	assert_int_equal(item.seal.newest_real_ns, 5);
	assert_int_equal(item.seal.records, 6);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 1;
		assert_int_not_equal(parse(bytes, sizeof(bytes), NULL).found, NT_SPOOL_SEAL);
		bytes[i] ^= 1;
	}
}

static size_t find(const char *text, size_t from)
{
	return nt_spool_find_magic((const uint8_t *)text, from, strlen(text));
}

static void the_next_place_where_something_may_begin_is_found(void **state)
{
	(void)state;
	assert_int_equal(find("NTFR", 0), 0);
	assert_int_equal(find("..NTFR..", 0), 2);
	assert_int_equal(find("..NTSE..", 0), 2);
	assert_int_equal(find("NTFR..NTSE..", 1), 6);
	assert_int_equal(find("N.N.NTFX.NTSG.NTFR", 0), 14);
	assert_int_equal(find("N.......", 0), 8);
	assert_int_equal(find("....", 0), 4);
	assert_int_equal(find("", 0), 0);
	/* The rest of it may not be there yet. */
	assert_int_equal(find("....NTF", 0), 4);
	assert_int_equal(find("....N", 0), 4);
	assert_int_equal(find("NTFX", 0), 4);
}

static int make_file(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static void a_segment_that_is_only_a_header_is_empty_and_its_log_known(void **state)
{
	const struct nt_spool_header header = {.log = log_id, .base = 10};
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	int fd;

	(void)state;
	nt_spool_header_write(&header, bytes);
	fd = make_file(bytes, sizeof(bytes));
	nt_spool_scan_start(&scan, fd, 10);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	assert_true(scan.header_is_read && scan.log_is_known);
	assert_int_equal(scan.log, log_id);
	assert_int_equal(scan.damaged, 0);
	assert_int_equal(scan.pos, NT_SPOOL_HEADER_BYTES);
	nt_spool_scan_release(&scan);
	(void)close(fd);
	/* One byte less, and it is not there yet. */
	scan = (struct nt_spool_scan){0};
	fd = make_file(bytes, sizeof(bytes) - 1);
	nt_spool_scan_start(&scan, fd, 10);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	assert_false(scan.header_is_read);
	nt_spool_scan_release(&scan);
	(void)close(fd);
	/* Of another place: damage. */
	scan = (struct nt_spool_scan){0};
	fd = make_file(bytes, sizeof(bytes));
	nt_spool_scan_start(&scan, fd, 11);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	assert_int_equal(scan.damaged, 1);
	assert_false(scan.log_is_known);
	nt_spool_scan_release(&scan);
	(void)close(fd);
}

static void a_segment_of_a_seal_alone_has_one(void **state)
{
	const struct nt_spool_header header = {.log = log_id, .base = 10};
	const struct nt_spool_seal seal = {.end = 10};
	uint8_t bytes[NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES];
	struct nt_spool_seal read;
	int fd;

	(void)state;
	nt_spool_header_write(&header, bytes);
	nt_spool_seal_write(&seal, log_id, bytes + NT_SPOOL_HEADER_BYTES);
	fd = make_file(bytes, sizeof(bytes));
	assert_int_equal(nt_spool_read_seal(fd, &read), 0);
	assert_int_equal(read.end, 10);
	assert_int_equal(ftruncate(fd, sizeof(bytes) - 1), 0);
	assert_int_equal(nt_spool_read_seal(fd, &read), -ENOENT);
	(void)close(fd);
	assert_int_equal(nt_spool_read_seal(-1, &read), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_read_as_it_was_written),
		cmocka_unit_test(a_header_of_another_version_or_of_no_log_is_none),
		cmocka_unit_test(a_frame_is_short_until_its_last_byte_is_there),
		cmocka_unit_test(a_frame_with_any_byte_changed_is_not_taken),
		cmocka_unit_test(frames_and_seals_of_another_log_are_damage),
		cmocka_unit_test(offsets_and_sizes_over_their_caps_are_damage),
		cmocka_unit_test(a_seal_is_whole_or_none),
		cmocka_unit_test(the_next_place_where_something_may_begin_is_found),
		cmocka_unit_test(a_segment_that_is_only_a_header_is_empty_and_its_log_known),
		cmocka_unit_test(a_segment_of_a_seal_alone_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
