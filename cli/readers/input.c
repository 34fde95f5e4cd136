/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "cli/readers/pickle.h"

enum {
	HEAD_BYTES = 64 << 10, /* of a file, to detect its format */
	PIPE_BYTES = 64 << 10, /* read at once */
};

static void close_gz(gzFile *file)
{
	if (*file)
		(void)gzclose_r(*file);
}

const char *nt_input_place(const char *path, char place[NT_INPUT_PLACE_BYTES])
{
	static const char files[] = "/proc/self/fd/";
	const char *end;

	if (strncmp(path, files, strlen(files)) != 0)
		return path;
	end = strstr(path, "//");
	if (!end || end - path >= NT_INPUT_PLACE_BYTES)
		return path;
	(void)snprintf(place, NT_INPUT_PLACE_BYTES, "%.*s", (int)(end - path), path);
	return place;
}

struct nt_input {
	const char *path;
	gzFile file;
	uint64_t bytes; /* unpacked so far */
	struct nt_trace_error *error;
};

int nt_input_nameless(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("neutracer", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Copies a pipe into a file, which can be read twice. */
static int copy(int from, int *ret_fd)
{
	nt_autoclose int fd = nt_input_nameless();
	off_t bytes = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	while (n && bytes <= NT_INPUT_MAX_BYTES) {
		n = splice(from, NULL, fd, NULL, PIPE_BYTES, 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	*ret_fd = nt_take_fd(&fd);
	return 0;
}

static int open_file(const char *path, int *ret_fd)
{
	char place[NT_INPUT_PLACE_BYTES];
	nt_autoclose int fd = open(nt_input_place(path, place), O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISFIFO(st.st_mode))
		return copy(fd, ret_fd);
	*ret_fd = nt_take_fd(&fd);
	return 0;
}

int nt_input_open(const char *path, struct nt_input **ret_input, struct nt_trace_error *ret_error)
{
	nt_auto(nt_input) struct nt_input *input = calloc(1, sizeof(*input));
	nt_autoclose int fd = -1;
	int r;

	if (!input)
		return -ENOMEM;
	input->path = path;
	input->error = ret_error;
	r = open_file(path, &fd);
	if (r < 0) {
		(void)nt_trace_refuse(ret_error, "%s: %s", path, strerrordesc_np(-r));
		return r;
	}
	input->file = gzdopen(fd, "rb");
	if (!input->file)
		return -ENOMEM;
	(void)nt_take_fd(&fd);
	(void)gzbuffer(input->file, PIPE_BYTES);
	*ret_input = nt_take(input);
	return 0;
}

void nt_input_free(struct nt_input *input)
{
	if (input && input->file)
		(void)gzclose_r(input->file);
	free(input);
}

ptrdiff_t nt_input_next(void *context, char *data, size_t size)
{
	struct nt_input *input = context;
	const int n = gzread(input->file, data, (unsigned int)size);
	int r = 0;

	if (n < 0) {
		(void)gzerror(input->file, &r);
		return r == Z_MEM_ERROR
			       ? -ENOMEM
			       : nt_trace_refuse(input->error,
						 "%s: damaged gzip data: copy the file again",
						 input->path);
	}
	if (n == 0) {
		(void)gzerror(input->file, &r);
		return r == Z_BUF_ERROR
			       ? nt_trace_refuse(input->error,
						 "%s: cut short at byte %" PRIu64
						 " of the unpacked data: copy the file again",
						 input->path, input->bytes)
			       : 0;
	}
	input->bytes += (uint64_t)n;
	return input->bytes > NT_INPUT_MAX_BYTES
		       ? nt_trace_refuse(input->error, "%s: larger than %d bytes", input->path,
					 NT_INPUT_MAX_BYTES)
		       : n;
}

int nt_input_rewind(struct nt_input *input)
{
	if (!input->bytes)
		return 0;
	input->bytes = 0;
	return gzrewind(input->file) < 0 ? -EIO : 0;
}

int nt_input_read(struct nt_input *input, struct nt_buf *buf, size_t most)
{
	buf->max = NT_INPUT_MAX_BYTES + PIPE_BYTES;
	while (buf->len <= most) {
		int r = nt_buf_reserve(buf, PIPE_BYTES);
		ptrdiff_t n;

		if (r < 0)
			return r;
		n = nt_input_next(input, (char *)buf->data + buf->len, PIPE_BYTES);
		if (n <= 0)
			return (int)n;
		buf->len += (size_t)n;
	}
	return 0;
}

static bool is_one_of(const char *key, size_t len, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == len && memcmp(key, names[i], len) == 0)
			return true;
	return false;
}

/* Strings of the first level: keys, and values that never have these names. */
static bool has_flight_key(const char *text, size_t len)
{
	static const char *const known[] = {"entries", "pg_config", "pg_status",
					    "comm_lib_version"};
	static const char *const other[] = {"traceEvents"};
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		size_t start = i + 1;

		if (text[i] == '{' || text[i] == '[') {
			depth++;
		} else if (text[i] == '}' || text[i] == ']') {
			depth--;
		} else if (text[i] == '"') {
			for (i++; i < len && text[i] != '"'; i++)
				i += text[i] == '\\';
			if (depth != 1 || i >= len)
				continue;
			if (is_one_of(text + start, i - start, other, 1))
				return false;
			if (is_one_of(text + start, i - start, known, 4))
				return true;
		}
	}
	return false;
}

bool nt_input_is_flight(const char *path)
{
	__attribute__((cleanup(close_gz))) gzFile file = NULL;
	nt_autofree char *head = malloc(HEAD_BYTES);
	char place[NT_INPUT_PLACE_BYTES];
	size_t len, at = 0;
	int n;

	file = gzopen(nt_input_place(path, place), "rbe");
	n = file && head ? gzread(file, head, HEAD_BYTES) : 0;
	if (n <= 0)
		return false;
	len = (size_t)n;
	/* The calls may precede all other entries. */
	if (nt_pickle_is((const uint8_t *)head, len))
		return memmem(head, len, "pg_config", strlen("pg_config")) ||
		       memmem(head, len, "profiling_name", strlen("profiling_name"));
	while (at < len && strchr(" \t\r\n", head[at]))
		at++;
	return at < len && head[at] == '{' && has_flight_key(head, len);
}
