/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fates of spools that dice decide: what is written, closed, removed, compacted and damaged, and in
 * which order. What became of each is a line in tests/golden/spool/fates.txt; its last word sums up
 * what was on disk, counted and read after every turn. Where the spool changes on purpose,
 * NT_GOLDEN_UPDATE=1 writes the file anew: read the difference. Half of them are of round numbers,
 * so that sizes and times meet their caps.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>

#include "common/base/hash.h"
#include "common/bus/spool/compact.h"
#include "common/bus/spool/trim.h"
#include "common/system/clock.h"
#include "tests/unit/common/spool_partition.h"

enum {
	FATES = 120,
	TURNS = 40,
	FITTING = 501, /* bytes of a frame: eight of them fill a segment of 4 KiB */
	WRITERS = 2,
	LOG = 9, /* of all partitions, so that every byte is the same each time */
};

/* ---- a disk that fails now and then -------------------------------------------------------------- */

static uint64_t luck; /* 0: nothing fails */

static bool fails(void)
{
	static const int error[] = {EIO, EINTR, ENOSPC, EDQUOT};

	if (!luck)
		return false;
	luck = luck * 6364136223846793005ull + 1442695040888963407ull;
	if (luck >> 32 & 63)
		return false;
	errno = error[luck >> 40 & 3];
	return true;
}

/* They stand in front of those of the C library for all of this program. */
#define STANDS_IN(type, name, failure, args, ...)                                                  \
	type fault_##name args __asm__(#name);                                                     \
	type fault_##name args                                                                     \
	{                                                                                          \
		static type(*real) args;                                                           \
                                                                                                   \
		if (!real)                                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                                 \
		return fails() ? (failure) : real(__VA_ARGS__);                                    \
	}

#define DIRECTORY DIR *

STANDS_IN(int, openat, -1, (int dir, const char *path, int flags, mode_t mode), dir, path, flags,
	  mode)
STANDS_IN(int, fstat, -1, (int fd, struct stat *st), fd, st)
STANDS_IN(int, fstatat, -1, (int dir, const char *path, struct stat *st, int flags), dir, path, st,
	  flags)
/* Half of what is asked for is no failure. */
STANDS_IN(ssize_t, pread, n > 1 && errno != EIO ? real(fd, to, n / 2, at) : -1,
	  (int fd, void *to, size_t n, off_t at), fd, to, n, at)
STANDS_IN(ssize_t, pwrite, n > 1 && errno != EIO ? real(fd, from, n / 2, at) : -1,
	  (int fd, const void *from, size_t n, off_t at), fd, from, n, at)
STANDS_IN(int, ftruncate, -1, (int fd, off_t size), fd, size)
STANDS_IN(int, fdatasync, -1, (int fd), fd)
STANDS_IN(int, renameat, -1, (int a, const char *from, int b, const char *to), a, from, b, to)
STANDS_IN(int, unlinkat, -1, (int dir, const char *path, int flags), dir, path, flags)
STANDS_IN(DIRECTORY, fdopendir, NULL, (int fd), fd)

static const char *const golden = "tests/golden/spool/fates.txt";

struct fate {
	char *dir;
	uint64_t seed, sum;
	int topic;
	enum nt_topic index;
	bool is_round;
	uint64_t luck;
	struct nt_spool_limits limits;
	struct nt_bus_stats stats;
	struct nt_spool_partition *partition[WRITERS];
	uint64_t now_ns; /* event time */
	uint64_t wrong, read, corrupt, missed; /* operations that failed, and what readers met */
	unsigned int rolled, retired;
	/* reads on and on, and waits with watches where it is `patient` */
	struct nt_bus_reader *tail;
};

static uint32_t draw(struct fate *fate, uint32_t below)
{
	/* splitmix64 */
	uint64_t z = (fate->seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) >> 33) % below;
}

static void add_number(struct fate *fate, uint64_t number)
{
	fate->sum = nt_hash_u64(fate->sum, number);
}

/* What an operation answered. */
static void note(struct fate *fate, int r)
{
	add_number(fate, (uint64_t)r);
	fate->wrong += r < 0;
}

/* ---- what is seen ------------------------------------------------------------------------------ */

static uint64_t count_entries(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fdopendir(fd);
	uint64_t n = 0;

	assert_non_null(listing);
	while (readdir(listing))
		n++;
	assert_int_equal(closedir(listing), 0);
	return n;
}

static void look_at_disk(struct fate *fate)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		nt_autosegments struct nt_spool_segments segments = {0};
		nt_autoclose int fd = open_partition(fate->dir, fate->index, i);

		assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
		add_number(fate, count_entries(fd));
		for (size_t j = 0; j < segments.count; j++) {
			struct nt_spool_header header = {0};
			struct nt_spool_seal seal = {0};
			nt_autoclose int segment = -1;
			struct stat st;

			assert_int_equal(nt_spool_open_segment(fd, segments.base[j], &segment), 0);
			assert_int_equal(fstat(segment, &st), 0);
			add_number(fate, segments.base[j]);
			add_number(fate, (uint64_t)st.st_size);
			add_number(fate, (uint64_t)nt_spool_read_header(segment, &header));
			add_number(fate, header.base + header.is_compacted);
			add_number(fate, (uint64_t)nt_spool_read_seal(segment, &seal));
			add_number(fate, seal.end);
			add_number(fate, seal.records);
			add_number(fate, seal.newest_real_ns);
		}
		if (!fate->partition[i])
			continue;
		add_number(fate, fate->partition[i]->base);
		add_number(fate, fate->partition[i]->next);
		add_number(fate, fate->partition[i]->size);
		add_number(fate, fate->partition[i]->records);
		add_number(fate, fate->partition[i]->newest_real_ns);
		add_number(fate, fate->partition[i]->waiting_records);
		add_number(fate, fate->partition[i]->fd >= 0);
	}
	add_number(fate, fate->stats.published);
	add_number(fate, fate->stats.published_bytes);
	add_number(fate, fate->stats.dropped_full);
	add_number(fate, fate->stats.evicted_records);
	add_number(fate, fate->stats.recovered_torn);
}

/* Up to `most` records. */
static void read_on(struct fate *fate, struct nt_bus_reader *reader, uint32_t most)
{
	struct nt_bus_record record;
	int r;

	for (; most; most--) {
		r = nt_bus_reader_next(reader, 0, &record);
		if (r <= 0) {
			note(fate, r);
			break;
		}
		fate->read++;
		add_number(fate, record.offset);
		add_number(fate, record.partition);
		add_number(fate, record.real_ns);
		add_number(fate, record.key_len);
		add_number(fate, nt_crc32c(0, record.value, record.value_len));
	}
	add_number(fate, nt_bus_reader_missed(reader));
	add_number(fate, corrupt_frames(reader));
}

static void read_anew(struct fate *fate)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position = {.topic = fate->index};

	fate->luck = luck;
	luck = 0;
	reader = open_reader(fate->dir, fate->index);
	luck = fate->luck;
	position.partition = draw(fate, WRITERS);
	if (fate->partition[0])
		position.offset = draw(fate, (uint32_t)fate->partition[0]->next + 9);
	switch (draw(fate, 5)) {
	case 0:
		note(fate, nt_bus_reader_seek(reader, &position));
		break;
	case 1:
		note(fate, nt_bus_reader_seek_time(reader, fate->now_ns - 50ULL * draw(fate, 60)));
		break;
	case 2:
		note(fate, nt_bus_reader_seek_end(reader));
		break;
	case 3:
		read_on(fate, reader, 5);
		note(fate, nt_bus_reader_seek(reader, &position));
		break;
	default:
		break;
	}
	read_on(fate, reader, UINT32_MAX);
	fate->corrupt += corrupt_frames(reader);
	fate->missed += nt_bus_reader_missed(reader);
}

/* ---- what is done ------------------------------------------------------------------------------ */

static void tidy(struct fate *fate, struct nt_spool_partition *partition)
{
	const bool is_compacted = nt_topic_is_compacted(fate->index);

	if (is_compacted && partition->fd < 0)
		note(fate, nt_spool_compact(partition, fate->now_ns));
	note(fate, nt_spool_trim(fate->topic, partition, !is_compacted, fate->now_ns));
}

static void write_some(struct fate *fate, struct nt_spool_partition *partition)
{
	char value[3000], key[4];

	for (uint32_t n = 1 + draw(fate, 24); n; n--) {
		static const uint16_t sizes[] = {1, 80, 200, sizeof(value)};
		struct nt_bus_record record = {.topic = fate->index, .key = key, .value = value};
		int r;

		/* One draw a statement: compilers differ in the order of those within one. */
		record.key_len = draw(fate, 4);
		record.value_len = sizes[draw(fate, sizeof(sizes) / sizeof(sizes[0]))];
		record.value_len = draw(fate, (uint32_t)record.value_len);
		fate->now_ns += draw(fate, 10);
		record.real_ns = fate->now_ns + draw(fate, 20);
		if (fate->is_round) {
			record.value_len = FITTING - NT_SPOOL_FRAME_BYTES - record.key_len;
			fate->now_ns = fate->now_ns / 100 * 100 + 100;
			record.real_ns = fate->now_ns;
		}
		memset(key, (int)('a' + draw(fate, 8)), sizeof(key));
		memset(value, (int)draw(fate, 256), sizeof(value));
		/* Bytes inside a value may look like those of a frame. */
		if (draw(fate, 4) == 0)
			nt_spool_frame_write(record_of(7, 5), LOG, draw(fate, 5000),
					     (uint8_t *)value);
		/* Made in the future, or long ago. */
		r = nt_spool_partition_make_room(partition, &record,
						 draw(fate, 30) ? 0 : UINT64_MAX);
		note(fate, r);
		if (r > 0) {
			fate->rolled++;
			tidy(fate, partition);
		}
		note(fate, nt_spool_partition_add(partition, &record));
	}
}

static void draw_limits(struct fate *fate)
{
	static const uint64_t max_bytes[] = {16 << 10, 32 << 10, 64 << 10};
	static const uint64_t max_age_ns[] = {0, 300, 2000};
	static const size_t max_keys[] = {3, 40, 1000};

	fate->limits.max_bytes = max_bytes[draw(fate, 3)];
	fate->limits.segment_bytes = (2 + draw(fate, 3)) << 11;
	fate->limits.max_age_ns = max_age_ns[draw(fate, 3)];
	fate->limits.max_keys = max_keys[draw(fate, 3)];
	fate->limits.sync = draw(fate, 8) == 0;
	if (fate->is_round)
		fate->limits.segment_bytes = 4096;
}

static void open_again(struct fate *fate, uint32_t i)
{
	int r;

	if (fate->partition[i] && draw(fate, 3))
		note(fate, nt_spool_partition_flush(fate->partition[i]));
	nt_spool_partition_free(fate->partition[i]);
	fate->partition[i] = NULL;
	r = nt_spool_partition_open(fate->topic, i, &fate->limits, &fate->stats,
				    &fate->partition[i]);
	note(fate, r);
	if (r == 0 && draw(fate, 2))
		tidy(fate, fate->partition[i]);
}

/* A path to one of the segments: any, or as often the newest. */
static void pick_segment(struct fate *fate, char path[PATH_BYTES], off_t *ret_size)
{
	nt_autosegments struct nt_spool_segments segments = {0};
	const uint32_t i = draw(fate, WRITERS);
	nt_autoclose int fd = open_partition(fate->dir, fate->index, i);
	char name[NT_SPOOL_NAME_BYTES];
	struct stat st;
	size_t at;

	assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	*ret_size = -1;
	if (!segments.count)
		return;
	at = draw(fate, 2) ? segments.count - 1 : draw(fate, (uint32_t)segments.count);
	nt_spool_segment_name(segments.base[at], name);
	(void)snprintf(path, PATH_BYTES, "%.150s/%s/%u/%s", fate->dir, nt_topic_name(fate->index),
		       i, name);
	assert_int_equal(stat(path, &st), 0);
	*ret_size = st.st_size;
}

/* What a writer that died left half made, and what was never ours, beside a segment. */
static void put_strangers(const char *segment)
{
	static const char *const names[] = {"00000000000000000777.tmp", "00000000000000000777.seg~",
					    "777.seg", "..seg", "0000000000000000077x.seg"};
	char path[PATH_BYTES + 32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		nt_autoclose int fd = -1;

		(void)snprintf(path, sizeof(path), "%.*s/%s",
			       (int)(strrchr(segment, '/') - segment), segment, names[i]);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
		assert_true(fd >= 0);
	}
}

static void damage(struct fate *fate)
{
	static const uint8_t zeros[100];
	nt_autoclose int fd = -1;
	char path[PATH_BYTES];
	uint8_t byte = 0;
	off_t size, at;

	pick_segment(fate, path, &size);
	if (size <= 0)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	at = (off_t)draw(fate, (uint32_t)size);
	switch (draw(fate, 6)) {
	case 0:
		at = (off_t)draw(fate, size < 90 ? (uint32_t)size : 90);
		/* fallthrough */
	case 1:
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (uint8_t)(1 + draw(fate, 255));
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		break;
	case 2:
		assert_int_equal(ftruncate(fd, at), 0);
		break;
	case 3:
		assert_int_equal(ftruncate(fd, size - (off_t)(1 + at % 60)), 0);
		break;
	case 4:
		assert_int_equal(pwrite(fd, zeros, 1 + (size_t)at % 100, size), 1 + at % 100);
		break;
	default:
		if (draw(fate, 3) == 0)
			assert_int_equal(unlink(path), 0);
		else
			put_strangers(path);
		break;
	}
}

static void take_turn(struct fate *fate)
{
	const uint32_t i = draw(fate, 4) ? 0 : 1;
	struct nt_spool_partition *partition = fate->partition[i];

	if (!partition) {
		open_again(fate, i);
		return;
	}
	switch (draw(fate, 16)) {
	case 0:
		note(fate, nt_spool_partition_flush(partition));
		break;
	case 1:
	case 2:
		open_again(fate, i);
		break;
	case 3:
	case 4:
		fate->luck = luck;
		luck = 0;
		damage(fate);
		luck = fate->luck;
		break;
	case 5:
		note(fate, nt_spool_partition_flush(partition));
		nt_spool_partition_roll(partition);
		tidy(fate, partition);
		break;
	case 6:
		note(fate, nt_spool_partition_flush(partition));
		note(fate, nt_spool_partition_retire(partition));
		fate->retired++;
		break;
	case 7:
		draw_limits(fate);
		/* Deletions stay an hour. */
		fate->now_ns += draw(fate, 2) ? 500 : NT_HOUR;
		break;
	case 8:
		/* Its writer is gone; whoever trims retires it. */
		nt_spool_partition_free(partition);
		fate->partition[i] = NULL;
		break;
	default:
		write_some(fate, partition);
		if (draw(fate, 3))
			note(fate, nt_spool_partition_flush(partition));
		break;
	}
}

/* Segments that were closed long ago. */
static void begin_partition(struct fate *fate, uint32_t i)
{
	const struct nt_spool_header header = {.log = LOG};
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];
	char path[PATH_BYTES], name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(0, name);
	(void)snprintf(path, sizeof(path), "%.150s/%s/%u/%s", fate->dir, nt_topic_name(fate->index),
		       i, name);
	nt_spool_header_write(&header, bytes);
	assert_int_equal(nt_file_make_parent(path, 0750), 0);
	assert_int_equal(nt_file_create(path, 0640, bytes, sizeof(bytes)), 0);
}

static void lead(uint32_t number, char line[256])
{
	struct fate fate = {.seed = number,
			    .sum = NT_HASH_SEED,
			    .index = number % 2 ? NT_TOPIC_CONTROL : NT_TOPIC_WINDOW,
			    .is_round = number % 4 >= 2,
			    .luck = number % 3 ? 0 : number + 1,
			    .now_ns = 10000};
	nt_autoclose int root = -1;

	assert_int_equal(make_scratch((void **)&fate.dir), 0);
	assert_int_equal(nt_spool_make_root(fate.dir, &root), 0);
	assert_int_equal(nt_spool_make_dir(root, nt_topic_name(fate.index), &fate.topic), 0);
	draw_limits(&fate);
	for (uint32_t i = 0; i < WRITERS; i++)
		begin_partition(&fate, i);
	fate.tail = open_reader(fate.dir, fate.index);
	if (number % 4 == 0)
		(void)nt_bus_reader_fd(fate.tail);
	for (uint32_t i = 0; i < TURNS; i++) {
		luck = fate.luck;
		take_turn(&fate);
		read_on(&fate, fate.tail, draw(&fate, 40));
		if (draw(&fate, 3) == 0)
			read_anew(&fate);
		fate.luck = luck;
		luck = 0;
		look_at_disk(&fate);
	}
	read_on(&fate, fate.tail, UINT32_MAX);
	fate.corrupt += corrupt_frames(fate.tail);
	fate.missed += nt_bus_reader_missed(fate.tail);
	(void)snprintf(line, 256,
		       "fate %u: %s, %llu published, %llu evicted, %llu torn, %u rolled, "
		       "%u retired, %llu refused; %llu read, %llu missed, %llu corrupt; %016llx\n",
		       number, nt_topic_name(fate.index), (unsigned long long)fate.stats.published,
		       (unsigned long long)fate.stats.evicted_records,
		       (unsigned long long)fate.stats.recovered_torn, fate.rolled, fate.retired,
		       (unsigned long long)fate.wrong, (unsigned long long)fate.read,
		       (unsigned long long)fate.missed, (unsigned long long)fate.corrupt,
		       (unsigned long long)fate.sum);
	nt_bus_reader_close(fate.tail);
	for (uint32_t i = 0; i < WRITERS; i++)
		nt_spool_partition_free(fate.partition[i]);
	(void)close(fate.topic);
	(void)remove_scratch((void **)&fate.dir);
}

static void the_fates_of_spools_are_as_written_down(void **state)
{
	const bool update = getenv("NT_GOLDEN_UPDATE");
	FILE *file = fopen(golden, update ? "w" : "r");
	char got[256], want[256];

	(void)state;
	assert_non_null(file);
	for (uint32_t fate = 0; fate < FATES; fate++) {
		lead(fate, got);
		if (update)
			assert_true(fputs(got, file) >= 0);
		else
			assert_non_null(fgets(want, sizeof(want), file));
		if (!update)
			assert_string_equal(got, want);
	}
	assert_int_equal(fclose(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fates_of_spools_are_as_written_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
