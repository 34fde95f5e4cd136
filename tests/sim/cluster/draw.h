/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scenarios that nobody wrote down: layout, pace, weather and faults as the seed has them. */
#ifndef NT_SIM_CLUSTER_DRAW_H
#define NT_SIM_CLUSTER_DRAW_H

#include <stdint.h>

#include "tests/sim/cluster/scenario.h"

/* One that passes cl_scenario_check(), of at most so many calls. The same seed draws the same. */
struct cl_scenario cl_draw(uint64_t seed, double calls);

#endif
