/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The queue pairs of a rank's process, as its windows state them, with their figures of the last
 * minutes. Times are of the real clock.
 */
#ifndef NT_ENGINE_LINKS_RANK_LINKS_H
#define NT_ENGINE_LINKS_RANK_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_RANK_LINKS_PAIRS = 256, /* of a process; further ones are counted */
	NT_RANK_LINKS_TEXT = 48, /* bytes with the NUL */
};

/* Figures are of the last one to two of these: a rank is observed once a minute or more. */
#define NT_RANK_LINKS_PERIOD_NS (60ULL * 1000000000)
/* A queue pair that was not stated for so long is gone. */
#define NT_RANK_LINKS_FORGET_NS (120ULL * 1000000000)

/* Sums; the names as of struct nt_rdma_pair. */
struct nt_pair_sums {
	uint64_t requests, bytes; /* posted */
	uint64_t received, received_bytes;
	uint64_t completions, errors;
	uint64_t timed, latency_ns, least_ns, most_ns;
};

struct nt_rank_pair {
	uint32_t qpn, remote_qpn, type, port;
	char local[NT_RANK_LINKS_TEXT], remote[NT_RANK_LINKS_TEXT]; /* addresses; "": not known */
	char device[NT_RANK_LINKS_TEXT];
	bool not_visible;
	uint32_t error_status; /* of the last errors */
	uint64_t seen_ns;
	struct nt_pair_sums now, before; /* of this period, and of the one before */
};

struct nt_rank_links {
	struct nt_rank_pair pair[NT_RANK_LINKS_PAIRS];
	size_t pairs;
	uint64_t pairs_over_cap; /* here, and at the agent */
	uint32_t not_visible; /* NT_WIRE_RDMA_*, of the last window */
	uint64_t period_ns; /* when this period began */
	uint64_t observed_ns[2], polled_ns[2]; /* of this period, and of the one before */
	uint64_t regions, region_bytes;
};

/*
 * Takes what a window states of RDMA that ended at end_ns. *links: owned by the caller, made if the
 * process uses any. -ENOMEM: nothing has changed.
 */
NT_MUST_CHECK int nt_rank_links_take(struct nt_rank_links **links, const struct nt_window *window,
				     uint64_t end_ns);

/* The figures of both periods. */
struct nt_pair_sums nt_rank_pair_sums(const struct nt_rank_pair *pair);
void nt_pair_sums_add(struct nt_pair_sums *sum, const struct nt_pair_sums *more);

#endif
