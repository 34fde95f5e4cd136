/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the JSON scanner; for json_scan*.c only. */
#ifndef NT_COMMON_BASE_JSON_SCAN_IMPL_H
#define NT_COMMON_BASE_JSON_SCAN_IMPL_H

#include "common/base/json_scan.h"

struct nt_json_scan {
	ptrdiff_t (*fill)(void *context, char *data, size_t size);
	void *context;
	char *window;
	const char *at, *end; /* what is left of it */
	uint64_t before; /* bytes of the document before the window */
	uint64_t line;
	bool at_end; /* nothing follows the window */
	bool fresh; /* an array or object was entered, and nothing in it read */
	int failed; /* of `fill` */
	const char *why;
	size_t depth;
	char open[NT_JSON_SCAN_DEPTH]; /* the bracket of each level */
	/* Texts and values of the stored value. */
	char *text;
	size_t text_len, text_cap;
	struct nt_json_value *value;
	size_t values, value_cap;
};

/* Makes at least NT_JSON_SCAN_NUMBER bytes available, or all that are left. */
void nt_json_scan_refill(struct nt_json_scan *scan);
/* Notes why the document is refused. Returns -EBADMSG, or the error of `fill`. */
int nt_json_scan_refuse(struct nt_json_scan *scan, const char *why);
/* The same for a value beyond the caps. */
int nt_json_scan_refuse_large(struct nt_json_scan *scan);

/* ---- json_scan_string.c ------------------------------------------------------------------------ */

/* Reads a string, of which the opening quote is next. What is stored ends with NUL. */
NT_MUST_CHECK int nt_json_scan_string(struct nt_json_scan *scan, bool stores);
/* The first byte from `at` on that ends a run of plain ASCII: a quote, an escape, a control. */
const char *nt_json_scan_run(const char *at);

#endif
