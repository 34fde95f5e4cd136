/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct nt_field_input input_of(const uint8_t *data, size_t size)
{
	return (struct nt_field_input){.at = data, .end = data + size};
}

static void a_part_ends_where_its_length_says(void **state)
{
	static const uint8_t data[] = {3, 'a', 'b', 'c', 0, 0x80, 0x00, 9};
	struct nt_field_input in = input_of(data, sizeof(data)), part;

	(void)state;
	assert_true(nt_field_read_part(&in, &part));
	assert_ptr_equal(part.at, data + 1);
	assert_int_equal(nt_field_left(&part), 3);
	assert_true(nt_field_read_part(&in, &part));
	assert_int_equal(nt_field_left(&part), 0);
	/* A length may have more bytes than it needs. */
	assert_true(nt_field_read_part(&in, &part));
	assert_int_equal(nt_field_left(&part), 0);
	assert_int_equal(nt_field_left(&in), 1);
}

static void a_part_that_ends_behind_its_message_is_refused(void **state)
{
	static const uint8_t data[] = {4, 'a', 'b', 'c'};
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0};

	(void)state;
	for (size_t size = 0; size <= sizeof(data); size++) {
		struct nt_field_input in = input_of(data, size), part;

		assert_false(nt_field_read_part(&in, &part));
		assert_true(in.at <= in.end);
	}
	for (size_t size = 0; size <= sizeof(huge); size++) {
		struct nt_field_input in = input_of(huge, size), part;

		assert_false(nt_field_read_part(&in, &part));
		assert_true(in.at <= in.end);
	}
}

static void a_length_has_five_bytes_at_most(void **state)
{
	uint8_t data[8] = {0x80, 0x80, 0x80, 0x80, 0x00};
	struct nt_field_input in = input_of(data, sizeof(data)), part;

	(void)state;
	assert_true(nt_field_read_part(&in, &part));
	data[4] = 0x80;
	in = input_of(data, sizeof(data));
	assert_false(nt_field_read_part(&in, &part));
}

static void eight_bytes_are_a_number_and_seven_are_none(void **state)
{
	static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct nt_field_input in = input_of(data, sizeof(data));
	uint64_t value = 7;

	(void)state;
	assert_true(nt_field_read_eight(&in, &value));
	assert_true(value == 0x0807060504030201ULL);
	assert_int_equal(nt_field_left(&in), 0);
	in = input_of(data, sizeof(data) - 1);
	value = 7;
	assert_false(nt_field_read_eight(&in, &value));
	assert_true(value == 7);
}

static void what_is_skipped_must_be_there(void **state)
{
	static const uint8_t data[] = {1, 2, 3, 4};
	struct nt_field_input in = input_of(data, sizeof(data));

	(void)state;
	assert_false(nt_field_skip(&in, 5));
	assert_true(nt_field_skip(&in, 4));
	assert_false(nt_field_skip(&in, 1));
	assert_true(nt_field_skip(&in, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_ends_where_its_length_says),
		cmocka_unit_test(a_part_that_ends_behind_its_message_is_refused),
		cmocka_unit_test(a_length_has_five_bytes_at_most),
		cmocka_unit_test(eight_bytes_are_a_number_and_seven_are_none),
		cmocka_unit_test(what_is_skipped_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
