/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *in, *out;
} cases[] = {
	{"", ""},
	{"plain ~ text", "plain ~ text"},
	{"\t\n\r\x1b[0m\x7f", "?"
			      "?"
			      "?"
			      "?[0m"
			      "?"},
	{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
	 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
	{"\xc2\x80\xc2\x9f\xc2\xa0", "?"
				     "?"
				     "\xc2\xa0"}, /* C1 controls; a no-break space */
	{"\xe2\x80\xa8\xe2\x80\xa9", "?"
				     "?"}, /* line and paragraph separators */
	{"a\xe2\x80\xaez\xe2\x81\xa6z\xe2\x80\x8fz\xd8\x9cz", "a?z?z?z?z"}, /* directions */
	{"\xef\xbb\xbf"
	 "bom",
	 "?bom"},
	{"\x80\xbf", "?"
		     "?"}, /* stray continuations */
	{"\xc0\xaf\xe0\x80\xaf", "?"
				 "?"
				 "?"
				 "?"
				 "?"}, /* long forms */
	{"\xed\xa0\x80", "?"
			 "?"
			 "?"}, /* a surrogate */
	{"\xf4\x90\x80\x80\xf5", "?"
				 "?"
				 "?"
				 "?"
				 "?"}, /* over U+10FFFF */
	{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
	{"\xe2\x82", "?"
		     "?"}, /* cut off */
};

static void text_is_clean_afterwards(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[64], again[64];
		size_t len = nt_text_clean(cases[i].in, strlen(cases[i].in), out, 63);

		assert_int_equal(len, strlen(cases[i].out));
		assert_string_equal(out, cases[i].out);
		/* What is clean stays as it is. */
		assert_int_equal(nt_text_clean(out, len, again, 63), len);
		assert_string_equal(again, out);
	}
}

static void text_is_cut_between_characters_and_never_over_the_limit(void **state)
{
	static const char in[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80!";
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

	(void)state;
	for (size_t max = 0; max < sizeof(want) / sizeof(want[0]); max++) {
		char out[16];

		memset(out, 'x', sizeof(out));
		assert_int_equal(nt_text_clean(in, strlen(in), out, max), want[max]);
		assert_int_equal(strlen(out), want[max]);
		assert_memory_equal(out, in, want[max]);
		assert_int_equal(out[max + 1], 'x');
	}
}

static void a_nul_inside_is_a_control_character(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(nt_text_clean("a\0b", 3, out, 7), 3);
	assert_string_equal(out, "a?b");
}

/* Where text is looked at in words, a byte that is none must not hide in one. */
static void one_bad_byte_is_found_wherever_it_is(void **state)
{
	static const unsigned char bad[] = {0x01, 0x1f, 0x7f, 0x80, 0xff};
	char in[40], out[sizeof(in)];

	(void)state;
	for (size_t i = 0; i < sizeof(bad); i++)
		for (size_t at = 0; at + 1 < sizeof(in); at++) {
			memset(in, '~', sizeof(in) - 1);
			in[sizeof(in) - 1] = '\0';
			in[at] = (char)bad[i];
			assert_int_equal(nt_text_clean(in, sizeof(in) - 1, out, sizeof(out) - 1),
					 sizeof(in) - 1);
			in[at] = '?';
			assert_string_equal(out, in);
		}
}

static void plain_text_is_cut_at_any_length(void **state)
{
	const char *in = "0123456789 abcdefghij";
	char out[32];

	(void)state;
	for (size_t max = 0; max <= strlen(in); max++) {
		memset(out, 'x', sizeof(out));
		assert_int_equal(nt_text_clean(in, strlen(in), out, max), max);
		assert_int_equal(strlen(out), max);
		assert_memory_equal(out, in, max);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_clean_afterwards),
		cmocka_unit_test(one_bad_byte_is_found_wherever_it_is),
		cmocka_unit_test(plain_text_is_cut_at_any_length),
		cmocka_unit_test(text_is_cut_between_characters_and_never_over_the_limit),
		cmocka_unit_test(a_nul_inside_is_a_control_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
