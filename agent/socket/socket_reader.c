/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/socket_reader.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "socket.skel.h"

enum {
	READ_RECORDS = 32, /* per call of read(2) */
	READS_MAX = 4096, /* of one process: beyond them the rest is left out uncounted */
};

struct nt_socket_reader {
	struct socket_bpf *programs;
};

int nt_socket_reader_new(struct nt_socket_reader **ret_reader)
{
	nt_auto(nt_socket_reader) struct nt_socket_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->programs = socket_bpf__open();
	if (!reader->programs)
		return errno == ENOMEM ? -ENOMEM : -ENOTSUP;
	r = socket_bpf__load(reader->programs);
	if (r == -EPERM || r == -EACCES)
		return -EPERM;
	if (r < 0)
		return r == -ENOMEM ? r : -ENOTSUP;
	*ret_reader = nt_take(reader);
	return 0;
}

void nt_socket_reader_free(struct nt_socket_reader *reader)
{
	if (!reader)
		return;
	socket_bpf__destroy(reader->programs);
	free(reader);
}

/* A descriptor whose contents are the process's sockets. */
static int open_process(const struct nt_socket_reader *reader, uint32_t pid)
{
	union bpf_iter_link_info info = {.task = {.pid = pid}};
	LIBBPF_OPTS(bpf_link_create_opts, options, .iter_info = &info,
		    .iter_info_len = sizeof(info));
	const int link = bpf_link_create(bpf_program__fd(reader->programs->progs.process_sockets),
					 0, BPF_TRACE_ITER, &options);
	int fd;

	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	fd = fd < 0 ? -errno : fd;
	(void)close(link);
	return fd;
}

static int read_all(int fd, struct nt_socket_record *record, size_t max, size_t *count,
		    size_t *left_out)
{
	struct nt_socket_record some[READ_RECORDS];

	for (int reads = 0; reads < READS_MAX; reads++) {
		const ssize_t n = read(fd, some, sizeof(some));
		const size_t records = n > 0 ? (size_t)n / sizeof(some[0]) : 0;
		const size_t kept = records < max - *count ? records : max - *count;

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n == 0)
			return 0;
		memcpy(record + *count, some, kept * sizeof(some[0]));
		*count += kept;
		*left_out += records - kept;
	}
	return 0;
}

int nt_socket_reader_read(struct nt_socket_reader *reader, uint32_t pid,
			  struct nt_socket_record *ret_record, size_t max, size_t *ret_count,
			  size_t *ret_left_out)
{
	const int fd = open_process(reader, pid);
	int r;

	*ret_count = *ret_left_out = 0;
	if (fd < 0)
		return fd;
	r = read_all(fd, ret_record, max, ret_count, ret_left_out);
	(void)close(fd);
	return r;
}
