/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The links of a job: queue pairs and TCP sockets of its ranks, joined with their other ends. A link
 * has a direction and a transport; it sums what leads from one rank to another, or to an address that
 * no rank of the job has. A process's connections with itself are none.
 *
 * Two ends belong together if each has the address and number that the other one is connected to. If
 * one of them was connected before its agent, the other one's statement suffices. Both ends of a TCP
 * connection state both addresses and ports.
 */
#ifndef NT_ENGINE_LINKS_JOB_LINKS_H
#define NT_ENGINE_LINKS_JOB_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/links/rank_links.h"

enum {
	NT_JOB_LINKS = 4096, /* of a job; further ones are counted */
	NT_JOB_LINKS_ENDS = 65536, /* queue pairs and sockets of a job; the same */
};

struct nt_job_link {
	enum nt_link_transport transport;
	uint32_t rank, peer; /* indices of the input */
	bool has_peer;
	char device[NT_RANK_LINKS_TEXT], local[NT_RANK_LINKS_TEXT], remote[NT_RANK_LINKS_TEXT];
	uint32_t pairs, pairs_not_visible; /* or sockets */
	uint32_t error_status; /* enum ibv_wc_status; 0: no errors */
	double bytes_per_s, requests_per_s; /* while observed; negative: not observed */
	struct nt_pair_sums sums;
};

/*
 * links: of each rank, or NULL. *ret_link is owned by the caller: by rank, transport and peer, those
 * without a peer last. -ENOMEM.
 */
NT_MUST_CHECK int nt_job_links_join(const struct nt_rank_links *const *links, size_t ranks,
				    struct nt_job_link **ret_link, size_t *ret_count,
				    uint64_t *ret_over_cap);

#endif
