/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lines and numbers of the kernel's text files. A text needs no NUL and no line feed at its end. What
 * is no number of 64 bits is not found.
 */
#ifndef NT_AGENT_NODE_KERNEL_TEXT_H
#define NT_AGENT_NODE_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cuts the next line off the text, without its line feed. False: the text is empty. */
bool nt_kernel_text_cut_line(const char **text, size_t *len, const char **ret_line,
			     size_t *ret_line_len);

/* Cuts the next word off the line, which has to be a number. */
bool nt_kernel_text_cut_number(const char **line, size_t *len, uint64_t *ret_value);

enum {
	NT_KERNEL_TEXT_NAMES = 64,
};

/*
 * Finds lines that begin with the names, each of which ends with its delimiter ("oom_kill "), and
 * the numbers behind them. The first line with a name counts. At most NT_KERNEL_TEXT_NAMES names.
 * Returns a bit for each value that was found; the others are unchanged.
 */
uint64_t nt_kernel_text_find(const char *text, size_t len, const char *const *name, size_t names,
			     uint64_t *ret_value);

#endif
