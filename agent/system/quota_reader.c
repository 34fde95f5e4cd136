/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/quota_reader.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "quota.skel.h"

struct nt_quota_reader {
	struct quota_bpf *programs;
};

int nt_quota_reader_new(struct nt_quota_reader **ret_reader)
{
	nt_auto(nt_quota_reader) struct nt_quota_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->programs = quota_bpf__open();
	if (!reader->programs)
		return errno == ENOMEM ? -ENOMEM : -ENOTSUP;
	r = quota_bpf__load(reader->programs);
	if (r == -EPERM || r == -EACCES)
		return -EPERM;
	if (r < 0)
		return r == -ENOMEM ? r : -ENOTSUP;
	*ret_reader = nt_take(reader);
	return 0;
}

void nt_quota_reader_free(struct nt_quota_reader *reader)
{
	if (!reader)
		return;
	quota_bpf__destroy(reader->programs);
	free(reader);
}

int nt_quota_reader_read(const struct nt_quota_reader *reader, uint32_t tid, uint64_t *ret_ns)
{
	union bpf_iter_link_info info = {.task = {.tid = tid}};
	LIBBPF_OPTS(bpf_link_create_opts, options, .iter_info = &info,
		    .iter_info_len = sizeof(info));
	const int link = bpf_link_create(bpf_program__fd(reader->programs->progs.process_quota), 0,
					 BPF_TRACE_ITER, &options);
	ssize_t n;
	int fd;

	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	if (fd < 0) {
		n = -errno;
		(void)close(link);
		return (int)n;
	}
	n = read(fd, ret_ns, sizeof(*ret_ns));
	if (n < 0)
		n = -errno;
	(void)close(fd);
	(void)close(link);
	if (n < 0)
		return (int)n;
	return n == sizeof(*ret_ns) ? 0 : -ENODATA;
}
