/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A cursor over segments that the test writes itself, byte for byte, and changes while the cursor
 * lists them: opendir's and closedir's calls are this file's own.
 */
#include "common/bus/spool/cursor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>

#include "tests/unit/common/spool.h"

static void (*before_listing)(int partition), (*after_listing)(int partition);
static int watched = -1; /* the partition that they are given */
static unsigned int listings;

DIR *own_fdopendir(int fd) __asm__("fdopendir");
DIR *own_fdopendir(int fd)
{
	static DIR *(*real)(int fd);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
	listings++;
	if (before_listing)
		before_listing(watched);
	return real(fd);
}

int own_closedir(DIR *dir) __asm__("closedir");
int own_closedir(DIR *dir)
{
	static int (*real)(DIR * dir);
	int r;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "closedir");
	r = real(dir);
	if (after_listing)
		after_listing(watched);
	return r;
}

/* ---- segments -------------------------------------------------------------------------------- */

struct segment {
	uint64_t base;
	uint32_t log;
	uint64_t first, past; /* offsets of its records, whose times and values are the same */
	uint64_t end; /* in its seal; 0: none */
	bool has_no_header; /* it is damaged */
	size_t torn; /* bytes of half a frame at its end */
};

static size_t write_frame(uint8_t *bytes, uint32_t log, uint64_t offset)
{
	const struct nt_bus_record record = {
		.value = &offset, .value_len = sizeof(offset), .real_ns = offset};

	nt_spool_frame_write(&record, log, offset, bytes);
	return nt_spool_frame_size(&record);
}

static void remove_segment(int partition, uint64_t base)
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(base, name);
	assert_int_equal(unlinkat(partition, name, 0), 0);
}

static void write_segment(int partition, uint64_t base, int flags, const uint8_t *bytes,
			  size_t size)
{
	char name[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;

	nt_spool_segment_name(base, name);
	fd = openat(partition, name, O_WRONLY | O_CLOEXEC | flags, 0640);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
}

static void put_segment(int partition, const struct segment *segment)
{
	const struct nt_spool_header header = {.log = segment->log, .base = segment->base};
	const struct nt_spool_seal seal = {
		.end = segment->end,
		.newest_real_ns = segment->past - 1,
		.records = segment->past - segment->first,
	};
	uint8_t bytes[16 << 10] = {0};
	size_t len = NT_SPOOL_HEADER_BYTES;

	nt_spool_header_write(&header, bytes);
	if (segment->has_no_header)
		bytes[40] ^= 1;
	for (uint64_t i = segment->first; i < segment->past; i++)
		len += write_frame(bytes + len, segment->log, i);
	if (segment->end) {
		nt_spool_seal_write(&seal, segment->log, bytes + len);
		len += NT_SPOOL_SEAL_BYTES;
	}
	write_segment(partition, segment->base, O_CREAT | O_EXCL, bytes, len + segment->torn);
}

#define PUT(partition, ...) put_segment(partition, &(const struct segment){__VA_ARGS__})

/* Appends the records [first, past) to a segment. */
static void append(int partition, uint64_t base, uint32_t log, uint64_t first, uint64_t past)
{
	uint8_t bytes[1024];
	size_t len = 0;

	for (uint64_t i = first; i < past; i++)
		len += write_frame(bytes + len, log, i);
	write_segment(partition, base, O_APPEND, bytes, len);
}

/* ---- a cursor in a directory of its own ------------------------------------------------------ */

struct place {
	char *dir;
	int partition;
	struct nt_spool_cursor cursor;
	uint64_t generation;
};

/* Gives the cursor the directory DIR/<name>, which is made. */
static void place_cursor(struct place *place, const char *name)
{
	char path[PATH_BYTES];

	if (place->partition >= 0)
		(void)close(place->partition);
	(void)snprintf(path, sizeof(path), "%s/%s", place->dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	place->partition = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->partition >= 0);
	assert_int_equal(nt_spool_cursor_place(&place->cursor, dup(place->partition)), 0);
	watched = place->partition;
}

static int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place || make_scratch((void **)&place->dir) < 0)
		return -1;
	place->partition = -1;
	place->generation = 1;
	nt_spool_cursor_init(&place->cursor, 0);
	place_cursor(place, "0");
	listings = 0;
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;

	before_listing = NULL;
	after_listing = NULL;
	nt_spool_cursor_release(&place->cursor);
	(void)close(place->partition);
	(void)remove_scratch((void **)&place->dir);
	free(place);
	return 0;
}

/* The next records are [first, past). */
static void assert_next(struct place *place, uint64_t first, uint64_t past)
{
	for (uint64_t i = first; i < past; i++) {
		/* However often it is looked at. */
		for (int j = 0; j < 2; j++)
			assert_int_equal(nt_spool_cursor_peek(&place->cursor, place->generation),
					 1);
		assert_int_equal(place->cursor.head.offset, i);
		nt_spool_cursor_pass(&place->cursor);
	}
}

static void assert_no_more(struct place *place)
{
	assert_int_equal(nt_spool_cursor_peek(&place->cursor, place->generation), 0);
}

/* Something in the directory has changed. */
static void mark_changed(struct place *place)
{
	place->generation++;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void every_place_is_found_in_the_segment_that_has_it(void **state)
{
	struct place *place = *state;

	/* Whoever reads more than the one segment meets the damage. */
	for (uint64_t base = 0; base < 50; base += 10)
		PUT(place->partition, .base = base, .log = 7, .first = base, .past = base + 10,
		    .end = base + 10);
	for (uint64_t base = 10; base < 50; base += 10) {
		char name[NT_SPOOL_NAME_BYTES];
		nt_autoclose int fd = -1;

		nt_spool_segment_name(base - 10, name);
		fd = openat(place->partition, name, O_RDWR | O_CLOEXEC);
		assert_int_equal(pwrite(fd, "X", 1, NT_SPOOL_HEADER_BYTES + 5), 1);
		for (uint64_t i = base; i < base + 10; i++) {
			nt_spool_cursor_seek(&place->cursor, i);
			assert_next(place, i, i + 1);
		}
		assert_int_equal(place->cursor.damaged, 0);
	}
	assert_int_equal(place->cursor.missed, 0);
}

static void a_place_that_has_gone_is_missed_to_the_oldest_that_is_there(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 30, .log = 7, .first = 30, .past = 33);
	nt_spool_cursor_seek(&place->cursor, 12);
	assert_next(place, 30, 33);
	assert_no_more(place);
	assert_int_equal(place->cursor.missed, 18);
}

static void a_place_behind_the_end_is_of_another_log_and_means_the_oldest(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 5, .log = 7, .first = 5, .past = 8);
	nt_spool_cursor_seek(&place->cursor, 8);
	assert_no_more(place);
	nt_spool_cursor_seek(&place->cursor, 9);
	assert_next(place, 5, 8);
	assert_no_more(place);
	assert_int_equal(place->cursor.missed, 0);
}

static void a_place_sought_while_nothing_is_there_means_the_oldest_too(void **state)
{
	struct place *place = *state;

	nt_spool_cursor_seek(&place->cursor, 10);
	assert_no_more(place);
	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 3);
	mark_changed(place);
	assert_next(place, 0, 3);
	assert_no_more(place);
}

static void the_last_place_sought_counts(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 10);
	nt_spool_cursor_seek(&place->cursor, 50);
	assert_int_equal(nt_spool_cursor_seek_end(&place->cursor), 0);
	assert_no_more(place);
	nt_spool_cursor_seek_time(&place->cursor, 8);
	nt_spool_cursor_seek(&place->cursor, 2);
	assert_next(place, 2, 5);
	nt_spool_cursor_seek_time(&place->cursor, 8);
	assert_next(place, 8, 10);
	nt_spool_cursor_seek_time(&place->cursor, 100);
	assert_int_equal(nt_spool_cursor_seek_end(&place->cursor), 0);
	append(place->partition, 0, 7, 10, 11);
	assert_next(place, 10, 11);
	nt_spool_cursor_seek(&place->cursor, 9);
	nt_spool_cursor_seek_time(&place->cursor, 0);
	assert_next(place, 0, 11);
}

static void the_newest_record_of_a_segment_is_not_too_old_for_its_own_time(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 5, .end = 5);
	PUT(place->partition, .base = 5, .log = 7, .first = 5, .past = 10, .end = 10);
	nt_spool_cursor_seek_time(&place->cursor, 4);
	assert_next(place, 4, 10);
	nt_spool_cursor_seek_time(&place->cursor, 5);
	assert_next(place, 5, 10);
	/* The last segment is read, whatever its seal says. */
	nt_spool_cursor_seek_time(&place->cursor, 10);
	assert_no_more(place);
	append(place->partition, 5, 7, 10, 12);
	PUT(place->partition, .base = 12, .log = 7, .first = 12, .past = 14);
	mark_changed(place);
	assert_next(place, 12, 14);
	assert_int_equal(place->cursor.missed, 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void what_is_missed_counts_from_the_end_gone_to(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 10);
	assert_int_equal(nt_spool_cursor_seek_end(&place->cursor), 0);
	assert_no_more(place);
	remove_segment(place->partition, 0);
	PUT(place->partition, .base = 20, .log = 7, .first = 20, .past = 21, .end = 21);
	mark_changed(place);
	assert_next(place, 20, 21);
	assert_int_equal(place->cursor.missed, 10);
	/* Where the last segment is empty, its base is the end. */
	PUT(place->partition, .base = 30, .log = 7);
	assert_int_equal(nt_spool_cursor_seek_end(&place->cursor), 0);
	remove_segment(place->partition, 20);
	remove_segment(place->partition, 30);
	PUT(place->partition, .base = 33, .log = 7, .first = 33, .past = 34);
	mark_changed(place);
	assert_next(place, 33, 34);
	assert_int_equal(place->cursor.missed, 13);
}

static void what_is_missed_counts_from_the_last_record_that_was_passed_over(void **state)
{
	struct place *place = *state;

	for (uint64_t records = 1; records < 5; records++) {
		PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = records);
		nt_spool_cursor_seek_time(&place->cursor, 100);
		mark_changed(place);
		assert_no_more(place);
		remove_segment(place->partition, 0);
		PUT(place->partition, .base = 200, .log = 7, .first = 200, .past = 201);
		mark_changed(place);
		assert_next(place, 200, 201);
		assert_int_equal(place->cursor.missed, 200 - records);
		place->cursor.missed = 0;
		remove_segment(place->partition, 200);
	}
}

static void nothing_is_looked_at_twice_in_one_generation(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 5, .end = 5);
	PUT(place->partition, .base = 5, .log = 7, .first = 5, .past = 10, .end = 10);
	PUT(place->partition, .base = 10, .log = 7, .first = 10, .past = 15);
	assert_next(place, 0, 15);
	assert_no_more(place);
	assert_int_equal(listings, 1);
	append(place->partition, 10, 7, 15, 16);
	assert_no_more(place);
	mark_changed(place);
	assert_next(place, 15, 16);
	assert_no_more(place);
	assert_int_equal(listings, 2);
	/* Who goes elsewhere looks at once. */
	append(place->partition, 10, 7, 16, 17);
	nt_spool_cursor_seek(&place->cursor, 16);
	assert_next(place, 16, 17);
}

/* ---- damage and other logs ------------------------------------------------------------------- */

static void a_torn_tail_counts_where_nobody_writes_any_more(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 5, .torn = 9);
	assert_next(place, 0, 5);
	assert_no_more(place);
	assert_int_equal(place->cursor.damaged, 0);
	PUT(place->partition, .base = 6, .log = 7, .first = 6, .past = 8);
	mark_changed(place);
	assert_next(place, 6, 8);
	assert_int_equal(place->cursor.damaged, 1);
	/* Without a seal, but whole. */
	PUT(place->partition, .base = 8, .log = 7, .first = 8, .past = 9);
	mark_changed(place);
	assert_next(place, 8, 9);
	assert_int_equal(place->cursor.damaged, 1);
}

static void a_damaged_header_leads_nowhere_else(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 10, .end = 10);
	PUT(place->partition, .base = 10, .log = 7, .first = 10, .past = 20, .has_no_header = true);
	assert_next(place, 0, 1);
	nt_spool_cursor_seek(&place->cursor, 15);
	assert_next(place, 15, 20);
	assert_int_equal(place->cursor.damaged, 1);
}

static void another_directory_is_another_log(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 5);
	assert_next(place, 0, 5);
	place_cursor(place, "1");
	PUT(place->partition, .base = 0, .log = 8, .first = 0, .past = 3, .has_no_header = true);
	assert_next(place, 0, 3);
	assert_int_equal(place->cursor.damaged, 1);
	/* A place sought in a new one is a place in that. */
	place_cursor(place, "2");
	PUT(place->partition, .base = 0, .log = 9, .first = 0, .past = 10);
	nt_spool_cursor_seek(&place->cursor, 5);
	assert_next(place, 5, 10);
	assert_int_equal(place->cursor.missed, 0);
	/* The same one once more is no other. */
	assert_int_equal(nt_spool_cursor_place(&place->cursor, dup(place->partition)), 0);
	assert_no_more(place);
}

static void a_log_put_in_anothers_place_is_read_by_its_own_offsets(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 100);
	assert_next(place, 0, 100);
	assert_no_more(place);
	remove_segment(place->partition, 0);
	PUT(place->partition, .base = 0, .log = 8, .first = 0, .past = 5, .end = 5);
	mark_changed(place);
	assert_next(place, 0, 5);
	PUT(place->partition, .base = 5, .log = 8, .first = 5, .past = 10, .end = 10);
	PUT(place->partition, .base = 10, .log = 8, .first = 10, .past = 12);
	mark_changed(place);
	assert_next(place, 5, 12);
	assert_no_more(place);
	assert_int_equal(place->cursor.missed, 0);
}

/* A compaction that stopped half way left an old segment, which ends before the new one does. */
static void an_end_once_seen_is_not_taken_back(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 3, .end = 60);
	PUT(place->partition, .base = 30, .log = 7, .first = 30, .past = 30, .end = 45);
	assert_next(place, 0, 3);
	assert_no_more(place);
	remove_segment(place->partition, 0);
	remove_segment(place->partition, 30);
	PUT(place->partition, .base = 60, .log = 7, .first = 60, .past = 61);
	mark_changed(place);
	assert_next(place, 60, 61);
	assert_int_equal(place->cursor.missed, 0);
}

/* ---- while it is listed ---------------------------------------------------------------------- */

static void write_on_and_begin_another(int partition)
{
	before_listing = NULL;
	append(partition, 0, 7, 5, 7);
	PUT(partition, .base = 7, .log = 7, .first = 7, .past = 9);
}

/* It had been read to its end, but not all that came before the next segment was there then. */
static void what_came_before_the_next_segment_did_is_read(void **state)
{
	struct place *place = *state;

	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 5);
	assert_next(place, 0, 5);
	assert_no_more(place);
	before_listing = write_on_and_begin_another;
	mark_changed(place);
	assert_next(place, 5, 9);
	assert_no_more(place);
	assert_int_equal(place->cursor.missed + place->cursor.damaged, 0);
}

static void remove_the_two_oldest(int partition)
{
	after_listing = NULL;
	remove_segment(partition, 0);
	remove_segment(partition, 5);
}

static void a_segment_that_goes_before_it_is_opened_is_passed_over(void **state)
{
	struct place *place = *state;

	for (int is_inside = 0; is_inside < 2; is_inside++) {
		PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 5, .end = 5);
		if (is_inside) {
			nt_spool_cursor_seek(&place->cursor, 0);
			assert_next(place, 0, 5);
			assert_no_more(place);
		} else {
			nt_spool_cursor_seek_time(&place->cursor, 0);
		}
		PUT(place->partition, .base = 5, .log = 7, .first = 5, .past = 10, .end = 10);
		PUT(place->partition, .base = 10, .log = 7, .first = 10, .past = 12);
		after_listing = remove_the_two_oldest;
		mark_changed(place);
		assert_next(place, 10, 12);
		assert_no_more(place);
		/* They had been seen to be there. */
		assert_int_equal(place->cursor.missed, is_inside ? 5 : 10);
		place->cursor.missed = 0;
		remove_segment(place->partition, 10);
	}
}

static uint64_t fleeing;

static void flee(int partition)
{
	remove_segment(partition, fleeing);
	fleeing++;
	PUT(partition, .base = fleeing, .log = 7, .first = fleeing, .past = fleeing + 1);
}

static void who_never_comes_in_time_says_so_and_goes_on_later(void **state)
{
	struct place *place = *state;

	fleeing = 0;
	PUT(place->partition, .base = 0, .log = 7, .first = 0, .past = 1);
	after_listing = flee;
	assert_int_equal(nt_spool_cursor_peek(&place->cursor, 1), -ENOENT);
	assert_int_equal(fleeing, 8);
	assert_int_equal(nt_spool_cursor_seek_end(&place->cursor), -ENOENT);
	assert_int_equal(fleeing, 16);
	after_listing = NULL;
	assert_next(place, 16, 17);
	assert_no_more(place);
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(every_place_is_found_in_the_segment_that_has_it),
		PLACE_TEST(a_place_that_has_gone_is_missed_to_the_oldest_that_is_there),
		PLACE_TEST(a_place_behind_the_end_is_of_another_log_and_means_the_oldest),
		PLACE_TEST(a_place_sought_while_nothing_is_there_means_the_oldest_too),
		PLACE_TEST(the_last_place_sought_counts),
		PLACE_TEST(the_newest_record_of_a_segment_is_not_too_old_for_its_own_time),
		PLACE_TEST(what_is_missed_counts_from_the_end_gone_to),
		PLACE_TEST(what_is_missed_counts_from_the_last_record_that_was_passed_over),
		PLACE_TEST(nothing_is_looked_at_twice_in_one_generation),
		PLACE_TEST(a_torn_tail_counts_where_nobody_writes_any_more),
		PLACE_TEST(a_damaged_header_leads_nowhere_else),
		PLACE_TEST(another_directory_is_another_log),
		PLACE_TEST(a_log_put_in_anothers_place_is_read_by_its_own_offsets),
		PLACE_TEST(an_end_once_seen_is_not_taken_back),
		PLACE_TEST(what_came_before_the_next_segment_did_is_read),
		PLACE_TEST(a_segment_that_goes_before_it_is_opened_is_passed_over),
		PLACE_TEST(who_never_comes_in_time_says_so_and_goes_on_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
