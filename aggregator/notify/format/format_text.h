/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Text of a message under a receiver's limit. Names are escaped as it is built, so a cut falls
 * neither inside a character nor inside an escape.
 */
#ifndef NT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_TEXT_H
#define NT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum nt_format_unit {
	NT_FORMAT_BYTES,
	NT_FORMAT_UTF16, /* what JavaScript and Java count as characters */
};

struct nt_format_text {
	struct nt_buf buf; /* NUL-terminated once anything was added */
	size_t used, max; /* in units */
	enum nt_format_unit unit;
	/* What stands for a character in this format; NULL: itself. A NULL function: all do. */
	const char *(*escape)(char c);
	bool is_cut; /* ends with "…"; nothing more is added */
};

void nt_format_text_release(struct nt_format_text *text);
#define nt_autoformattext __attribute__((cleanup(nt_format_text_release)))

/* Adds text with escapes, cut with "…" where the limit is reached. It must be UTF-8. -ENOMEM. */
NT_MUST_CHECK int nt_format_text_add(struct nt_format_text *text, const char *plain);
/* Adds markup as it is, whole or not at all. -ENOMEM. */
NT_MUST_CHECK int nt_format_text_add_markup(struct nt_format_text *text, const char *markup);

/* "" while nothing was added. */
const char *nt_format_text_get(const struct nt_format_text *text);

#endif
