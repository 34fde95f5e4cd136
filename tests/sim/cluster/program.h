/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank of one pipeline stage does in a step, in order. */
#ifndef NT_SIM_CLUSTER_PROGRAM_H
#define NT_SIM_CLUSTER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"
#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/scenario.h"

enum {
	CL_LAYER_ELEMENTS = 1 << 20, /* of a call of a layer; of experts' calls half */
	CL_GRADIENT_ELEMENTS = 1 << 24, /* of all buckets */
	CL_ELEMENT_BYTES = 4,
};

enum cl_act_kind {
	CL_HOST, /* the launching thread works */
	CL_COMPUTE, /* kernels, or without a GPU the thread */
	CL_COLLECTIVE,
	CL_SEND, /* to the next stage, or the one before */
	CL_RECV,
	CL_SYNC_LOCAL, /* the host waits for its kernels */
	CL_SYNC_ALL, /* and for what they reduce */
	CL_JOIN, /* later kernels do, the host does not */
};

struct cl_act {
	uint8_t kind; /* enum cl_act_kind */
	uint8_t group; /* enum cl_group_kind */
	uint8_t op; /* enum nt_op */
	bool overlaps; /* on a stream of its own, beside later kernels */
	bool forward; /* a send or receive: from stage to next stage */
	bool gathered; /* with CL_JOIN: for the last weights that were gathered, and no more */
	uint32_t count; /* elements */
	int64_t ns; /* of work, or of transfer once all are there */
};

struct cl_program {
	struct cl_act *act; /* owned */
	size_t acts, room;
};

/* One for each stage, of a step of this kind. 0 or -ENOMEM. */
int cl_programs_build(const struct cl_scenario *scenario, enum cl_step_kind kind,
		      struct cl_program **ret_programs);
void cl_programs_free(struct cl_program *programs, uint32_t stages);

#endif
