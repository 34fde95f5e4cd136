/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Strict number parsers: the whole text must be the number. No blanks, no trailing bytes, no
 * locale, no silent overflow. All return 0, -EINVAL for malformed text and -ERANGE outside [min,
 * max]; the output is unchanged on failure.
 */
#ifndef NT_COMMON_BASE_PARSE_NUMBER_H
#define NT_COMMON_BASE_PARSE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

NT_MUST_CHECK int nt_parse_u64(const char *text, size_t len, uint64_t min, uint64_t max,
			       uint64_t *ret_value);
NT_MUST_CHECK int nt_parse_u32(const char *text, size_t len, uint32_t min, uint32_t max,
			       uint32_t *ret_value);
/* Hexadecimal digits without a 0x prefix. */
NT_MUST_CHECK int nt_parse_hex(const char *text, size_t len, uint64_t max, uint64_t *ret_value);
/* 1, -1.5, 2e-3. Infinities, NaN and hexadecimal are rejected. */
NT_MUST_CHECK int nt_parse_double(const char *text, size_t len, double min, double max,
				  double *ret_value);

/* Bytes: 4096, 64K, 16M, 1G, 2T (powers of 1024). */
NT_MUST_CHECK int nt_parse_size(const char *text, size_t len, uint64_t min, uint64_t max,
				uint64_t *ret_bytes);
/* A duration in nanoseconds: 250ms, 5s, 1m, 12h, 7d, also 1.5s; a bare 0 needs no unit. */
NT_MUST_CHECK int nt_parse_duration(const char *text, size_t len, uint64_t min, uint64_t max,
				    uint64_t *ret_ns);

enum {
	NT_PARSE_TEXT = 32, /* holds any of the formatted numbers */
};

/* The shortest exact text that the parsers above read back: "64K", "250ms". Returns text. */
const char *nt_format_size(uint64_t bytes, char text[NT_PARSE_TEXT]);
const char *nt_format_duration(uint64_t ns, char text[NT_PARSE_TEXT]);

/* A fraction in percent, rounded down: 100 only for the whole. */
unsigned int nt_parse_percent(double part);

#endif
