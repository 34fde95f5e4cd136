/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Unpacks archives: zip, tar, gzipped tar. An entry becomes a file without a name; the entry's own
 * name is nothing but a label. Bytes, entries and the ratio of compression are capped.
 */
#ifndef NT_CLI_INPUT_ARCHIVE_H
#define NT_CLI_INPUT_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_ARCHIVE_MAX_ENTRIES = 65536, /* with those that are not unpacked */
	NT_ARCHIVE_MAX_RATIO = 256, /* of all that is unpacked to the archive's bytes */
	NT_ARCHIVE_FREE_BYTES = 64 << 20, /* up to here the ratio does not count */
	NT_ARCHIVE_ERROR_BYTES = 128,
};

#define NT_ARCHIVE_MAX_BYTES ((uint64_t)16 << 30) /* unpacked, of all archives of a run */

/* An entry. */
struct nt_archive_entry {
	const char *name; /* as in the archive, without control characters */
	int fd; /* -1: not unpacked */
};

struct nt_archive_reader {
	/* Whether to unpack an entry of that name. */
	bool (*wants)(void *data, const char *name);
	/* Takes over the fd, also if it fails. */
	int (*take)(void *data, const struct nt_archive_entry *entry);
	void *data;
	uint64_t bytes; /* unpacked so far; kept from archive to archive */
};

/*
 * Reads all entries in order. -EBADMSG with a reason if the archive is damaged, encrypted or over a
 * cap: entries before that place were taken. -errno of the file; -ENOMEM; errors of take().
 */
NT_MUST_CHECK int nt_archive_read(struct nt_archive_reader *reader, const char *path,
				  char ret_error[NT_ARCHIVE_ERROR_BYTES]);

#endif
