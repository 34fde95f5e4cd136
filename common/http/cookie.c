/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/cookie.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int nt_cookie_find(const char *text, size_t len, const char *name, const char **ret_value,
		   size_t *ret_len)
{
	const char *end = text + len, *value = NULL;
	size_t name_len = strlen(name), value_len = 0;

	while (text < end) {
		const char *semicolon = memchr(text, ';', (size_t)(end - text));
		const char *pair_end = semicolon ? semicolon : end;
		const char *next = semicolon ? semicolon + 1 : end;

		while (text < pair_end && is_blank(*text))
			text++;
		while (pair_end > text && is_blank(pair_end[-1]))
			pair_end--;
		if ((size_t)(pair_end - text) > name_len && !memcmp(text, name, name_len) &&
		    text[name_len] == '=') {
			if (value)
				return -EEXIST;
			value = text + name_len + 1;
			value_len = (size_t)(pair_end - value);
		}
		text = next;
	}
	if (!value)
		return -ENOENT;
	*ret_value = value;
	*ret_len = value_len;
	return 0;
}
