/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The thread that moves the streams on when another process has done its part of a collective, or
 * the time of a host function has come. See also cuSimWatch().
 */
#ifndef NT_SIM_THREAD_H
#define NT_SIM_THREAD_H

#include "tests/sim/lib/model.h"

/* Starts it, if it does not run yet. */
void sim_thread_start(void);

/*
 * Has it call the host function of `op` at its time; until then the stream stands. True when the
 * function has returned.
 */
bool sim_thread_call(struct sim_op *op, uint64_t start_ns, uint64_t *ret_end_ns);

#endif
