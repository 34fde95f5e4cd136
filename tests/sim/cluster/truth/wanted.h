/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What must be named for a fault, as far as it can be seen. */
#ifndef NT_SIM_CLUSTER_WANTED_H
#define NT_SIM_CLUSTER_WANTED_H

#include "tests/sim/cluster/scenario.h"

/* Who must be named for a fault. */
enum cl_who {
	NOBODY, /* and nothing is said */
	NOTHING_NEEDED, /* what accuses nobody may be said */
	INFORMATION, /* an incident that accuses nobody */
	THE_RANK,
	THE_NODE,
	THE_HALF,
	THE_STAGE, /* by its ranks, or the nodes that hold it alone */
	THE_NIC,
	THE_PATH,
	THE_LINK, /* a communicator that holds it will do */
	EVERYBODY, /* the job hangs */
	TWO_POPULATIONS, /* which of them is slow cannot be known, and is not said */
};

struct cl_wanted {
	enum cl_who who;
	const char *class, *other_class; /* either will do; NULL: any */
};

struct cl_wanted cl_wanted_for(const struct cl_scenario *s, const struct cl_fault *f);

#endif
