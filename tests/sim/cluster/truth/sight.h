/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What can be seen of a scenario from outside: by calls, by plugins, beside how many peers. */
#ifndef NT_SIM_CLUSTER_SIGHT_H
#define NT_SIM_CLUSTER_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"
#include "tests/sim/cluster/scenario.h"

/* Own work can be told, by calls (T2) or by devices (T3); otherwise only what hosts do (T1). */
bool cl_sight_has_work(const struct cl_scenario *s);

/* The tier at which its ranks can be told from outside. */
enum nt_tier cl_sight_tier(const struct cl_scenario *s);

bool cl_sight_has_work_of(const struct cl_scenario *s, uint32_t rank);

/* Every node tells the same. */
bool cl_sight_is_even(const struct cl_scenario *s);

bool cl_sight_has_all_work(const struct cl_scenario *s);

/* Too few tell the same as the rank does. */
bool cl_sight_is_alone(const struct cl_scenario *s, uint32_t rank);

/* How many of those that the rank is compared with, itself among them, sit on the node. */
uint32_t cl_sight_peers_on(const struct cl_scenario *s, uint32_t rank, uint32_t node,
			   uint32_t *ret_all);

/* Is there a rank of the node all of whose peers sit on it, too, or more than two of three? */
bool cl_sight_is_crowded(const struct cl_scenario *s, uint32_t node);

/* Is any of its ranks compared with one elsewhere? */
bool cl_sight_is_compared(const struct cl_scenario *s, uint32_t node);

/* Its ranks stay without windows. */
bool cl_sight_is_unobserved(const struct cl_scenario *s, uint32_t rank);

#endif
