/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the transfers of communicators that are alike. */
#include "detect/baseline/network_alike.h"

#include <math.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* The nodes of its members, counted up to a cap; 0: unknown. */
static uint32_t count_nodes(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	uint32_t node[NT_DETECT_LINK_NODES];
	uint32_t nodes = 0;

	for (uint32_t i = 0; i < comm->members && nodes < NT_DETECT_LINK_NODES; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);
		bool known = false;

		if (!rank || rank->node == NT_FRAME_NO_NODE)
			return 0;
		for (uint32_t j = 0; j < nodes && !known; j++)
			known = node[j] == rank->node;
		if (!known)
			node[nodes++] = rank->node;
	}
	return nodes;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= NT_NETWORK_BYTES * a;
}

static bool is_alike(const struct nt_detect_comm *comm, const struct nt_detect_comm *other)
{
	const struct nt_network *mine = &comm->network, *network = &other->network;

	return comm->size == other->size && mine->method == network->method &&
	       mine->op == network->op && is_near(mine->bytes, network->bytes);
}

/* Waits of the host contain more than transfers, and small calls are equally fast everywhere. */
static bool is_comparable(const struct nt_network *network)
{
	return network->past.ready && network->method != NT_NETWORK_LEAST_WAIT &&
	       network->bytes >= NT_DETECT_LINK_BYTES;
}

/* It is measured, and its past will be known soon. */
static bool is_learning(const struct nt_detect *detect, const struct nt_network *network)
{
	return !network->past.ready && detect->frames - network->frame < NT_COLLECTIVE_ROUND_FRAMES;
}

bool nt_network_compare(struct nt_detect *detect, struct nt_detect_comm *comm)
{
	struct nt_network *network = &comm->network;
	double past[NT_ALIKE_MOST];
	uint32_t nodes, n = 0;

	if (network->compared || !is_comparable(network))
		return false;
	nodes = count_nodes(detect, comm);
	past[n++] = network->past.value_centre;
	for (uint32_t i = 0; i < detect->comm_count && n < NT_ALIKE_MOST && nodes > 1; i++) {
		const struct nt_detect_comm *other = detect->comm[i];

		if (other == comm || !is_alike(comm, other) || count_nodes(detect, other) != nodes)
			continue;
		if (is_learning(detect, &other->network))
			return false;
		if (other->network.past.ready && is_near(network->past.peer_deviation_centre,
							 other->network.past.peer_deviation_centre))
			past[n++] = other->network.past.value_centre;
	}
	network->compared = n < NT_ALIKE_COMMS ? NT_NETWORK_UNLIKE : NT_NETWORK_COMPARED;
	if (n < NT_ALIKE_COMMS)
		return false;
	nt_stats_sort(past, n);
	network->reference = nt_stats_median_of(past, (n + 1) / 2);
	if (network->past.value_centre < NT_ALIKE_SLOW * network->reference)
		network->reference = 0.0;
	return network->reference > 0.0;
}
