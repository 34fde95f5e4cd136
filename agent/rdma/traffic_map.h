/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel's tables of queue pairs (bpf/traffic.bpf.h). */
#ifndef NT_AGENT_RDMA_TRAFFIC_MAP_H
#define NT_AGENT_RDMA_TRAFFIC_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/probes/attach.h"
#include "agent/rdma/rdma.h"
#include "bpf/event.h"

/* False: the queue pair has had no traffic while it was observed. */
bool nt_traffic_map_read(const struct nt_attach *attach, const struct nt_rdma_key *key,
			 struct nt_rdma_traffic *ret_traffic);
/*
 * Deletes what is kept of a queue pair. is_destroyed: the kernel side itself has deleted it from those that
 * signal all; if one is there, it is another one with its number. True: it was one of those.
 */
bool nt_traffic_map_forget(const struct nt_attach *attach, const struct nt_rdma_key *key,
			   bool is_destroyed);
/*
 * The key after this one, or the first one, in no order. If it is gone, the walk begins anew. False: there
 * is none.
 */
bool nt_traffic_map_next(const struct nt_attach *attach, enum nt_rdma_table table,
			 const struct nt_rdma_key *key, struct nt_rdma_key *ret_key);
/* NULL: deletes it. At the cap of 1024 processes completions of further ones are not timed. */
void nt_traffic_map_watch(const struct nt_attach *attach, uint32_t pid,
			  const struct nt_rdma_watch *watch);

#endif
