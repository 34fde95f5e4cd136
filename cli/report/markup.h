/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text and bytes from outside, as they may stand in a page of HTML. */
#ifndef NT_CLI_REPORT_MARKUP_H
#define NT_CLI_REPORT_MARKUP_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

/* A page as it grows. The first error stays, and what comes after it is dropped. */
struct nt_markup {
	struct nt_buf *buf;
	int error; /* 0, -ENOMEM, -ENOBUFS at the cap of the buffer */
};

/* The page's own markup: nothing from outside but numbers. */
#define nt_markup_put(page, ...)                                                                   \
	do {                                                                                       \
		if (!(page)->error)                                                                \
			(page)->error = nt_buf_printf((page)->buf, __VA_ARGS__);                   \
	} while (0)

/*
 * At most max bytes of the text, with "…" where it was longer; as content of an element or a quoted
 * attribute. Control characters, direction overrides and what is no UTF-8 become '?'.
 */
void nt_markup_text(struct nt_markup *page, const char *text, size_t max);

void nt_markup_base64(struct nt_markup *page, const void *data, size_t size);

#endif
