/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/input/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/readers/input.h"
#include "proto/text.h"

enum {
	BLOCK_BYTES = 64 << 10,
	NAME_BYTES = 512,
};

static void free_archive(struct archive **archive)
{
	(void)archive_read_free(*archive);
}

/* Names in messages of the library are untrusted, too. */
static int refuse(const char *what, char ret_error[NT_ARCHIVE_ERROR_BYTES])
{
	(void)nt_text_clean(what, strlen(what), ret_error, NT_ARCHIVE_ERROR_BYTES - 1);
	return -EBADMSG;
}

static int refuse_archive(struct archive *archive, char ret_error[NT_ARCHIVE_ERROR_BYTES])
{
	const char *why = archive_error_string(archive);

	return archive_errno(archive) == ENOMEM ? -ENOMEM
						: refuse(why ? why : "damaged", ret_error);
}

static int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The same limits hold before an entry is written: a bomb fills no disk. */
static int check_size(const struct nt_archive_reader *reader, struct archive *archive,
		      uint64_t entry_bytes, char ret_error[NT_ARCHIVE_ERROR_BYTES])
{
	const int64_t packed = archive_filter_bytes(archive, -1);
	const uint64_t bytes = reader->bytes + entry_bytes;

	if (entry_bytes > NT_INPUT_MAX_BYTES)
		return refuse("an entry has more than 1 GiB", ret_error);
	if (bytes > NT_ARCHIVE_MAX_BYTES)
		return refuse("the unpacked files have more than 16 GiB", ret_error);
	if (bytes > NT_ARCHIVE_FREE_BYTES &&
	    entry_bytes / NT_ARCHIVE_MAX_RATIO > (packed > 0 ? (uint64_t)packed : 0))
		return refuse("unpacks to more than 256 times its size", ret_error);
	return 0;
}

static int unpack(struct nt_archive_reader *reader, struct archive *archive, int fd,
		  char ret_error[NT_ARCHIVE_ERROR_BYTES])
{
	uint8_t block[BLOCK_BYTES];
	uint64_t bytes = 0;

	for (;;) {
		const la_ssize_t n = archive_read_data(archive, block, sizeof(block));
		int r;

		if (n == 0)
			break;
		if (n < 0)
			return refuse_archive(archive, ret_error);
		bytes += (uint64_t)n;
		r = check_size(reader, archive, bytes, ret_error);
		r = r ?: write_all(fd, block, (size_t)n);
		if (r < 0)
			return r;
	}
	reader->bytes += bytes;
	return 0;
}

/* Other methods of zip (PPMd, LZMA) take as much memory as an entry states. */
static bool is_plain(struct archive *archive)
{
	const char *format = archive_format_name(archive);

	return archive_format(archive) != ARCHIVE_FORMAT_ZIP ||
	       (format && (strstr(format, "(deflation)") || strstr(format, "(uncompressed)")));
}

static int read_entry(struct nt_archive_reader *reader, struct archive *archive,
		      struct archive_entry *header, char ret_error[NT_ARCHIVE_ERROR_BYTES])
{
	const char *name = archive_entry_pathname_utf8(header);
	struct nt_archive_entry entry = {.fd = -1};
	nt_autoclose int fd = -1;
	char clean[NAME_BYTES];
	int r;

	name = name ? name : archive_entry_pathname(header);
	if (!name || archive_entry_filetype(header) != AE_IFREG)
		return 0;
	(void)nt_text_clean(name, strlen(name), clean, sizeof(clean) - 1);
	entry.name = clean;
	if (!reader->wants(reader->data, clean))
		return reader->take(reader->data, &entry);
	if (!is_plain(archive))
		return refuse("an entry is neither stored nor deflated: pack it again with zip",
			      ret_error);
	fd = nt_input_nameless();
	if (fd < 0)
		return fd;
	r = unpack(reader, archive, fd, ret_error);
	if (r < 0)
		return r;
	if (archive_entry_mtime_is_set(header)) {
		const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
						  {.tv_sec = archive_entry_mtime(header)}};

		/* For dumps, whose time matters; without it they count as written now. */
		(void)!futimens(fd, times);
	}
	entry.fd = nt_take_fd(&fd);
	return reader->take(reader->data, &entry);
}

int nt_archive_read(struct nt_archive_reader *reader, const char *path,
		    char ret_error[NT_ARCHIVE_ERROR_BYTES])
{
	__attribute__((cleanup(free_archive))) struct archive *archive = archive_read_new();
	struct archive_entry *header = NULL;
	nt_autoclose int fd = -1;
	size_t entries = 0;
	int r;

	if (!archive)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = archive_read_support_format_zip(archive);
	r = r ?: archive_read_support_format_tar(archive);
	r = r ?: archive_read_support_filter_gzip(archive);
	r = r ?: archive_read_open_fd(archive, fd, BLOCK_BYTES);
	if (r != ARCHIVE_OK)
		return refuse_archive(archive, ret_error);
	for (;;) {
		r = archive_read_next_header(archive, &header);
		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return refuse_archive(archive, ret_error);
		if (entries++ == NT_ARCHIVE_MAX_ENTRIES)
			return refuse("more than 65536 entries", ret_error);
		r = read_entry(reader, archive, header, ret_error);
		if (r < 0)
			return r;
	}
}
