/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Segments of any bytes: read, then taken over by a writer, whose record must come out. The input
 * is one or two segment files, cut at the first byte's place; it is given sound headers and frame
 * sums where its second byte says so, or no mutation would ever get past the CRC.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/bus.h"
#include "common/file.h"
#include "common/spool/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MAX_BYTES = 1 << 16,
	MEND_HEADER = 1,
	MEND_FRAMES = 2,
};

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_crc(uint8_t *at, size_t size)
{
	uint32_t crc = nt_crc32c(0, at + 8, size - 8);

	for (int i = 0; i < 4; i++)
		at[4 + i] = (uint8_t)(crc >> (8 * i));
}

static void mend(uint8_t *data, size_t size, uint8_t flags)
{
	if (flags & MEND_HEADER && size >= NT_SPOOL_HEADER_BYTES)
		put_crc(data, NT_SPOOL_HEADER_BYTES);
	for (size_t at = 0; flags & MEND_FRAMES && at < size; at++) {
		at = nt_spool_find_magic(data, at, size);
		if (size - at >= NT_SPOOL_SEAL_BYTES && data[at + 2] == 'S')
			put_crc(data + at, NT_SPOOL_SEAL_BYTES);
		else if (size - at >= NT_SPOOL_FRAME_BYTES &&
			 nt_spool_frame_peek_size(data + at) <= size - at)
			put_crc(data + at, nt_spool_frame_peek_size(data + at));
	}
}

static void write_segment(const uint8_t *data, size_t size, uint8_t flags, unsigned int base)
{
	static uint8_t bytes[MAX_BYTES];
	char path[160];

	memcpy(bytes, data, size);
	mend(bytes, size, flags);
	(void)snprintf(path, sizeof(path), "%s/%s/0/%020u.seg", dir,
		       nt_topic_name(NT_TOPIC_CONTROL), base);
	assert(nt_file_make_parent(path, 0750) == 0);
	assert(nt_file_create(path, 0640, bytes, size) == 0);
}

/*
 * Reads all there is, without the reader around the cursor, whose watches take the kernel long to
 * end; the record wanted, if one is, must be among it.
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
		uint8_t sum = 0;

		for (size_t i = 0; i < frame->key_len + frame->value_len; i++)
			sum ^= frame->key[i]; /* the value is behind the key */
		__asm__ volatile("" : : "r"(sum)); /* the sanitizer has seen every byte */
		has_wanted |= want && frame->value_len == strlen(want) &&
			      memcmp(frame->value, want, frame->value_len) == 0;
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nt_bus_options options = {.segment_bytes = 4096};
	static const char last[] = "the record of the writer that came afterwards";
	struct nt_bus_record record = {
		.topic = NT_TOPIC_CONTROL,
		.key = "k",
		.key_len = 1,
		.value = last,
		.value_len = sizeof(last) - 1,
		.real_ns = UINT64_MAX,
	};
	struct nt_bus *bus = NULL;
	const char *want;
	char url[96];
	size_t cut;
	int r;

	if (size < 2 || size > MAX_BYTES)
		return 0;
	(void)snprintf(dir, sizeof(dir), "%s/nt-fuzz-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert(mkdtemp(dir));
	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	cut = (size - 2) * data[0] / 255;
	write_segment(data + 2, cut, data[1], 0);
	if (cut < size - 2)
		write_segment(data + 2 + cut, size - 2 - cut, data[1] >> 2, 5);
	read_all(0, NULL);
	read_all(1000, NULL);

	assert(nt_bus_open(url, &options, &bus) == 0);
	r = nt_bus_publish(bus, &record);
	assert(r == 0 || r == -EOVERFLOW);
	assert(nt_bus_flush(bus) == 0);
	/* Two files that nobody wrote may say of an offset that it is in both. */
	want = r == 0 && cut == size - 2 ? last : NULL;
	read_all(0, want);
	read_all(1000, want);
	for (int i = 0; i < 100 && r == 0; i++)
		assert(nt_bus_publish(bus, &record) == 0); /* a roll, and so a compaction */
	nt_bus_close(bus);
	read_all(0, want);
	remove_dir();
	return 0;
}
