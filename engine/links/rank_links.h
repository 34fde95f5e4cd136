/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The queue pairs and TCP sockets of a rank's process, as its windows state them, with their figures of
 * the last minutes. Times are of the real clock.
 */
#ifndef NT_ENGINE_LINKS_RANK_LINKS_H
#define NT_ENGINE_LINKS_RANK_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_RANK_LINKS_PAIRS = 256, /* of a process and transport; further ones are counted */
	NT_RANK_LINKS_TEXT = 48, /* bytes with the NUL */
};

/* Figures are of the last one to two of these: a rank is observed once a minute or more. */
#define NT_RANK_LINKS_PERIOD_NS (60ULL * 1000000000)
/* A queue pair or socket that was not stated for so long is gone. */
#define NT_RANK_LINKS_FORGET_NS (120ULL * 1000000000)

enum nt_link_transport {
	NT_LINK_RDMA,
	NT_LINK_TCP,
	NT_LINK_TRANSPORTS,
};

/*
 * Sums; the names as of struct nt_rdma_pair. The latency of a socket is its round-trip time, of each
 * reading one; it has no requests and completions.
 */
struct nt_pair_sums {
	uint64_t requests, bytes; /* posted; of a socket: acknowledged */
	uint64_t received, received_bytes;
	uint64_t completions, errors;
	uint64_t timed, latency_ns, least_ns, most_ns;
	uint64_t segments, retransmits; /* of a socket; the latter are in the former, too */
};

struct nt_rank_pair {
	enum nt_link_transport transport;
	uint32_t qpn, remote_qpn; /* of a socket: its ports */
	uint32_t type, port;
	char local[NT_RANK_LINKS_TEXT], remote[NT_RANK_LINKS_TEXT]; /* addresses; "": not known */
	char device[NT_RANK_LINKS_TEXT]; /* "" of a socket */
	bool not_visible;
	uint32_t error_status; /* of the last errors */
	uint64_t seen_ns;
	struct nt_pair_sums now, before; /* of this period, and of the one before */
};

struct nt_rank_links {
	struct nt_rank_pair *pair; /* owned */
	size_t pairs, pair_cap;
	size_t of_transport[NT_LINK_TRANSPORTS]; /* of `pairs` */
	uint64_t pairs_over_cap; /* queue pairs here, and at the agent */
	uint64_t sockets_over_cap; /* the same */
	uint32_t not_visible; /* NT_WIRE_RDMA_*, of the last window */
	uint64_t period_ns; /* when this period began */
	uint64_t observed_ns[2], polled_ns[2]; /* of this period, and of the one before */
	uint64_t sockets_observed_ns[2]; /* the same */
	uint64_t regions, region_bytes;
};

void nt_rank_links_free(struct nt_rank_links *links);

/*
 * Takes what a window states that ended at end_ns. *links: owned by the caller, made if the process
 * uses any. -ENOMEM: a part may be missing.
 */
NT_MUST_CHECK int nt_rank_links_take(struct nt_rank_links **links, const struct nt_window *window,
				     uint64_t end_ns);

/* The figures of both periods. */
struct nt_pair_sums nt_rank_pair_sums(const struct nt_rank_pair *pair);
void nt_pair_sums_add(struct nt_pair_sums *sum, const struct nt_pair_sums *more);

#endif
