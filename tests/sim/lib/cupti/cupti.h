/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The part of CUPTI's binary interface that the stand-in has: numbers, records and functions.
 * Written from the public documentation; tests/gpu/cupti_header.c compares it with NVIDIA's headers.
 * Records are those of 12.8. Those of other releases differ in length only: they grow at the end.
 *
 * In the environment:
 * SIM_CUPTI_VERSION       what cuptiGetVersion() returns; 26
 * SIM_CUPTI_KERNEL_BYTES  the length of a record of a kernel: 200, 208, 216 or 248; 208
 * SIM_CUPTI_STRICT        1: an unforced flush keeps the operations' buffer while any is under way
 */
#ifndef NT_SIM_CUPTI_H
#define NT_SIM_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum {
	SIM_CUPTI_SUCCESS = 0,
	SIM_CUPTI_INVALID_PARAMETER = 1,
	SIM_CUPTI_INVALID_OPERATION = 7,
	SIM_CUPTI_MAX_LIMIT_REACHED = 12,
	SIM_CUPTI_NOT_INITIALIZED = 15,
	SIM_CUPTI_INVALID_STREAM = 20,
	SIM_CUPTI_INVALID_KIND = 21,
	SIM_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	SIM_CUPTI_UNKNOWN = 999,

	SIM_CUPTI_FLUSH_FORCED = 1,

	SIM_CUPTI_VERSION = 26, /* 12.8 */

	SIM_CUPTI_MEMCPY_HTOD = 1,
	SIM_CUPTI_MEMCPY_DTOH = 2,
	SIM_CUPTI_MEMCPY_DTOD = 8,
	SIM_CUPTI_MEMCPY_HTOH = 9,

	SIM_CUPTI_THREAD_PTHREAD = 0,
	SIM_CUPTI_THREAD_SYSTEM = 1,
};

enum sim_cupti_kind {
	SIM_CUPTI_INVALID = 0,
	SIM_CUPTI_MEMCPY = 1,
	SIM_CUPTI_MEMSET = 2,
	SIM_CUPTI_KERNEL = 3,
	SIM_CUPTI_DRIVER = 4,
	SIM_CUPTI_RUNTIME = 5,
	SIM_CUPTI_CONCURRENT_KERNEL = 10,
	SIM_CUPTI_OVERHEAD = 17,
	SIM_CUPTI_GRAPH_TRACE = 51,
	SIM_CUPTI_KIND_END = 64,
};

/* Every record begins with its kind. */
struct sim_cupti_record {
	uint32_t kind;
};

struct sim_cupti_kernel {
	uint32_t kind;
	uint8_t cache_config, shared_memory_config;
	uint16_t registers_per_thread;
	uint32_t partitioned_cache[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared_memory, dynamic_shared_memory;
	uint32_t local_memory_per_thread, local_memory_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, shared_carveout, padding;
	uint32_t shared_memory_executed;
	uint64_t graph_node;
	uint32_t shared_limit, graph;
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_policy;
	uint64_t local_memory_total_v2; /* 11.8 ends here */
	uint32_t potential_cluster, active_clusters;
	uint64_t later[5]; /* of 13.x; the stand-in leaves them 0 */
};

enum {
	SIM_CUPTI_KERNEL_BYTES_11 = 200,
	SIM_CUPTI_KERNEL_BYTES_12 = 208,
	SIM_CUPTI_KERNEL_BYTES_13_0 = 216,
	SIM_CUPTI_KERNEL_BYTES_13_5 = 248,
};

_Static_assert(sizeof(struct sim_cupti_kernel) == SIM_CUPTI_KERNEL_BYTES_13_5, "as in 13.5");

struct sim_cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, source_kind, target_kind, flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type, pad2;
	uint64_t copies;
};

_Static_assert(sizeof(struct sim_cupti_memcpy) == 96, "as in 12.8");

struct sim_cupti_memset {
	uint32_t kind, value;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags, memory_kind;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type, pad2;
};

_Static_assert(sizeof(struct sim_cupti_memset) == 88, "as in 12.8");

struct sim_cupti_api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread;
	uint32_t correlation, result;
};

_Static_assert(sizeof(struct sim_cupti_api) == 40, "as in 12.8");

struct sim_cupti_graph_trace {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
	uint32_t end_device, end_context;
};

_Static_assert(sizeof(struct sim_cupti_graph_trace) == 56, "as in 12.8");

/*
 * The functions, by the tags that NVIDIA's headers give to their handles. Enumerations are unsigned
 * there.
 */
struct CUctx_st;
struct CUstream_st;
struct CUgraphExec_st;
struct CUpti_Subscriber_st;

typedef void (*sim_cupti_request)(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void (*sim_cupti_complete)(struct CUctx_st *context, uint32_t stream, uint8_t *buffer,
				   size_t size, size_t valid);
typedef uint64_t (*sim_cupti_timestamp)(void);
typedef void (*sim_cupti_callback)(void *user, unsigned int domain, uint32_t cbid,
				   const void *data);

unsigned int cuptiGetVersion(uint32_t *version);
unsigned int cuptiGetResultString(unsigned int result, const char **text);
unsigned int cuptiGetTimestamp(uint64_t *timestamp);
unsigned int cuptiGetStreamIdEx(struct CUctx_st *context, struct CUstream_st *stream,
				uint8_t per_thread, uint32_t *id);
unsigned int cuptiGetGraphExecId(struct CUgraphExec_st *exec, uint32_t *id);
unsigned int cuptiSetThreadIdType(unsigned int type);
unsigned int cuptiGetThreadIdType(unsigned int *type);
unsigned int cuptiSubscribe(struct CUpti_Subscriber_st **subscriber, sim_cupti_callback callback,
			    void *user);
unsigned int cuptiUnsubscribe(struct CUpti_Subscriber_st *subscriber);
unsigned int cuptiFinalize(void);

unsigned int cuptiActivityRegisterTimestampCallback(sim_cupti_timestamp timestamp);
unsigned int cuptiActivityRegisterCallbacks(sim_cupti_request request, sim_cupti_complete complete);
unsigned int cuptiActivityEnable(unsigned int kind);
unsigned int cuptiActivityDisable(unsigned int kind);
unsigned int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
unsigned int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
unsigned int cuptiActivityFlushAll(uint32_t flag);
unsigned int cuptiActivityFlushPeriod(uint32_t ms);
unsigned int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
					struct sim_cupti_record **record);
unsigned int cuptiActivityGetNumDroppedRecords(struct CUctx_st *context, uint32_t stream,
					       size_t *dropped);

#endif
