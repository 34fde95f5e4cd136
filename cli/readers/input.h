/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads an input file, decompresses gzip. */
#ifndef NT_CLI_READERS_INPUT_H
#define NT_CLI_READERS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_INPUT_MAX_BYTES = 1 << 30, /* unpacked */
	NT_INPUT_PLACE_BYTES = 32,
};

/*
 * What to open: the path itself, or of "/proc/self/fd/N//NAME", a file without a name on this
 * machine, the part before the name. It may be written to `place`.
 */
const char *nt_input_place(const char *path, char place[NT_INPUT_PLACE_BYTES]);

struct nt_input;

/* Opens a file, perhaps gzipped, or a pipe, which it copies. -errno with *ret_error; -ENOMEM. */
NT_MUST_CHECK int nt_input_open(const char *path, struct nt_input **ret_input,
				struct nt_trace_error *ret_error);
void nt_input_free(struct nt_input *input);
NT_DEFINE_AUTO(nt_input, nt_input_free)

/*
 * The next unpacked bytes of the input: how many, 0 at the end. -EBADMSG for damaged compression or
 * over the cap, with the error given to nt_input_open(); -ENOMEM. It is a source of nt_json_scan.
 */
NT_MUST_CHECK ptrdiff_t nt_input_next(void *input, char *data, size_t size);

/* Starts again. -EIO. */
NT_MUST_CHECK int nt_input_rewind(struct nt_input *input);

/*
 * Appends what is left, until the buffer has more than `most` bytes. -EBADMSG as nt_input_next();
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_input_read(struct nt_input *input, struct nt_buf *buf, size_t most);

/* An open file without a name, on the disk if there is a place for it. -errno. */
NT_MUST_CHECK int nt_input_nameless(void);

/*
 * Whether the file looks like a dump of PyTorch's flight recorder, as JSON or pickled, by the
 * first-level names at its beginning.
 */
bool nt_input_is_flight(const char *path);

#endif
