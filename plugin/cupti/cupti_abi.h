/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUPTI's binary interface that is used here, from the headers of 11.8 to 13.x. Records
 * only grow at their end, so these layouts are of their beginnings. Checked against the real
 * headers by tests/gpu/test_cupti_header.sh.
 */
#ifndef NT_PLUGIN_CUPTI_ABI_H
#define NT_PLUGIN_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_CUPTI_SUCCESS = 0,
	NT_CUPTI_INVALID_OPERATION = 7,
	NT_CUPTI_MAX_LIMIT_REACHED = 12,

	NT_CUPTI_KIND_MEMCPY = 1,
	NT_CUPTI_KIND_DRIVER = 4,
	NT_CUPTI_KIND_RUNTIME = 5,
	NT_CUPTI_KIND_CONCURRENT_KERNEL = 10,

	NT_CUPTI_FLUSH_FORCED = 1,

	/* Calls that enqueue kernels; the second of each pair is of per-thread default streams. */
	NT_CUPTI_RUNTIME_LAUNCH = 211,
	NT_CUPTI_RUNTIME_LAUNCH_PTSZ = 214,
	NT_CUPTI_RUNTIME_LAUNCH_COOPERATIVE = 269,
	NT_CUPTI_RUNTIME_LAUNCH_COOPERATIVE_PTSZ = 270,
	NT_CUPTI_RUNTIME_GRAPH_LAUNCH = 311,
	NT_CUPTI_RUNTIME_GRAPH_LAUNCH_PTSZ = 312,
	NT_CUPTI_RUNTIME_LAUNCH_EX = 430,
	NT_CUPTI_RUNTIME_LAUNCH_EX_PTSZ = 431,
	NT_CUPTI_RUNTIME_LAUNCH_MULTI_DEVICE = 272,
	NT_CUPTI_RUNTIME_LAUNCH_COMPILED = 505, /* __cudaLaunchKernel, from 13 on */
	NT_CUPTI_RUNTIME_LAUNCH_COMPILED_PTSZ = 506,
	NT_CUPTI_DRIVER_LAUNCH_OLD = 115,
	NT_CUPTI_DRIVER_LAUNCH_GRID = 116,
	NT_CUPTI_DRIVER_LAUNCH_GRID_ASYNC = 117,
	NT_CUPTI_DRIVER_LAUNCH = 307,
	NT_CUPTI_DRIVER_LAUNCH_PTSZ = 442,
	NT_CUPTI_DRIVER_LAUNCH_COOPERATIVE = 477,
	NT_CUPTI_DRIVER_LAUNCH_COOPERATIVE_PTSZ = 478,
	NT_CUPTI_DRIVER_LAUNCH_MULTI_DEVICE = 480,
	NT_CUPTI_DRIVER_GRAPH_LAUNCH = 514,
	NT_CUPTI_DRIVER_GRAPH_LAUNCH_PTSZ = 515,
	NT_CUPTI_DRIVER_LAUNCH_EX = 652,
	NT_CUPTI_DRIVER_LAUNCH_EX_PTSZ = 653,
};

struct nt_cupti_kernel {
	uint32_t kind;
	uint32_t unused4[3];
	uint64_t start, end;
	uint64_t completed;
	uint32_t device, context, stream;
	uint32_t unused52[10];
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	uint64_t unused112[4];
	uint64_t graph_node;
	uint32_t unused152;
	uint32_t graph;
};

struct nt_cupti_copy {
	uint32_t kind;
	uint32_t unused4;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint64_t unused48[2];
	uint64_t graph_node;
	uint32_t graph;
};

struct nt_cupti_call {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

_Static_assert(offsetof(struct nt_cupti_kernel, start) == 16, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_kernel, device) == 40, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_kernel, correlation) == 92, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_kernel, name) == 104, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_kernel, graph_node) == 144, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_kernel, graph) == 156, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_copy, start) == 16, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_copy, correlation) == 44, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_copy, graph) == 72, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_call, start) == 8, "CUPTI's layout");
_Static_assert(offsetof(struct nt_cupti_call, correlation) == 32, "CUPTI's layout");

typedef void nt_cupti_request_fn(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void nt_cupti_complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid_size);
typedef uint64_t nt_cupti_clock_fn(void);

#endif
