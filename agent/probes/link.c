/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/link.h"

#include <errno.h>
#include <sys/syscall.h>

enum {
	BPF_LINK_CREATE_COMMAND = 28,
	MULTI_RETURN = 1, /* BPF_F_UPROBE_MULTI_RETURN */
};

/* union bpf_attr of BPF_LINK_CREATE with its uprobe_multi member, as of 6.6. */
struct link_create {
	uint32_t program, target, attach_type, flags;
	uint64_t path, offsets, reference_counters, cookies;
	uint32_t count, multi_flags, pid, pad;
};

enum {
	LINK_CREATE_BYTES = 60,
};

_Static_assert(sizeof(struct link_create) == 64, "kernel ABI");

struct nt_link {
	int fd;
	size_t perfs;
	struct bpf_link *perf[];
};

static int create_multi(const struct bpf_program *program, enum nt_link_kind kind, const char *path,
			uint32_t pid, const struct nt_probe_site *site, size_t sites)
{
	nt_autofree uint64_t *values = calloc(sites, 3 * sizeof(*values));
	struct link_create attr = {
		.program = (uint32_t)bpf_program__fd(program),
		.attach_type = kind == NT_LINK_MULTI_SESSION ? NT_UPROBE_SESSION : NT_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)values,
		.cookies = (uintptr_t)(values + sites),
		.reference_counters = (uintptr_t)(values + 2 * sites),
		.count = (uint32_t)sites,
		.multi_flags = kind == NT_LINK_MULTI_RETURN ? MULTI_RETURN : 0,
		.pid = pid,
	};
	long fd;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < sites; i++) {
		values[i] = site[i].offset;
		values[sites + i] = site[i].cookie;
		values[2 * sites + i] = site[i].semaphore;
	}
	fd = syscall(SYS_bpf, BPF_LINK_CREATE_COMMAND, &attr, LINK_CREATE_BYTES);
	return fd < 0 ? -errno : (int)fd;
}

static int create_perf(const struct bpf_program *program, enum nt_link_kind kind, const char *path,
		       uint32_t pid, const struct nt_probe_site *site, struct bpf_link **ret_link)
{
	const struct bpf_uprobe_opts opts = {
		.sz = sizeof(opts),
		.bpf_cookie = site->cookie,
		.ref_ctr_offset = site->semaphore,
		.retprobe = kind == NT_LINK_PERF_RETURN,
	};
	struct bpf_link *link;

	link = bpf_program__attach_uprobe_opts(program, pid ? (pid_t)pid : -1, path, site->offset,
					       &opts);
	if (!link)
		return -errno;
	*ret_link = link;
	return 0;
}

int nt_link_new(const struct bpf_program *program, enum nt_link_kind kind, const char *path,
		uint32_t pid, const struct nt_probe_site *site, size_t sites,
		struct nt_link **ret_link)
{
	bool perf = kind == NT_LINK_PERF_ENTRY || kind == NT_LINK_PERF_RETURN;
	nt_auto(nt_link) struct nt_link *link = NULL;
	int r;

	link = calloc(1, sizeof(*link) + (perf ? sites : 0) * sizeof(link->perf[0]));
	if (!link)
		return -ENOMEM;
	link->fd = -1;
	if (!perf) {
		r = create_multi(program, kind, path, pid, site, sites);
		if (r < 0)
			return r;
		link->fd = r;
	}
	for (; perf && link->perfs < sites; link->perfs++) {
		r = create_perf(program, kind, path, pid, &site[link->perfs],
				&link->perf[link->perfs]);
		if (r < 0)
			return r;
	}
	*ret_link = nt_take(link);
	return 0;
}

void nt_link_free(struct nt_link *link)
{
	if (!link)
		return;
	if (link->fd >= 0)
		(void)close(link->fd);
	for (size_t i = 0; i < link->perfs; i++)
		(void)bpf_link__destroy(link->perf[i]);
	free(link);
}
