/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is enabled, the clock of the records, and the driver's side of it. */
#ifndef NT_SIM_CUPTI_STATE_H
#define NT_SIM_CUPTI_STATE_H

#include <stdbool.h>

#include "tests/sim/lib/cupti/cupti.h"
#include "tests/sim/lib/standin.h"

enum {
	SIM_CUPTI_CALLS = 1024, /* numbers of calls */
};

/* Functions of libcuda. NULL until it was found. */
struct sim_cupti_cuda {
	__typeof__(cuSimObserve) *observe;
	__typeof__(cuSimNow) *now;
	__typeof__(cuSimUnfinished) *unfinished;
	__typeof__(cuSimGraphExecId) *graph_exec_id;
	int (*stream_id)(void *stream, unsigned long long *id);
};

extern struct sim_cupti_cuda sim_cupti_cuda;

/* False if the process's libcuda is not the stand-in. */
bool sim_cupti_load(void);

bool sim_cupti_is_enabled(enum sim_cupti_kind kind);
bool sim_cupti_is_call_enabled(bool is_driver, uint32_t cbid);
void sim_cupti_enable(enum sim_cupti_kind kind, bool enable);
void sim_cupti_enable_call(bool is_driver, uint32_t cbid, bool enable);
void sim_cupti_disable_all(void);

/* From the monotonic clock to that of the client. */
uint64_t sim_cupti_time(uint64_t monotonic_ns);
/* NULL: CLOCK_REALTIME. */
void sim_cupti_set_clock(sim_cupti_timestamp clock);

void sim_cupti_set_thread_type(unsigned int type);
unsigned int sim_cupti_thread_type(void);

/* A number from the environment, or `otherwise`. */
uint64_t sim_cupti_setting(const char *name, uint64_t otherwise);

#endif
