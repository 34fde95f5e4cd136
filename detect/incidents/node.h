/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names a node as the culprit if all its ranks, at least two, are slow relative to peers on other
 * nodes.
 */
#ifndef NT_DETECT_INCIDENTS_NODE_H
#define NT_DETECT_INCIDENTS_NODE_H

#include <stdbool.h>

#include "detect/model/detector_state.h"

/* Writes the nodes of all live ranks, ascending, one entry per rank; returns the count. */
uint32_t nt_node_list(const struct nt_detect *detect, uint32_t *ret_node);
/* Occurrences of a node in such a list: its live ranks. */
uint32_t nt_node_ranks(const uint32_t *sorted, uint32_t n, uint32_t node);
/* Whether the rank has peers on other nodes. */
bool nt_node_is_compared(const struct nt_detect *detect, const struct nt_detect_rank *rank);
/* Whether the work of all its ranks grew at once, while the job has ranks elsewhere. */
bool nt_node_jumped(const struct nt_detect *detect, uint32_t node);
/* Ranks of the node that the incident blames relative to peers on other nodes. */
uint32_t nt_node_blames(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			uint32_t node);
/* Finds a node whose ranks are all blamed, but by several incidents. */
bool nt_node_divided(struct nt_detect *detect, uint32_t *ret_node);

#endif
