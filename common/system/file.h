/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small files read and made whole. */
#ifndef NT_COMMON_SYSTEM_FILE_H
#define NT_COMMON_SYSTEM_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

/* Appends the content of the file to buf. -EFBIG over max bytes, -EISDIR, or what open says. */
NT_MUST_CHECK int nt_file_read(const char *path, size_t max, struct nt_buf *buf);

/* Makes the directories above path that are missing. */
NT_MUST_CHECK int nt_file_make_parent(const char *path, mode_t mode);

/*
 * Makes the file with that content, or not at all: nobody ever sees half of it. -EEXIST where there
 * is one already, which stays as it is.
 */
NT_MUST_CHECK int nt_file_create(const char *path, mode_t mode, const void *content, size_t len);

#endif
