/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/term/text.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "common/base/utf8.h"

/* ---- the terminal ---------------------------------------------------------------------------- */

bool nt_text_locale_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool nt_text_takes_colours(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

const char *nt_style_sequence(enum nt_style style)
{
	static const char *const sequences[NT_STYLE_END] = {
		[NT_STYLE_PLAIN] = "",           [NT_STYLE_GOOD] = "\033[32m",
		[NT_STYLE_WARNING] = "\033[33m", [NT_STYLE_BAD] = "\033[31;1m",
		[NT_STYLE_DIM] = "\033[2m",      [NT_STYLE_HEAD] = "\033[1m",
		[NT_STYLE_SELECTED] = "\033[7m",
	};

	return sequences[style];
}

/* ---- characters ------------------------------------------------------------------------------ */

static locale_t utf8_locale;
static pthread_once_t utf8_locale_once = PTHREAD_ONCE_INIT;

static void make_utf8_locale(void)
{
	utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* The locale's table of widths, whatever the locale of the process is. -1: not printable. */
static int columns_of_code(uint32_t code)
{
	locale_t before;
	int columns;

	if (code < 0x7f)
		return code < 0x20 ? -1 : 1;
	if (code < 0xa0) /* DEL and C1: with no locale, too */
		return -1;
	(void)pthread_once(&utf8_locale_once, make_utf8_locale);
	if (!utf8_locale)
		return 1;
	before = uselocale(utf8_locale);
	columns = wcwidth((wchar_t)code);
	(void)uselocale(before);
	return columns;
}

/* The character of length bytes at text, which is valid UTF-8. */
static uint32_t decode(const char *text, size_t length)
{
	static const unsigned char masks[] = {0x00, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)text[0] & masks[length];

	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

/* Characters that change the direction of what follows, end a line, or are invisible. */
static bool deceives(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00ad, 0x00ad}, {0x061c, 0x061c}, {0x115f, 0x1160},   {0x180e, 0x180e},
		{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},
		{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

char *nt_text_defuse(char *text)
{
	size_t len = strlen(text), to = 0;

	for (size_t from = 0; from < len;) {
		size_t length = nt_utf8_length(text + from, len - from);
		uint32_t code = length ? decode(text + from, length) : 0;

		if (!length || deceives(code) || columns_of_code(code) < 0) {
			text[to++] = '?';
			from += length ? length : 1;
			continue;
		}
		memmove(text + to, text + from, length);
		to += length;
		from += length;
	}
	text[to] = '\0';
	return text;
}

static bool is_style_byte(char c)
{
	return c > 0 && c <= NT_STYLE_END;
}

/* Columns of the character at text, whose length in bytes is set. */
static size_t next_columns(const char *text, size_t *ret_length)
{
	size_t length = 1;
	int columns;

	if (is_style_byte(*text)) {
		*ret_length = 1;
		return 0;
	}
	while (length < 4 && ((unsigned char)text[length] & 0xc0) == 0x80)
		length++;
	*ret_length = length;
	columns = columns_of_code(decode(text, length));
	return columns < 0 ? 1 : (size_t)columns;
}

size_t nt_text_fit(const char *text, size_t columns, size_t *ret_columns)
{
	size_t used = 0, bytes = 0;

	while (text[bytes]) {
		size_t length, wide = next_columns(text + bytes, &length);

		if (used + wide > columns)
			break;
		used += wide;
		bytes += length;
	}
	*ret_columns = used;
	return bytes;
}

size_t nt_text_columns(const char *text)
{
	size_t columns;

	(void)nt_text_fit(text, SIZE_MAX, &columns);
	return columns;
}

/* The characters that the programs themselves print. */
static char ascii_of(uint32_t code)
{
	switch (code) {
	case 0x00d7: /* × */
		return 'x';
	case 0x2192: /* → */
		return '>';
	case 0x2026: /* … */
		return '~';
	case 0x2588: /* █ */
		return '#';
	case 0x2591: /* ░ */
		return '.';
	case 0x2500: /* ─ */
		return '-';
	default:
		return '?';
	}
}

char *nt_text_ascii(char *text)
{
	size_t to = 0;

	for (size_t from = 0; text[from];) {
		size_t length, columns = next_columns(text + from, &length);
		char c = length == 1 ? text[from] : ascii_of(decode(text + from, length));

		if (length == 1)
			text[to++] = c;
		else
			for (size_t i = 0; i < columns; i++)
				text[to++] = c;
		from += length;
	}
	text[to] = '\0';
	return text;
}

/* ---- lines ----------------------------------------------------------------------------------- */

int nt_text_append_field(struct nt_buf *line, const char *text, size_t columns, bool right)
{
	nt_autofree char *copy = strdup(text);
	size_t used, bytes;
	bool cut;

	if (!copy)
		return -ENOMEM;
	nt_text_defuse(copy);
	cut = nt_text_columns(copy) > columns;
	bytes = nt_text_fit(copy, cut && columns ? columns - 1 : columns, &used);
	if (cut && columns)
		used++;
	return nt_buf_printf(line, "%*s%.*s%s%*s", right ? (int)(columns - used) : 0, "",
			     (int)bytes, copy, cut && columns ? "…" : "",
			     right ? 0 : (int)(columns - used), "");
}

int nt_text_write(const char *line, bool colours, bool utf8, FILE *out)
{
	nt_autofree char *copy = strdup(line);
	bool styled = false;

	if (!copy)
		return -ENOMEM;
	if (!utf8)
		nt_text_ascii(copy);
	for (const char *c = copy; *c; c++) {
		if (!is_style_byte(*c)) {
			(void)fputc(*c, out);
			continue;
		}
		if (!colours)
			continue;
		if (styled)
			(void)fputs("\033[0m", out);
		styled = *c != nt_style_byte(NT_STYLE_PLAIN);
		(void)fputs(nt_style_sequence((enum nt_style)(*c - 1)), out);
	}
	if (styled)
		(void)fputs("\033[0m", out);
	return 0;
}
