/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The local addresses of queue pairs. A process states the device, the port and the index, as often as it
 * likes, and each is two files to read: what was read is kept for a while, and each owner may have a few
 * others read between two ticks.
 */
#include <string.h>

#include "agent/rdma/rdma_impl.h"

static bool is_of(const struct nt_rdma_local *local, const struct nt_queue_pair *pair)
{
	return local->index == pair->sgid_index && local->port == pair->port &&
	       strncmp(local->device, pair->device, sizeof(local->device)) == 0;
}

/* NULL: it was not read lately. */
static const struct nt_rdma_local *find_local(const struct nt_rdma *rdma,
					      const struct nt_queue_pair *pair)
{
	for (size_t i = 0; i < NT_RDMA_PORTS; i++)
		if (is_of(&rdma->port[i], pair) && rdma->now_ns < rdma->port[i].end_ns)
			return &rdma->port[i];
	return NULL;
}

static const struct nt_rdma_local *read_local(struct nt_rdma *rdma,
					      const struct nt_queue_pair *pair)
{
	struct nt_rdma_local *local = &rdma->port[rdma->ports++ % NT_RDMA_PORTS];

	*local = (struct nt_rdma_local){.port = pair->port,
					.index = pair->sgid_index,
					.end_ns = rdma->now_ns + NT_RDMA_PORT_NS};
	memcpy(local->device, pair->device, sizeof(local->device));
	local->has_gid = rdma->hooks.address(rdma->hooks.data, local->device, local->port,
					     local->index, local->gid, &local->lid);
	return local;
}

void nt_rdma_note_address(struct nt_rdma *rdma, struct nt_rdma_owner *owner,
			  struct nt_queue_pair *pair)
{
	const struct nt_rdma_local *local = find_local(rdma, pair);

	pair->has_local_gid = false;
	pair->lacks_address = !local && owner->reads >= NT_RDMA_READS;
	if (pair->lacks_address) {
		rdma->stats.addresses_late++;
		return;
	}
	if (!local) {
		owner->reads++;
		local = read_local(rdma, pair);
	}
	pair->has_local_gid = local->has_gid;
	pair->local_lid = local->lid;
	memcpy(pair->local_gid, local->gid, sizeof(pair->local_gid));
}
