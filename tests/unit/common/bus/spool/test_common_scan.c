/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A segment that grows while it is read. pread() is this file's own: each call sees the segment as
 * long as the test says.
 */
#include "common/bus/spool/scan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	FRAMES = 4,
	FORGED_BYTES = 256 << 10, /* of a segment that somebody made up */
	FORGED_LOG = 7,
	MAX_READS = 64,
};

static size_t visible[MAX_READS]; /* bytes that the n-th read sees, the last one for ever */
static unsigned int reads, views, interruptions, failures;
static size_t at_most = SIZE_MAX; /* bytes that one read gives */
static uint64_t read_bytes; /* by all reads */

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	size_t end = visible[reads < views ? reads : views - 1];

	if (interruptions) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	if (failures) {
		failures--;
		errno = EIO;
		return -1;
	}
	/* Who asks for so much has room for it. */
	memset(buf, 0x55, size);
	reads++;
	if (size > at_most)
		size = at_most;
	if ((size_t)offset >= end)
		return 0;
	if (size > end - (size_t)offset)
		size = end - (size_t)offset;
	read_bytes += size;
	return syscall(SYS_pread64, fd, buf, size, offset);
}

/* A segment of four frames of growing size, in memory. Ends of the frames in ret_end. */
static int make_segment(size_t ret_end[FRAMES], bool is_sealed)
{
	const struct nt_spool_header header = {.log = 7, .base = 10};
	const struct nt_spool_seal seal = {.end = 10 + FRAMES, .records = FRAMES};
	uint8_t bytes[1024];
	size_t len = NT_SPOOL_HEADER_BYTES;
	int fd = memfd_create("segment", MFD_CLOEXEC);

	assert_true(fd >= 0);
	nt_spool_header_write(&header, bytes);
	for (uint64_t i = 0; i < FRAMES; i++) {
		const struct nt_bus_record record = {
			.key = "key",
			.key_len = 3,
			.value = "NTFRNTSEvalue",
			.value_len = 5 + i * 2,
		};

		nt_spool_frame_write(&record, header.log, 10 + i, bytes + len);
		len += nt_spool_frame_size(&record);
		ret_end[i] = len;
	}
	if (is_sealed) {
		nt_spool_seal_write(&seal, header.log, bytes + len);
		len += NT_SPOOL_SEAL_BYTES;
	}
	assert_int_equal(write(fd, bytes, len), len);
	return fd;
}

static void see(size_t size)
{
	visible[0] = size;
	views = 1;
	reads = 0;
}

/* Whatever is seen when: frames come whole, in order, none is skipped and none is called damaged. */
static void frames_that_are_being_written_are_waited_for(void **state)
{
	size_t end[FRAMES], all;
	int fd = make_segment(end, false);
	uint64_t seed = 1;

	(void)state;
	all = end[FRAMES - 1];
	for (int round = 0; round < 20000; round++) {
		struct nt_spool_scan scan = {0};
		struct nt_spool_item item;
		uint64_t next = 10;
		size_t seen = 0;

		/* Many reads see little more than the one before, some much more. */
		for (views = 0; views < MAX_READS && seen < all; views++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			seen += (seed >> 33) % (seed >> 60 ? 9 : 90);
			if (seen > all)
				seen = all;
			visible[views] = seen;
		}
		visible[views - 1] = all;
		reads = 0;
		nt_spool_scan_start(&scan, fd, 10);
		while (next < 10 + FRAMES && reads < 2 * MAX_READS) {
			int r = nt_spool_scan_next(&scan, &item);

			assert_in_range(r, 0, 1);
			if (r == 0)
				continue;
			assert_int_equal(item.frame.offset, next);
			next++;
		}
		assert_int_equal(next, 10 + FRAMES);
		assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
		assert_int_equal(scan.damaged, 0);
		assert_int_equal(scan.pos, all);
		nt_spool_scan_release(&scan);
	}
	(void)close(fd);
}

/* A tail is cut off by a writer that comes back, and written anew with other bytes. */
static void a_tail_that_is_written_anew_is_read_anew(void **state)
{
	const struct nt_bus_record record = {.key = "other", .key_len = 5};
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	uint8_t bytes[64];
	size_t end[FRAMES];
	int fd = make_segment(end, false);

	(void)state;
	see(end[1] + 20);
	nt_spool_scan_start(&scan, fd, 10);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	nt_spool_frame_write(&record, 7, 12, bytes);
	assert_int_equal(pwrite(fd, bytes, NT_SPOOL_FRAME_BYTES + 5, (off_t)end[1]),
			 NT_SPOOL_FRAME_BYTES + 5);
	visible[0] = end[1] + NT_SPOOL_FRAME_BYTES + 5;
	assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(item.frame.offset, 12);
	assert_int_equal(item.frame.key_len, 5);
	assert_int_equal(scan.damaged, 0);
	nt_spool_scan_release(&scan);
	(void)close(fd);
}

/* A whole frame behind damage, but an old one: it was in a value, or the file was patched. */
static void behind_damage_no_offset_comes_back(void **state)
{
	const struct nt_bus_record record = {.key = "old", .key_len = 3};
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	uint8_t bytes[128] = {0};
	size_t end[FRAMES], all;
	int fd = make_segment(end, false);

	(void)state;
	nt_spool_frame_write(&record, 7, 11, bytes + 20);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), (off_t)end[3]), sizeof(bytes));
	all = end[3] + sizeof(bytes);
	see(all);
	nt_spool_scan_start(&scan, fd, 10);
	for (int i = 0; i < FRAMES; i++)
		assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	assert_int_equal(scan.pos, end[3]);
	assert_int_equal(scan.damaged, 0);
	nt_spool_frame_write(&record, 7, 14, bytes + 60);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), (off_t)end[3]), sizeof(bytes));
	assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(item.frame.offset, 14);
	assert_int_equal(scan.damaged, 1);
	nt_spool_scan_release(&scan);
	(void)close(fd);
}

static void an_interrupted_read_is_read_again(void **state)
{
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	size_t end[FRAMES];
	int fd = make_segment(end, false);

	(void)state;
	see(end[FRAMES - 1]);
	interruptions = 3;
	nt_spool_scan_start(&scan, fd, 10);
	for (int i = 0; i < FRAMES; i++)
		assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(interruptions, 0);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	nt_spool_scan_release(&scan);
	(void)close(fd);
}

static void a_read_may_give_as_little_as_a_byte(void **state)
{
	size_t end[FRAMES];
	int fd = make_segment(end, true);

	(void)state;
	for (size_t most = 1; most < 100; most++) {
		struct nt_spool_scan scan = {0};
		struct nt_spool_item item;

		see(end[FRAMES - 1] + NT_SPOOL_SEAL_BYTES);
		at_most = most;
		nt_spool_scan_start(&scan, fd, 10);
		for (uint64_t i = 0; i < FRAMES; i++) {
			assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
			assert_int_equal(item.frame.offset, 10 + i);
			assert_int_equal(scan.pos, end[i]);
		}
		assert_int_equal(nt_spool_scan_next(&scan, &item), 2);
		assert_int_equal(scan.damaged, 0);
		nt_spool_scan_release(&scan);
	}
	at_most = SIZE_MAX;
	(void)close(fd);
}

static void what_cannot_be_read_is_an_error_and_no_end(void **state)
{
	struct nt_spool_scan scan = {0};
	struct nt_spool_header header;
	struct nt_spool_seal seal;
	struct nt_spool_item item;
	size_t end[FRAMES];
	int fd = make_segment(end, true);

	(void)state;
	see(end[FRAMES - 1] + NT_SPOOL_SEAL_BYTES);
	nt_spool_scan_start(&scan, fd, 10);
	failures = 1;
	assert_int_equal(nt_spool_scan_next(&scan, &item), -EIO);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	assert_int_equal(item.frame.offset, 10);
	nt_spool_scan_release(&scan);
	failures = 1;
	assert_int_equal(nt_spool_read_seal(fd, &seal), -EIO);
	failures = 1;
	assert_int_equal(nt_spool_read_header(fd, &header), -EIO);
	assert_int_equal(nt_spool_read_header(fd, &header), 0);
	assert_int_equal(header.base, 10);
	assert_int_equal(nt_spool_read_seal(fd, &seal), 0);
	assert_int_equal(nt_spool_read_seal(-1, &seal), -EBADF);
	(void)close(fd);
}

/* Somebody has cut it short since its size was asked for. */
static void a_seal_that_has_gone_is_none(void **state)
{
	struct nt_spool_seal seal = {.end = 42};
	size_t end[FRAMES], all;
	int fd = make_segment(end, true);

	(void)state;
	all = end[FRAMES - 1] + NT_SPOOL_SEAL_BYTES;
	for (size_t size = 0; size < all; size++) {
		see(size);
		errno = 0;
		assert_int_equal(nt_spool_read_seal(fd, &seal), -ENOENT);
		assert_int_equal(seal.end, 42);
	}
	/* As long as a header and a seal, and a byte shorter. */
	all = NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES;
	see(all);
	assert_int_equal(ftruncate(fd, (off_t)all - 1), 0);
	assert_int_equal(nt_spool_read_seal(fd, &seal), -ENOENT);
	(void)close(fd);
}

static void behind_a_seal_is_nothing(void **state)
{
	struct nt_spool_scan scan = {0};
	struct nt_spool_seal seal;
	struct nt_spool_item item;
	uint8_t bytes[64];
	size_t end[FRAMES], all;
	int fd = make_segment(end, true);
	const struct nt_bus_record record = {.key = "late", .key_len = 4};

	(void)state;
	all = end[FRAMES - 1] + NT_SPOOL_SEAL_BYTES;
	see(all);
	assert_int_equal(nt_spool_read_seal(fd, &seal), 0);
	assert_int_equal(seal.end, 10 + FRAMES);
	assert_int_equal(seal.records, FRAMES);
	nt_spool_frame_write(&record, 7, 14, bytes);
	assert_int_equal(pwrite(fd, bytes, NT_SPOOL_FRAME_BYTES + 4, (off_t)all),
			 NT_SPOOL_FRAME_BYTES + 4);
	all += NT_SPOOL_FRAME_BYTES + 4;
	see(all);
	nt_spool_scan_start(&scan, fd, 10);
	for (int i = 0; i < FRAMES; i++)
		assert_int_equal(nt_spool_scan_next(&scan, &item), 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nt_spool_scan_next(&scan, &item), 2);
		assert_int_equal(item.seal.end, 10 + FRAMES);
	}
	nt_spool_scan_release(&scan);
	(void)close(fd);
}

static void a_segment_without_a_seal_of_its_own_has_none(void **state)
{
	const struct nt_spool_seal forged = {.end = 1000, .records = 1};
	struct nt_spool_seal seal;
	uint8_t bytes[NT_SPOOL_SEAL_BYTES];
	size_t end[FRAMES], all;
	int fd = make_segment(end, false);

	(void)state;
	all = end[FRAMES - 1];
	see(all);
	assert_int_equal(nt_spool_read_seal(fd, &seal), -ENOENT);
	/* Of another log: the end of a value may look like that. */
	nt_spool_seal_write(&forged, 8, bytes);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), (off_t)all), sizeof(bytes));
	all += sizeof(bytes);
	see(all);
	assert_int_equal(nt_spool_read_seal(fd, &seal), -ENOENT);
	(void)close(fd);
}

/* ---- what a forged segment may cost --------------------------------------------------------------- */

/* Header, and room for FORGED_BYTES in all. */
static uint8_t *begin_forged(void)
{
	const struct nt_spool_header header = {.log = FORGED_LOG, .base = 10};
	uint8_t *bytes = calloc(1, FORGED_BYTES);

	assert_non_null(bytes);
	nt_spool_header_write(&header, bytes);
	return bytes;
}

static size_t put_frame(uint8_t *at, uint64_t offset)
{
	const struct nt_bus_record record = {.key = "key", .key_len = 3};

	nt_spool_frame_write(&record, FORGED_LOG, offset, at);
	return nt_spool_frame_size(&record);
}

/* A head that says a size of its frame, whose sum is wrong. */
static void put_head(uint8_t *at, uint32_t value_len)
{
	(void)put_frame(at, 11);
	memcpy(at + 12, &value_len, sizeof(value_len));
}

static int make_forged(const uint8_t *bytes)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, FORGED_BYTES), FORGED_BYTES);
	see(FORGED_BYTES);
	read_bytes = 0;
	return fd;
}

static void a_size_that_the_file_does_not_have_takes_no_memory(void **state)
{
	nt_autofree uint8_t *bytes = begin_forged();
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	nt_autoclose int fd = -1;

	(void)state;
	put_head(bytes + NT_SPOOL_HEADER_BYTES, NT_BUS_MAX_VALUE);
	fd = make_forged(bytes);
	nt_spool_scan_start(&scan, fd, 10);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	assert_in_range(scan.window.cap, 1, FORGED_BYTES);
	nt_spool_scan_release(&scan);
}

static void heads_of_frames_that_are_not_there_are_not_read_anew_each(void **state)
{
	nt_autofree uint8_t *bytes = begin_forged();
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	nt_autoclose int fd = -1;

	(void)state;
	for (size_t at = NT_SPOOL_HEADER_BYTES; at + 64 < FORGED_BYTES; at += NT_SPOOL_FRAME_BYTES)
		put_head(bytes + at, NT_BUS_MAX_VALUE);
	fd = make_forged(bytes);
	nt_spool_scan_start(&scan, fd, 10);
	assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
	assert_in_range(read_bytes, FORGED_BYTES, 4 * FORGED_BYTES);
	nt_spool_scan_release(&scan);
}

/* Whether its log is known or not: all that its heads claim would be summed a thousand times. */
static void a_segment_that_claims_far_more_than_it_has_is_given_up(void **state)
{
	(void)state;
	for (int has_header = 0; has_header < 2; has_header++) {
		nt_autofree uint8_t *bytes = begin_forged();
		struct nt_spool_scan scan = {0};
		struct nt_spool_item item;
		nt_autoclose int fd = -1;
		size_t at = NT_SPOOL_HEADER_BYTES;

		bytes[8] ^= !has_header;
		for (; at + 64 < FORGED_BYTES; at += NT_SPOOL_FRAME_BYTES)
			put_head(bytes + at, (uint32_t)(FORGED_BYTES - at - 64) / 2);
		(void)put_frame(bytes + at, 12);
		fd = make_forged(bytes);
		nt_spool_scan_start(&scan, fd, 10);
		assert_int_equal(nt_spool_scan_next(&scan, &item), 0);
		assert_in_range(read_bytes, FORGED_BYTES, 32 * FORGED_BYTES);
		nt_spool_scan_release(&scan);
	}
}

static void damage_at_every_second_frame_reads_little_again(void **state)
{
	nt_autofree uint8_t *bytes = begin_forged();
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	nt_autoclose int fd = -1;
	uint64_t frames = 0, found = 0;

	(void)state;
	for (size_t at = NT_SPOOL_HEADER_BYTES; at + 128 < FORGED_BYTES; frames++) {
		put_head(bytes + at, 1);
		at += NT_SPOOL_FRAME_BYTES;
		at += put_frame(bytes + at, 10 + frames);
	}
	fd = make_forged(bytes);
	nt_spool_scan_start(&scan, fd, 10);
	while (nt_spool_scan_next(&scan, &item) == 1)
		found++;
	assert_int_equal(found, frames);
	assert_int_equal(scan.damaged, frames);
	assert_in_range(read_bytes, FORGED_BYTES, 128 * FORGED_BYTES);
	nt_spool_scan_release(&scan);
}

static void heads_that_claim_much_between_sound_frames_are_given_up_too(void **state)
{
	nt_autofree uint8_t *bytes = begin_forged();
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	nt_autoclose int fd = -1;
	uint64_t frames = 0, found = 0;

	(void)state;
	for (size_t at = NT_SPOOL_HEADER_BYTES; at + 128 < FORGED_BYTES; frames++) {
		put_head(bytes + at, (uint32_t)(FORGED_BYTES - at - 64) / 2);
		at += NT_SPOOL_FRAME_BYTES;
		at += put_frame(bytes + at, 10 + frames);
	}
	fd = make_forged(bytes);
	nt_spool_scan_start(&scan, fd, 10);
	while (nt_spool_scan_next(&scan, &item) == 1)
		found++;
	assert_in_range(found, 1, frames / 10);
	assert_in_range(read_bytes, FORGED_BYTES, 32 * FORGED_BYTES);
	nt_spool_scan_release(&scan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_that_are_being_written_are_waited_for),
		cmocka_unit_test(a_tail_that_is_written_anew_is_read_anew),
		cmocka_unit_test(behind_damage_no_offset_comes_back),
		cmocka_unit_test(an_interrupted_read_is_read_again),
		cmocka_unit_test(a_read_may_give_as_little_as_a_byte),
		cmocka_unit_test(what_cannot_be_read_is_an_error_and_no_end),
		cmocka_unit_test(a_seal_that_has_gone_is_none),
		cmocka_unit_test(behind_a_seal_is_nothing),
		cmocka_unit_test(a_segment_without_a_seal_of_its_own_has_none),
		cmocka_unit_test(a_size_that_the_file_does_not_have_takes_no_memory),
		cmocka_unit_test(heads_of_frames_that_are_not_there_are_not_read_anew_each),
		cmocka_unit_test(a_segment_that_claims_far_more_than_it_has_is_given_up),
		cmocka_unit_test(damage_at_every_second_frame_reads_little_again),
		cmocka_unit_test(heads_that_claim_much_between_sound_frames_are_given_up_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
