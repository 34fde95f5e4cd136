/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/utf8.h"

/* Decodes a character of n bytes. */
static uint32_t decode_character(const unsigned char *text, size_t n)
{
	uint32_t code = n == 1 ? text[0] : text[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (text[i] & 0x3fU);
	return code;
}

/* Also line ends and direction overrides: both can forge displayed text. */
static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

/* Copies whole words of printable ASCII, which almost all text is. */
static size_t copy_plain(const char *text, size_t len, char *out)
{
	const uint64_t ones = 0x0101010101010101;
	size_t used = 0;
	uint64_t word;

	for (; len - used >= sizeof(word); used += sizeof(word)) {
		memcpy(&word, text + used, sizeof(word));
		/* 0x20 and above has one of two bits set; above 0x7e, one more sets the highest. */
		if (((word | word >> 1) & 0x20 * ones) != 0x20 * ones ||
		    ((word | (word + ones)) & 0x80 * ones))
			break;
		memcpy(out + used, text + used, sizeof(word));
	}
	return used;
}

size_t nt_text_clean(const char *text, size_t len, char *out, size_t max)
{
	const unsigned char *in = (const unsigned char *)text;
	size_t used = copy_plain(text, len < max ? len : max, out);

	for (size_t i = used; i < len;) {
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
