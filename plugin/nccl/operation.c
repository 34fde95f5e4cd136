/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/operation.h"

#include <string.h>

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
