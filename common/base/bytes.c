/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/bytes.h"

bool nt_varint_get_long(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
	const uint8_t *from = *at;
	uint64_t value = 0;

	for (unsigned int i = 0; i < NT_VARINT_MAX && from < end; i++) {
		const uint8_t byte = *from++;

		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		if (i == NT_VARINT_MAX - 1 && byte > 1)
			return false; /* more than 64 bits */
		*at = from;
		*ret_value = value;
		return true;
	}
	return false;
}

size_t nt_varint_put(uint8_t out[NT_VARINT_MAX], uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (uint8_t)(value | 0x80);
	out[n++] = (uint8_t)value;
	return n;
}
