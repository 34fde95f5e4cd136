/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays, rows and columns that are decoded directly. */
#include "tests/unit/proto/wire_ways.h"

/* ---- arrays ---------------------------------------------------------------------------------- */

static void put_packed(struct nt_buf *buf, uint32_t field, uint32_t n)
{
	nt_autobuf struct nt_buf numbers = {0};

	for (uint32_t i = 0; i < n; i++)
		put_varint(&numbers, i);
	put_bytes(buf, field, numbers.data, numbers.len);
}

static void pairs_are_as_long_as_each_other(void **state)
{
	(void)state;
	for (uint32_t own = 0; own < 4; own++) {
		for (uint32_t duration = 0; duration < 4; duration++) {
			nt_autobuf struct nt_buf steps = {0}, sketch = {0};

			if (own)
				put_packed(&steps, WINDOW_STEP_OWN, own);
			if (duration)
				put_packed(&steps, WINDOW_STEP_DURATION, duration);
			wrap(&steps, ENVELOPE_WINDOW);
			assert_int_equal(check_both(&steps), own == duration);
			if (own)
				put_packed(&sketch, SKETCH_BUCKET, own);
			if (duration)
				put_packed(&sketch, SKETCH_COUNT, duration);
			wrap(&sketch, PEER_DURATION);
			wrap(&sketch, WINDOW_PEER);
			wrap(&sketch, ENVELOPE_WINDOW);
			assert_int_equal(check_both(&sketch), own == duration);
			if (own != duration) {
				assert_refused(&steps);
				assert_refused(&sketch);
			}
		}
	}
}

/* Of packed numbers the last must end with them. */
static void numbers_that_are_cut_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		bool taken;
	} packed[] = {
		{"", 0, true},
		{"\x01", 1, true},
		{"\x80", 1, false},
		{"\x80\x80", 2, false},
		{"\x01\x80", 2, false},
		{"\x80\x01", 2, true},
		{"\x01\x80\x00", 3, true},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		nt_autobuf struct nt_buf bytes = {0};

		put_bytes(&bytes, DETAIL_WORD, packed[i].bytes, packed[i].size);
		wrap(&bytes, ENVELOPE_DETAIL);
		assert_int_equal(check_both(&bytes), packed[i].taken);
		if (!packed[i].taken)
			assert_refused(&bytes);
	}
}

static void rows_that_do_not_follow_one_another_go_the_long_way(void **state)
{
	nt_autobuf struct nt_buf together = {0}, apart = {0}, cut = {0};

	(void)state;
	put_bytes(&together, NODE_JOB, "a", 1);
	put_bytes(&together, NODE_JOB, "b", 1);
	wrap(&together, ENVELOPE_NODE);
	assert_true(check_both(&together));
	put_bytes(&apart, NODE_METRIC, "", 0);
	put_bytes(&apart, NODE_JOB, "a", 1);
	put_bytes(&apart, NODE_METRIC, "", 0);
	wrap(&apart, ENVELOPE_NODE);
	assert_false(goes_directly(&apart));
	put_bytes(&cut, NODE_JOB, "a", 1);
	put_varint(&cut, NODE_JOB << 3 | 2);
	put_varint(&cut, 2);
	add(&cut, "b", 1);
	wrap(&cut, ENVELOPE_NODE);
	assert_false(goes_directly(&cut));
	assert_refused(&cut);
}

/* ---- columns --------------------------------------------------------------------------------- */

static void put_column(struct nt_buf *buf, uint32_t field, uint32_t n, uint64_t first)
{
	nt_autobuf struct nt_buf numbers = {0};

	for (uint32_t i = 0; i < n; i++)
		put_varint(&numbers, i ? 2 : first);
	put_bytes(buf, field, numbers.data, numbers.len);
}

static bool samples_go_directly(struct nt_buf *columns)
{
	wrap(columns, WINDOW_SAMPLE_COLUMNS);
	wrap(columns, ENVELOPE_WINDOW);
	return check_both(columns);
}

static void columns_ascend_and_are_of_one_length(void **state)
{
	nt_autobuf struct nt_buf good = {0}, uneven = {0}, empty = {0}, twice = {0}, turned = {0};
	nt_autobuf struct nt_buf unknown = {0}, none = {0}, cut = {0};

	(void)state;
	put_column(&good, SAMPLE_COLUMNS_COMM, 3, 2);
	put_column(&good, SAMPLE_COLUMNS_NUMBER, 3, 2);
	put_column(&good, SAMPLE_COLUMNS_OP, 3, 2);
	assert_true(samples_go_directly(&good));
	put_column(&uneven, SAMPLE_COLUMNS_COMM, 3, 2);
	put_column(&uneven, SAMPLE_COLUMNS_NUMBER, 2, 2);
	assert_false(samples_go_directly(&uneven));
	assert_refused(&uneven);
	put_column(&empty, SAMPLE_COLUMNS_COMM, 3, 2);
	put_column(&empty, SAMPLE_COLUMNS_NUMBER, 0, 2);
	assert_false(samples_go_directly(&empty));
	put_column(&twice, SAMPLE_COLUMNS_COMM, 3, 2);
	put_column(&twice, SAMPLE_COLUMNS_COMM, 3, 2);
	assert_false(samples_go_directly(&twice));
	put_column(&turned, SAMPLE_COLUMNS_NUMBER, 3, 2);
	put_column(&turned, SAMPLE_COLUMNS_COMM, 3, 2);
	assert_false(samples_go_directly(&turned));
	put_column(&unknown, 15, 3, 2);
	assert_false(samples_go_directly(&unknown));
	assert_true(samples_go_directly(&none));
	put_bytes(&cut, SAMPLE_COLUMNS_COMM, "\x02\x80", 2);
	assert_false(samples_go_directly(&cut));
	assert_refused(&cut);
}

static void rows_are_told_in_one_form_alone(void **state)
{
	nt_autobuf struct nt_buf columns = {0}, both = {0};

	(void)state;
	put_column(&columns, SAMPLE_COLUMNS_NUMBER, 1, 2);
	put_bytes(&both, WINDOW_SAMPLE, "", 0);
	put_bytes(&both, WINDOW_SAMPLE_COLUMNS, columns.data, columns.len);
	wrap(&both, ENVELOPE_WINDOW);
	assert_false(goes_directly(&both));
	assert_refused(&both);
}

/* Differences are zigzagged: 2 is one more, 1 is one less. */
static void a_short_number_of_a_column_has_32_bits(void **state)
{
	static const struct {
		uint64_t first;
		bool taken;
	} numbers[] = {
		{2ull * UINT32_MAX, true},
		{2ull * UINT32_MAX + 2, false},
		{1, false}, /* -1 */
		{0, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		nt_autobuf struct nt_buf type = {0}, op = {0}, number = {0};

		put_column(&type, SIGNATURE_COLUMNS_TYPE, 1, numbers[i].first);
		wrap(&type, COMM_RECENT_COLUMNS);
		wrap(&type, WINDOW_COMM);
		wrap(&type, ENVELOPE_WINDOW);
		assert_int_equal(check_both(&type), numbers[i].taken);
		put_column(&op, SAMPLE_COLUMNS_OP, 1, numbers[i].first);
		assert_int_equal(samples_go_directly(&op), numbers[i].taken);
		/* A long one has 64. */
		put_column(&number, SAMPLE_COLUMNS_NUMBER, 1, numbers[i].first);
		assert_true(samples_go_directly(&number));
		if (!numbers[i].taken) {
			assert_refused(&type);
			assert_refused(&op);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_are_as_long_as_each_other),
		cmocka_unit_test(numbers_that_are_cut_are_refused),
		cmocka_unit_test(rows_that_do_not_follow_one_another_go_the_long_way),
		cmocka_unit_test(columns_ascend_and_are_of_one_length),
		cmocka_unit_test(rows_are_told_in_one_form_alone),
		cmocka_unit_test(a_short_number_of_a_column_has_32_bits),
	};

	golden_fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
