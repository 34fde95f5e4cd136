/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A JSON value as text at the end of a buffer. */
#ifndef NT_COMMON_SYSTEM_JSON_APPEND_H
#define NT_COMMON_SYSTEM_JSON_APPEND_H

#include <jansson.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

/* flags: those of json_dumps(). On failure (-ENOMEM, or as of nt_buf_append()) a part may remain. */
NT_MUST_CHECK int nt_json_append(const json_t *json, size_t flags, struct nt_buf *buf);

#endif
