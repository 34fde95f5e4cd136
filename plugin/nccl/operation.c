/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/operation.h"

#include <string.h>

#include "plugin/nccl/handle.h"

/* From a call to its event, at most; a later one is of a graph's replay. */
#define CALLED_NS 1000000000

enum nt_gpu_record_op nt_operation_of(const struct nt_nccl_event *event, int is_p2p)
{
	static const struct {
		const char *name;
		enum nt_gpu_record_op op;
	} ops[] = {
		{"AllReduce", NT_GPU_RECORD_OP_ALL_REDUCE},
		{"AllGather", NT_GPU_RECORD_OP_ALL_GATHER},
		{"ReduceScatter", NT_GPU_RECORD_OP_REDUCE_SCATTER},
		{"Broadcast", NT_GPU_RECORD_OP_BROADCAST},
		{"Reduce", NT_GPU_RECORD_OP_REDUCE},
	};

	if (is_p2p)
		return NT_GPU_RECORD_OP_SEND_RECV;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) && event->collective.function; i++)
		if (strcmp(event->collective.function, ops[i].name) == 0)
			return ops[i].op;
	return NT_GPU_RECORD_OP_UNKNOWN;
}

uint64_t nt_operation_called_ns(const struct nt_nccl_event *event, uint64_t now_ns)
{
	uint64_t time_ns;

	if (nt_handle_kind(event->parent) != NT_HANDLE_TIME)
		return 0;
	time_ns = nt_handle_time(event->parent);
	return time_ns <= now_ns && now_ns - time_ns < CALLED_NS ? time_ns : 0;
}
