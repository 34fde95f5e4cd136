/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scenario as the command that plays it. */
#ifndef NT_SIM_CLUSTER_COMMAND_H
#define NT_SIM_CLUSTER_COMMAND_H

#include "tests/sim/cluster/scenario.h"

/* Prints one line; what it plays is the scenario to the last bit. */
void cl_command_print(const struct cl_scenario *scenario);

#endif
