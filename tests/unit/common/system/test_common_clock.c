/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void time_is_written_as_rfc_3339(void **state)
{
	char text[NT_CLOCK_TEXT];

	(void)state;
	assert_string_equal(nt_clock_format(0, 0, text), "1970-01-01T00:00:00Z");
	assert_string_equal(nt_clock_format(951782400 * NT_SECOND, 0, text),
			    "2000-02-29T00:00:00Z");
	assert_string_equal(nt_clock_format(1234567890 * NT_SECOND + 123456789, 3, text),
			    "2009-02-13T23:31:30.123Z");
	assert_string_equal(nt_clock_format(1234567890 * NT_SECOND + 123456789, 9, text),
			    "2009-02-13T23:31:30.123456789Z");
	assert_string_equal(nt_clock_format(1234567890 * NT_SECOND + 9, 99, text),
			    "2009-02-13T23:31:30.000000009Z");
	assert_string_equal(nt_clock_format(4107542399 * NT_SECOND, 0, text),
			    "2100-02-28T23:59:59Z");
	assert_string_equal(nt_clock_format(4107542400 * NT_SECOND, 0, text),
			    "2100-03-01T00:00:00Z");
	assert_string_equal(nt_clock_format(UINT64_MAX, 9, text), "2554-07-21T23:34:33.709551615Z");
}

static void check_parsed(const char *text, uint64_t want)
{
	uint64_t value = 77;

	assert_int_equal(nt_clock_parse(text, strlen(text), &value), 0);
	assert_true(value == want);
}

static void what_was_written_reads_back(void **state)
{
	char text[NT_CLOCK_TEXT];

	(void)state;
	/* Steps of about 11 days and a bit, so that every date and time of day comes up. */
	for (uint64_t s = 0; s < 18400000000ULL; s += 954321) {
		uint64_t ns = s * NT_SECOND + s % NT_SECOND;

		(void)nt_clock_format(ns, 9, text);
		check_parsed(text, ns);
	}
}

static void offsets_leap_seconds_and_long_fractions_are_read(void **state)
{
	(void)state;
	check_parsed("2009-02-14T01:31:30+02:00", 1234567890 * NT_SECOND);
	check_parsed("2009-02-13T18:01:30.5-05:30", 1234567890 * NT_SECOND + NT_SECOND / 2);
	check_parsed("2016-12-31T23:59:60Z", 1483228800 * NT_SECOND);
	check_parsed("1970-01-01T00:00:00.1234567899999Z", 123456789);
}

static void must_fail(const char *text, int want)
{
	uint64_t value = 77;

	assert_int_equal(nt_clock_parse(text, strlen(text), &value), want);
	assert_int_equal(value, 77);
}

static void what_is_no_such_time_is_refused(void **state)
{
	(void)state;
	must_fail("", -EINVAL);
	must_fail("2009", -EINVAL);
	must_fail("2009-02-13", -EINVAL);
	must_fail("2009-02-13T23:31:30", -EINVAL);
	must_fail("2009-02-13 23:31:30Z", -EINVAL);
	must_fail("2009-02-13T23:31:30.Z", -EINVAL);
	must_fail("2009-02-13T23:31:30Zx", -EINVAL);
	must_fail("2009-02-13T23:31:30+2:00", -EINVAL);
	must_fail("2009-02-13T23:31:30+0200", -EINVAL);
	must_fail("-009-02-13T23:31:30Z", -EINVAL);
	must_fail("2009-02-13T24:00:00Z", -EINVAL);
	must_fail("2009-13-13T23:31:30Z", -EINVAL);
	must_fail("2009-00-13T23:31:30Z", -EINVAL);
	must_fail("2009-02-00T23:31:30Z", -EINVAL);
	must_fail("2009-02-29T23:31:30Z", -EINVAL);
	must_fail("2100-02-29T23:31:30Z", -EINVAL);
	must_fail("1900-02-29T00:00:00Z", -EINVAL);
	must_fail("9999-02-30T00:00:00Z", -EINVAL);
	must_fail("2009-02-13T23:31:30+24:00", -EINVAL);
	must_fail("1969-12-31T23:59:59Z", -ERANGE);
	must_fail("1970-01-01T00:00:00+00:01", -ERANGE);
	must_fail("2554-01-01T00:00:00Z", -ERANGE);
	must_fail("9999-12-31T23:59:59Z", -ERANGE);
}

static void the_leap_day_of_a_fourth_century_exists(void **state)
{
	(void)state;
	check_parsed("2000-02-29T00:00:00Z", 951782400 * NT_SECOND);
}

static void a_pair_reads_both_clocks_at_one_instant(void **state)
{
	uint64_t boot = 0, real = 0, before = nt_clock_boot_ns();

	(void)state;
	nt_clock_pair(&boot, &real);
	assert_true(boot >= before && boot <= nt_clock_boot_ns());
	assert_true(real > 1500000000 * NT_SECOND);
	assert_true(nt_clock_real_ns() >= real);
	assert_true(nt_clock_mono_ns() <= nt_clock_boot_ns());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_written_as_rfc_3339),
		cmocka_unit_test(what_was_written_reads_back),
		cmocka_unit_test(offsets_leap_seconds_and_long_fractions_are_read),
		cmocka_unit_test(what_is_no_such_time_is_refused),
		cmocka_unit_test(the_leap_day_of_a_fourth_century_exists),
		cmocka_unit_test(a_pair_reads_both_clocks_at_one_instant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
