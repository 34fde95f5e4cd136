/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/ascii.h"

#include <string.h>

void nt_ascii_copy(char *to, size_t size, const char *from, size_t len)
{
	if (len > size - 1)
		len = size - 1;
	for (size_t i = 0; i < len; i++)
		to[i] = (char)(from[i] < ' ' || from[i] > '~' ? '?' : from[i]);
	to[len] = '\0';
}

void nt_ascii_copy_text(char *to, size_t size, const char *from)
{
	nt_ascii_copy(to, size, from, strnlen(from, size));
}

bool nt_ascii_is_visible(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return true;
}

bool nt_ascii_cut_word(const char **line, size_t *len, const char **ret_word, size_t *ret_word_len)
{
	while (*len && **line == ' ') {
		(*line)++;
		(*len)--;
	}
	*ret_word = *line;
	while (*len && **line != ' ') {
		(*line)++;
		(*len)--;
	}
	*ret_word_len = (size_t)(*line - *ret_word);
	return *ret_word_len > 0;
}
