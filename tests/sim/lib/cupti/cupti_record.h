/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls and operations become records. A call is recorded on its thread, when it returns. An
 * operation is kept until its end has passed, and is recorded then by sim_cupti_record_ended().
 */
#ifndef NT_SIM_CUPTI_RECORD_H
#define NT_SIM_CUPTI_RECORD_H

#include "tests/sim/lib/cupti/cupti_state.h"

/* For cuSimObserve(). */
extern const struct sim_observer sim_cupti_observer;

/* Records all operations that have ended by now, in that order. May call the client. */
void sim_cupti_record_ended(void);
/* An operation that has not ended, or was not recorded yet. */
bool sim_cupti_keeps_any(void);
/* Of a record of a kernel: SIM_CUPTI_KERNEL_BYTES. */
size_t sim_cupti_kernel_bytes(void);
/* Forgets all. */
void sim_cupti_forget(void);

#endif
