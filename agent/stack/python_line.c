/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/python_line.h"

enum {
	NO_LINE = -128, /* of a range in 3.10 */
	ENTRY = 0x80, /* begins an entry from 3.11 on */
	CODE_SHORT_END = 10, /* below: the same line */
	CODE_ONE_LINE_END = 13, /* below: 0 to 2 lines on */
	CODE_NO_COLUMNS = 13,
	CODE_LONG = 14,
	UNIT_BYTES = 2, /* of an instruction */
	VARINT_MORE = 0x40,
	VARINT_MASK = 0x3f,
	VARINT_BITS = 6,
	VARINT_SHIFT_MAX = 30,
};

static uint32_t line_of(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs of an increment of the offset and one of the line. */
static uint32_t find_in_lnotab(const uint8_t *table, size_t len, int64_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_of(line);
}

/* Pairs of the length of a range and of its line's difference to that of the range before. */
static uint32_t find_in_ranges(const uint8_t *table, size_t len, int64_t line, int64_t offset)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		const int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != NO_LINE)
			line += delta;
		if (offset < end)
			return delta == NO_LINE ? 0 : line_of(line);
	}
	return 0;
}

/* A signed number of 6 bits a byte, low ones first. */
static int64_t read_varint(const uint8_t *table, size_t len, size_t at)
{
	uint64_t value = 0;

	for (int shift = 0; at < len && shift <= VARINT_SHIFT_MAX; shift += VARINT_BITS, at++) {
		value |= (uint64_t)(table[at] & VARINT_MASK) << shift;
		if (!(table[at] & VARINT_MORE))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int64_t delta_of(const uint8_t *table, size_t len, size_t at, int code)
{
	if (code == CODE_NO_COLUMNS || code == CODE_LONG)
		return read_varint(table, len, at);
	return code >= CODE_SHORT_END && code < CODE_ONE_LINE_END ? code - CODE_SHORT_END : 0;
}

/* Only the first byte of an entry has bit 7 set. */
static uint32_t find_in_locations(const uint8_t *table, size_t len, int64_t line, int64_t offset)
{
	int64_t end = 0;
	size_t i = 0;

	while (i < len) {
		const int code = table[i] >> 3 & 15;

		end += ((table[i] & 7) + 1) * UNIT_BYTES;
		line += delta_of(table, len, i + 1, code);
		if (offset < end)
			return code == 15 ? 0 : line_of(line);
		for (i++; i < len && !(table[i] & ENTRY); i++)
			;
	}
	return 0;
}

uint32_t nt_python_line(enum nt_python_lines kind, const uint8_t *table, size_t len,
			uint32_t first_line, int64_t offset)
{
	if (offset < 0)
		return line_of(first_line);
	switch (kind) {
	case NT_PYTHON_LINES_LNOTAB:
		return find_in_lnotab(table, len, first_line, offset);
	case NT_PYTHON_LINES_RANGES:
		return find_in_ranges(table, len, first_line, offset);
	case NT_PYTHON_LINES_LOCATIONS:
		return find_in_locations(table, len, first_line, offset);
	case NT_PYTHON_LINES_NONE:
		break;
	}
	return 0;
}
