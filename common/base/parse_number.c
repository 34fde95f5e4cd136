/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/parse_number.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/duration.h"

enum {
	MAX_DOUBLE_TEXT = 64, /* no valid number is longer */
};

struct unit {
	const char *suffix;
	uint64_t factor;
};

/* Largest first, for formatting. */
static const struct unit sizes[] = {
	{"T", 1ULL << 40}, {"G", 1ULL << 30}, {"M", 1ULL << 20}, {"K", 1ULL << 10}, {"", 1},
};
static const struct unit durations[] = {
	{"d", NT_DAY},          {"h", NT_HOUR},         {"m", NT_MINUTE}, {"s", NT_SECOND},
	{"ms", NT_MILLISECOND}, {"us", NT_MICROSECOND}, {"ns", 1},
};

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int parse_digits(const char *text, size_t len, unsigned int base, uint64_t *ret_value)
{
	uint64_t value = 0;
	bool overflow = false;

	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		unsigned int d = (unsigned int)digit(text[i]);

		if (d >= base)
			return -EINVAL;
		overflow |= __builtin_mul_overflow(value, (uint64_t)base, &value);
		overflow |= __builtin_add_overflow(value, (uint64_t)d, &value);
	}
	if (overflow)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int nt_parse_u64(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	int r = parse_digits(text, len, 10, &value);

	if (r < 0)
		return r;
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int nt_parse_hex(const char *text, size_t len, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	int r = parse_digits(text, len, 16, &value);

	if (r < 0)
		return r;
	if (value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int nt_parse_u32(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *ret_value)
{
	uint64_t value = 0;
	int r = nt_parse_u64(text, len, min, max, &value);

	if (r < 0)
		return r;
	*ret_value = (uint32_t)value;
	return 0;
}

/* The grammar of a decimal number; strtod() alone would accept " 1", "inf" and "0x1p3". */
static bool is_decimal(const char *text, size_t len)
{
	size_t i = len && (text[0] == '-' || text[0] == '+');
	size_t digits = 0, exponent = 0;

	for (; i < len && is_digit(text[i]); i++)
		digits++;
	if (i < len && text[i] == '.')
		for (i++; i < len && is_digit(text[i]); i++)
			digits++;
	if (!digits)
		return false;
	if (i == len)
		return true;
	if (text[i] != 'e' && text[i] != 'E')
		return false;
	i++;
	if (i < len && (text[i] == '-' || text[i] == '+'))
		i++;
	for (; i < len && is_digit(text[i]); i++)
		exponent++;
	return exponent && i == len;
}

int nt_parse_double(const char *text, size_t len, double min, double max, double *ret_value)
{
	char copy[MAX_DOUBLE_TEXT + 1];
	locale_t c;
	double value;

	if (len > MAX_DOUBLE_TEXT || !is_decimal(text, len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* cheap: the built-in locale */
	if (c == (locale_t)0)
		return -ENOMEM;
	value = strtod_l(copy, NULL, c);
	freelocale(c);
	if (!isfinite(value) || value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static const struct unit *find_unit(const struct unit *unit, size_t count, const char *suffix,
				    size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(unit[i].suffix) == len && !memcmp(unit[i].suffix, suffix, len))
			return &unit[i];
	return NULL;
}

/* digits[.digits]SUFFIX, exact: a fraction of the smallest unit is rejected. */
static int parse_units(const struct unit *unit, size_t count, const char *text, size_t len,
		       uint64_t *ret_value)
{
	const struct unit *found;
	uint64_t whole = 0, fraction = 0, scale = 1, product = 0, part = 0;
	size_t digits = 0, end;
	int r;

	while (digits < len && is_digit(text[digits]))
		digits++;
	r = parse_digits(text, digits, 10, &whole);
	if (r < 0)
		return r;
	end = digits;
	if (end < len && text[end] == '.') {
		size_t start = ++end;

		while (end < len && is_digit(text[end])) {
			if (__builtin_mul_overflow(scale, 10, &scale))
				return -EINVAL;
			end++;
		}
		r = parse_digits(text + start, end - start, 10, &fraction);
		if (r < 0)
			return r;
	}
	found = find_unit(unit, count, text + end, len - end);
	if (!found)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, found->factor, &product))
		return -ERANGE;
	if (__builtin_mul_overflow(fraction, found->factor, &part) || part % scale)
		return -EINVAL;
	if (__builtin_add_overflow(product, part / scale, &product))
		return -ERANGE;
	*ret_value = product;
	return 0;
}

int nt_parse_size(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret_bytes)
{
	uint64_t value = 0;
	int r = parse_units(sizes, sizeof(sizes) / sizeof(sizes[0]), text, len, &value);

	if (r < 0)
		return r;
	if (value < min || value > max)
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

int nt_parse_duration(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret_ns)
{
	uint64_t value = 0;
	int r = 0;

	if (len != 1 || text[0] != '0')
		r = parse_units(durations, sizeof(durations) / sizeof(durations[0]), text, len,
				&value);
	if (r < 0)
		return r;
	if (value < min || value > max)
		return -ERANGE;
	*ret_ns = value;
	return 0;
}

static const char *format_units(const struct unit *unit, uint64_t value, char *text)
{
	while (value % unit->factor)
		unit++;
	(void)snprintf(text, NT_PARSE_TEXT, "%" PRIu64 "%s", value / unit->factor, unit->suffix);
	return text;
}

const char *nt_format_size(uint64_t bytes, char text[NT_PARSE_TEXT])
{
	return bytes ? format_units(sizes, bytes, text) : memcpy(text, "0", 2);
}

const char *nt_format_duration(uint64_t ns, char text[NT_PARSE_TEXT])
{
	return ns ? format_units(durations, ns, text) : memcpy(text, "0s", 3);
}

unsigned int nt_parse_percent(double part)
{
	/* 0.29 is stored as slightly less than 29 hundredths. */
	const double close = 1e-9;

	if (!(part > 0.0))
		return 0;
	if (part >= 1.0)
		return 100;
	return part >= 0.99 ? 99 : (unsigned int)(100.0 * part + close);
}
