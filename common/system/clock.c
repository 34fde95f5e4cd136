/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "common/base/parse_number.h"

enum {
	DAYS_OF_ERA = 146097, /* of 400 years */
	DAYS_BEFORE_1970 = 719468, /* since 0000-03-01 */
	FIRST_YEAR = 1970,
	LAST_YEAR = 2553, /* the last whole year that 64 bits of nanoseconds hold */
	PAIR_TRIES = 5,
};

static uint64_t now(clockid_t clock)
{
	struct timespec t = {0};

	(void)clock_gettime(clock, &t); /* cannot fail for these clocks */
	return (uint64_t)t.tv_sec * NT_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t nt_clock_boot_ns(void)
{
	return now(CLOCK_BOOTTIME);
}

uint64_t nt_clock_mono_ns(void)
{
	return now(CLOCK_MONOTONIC);
}

uint64_t nt_clock_real_ns(void)
{
	return now(CLOCK_REALTIME);
}

/* Reads one clock between two readings of the other; keeps the tightest of a few tries. */
void nt_clock_pair(uint64_t *ret_boot_ns, uint64_t *ret_real_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < PAIR_TRIES; i++) {
		uint64_t before = now(CLOCK_BOOTTIME);
		uint64_t real = now(CLOCK_REALTIME);
		uint64_t after = now(CLOCK_BOOTTIME);

		if (after - before >= best)
			continue;
		best = after - before;
		*ret_boot_ns = before + best / 2;
		*ret_real_ns = real;
	}
}

/* Years begin in March here, so that the leap day is the last (Howard Hinnant's algorithm). */
static uint64_t days_from_date(uint64_t year, uint64_t month, uint64_t day)
{
	uint64_t y = month <= 2 ? year - 1 : year;
	uint64_t of_era = y % 400;
	uint64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return y / 400 * DAYS_OF_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
	       DAYS_BEFORE_1970;
}

static void date_from_days(uint64_t days, uint64_t *ret_year, uint64_t *ret_month,
			   uint64_t *ret_day)
{
	uint64_t z = days + DAYS_BEFORE_1970;
	uint64_t day_of_era = z % DAYS_OF_ERA;
	uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
				day_of_era / (DAYS_OF_ERA - 1)) /
			       365;
	uint64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	uint64_t m = (5 * day_of_year + 2) / 153;

	*ret_day = day_of_year - (153 * m + 2) / 5 + 1;
	*ret_month = m < 10 ? m + 3 : m - 9;
	*ret_year = z / DAYS_OF_ERA * 400 + year_of_era + (*ret_month <= 2);
}

/* Returns the place behind them. snprintf() takes ten times as long. */
static char *put_digits(char *at, uint64_t value, unsigned int width)
{
	for (unsigned int i = width; i-- > 0; value /= 10)
		at[i] = (char)('0' + value % 10);
	return at + width;
}

const char *nt_clock_format(uint64_t real_ns, unsigned int digits, char text[NT_CLOCK_TEXT])
{
	uint64_t seconds = real_ns / NT_SECOND, fraction = real_ns % NT_SECOND;
	uint64_t of_day = seconds % 86400;
	uint64_t year, month, day;
	char *at = text;

	date_from_days(seconds / 86400, &year, &month, &day);
	at = put_digits(at, year, 4); /* the last year of 64 bits is 2554 */
	*at++ = '-';
	at = put_digits(at, month, 2);
	*at++ = '-';
	at = put_digits(at, day, 2);
	*at++ = 'T';
	at = put_digits(at, of_day / 3600, 2);
	*at++ = ':';
	at = put_digits(at, of_day / 60 % 60, 2);
	*at++ = ':';
	at = put_digits(at, of_day % 60, 2);
	if (digits > 9)
		digits = 9;
	for (unsigned int i = digits; i < 9; i++)
		fraction /= 10;
	if (digits) {
		*at++ = '.';
		at = put_digits(at, fraction, digits);
	}
	*at++ = 'Z';
	*at = '\0';
	return text;
}

/* Fixed width digits, then a separator unless that is NUL. */
struct time_field {
	size_t width;
	char next;
	uint64_t max;
};

static int parse_fields(const struct time_field *field, size_t count, const char *text, size_t len,
			size_t *at, uint64_t *ret_values)
{
	for (size_t i = 0; i < count; i++) {
		size_t width = field[i].width;
		int r;

		if (len - *at < width + (field[i].next != '\0'))
			return -EINVAL;
		r = nt_parse_u64(text + *at, width, 0, field[i].max, &ret_values[i]);
		if (r < 0)
			return -EINVAL;
		*at += width;
		if (field[i].next != '\0' && text[(*at)++] != field[i].next)
			return -EINVAL;
	}
	return 0;
}

static int parse_fraction(const char *text, size_t len, size_t *at, uint64_t *ret_ns)
{
	uint64_t ns = 0, unit = NT_SECOND / 10;
	size_t digits = 0;

	for (; *at < len && text[*at] >= '0' && text[*at] <= '9'; (*at)++, digits++) {
		ns += unit * (uint64_t)(text[*at] - '0');
		unit /= 10; /* the tenth digit and later ones are ignored */
	}
	if (!digits)
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

/* Z, or +hh:mm: the seconds that local time is ahead of UTC. */
static int parse_zone(const char *text, size_t len, size_t *at, int64_t *ret_seconds)
{
	static const struct time_field fields[] = {{2, ':', 23}, {2, '\0', 59}};
	uint64_t value[2] = {0};
	char sign;
	int r;

	if (*at == len)
		return -EINVAL;
	sign = text[(*at)++];
	if (sign == 'Z') {
		*ret_seconds = 0;
		return 0;
	}
	if (sign != '+' && sign != '-')
		return -EINVAL;
	r = parse_fields(fields, 2, text, len, at, value);
	if (r < 0)
		return r;
	*ret_seconds = (int64_t)(value[0] * 3600 + value[1] * 60) * (sign == '-' ? -1 : 1);
	return 0;
}

static uint64_t days_of_month(uint64_t year, uint64_t month)
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (uint64_t)(month == 2 && leap);
}

int nt_clock_parse(const char *text, size_t len, uint64_t *ret_real_ns)
{
	static const struct time_field fields[] = {{4, '-', 9999}, {2, '-', 12}, {2, 'T', 31},
						   {2, ':', 23},   {2, ':', 59}, {2, '\0', 60}};
	uint64_t value[6] = {0}, ns = 0, days;
	int64_t zone = 0, seconds;
	size_t at = 0;
	int r;

	r = parse_fields(fields, 6, text, len, &at, value);
	if (r < 0)
		return r;
	if (at < len && text[at] == '.') {
		at++;
		r = parse_fraction(text, len, &at, &ns);
		if (r < 0)
			return r;
	}
	r = parse_zone(text, len, &at, &zone);
	if (r < 0)
		return r;
	if (at != len || !value[1] || !value[2] || value[2] > days_of_month(value[0], value[1]))
		return -EINVAL;
	if (value[0] < FIRST_YEAR || value[0] > LAST_YEAR)
		return -ERANGE;

	days = days_from_date(value[0], value[1], value[2]);
	seconds = (int64_t)(days * 86400 + value[3] * 3600 + value[4] * 60 + value[5]) - zone;
	if (seconds < 0)
		return -ERANGE;
	*ret_real_ns = (uint64_t)seconds * NT_SECOND + ns;
	return 0;
}
