/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/utf8.h"

#include <stdint.h>

size_t nt_utf8_length(const char *text, size_t len)
{
	static const struct {
		unsigned char mask, lead;
		size_t length;
		uint32_t least;
	} forms[] = {
		{0x80, 0x00, 1, 0},
		{0xe0, 0xc0, 2, 0x80},
		{0xf0, 0xe0, 3, 0x800},
		{0xf8, 0xf0, 4, 0x10000},
	};
	const unsigned char *byte = (const unsigned char *)text;

	for (size_t i = 0; len && i < sizeof(forms) / sizeof(forms[0]); i++) {
		uint32_t code = byte[0] & (unsigned char)~forms[i].mask;

		if ((byte[0] & forms[i].mask) != forms[i].lead)
			continue;
		if (forms[i].length > len)
			return 0;
		for (size_t k = 1; k < forms[i].length; k++) {
			if ((byte[k] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (byte[k] & 0x3f);
		}
		if (code < forms[i].least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
			return 0;
		return forms[i].length;
	}
	return 0;
}

bool nt_utf8_is_valid(const char *text, size_t len)
{
	while (len) {
		size_t length = nt_utf8_length(text, len);

		if (!length)
			return false;
		text += length;
		len -= length;
	}
	return true;
}
