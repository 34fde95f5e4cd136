/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A notice as the Markdown of chat services, of which each understands a subset. */
#ifndef NT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_MARKDOWN_H
#define NT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_MARKDOWN_H

#include "aggregator/notify/format/format_text.h"
#include "aggregator/notify/notice.h"

/* Adds the summary, the fields and the link, one a line; each line ends with `end`. -ENOMEM. */
NT_MUST_CHECK int nt_format_markdown_add(struct nt_format_text *text,
					 const struct nt_notice *notice, const char *end);

/*
 * What stands for a character where neither escapes nor entities are understood: the full-width
 * form, which no client takes for markup, a mention or a tag.
 */
const char *nt_format_markdown_wide(char c);

#endif
