/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of the CUDA runtime and, for programs that link it statically and stripped, of the driver.
 * Launches, copies and allocations of host memory are only counted in the kernel. Events come from
 * calls that order streams, from synchronising calls that last, and from every call that allocates or
 * frees device memory. The driver's rows of the last kind are attached beside the runtime's: programs
 * and libraries that use the runtime allocate through the driver too.
 *
 * Every call that takes a stream has a sibling for per-thread default streams, with the same words.
 * <<<>>> calls __cudaLaunchKernel, which calls cudaLaunchKernel: only the latter is here. Queries
 * are polled in loops: agent/probes/probe_event.c has those that are probed.
 */
#include "agent/probes/probe_impl.h"

enum {
	NO = NT_NO_WORD,
};

#define RARE(lib, name, subject_)                                                                  \
	.symbol = name, .library = lib, .subject = subject_, .op = NT_OP_UNKNOWN, NT_NO_COMM,      \
	NT_NO_DATA, NT_NO_MAKE
#define ROW(lib, name, subject_) RARE(lib, name, subject_), .hot = true

/* Counted in the kernel. bytes_: the word with the bytes, or NO. */
#define COUNTED(lib, name, subject_, role_, counter_, bytes_)                                      \
	{                                                                                          \
		ROW(lib, name, subject_), .role = role_, .counter = counter_, .bytes = bytes_,     \
					  .stream = NO, .event = NO, NT_NO_GRAPH, NT_NO_DEREF      \
	}

/* An event at the entry. */
#define SEEN(lib, name, subject_, role_, words_, stream_, event_, counter_)                        \
	{                                                                                          \
		ROW(lib, name, subject_), .role = role_, .words = words_, .stream = stream_,       \
					  .event = event_, .counter = counter_, .bytes = NO,       \
					  NT_NO_GRAPH, NT_NO_DEREF                                 \
	}

/* May block: entry and return, and an event if it lasts. */
#define SYNC(lib, name, role_, words_, stream_, event_, counter_, bytes_, flags_)                  \
	{                                                                                          \
		ROW(lib, name, NT_SUBJECT_SYNC),                                                   \
			.role = role_, .flags = flags_, .returns = true, .long_only = true,        \
			.words = words_, .stream = stream_, .event = event_, .counter = counter_,  \
			.bytes = bytes_, NT_NO_GRAPH, NT_NO_DEREF                                  \
	}

/*
 * Changes of graphs. The result decides whether it took place; a new handle is read at the return.
 * Within a runtime call the driver's own call is nested and skipped.
 */
#define GRAPH(lib, subject_, name, role_, words_, stream_, graph_, from_, deref_)                  \
	{                                                                                          \
		RARE(lib, name, subject_), .role = role_, .returns = true, .words = words_,        \
					   .stream = stream_, .event = NO, .counter = -1,          \
					   .bytes = NO, .graph = graph_, .from = from_,            \
					   .deref = deref_, .deref_at_return = (deref_) != NO      \
	}

/* An event at the entry: its time is that of all calls that the graph holds. */
#define GRAPH_LAUNCH(lib, subject_, name, counter_)                                                \
	{                                                                                          \
		ROW(lib, name, subject_), .role = NT_ROLE_GRAPH_LAUNCH, .words = 2, .stream = 1,   \
					  .event = NO, .counter = counter_, .bytes = NO,           \
					  .graph = 0, .from = NO, NT_NO_DEREF                      \
	}

/*
 * Device memory: entry and return, as the result decides. Not hot: the figures depend on every call,
 * and each costs far more than its probe.
 */
#define MEMORY(lib, name, role_, op_, words_, deref_, counter_, bytes_)                            \
	{                                                                                          \
		RARE(lib, name, NT_SUBJECT_ALLOC),                                                 \
			.role = role_, .returns = true, .words = words_, .stream = NO,             \
			.event = NO, .counter = counter_, .bytes = bytes_, .deref = deref_,        \
			.deref_at_return = (deref_) != NO, .memory = op_, NT_NO_GRAPH              \
	}
/* Frees and waits for the device: also a synchronising call, whose subject it has in the runtime. */
#define SYNC_FREE(lib, name, subject_, counter_)                                                   \
	{                                                                                          \
		ROW(lib, name, subject_), .role = NT_ROLE_SYNC_DEVICE, .returns = true,            \
					  .long_only = true, .words = 1, .stream = NO,             \
					  .event = NO, .counter = counter_, .bytes = NO,           \
					  .memory = NT_MEMORY_FREE, NT_NO_GRAPH, NT_NO_DEREF       \
	}

#define RT NT_LIBRARY_CUDART
#define DR NT_LIBRARY_CUDA

#define LAUNCH(name)      COUNTED(RT, name, NT_SUBJECT_LAUNCH, NT_ROLE_LAUNCH, NT_COUNTER_LAUNCH, NO)
#define COPY(name, bytes) COUNTED(RT, name, NT_SUBJECT_COPY, NT_ROLE_COPY, NT_COUNTER_COPY, bytes)
#define ALLOC(name, bytes)                                                                         \
	COUNTED(RT, name, NT_SUBJECT_ALLOC, NT_ROLE_ALLOC, NT_COUNTER_ALLOC, bytes)
#define DEVICE_ALLOC(name)                                                                         \
	MEMORY(RT, name, NT_ROLE_ALLOC, NT_MEMORY_ALLOC, 2, 0, NT_COUNTER_ALLOC, 1)
#define DEVICE_ALLOCS(name) DEVICE_ALLOC(name), DEVICE_ALLOC(name "_ptsz")
#define DRIVER_DEVICE_ALLOC(name, op, words)                                                       \
	MEMORY(DR, name, NT_ROLE_ALLOC, op, words, 0, NT_COUNTER_DRIVER_ALLOC, 1)
#define DRIVER_DEVICE_ALLOCS(name)                                                                 \
	DRIVER_DEVICE_ALLOC(name, NT_MEMORY_ALLOC, 2),                                             \
		DRIVER_DEVICE_ALLOC(name "_ptsz", NT_MEMORY_ALLOC, 2)
#define OPAQUE(lib, name, counter)                                                                 \
	MEMORY(lib, name, NT_ROLE_ALLOC, NT_MEMORY_ALLOC_OPAQUE, 1, NO, counter, NO)
#define DEVICE_FREE(lib, name, counter)                                                            \
	MEMORY(lib, name, NT_ROLE_FREE, NT_MEMORY_FREE, 1, NO, counter, NO)
#define DEVICE_FREES(lib, name, counter)                                                           \
	DEVICE_FREE(lib, name, counter), DEVICE_FREE(lib, name "_ptsz", counter)
#define RESET(lib, name, op) MEMORY(lib, name, NT_ROLE_FREE, op, 0, NO, -1, NO)
#define DRIVER(name, role, counter, bytes)                                                         \
	COUNTED(DR, name, NT_SUBJECT_DRIVER, role, counter, bytes)
#define DRIVER_LAUNCH(name)       DRIVER(name, NT_ROLE_LAUNCH, NT_COUNTER_DRIVER_LAUNCH, NO)
#define DRIVER_COPY(name, bytes)  DRIVER(name, NT_ROLE_COPY, NT_COUNTER_DRIVER_COPY, bytes)
#define DRIVER_ALLOC(name, bytes) DRIVER(name, NT_ROLE_ALLOC, NT_COUNTER_DRIVER_ALLOC, bytes)

/* With the sibling: asynchronous calls are _ptsz, blocking ones _ptds. */
#define LAUNCHES(name)             LAUNCH(name), LAUNCH(name "_ptsz")
#define COPIES(name, bytes)        COPY(name, bytes), COPY(name "_ptsz", bytes)
#define DRIVER_LAUNCHES(name)      DRIVER_LAUNCH(name), DRIVER_LAUNCH(name "_ptsz")
#define DRIVER_COPIES(name, bytes) DRIVER_COPY(name, bytes), DRIVER_COPY(name "_ptsz", bytes)

#define SEEN_TWICE(lib, name, subject, role, words, stream, event, counter)                        \
	SEEN(lib, name, subject, role, words, stream, event, counter),                             \
		SEEN(lib, name "_ptsz", subject, role, words, stream, event, counter)
#define SYNC_STREAM(lib, name)                                                                     \
	SYNC(lib, name, NT_ROLE_SYNC_STREAM, 1, 0, NO, -1, NO, 0),                                 \
		SYNC(lib, name "_ptsz", NT_ROLE_SYNC_STREAM, 1, 0, NO, -1, NO, 0)
/* Every name with its sibling. begin: the driver's name has a version suffix. */
#define CAPTURES(lib, subject, prefix, begin)                                                      \
	GRAPH(lib, subject, begin, NT_ROLE_CAPTURE_BEGIN, 2, 0, NO, NO, NO),                       \
		GRAPH(lib, subject, begin "_ptsz", NT_ROLE_CAPTURE_BEGIN, 2, 0, NO, NO, NO),       \
		GRAPH(lib, subject, prefix "StreamBeginCaptureToGraph", NT_ROLE_CAPTURE_BEGIN, 2,  \
		      0, 1, NO, NO),                                                               \
		GRAPH(lib, subject, prefix "StreamBeginCaptureToGraph_ptsz",                       \
		      NT_ROLE_CAPTURE_BEGIN, 2, 0, 1, NO, NO),                                     \
		GRAPH(lib, subject, prefix "StreamEndCapture", NT_ROLE_CAPTURE_END, 2, 0,          \
		      NT_DEREF_WORD, NO, 1),                                                       \
		GRAPH(lib, subject, prefix "StreamEndCapture_ptsz", NT_ROLE_CAPTURE_END, 2, 0,     \
		      NT_DEREF_WORD, NO, 1)
#define COPIES_GRAPH(lib, subject, name)                                                           \
	GRAPH(lib, subject, name, NT_ROLE_GRAPH_COPY, 2, NO, NT_DEREF_WORD, 1, 0)
#define UPDATES_GRAPH(lib, subject, name)                                                          \
	GRAPH(lib, subject, name, NT_ROLE_GRAPH_COPY, 2, NO, 0, 1, NO)
#define CHANGES_GRAPH(lib, subject, prefix)                                                        \
	GRAPH(lib, subject, prefix "GraphAddChildGraphNode", NT_ROLE_GRAPH_ADD, 5, NO, 1, 4, NO),  \
		GRAPH(lib, subject, prefix "GraphExecDestroy", NT_ROLE_GRAPH_DESTROY, 1, NO, 0,    \
		      NO, NO),                                                                     \
		GRAPH(lib, subject, prefix "GraphDestroy", NT_ROLE_GRAPH_DESTROY, 1, NO, 0, NO,    \
		      NO)
#define SYNC_DEVICE(lib, name) SYNC(lib, name, NT_ROLE_SYNC_DEVICE, 0, NO, NO, -1, NO, 0)
/* A copy that returns when it is done, and so waits for the streams. */
#define SYNC_COPY(lib, name, words, counter, bytes)                                                \
	SYNC(lib, name, NT_ROLE_SYNC_DEVICE, words, NO, NO, counter, bytes, NT_PROBE_OWN_STREAM),  \
		SYNC(lib, name "_ptds", NT_ROLE_SYNC_DEVICE, words, NO, NO, counter, bytes,        \
		     NT_PROBE_OWN_STREAM)

static const struct nt_probe cudart[] = {
	LAUNCHES("cudaLaunchKernel"),
	LAUNCHES("cudaLaunchKernelExC"),
	LAUNCHES("cudaLaunchCooperativeKernel"),
	LAUNCH("cudaLaunchCooperativeKernelMultiDevice"),
	GRAPH_LAUNCH(RT, NT_SUBJECT_COMM, "cudaGraphLaunch", NT_COUNTER_LAUNCH),
	GRAPH_LAUNCH(RT, NT_SUBJECT_COMM, "cudaGraphLaunch_ptsz", NT_COUNTER_LAUNCH),
	CAPTURES(RT, NT_SUBJECT_COMM, "cuda", "cudaStreamBeginCapture"),
	COPIES_GRAPH(RT, NT_SUBJECT_COMM, "cudaGraphInstantiate"),
	COPIES_GRAPH(RT, NT_SUBJECT_COMM, "cudaGraphInstantiateWithFlags"),
	COPIES_GRAPH(RT, NT_SUBJECT_COMM, "cudaGraphInstantiateWithParams"),
	COPIES_GRAPH(RT, NT_SUBJECT_COMM, "cudaGraphInstantiateWithParams_ptsz"),
	COPIES_GRAPH(RT, NT_SUBJECT_COMM, "cudaGraphClone"),
	UPDATES_GRAPH(RT, NT_SUBJECT_COMM, "cudaGraphExecUpdate"),
	CHANGES_GRAPH(RT, NT_SUBJECT_COMM, "cuda"),

	SYNC_STREAM(RT, "cudaStreamSynchronize"),
	SYNC(RT, "cudaEventSynchronize", NT_ROLE_SYNC_EVENT, 1, NO, 0, -1, NO, 0),
	SYNC_DEVICE(RT, "cudaDeviceSynchronize"),
	SYNC_DEVICE(RT, "cudaThreadSynchronize"),
	SYNC_DEVICE(RT, "cudaExecutionCtxSynchronize"),
	SYNC_COPY(RT, "cudaMemcpy", 4, NT_COUNTER_COPY, 2),
	SYNC_COPY(RT, "cudaMemcpy2D", 7, NT_COUNTER_COPY, NO),
	SYNC_COPY(RT, "cudaMemcpy3D", 1, NT_COUNTER_COPY, NO),
	SYNC_COPY(RT, "cudaMemcpy3DPeer", 1, NT_COUNTER_COPY, NO),
	SYNC_COPY(RT, "cudaMemcpyToSymbol", 5, NT_COUNTER_COPY, 2),
	SYNC_COPY(RT, "cudaMemcpyFromSymbol", 5, NT_COUNTER_COPY, 2),
	SYNC(RT, "cudaMemcpyPeer", NT_ROLE_SYNC_DEVICE, 5, NO, NO, NT_COUNTER_COPY, 4,
	     NT_PROBE_OWN_STREAM),
	SYNC_FREE(RT, "cudaFree", NT_SUBJECT_SYNC, NT_COUNTER_FREE),
	SYNC(RT, "cudaFreeHost", NT_ROLE_SYNC_DEVICE, 1, NO, NO, NT_COUNTER_FREE, NO, 0),

	SEEN_TWICE(RT, "cudaEventRecord", NT_SUBJECT_ORDER, NT_ROLE_EVENT_RECORD, 2, 1, 0, -1),
	SEEN_TWICE(RT, "cudaEventRecordWithFlags", NT_SUBJECT_ORDER, NT_ROLE_EVENT_RECORD, 3, 1, 0,
		   -1),
	SEEN_TWICE(RT, "cudaStreamWaitEvent", NT_SUBJECT_ORDER, NT_ROLE_STREAM_WAIT, 3, 0, 1, -1),
	SEEN(RT, "cudaSetDevice", NT_SUBJECT_ORDER, NT_ROLE_SET_DEVICE, 1, NO, NO, -1),

	COPIES("cudaMemcpyAsync", 2),
	COPIES("cudaMemcpy2DAsync", NO),
	COPIES("cudaMemcpy3DAsync", NO),
	COPIES("cudaMemcpy3DPeerAsync", NO),
	COPIES("cudaMemcpyToSymbolAsync", 2),
	COPIES("cudaMemcpyFromSymbolAsync", 2),
	COPIES("cudaMemcpyBatchAsync", NO),
	COPIES("cudaMemcpy3DBatchAsync", NO),
	COPIES("cudaMemcpyWithAttributesAsync", 2),
	COPIES("cudaMemcpy3DWithAttributesAsync", NO),
	COPIES("cudaMemsetAsync", 2),
	COPIES("cudaMemset2DAsync", NO),
	COPIES("cudaMemset3DAsync", NO),
	COPIES("cudaMemPrefetchAsync", 1),
	COPIES("cudaMemPrefetchAsync_v2", 1),
	COPY("cudaMemcpyPeerAsync", 4),
	/* On device memory it returns at once. */
	COPY("cudaMemset", 2),
	COPY("cudaMemset_ptds", 2),

	DEVICE_ALLOC("cudaMalloc"),
	DEVICE_ALLOCS("cudaMallocAsync"),
	DEVICE_ALLOCS("cudaMallocFromPoolAsync"),
	MEMORY(RT, "cudaMallocManaged", NT_ROLE_ALLOC, NT_MEMORY_ALLOC_MANAGED, 2, 0,
	       NT_COUNTER_ALLOC, 1),
	MEMORY(RT, "cudaMallocPitch", NT_ROLE_ALLOC, NT_MEMORY_ALLOC_PITCHED, 4, 0,
	       NT_COUNTER_ALLOC, NO),
	OPAQUE(RT, "cudaMalloc3D", NT_COUNTER_ALLOC),
	OPAQUE(RT, "cudaMallocArray", NT_COUNTER_ALLOC),
	OPAQUE(RT, "cudaMalloc3DArray", NT_COUNTER_ALLOC),
	OPAQUE(RT, "cudaMallocMipmappedArray", NT_COUNTER_ALLOC),
	DEVICE_FREES(RT, "cudaFreeAsync", NT_COUNTER_FREE),
	RESET(RT, "cudaDeviceReset", NT_MEMORY_RESET),
	ALLOC("cudaMallocHost", 1),
	ALLOC("cudaHostAlloc", 1),
};

static const struct nt_probe cuda[] = {
	DRIVER_LAUNCHES("cuLaunchKernel"),
	DRIVER_LAUNCHES("cuLaunchKernelEx"),
	DRIVER_LAUNCHES("cuLaunchCooperativeKernel"),
	DRIVER_LAUNCH("cuLaunchCooperativeKernelMultiDevice"),
	DRIVER_LAUNCH("cuLaunch"),
	DRIVER_LAUNCH("cuLaunchGrid"),
	DRIVER_LAUNCH("cuLaunchGridAsync"),
	/* If the runtime's is probed too, both make events: the agent uses the runtime's. */
	GRAPH_LAUNCH(DR, NT_SUBJECT_DRIVER, "cuGraphLaunch", NT_COUNTER_DRIVER_LAUNCH),
	GRAPH_LAUNCH(DR, NT_SUBJECT_DRIVER, "cuGraphLaunch_ptsz", NT_COUNTER_DRIVER_LAUNCH),
	CAPTURES(DR, NT_SUBJECT_DRIVER, "cu", "cuStreamBeginCapture_v2"),
	COPIES_GRAPH(DR, NT_SUBJECT_DRIVER, "cuGraphInstantiate_v2"),
	COPIES_GRAPH(DR, NT_SUBJECT_DRIVER, "cuGraphInstantiateWithFlags"),
	COPIES_GRAPH(DR, NT_SUBJECT_DRIVER, "cuGraphInstantiateWithParams"),
	COPIES_GRAPH(DR, NT_SUBJECT_DRIVER, "cuGraphInstantiateWithParams_ptsz"),
	COPIES_GRAPH(DR, NT_SUBJECT_DRIVER, "cuGraphClone"),
	UPDATES_GRAPH(DR, NT_SUBJECT_DRIVER, "cuGraphExecUpdate_v2"),
	CHANGES_GRAPH(DR, NT_SUBJECT_DRIVER, "cu"),

	DRIVER_COPIES("cuMemcpyAsync", 2),
	DRIVER_COPIES("cuMemcpyHtoDAsync_v2", 2),
	DRIVER_COPIES("cuMemcpyDtoHAsync_v2", 2),
	DRIVER_COPIES("cuMemcpyDtoDAsync_v2", 2),
	DRIVER_COPIES("cuMemcpyPeerAsync", 4),
	DRIVER_COPIES("cuMemcpy2DAsync_v2", NO),
	DRIVER_COPIES("cuMemcpy3DAsync_v2", NO),
	DRIVER_COPIES("cuMemcpyBatchAsync", NO),
	DRIVER_COPIES("cuMemcpyBatchAsync_v2", NO),
	DRIVER_COPIES("cuMemsetD8Async", 2),
	DRIVER_COPIES("cuMemsetD16Async", NO),
	DRIVER_COPIES("cuMemsetD32Async", NO),

	DRIVER_DEVICE_ALLOC("cuMemAlloc_v2", NT_MEMORY_ALLOC, 2),
	DRIVER_DEVICE_ALLOCS("cuMemAllocAsync"),
	DRIVER_DEVICE_ALLOCS("cuMemAllocFromPoolAsync"),
	DRIVER_DEVICE_ALLOC("cuMemAllocManaged", NT_MEMORY_ALLOC_MANAGED, 2),
	MEMORY(DR, "cuMemAllocPitch_v2", NT_ROLE_ALLOC, NT_MEMORY_ALLOC_PITCHED, 4, 0,
	       NT_COUNTER_DRIVER_ALLOC, NO),
	DRIVER_DEVICE_ALLOC("cuMemCreate", NT_MEMORY_CREATE, 3),
	MEMORY(DR, "cuMemRetainAllocationHandle", NT_ROLE_ALLOC, NT_MEMORY_RETAIN, 1, 0, -1, NO),
	MEMORY(DR, "cuMemRelease", NT_ROLE_FREE, NT_MEMORY_RELEASE, 1, NO, -1, NO),
	MEMORY(DR, "cuMemMap", NT_ROLE_ALLOC, NT_MEMORY_MAP, 4, NO, -1, 1),
	MEMORY(DR, "cuMemUnmap", NT_ROLE_FREE, NT_MEMORY_UNMAP, 2, NO, -1, 1),
	OPAQUE(DR, "cuArrayCreate_v2", NT_COUNTER_DRIVER_ALLOC),
	OPAQUE(DR, "cuArray3DCreate_v2", NT_COUNTER_DRIVER_ALLOC),
	OPAQUE(DR, "cuMipmappedArrayCreate", NT_COUNTER_DRIVER_ALLOC),
	DEVICE_FREES(DR, "cuMemFreeAsync", -1),
	SYNC_FREE(DR, "cuMemFree_v2", NT_SUBJECT_ALLOC, -1),
	RESET(DR, "cuCtxDestroy_v2", NT_MEMORY_RESET_UNKNOWN),
	RESET(DR, "cuDevicePrimaryCtxReset_v2", NT_MEMORY_RESET_UNKNOWN),
	DRIVER_ALLOC("cuMemHostAlloc", 1),

	/* Inside a probed call of the runtime these are nested, and skipped. */
	SYNC_STREAM(DR, "cuStreamSynchronize"),
	SYNC(DR, "cuEventSynchronize", NT_ROLE_SYNC_EVENT, 1, NO, 0, -1, NO, 0),
	SYNC_DEVICE(DR, "cuCtxSynchronize"),
	SYNC_DEVICE(DR, "cuCtxSynchronize_v2"),
	SYNC_COPY(DR, "cuMemcpy", 3, NT_COUNTER_DRIVER_COPY, 2),
	SYNC_COPY(DR, "cuMemcpyHtoD_v2", 3, NT_COUNTER_DRIVER_COPY, 2),
	SYNC_COPY(DR, "cuMemcpyDtoH_v2", 3, NT_COUNTER_DRIVER_COPY, 2),
	SEEN_TWICE(DR, "cuEventRecord", NT_SUBJECT_DRIVER, NT_ROLE_EVENT_RECORD, 2, 1, 0, -1),
	SEEN_TWICE(DR, "cuEventRecordWithFlags", NT_SUBJECT_DRIVER, NT_ROLE_EVENT_RECORD, 3, 1, 0,
		   -1),
	SEEN_TWICE(DR, "cuStreamWaitEvent", NT_SUBJECT_DRIVER, NT_ROLE_STREAM_WAIT, 3, 0, 1, -1),
};

const struct nt_probe_piece nt_probe_cudart = NT_PIECE(cudart);
const struct nt_probe_piece nt_probe_cuda = NT_PIECE(cuda);
