/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compiles only if plugin/cupti/cupti_abi.h, and the stand-in's tests/sim/lib/cupti/cupti.h and
 * call_id.h, say what NVIDIA's headers of CUPTI say. A record's type there has a number that grows
 * with the record.
 */
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_result.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <stddef.h>

/* All functions are declared by both; this one has a record of our own. */
#define cuptiActivityGetNextRecord sim_cupti_next_record
#include "tests/sim/lib/cupti/cupti.h"
#undef cuptiActivityGetNextRecord

#include "plugin/cupti/cupti_abi.h"
#include "tests/sim/lib/call_id.h"
#include "tests/sim/lib/standin.h"

#if CUPTI_API_VERSION >= 130500
#define KERNEL       CUpti_ActivityKernel13
#define KERNEL_BYTES SIM_CUPTI_KERNEL_BYTES_13_5
#define MEMCPY       CUpti_ActivityMemcpy7
#define MEMSET       CUpti_ActivityMemset5
#define GRAPH        CUpti_ActivityGraphTrace2
_Static_assert(sizeof(CUpti_ActivityKernel10) == SIM_CUPTI_KERNEL_BYTES_13_0, "of 13.0");
#elif CUPTI_API_VERSION == 26
#define KERNEL       CUpti_ActivityKernel9
#define KERNEL_BYTES SIM_CUPTI_KERNEL_BYTES_12
#define MEMCPY       CUpti_ActivityMemcpy6
#define MEMSET       CUpti_ActivityMemset4
#define GRAPH        CUpti_ActivityGraphTrace2
_Static_assert(CUPTI_API_VERSION == SIM_CUPTI_VERSION, "the stand-in plays this one");
_Static_assert(sizeof(MEMCPY) == sizeof(struct sim_cupti_memcpy), "as the stand-in's");
_Static_assert(sizeof(MEMSET) == sizeof(struct sim_cupti_memset), "as the stand-in's");
_Static_assert(sizeof(GRAPH) == sizeof(struct sim_cupti_graph_trace), "as the stand-in's");
#elif CUPTI_API_VERSION == 22
#define KERNEL       CUpti_ActivityKernel9
#define KERNEL_BYTES SIM_CUPTI_KERNEL_BYTES_12
#define MEMCPY       CUpti_ActivityMemcpy5
#define MEMSET       CUpti_ActivityMemset4
#define GRAPH        CUpti_ActivityGraphTrace2
#elif CUPTI_API_VERSION == 18
#define KERNEL       CUpti_ActivityKernel8
#define KERNEL_BYTES SIM_CUPTI_KERNEL_BYTES_11
#define MEMCPY       CUpti_ActivityMemcpy5
#define MEMSET       CUpti_ActivityMemset4
#define GRAPH        CUpti_ActivityGraphTrace
#else
#error "a release whose records are not known here"
#endif

_Static_assert(sizeof(KERNEL) == KERNEL_BYTES, "a record of a kernel");
_Static_assert(sizeof(CUpti_ActivityAPI) == sizeof(struct sim_cupti_api), "a record of a call");
_Static_assert(sizeof(CUptiResult) == sizeof(int) && sizeof(CUpti_ActivityKind) == sizeof(int),
	       "enumerations are ints");

#define SAME(ours, theirs) _Static_assert((unsigned long long)(ours) == (theirs), #theirs)
#define PLACE(ours, member, theirs, their_member)                                                  \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&          \
			       sizeof(((struct ours *)0)->member) ==                               \
				       sizeof(((theirs *)0)->their_member),                        \
		       #theirs "." #their_member)
/* In one member with those that follow. */
#define STARTS(ours, member, theirs, their_member)                                                 \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member),            \
		       #theirs "." #their_member)

/* ---- plugin/cupti/cupti_abi.h ---- */

SAME(NT_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(NT_CUPTI_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME(NT_CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(NT_CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(NT_CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(NT_CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(NT_CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(NT_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

#define RUNTIME(ours, theirs) SAME(NT_CUPTI_RUNTIME_##ours, CUPTI_RUNTIME_TRACE_CBID_##theirs)
#define DRIVER(ours, theirs)  SAME(NT_CUPTI_DRIVER_##ours, CUPTI_DRIVER_TRACE_CBID_##theirs)

RUNTIME(LAUNCH, cudaLaunchKernel_v7000);
RUNTIME(LAUNCH_PTSZ, cudaLaunchKernel_ptsz_v7000);
RUNTIME(LAUNCH_COOPERATIVE, cudaLaunchCooperativeKernel_v9000);
RUNTIME(LAUNCH_COOPERATIVE_PTSZ, cudaLaunchCooperativeKernel_ptsz_v9000);
RUNTIME(GRAPH_LAUNCH, cudaGraphLaunch_v10000);
RUNTIME(GRAPH_LAUNCH_PTSZ, cudaGraphLaunch_ptsz_v10000);
RUNTIME(LAUNCH_EX, cudaLaunchKernelExC_v11060);
RUNTIME(LAUNCH_EX_PTSZ, cudaLaunchKernelExC_ptsz_v11060);
RUNTIME(LAUNCH_MULTI_DEVICE, cudaLaunchCooperativeKernelMultiDevice_v9000);
#if CUPTI_API_VERSION >= 130000
RUNTIME(LAUNCH_COMPILED, __cudaLaunchKernel_v13000);
RUNTIME(LAUNCH_COMPILED_PTSZ, __cudaLaunchKernel_ptsz_v13000);
#endif
DRIVER(LAUNCH_MULTI_DEVICE, cuLaunchCooperativeKernelMultiDevice);
DRIVER(LAUNCH_OLD, cuLaunch);
DRIVER(LAUNCH_GRID, cuLaunchGrid);
DRIVER(LAUNCH_GRID_ASYNC, cuLaunchGridAsync);
DRIVER(LAUNCH, cuLaunchKernel);
DRIVER(LAUNCH_PTSZ, cuLaunchKernel_ptsz);
DRIVER(LAUNCH_COOPERATIVE, cuLaunchCooperativeKernel);
DRIVER(LAUNCH_COOPERATIVE_PTSZ, cuLaunchCooperativeKernel_ptsz);
DRIVER(GRAPH_LAUNCH, cuGraphLaunch);
DRIVER(GRAPH_LAUNCH_PTSZ, cuGraphLaunch_ptsz);
DRIVER(LAUNCH_EX, cuLaunchKernelEx);
DRIVER(LAUNCH_EX_PTSZ, cuLaunchKernelEx_ptsz);

PLACE(nt_cupti_kernel, kind, KERNEL, kind);
PLACE(nt_cupti_kernel, start, KERNEL, start);
PLACE(nt_cupti_kernel, end, KERNEL, end);
PLACE(nt_cupti_kernel, completed, KERNEL, completed);
PLACE(nt_cupti_kernel, device, KERNEL, deviceId);
PLACE(nt_cupti_kernel, context, KERNEL, contextId);
PLACE(nt_cupti_kernel, stream, KERNEL, streamId);
PLACE(nt_cupti_kernel, correlation, KERNEL, correlationId);
PLACE(nt_cupti_kernel, grid_id, KERNEL, gridId);
PLACE(nt_cupti_kernel, name, KERNEL, name);
PLACE(nt_cupti_kernel, graph_node, KERNEL, graphNodeId);
PLACE(nt_cupti_kernel, graph, KERNEL, graphId);
_Static_assert(sizeof(struct nt_cupti_kernel) <= sizeof(KERNEL), "a beginning");

PLACE(nt_cupti_copy, kind, MEMCPY, kind);
PLACE(nt_cupti_copy, bytes, MEMCPY, bytes);
PLACE(nt_cupti_copy, start, MEMCPY, start);
PLACE(nt_cupti_copy, end, MEMCPY, end);
PLACE(nt_cupti_copy, device, MEMCPY, deviceId);
PLACE(nt_cupti_copy, context, MEMCPY, contextId);
PLACE(nt_cupti_copy, stream, MEMCPY, streamId);
PLACE(nt_cupti_copy, correlation, MEMCPY, correlationId);
PLACE(nt_cupti_copy, graph_node, MEMCPY, graphNodeId);
PLACE(nt_cupti_copy, graph, MEMCPY, graphId);
_Static_assert(sizeof(struct nt_cupti_copy) <= sizeof(MEMCPY), "a beginning");

PLACE(nt_cupti_call, kind, CUpti_ActivityAPI, kind);
PLACE(nt_cupti_call, cbid, CUpti_ActivityAPI, cbid);
PLACE(nt_cupti_call, start, CUpti_ActivityAPI, start);
PLACE(nt_cupti_call, end, CUpti_ActivityAPI, end);
PLACE(nt_cupti_call, process, CUpti_ActivityAPI, processId);
PLACE(nt_cupti_call, thread, CUpti_ActivityAPI, threadId);
PLACE(nt_cupti_call, correlation, CUpti_ActivityAPI, correlationId);
PLACE(nt_cupti_call, result, CUpti_ActivityAPI, returnValue);
_Static_assert(sizeof(struct nt_cupti_call) <= sizeof(CUpti_ActivityAPI), "a beginning");

/* The context of a completed buffer is an opaque pointer here. */
static __attribute__((unused)) nt_cupti_request_fn *const request =
	(CUpti_BuffersCallbackRequestFunc)0;
static __attribute__((unused)) nt_cupti_clock_fn *const clock_fn = (CUpti_TimestampCallbackFunc)0;

/* ---- the stand-in ---- */

SAME(SIM_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(SIM_CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
SAME(SIM_CUPTI_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME(SIM_CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(SIM_CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(SIM_CUPTI_INVALID_STREAM, CUPTI_ERROR_INVALID_STREAM);
SAME(SIM_CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(SIM_CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(SIM_CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
SAME(SIM_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(SIM_CUPTI_MEMCPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(SIM_CUPTI_MEMCPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(SIM_CUPTI_MEMCPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(SIM_CUPTI_MEMCPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME(SIM_CUPTI_THREAD_PTHREAD, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
SAME(SIM_CUPTI_THREAD_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(SIM_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(SIM_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(SIM_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(SIM_CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(SIM_CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(SIM_CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(SIM_CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(SIM_CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
_Static_assert((int)SIM_CUPTI_KIND_END >= (int)CUPTI_ACTIVITY_KIND_COUNT, "all kinds");
SAME(SIM_PLACE_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME(SIM_PLACE_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME(SIM_PLACE_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME(SIM_PLACE_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);

PLACE(sim_cupti_kernel, kind, KERNEL, kind);
PLACE(sim_cupti_kernel, registers_per_thread, KERNEL, registersPerThread);
PLACE(sim_cupti_kernel, start, KERNEL, start);
PLACE(sim_cupti_kernel, end, KERNEL, end);
PLACE(sim_cupti_kernel, completed, KERNEL, completed);
PLACE(sim_cupti_kernel, device, KERNEL, deviceId);
PLACE(sim_cupti_kernel, context, KERNEL, contextId);
PLACE(sim_cupti_kernel, stream, KERNEL, streamId);
STARTS(sim_cupti_kernel, grid, KERNEL, gridX);
STARTS(sim_cupti_kernel, block, KERNEL, blockX);
PLACE(sim_cupti_kernel, static_shared_memory, KERNEL, staticSharedMemory);
PLACE(sim_cupti_kernel, correlation, KERNEL, correlationId);
PLACE(sim_cupti_kernel, grid_id, KERNEL, gridId);
PLACE(sim_cupti_kernel, name, KERNEL, name);
PLACE(sim_cupti_kernel, queued, KERNEL, queued);
PLACE(sim_cupti_kernel, submitted, KERNEL, submitted);
PLACE(sim_cupti_kernel, launch_type, KERNEL, launchType);
PLACE(sim_cupti_kernel, graph_node, KERNEL, graphNodeId);
PLACE(sim_cupti_kernel, graph, KERNEL, graphId);
PLACE(sim_cupti_kernel, channel, KERNEL, channelID);
PLACE(sim_cupti_kernel, channel_type, KERNEL, channelType);
STARTS(sim_cupti_kernel, cluster, KERNEL, clusterX);
PLACE(sim_cupti_kernel, local_memory_total_v2, KERNEL, localMemoryTotal_v2);

PLACE(sim_cupti_memcpy, kind, MEMCPY, kind);
PLACE(sim_cupti_memcpy, copy_kind, MEMCPY, copyKind);
PLACE(sim_cupti_memcpy, source_kind, MEMCPY, srcKind);
PLACE(sim_cupti_memcpy, target_kind, MEMCPY, dstKind);
PLACE(sim_cupti_memcpy, bytes, MEMCPY, bytes);
PLACE(sim_cupti_memcpy, start, MEMCPY, start);
PLACE(sim_cupti_memcpy, end, MEMCPY, end);
PLACE(sim_cupti_memcpy, device, MEMCPY, deviceId);
PLACE(sim_cupti_memcpy, context, MEMCPY, contextId);
PLACE(sim_cupti_memcpy, stream, MEMCPY, streamId);
PLACE(sim_cupti_memcpy, correlation, MEMCPY, correlationId);
PLACE(sim_cupti_memcpy, graph_node, MEMCPY, graphNodeId);
PLACE(sim_cupti_memcpy, graph, MEMCPY, graphId);
PLACE(sim_cupti_memcpy, channel, MEMCPY, channelID);
PLACE(sim_cupti_memcpy, channel_type, MEMCPY, channelType);

PLACE(sim_cupti_memset, kind, MEMSET, kind);
PLACE(sim_cupti_memset, value, MEMSET, value);
PLACE(sim_cupti_memset, bytes, MEMSET, bytes);
PLACE(sim_cupti_memset, start, MEMSET, start);
PLACE(sim_cupti_memset, end, MEMSET, end);
PLACE(sim_cupti_memset, device, MEMSET, deviceId);
PLACE(sim_cupti_memset, context, MEMSET, contextId);
PLACE(sim_cupti_memset, stream, MEMSET, streamId);
PLACE(sim_cupti_memset, correlation, MEMSET, correlationId);
PLACE(sim_cupti_memset, memory_kind, MEMSET, memoryKind);
PLACE(sim_cupti_memset, graph_node, MEMSET, graphNodeId);
PLACE(sim_cupti_memset, graph, MEMSET, graphId);
PLACE(sim_cupti_memset, channel, MEMSET, channelID);

PLACE(sim_cupti_api, kind, CUpti_ActivityAPI, kind);
PLACE(sim_cupti_api, cbid, CUpti_ActivityAPI, cbid);
PLACE(sim_cupti_api, start, CUpti_ActivityAPI, start);
PLACE(sim_cupti_api, end, CUpti_ActivityAPI, end);
PLACE(sim_cupti_api, process, CUpti_ActivityAPI, processId);
PLACE(sim_cupti_api, thread, CUpti_ActivityAPI, threadId);
PLACE(sim_cupti_api, correlation, CUpti_ActivityAPI, correlationId);
PLACE(sim_cupti_api, result, CUpti_ActivityAPI, returnValue);

PLACE(sim_cupti_graph_trace, kind, GRAPH, kind);
PLACE(sim_cupti_graph_trace, correlation, GRAPH, correlationId);
PLACE(sim_cupti_graph_trace, start, GRAPH, start);
PLACE(sim_cupti_graph_trace, end, GRAPH, end);
PLACE(sim_cupti_graph_trace, device, GRAPH, deviceId);
PLACE(sim_cupti_graph_trace, graph, GRAPH, graphId);
PLACE(sim_cupti_graph_trace, context, GRAPH, contextId);
PLACE(sim_cupti_graph_trace, stream, GRAPH, streamId);

#define SIM_RUNTIME(ours, theirs) SAME(SIM_RUNTIME_##ours, CUPTI_RUNTIME_TRACE_CBID_##theirs)
#define SIM_DRIVER(ours, theirs)  SAME(SIM_DRIVER_##ours, CUPTI_DRIVER_TRACE_CBID_##theirs)

SIM_DRIVER(CTX_SYNCHRONIZE, cuCtxSynchronize);
SIM_DRIVER(EVENT_SYNCHRONIZE, cuEventSynchronize);
SIM_DRIVER(STREAM_SYNCHRONIZE, cuStreamSynchronize);
SIM_DRIVER(MEMSET_D8_ASYNC, cuMemsetD8Async);
SIM_DRIVER(MEMSET_D32_ASYNC, cuMemsetD32Async);
SIM_DRIVER(MEMSET_D8, cuMemsetD8_v2);
SIM_DRIVER(MEMSET_D32, cuMemsetD32_v2);
SIM_DRIVER(MEMCPY_HTOD, cuMemcpyHtoD_v2);
SIM_DRIVER(MEMCPY_HTOD_ASYNC, cuMemcpyHtoDAsync_v2);
SIM_DRIVER(MEMCPY_DTOH, cuMemcpyDtoH_v2);
SIM_DRIVER(MEMCPY_DTOH_ASYNC, cuMemcpyDtoHAsync_v2);
SIM_DRIVER(MEMCPY_DTOD, cuMemcpyDtoD_v2);
SIM_DRIVER(MEMCPY_DTOD_ASYNC, cuMemcpyDtoDAsync_v2);
SIM_DRIVER(MEMCPY, cuMemcpy);
SIM_DRIVER(MEMCPY_ASYNC, cuMemcpyAsync);
SIM_DRIVER(LAUNCH_KERNEL, cuLaunchKernel);
SIM_DRIVER(LAUNCH_COOPERATIVE_KERNEL, cuLaunchCooperativeKernel);
SIM_DRIVER(GRAPH_LAUNCH, cuGraphLaunch);
SIM_DRIVER(LAUNCH_HOST_FUNC, cuLaunchHostFunc);
SIM_DRIVER(LAUNCH_KERNEL_EX, cuLaunchKernelEx);

SIM_RUNTIME(MEMCPY, cudaMemcpy_v3020);
SIM_RUNTIME(MEMCPY_ASYNC, cudaMemcpyAsync_v3020);
SIM_RUNTIME(MEMSET, cudaMemset_v3020);
SIM_RUNTIME(MEMSET_ASYNC, cudaMemsetAsync_v3020);
SIM_RUNTIME(STREAM_SYNCHRONIZE, cudaStreamSynchronize_v3020);
SIM_RUNTIME(EVENT_SYNCHRONIZE, cudaEventSynchronize_v3020);
SIM_RUNTIME(MEMCPY_PEER_ASYNC, cudaMemcpyPeerAsync_v4000);
SIM_RUNTIME(DEVICE_SYNCHRONIZE, cudaDeviceSynchronize_v3020);
SIM_RUNTIME(LAUNCH_KERNEL, cudaLaunchKernel_v7000);
SIM_RUNTIME(LAUNCH_COOPERATIVE_KERNEL, cudaLaunchCooperativeKernel_v9000);
SIM_RUNTIME(LAUNCH_HOST_FUNC, cudaLaunchHostFunc_v10000);
SIM_RUNTIME(GRAPH_LAUNCH, cudaGraphLaunch_v10000);
SIM_RUNTIME(LAUNCH_KERNEL_EX, cudaLaunchKernelExC_v11060);
#if CUPTI_API_VERSION >= 130500
SIM_RUNTIME(COMPILED_LAUNCH_KERNEL, __cudaLaunchKernel_v13000);
#endif

static __attribute__((unused))
CUptiResult (*const next_record)(uint8_t *, size_t, CUpti_Activity **) = cuptiActivityGetNextRecord;
