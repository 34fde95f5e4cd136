/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When all ranks of a node, at least two, are slow against peers on other nodes, it is the node. */
#ifndef NT_DETECT_INCIDENTS_NODE_H
#define NT_DETECT_INCIDENTS_NODE_H

#include <stdbool.h>

#include "detect/model/detector_state.h"

/* The nodes of all live ranks, ascending, into room for as many; their count. */
uint32_t nt_node_list(const struct nt_detect *detect, uint32_t *ret_node);
/* How often a node is in such a list: its live ranks. */
uint32_t nt_node_ranks(const uint32_t *sorted, uint32_t n, uint32_t node);
/* Whether the rank has peers on other nodes. */
bool nt_node_is_compared(const struct nt_detect *detect, const struct nt_detect_rank *rank);
/* How many ranks of the node the incident blames against peers on other nodes. */
uint32_t nt_node_blames(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			uint32_t node);
/* Finds a node whose ranks are all blamed, but in several incidents. */
bool nt_node_divided(struct nt_detect *detect, uint32_t *ret_node);

#endif
