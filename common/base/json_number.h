/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NT_COMMON_BASE_JSON_NUMBER_H
#define NT_COMMON_BASE_JSON_NUMBER_H

#include <stddef.h>

#include "common/base/cleanup.h"
#include "common/base/json_value.h"

/*
 * Reads the JSON number at `text`, which ends with any other byte, as integer or correctly rounded
 * real. Returns NULL, or what is wrong: also if an integer exceeds 64 bits, or a real is infinite.
 */
NT_MUST_CHECK const char *nt_json_number_read(const char *text, struct nt_json_value *ret_value,
					      size_t *ret_len);

#endif
