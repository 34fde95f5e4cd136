/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Templates of a message's title and text: plain text with {placeholders}. There is no code, and
 * what a template writes is escaped by the receiver's format as names are.
 */
#ifndef NT_AGGREGATOR_NOTIFY_TEMPLATE_H
#define NT_AGGREGATOR_NOTIFY_TEMPLATE_H

#include <stddef.h>

#include "aggregator/notify/notice.h"
#include "common/base/cleanup.h"

enum {
	NT_TEMPLATE_TITLE = 300, /* bytes of a template, without the NUL */
	NT_TEMPLATE_TEXT = 2000,
	NT_TEMPLATE_WORD = 40, /* bytes of a shown placeholder, with the NUL */
};

/* The names of all placeholders: "{state}, {severity} …". For messages and docs. */
extern const char nt_template_names[];

/*
 * -EINVAL: ret_word is the placeholder that does not exist; "" for a brace without its other one.
 * Literal braces are doubled.
 */
NT_MUST_CHECK int nt_template_check(const char *template, char ret_word[NT_TEMPLATE_WORD]);

/* Writes a sound template's text, cut at a character with "…". A value that is not known is "-". */
void nt_template_write(const char *template, const struct nt_notice *notice, char *to, size_t size);

/* Replaces title and text; NULL: as it is. A text also stands for the fields. Not of a digest. */
void nt_template_apply(const char *title, const char *text, struct nt_notice *notice);

#endif
