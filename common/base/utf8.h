/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NT_COMMON_BASE_UTF8_H
#define NT_COMMON_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the first character of text; 0 if invalid (surrogates and overlong forms included). */
size_t nt_utf8_length(const char *text, size_t len);

bool nt_utf8_is_valid(const char *text, size_t len);

#endif
