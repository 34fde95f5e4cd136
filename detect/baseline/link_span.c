/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maps communicators to the links that they use. */
#include "detect/baseline/link_span.h"

#include "detect/model/detector_state.h"

bool nt_detect_link_is_on(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			  uint32_t node)
{
	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank && rank->node == node)
			return true;
	}
	return false;
}

bool nt_detect_link_spans(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	const struct nt_detect_rank *first = NULL;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (!rank || rank->node == NT_FRAME_NO_NODE)
			return false;
		if (first && rank->node != first->node)
			return true;
		first = first ? first : rank;
	}
	return false;
}

bool nt_detect_link_goes_over(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			      const struct nt_culprit_link *link)
{
	return nt_detect_link_is_kind(link->kind) &&
	       nt_detect_link_is_on(detect, comm, link->node) &&
	       (link->kind == NT_CULPRIT_NIC || nt_detect_link_is_on(detect, comm, link->peer)) &&
	       nt_detect_link_spans(detect, comm);
}

bool nt_detect_link_is_shared(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			      const struct nt_detect_comm *other)
{
	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank && nt_detect_link_is_on(detect, other, rank->node))
			return true;
	}
	return false;
}

bool nt_detect_link_explains(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	return nt_detect_link_goes_over(detect, comm, &detect->links.now);
}

void nt_detect_link_release(struct nt_detect *detect, uint8_t kind, uint64_t key)
{
	const struct nt_culprit_link link = nt_detect_link_of(kind, key);

	nt_matrix_clear(&detect->links.matrix, &link);
	nt_nic_counters_clear(&detect->links.nic_counters, &link);
	nt_cusum_clear(&detect->step.level);
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		struct nt_detect_comm *comm = detect->comm[at];

		if (nt_detect_link_goes_over(detect, comm, &link))
			nt_network_clear(&comm->network);
	}
}
