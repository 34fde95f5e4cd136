/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blames a node if all its ranks are slow. */
#include "detect/incidents/node.h"

#include <stdlib.h>

#include "common/base/search.h"
#include "detect/thresholds/thresholds.h"

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

bool nt_node_is_compared(const struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	return rank->group < detect->roles.groups && detect->roles.group[rank->group].spans_nodes;
}

bool nt_node_jumped(const struct nt_detect *detect, uint32_t node)
{
	uint32_t elsewhere = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (rank->ended)
			continue;
		elsewhere += rank->node != node;
		if (rank->node == node && (rank->group >= detect->roles.groups ||
					   !detect->roles.group[rank->group].jumped))
			return false;
	}
	return node != NT_FRAME_NO_NODE && elsewhere > 0;
}

/* The node of a rank that is blamed: compared with other nodes, or of one that jumped as a whole. */
static uint32_t node_of(const struct nt_detect *detect, const struct nt_blame *blame)
{
	const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);

	return rank && (blame->of_node || nt_node_is_compared(detect, rank)) ? rank->node
									     : NT_FRAME_NO_NODE;
}

uint32_t nt_node_list(const struct nt_detect *detect, uint32_t *ret_node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < detect->ranks; i++)
		if (!detect->rank[i].ended)
			ret_node[n++] = detect->rank[i].node;
	qsort(ret_node, n, sizeof(*ret_node), compare_u32);
	return n;
}

uint32_t nt_node_ranks(const uint32_t *sorted, uint32_t n, uint32_t node)
{
	const uint32_t low = nt_search_first(0, n, i, sorted[i] >= node);
	uint32_t end;

	for (end = low; end < n && sorted[end] == node;)
		end++;
	return end - low;
}

uint32_t nt_node_blames(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < incident->blames; i++)
		n += node_of(detect, &incident->blame[i]) == node;
	return n;
}

bool nt_node_divided(struct nt_detect *detect, uint32_t *ret_node)
{
	const struct nt_incidents *incidents = &detect->incidents;
	uint32_t *node = detect->scratch.index, n = 0, slow = 0, ranks;
	uint32_t *sorted = &detect->scratch.index[detect->scratch.cap];

	for (uint32_t i = 0; i < incidents->opens; i++) {
		const struct nt_detect_incident *incident = incidents->open[i];

		slow += incident->family == NT_FAMILY_SLOW;
		for (uint32_t j = 0; j < incident->blames; j++) {
			const uint32_t of = node_of(detect, &incident->blame[j]);

			if (of != NT_FRAME_NO_NODE)
				node[n++] = of;
		}
	}
	if (slow < 2)
		return false;
	qsort(node, n, sizeof(*node), compare_u32);
	ranks = nt_node_list(detect, sorted);
	for (uint32_t i = 0, end; i < n; i = end) {
		uint32_t holders = 0;

		for (end = i + 1; end < n && node[end] == node[i];)
			end++;
		if (end - i < NT_NODE_RANKS || end - i != nt_node_ranks(sorted, ranks, node[i]))
			continue;
		for (uint32_t j = 0; j < incidents->opens; j++)
			holders += nt_node_blames(detect, incidents->open[j], node[i]) > 0;
		if (holders < 2)
			continue;
		*ret_node = node[i];
		return true;
	}
	return false;
}
