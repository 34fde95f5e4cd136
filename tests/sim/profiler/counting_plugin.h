/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the test plugin (counting_plugin.c) has seen. It lies in the file that SIM_PLUGIN_OUT names, which the
 * plugin maps as it is loaded, so a reader sees it grow, and it outlives the plugin and its process.
 */
#ifndef NT_SIM_COUNTING_PLUGIN_H
#define NT_SIM_COUNTING_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

enum {
	SIM_PLUGIN_TYPES = 16, /* by the number of the event's bit */
	SIM_PLUGIN_STATES = 32,
	SIM_PLUGIN_KERNELS = 8192,
};

/* Threads that called for events of a type. */
enum {
	SIM_PLUGIN_MAIN = 1 << 0,
	SIM_PLUGIN_PROGRESS = 1 << 1, /* NCCL's */
	SIM_PLUGIN_PROFILER = 1 << 2, /* NCCL's, from 2.31 on */
	SIM_PLUGIN_DEVICE = 1 << 3, /* host functions of a stream */
	SIM_PLUGIN_OTHER = 1 << 4,
};

/* A KernelCh event that has stopped. Times are of CLOCK_REALTIME, ns. */
struct sim_plugin_kernel {
	uint32_t rank, channel;
	uint64_t seq; /* of its collective; of a send or receive UINT64_MAX */
	uint64_t start_ns, stop_ns; /* of the GPU; 0 in version 3 */
	uint64_t started_ns, stopped_ns; /* when the plugin was called */
};

/* All are atomic. */
struct sim_plugin_counts {
	uint64_t version; /* of the interface that was used */
	uint64_t mask; /* address of the mask in the process */
	uint64_t inits, finalizes;
	uint64_t started[SIM_PLUGIN_TYPES], stopped[SIM_PLUGIN_TYPES];
	uint64_t stopped_again[SIM_PLUGIN_TYPES]; /* a handle that was stopped before */
	uint64_t threads[SIM_PLUGIN_TYPES]; /* of starts */
	uint64_t states[SIM_PLUGIN_STATES];
	uint64_t captured; /* calls into a graph */
	uint64_t implicit_groups;
	uint64_t seq; /* of the last collective */
	uint64_t foreign; /* proxy operations of another process */
	uint64_t errors; /* rules of the interface that were broken, and the first of them */
	char error[256];
	uint64_t kernels;
	struct sim_plugin_kernel kernel[SIM_PLUGIN_KERNELS];
};

/* tests/e2e/operation/test_nccl_plugin.sh reads these by their places. */
#define NT_SIM_PLACE(member, place)                                                                \
	_Static_assert(offsetof(struct sim_plugin_counts, member) == 8 * (place), #member)
NT_SIM_PLACE(inits, 2);
NT_SIM_PLACE(finalizes, 3);
NT_SIM_PLACE(started, 4);
NT_SIM_PLACE(errors, 104);
NT_SIM_PLACE(error, 105);
#undef NT_SIM_PLACE

#endif
