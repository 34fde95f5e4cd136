/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The three clocks, all in nanoseconds, and real time as text. Boot time is the clock of the
 * kernel's events, real time is for display, monotonic time is for waiting.
 */
#ifndef NT_COMMON_SYSTEM_CLOCK_H
#define NT_COMMON_SYSTEM_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/duration.h"

uint64_t nt_clock_boot_ns(void); /* since boot, suspended time included */
uint64_t nt_clock_mono_ns(void);
uint64_t nt_clock_real_ns(void); /* since 1970-01-01T00:00:00Z */

/* Boot and real time of one instant, as exact as two successive readings allow. */
void nt_clock_pair(uint64_t *ret_boot_ns, uint64_t *ret_real_ns);

enum {
	NT_CLOCK_TEXT = 32, /* holds a time as text */
};

/* RFC 3339 in UTC with 0 to 9 digits of a second: 2026-03-01T03:04:05.123Z. Returns text. */
const char *nt_clock_format(uint64_t real_ns, unsigned int digits, char text[NT_CLOCK_TEXT]);

/*
 * Parses RFC 3339, with Z or an offset (+02:00), years 1970 to 2553. A leap second is read as the
 * second after it. -EINVAL: no such time; -ERANGE: a time before 1970 or after 2553.
 */
NT_MUST_CHECK int nt_clock_parse(const char *text, size_t len, uint64_t *ret_real_ns);

#endif
