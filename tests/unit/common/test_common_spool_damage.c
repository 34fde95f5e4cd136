/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What only a directory of files can suffer, and how little of it is lost. */
#include "tests/unit/common/spool.h"

enum {
	DAMAGE_FRAMES = 5,
	DAMAGE_VALUE = 40,
	DAMAGE_FRAME = NT_SPOOL_FRAME_BYTES + 2 + DAMAGE_VALUE,
	DAMAGE_TOTAL = NT_SPOOL_HEADER_BYTES + DAMAGE_FRAMES * DAMAGE_FRAME,
};

/* The bytes of a segment of five frames. */
static void make_segment(const char *dir, struct nt_buf *buf)
{
	char spool[PATH_BYTES];

	(void)snprintf(spool, sizeof(spool), "%s/whole", dir);
	publish_many(spool, NULL, 0, DAMAGE_FRAMES, DAMAGE_VALUE);
	read_segment(spool, buf);
	assert_int_equal(buf->len, DAMAGE_TOTAL);
}

static void a_torn_tail_is_cut_at_the_last_whole_frame_wherever_it_is_torn(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int cut = 0; cut < DAMAGE_FRAME; cut++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		nt_auto(nt_bus) struct nt_bus *bus = NULL;
		struct nt_bus_stats stats;
		char spool[PATH_BYTES];

		make_spool(*state, cut, buf.data, DAMAGE_TOTAL - DAMAGE_FRAME + cut, spool);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		for (uint64_t i = 0; i < DAMAGE_FRAMES - 1; i++)
			assert_int_equal(read_number(reader), i);
		assert_nothing_more(reader);

		bus = open_bus(spool, NULL);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 100, 8), 0);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 101, 200), 0);
		assert_int_equal(nt_bus_flush(bus), 0);
		nt_bus_stats(bus, &stats);
		assert_int_equal(stats.recovered_torn, cut > 0);
		assert_int_equal(read_number(reader), 100);
		assert_int_equal(read_number(reader), 101);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 0);
	}
}

static void a_file_that_ends_in_its_header_is_begun_anew(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int cut = 0; cut <= NT_SPOOL_HEADER_BYTES; cut++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		char spool[PATH_BYTES];

		make_spool(*state, cut, buf.data, cut, spool);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		assert_nothing_more(reader);
		publish_many(spool, NULL, 100, 102, 8);
		assert_int_equal(read_number(reader), 100);
		assert_int_equal(read_number(reader), 101);
		assert_nothing_more(reader);
	}
}

/* One bit of frame 2 of 5 is flipped: that frame is lost, and no other. */
/* In the first segment alone. */
static void assert_damage(const struct nt_bus_reader *reader, uint64_t places, uint64_t bytes,
			  uint64_t tail_bytes)
{
	struct nt_bus_damage damage[2];

	assert_int_equal(nt_bus_reader_damage(reader, damage, 0), 0);
	assert_int_equal(nt_bus_reader_damage(reader, damage, 2), 1);
	assert_string_equal(damage[0].segment, "neutracer.window.v1/0/00000000000000000000.seg");
	assert_int_equal(damage[0].places, places);
	assert_int_equal(damage[0].bytes, bytes);
	assert_int_equal(damage[0].tail_bytes, tail_bytes);
}

static void a_flipped_bit_costs_one_frame_and_is_counted(void **state)
{
	const size_t begin = NT_SPOOL_HEADER_BYTES + 2 * DAMAGE_FRAME;
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int at = 0; at < DAMAGE_FRAME; at++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		char spool[PATH_BYTES];

		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		make_spool(*state, at, buf.data, buf.len, spool);
		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		for (uint64_t i = 0; i < DAMAGE_FRAMES; i++)
			if (i != 2)
				assert_int_equal(read_number(reader), i);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 1);
		assert_damage(reader, 1, DAMAGE_FRAME, 0);

		/* The writer goes on in a new segment, and takes nothing away. */
		publish_many(spool, NULL, 100, 101, 8);
		assert_int_equal(read_number(reader), 100);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 1);
		assert_int_equal(measure(spool, NT_TOPIC_WINDOW, 0).segments, 2);
	}
}

static void a_flipped_bit_in_the_header_costs_no_frame(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int at = 0; at < NT_SPOOL_HEADER_BYTES; at++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		char spool[PATH_BYTES];

		buf.data[at] ^= (uint8_t)(1 << at % 8);
		make_spool(*state, at, buf.data, buf.len, spool);
		buf.data[at] ^= (uint8_t)(1 << at % 8);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		for (uint64_t i = 0; i < DAMAGE_FRAMES; i++)
			assert_int_equal(read_number(reader), i);
		assert_int_equal(corrupt_frames(reader), 1);
		publish_many(spool, NULL, 100, 101, 8);
		assert_int_equal(read_number(reader), 100);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 1);
	}
}

static void a_flipped_bit_in_the_last_frame_is_cut_off_by_the_next_writer(void **state)
{
	const size_t begin = NT_SPOOL_HEADER_BYTES + (DAMAGE_FRAMES - 1) * DAMAGE_FRAME;
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int at = 0; at < DAMAGE_FRAME; at++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		struct nt_bus_position position = {NT_TOPIC_WINDOW, 0, DAMAGE_FRAMES};
		char spool[PATH_BYTES];

		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		make_spool(*state, at, buf.data, buf.len, spool);
		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		publish_many(spool, NULL, 100, 101, 8);
		/* Whoever had read the frame while it was sound finds the next one all the same. */
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
		assert_int_equal(read_number(reader), 100);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 0);
	}
}

/* A frame within a value: of another log, as nobody knows ours who does not read it. */
static void bytes_that_look_like_a_frame_inside_a_damaged_one_are_not_taken_for_one(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	const struct nt_bus_record inner = {.value = "forged", .value_len = 6, .real_ns = 3};
	uint8_t value[64] = {0};
	struct nt_bus_record outer = {
		.topic = NT_TOPIC_WINDOW,
		.value = value,
		.value_len = sizeof(value),
		.real_ns = 1,
	};
	nt_autobuf struct nt_buf buf = {0};
	char whole[PATH_BYTES], spool[PATH_BYTES];

	nt_spool_frame_write(&inner, 0x12345678, 1, value);
	(void)snprintf(whole, sizeof(whole), "%s/whole", dir);
	bus = open_bus(whole, NULL);
	assert_int_equal(nt_bus_publish(bus, &outer), 0);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 5, 8), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	read_segment(whole, &buf);
	buf.data[NT_SPOOL_HEADER_BYTES + 20] ^= 1;
	make_spool(dir, 0, buf.data, buf.len, spool);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 5);
	assert_nothing_more(reader);
	assert_int_equal(corrupt_frames(reader), 1);
}

static void a_segment_of_noise_is_passed_over_and_counted(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint8_t noise[5000];
	uint64_t seed = 1;
	char spool[PATH_BYTES];

	for (size_t i = 0; i < sizeof(noise); i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		noise[i] = (uint8_t)(seed >> 56);
	}
	make_spool(dir, 0, noise, sizeof(noise), spool);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_nothing_more(reader);
	assert_damage(reader, 1, NT_SPOOL_HEADER_BYTES, sizeof(noise) - NT_SPOOL_HEADER_BYTES);
	publish_many(spool, NULL, 0, 100, 8);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
	assert_in_range(corrupt_frames(reader), 1, 2);
}

/* The damaged frame is larger than what is read at a time. */
static void a_large_damaged_frame_is_searched_to_its_end(void **state)
{
	const char *dir = *state;
	nt_autofree uint8_t *value = calloc(1, NT_BUS_MAX_VALUE);
	const struct nt_bus_record large = {
		.topic = NT_TOPIC_WINDOW,
		.value = value,
		.value_len = NT_BUS_MAX_VALUE,
	};
	char whole[PATH_BYTES], spool[PATH_BYTES];
	nt_autobuf struct nt_buf buf = {0};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	assert_non_null(value);
	/* Full of what looks like the head of a frame. */
	for (size_t i = 0; i + 8 < NT_BUS_MAX_VALUE; i += 1000)
		memcpy(value + i, "NTFRNTSE", 8);
	(void)snprintf(whole, sizeof(whole), "%s/whole", dir);
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(whole, NULL);

		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, 8), 0);
		assert_int_equal(nt_bus_publish(bus, &large), 0);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 2, 8), 0);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 3, 8), 0);
	}
	read_segment(whole, &buf);
	buf.data[buf.len / 2] ^= 1;
	make_spool(dir, 0, buf.data, buf.len, spool);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 1);
	assert_int_equal(read_number(reader), 2);
	assert_int_equal(read_number(reader), 3);
	assert_nothing_more(reader);
	assert_int_equal(corrupt_frames(reader), 1);
}

static void no_offset_that_a_seal_knows_is_given_again(void **state)
{
	const char *dir = *state;
	const struct nt_spool_header first = {.log = 9, .base = 0}, second = {.log = 9, .base = 5};
	const struct nt_spool_seal seal = {.end = 100};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint8_t bytes[NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES];
	struct nt_bus_record record;
	char path[PATH_BYTES];

	nt_spool_header_write(&first, bytes);
	nt_spool_seal_write(&seal, first.log, bytes + NT_SPOOL_HEADER_BYTES);
	segment_path(dir, 0, path);
	assert_int_equal(nt_file_make_parent(path, 0750), 0);
	assert_int_equal(nt_file_create(path, 0640, bytes, sizeof(bytes)), 0);
	nt_spool_header_write(&second, bytes);
	segment_path(dir, 5, path);
	assert_int_equal(nt_file_create(path, 0640, bytes, NT_SPOOL_HEADER_BYTES), 0);
	publish_many(dir, NULL, 1, 2, 8);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 1);
	assert_int_equal(record.offset, 100);
}

/* Found by fuzz_spool: such a segment led the reader back to the one before, for ever. */
static void a_segment_that_is_damaged_throughout_behind_another_is_passed_over_once(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	static const uint8_t zeros[500];
	nt_autobuf struct nt_buf buf = {0};
	char spool[PATH_BYTES], path[PATH_BYTES];

	make_segment(dir, &buf);
	make_spool(dir, 0, buf.data, NT_SPOOL_HEADER_BYTES + DAMAGE_FRAME, spool);
	segment_path(spool, 5, path);
	assert_int_equal(nt_file_create(path, 0640, zeros, sizeof(zeros)), 0);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 0);
	assert_nothing_more(reader);
	publish_many(spool, NULL, 100, 101, 8);
	assert_int_equal(read_number(reader), 100);
	assert_nothing_more(reader);
}

static void a_file_cut_short_under_a_reader_ends_early_and_goes_on(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	char path[PATH_BYTES];

	publish_many(dir, NULL, 0, 1000, 512);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 0);
	segment_path(dir, 0, path);
	assert_int_equal(truncate(path, NT_SPOOL_HEADER_BYTES + 20), 0);
	/* What was read ahead may still come; then the end, and no crash. */
	for (uint64_t i = 1;; i++) {
		struct nt_bus_record record;
		int r = nt_bus_reader_next(reader, 0, &record);

		assert_true(r >= 0);
		if (r == 0)
			break;
		assert_int_equal(number_of(&record), i);
	}
}

static void what_is_no_partition_is_not_listed(void **state)
{
	static const char *const names[] = {"64", "99", "00", "07", "1x", "x", "-1", "1000", ".7"};
	const char *dir = *state;
	nt_autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t mask = 77;

	assert_int_equal(nt_spool_list_partitions(fd, &mask), 0);
	assert_int_equal(mask, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(mkdirat(fd, names[i], 0700), 0);
	assert_int_equal(nt_spool_list_partitions(fd, &mask), 0);
	assert_int_equal(mask, 0);
	assert_int_equal(mkdirat(fd, "0", 0700), 0);
	assert_int_equal(mkdirat(fd, "9", 0700), 0);
	assert_int_equal(mkdirat(fd, "63", 0700), 0);
	assert_int_equal(nt_spool_list_partitions(fd, &mask), 0);
	assert_true(mask == (1ULL | 1ULL << 9 | 1ULL << 63));
}

static void what_is_no_segment_in_the_directory_is_left_alone(void **state)
{
	const char *dir = *state;
	nt_autosegments struct nt_spool_segments segments = {0};
	static const char *const names[] = {"00000000000000000009.seg", "x.seg", "9.seg",
					    "99999999999999999999.seg", "18446744073709551615.seg"};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_autoclose int fd = -1;

	publish_many(dir, NULL, 0, 3, 8);
	fd = open_partition(dir, NT_TOPIC_WINDOW, 0);
	assert_int_equal(mkfifoat(fd, names[0], 0600), 0);
	for (int i = 1; i < 5; i++)
		assert_int_equal(mkdirat(fd, names[i], 0700), 0);
	assert_int_equal(symlinkat("/dev/zero", fd, "00000000000000000002.seg"), 0);
	assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	assert_int_equal(segments.count, 1);
	assert_int_equal(segments.base[0], 0);
	publish_many(dir, NULL, 3, 6, 8);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(a_torn_tail_is_cut_at_the_last_whole_frame_wherever_it_is_torn),
		SPOOL_TEST(a_file_that_ends_in_its_header_is_begun_anew),
		SPOOL_TEST(a_flipped_bit_costs_one_frame_and_is_counted),
		SPOOL_TEST(a_flipped_bit_in_the_header_costs_no_frame),
		SPOOL_TEST(a_flipped_bit_in_the_last_frame_is_cut_off_by_the_next_writer),
		SPOOL_TEST(bytes_that_look_like_a_frame_inside_a_damaged_one_are_not_taken_for_one),
		SPOOL_TEST(a_large_damaged_frame_is_searched_to_its_end),
		SPOOL_TEST(no_offset_that_a_seal_knows_is_given_again),
		SPOOL_TEST(a_segment_of_noise_is_passed_over_and_counted),
		SPOOL_TEST(a_segment_that_is_damaged_throughout_behind_another_is_passed_over_once),
		SPOOL_TEST(a_file_cut_short_under_a_reader_ends_early_and_goes_on),
		SPOOL_TEST(what_is_no_partition_is_not_listed),
		SPOOL_TEST(what_is_no_segment_in_the_directory_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
