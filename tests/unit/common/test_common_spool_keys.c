/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a compaction keeps, when it is worth its while, and what the files that it makes say. */
#include "common/bus/spool/compact.h"
#include "common/system/clock.h"
#include "tests/unit/common/spool_partition.h"

/* Writes the numbers [first, past), whose last digit is the key, and closes the segment. */
static void write_closed(struct place *place, uint64_t first, uint64_t past)
{
	for (uint64_t i = first; i < past; i++)
		add(place, i, i);
	flush(place);
	nt_spool_partition_roll(place->partition);
}

static void compact(const struct place *place)
{
	assert_int_equal(nt_spool_compact(place->partition, 1), 0);
}

static unsigned int segments(const struct place *place)
{
	return measure(place->dir, NT_TOPIC_CONTROL, 0).segments;
}

/* The offsets that are there, in order. */
static size_t read_offsets(const struct place *place, uint64_t *offset, size_t most)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
		open_reader(place->dir, NT_TOPIC_CONTROL);
	struct nt_bus_record record;
	size_t n = 0;

	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		assert_true(n < most);
		offset[n++] = record.offset;
	}
	assert_int_equal(corrupt_frames(reader), 0);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
	return n;
}

static void assert_offsets(const struct place *place, size_t n, const uint64_t *expected)
{
	uint64_t offset[64];

	assert_int_equal(read_offsets(place, offset, 64), n);
	assert_memory_equal(offset, expected, n * sizeof(*offset));
}

static void of_every_key_the_newest_stays_where_it_was(void **state)
{
	struct place *place = *state;

	write_closed(place, 0, 4);
	write_closed(place, 2, 6);
	write_closed(place, 1, 3);
	compact(place);
	/* Offsets 0 to 9 have the keys 0 1 2 3 2 3 4 5 1 2. */
	assert_offsets(place, 6, (const uint64_t[]){0, 5, 6, 7, 8, 9});
	assert_int_equal(segments(place), 1);
	assert_seal(place, 0, 10, 6, 5);
	assert_int_equal(size_of(place, 0), CLOSED + 6 * FRAME);
}

static void a_group_is_filled_to_its_last_byte(void **state)
{
	struct nt_spool_limits limits = roomy;
	struct place *place = *state;

	/* Two that stay, two more, one more; nothing is there twice. */
	limits.segment_bytes = CLOSED + 4 * FRAME - 1;
	reopen(place, &limits);
	write_closed(place, 0, 2);
	write_closed(place, 2, 4);
	write_closed(place, 4, 5);
	compact(place);
	assert_int_equal(segments(place), 2);
	assert_seal(place, 0, 2, 2, 1);
	assert_seal(place, 2, 5, 3, 4);
	/* All of them once more: of the old ones nothing stays. */
	limits.segment_bytes = CLOSED + 4 * FRAME;
	write_closed(place, 0, 2);
	write_closed(place, 2, 4);
	write_closed(place, 4, 5);
	compact(place);
	assert_int_equal(segments(place), 2);
	assert_seal(place, 0, 9, 4, 3);
	assert_seal(place, 9, 10, 1, 4);
}

static void it_is_worth_it_when_as_much_has_come_as_was_left(void **state)
{
	struct place *place = *state;

	write_closed(place, 0, 4);
	compact(place);
	assert_int_equal(size_of(place, 0), CLOSED + 4 * FRAME);
	write_closed(place, 0, 3);
	compact(place);
	assert_int_equal(segments(place), 2);
	assert_seal(place, 0, 4, 4, 3);
	write_closed(place, 0, 1);
	compact(place);
	assert_int_equal(segments(place), 1);
	assert_offsets(place, 4, (const uint64_t[]){3, 5, 6, 7});
	/* Exactly as much. */
	write_closed(place, 0, 4);
	compact(place);
	assert_int_equal(segments(place), 1);
	assert_offsets(place, 4, (const uint64_t[]){8, 9, 10, 11});
}

static void of_keys_over_the_cap_all_records_stay(void **state)
{
	struct nt_spool_limits limits = roomy;
	struct place *place = *state;

	limits.max_keys = 3;
	reopen(place, &limits);
	write_closed(place, 0, 5);
	write_closed(place, 0, 5);
	compact(place);
	assert_offsets(place, 7, (const uint64_t[]){3, 4, 5, 6, 7, 8, 9});
	limits.max_keys = 4;
	write_closed(place, 0, 5);
	write_closed(place, 0, 5);
	compact(place);
	/* Those of the keys that come first are known: 3, 4, 0 and 1. */
	assert_offsets(place, 7, (const uint64_t[]){7, 12, 15, 16, 17, 18, 19});
}

static void delete_key(struct place *place, char key, uint64_t real_ns)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_CONTROL, .key = &key, .key_len = 1, .real_ns = real_ns};

	assert_int_equal(nt_spool_partition_add(place->partition, &record), 0);
}

static void a_deletion_stays_for_an_hour_to_the_nanosecond(void **state)
{
	struct place *place = *state;
	const uint64_t now_ns = 5 * NT_HOUR;

	add(place, 1, 1);
	delete_key(place, '1', now_ns - NT_HOUR - 1);
	delete_key(place, '2', now_ns - NT_HOUR);
	delete_key(place, '3', now_ns - NT_HOUR + 1);
	flush(place);
	nt_spool_partition_roll(place->partition);
	assert_int_equal(nt_spool_compact(place->partition, now_ns), 0);
	assert_offsets(place, 2, (const uint64_t[]){2, 3});
	assert_seal(place, 0, 4, 2, now_ns - NT_HOUR + 1);
}

static void in_the_first_hour_of_the_clock_no_deletion_is_old(void **state)
{
	struct place *place = *state;

	delete_key(place, '1', 0);
	flush(place);
	nt_spool_partition_roll(place->partition);
	assert_int_equal(nt_spool_compact(place->partition, NT_HOUR - 1), 0);
	assert_offsets(place, 1, (const uint64_t[]){0});
}

/* As after one that stopped half way: the first file has taken in what the second one still has. */
static void what_is_there_twice_is_written_once(void **state)
{
	struct place *place = *state;
	nt_autobuf struct nt_buf old = {0};
	char path[PATH_BYTES], name[NT_SPOOL_NAME_BYTES];

	write_closed(place, 0, 4);
	write_closed(place, 4, 6);
	nt_spool_segment_name(4, name);
	(void)snprintf(path, sizeof(path), "%s/%s/0/%s", place->dir,
		       nt_topic_name(NT_TOPIC_CONTROL), name);
	assert_int_equal(nt_file_read(path, NT_BUF_MAX, &old), 0);
	compact(place);
	assert_int_equal(segments(place), 1);
	write_closed(place, 0, 6);
	assert_int_equal(nt_file_create(path, 0640, old.data, old.len), 0);
	compact(place);
	assert_int_equal(segments(place), 1);
	assert_offsets(place, 6, (const uint64_t[]){6, 7, 8, 9, 10, 11});
	assert_seal(place, 0, 12, 6, 5);
}

/* A seal knows how far its segment went, whatever is left in it, and none behind it takes that back. */
static void the_end_is_never_taken_back(void **state)
{
	struct place *place = *state;

	put_sealed(place, 0, 60);
	put_sealed(place, 30, 45);
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 60);
	compact(place);
	assert_int_equal(segments(place), 1);
	assert_seal(place, 0, 60, 0, 0);
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 60);
}

/* Nor is it forgotten where the last segment has neither a record nor a seal. */
static void an_empty_segment_ends_where_it_begins(void **state)
{
	struct place *place = *state;

	write_closed(place, 0, 4);
	assert_int_equal(nt_spool_partition_retire(place->partition), 0);
	compact(place);
	assert_int_equal(segments(place), 1);
	assert_seal(place, 0, 4, 4, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(of_every_key_the_newest_stays_where_it_was),
		PLACE_TEST(a_group_is_filled_to_its_last_byte),
		PLACE_TEST(it_is_worth_it_when_as_much_has_come_as_was_left),
		PLACE_TEST(of_keys_over_the_cap_all_records_stay),
		PLACE_TEST(a_deletion_stays_for_an_hour_to_the_nanosecond),
		PLACE_TEST(in_the_first_hour_of_the_clock_no_deletion_is_old),
		PLACE_TEST(what_is_there_twice_is_written_once),
		PLACE_TEST(the_end_is_never_taken_back),
		PLACE_TEST(an_empty_segment_ends_where_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
