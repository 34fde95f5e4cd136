/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampled calls of processes at level L1: their limits, and their ring (bpf/detail.bpf.h). */
#include "agent/probes/bpf_loader_impl.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/probes/event.h"
#include "call.skel.h"
#include "session.skel.h"

enum {
	DETAILS_MAX = 16384, /* per poll, so that the loop is not held up: more than the ring has */
	RING_PART = 8, /* of the main ring */
	RING_LEAST = 1 << 16,
};

uint32_t nt_bpf_loader_detail_ring(size_t ring_bytes)
{
	return ring_bytes / RING_PART > RING_LEAST ? (uint32_t)(ring_bytes / RING_PART)
						   : RING_LEAST;
}

static int take_detail(void *context, void *record, size_t size)
{
	struct nt_bpf_loader *loader = context;
	struct nt_event_detail detail;

	if (nt_event_read_detail(record, size, &detail) == 0) {
		detail.h.row = NT_ROW_OF(detail.h.row);
		if (loader->detail && detail.h.row != NT_BPF_LOADER_TRIAL_ROW)
			loader->detail(loader->gpu_data, &detail);
	}
	return ++loader->details_polled >= DETAILS_MAX ? -EAGAIN : 0;
}

int nt_bpf_loader_open_details(struct nt_bpf_loader *loader)
{
	loader->details = ring_buffer__new(bpf_map__fd(loader->call->maps.detail_events),
					   take_detail, loader, NULL);
	return loader->details ? 0 : -errno;
}

int nt_bpf_loader_poll_details(struct nt_bpf_loader *loader)
{
	int r;

	loader->details_polled = 0;
	r = ring_buffer__consume(loader->details);
	if (r == -EAGAIN)
		return 1;
	return r < 0 ? r : 0;
}

int nt_bpf_loader_set_detail(const struct nt_bpf_loader *loader, uint32_t pid,
			     const struct nt_detail_limits *limits)
{
	const int map = bpf_map__fd(loader->call->maps.detail_limits);
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	if (fd < 0)
		return -errno;
	if (limits)
		return bpf_map_update_elem(map, &fd, limits, BPF_ANY) < 0 ? -errno : 0;
	return bpf_map_delete_elem(map, &fd) < 0 && errno != ENOENT ? -errno : 0;
}

void nt_bpf_loader_set_detailed(const struct nt_bpf_loader *loader, uint32_t processes)
{
	__atomic_store_n(&loader->call->bss->detailed, processes, __ATOMIC_SEQ_CST);
	if (loader->session)
		__atomic_store_n(&loader->session->bss->detailed, processes, __ATOMIC_SEQ_CST);
}

bool nt_bpf_loader_detail_rates(const struct nt_bpf_loader *loader, uint32_t pid,
				struct nt_detail_rates *ret_rates)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	return fd >= 0 && bpf_map_lookup_elem(bpf_map__fd(loader->call->maps.detail_rates), &fd,
					      ret_rates) == 0;
}
