/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/kernel_text.h"

#include <string.h>

#include "common/base/ascii.h"
#include "common/base/parse_number.h"

bool nt_kernel_text_cut_line(const char **text, size_t *len, const char **ret_line,
			     size_t *ret_line_len)
{
	const char *end;
	size_t size;

	if (!*len)
		return false;
	end = memchr(*text, '\n', *len);
	size = end ? (size_t)(end - *text) : *len;
	*ret_line = *text;
	*ret_line_len = size;
	*text += size + (end != NULL);
	*len -= size + (end != NULL);
	return true;
}

bool nt_kernel_text_cut_number(const char **line, size_t *len, uint64_t *ret_value)
{
	const char *word;
	size_t word_len;

	return nt_ascii_cut_word(line, len, &word, &word_len) &&
	       nt_parse_u64(word, word_len, 0, UINT64_MAX, ret_value) == 0;
}

uint64_t nt_kernel_text_find(const char *text, size_t len, const char *const *name, size_t names,
			     uint64_t *ret_value)
{
	uint64_t found = 0, seen = 0;
	const char *line;
	size_t line_len;

	while (nt_kernel_text_cut_line(&text, &len, &line, &line_len)) {
		for (size_t i = 0; i < names && i < NT_KERNEL_TEXT_NAMES; i++) {
			const size_t name_len = strlen(name[i]);

			if (seen >> i & 1 || line_len < name_len ||
			    memcmp(line, name[i], name_len) != 0)
				continue;
			line += name_len;
			line_len -= name_len;
			seen |= UINT64_C(1) << i;
			if (nt_kernel_text_cut_number(&line, &line_len, &ret_value[i]))
				found |= UINT64_C(1) << i;
			break;
		}
	}
	return found;
}
