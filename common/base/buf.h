/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A growable byte buffer with a cap. All zero is empty: `nt_autobuf struct nt_buf b = {0}`. */
#ifndef NT_COMMON_BASE_BUF_H
#define NT_COMMON_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_buf {
	uint8_t *data;
	size_t len, cap;
	size_t max; /* 0: NT_BUF_MAX */
};

enum {
	NT_BUF_MAX = 64 << 20,
};

/* Makes room for `more` bytes after len. -ENOBUFS at the cap, -ENOMEM. The content is unchanged. */
NT_MUST_CHECK int nt_buf_reserve(struct nt_buf *buf, size_t more);

NT_MUST_CHECK int nt_buf_append(struct nt_buf *buf, const void *data, size_t len);

/* Appends formatted text; a terminating NUL follows but is not counted in len. */
NT_MUST_CHECK int nt_buf_printf(struct nt_buf *buf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void nt_buf_clear(struct nt_buf *buf);

void nt_buf_release(struct nt_buf *buf);

#define nt_autobuf __attribute__((cleanup(nt_buf_release)))

#endif
