/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rdma/traffic_map.h"

#include <bpf/bpf.h>

#include "agent/probes/bpf_loader.h"

static struct nt_bpf_loader_rdma maps_of(const struct nt_attach *attach)
{
	struct nt_bpf_loader_rdma maps;

	nt_bpf_loader_rdma(nt_attach_loader(attach), &maps);
	return maps;
}

bool nt_traffic_map_read(const struct nt_attach *attach, const struct nt_rdma_key *key,
			 struct nt_rdma_traffic *ret_traffic)
{
	return bpf_map_lookup_elem(maps_of(attach).traffic, key, ret_traffic) == 0;
}

bool nt_traffic_map_forget(const struct nt_attach *attach, const struct nt_rdma_key *key,
			   bool is_destroyed)
{
	const struct nt_bpf_loader_rdma maps = maps_of(attach);

	(void)bpf_map_delete_elem(maps.traffic, key);
	return !is_destroyed && bpf_map_delete_elem(maps.all_signaled, key) == 0;
}

bool nt_traffic_map_next(const struct nt_attach *attach, enum nt_rdma_table table,
			 const struct nt_rdma_key *key, struct nt_rdma_key *ret_key)
{
	const struct nt_bpf_loader_rdma maps = maps_of(attach);

	return bpf_map_get_next_key(table == NT_RDMA_TRAFFIC ? maps.traffic : maps.all_signaled,
				    key, ret_key) == 0;
}

void nt_traffic_map_watch(const struct nt_attach *attach, uint32_t pid,
			  const struct nt_rdma_watch *watch)
{
	const int fd = maps_of(attach).watches;

	if (watch)
		(void)bpf_map_update_elem(fd, &pid, watch, BPF_ANY);
	else
		(void)bpf_map_delete_elem(fd, &pid);
}
