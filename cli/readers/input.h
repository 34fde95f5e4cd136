/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads an input file whole, decompresses gzip, and parses JSON. */
#ifndef NT_CLI_READERS_INPUT_H
#define NT_CLI_READERS_INPUT_H

#include <jansson.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_INPUT_MAX_BYTES = 1 << 30, /* unpacked */
};

/* -errno of the file with *ret_error; -EBADMSG for damaged compression or over the cap; -ENOMEM. */
NT_MUST_CHECK int nt_input_read(const char *path, struct nt_buf *buf,
				struct nt_trace_error *ret_error);

/* Parses it; the caller owns *ret_root. -EBADMSG with file, line and byte. */
NT_MUST_CHECK int nt_input_json(const char *path, const struct nt_buf *buf, json_t **ret_root,
				struct nt_trace_error *ret_error);

/*
 * The line, from 1, at which member `at` begins in the list under `key` in the first level of
 * `text`, or in the top-level list (NULL). SIZE_MAX: the line of the value under the key. 0: not
 * found.
 */
size_t nt_input_line(const struct nt_buf *text, const char *key, size_t at);

/*
 * Prefixes *error with file, line and location: those of nt_input_line(), and `what` it is. No line
 * if `text` is NULL. Returns -EBADMSG.
 */
int nt_input_refuse_at(struct nt_trace_error *error, const char *path, const struct nt_buf *text,
		       const char *key, size_t at, const char *what);

/*
 * Whether the file looks like a dump of PyTorch's flight recorder, as JSON or pickled, by the
 * first-level names at its beginning.
 */
bool nt_input_is_flight(const char *path);

#endif
