/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Columns of text, and what of it is not printed; keys from the bytes of a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/term/keys.h"
#include "cli/term/text.h"

static void wide_and_combining_characters_are_counted_by_columns(void **state)
{
	size_t used;

	(void)state;
	assert_int_equal(nt_text_columns("abc"), 3);
	assert_int_equal(nt_text_columns("训练任务"), 8);
	assert_int_equal(nt_text_columns("e\u0301"), 1);
	assert_int_equal(nt_text_columns("\x03g\x01"), 1); /* style bytes */
	/* Half of a wide character does not fit. */
	assert_int_equal(nt_text_fit("训练", 3, &used), 3);
	assert_int_equal(used, 2);
	assert_int_equal(nt_text_fit("e\u0301x", 1, &used), 3);
}

static void assert_defused(const char *text, const char *want)
{
	char copy[64];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	assert_string_equal(nt_text_defuse(copy), want);
}

static void nothing_controls_the_terminal(void **state)
{
	(void)state;
	assert_defused("a\033[31mb\x7f\n", "a?[31mb??");
	assert_defused("\xc2\x9b"
		       "31m",
		       "?31m"); /* CSI of eight bits */
	assert_defused("x\xff\xc0\xaf\xed\xa0\x80y", "x??????y");
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that is what is tested */
	assert_defused("a\u202eb\u2066c\u200bd\u2028e", "a?b?c?d?e");
	assert_defused("训练 e\u0301 ×→", "训练 e\u0301 ×→");
	assert_defused("\x01\x06", "??"); /* no style either */
}

static void assert_field(const char *text, size_t columns, bool right, const char *want)
{
	nt_autobuf struct nt_buf line = {0};

	assert_int_equal(nt_text_append_field(&line, text, columns, right), 0);
	assert_string_equal((const char *)line.data, want);
}

static void a_field_is_cut_and_padded_to_its_columns(void **state)
{
	(void)state;
	assert_field("abc", 5, false, "abc  ");
	assert_field("abc", 5, true, "  abc");
	assert_field("abcdef", 5, false, "abcd…");
	assert_field("训练任务", 5, false, "训练…");
	assert_field("训练任务", 4, false, "训… ");
	assert_field("abc", 0, false, "");
}

static void ascii_keeps_the_columns(void **state)
{
	char text[] = "×→█░… 训 ü";

	(void)state;
	assert_string_equal(nt_text_ascii(text), "x>#.~ ?? ?");
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void assert_keys(const char *bytes, size_t len, bool is_over, const char *want)
{
	static const char names[] = {
		[NT_KEY_UP] = 'U',     [NT_KEY_DOWN] = 'D',      [NT_KEY_LEFT] = 'L',
		[NT_KEY_RIGHT] = 'R',  [NT_KEY_PAGE_UP] = 'P',   [NT_KEY_PAGE_DOWN] = 'N',
		[NT_KEY_HOME] = 'H',   [NT_KEY_LAST] = 'E',      [NT_KEY_ENTER] = '\n',
		[NT_KEY_ESCAPE] = '!', [NT_KEY_BACKSPACE] = '<', [NT_KEY_TAB] = '\t',
		[NT_KEY_REDRAW] = '^',
	};
	struct nt_keys keys = {0};
	char got[128] = "";
	struct nt_key key;

	for (size_t at = 0; at < len; at += 5) {
		nt_keys_add(&keys, bytes + at, len - at < 5 ? len - at : 5);
		while (nt_keys_next(&keys, is_over && at + 5 >= len, &key)) {
			if (key.kind == NT_KEY_TEXT)
				(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s",
					       key.text);
			else
				(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%c",
					       names[key.kind]);
		}
	}
	assert_string_equal(got, want);
}

#define KEYS(bytes) bytes, sizeof(bytes) - 1

static void sequences_are_keys(void **state)
{
	(void)state;
	assert_keys(KEYS("a\033[A\033OB\033[5~\033[6~\033[H\033[F\r\n\t\x7f\x0cü"), false,
		    "aUDPNHE\n\n\t<^ü");
	assert_keys(KEYS("\033[1;5C\033[200~x\033OPy"), false, "xy"); /* unknown ones */
	assert_keys(KEYS("\x01\xff\xc3z"), true, "z");
}

static void an_escape_byte_is_a_key_once_nothing_follows(void **state)
{
	(void)state;
	assert_keys(KEYS("\033"), false, "");
	assert_keys(KEYS("\033"), true, "!");
	assert_keys(KEYS("\033["), false, "");
	assert_keys(KEYS("\033["), true, "!");
	assert_keys(KEYS("\033\033[A"), false, "!U");
	assert_keys(KEYS("\033q"), false, "!q");
}

static void a_sequence_without_end_is_discarded(void **state)
{
	struct nt_keys keys = {0};
	char bytes[2 * NT_KEYS_MAX_BYTES];
	struct nt_key key;

	(void)state;
	memset(bytes, '1', sizeof(bytes));
	bytes[0] = '\033';
	bytes[1] = '[';
	nt_keys_add(&keys, bytes, sizeof(bytes));
	assert_int_equal(keys.len, NT_KEYS_MAX_BYTES);
	assert_false(nt_keys_next(&keys, false, &key));
	assert_int_equal(keys.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_and_combining_characters_are_counted_by_columns),
		cmocka_unit_test(nothing_controls_the_terminal),
		cmocka_unit_test(a_field_is_cut_and_padded_to_its_columns),
		cmocka_unit_test(ascii_keeps_the_columns),
		cmocka_unit_test(sequences_are_keys),
		cmocka_unit_test(an_escape_byte_is_a_key_once_nothing_follows),
		cmocka_unit_test(a_sequence_without_end_is_discarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
