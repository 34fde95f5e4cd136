/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links between nodes, a NIC or a path: what is known of all of a job, and of the one that is named. */
#ifndef NT_DETECT_MODEL_LINK_H
#define NT_DETECT_MODEL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/model/matrix.h"
#include "detect/model/nic_counters.h"

struct nt_links {
	struct nt_matrix matrix;
	struct nt_nic_ports ports;
	uint64_t step_frame; /* the last that told of the job's step: at T1 nothing else shows it */
	/* What is seen now in place of what an open incident names, and for how many frames. */
	struct nt_culprit_link other;
	uint32_t others;
	/* Scratch of the step: times by peer in the frame, slow communicators. */
	size_t told, slow;
	/* Scratch of the step: what is named now; its kind is NT_CULPRIT_RANK where nothing is. */
	struct nt_culprit_link now;
};

/* A link as the key of its incident, and back. */
uint64_t nt_detect_link_key(const struct nt_culprit_link *link);
struct nt_culprit_link nt_detect_link_of(uint8_t kind, uint64_t key);
/* A culprit of that kind is a link. */
bool nt_detect_link_is_kind(uint8_t kind);
/* A path is the same in both directions. */
bool nt_detect_link_is_same(const struct nt_culprit_link *a, const struct nt_culprit_link *b);
/* The link is the node's NIC, or begins or ends there. */
bool nt_detect_link_touches(const struct nt_culprit_link *link, uint32_t node);
void nt_links_free(struct nt_links *links);

#endif
