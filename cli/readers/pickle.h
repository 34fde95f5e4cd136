/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Converts plain data of a Python pickle (protocols 2 to 5) to JSON. A pickle is a program; only
 * the opcodes for numbers, texts, lists, tuples and dicts are executed. Nothing is called or
 * imported.
 */
#ifndef NT_CLI_READERS_PICKLE_H
#define NT_CLI_READERS_PICKLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

enum {
	NT_PICKLE_MAX_DEPTH = 32, /* of nested lists */
	NT_PICKLE_MAX_STACK = 1 << 22, /* values not yet in their list */
	NT_PICKLE_MAX_VALUES = 1 << 26, /* in total, each as often as it is used */
};

/* Whether the bytes begin like a pickle. */
bool nt_pickle_is(const uint8_t *data, size_t len);

/*
 * Tuples become lists, numeric keys become texts, and NaN becomes null. The caller owns *ret_root.
 * -EBADMSG with file and byte for anything else, -ENOMEM.
 */
NT_MUST_CHECK int nt_pickle_read(const char *path, const uint8_t *data, size_t len,
				 json_t **ret_root, struct nt_trace_error *ret_error);

#endif
