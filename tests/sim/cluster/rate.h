/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many of how many, as a share. */
#ifndef NT_SIM_CLUSTER_RATE_H
#define NT_SIM_CLUSTER_RATE_H

#include <stdint.h>

/* Prints `before` and the share, or "-": of none there is no rate. */
void cl_rate_print(const char *before, uint32_t part, uint32_t whole);

#endif
