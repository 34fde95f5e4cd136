/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's proxies sent to a rank on another node, as NCCL's profiler plugin sees it. */
#ifndef NT_SIM_CLUSTER_SENT_H
#define NT_SIM_CLUSTER_SENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sends of one call over one channel. */
struct cl_sent {
	int64_t end_ns; /* of the last */
	uint64_t shortest_ns, busy_ns; /* in the network: one of them; together */
	uint32_t peer; /* its place in the group */
	uint32_t bytes, sends; /* of one; how many */
	uint8_t group, generation;
	bool has_refused; /* the network, by then */
};

/* What nobody has taken yet, in no order of time. */
struct cl_sents {
	struct cl_sent *sent; /* owned */
	size_t count, room;
};

/* False: no memory. */
bool cl_sents_add(struct cl_sents *sents, const struct cl_sent *sent);

#endif
