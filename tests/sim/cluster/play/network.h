/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What calls move between nodes. Not for others than the play. */
#ifndef NT_SIM_CLUSTER_PLAY_NETWORK_H
#define NT_SIM_CLUSTER_PLAY_NETWORK_H

#include "tests/sim/cluster/play/state.h"

/* False: no memory; cl_network_free() is to be called all the same. */
bool cl_network_new(struct cl_play *play);
void cl_network_free(struct cl_play *play);
/* Before each step. */
void cl_network_step(struct cl_play *play);

/* How many times as long as usual the group's call takes: as long as its slowest link. */
double cl_network_factor(struct cl_play *play, const struct cl_act *act,
			 const struct cl_group *group);
/* And what one rank sends to another. */
double cl_network_pair_factor(struct cl_play *play, uint32_t from, uint32_t to);

/* What proxies sent in the call, which ended then. */
void cl_network_collective(struct cl_play *play, const struct cl_act *act,
			   const struct cl_group *group, int64_t end_ns);
void cl_network_send(struct cl_play *play, const struct cl_act *act, uint32_t from, uint32_t to,
		     int64_t end_ns);

#endif
