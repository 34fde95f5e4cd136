/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/json_number.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
	MAX_DIGITS = 19, /* that always fit into 64 bits */
	MAX_EXPONENT = 100000, /* beyond it all reals are infinite or zero */
	EXACT_POWER = 22, /* powers of ten that a double represents */
	NARROW_POWER = 16, /* with which a quotient of 128 bits is precise enough */
};

/* The parts of a number: ± digits × 10^power. */
struct parts {
	uint64_t digits;
	int count; /* of digits without leading zeros */
	int power;
	bool negative, whole;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *read_digits(const char *at, struct parts *parts)
{
	for (; is_digit(*at); at++) {
		if (parts->count < MAX_DIGITS)
			parts->digits = parts->digits * 10 + (uint64_t)(*at - '0');
		parts->count += parts->count || *at != '0';
	}
	return at;
}

/* NULL: none follows. */
static const char *read_exponent(const char *at, struct parts *parts)
{
	const bool negative = *at == '-';
	int exponent = 0;

	at += *at == '-' || *at == '+';
	if (!is_digit(*at))
		return NULL;
	for (; is_digit(*at); at++)
		if (exponent < MAX_EXPONENT)
			exponent = exponent * 10 + (*at - '0');
	parts->power += negative ? -exponent : exponent;
	return at;
}

/* The end of the number; NULL: it is malformed. */
static const char *read_parts(const char *text, struct parts *parts)
{
	const char *at = text, *fraction;

	parts->negative = *at == '-';
	parts->whole = true;
	at += parts->negative;
	if (!is_digit(*at))
		return NULL;
	at = *at == '0' ? at + 1 : read_digits(at, parts);
	if (*at == '.') {
		fraction = ++at;
		if (!is_digit(*at))
			return NULL;
		at = read_digits(at, parts);
		parts->power = -(int)(at - fraction);
		parts->whole = false;
	}
	if (*at == 'e' || *at == 'E') {
		parts->whole = false;
		at = read_exponent(at + 1, parts);
	}
	return at;
}

/* False: it takes strtod(). All branches round as strtod() does. */
static bool round_real(const struct parts *parts, double *ret_real)
{
	static const double tens[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
						     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
						     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	unsigned __int128 quotient, wide;
	uint64_t divisor;

	if (parts->count > MAX_DIGITS)
		return false;
	if (parts->digits <= 1ULL << 53 && parts->power >= -EXACT_POWER &&
	    parts->power <= EXACT_POWER) {
		*ret_real = parts->power < 0 ? (double)parts->digits / tens[-parts->power]
					     : (double)parts->digits * tens[parts->power];
		return true;
	}
	if (parts->digits <= 1ULL << 53 || parts->power >= 0 || parts->power < -NARROW_POWER)
		return false;
	/* A quotient of at least 62 bits, whose last one stands for the remainder. */
	divisor = (uint64_t)tens[-parts->power];
	wide = (unsigned __int128)parts->digits << 63;
	quotient = wide / divisor;
	quotient |= quotient * divisor != wide;
	*ret_real = (double)quotient * 0x1p-63;
	return true;
}

const char *nt_json_number_read(const char *text, struct nt_json_value *ret_value, size_t *ret_len)
{
	struct parts parts = {0};
	const char *end = read_parts(text, &parts);
	double real = 0;

	if (!end)
		return "invalid number";
	*ret_len = (size_t)(end - text);
	if (parts.whole) {
		const uint64_t most = (uint64_t)INT64_MAX + parts.negative;

		if (parts.count > MAX_DIGITS || parts.digits > most)
			return parts.negative ? "too big negative integer" : "too big integer";
		ret_value->kind = NT_JSON_INTEGER;
		ret_value->integer = (int64_t)(parts.negative ? 0 - parts.digits : parts.digits);
		return NULL;
	}
	if (!round_real(&parts, &real)) {
		real = strtod(text, NULL);
		if (isinf(real))
			return "real number overflow";
	} else if (parts.negative) {
		real = -real;
	}
	ret_value->kind = NT_JSON_REAL;
	ret_value->real = real;
	return NULL;
}
