/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The frame of a self-contained page: its head with style and policy, and its end. The policy allows
 * the embedded style and script by their hashes, images in the page, and nothing from a network.
 */
#ifndef NT_CLI_REPORT_PAGE_H
#define NT_CLI_REPORT_PAGE_H

#include <stdbool.h>

#include "cli/report/markup.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_PAGE_MAX_BYTES = 8 << 20, /* of a page */
};

/* Up to <body>. The title is untrusted. With a script the end must have it as well. */
void nt_page_begin(struct nt_markup *out, const char *title, bool has_script);
/* From </main> on. */
void nt_page_end(struct nt_markup *out, bool has_script);

/* Replaces the file by the page. -errno of the file. */
NT_MUST_CHECK int nt_page_save(const struct nt_buf *page, const char *path);

#endif
