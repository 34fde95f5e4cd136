/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/operation.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/graph.h"
#include "tests/sim/lib/thread.h"

enum {
	LAUNCH_NS = 2000, /* of a kernel that does nothing, and of a copy */
	ACROSS_BYTES_PER_US = 20000, /* host to device and back: 20 GB/s */
	INSIDE_BYTES_PER_US = 1000000,
};

struct sim_point *sim_point_new(void)
{
	struct sim_point *point = calloc(1, sizeof(*point));

	if (point)
		point->refs = 1;
	return point;
}

void sim_point_drop(struct sim_point *point)
{
	if (point && --point->refs == 0)
		free(point);
}

void sim_op_clear(struct sim_op *op)
{
	switch (op->kind) {
	case SIM_OP_COPY:
		free(op->copy.staged);
		break;
	case SIM_OP_RECORD:
	case SIM_OP_WAIT:
		sim_point_drop(op->point);
		break;
	case SIM_OP_MODEL:
		op->model.model->release(op->model.state);
		break;
	case SIM_OP_GRAPH:
		sim_run_free(op->run);
		break;
	default:
		break;
	}
	op->kind = SIM_OP_NOTHING;
}

static uint64_t set_memory(const struct sim_op *op)
{
	if (op->set.width == 1) {
		memset(op->set.to, (int)op->set.value, op->set.count);
	} else {
		for (size_t i = 0; i < op->set.count; i++)
			memcpy((char *)op->set.to + i * op->set.width, &op->set.value,
			       op->set.width);
	}
	return LAUNCH_NS + op->set.count * op->set.width * 1000 / INSIDE_BYTES_PER_US;
}

bool sim_op_moves(struct sim_op *op, uint64_t start_ns, uint64_t *ret_end_ns)
{
	switch (op->kind) {
	case SIM_OP_KERNEL:
		*ret_end_ns = start_ns + op->kernel.ns;
		return true;
	case SIM_OP_COPY:
		memmove(op->copy.to, op->copy.staged ? op->copy.staged : op->copy.from,
			op->copy.bytes);
		*ret_end_ns = start_ns + LAUNCH_NS +
			      op->copy.bytes * 1000 /
				      (op->copy.across ? ACROSS_BYTES_PER_US : INSIDE_BYTES_PER_US);
		return true;
	case SIM_OP_SET:
		*ret_end_ns = start_ns + set_memory(op);
		return true;
	case SIM_OP_RECORD:
		op->point->known = true;
		op->point->time_ns = start_ns;
		*ret_end_ns = start_ns;
		return true;
	case SIM_OP_WAIT:
		*ret_end_ns = sim_later(start_ns, op->point->time_ns);
		return op->point->known;
	case SIM_OP_HOST:
		return sim_thread_call(op, start_ns, ret_end_ns);
	case SIM_OP_MODEL:
		return op->model.model->progress(op->model.state, start_ns, ret_end_ns);
	case SIM_OP_GRAPH:
		return sim_run_moves(op->run, start_ns, ret_end_ns);
	default:
		*ret_end_ns = start_ns;
		return true;
	}
}
