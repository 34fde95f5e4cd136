/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/ascii.h"

static void what_does_not_print_is_a_question_mark(void **state)
{
	static const char all[] = "a\x01\x1f ~\x7f\x80\xff";
	char to[16];

	(void)state;
	nt_ascii_copy(to, sizeof(to), all, sizeof(all)); /* the NUL, too */
	assert_string_equal(to, "a?? ~????");
	nt_ascii_copy_text(to, sizeof(to), all);
	assert_string_equal(to, "a?? ~???");
}

static void a_text_is_cut_where_the_room_ends(void **state)
{
	char to[6] = "......";

	(void)state;
	nt_ascii_copy(to, 5, "abcdef", 6);
	assert_memory_equal(to, "abcd\0.", 6);
	nt_ascii_copy_text(to, 5, "abcdef");
	assert_string_equal(to, "abcd");
	nt_ascii_copy(to, 5, "abcd", 4);
	assert_string_equal(to, "abcd");
	nt_ascii_copy_text(to, 1, "a");
	assert_string_equal(to, "");
}

static void a_blank_is_not_visible(void **state)
{
	static const char *const hidden[] = {"a b", "\t", "a\x7f", "\xc3\xa9"};

	(void)state;
	assert_true(nt_ascii_is_visible("!a~", 3));
	assert_true(nt_ascii_is_visible("", 0));
	assert_true(nt_ascii_is_visible("a b", 1));
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_false(nt_ascii_is_visible(hidden[i], strlen(hidden[i])));
}

static void words_are_cut_off_one_by_one(void **state)
{
	static const char text[] = "  cpu  7 \n";
	const char *line = text, *word;
	size_t len = strlen(text), word_len;

	(void)state;
	assert_true(nt_ascii_cut_word(&line, &len, &word, &word_len));
	assert_int_equal(word_len, 3);
	assert_memory_equal(word, "cpu", 3);
	assert_true(nt_ascii_cut_word(&line, &len, &word, &word_len));
	assert_int_equal(word_len, 1);
	assert_memory_equal(word, "7", 1);
	assert_true(nt_ascii_cut_word(&line, &len, &word, &word_len)); /* only spaces part words */
	assert_memory_equal(word, "\n", 1);
	assert_false(nt_ascii_cut_word(&line, &len, &word, &word_len));
	assert_int_equal(len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_print_is_a_question_mark),
		cmocka_unit_test(a_text_is_cut_where_the_room_ends),
		cmocka_unit_test(a_blank_is_not_visible),
		cmocka_unit_test(words_are_cut_off_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
