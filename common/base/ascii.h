/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies and checks of untrusted text: only printable ASCII characters pass. */
#ifndef NT_COMMON_BASE_ASCII_H
#define NT_COMMON_BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

/* Copies as much as fits and a NUL; each unprintable byte becomes '?'. size is not 0. */
void nt_ascii_copy(char *to, size_t size, const char *from, size_t len);
/* The same for a NUL-terminated text. */
void nt_ascii_copy_text(char *to, size_t size, const char *from);

/* Whether all characters are visible ASCII: no blanks, no control characters. */
bool nt_ascii_is_visible(const char *text, size_t len);

/* Cuts the next run of non-blank bytes off the line. False: there is none. */
bool nt_ascii_cut_word(const char **line, size_t *len, const char **ret_word, size_t *ret_word_len);

#endif
