/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers as bytes: bounds, ends, and what is refused. */
#include "tests/unit/detect/detect_frames.h"

#include <errno.h>

#include "common/base/codec.h"

static struct nt_codec load_of(const void *data, size_t size)
{
	return (struct nt_codec){.loads = true, .in = data, .in_size = size};
}

static void a_number_passes_at_its_bound_and_is_refused_beyond(void **state)
{
	static const uint64_t most[] = {0, 1, 2, 127, 128, 255, 16383, UINT32_MAX, 1ull << 63};

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		for (uint64_t more = 0; more < 2; more++) {
			nt_autobuf struct nt_buf buf = {0};
			struct nt_codec out = {.out = &buf}, in;
			uint64_t value = most[i] + more, got = 42;

			nt_code_number(&out, &value, most[i]);
			assert_int_equal(out.error, 0);
			in = load_of(buf.data, buf.len);
			nt_code_number(&in, &got, most[i]);
			assert_int_equal(in.error, more ? -EBADMSG : 0);
			assert_true(got == (more ? 0 : value));
		}
	}
}

static void the_tenth_byte_of_a_number_has_one_bit(void **state)
{
	uint8_t data[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00};
	struct nt_codec in = load_of(data, sizeof(data));
	uint64_t value = 0;

	(void)state;
	nt_code_u64(&in, &value);
	assert_int_equal(in.error, 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(in.at, 10);
	for (uint8_t last = 2; last; last = (uint8_t)(last << 1)) {
		data[9] = last;
		in = load_of(data, sizeof(data));
		nt_code_u64(&in, &value);
		assert_int_equal(in.error, -EBADMSG);
		assert_true(value == 0);
	}
}

/* In memory that ends where the input does, for the sanitizers to see. */
static void behind_the_end_is_nothing(void **state)
{
	(void)state;
	for (size_t size = 0; size < 9; size++) {
		uint8_t *exact = malloc(size ? size : 1);
		struct nt_codec in;
		uint64_t word = 7;
		uint32_t count = 7;
		double real = 7.0;

		assert_non_null(exact);
		memset(exact, 0x81, size);
		in = load_of(exact, size);
		nt_code_u64(&in, &word);
		assert_int_equal(in.error, -EBADMSG);
		assert_int_equal(in.at, size);
		assert_true(word == 0);
		in = load_of(exact, size);
		nt_code_count(&in, &count, UINT32_MAX);
		assert_int_equal(in.error, -EBADMSG);
		assert_int_equal(count, 0);
		if (size)
			exact[0] = 1;
		/* One byte says that eight follow. */
		in = load_of(exact, size);
		nt_code_real(&in, &real);
		assert_int_equal(in.error, -EBADMSG);
		assert_int_equal(in.at, size);
		assert_true(real == 0.0);
		if (size < 8) {
			word = 7;
			in = load_of(exact, size);
			nt_code_fixed(&in, &word);
			assert_int_equal(in.error, -EBADMSG);
			assert_true(word == 0);
		}
		free(exact);
	}
}

static void yes_and_no_are_one_and_zero(void **state)
{
	static const uint8_t data[] = {0, 1, 2};

	(void)state;
	for (uint8_t i = 0; i < 3; i++) {
		struct nt_codec in = load_of(&data[i], 1);
		bool value = i != 1;

		nt_code_bool(&in, &value);
		assert_int_equal(in.error, i > 1 ? -EBADMSG : 0);
		assert_int_equal(value, i == 1);
	}
}

static void numbers_with_a_sign_come_back(void **state)
{
	static const int32_t values[] = {0, 1, -1, INT32_MAX, INT32_MIN};
	static const double reals[] = {0.0, -0.0, 1.0, -1e300, 5e-324};
	static const uint64_t fixed[] = {0, 1, 0x0123456789abcdefull, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		nt_autobuf struct nt_buf buf = {0};
		struct nt_codec out = {.out = &buf}, in;
		int32_t value = values[i], got = 7;
		double real = reals[i], got_real = 7.0;
		uint64_t word = fixed[i % 4], got_word = 7;

		nt_code_i32(&out, &value);
		nt_code_real(&out, &real);
		nt_code_fixed(&out, &word);
		in = load_of(buf.data, buf.len);
		nt_code_i32(&in, &got);
		nt_code_real(&in, &got_real);
		nt_code_fixed(&in, &got_word);
		assert_int_equal(in.error, 0);
		assert_int_equal(in.at, in.in_size);
		assert_int_equal(got, value);
		assert_memory_equal(&got_real, &real, sizeof(real));
		assert_true(got_word == word);
	}
}

static void so_many_elements_as_bytes_follow_may_be_told_of(void **state)
{
	static const uint8_t data[] = {3, 0, 0, 0};
	uint32_t count = 0;

	(void)state;
	for (size_t size = 1; size <= sizeof(data); size++) {
		struct nt_codec in = load_of(data, size);

		count = 42;
		nt_code_count(&in, &count, 3);
		assert_int_equal(in.error, size == sizeof(data) ? 0 : -EBADMSG);
		assert_int_equal(count, size == sizeof(data) ? 3 : 0);
	}
	for (uint32_t most = 2; most < 5; most++) {
		struct nt_codec in = load_of(data, sizeof(data));

		nt_code_count(&in, &count, most);
		assert_int_equal(in.error, most < 3 ? -EBADMSG : 0);
	}
}

static void the_first_error_sticks(void **state)
{
	static const uint8_t data[] = {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct nt_codec in = load_of(data, sizeof(data)), out = {.loads = false};
	uint64_t word = 7;
	uint32_t small = 7;
	double real = 7.0;
	bool yes = true;

	(void)state;
	nt_code_bool(&in, &yes);
	assert_int_equal(in.error, -EBADMSG);
	in.error = -ENOMEM;
	nt_code_fail(&in, true);
	assert_int_equal(in.error, -ENOMEM);
	yes = true;
	nt_code_bool(&in, &yes);
	nt_code_u32(&in, &small, UINT32_MAX);
	nt_code_real(&in, &real);
	nt_code_fixed(&in, &word);
	assert_int_equal(in.at, 1);
	assert_false(yes);
	assert_int_equal(small, 0);
	assert_true(real == 0.0);
	assert_true(word == 0);
	/* Saving breaks no rule. */
	nt_code_fail(&out, true);
	assert_int_equal(out.error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_passes_at_its_bound_and_is_refused_beyond),
		cmocka_unit_test(the_tenth_byte_of_a_number_has_one_bit),
		cmocka_unit_test(behind_the_end_is_nothing),
		cmocka_unit_test(yes_and_no_are_one_and_zero),
		cmocka_unit_test(numbers_with_a_sign_come_back),
		cmocka_unit_test(so_many_elements_as_bytes_follow_may_be_told_of),
		cmocka_unit_test(the_first_error_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
