/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/wire.h"

const char *nt_tier_name(enum nt_tier tier)
{
	static const char *const names[NT_TIER_END] = {
		[NT_TIER_UNKNOWN] = "unknown", [NT_TIER_T0] = "T0", [NT_TIER_T1] = "T1",
		[NT_TIER_T2] = "T2",           [NT_TIER_T3] = "T3",
	};

	return (unsigned int)tier < NT_TIER_END ? names[tier] : names[NT_TIER_UNKNOWN];
}

const char *nt_own_source_name(enum nt_own_source source)
{
	static const char *const names[NT_OWN_SOURCE_END] = {
		[NT_OWN_SOURCE_CALLS] = "calls",
		[NT_OWN_SOURCE_CUPTI] = "kernels, by CUPTI",
		[NT_OWN_SOURCE_NCCL] = "kernels of NCCL, by its profiler",
		[NT_OWN_SOURCE_QUERIES] = "queries of events",
	};

	return (unsigned int)source < NT_OWN_SOURCE_END ? names[source] : NULL;
}

const char *nt_op_name(enum nt_op op)
{
	static const char *const names[NT_OP_END] = {
		[NT_OP_UNKNOWN] = "unknown",
		[NT_OP_ALL_REDUCE] = "all-reduce",
		[NT_OP_ALL_GATHER] = "all-gather",
		[NT_OP_REDUCE_SCATTER] = "reduce-scatter",
		[NT_OP_ALL_TO_ALL] = "all-to-all",
		[NT_OP_BARRIER] = "barrier",
		[NT_OP_BROADCAST] = "broadcast",
		[NT_OP_REDUCE] = "reduce",
		[NT_OP_GATHER] = "gather",
		[NT_OP_SCATTER] = "scatter",
		[NT_OP_SEND] = "send",
		[NT_OP_RECV] = "recv",
		[NT_OP_PUT] = "put",
		[NT_OP_SIGNAL] = "signal",
		[NT_OP_WAIT_SIGNAL] = "wait-signal",
		[NT_OP_WAIT] = "wait",
		[NT_OP_SCAN] = "scan",
		[NT_OP_SEND_RECV] = "send-recv",
		[NT_OP_GROUP_END] = "group-end",
	};

	return (unsigned int)op < NT_OP_END ? names[op] : names[NT_OP_UNKNOWN];
}

const char *nt_detail_kind_name(enum nt_detail_kind kind)
{
	static const char *const names[NT_DETAIL_KIND_END] = {
		[NT_DETAIL_KIND_UNKNOWN] = "unknown", [NT_DETAIL_KIND_COMM] = "comm",
		[NT_DETAIL_KIND_SYNC] = "sync",       [NT_DETAIL_KIND_LAUNCH] = "launch",
		[NT_DETAIL_KIND_COPY] = "copy",       [NT_DETAIL_KIND_ALLOC] = "alloc",
		[NT_DETAIL_KIND_RDMA] = "rdma",       [NT_DETAIL_KIND_SCHED] = "sched",
		[NT_DETAIL_KIND_BLOCK] = "block",     [NT_DETAIL_KIND_NET] = "net",
	};

	return (unsigned int)kind < NT_DETAIL_KIND_END ? names[kind]
						       : names[NT_DETAIL_KIND_UNKNOWN];
}

const char *nt_library_name(enum nt_library library)
{
	static const char *const names[NT_LIBRARY_END] = {
		[NT_LIBRARY_UNKNOWN] = "unknown", [NT_LIBRARY_NCCL] = "nccl",
		[NT_LIBRARY_RCCL] = "rccl",       [NT_LIBRARY_HCCL] = "hccl",
		[NT_LIBRARY_MPI] = "mpi",         [NT_LIBRARY_GLOO] = "gloo",
		[NT_LIBRARY_CUDART] = "cudart",   [NT_LIBRARY_CUDA] = "cuda",
	};

	return (unsigned int)library < NT_LIBRARY_END ? names[library] : names[NT_LIBRARY_UNKNOWN];
}

bool nt_op_synchronises(enum nt_op op)
{
	return op == NT_OP_ALL_REDUCE || op == NT_OP_ALL_GATHER || op == NT_OP_REDUCE_SCATTER ||
	       op == NT_OP_ALL_TO_ALL || op == NT_OP_BARRIER;
}
