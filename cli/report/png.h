/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoder of PNG images with at most 256 colours. */
#ifndef NT_CLI_REPORT_PNG_H
#define NT_CLI_REPORT_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_PNG_MAX_SIDE = 4096,
};

struct nt_png_colour {
	uint8_t red, green, blue, alpha;
};

/* `pixel`: index of its colour, row by row from the top. -EINVAL for a side of 0 or too long. */
NT_MUST_CHECK int nt_png_write(struct nt_buf *buf, const uint8_t *pixel, size_t width,
			       size_t height, const struct nt_png_colour colour[256]);

#endif
