/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a text file line by line, decompresses gzip, and counts lines for error messages. */
#ifndef NT_CLI_READERS_LINES_H
#define NT_CLI_READERS_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_lines;

/* -errno of the file; -ENOMEM. */
NT_MUST_CHECK int nt_lines_open(const char *path, struct nt_lines **ret_lines);
void nt_lines_close(struct nt_lines *lines);
NT_DEFINE_AUTO(nt_lines, nt_lines_close)

/*
 * 1 with the next line, without its end and valid until the next call; 0 at the end of the file.
 * -EMSGSIZE for a line over 64 KiB, -EBADMSG for damaged compression or a NUL byte, -EIO.
 */
NT_MUST_CHECK int nt_lines_next(struct nt_lines *lines, char **ret_line);

/* Whether the line last returned ends the file without an end of its own: it may be cut short. */
bool nt_lines_is_open(const struct nt_lines *lines);

/* Of the line last returned or rejected, from 1. */
uint64_t nt_lines_number(const struct nt_lines *lines);

#endif
