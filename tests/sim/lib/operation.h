/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What stands in a stream's queue or in a graph: when it ends, and what it does then. */
#ifndef NT_SIM_OPERATION_H
#define NT_SIM_OPERATION_H

#include "tests/sim/lib/model.h"

static inline uint64_t sim_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* With one reference. NULL: no memory. */
struct sim_point *sim_point_new(void);
void sim_point_drop(struct sim_point *point);

/* True when the end of an operation that starts at start_ns is known; its effects are done then. */
bool sim_op_moves(struct sim_op *op, uint64_t start_ns, uint64_t *ret_end_ns);
/* Releases what the operation owns. */
void sim_op_clear(struct sim_op *op);

#endif
