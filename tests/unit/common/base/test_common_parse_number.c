/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/parse_number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/clock.h"

/* Each is refused, and the output keeps what it held. */
static void u64_must_fail(const char *text, int want)
{
	uint64_t value = 77;

	assert_int_equal(nt_parse_u64(text, strlen(text), 2, 1000, &value), want);
	assert_int_equal(value, 77);
}

static void a_whole_number_is_all_of_the_text_or_nothing(void **state)
{
	(void)state;
	u64_must_fail("", -EINVAL);
	u64_must_fail("12abc", -EINVAL);
	u64_must_fail(" 12", -EINVAL);
	u64_must_fail("12 ", -EINVAL);
	u64_must_fail("+12", -EINVAL);
	u64_must_fail("-12", -EINVAL);
	u64_must_fail("0x12", -EINVAL);
	u64_must_fail("1e2", -EINVAL);
	u64_must_fail("12.0", -EINVAL);
}

static void a_number_outside_its_range_is_erange(void **state)
{
	(void)state;
	u64_must_fail("1", -ERANGE);
	u64_must_fail("1001", -ERANGE);
	u64_must_fail("18446744073709551616", -ERANGE);
	u64_must_fail("99999999999999999999999999999999999999", -ERANGE);
	u64_must_fail("99999999999999999999999999999999999999x", -EINVAL);
}

static void the_bounds_themselves_are_inside(void **state)
{
	uint64_t value = 0;
	uint32_t small = 0;

	(void)state;
	assert_int_equal(nt_parse_u64("2", 1, 2, 1000, &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(nt_parse_u64("1000", 4, 2, 1000, &value), 0);
	assert_int_equal(value, 1000);
	assert_int_equal(nt_parse_u64("18446744073709551615", 20, 0, UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(nt_parse_u32("4294967295", 10, 0, UINT32_MAX, &small), 0);
	assert_true(small == UINT32_MAX);
	assert_int_equal(nt_parse_u32("4294967296", 10, 0, UINT32_MAX, &small), -ERANGE);
}

static void the_length_ends_the_number_not_a_nul(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(nt_parse_u64("1234", 2, 0, 1000, &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(nt_parse_u64("12\0", 3, 0, 1000, &value), -EINVAL);
}

static void hexadecimal_is_digits_alone(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(nt_parse_hex("fF09", 4, UINT64_MAX, &value), 0);
	assert_int_equal(value, 0xff09);
	assert_int_equal(nt_parse_hex("ffffffffffffffff", 16, UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(nt_parse_hex("10000000000000000", 17, UINT64_MAX, &value), -ERANGE);
	assert_int_equal(nt_parse_hex("0x10", 4, UINT64_MAX, &value), -EINVAL);
	assert_int_equal(nt_parse_hex("10g", 3, UINT64_MAX, &value), -EINVAL);
	assert_int_equal(nt_parse_hex("11", 2, 0x10, &value), -ERANGE);
}

static void double_must_fail(const char *text, int want)
{
	double value = 77;

	assert_int_equal(nt_parse_double(text, strlen(text), -1e300, 1e300, &value), want);
	assert_true(value == 77);
}

static void a_fraction_is_decimal_and_finite(void **state)
{
	double value = 0;

	(void)state;
	double_must_fail("", -EINVAL);
	double_must_fail(".", -EINVAL);
	double_must_fail("inf", -EINVAL);
	double_must_fail("nan", -EINVAL);
	double_must_fail("0x1p3", -EINVAL);
	double_must_fail(" 1", -EINVAL);
	double_must_fail("1 ", -EINVAL);
	double_must_fail("1e", -EINVAL);
	double_must_fail("1e+", -EINVAL);
	double_must_fail("1.2.3", -EINVAL);
	double_must_fail("1,5", -EINVAL);
	double_must_fail("1e999", -ERANGE);
	double_must_fail("1.00000000000000000000000000000000000000000000000000000000000000000000",
			 -EINVAL);

	assert_int_equal(nt_parse_double("-1.5e-2", 7, -1, 1, &value), 0);
	assert_true(value == -0.015);
	assert_int_equal(nt_parse_double(".5", 2, 0, 1, &value), 0);
	assert_true(value == 0.5);
	assert_int_equal(nt_parse_double("1.01", 4, 0, 1, &value), -ERANGE);
}

static void sizes_are_powers_of_1024(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(nt_parse_size("4096", 4, 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(nt_parse_size("64K", 3, 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 65536);
	assert_int_equal(nt_parse_size("1.5M", 4, 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 3 << 19);
	assert_int_equal(nt_parse_size("16777216T", 9, 0, UINT64_MAX, &value), -ERANGE);
	assert_int_equal(nt_parse_size("1.5", 3, 0, UINT64_MAX, &value), -EINVAL);
	assert_int_equal(nt_parse_size("1KB", 3, 0, UINT64_MAX, &value), -EINVAL);
	assert_int_equal(nt_parse_size("1k", 2, 0, UINT64_MAX, &value), -EINVAL);
	assert_int_equal(nt_parse_size("K", 1, 0, UINT64_MAX, &value), -EINVAL);
	assert_int_equal(nt_parse_size("1M", 2, 0, 1 << 19, &value), -ERANGE);
	assert_int_equal(value, 3 << 19);
}

static void durations_need_a_unit(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(nt_parse_duration("250ms", 5, 0, NT_MINUTE, &value), 0);
	assert_int_equal(value, 250 * NT_MILLISECOND);
	assert_int_equal(nt_parse_duration("1.5s", 4, 0, NT_MINUTE, &value), 0);
	assert_int_equal(value, 1500 * NT_MILLISECOND);
	assert_int_equal(nt_parse_duration("1m", 2, 0, NT_MINUTE, &value), 0);
	assert_int_equal(value, NT_MINUTE);
	assert_int_equal(nt_parse_duration("7d", 2, 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 7 * NT_DAY);
	assert_int_equal(nt_parse_duration("0", 1, 0, NT_MINUTE, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(nt_parse_duration("5", 1, 0, NT_MINUTE, &value), -EINVAL);
	assert_int_equal(nt_parse_duration("61s", 3, 0, NT_MINUTE, &value), -ERANGE);
	assert_int_equal(nt_parse_duration("1.5ns", 5, 0, NT_MINUTE, &value), -EINVAL);
	assert_int_equal(nt_parse_duration("1.s", 3, 0, NT_MINUTE, &value), -EINVAL);
	assert_int_equal(nt_parse_duration("999999999999d", 13, 0, UINT64_MAX, &value), -ERANGE);
	assert_int_equal(nt_parse_duration("0.00000000000000000000001s", 26, 0, NT_MINUTE, &value),
			 -EINVAL);
	assert_int_equal(nt_parse_duration("", 0, 0, NT_MINUTE, &value), -EINVAL);
}

static void what_is_formatted_reads_back(void **state)
{
	static const uint64_t values[] = {
		0,        1,          999,         1000,           1024,       1536,
		65536,    1 << 20,    1ULL << 40,  NT_SECOND,      NT_MINUTE,  NT_DAY,
		90000000, UINT64_MAX, 3 * NT_HOUR, NT_MILLISECOND, 1500000000,
	};
	char text[NT_PARSE_TEXT];
	uint64_t value = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		(void)nt_format_size(values[i], text);
		assert_int_equal(nt_parse_size(text, strlen(text), 0, UINT64_MAX, &value), 0);
		assert_true(value == values[i]);
		(void)nt_format_duration(values[i], text);
		assert_int_equal(nt_parse_duration(text, strlen(text), 0, UINT64_MAX, &value), 0);
		assert_true(value == values[i]);
	}
	assert_string_equal(nt_format_size(64 << 10, text), "64K");
	assert_string_equal(nt_format_duration(90 * NT_SECOND, text), "90s");
}

static void a_hundred_percent_is_all_of_it(void **state)
{
	(void)state;
	assert_int_equal(nt_parse_percent(1.0), 100);
	assert_int_equal(nt_parse_percent(1.5), 100);
	assert_int_equal(nt_parse_percent(0.999999), 99);
	assert_int_equal(nt_parse_percent(nextafter(1.0, 0.0)), 99);
	assert_int_equal(nt_parse_percent(0.989), 98);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(nt_parse_percent(i / 100.0), i);
	assert_int_equal(nt_parse_percent(0.009), 0);
	assert_int_equal(nt_parse_percent(-1.0), 0);
	assert_int_equal(nt_parse_percent(NAN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_number_is_all_of_the_text_or_nothing),
		cmocka_unit_test(a_number_outside_its_range_is_erange),
		cmocka_unit_test(the_bounds_themselves_are_inside),
		cmocka_unit_test(the_length_ends_the_number_not_a_nul),
		cmocka_unit_test(hexadecimal_is_digits_alone),
		cmocka_unit_test(a_fraction_is_decimal_and_finite),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(durations_need_a_unit),
		cmocka_unit_test(what_is_formatted_reads_back),
		cmocka_unit_test(a_hundred_percent_is_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
