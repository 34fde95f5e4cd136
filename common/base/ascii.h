/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text from outside of which only the printable characters of ASCII may go further. */
#ifndef NT_COMMON_BASE_ASCII_H
#define NT_COMMON_BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

/* As much as fits, with a NUL behind, and a '?' for each byte that does not print. size is not 0. */
void nt_ascii_copy(char *to, size_t size, const char *from, size_t len);
/* The same of a text that ends in a NUL. */
void nt_ascii_copy_text(char *to, size_t size, const char *from);

/* Nothing but characters that leave a mark: no blank either. */
bool nt_ascii_is_visible(const char *text, size_t len);

/* Cuts the next run of bytes that are no spaces off the line. False: there is none. */
bool nt_ascii_cut_word(const char **line, size_t *len, const char **ret_word, size_t *ret_word_len);

#endif
