/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Polls the completion of collectives as PyTorch's back ends of NCCL do, by events on their stream.
 * `legacy` has an event behind each collective and asks for all of them. `nccl2`, the default of
 * PyTorch 2.15, has one before it, too. It asks in order up to the first that is pending, and also
 * at each new collective, on the caller's thread.
 */
#ifndef NT_SIM_WATCHDOG_H
#define NT_SIM_WATCHDOG_H

#include <stdint.h>

#include "tests/sim/lib/cuda.h"

enum sim_watchdog_kind {
	SIM_WATCHDOG_NONE,
	SIM_WATCHDOG_LEGACY,
	SIM_WATCHDOG_NCCL2,
};

struct sim_watchdog;

/* Starts its thread, which polls every poll_ns. Ends the process where the device refuses. */
struct sim_watchdog *sim_watchdog_new(enum sim_watchdog_kind kind, uint64_t poll_ns, int device);
/* Accepts NULL. */
void sim_watchdog_free(struct sim_watchdog *watchdog);

/* Before and after a collective is put on the stream. NULL: nothing. */
void sim_watchdog_begin(struct sim_watchdog *watchdog, cudaStream_t stream);
void sim_watchdog_end(struct sim_watchdog *watchdog, cudaStream_t stream);

#endif
