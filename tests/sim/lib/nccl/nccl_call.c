/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libnccl: collectives, messages between two ranks, and one-sided calls. */
#include "tests/sim/lib/nccl/nccl_group.h"

#define CALL(kind_, send_, recv_, op_, peer_)                                                      \
	struct sim_call call = {.kind = (kind_),                                                   \
				.send = (send_),                                                   \
				.recv = (recv_),                                                   \
				.count = count,                                                    \
				.type = type,                                                      \
				.op = (op_),                                                       \
				.peer = (unsigned int)(peer_)};                                    \
	return sim_group_call(comm, stream, &call)

/* Each call and its sibling with a configuration do the same, and neither calls the other. */
#define BOTH(name, kind, op_value, peer_value, ...)                                                \
	ncclResult_t name(const void *send, void *recv, size_t count, ncclDataType_t type,         \
			  __VA_ARGS__ ncclComm_t comm, cudaStream_t stream)                        \
	{                                                                                          \
		CALL(kind, send, recv, op_value, peer_value);                                      \
	}                                                                                          \
	ncclResult_t name##Config(const void *send, void *recv, size_t count, ncclDataType_t type, \
				  __VA_ARGS__ ncclComm_t comm, cudaStream_t stream,                \
				  const void *config)                                              \
	{                                                                                          \
		(void)config;                                                                      \
		CALL(kind, send, recv, op_value, peer_value);                                      \
	}
#define WITH_OP   ncclRedOp_t op,
#define WITH_ROOT int root,
#define WITH_BOTH ncclRedOp_t op, int root,

BOTH(ncclAllReduce, SIM_CALL_ALL_REDUCE, op, 0, WITH_OP)
BOTH(ncclReduceScatter, SIM_CALL_REDUCE_SCATTER, op, 0, WITH_OP)
BOTH(ncclAllGather, SIM_CALL_ALL_GATHER, 0, 0, )
BOTH(ncclAlltoAll, SIM_CALL_ALL_TO_ALL, 0, 0, )
BOTH(ncclBroadcast, SIM_CALL_BROADCAST, 0, root, WITH_ROOT)
BOTH(ncclReduce, SIM_CALL_REDUCE, op, root, WITH_BOTH)
BOTH(ncclGather, SIM_CALL_GATHER, 0, root, WITH_ROOT)
BOTH(ncclScatter, SIM_CALL_SCATTER, 0, root, WITH_ROOT)

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
		       cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		      ncclComm_t comm, cudaStream_t stream)
{
	CALL(SIM_CALL_SEND, send, NULL, 0, peer);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	CALL(SIM_CALL_RECV, NULL, recv, 0, peer);
}

ncclResult_t ncclPutSignal(const void *buffer, size_t count, ncclDataType_t type, int peer,
			   ncclWindow_t window, size_t offset, int signal, int context,
			   unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	(void)window;
	(void)offset;
	(void)signal;
	(void)context;
	(void)flags;
	CALL(SIM_CALL_PUT, buffer, NULL, 0, peer);
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
			cudaStream_t stream)
{
	size_t count = 0;
	ncclDataType_t type = ncclInt8;

	(void)signal;
	(void)context;
	(void)flags;
	CALL(SIM_CALL_PUT, NULL, NULL, 0, peer);
}

/* The stand-in's puts arrive at once: there is nothing to wait for. */
ncclResult_t ncclWaitSignal(int count_of, void *descriptors, ncclComm_t comm, cudaStream_t stream)
{
	size_t count = 0;
	ncclDataType_t type = ncclInt8;

	(void)count_of;
	(void)descriptors;
	CALL(SIM_CALL_PUT, NULL, NULL, 0, 0);
}
