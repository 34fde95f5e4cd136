/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/utf8.h"

/* Of n bytes that are a character. */
static uint32_t decode_character(const unsigned char *text, size_t n)
{
	uint32_t code = n == 1 ? text[0] : text[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (text[i] & 0x3fU);
	return code;
}

/* Also what ends a line or turns the direction of writing: both can forge what a person reads. */
static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

size_t nt_text_clean(const char *text, size_t len, char *out, size_t max)
{
	const unsigned char *in = (const unsigned char *)text;
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t n = nt_utf8_length(text + i, len - i);
		bool keep = n > 0 && !is_control(decode_character(in + i, n));

		if (used + (keep ? n : 1) > max)
			break;
		if (keep)
			memcpy(out + used, text + i, n);
		else
			out[used] = '?';
		used += keep ? n : 1;
		i += n ? n : 1;
	}
	out[used] = '\0';
	return used;
}
