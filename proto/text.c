/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the character at text, or 0 where there is no valid one. */
static size_t decode_character(const unsigned char *text, size_t len, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t code;
	size_t n;

	if (text[0] < 0x80) {
		*ret_code = text[0];
		return 1;
	}
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	n = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
	if (len < n)
		return 0;
	code = text[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3fU);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
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
		uint32_t code = 0;
		size_t n = decode_character(in + i, len - i, &code);
		bool keep = n > 0 && !is_control(code);

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
