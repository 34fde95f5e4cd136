/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Segments of any bytes: read, and of some inputs read as a partition, then taken over by a writer,
 * whose record must come out. The input is one or two segment files, cut at the first byte's place; it
 * is given sound headers and frame sums where its second byte says so, or no mutation would ever get
 * past the CRC.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/bus/bus.h"
#include "common/bus/spool/cursor.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/disk.h"
#include "tests/fuzz/lib/segment.h"

enum {
	MAX_BYTES = 1 << 16,
	SECOND = 5, /* base of the second segment */
	/* inputs, by their hash: the partition costs a hundred times a segment */
	WHOLE_ONE_IN = 16,
	RECORD_BYTES = 1200, /* some of which fill a segment */
};

static const char dir[] = FUZZ_DISK "/spool";

static const char *segment_path(unsigned int base, char path[160])
{
	(void)snprintf(path, 160, "%s/%s/0/%020u.seg", dir, nt_topic_name(NT_TOPIC_CONTROL), base);
	return path;
}

static void write_segment(const uint8_t *data, size_t size, uint8_t flags, unsigned int base)
{
	static uint8_t bytes[MAX_BYTES];
	char path[160];

	if (size)
		memcpy(bytes, data, size);
	fuzz_segment_mend(bytes, size, flags);
	fuzz_disk_put(segment_path(base, path), bytes, size);
}

/* The sanitizer has seen every byte; the value is behind the key. */
static void look_at(const struct nt_spool_frame *frame)
{
	static uint8_t sink[NT_SPOOL_MAX_FRAME_BYTES];

	memcpy(sink, frame->key, frame->key_len + frame->value_len);
}

/*
 * Reads all there is, without the reader around the cursor, whose watches are the kernel's; the record
 * wanted, if one is, must be among it.
 */
static void read_all(uint64_t from_real_ns, const char *want)
{
	struct nt_spool_cursor cursor;
	uint64_t generation = 1;
	bool has_wanted = !want;
	char path[160];
	int fd, r;

	(void)snprintf(path, sizeof(path), "%s/%s/0", dir, nt_topic_name(NT_TOPIC_CONTROL));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(fd >= 0);
	nt_spool_cursor_init(&cursor, 0);
	assert(nt_spool_cursor_place(&cursor, fd) == 0);
	if (from_real_ns)
		nt_spool_cursor_seek_time(&cursor, from_real_ns);
	while ((r = nt_spool_cursor_peek(&cursor, generation)) == 1) {
		const struct nt_spool_frame *frame = &cursor.head;

		look_at(frame);
		has_wanted |= want && frame->value_len == RECORD_BYTES &&
			      memcmp(frame->value, want, RECORD_BYTES) == 0;
		nt_spool_cursor_pass(&cursor);
	}
	assert(r == 0);
	assert(has_wanted);
	/* Looked at again, it is still the end. */
	assert(nt_spool_cursor_peek(&cursor, ++generation) == 0);
	assert(nt_spool_cursor_seek_end(&cursor) == 0);
	assert(nt_spool_cursor_peek(&cursor, ++generation) == 0);
	nt_spool_cursor_release(&cursor);
}

/* `is_sure`: nothing that is there can be in the way of the record. */
static void write_on(bool is_sure)
{
	const struct nt_bus_options options = {.segment_bytes = 4096};
	static const char last[RECORD_BYTES] = "the record of the writer that came afterwards";
	struct nt_bus_record record = {
		.topic = NT_TOPIC_CONTROL,
		.key = "k",
		.key_len = 1,
		.value = last,
		.value_len = sizeof(last),
		.real_ns = UINT64_MAX,
	};
	struct nt_bus *bus = NULL;
	char url[96];
	int r;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert(nt_bus_open(url, &options, &bus) == 0);
	r = nt_bus_publish(bus, &record);
	assert(r == 0 || r == -EOVERFLOW);
	assert(nt_bus_flush(bus) == 0);
	is_sure &= r == 0;
	read_all(1000, is_sure ? last : NULL);
	for (int i = 0; i < 4 && r == 0; i++)
		assert(nt_bus_publish(bus, &record) == 0); /* a roll, and so a compaction */
	nt_bus_close(bus);
	read_all(0, is_sure ? last : NULL);
}

/* One segment as a row of frames. */
static void scan_segment(unsigned int base)
{
	static struct nt_spool_scan scan; /* its window is made once: most of the time of a run */
	struct nt_spool_header header;
	struct nt_spool_seal seal;
	struct nt_spool_item item;
	nt_autoclose int fd = -1;
	uint64_t pos = 0;
	char path[160];
	int r;

	fd = open(segment_path(base, path), O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	(void)!nt_spool_read_header(fd, &header);
	(void)!nt_spool_read_seal(fd, &seal);
	scan.log_is_known = false;
	nt_spool_scan_start(&scan, fd, base);
	while ((r = nt_spool_scan_next(&scan, &item)) == 1) {
		assert(item.found == NT_SPOOL_FRAME && scan.pos >= pos + item.frame.size);
		look_at(&item.frame);
		pos = scan.pos;
	}
	assert(r == 0 || (r == 2 && item.found == NT_SPOOL_SEAL));
	if (scan.window.cap > MAX_BYTES)
		nt_spool_scan_release(&scan);
}

static int run(const uint8_t *data, size_t size)
{
	const bool goes_on = size && nt_hash_bytes(NT_HASH_SEED, data, size) % WHOLE_ONE_IN == 0;
	size_t cut;

	if (size < 2 || size > MAX_BYTES)
		return 0;
	fuzz_disk_clear();
	cut = (size - 2) * data[0] / 255;
	write_segment(data + 2, cut, data[1], 0);
	scan_segment(0);
	if (cut < size - 2) {
		write_segment(data + 2 + cut, size - 2 - cut, data[1] >> 2, SECOND);
		scan_segment(SECOND);
	}
	if (!goes_on)
		return 0;
	read_all(0, NULL);
	/* Two files that nobody wrote may say of an offset that it is in both. */
	write_on(cut == size - 2);
	return 0;
}

FUZZ_TARGET(run, .peak = {512 << 10, 16}, .steps = {60000, 200})
