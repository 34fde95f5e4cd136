/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the text of a page holds. */
#ifndef NT_TESTS_UNIT_CLI_PAGE_TEXT_H
#define NT_TESTS_UNIT_CLI_PAGE_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline void says(const char *html, const char *what)
{
	if (!strstr(html, what))
		fail_msg("the page does not say '%s'", what);
}

static inline void does_not_say(const char *html, const char *what)
{
	const char *at = strstr(html, what);

	if (at)
		fail_msg("the page says '%.60s'", at);
}

static inline size_t count(const char *html, const char *what)
{
	size_t n = 0;

	for (; (html = strstr(html, what)); html += strlen(what))
		n++;
	return n;
}

#endif
