/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Escaping of untrusted text and bytes in an HTML page. */
#ifndef NT_CLI_REPORT_MARKUP_H
#define NT_CLI_REPORT_MARKUP_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

/* A page being written. The first error is sticky, and later output is dropped. */
struct nt_markup {
	struct nt_buf *buf;
	int error; /* 0, -ENOMEM, -ENOBUFS at the cap of the buffer */
};

/* Trusted markup: no untrusted data but numbers. */
#define nt_markup_put(page, ...)                                                                   \
	do {                                                                                       \
		if (!(page)->error)                                                                \
			(page)->error = nt_buf_printf((page)->buf, __VA_ARGS__);                   \
	} while (0)

/*
 * At most max bytes of the text, with "…" if it was longer, as content of an element or a quoted
 * attribute. Control characters, direction overrides and invalid UTF-8 become '?'.
 */
void nt_markup_text(struct nt_markup *page, const char *text, size_t max);

void nt_markup_base64(struct nt_markup *page, const void *data, size_t size);

/* Trusted markup, style or script, as it is. */
void nt_markup_bytes(struct nt_markup *page, const char *text, size_t size);
/* What allows the style or script in a Content-Security-Policy: 'sha256-…', with the quotes. */
void nt_markup_policy_hash(struct nt_markup *page, const char *text, size_t size);

#endif
