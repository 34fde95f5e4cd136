/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A client of CUPTI's activity API, for tests: it keeps all records. */
#ifndef NT_SIM_CUPTI_CLIENT_H
#define NT_SIM_CUPTI_CLIENT_H

#include <stdbool.h>

#include "tests/sim/lib/cupti/cupti.h"

enum {
	SIM_CLIENT_RECORDS = 16384,
	SIM_CLIENT_BUFFER_BYTES = 64 << 10,
	SIM_CLIENT_NAME_BYTES = 96,
	/* The client's clock is ahead of the monotonic one. */
	SIM_CLIENT_CLOCK_NS = 1000000000,
};

struct sim_client_kernel {
	struct sim_cupti_kernel record; /* 208 bytes of it */
	char name[SIM_CLIENT_NAME_BYTES];
};

struct sim_client {
	struct sim_client_kernel kernel[SIM_CLIENT_RECORDS];
	struct sim_cupti_api api[SIM_CLIENT_RECORDS];
	size_t kernels, apis, copies, sets, graphs, others;
	struct sim_cupti_memcpy copy; /* the last ones */
	struct sim_cupti_memset set;
	struct sim_cupti_graph_trace graph;
	size_t buffers, own_buffers; /* given back; own: on the thread that started the client */
	size_t kernel_bytes; /* from one record to the next */
	bool failed; /* a call failed, or a record was none of the enabled kinds */
	bool declines; /* requests of buffers */
};

extern struct sim_client sim_client;

/* Registers clock and callbacks. */
void sim_client_start(void);
/* Forgets the records. */
void sim_client_clear(void);
/* Flushes; true if that succeeds. */
bool sim_client_flush(unsigned int flag);
/* The only call with this correlation; NULL: none or several. */
const struct sim_cupti_api *sim_client_call(uint32_t correlation);

#endif
