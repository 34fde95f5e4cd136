/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the link that slow communicators share. */
#include "detect/rules/link_share.h"

#include "detect/baseline/link_span.h"
#include "detect/baseline/network_rate.h"
#include "detect/model/detector_state.h"
#include "detect/rules/network_measure.h"
#include "detect/thresholds/thresholds.h"

static bool is_healthy(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	const struct nt_network *network = &comm->network;

	return network->past.ready && network->bytes >= NT_DETECT_LINK_BYTES &&
	       network->frame + NT_INCIDENT_PATIENCE >= detect->frames &&
	       !nt_network_is_often_far(detect, network) &&
	       (network->level.sum <= 0.0 ||
		nt_cusum_peer_deviation(&network->level) < NT_DETECT_LINK_HEALTHY);
}

/* What is known of the communicators that are slow. */
struct slow_comms {
	uint32_t comms;
	bool always; /* one was slow from the start: its past does not show it */
};

/* Nodes common to all slow communicators. */
static uint32_t share_slow(const struct nt_detect *detect, uint32_t *node,
			   struct slow_comms *ret_slow)
{
	const struct nt_detect_comm *first = NULL;
	struct slow_comms slow = {0};
	uint32_t n = 0;

	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_detect_comm *comm = detect->comm[at];

		/* Each may cost little; together they identify the link. */
		if (!nt_network_is_fresh(detect, comm) || !comm->network.past.ready ||
		    (comm->network.level.sum < detect->threshold &&
		     !nt_network_is_often_far(detect, &comm->network)) ||
		    comm->network.bytes < NT_DETECT_LINK_BYTES ||
		    !nt_detect_link_spans(detect, comm))
			continue;
		slow.comms++;
		slow.always = slow.always || comm->network.reference > 0.0;
		if (first) {
			uint32_t kept = 0;

			for (uint32_t i = 0; i < n; i++)
				if (nt_detect_link_is_on(detect, comm, node[i]))
					node[kept++] = node[i];
			n = kept;
			continue;
		}
		first = comm;
		for (uint32_t i = 0; i < comm->members; i++) {
			const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);
			bool known = !rank;

			for (uint32_t j = 0; j < n && !known; j++)
				known = node[j] == rank->node;
			if (!known)
				node[n++] = rank->node;
		}
	}
	*ret_slow = slow;
	return n;
}

/* Whether a communicator uses the link without being slow, now or ever. */
static bool is_acquitted(const struct nt_detect *detect, const struct slow_comms *slow,
			 const struct nt_culprit_link *link)
{
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_detect_comm *comm = detect->comm[at];

		if (is_healthy(detect, comm) &&
		    (!slow->always || comm->network.compared == NT_NETWORK_COMPARED) &&
		    nt_detect_link_goes_over(detect, comm, link))
			return true;
	}
	return false;
}

bool nt_detect_link_share(struct nt_detect *detect, struct nt_culprit_link *ret_link)
{
	uint32_t *node = detect->scratch.index, n, names = 0;
	struct slow_comms slow;

	n = share_slow(detect, node, &slow);
	if (slow.comms < NT_DETECT_LINK_COMMS || !n || n > NT_DETECT_LINK_NODES)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct nt_culprit_link link = {.kind = NT_CULPRIT_NIC, .node = node[i]};

		if (is_acquitted(detect, &slow, &link))
			continue;
		*ret_link = link;
		names++;
	}
	/* A path that was always slow may be a longer one. */
	if (names || slow.always)
		return names == 1;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i + 1; j < n; j++) {
			const struct nt_culprit_link link = {
				.kind = NT_CULPRIT_PATH, .node = node[i], .peer = node[j]};

			if (is_acquitted(detect, &slow, &link))
				continue;
			*ret_link = link;
			names++;
		}
	return names == 1;
}
