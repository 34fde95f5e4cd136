/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes that are cut short anywhere, and what a segment says of itself. pwrite() is this file's own:
 * it takes as many bytes at a time, and in all, as the test says.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "common/bus/spool/compact.h"
#include "tests/unit/common/spool_partition.h"

static size_t at_once, room; /* bytes */
static bool is_interrupted; /* every other time */
static int then; /* what is wrong when there is no room; 0: nothing is written, and nothing told */
static unsigned int writes;

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
	ssize_t n;

	if (is_interrupted && writes++ % 2) {
		errno = EINTR;
		return -1;
	}
	if (!room && size) {
		errno = then;
		return then ? -1 : 0;
	}
	if (size > at_once)
		size = at_once;
	if (size > room)
		size = room;
	n = syscall(SYS_pwrite64, fd, from, size, at);
	if (n > 0)
		room -= (size_t)n;
	return n;
}

static void let_all_through(void)
{
	at_once = SIZE_MAX;
	room = SIZE_MAX;
	is_interrupted = false;
	then = ENOSPC;
}

static int start(void **state)
{
	let_all_through();
	return make_place(state);
}

static int stop(void **state)
{
	let_all_through();
	return remove_place(state);
}

/* ---- cut short ------------------------------------------------------------------------------- */

static void what_is_written_in_pieces_is_whole(void **state)
{
	struct place *place = *state;

	at_once = 7;
	is_interrupted = true;
	for (uint64_t i = 0; i < 20; i++)
		add(place, i, i);
	flush(place);
	nt_spool_partition_roll(place->partition);
	assert_seal(place, 0, 20, 20, 19);
	assert_int_equal(nt_spool_compact(place->partition, 1), 0);
	assert_seal(place, 0, 20, 10, 19);
	assert_int_equal(size_of(place, 0), CLOSED + 10 * FRAME);
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
			open_reader(place->dir, NT_TOPIC_CONTROL);
		struct nt_bus_record record;

		for (uint64_t i = 10; i < 20; i++) {
			assert_int_equal(nt_bus_reader_next(reader, 0, &record), 1);
			assert_int_equal(record.offset, i);
			assert_int_equal(((const uint8_t *)record.value)[0], i);
		}
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 0);
	}
}

static void of_a_write_that_was_cut_short_the_whole_frames_count(void **state)
{
	struct place *place = *state;

	for (size_t cut = 0; cut <= 4 * FRAME; cut++) {
		struct nt_bus_stats *stats = &place->stats;
		const uint64_t whole = cut / FRAME, first = place->partition->next;
		uint64_t base;

		add(place, 0, 100);
		flush(place);
		base = place->partition->base;
		*stats = (struct nt_bus_stats){0};
		for (uint64_t i = 1; i <= 4; i++)
			add(place, i, 100 + i);
		room = cut;
		assert_int_equal(nt_spool_partition_flush(place->partition),
				 whole < 4 ? -ENOSPC : 0);
		let_all_through();
		assert_int_equal(stats->published, whole);
		assert_int_equal(stats->published_bytes, whole * 8);
		assert_int_equal(stats->dropped_full, 4 - whole);
		assert_int_equal(place->partition->next, first + 1 + whole);
		/* Nothing is left of the torn one, and nothing comes again. */
		assert_int_equal(size_of(place, base), NT_SPOOL_HEADER_BYTES + (1 + whole) * FRAME);
		flush(place);
		add(place, 5, 50);
		flush(place);
		nt_spool_partition_roll(place->partition);
		/* Those that did not fit may have been the newest. */
		assert_seal(place, base, first + whole + 2, whole + 2, whole ? 104 : 100);
	}
}

static void a_full_disk_has_many_names(void **state)
{
	static const struct {
		int name, told;
	} names[] = {
		{0, -ENOSPC}, {ENOSPC, -ENOSPC}, {EDQUOT, -ENOSPC}, {EFBIG, -ENOSPC}, {EIO, -EIO}};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		then = names[i].name;
		/* The header of a segment, and what goes into one. */
		for (int r = 0; r < 2; r++) {
			room = 0;
			add(place, i, 1);
			assert_int_equal(nt_spool_partition_flush(place->partition), names[i].told);
			room = SIZE_MAX;
			add(place, i, 1);
			flush(place);
		}
		nt_spool_partition_roll(place->partition);
	}
	assert_int_equal(place->stats.published, 10);
	assert_int_equal(place->stats.dropped_full, 10);
}

static void a_seal_that_does_not_fit_is_left_out(void **state)
{
	struct place *place = *state;
	struct nt_spool_seal seal;
	nt_autoclose int fd = -1;

	add(place, 1, 1);
	flush(place);
	room = 20;
	nt_spool_partition_roll(place->partition);
	let_all_through();
	assert_int_equal(place->partition->fd, -1);
	assert_int_equal(size_of(place, 0), NT_SPOOL_HEADER_BYTES + FRAME);
	fd = open_base(place, 0);
	assert_int_equal(nt_spool_read_seal(fd, &seal), -ENOENT);
}

static void a_compaction_that_cannot_write_on_changes_nothing(void **state)
{
	struct place *place = *state;
	static uint8_t value[60 << 10];
	uint64_t size;

	for (unsigned int i = 0; i < 7; i++) {
		const uint8_t key = (uint8_t)(i % 6);
		const struct nt_bus_record record = {
			.topic = NT_TOPIC_CONTROL,
			.key = &key,
			.key_len = 1,
			.value = value,
			.value_len = sizeof(value),
		};

		assert_int_equal(nt_spool_partition_add(place->partition, &record), 0);
	}
	flush(place);
	nt_spool_partition_roll(place->partition);
	size = size_of(place, 0);
	/* It writes more than once. */
	room = 1000;
	assert_int_equal(nt_spool_compact(place->partition, 1), -ENOSPC);
	assert_int_equal(size_of(place, 0), size);
	room = 280 << 10;
	assert_int_equal(nt_spool_compact(place->partition, 1), -ENOSPC);
	assert_int_equal(size_of(place, 0), size);
	assert_int_equal(measure(place->dir, NT_TOPIC_CONTROL, 0).drafts, 0);
	let_all_through();
	assert_int_equal(nt_spool_compact(place->partition, 1), 0);
	assert_int_equal(size_of(place, 0),
			 CLOSED + 6 * (NT_SPOOL_FRAME_BYTES + 1 + sizeof(value)));
	assert_seal(place, 0, 7, 6, 0);
}

/* ---- when it is written ---------------------------------------------------------------------- */

static void what_waits_is_written_when_there_is_enough_of_it(void **state)
{
	struct place *place = *state;
	static const uint8_t value[1024 - NT_SPOOL_FRAME_BYTES];
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_CONTROL, .value = value, .value_len = sizeof(value)};

	for (unsigned int i = 1; i <= 300; i++) {
		assert_int_equal(nt_spool_partition_add(place->partition, &record), 0);
		assert_int_equal(place->stats.published, i < 256 ? 0 : 256);
	}
	flush(place);
	assert_int_equal(place->stats.published, 300);
	assert_int_equal(place->stats.published_bytes, 300 * sizeof(value));
}

static void a_segment_is_filled_to_its_last_byte(void **state)
{
	struct place *place = *state;

	for (int spare = -1; spare < 2; spare++) {
		const struct nt_spool_limits limits = {
			.max_bytes = 1 << 20,
			.segment_bytes = (uint64_t)(CLOSED + 8 * FRAME + spare),
		};
		const uint64_t fits = spare < 0 ? 7 : 8;

		for (int is_written = 0; is_written < 2; is_written++) {
			uint64_t base;

			reopen(place, &limits);
			base = place->partition->next;
			for (uint64_t i = 0; i < fits; i++) {
				assert_int_equal(nt_spool_partition_make_room(place->partition,
									      record_of(i, 1), 1),
						 0);
				add(place, i, 1);
				if (is_written)
					flush(place);
			}
			assert_int_equal(
				nt_spool_partition_make_room(place->partition, record_of(9, 1), 1),
				1);
			assert_int_equal(size_of(place, base), CLOSED + fits * FRAME);
			/* With nothing in it there is room for anything. */
			assert_int_equal(
				nt_spool_partition_make_room(place->partition, record_of(9, 1), 1),
				0);
		}
	}
}

static void a_segment_is_closed_when_it_is_older_than_an_eighth_of_the_age_cap(void **state)
{
	struct nt_spool_limits limits = roomy;
	struct place *place = *state;
	uint64_t made_ns;

	limits.max_age_ns = 800;
	reopen(place, &limits);
	add(place, 1, 1);
	assert_int_equal(
		nt_spool_partition_make_room(place->partition, record_of(2, 1), UINT64_MAX), 0);
	flush(place);
	made_ns = place->partition->made_real_ns;
	assert_int_equal(
		nt_spool_partition_make_room(place->partition, record_of(2, 1), made_ns - 1), 0);
	assert_int_equal(
		nt_spool_partition_make_room(place->partition, record_of(2, 1), made_ns + 100), 0);
	assert_int_equal(
		nt_spool_partition_make_room(place->partition, record_of(2, 1), made_ns + 101), 1);
	/* Without an age cap it never is. */
	limits.max_age_ns = 0;
	add(place, 1, 1);
	flush(place);
	assert_int_equal(
		nt_spool_partition_make_room(place->partition, record_of(2, 1), UINT64_MAX), 0);
}

/* ---- what a segment knows -------------------------------------------------------------------- */

static void a_segment_knows_its_own_records_and_no_others(void **state)
{
	struct place *place = *state;

	add(place, 1, 1000);
	add(place, 2, 900);
	flush(place);
	add(place, 3, 800);
	flush(place);
	nt_spool_partition_roll(place->partition);
	assert_seal(place, 0, 3, 3, 1000);
	add(place, 4, 10);
	flush(place);
	nt_spool_partition_roll(place->partition);
	assert_seal(place, 3, 4, 1, 10);
	/* An empty one has nothing to say, and is not closed. */
	assert_int_equal(nt_spool_partition_retire(place->partition), 0);
	nt_spool_partition_roll(place->partition);
	assert_int_equal(size_of(place, 4), NT_SPOOL_HEADER_BYTES);
	assert_true(place->partition->fd >= 0);
	assert_int_equal(nt_spool_partition_retire(place->partition), 0);
	assert_int_equal(measure(place->dir, NT_TOPIC_CONTROL, 0).segments, 3);
}

static void a_writer_that_comes_back_goes_on_where_it_was(void **state)
{
	struct place *place = *state;
	uint32_t log = place->partition->log;
	uint64_t made_ns;

	add(place, 1, 1000);
	add(place, 2, 900);
	flush(place);
	made_ns = place->partition->made_real_ns;
	reopen(place, &roomy);
	assert_int_equal(place->partition->log, log);
	assert_int_equal(place->partition->next, 2);
	assert_int_equal(place->partition->records, 2);
	assert_int_equal(place->partition->newest_real_ns, 1000);
	assert_int_equal(place->partition->made_real_ns, made_ns);
	add(place, 3, 800);
	flush(place);
	assert_int_equal(measure(place->dir, NT_TOPIC_CONTROL, 0).segments, 1);
	nt_spool_partition_roll(place->partition);
	assert_seal(place, 0, 3, 3, 1000);
	/* Behind a seal nobody writes. */
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 3);
	assert_int_equal(place->partition->fd, -1);
	add(place, 4, 10);
	flush(place);
	nt_spool_partition_roll(place->partition);
	assert_seal(place, 3, 4, 1, 10);
	assert_int_equal(place->stats.recovered_torn, 0);
}

/* As many records as may have been in it when it was whole. */
static void a_torn_tail_takes_the_offsets_that_it_may_have_had(void **state)
{
	struct place *place = *state;
	static const char tail[4 * NT_SPOOL_FRAME_BYTES];
	uint64_t next = 0;

	for (size_t torn = 1; torn <= sizeof(tail); torn++) {
		char name[NT_SPOOL_NAME_BYTES];
		nt_autoclose int fd = -1;

		add(place, 1, 1);
		flush(place);
		next++;
		nt_spool_segment_name(place->partition->base, name);
		fd = openat(place->partition->dirfd, name, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(fd, tail, torn), torn);
		reopen(place, &roomy);
		next += torn / NT_SPOOL_FRAME_BYTES;
		assert_int_equal(place->partition->next, next);
		assert_int_equal(place->stats.recovered_torn, torn);
		nt_spool_partition_roll(place->partition);
	}
}

static void offsets_that_an_older_seal_knows_are_passed_over_in_a_segment_of_their_own(void **state)
{
	struct place *place = *state;

	put_sealed(place, 0, 5);
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 5);
	assert_int_equal(place->partition->log, 9);
	add(place, 1, 1);
	flush(place);
	/* The seal goes as far as this segment begins, and as it goes itself: it is written on. */
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 6);
	assert_true(place->partition->fd >= 0);
	put_sealed(place, 0, 6);
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 6);
	assert_true(place->partition->fd >= 0);
	put_sealed(place, 0, 7);
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, 7);
	assert_int_equal(place->partition->fd, -1);
}

static void a_partition_whose_offsets_run_out_is_not_opened(void **state)
{
	struct place *place = *state;
	struct nt_spool_partition *partition = NULL;

	put_sealed(place, 0, NT_SPOOL_MAX_OFFSET / 2);
	reopen(place, &roomy);
	assert_int_equal(place->partition->next, NT_SPOOL_MAX_OFFSET / 2);
	put_sealed(place, 0, NT_SPOOL_MAX_OFFSET / 2 + 1);
	nt_spool_partition_free(nt_take(place->partition));
	assert_int_equal(
		nt_spool_partition_open(place->topic, 0, &roomy, &place->stats, &partition),
		-EOVERFLOW);
	assert_null(partition);
}

#define WRITE_TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WRITE_TEST(what_is_written_in_pieces_is_whole),
		WRITE_TEST(of_a_write_that_was_cut_short_the_whole_frames_count),
		WRITE_TEST(a_full_disk_has_many_names),
		WRITE_TEST(a_seal_that_does_not_fit_is_left_out),
		WRITE_TEST(a_compaction_that_cannot_write_on_changes_nothing),
		WRITE_TEST(what_waits_is_written_when_there_is_enough_of_it),
		WRITE_TEST(a_segment_is_filled_to_its_last_byte),
		WRITE_TEST(a_segment_is_closed_when_it_is_older_than_an_eighth_of_the_age_cap),
		WRITE_TEST(a_segment_knows_its_own_records_and_no_others),
		WRITE_TEST(a_writer_that_comes_back_goes_on_where_it_was),
		WRITE_TEST(a_torn_tail_takes_the_offsets_that_it_may_have_had),
		WRITE_TEST(
			offsets_that_an_older_seal_knows_are_passed_over_in_a_segment_of_their_own),
		WRITE_TEST(a_partition_whose_offsets_run_out_is_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
