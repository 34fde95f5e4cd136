/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading and atomic creation of small files. */
#ifndef NT_COMMON_SYSTEM_FILE_H
#define NT_COMMON_SYSTEM_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

/*
 * Appends the content of the file to buf. -EFBIG over max bytes, -EISDIR, or the error of open().
 */
NT_MUST_CHECK int nt_file_read(const char *path, size_t max, struct nt_buf *buf);

/* Creates the missing parent directories of path. */
NT_MUST_CHECK int nt_file_make_parent(const char *path, mode_t mode);

/*
 * Creates the file with that content atomically: no partial file is ever visible. -EEXIST if it
 * exists; it is unchanged then.
 */
NT_MUST_CHECK int nt_file_create(const char *path, mode_t mode, const void *content, size_t len);

#endif
