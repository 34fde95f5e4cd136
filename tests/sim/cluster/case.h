/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cases of the table of accuracy. */
#ifndef NT_SIM_CLUSTER_CASE_H
#define NT_SIM_CLUSTER_CASE_H

#include "tests/sim/cluster/scenario.h"

/* R, N, M and S in a fault stand for a rank, a node, another node and a stage drawn by the seed. */
struct cl_case {
	const char *name;
	const char *fault[2];
	double spread, hiccups;
	uint32_t steps; /* 0: the usual */
	struct cl_weather weather;
	struct cl_structure structure;
	uint32_t evaluate_every;
	bool needs_nodes, needs_stages;
	bool needs_fabric; /* played with one only */
	bool equal_buckets; /* many, and nothing else that is called */
	/* Times by peer, in a pipeline or a ring of blocking hosts; counters of ports. */
	bool peers, counters;
};

size_t cl_case_count(void);
const struct cl_case *cl_case_get(size_t index);

#endif
