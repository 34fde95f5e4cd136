/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links between nodes (a NIC or a path): the state of all links of a job, and the named one. */
#ifndef NT_DETECT_MODEL_LINK_H
#define NT_DETECT_MODEL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/model/matrix.h"
#include "detect/model/nic_counters.h"

struct nt_links {
	struct nt_matrix matrix;
	struct nt_nic_counters nic_counters;
	uint64_t step_frame; /* last frame with the job's step; at T1 the only indication */
	/* A link other than the one an open incident names, and for how many frames it was seen. */
	struct nt_culprit_link other;
	uint32_t others;
	/* Scratch of the step: number of transfer times in the frame, and of slow communicators. */
	size_t transfers, slow;
	/* Scratch of the step: the link named now; kind NT_CULPRIT_RANK: none. */
	struct nt_culprit_link now;
};

/* Converts a link to the key of its incident, and back. */
uint64_t nt_detect_link_key(const struct nt_culprit_link *link);
struct nt_culprit_link nt_detect_link_of(uint8_t kind, uint64_t key);
/* Whether a culprit of that kind is a link. */
bool nt_detect_link_is_kind(uint8_t kind);
/* Whether both are the same link; paths have no direction. */
bool nt_detect_link_is_same(const struct nt_culprit_link *a, const struct nt_culprit_link *b);
/* Whether the link is the node's NIC, or a path that ends there. */
bool nt_detect_link_touches(const struct nt_culprit_link *link, uint32_t node);
void nt_links_free(struct nt_links *links);

#endif
