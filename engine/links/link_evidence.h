/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the links of accused ranks show against the job's other links: the link that stands out most by
 * its latency, and the one that loses most. Evidence of incidents of class network. Pure.
 */
#ifndef NT_ENGINE_LINKS_LINK_EVIDENCE_H
#define NT_ENGINE_LINKS_LINK_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/links/job_links.h"

enum {
	NT_LINK_EVIDENCE_ROWS = 2,
};

enum nt_link_evidence_kind {
	NT_LINK_EVIDENCE_LATENCY, /* of RDMA, or a round-trip time, in milliseconds */
	NT_LINK_EVIDENCE_LOSS, /* segments sent again, or failed requests, in percent */
};

struct nt_link_evidence {
	enum nt_link_evidence_kind kind;
	const struct nt_job_link *link; /* of the input */
	double value, peers; /* peers: median of the links that no accused rank has */
};

/*
 * is_accused: by the links' indices of ranks. A link is compared with those of its transport. Returns
 * the number of rows. -ENOMEM.
 */
NT_MUST_CHECK int nt_link_evidence_find(const struct nt_job_link *link, size_t links,
					const bool *is_accused,
					struct nt_link_evidence ret_row[NT_LINK_EVIDENCE_ROWS]);

/* One phrase. */
const char *nt_link_evidence_what(const struct nt_link_evidence *row);
const char *nt_link_evidence_unit(const struct nt_link_evidence *row);

#endif
