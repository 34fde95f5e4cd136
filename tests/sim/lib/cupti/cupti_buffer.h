/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The client's buffers. Each thread writes its calls to buffers of its own, and the operations have
 * buffers of theirs. A full buffer goes back to the client by the worker, which starts with the
 * first record; a flush gives back the rest on its own thread. The client is called without a lock
 * of the calls and operations.
 */
#ifndef NT_SIM_CUPTI_BUFFER_H
#define NT_SIM_CUPTI_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/lib/cupti/cupti.h"

void sim_cupti_set_callbacks(sim_cupti_request request, sim_cupti_complete complete);
/* Forgets callbacks and buffers. */
void sim_cupti_forget_buffers(void);

/* A record of the calling thread, or of an operation. Dropped if the client has no buffer for it. */
void sim_cupti_write_call(const void *record, size_t bytes);
void sim_cupti_write_operation(const void *record, size_t bytes);

/* Gives back all buffers with records; those of operations not if `but_operations`. */
void sim_cupti_flush(bool but_operations);
/* 0: full buffers are given back at once, else in this period. */
void sim_cupti_set_period(uint32_t ms);
/* An operation waits for its end. */
void sim_cupti_wake(void);

void sim_cupti_count_dropped(void);
/* Since the last call. */
size_t sim_cupti_take_dropped(void);

#endif
