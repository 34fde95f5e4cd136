/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How long a communicator's transfers take once everybody has arrived, against its own past. The
 * shortest duration of a call among its members is the transfer: whoever came last waited for nobody.
 */
#ifndef NT_DETECT_MODEL_NETWORK_H
#define NT_DETECT_MODEL_NETWORK_H

#include <stdint.h>

#include "detect/math/cusum.h"
#include "detect/model/time.h"

/* How the transfer is known, the best first; values of different methods are never compared. */
enum nt_network_method {
	NT_NETWORK_NONE,
	NT_NETWORK_SAMPLES, /* calls that all members sampled */
	NT_NETWORK_SHORTEST, /* the shortest call of any member in the window */
	NT_NETWORK_LEAST_WAIT, /* the member that waited least in its steps */
	NT_NETWORK_BY_GPU, /* as SHORTEST, where all members' devices timed their calls */
	NT_NETWORK_METHODS,
};

struct nt_network {
	struct nt_cusum level;
	/* Of the transfer, ns: of all calls of a step, or by devices of one call; its deviation is calls a step. */
	struct nt_past past;
	uint8_t method, tier;
	uint8_t op; /* the one that moves most, which alone is watched */
	double bytes; /* of one of its calls: another size is another past */
	uint64_t frame; /* in which the last round ended, 0: none did */
	double transfer, step_ns; /* of that round, a step */
	double calls; /* of which the past is of one, a step: a slow mean */
	double cost; /* of that round: what is too much of it, in parts of the step; while it learns, 0 */
	struct nt_lesson lesson; /* of `past` */
};

/* What the transfers of a step took before, ns. */
double nt_network_usual(const struct nt_network *network);

#endif
