/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of HCCL, the collectives of Ascend devices: other argument orders, and ids by pointer. */
#include "agent/probes/probe_impl.h"

enum {
	NO = NT_NO_WORD,
};

#define HCCL_ROW(name) .symbol = #name, .library = NT_LIBRARY_HCCL, .subject = NT_SUBJECT_COMM

#define DATA(name, op_, words_, count_, type_, comm_, stream_, peer_, root_)                       \
	{                                                                                          \
		HCCL_ROW(name), .role = NT_ROLE_COLLECTIVE, .op = op_, .words = words_,            \
				.count = count_, .type = NT_INT(type_), .comm = comm_,             \
				.stream = stream_, .peer = NT_INT(peer_), .root = NT_INT(root_),   \
				.number = NO, NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF, NT_NO_COUNT   \
	}

#define MAKE(name, role_, words_, comm_, nranks_, rank_, id_, newcomm_, color_)                    \
	{                                                                                          \
		HCCL_ROW(name), .role = role_, .returns = true, .words = words_, .comm = comm_,    \
				.nranks = NT_INT(nranks_), .rank = NT_INT(rank_), .id = id_,       \
				.newcomm = newcomm_, .color = color_, .key = NO,                   \
				.deref = newcomm_, .deref_at_return = true, NT_NO_DATA,            \
				NT_NO_STREAM, NT_NO_DEVICE, NT_NO_COUNT                            \
	}

static const struct nt_probe rows[] = {
	/* name, op, words, count, type, comm, stream, peer, root */
	DATA(HcclAllReduce, NT_OP_ALL_REDUCE, 7, 2, 3, 5, 6, NO, NO),
	DATA(HcclBroadcast, NT_OP_BROADCAST, 6, 1, 2, 4, 5, NO, 3),
	DATA(HcclReduceScatter, NT_OP_REDUCE_SCATTER, 7, 2, 3, 5, 6, NO, NO),
	DATA(HcclReduceScatterV, NT_OP_REDUCE_SCATTER, 9, 4, 5, 7, 8, NO, NO),
	DATA(HcclAllGather, NT_OP_ALL_GATHER, 6, 2, 3, 4, 5, NO, NO),
	DATA(HcclAllGatherV, NT_OP_ALL_GATHER, 8, 1, 5, 6, 7, NO, NO),
	DATA(HcclReduce, NT_OP_REDUCE, 8, 2, 3, 6, 7, NO, 5),
	DATA(HcclScatter, NT_OP_SCATTER, 7, 2, 3, 5, 6, NO, 4),
	DATA(HcclBarrier, NT_OP_BARRIER, 2, NO, NO, 0, 1, NO, NO),
	DATA(HcclSend, NT_OP_SEND, 6, 1, 2, 4, 5, 3, NO),
	DATA(HcclRecv, NT_OP_RECV, 6, 1, 2, 4, 5, 3, NO),
	DATA(HcclAlltoAll, NT_OP_ALL_TO_ALL, 8, 1, 2, 6, 7, NO, NO),
	DATA(HcclAlltoAllV, NT_OP_ALL_TO_ALL, 10, NO, 3, 8, 9, NO, NO),
	DATA(HcclAlltoAllVC, NT_OP_ALL_TO_ALL, 7, NO, 2, 5, 6, NO, NO),
	DATA(HcclBatchSendRecv, NT_OP_SEND_RECV, 4, NO, NO, 2, 3, NO, NO),

	/* name, role, words, comm, nranks, rank, id, newcomm, color */
	MAKE(HcclCommInitRootInfo, NT_ROLE_INIT, 4, NO, 0, 2, 1, 3, NO),
	MAKE(HcclCommInitRootInfoConfig, NT_ROLE_INIT, 5, NO, 0, 2, 1, 4, NO),
	/* The ranks are listed in a file, whose name is not an id. */
	MAKE(HcclCommInitClusterInfo, NT_ROLE_INIT, 3, NO, NO, 1, NO, 2, NO),
	MAKE(HcclCommInitClusterInfoConfig, NT_ROLE_INIT, 4, NO, NO, 1, NO, 3, NO),
	MAKE(HcclCommInitAll, NT_ROLE_INIT_ALL, 3, NO, 0, NO, NO, 2, NO),
	/*
	 * The first argument points to the parent's handle; the colour is the caller's own number.
	 */
	MAKE(HcclCreateSubCommConfig, NT_ROLE_SPLIT, 7, NO, 1, 4, NO, 6, 3),
	{HCCL_ROW(HcclCommDestroy), .role = NT_ROLE_DESTROY, .returns = true, .words = 1, .comm = 0,
	 NT_NO_DATA, NT_NO_STREAM, NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF, NT_NO_COUNT},
};

const struct nt_probe_piece nt_probe_hccl = NT_PIECE(rows);
