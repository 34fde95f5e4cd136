/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The queue pairs of one process: what their verbs stated, and the traffic that was last sent of
 * each. Pure: no clock, no system call.
 */
#ifndef NT_AGENT_RDMA_QUEUE_PAIR_H
#define NT_AGENT_RDMA_QUEUE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "bpf/event.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_QUEUE_PAIRS = NT_RDMA_PROCESS_QPS, /* of one process */
	NT_QUEUE_PAIR_ADDRESS = 48, /* an address as text, with its NUL */
};

struct nt_queue_pair {
	struct nt_rdma_key key;
	uint32_t type, state; /* enum ibv_qp_type, enum ibv_qp_state */
	uint32_t remote_qpn, remote_lid, local_lid;
	uint8_t port, sgid_index;
	bool is_global, is_extended;
	bool is_foreign; /* of another provider than the one that is observed */
	bool is_counted; /* among those that are not visible */
	bool is_lost; /* out of memory when it was added */
	bool is_new; /* changed since it was last sent */
	bool is_ended; /* destroyed: sent once more */
	uint8_t remote_gid[NT_VERBS_GID], local_gid[NT_VERBS_GID];
	bool has_local_gid, lacks_address; /* lacks: it is still to be looked up */
	char device[NT_VERBS_DEVICE];
	struct nt_rdma_traffic sent; /* kernel's figures that were sent */
	UT_hash_handle hh;
};

/* Zeroed: empty. */
struct nt_queue_pairs {
	struct nt_queue_pair *table; /* uthash, owned, oldest first */
	uint64_t over_cap;
};

/* NULL: not known. */
struct nt_queue_pair *nt_queue_pairs_find(const struct nt_queue_pairs *pairs,
					  const struct nt_rdma_key *key);
/* The same, added if necessary. NULL: at the cap, which is counted, or out of memory. */
struct nt_queue_pair *nt_queue_pairs_take(struct nt_queue_pairs *pairs,
					  const struct nt_rdma_key *key);
void nt_queue_pairs_remove(struct nt_queue_pairs *pairs, struct nt_queue_pair *pair);

/* What the verb states of the queue pair. True: its local address may have changed. */
bool nt_queue_pair_update(struct nt_queue_pair *pair, const struct nt_event_verbs *event);

/* Its number belongs to a new queue pair now; the figures that were sent stay. */
void nt_queue_pair_reset(struct nt_queue_pair *pair);

/*
 * What was added to the kernel's figures since it was last sent. Figures that have become smaller are those
 * of a new entry. window: of the process, for the least and most latency.
 */
void nt_queue_pair_row(const struct nt_queue_pair *pair, const struct nt_rdma_traffic *now,
		       uint32_t window, struct nt_rdma_pair *ret_row);

/* True if the row has traffic. */
bool nt_queue_pair_is_active(const struct nt_rdma_pair *row);

/* The text of a GID as inet_ntop() writes IPv6; empty for zeros. */
void nt_queue_pair_address(const uint8_t gid[NT_VERBS_GID], char ret_text[NT_QUEUE_PAIR_ADDRESS]);

#endif
