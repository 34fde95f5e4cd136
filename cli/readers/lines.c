/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <zlib.h>

#include "cli/readers/input.h"

enum {
	LINE_MAX_BYTES = 64 << 10,
};

struct nt_lines {
	gzFile file;
	uint64_t number;
	bool is_open; /* the last line has no end */
	char line[LINE_MAX_BYTES];
};

int nt_lines_open(const char *path, struct nt_lines **ret_lines)
{
	nt_auto(nt_lines) struct nt_lines *lines = NULL;
	char place[NT_INPUT_PLACE_BYTES];
	nt_autoclose int fd = -1;

	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	fd = open(nt_input_place(path, place), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	lines->file =
		gzdopen(fd, "rb"); /* owns fd on success only; reads plain files as they are */
	if (!lines->file)
		return -ENOMEM;
	(void)nt_take_fd(&fd);

	*ret_lines = nt_take(lines);
	return 0;
}

void nt_lines_close(struct nt_lines *lines)
{
	if (!lines)
		return;
	if (lines->file)
		(void)gzclose_r(lines->file);
	free(lines);
}

/* Distinguishes the end, a damaged file, and a truncated one, which gzgets does not. */
static int end_reason(gzFile file)
{
	int err = Z_OK;

	(void)gzerror(file, &err);
	if (err == Z_DATA_ERROR || err == Z_BUF_ERROR)
		return -EBADMSG;
	return err == Z_OK || err == Z_STREAM_END ? 0 : -EIO;
}

int nt_lines_next(struct nt_lines *lines, char **ret_line)
{
	size_t len = 0;

	lines->number++;
	lines->is_open = false;
	/* gzgets hides a NUL byte in the text: read by bytes of its buffer. */
	for (;;) {
		int c = gzgetc(lines->file);

		if (c < 0) {
			int r = end_reason(lines->file);

			if (r < 0)
				return r;
			if (len == 0)
				return 0;
			lines->is_open = true;
			break;
		}
		if (c == '\n')
			break;
		if (c == '\0')
			return -EBADMSG;
		if (len == sizeof(lines->line) - 1)
			return -EMSGSIZE;
		lines->line[len++] = (char)c;
	}
	if (len && lines->line[len - 1] == '\r')
		len--;
	lines->line[len] = '\0';

	*ret_line = lines->line;
	return 1;
}

bool nt_lines_is_open(const struct nt_lines *lines)
{
	return lines->is_open;
}

uint64_t nt_lines_number(const struct nt_lines *lines)
{
	return lines->number;
}
