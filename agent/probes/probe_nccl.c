/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of NCCL up to 2.32, and of RCCL, which has the same names. Collectives only enqueue, so only
 * their entry is recorded. Calls that block or return a handle are recorded at the return too.
 * ncclX and ncclXConfig do not call each other. ncclBcast calls ncclBroadcast and is not here.
 */
#include "agent/probes/probe_impl.h"

enum {
	NO = NT_NO_WORD,
};

#define ROW(lib, name) .symbol = name, .library = lib, .subject = NT_SUBJECT_COMM

#define DATA(lib, name, op_, words_, count_, type_, comm_, stream_, peer_, root_)                  \
	{                                                                                          \
		ROW(lib, name), .role = NT_ROLE_COLLECTIVE, .op = op_, .words = words_,            \
				.count = count_, .type = NT_INT(type_), .comm = comm_,             \
				.stream = stream_, .peer = NT_INT(peer_), .root = NT_INT(root_),   \
				.number = NO, NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF, NT_NO_COUNT   \
	}

#define MAKE(lib, name, role_, words_, comm_, nranks_, rank_, id_, newcomm_, color_, key_)         \
	{                                                                                          \
		ROW(lib, name), .role = role_, .returns = true, .words = words_, .comm = comm_,    \
				.nranks = NT_INT(nranks_), .rank = NT_INT(rank_), .id = id_,       \
				.newcomm = newcomm_, .color = NT_INT(color_), .key = NT_INT(key_), \
				.deref = newcomm_, .deref_at_return = true, NT_NO_DATA,            \
				NT_NO_STREAM, NT_NO_DEVICE, NT_NO_COUNT                            \
	}

#define MAKE_BY_VALUE(lib, name, words_)                                                           \
	{                                                                                          \
		ROW(lib, name), .role = NT_ROLE_INIT, .returns = true, .words = words_,            \
				.nranks = NT_INT(1), .rank = NT_INT(2), .id = 6,                   \
				.id_on_stack = true, .newcomm = 0, .deref = 0,                     \
				.deref_at_return = true, .color = NO, .key = NO, NT_NO_COMM,       \
				NT_NO_DATA, NT_NO_STREAM, NT_NO_DEVICE, NT_NO_COUNT                \
	}

#define LIFE(lib, name, role_, op_, returns_, words_, comm_, flags_)                               \
	{                                                                                          \
		ROW(lib, name), .role = role_, .op = op_, .flags = flags_, .returns = returns_,    \
				.words = words_, .comm = comm_, NT_NO_DATA, NT_NO_STREAM,          \
				NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF, NT_NO_COUNT                 \
	}

/* Plain, and with a configuration as last argument, which moves no other word. */
#define WITH_CONFIG(lib, name, op, words, count, type, comm, stream, root)                         \
	DATA(lib, name, op, words, count, type, comm, stream, NO, root),                           \
		DATA(lib, name "Config", op, words, count, type, comm, stream, NO, root)

#define SHARED(lib)                                                                                \
	/* lib, name, op, words, count, type, comm, stream, root */                                \
	WITH_CONFIG(lib, "ncclAllReduce", NT_OP_ALL_REDUCE, 7, 2, 3, 5, 6, NO),                    \
		WITH_CONFIG(lib, "ncclReduceScatter", NT_OP_REDUCE_SCATTER, 7, 2, 3, 5, 6, NO),    \
		WITH_CONFIG(lib, "ncclBroadcast", NT_OP_BROADCAST, 7, 2, 3, 5, 6, 4),              \
		WITH_CONFIG(lib, "ncclReduce", NT_OP_REDUCE, 8, 2, 3, 6, 7, 5),                    \
		WITH_CONFIG(lib, "ncclAllGather", NT_OP_ALL_GATHER, 6, 2, 3, 4, 5, NO),            \
		WITH_CONFIG(lib, "ncclAlltoAll", NT_OP_ALL_TO_ALL, 6, 2, 3, 4, 5, NO),             \
		WITH_CONFIG(lib, "ncclGather", NT_OP_GATHER, 7, 2, 3, 5, 6, 4),                    \
		WITH_CONFIG(lib, "ncclScatter", NT_OP_SCATTER, 7, 2, 3, 5, 6, 4),                  \
		DATA(lib, "ncclSend", NT_OP_SEND, 6, 1, 2, 4, 5, 3, NO),                           \
		DATA(lib, "ncclRecv", NT_OP_RECV, 6, 1, 2, 4, 5, 3, NO),                           \
		DATA(lib, "ncclPutSignal", NT_OP_PUT, 11, 1, 2, 9, 10, 3, NO),                     \
		DATA(lib, "ncclSignal", NT_OP_SIGNAL, 6, NO, NO, 4, 5, 0, NO),                     \
		DATA(lib, "ncclWaitSignal", NT_OP_WAIT_SIGNAL, 4, NO, NO, 2, 3, NO, NO),           \
		LIFE(lib, "ncclGroupStart", NT_ROLE_GROUP_START, NT_OP_UNKNOWN, false, 0, NO, 0),  \
		LIFE(lib, "ncclGroupEnd", NT_ROLE_GROUP_END, NT_OP_GROUP_END, true, 0, NO, 0),     \
		LIFE(lib, "ncclGroupSimulateEnd", NT_ROLE_GROUP_END, NT_OP_GROUP_END, true, 1, NO, \
		     0), /* lib, name, role, words, comm, nranks, rank, id, newcomm, color, key */ \
		MAKE(lib, "ncclCommInitRankScalable", NT_ROLE_INIT, 6, NO, 1, 2, 4, 0, NO, NO),    \
		MAKE(lib, "ncclCommInitAll", NT_ROLE_INIT_ALL, 3, NO, 1, NO, NO, 0, NO, NO),       \
		MAKE(lib, "ncclCommSplit", NT_ROLE_SPLIT, 5, 0, NO, NO, NO, 3, 1, 2),              \
		MAKE(lib, "ncclCommShrink", NT_ROLE_SHRINK, 6, 0, NO, NO, NO, 3, NO, NO),          \
		MAKE(lib, "ncclCommGrow", NT_ROLE_GROW, 6, 0, 1, 3, 2, 4, NO, NO),                 \
		LIFE(lib, "ncclCommFinalize", NT_ROLE_DESTROY, NT_OP_UNKNOWN, true, 1, 0,          \
		     NT_PROBE_ANNOUNCES),                                                          \
		LIFE(lib, "ncclCommDestroy", NT_ROLE_DESTROY, NT_OP_UNKNOWN, true, 1, 0, 0),       \
		LIFE(lib, "ncclCommAbort", NT_ROLE_DESTROY, NT_OP_UNKNOWN, true, 1, 0,             \
		     NT_PROBE_ABORTS),                                                             \
		LIFE(lib, "ncclCommRevoke", NT_ROLE_DESTROY, NT_OP_UNKNOWN, true, 2, 0, 0)

static const struct nt_probe nccl[] = {
	SHARED(NT_LIBRARY_NCCL),
};

/* RCCL has one spelling and two operations of its own. */
static const struct nt_probe rccl[] = {
	SHARED(NT_LIBRARY_RCCL),
	DATA(NT_LIBRARY_RCCL, "ncclAllToAll", NT_OP_ALL_TO_ALL, 6, 2, 3, 4, 5, NO, NO),
	DATA(NT_LIBRARY_RCCL, "ncclAllToAllv", NT_OP_ALL_TO_ALL, 9, NO, 6, 7, 8, NO, NO),
	DATA(NT_LIBRARY_RCCL, "ncclAllReduceWithBias", NT_OP_ALL_REDUCE, 7, 2, 3, 5, 6, NO, NO),
};

/*
 * The unique id of 128 bytes is passed by value. On x86-64 it is on the stack, and the rank moves
 * to the third register; on arm64 the third register points to it.
 */
#define INIT_X86_64(lib)                                                                           \
	MAKE_BY_VALUE(lib, "ncclCommInitRank", 3), MAKE_BY_VALUE(lib, "ncclCommInitRankConfig", 4)
#define INIT_ARM64(lib)                                                                            \
	MAKE(lib, "ncclCommInitRank", NT_ROLE_INIT, 4, NO, 1, 3, 2, 0, NO, NO),                    \
		MAKE(lib, "ncclCommInitRankConfig", NT_ROLE_INIT, 5, NO, 1, 3, 2, 0, NO, NO)

static const struct nt_probe nccl_init_x86_64[] = {INIT_X86_64(NT_LIBRARY_NCCL)};
static const struct nt_probe nccl_init_arm64[] = {INIT_ARM64(NT_LIBRARY_NCCL)};
static const struct nt_probe rccl_init_x86_64[] = {INIT_X86_64(NT_LIBRARY_RCCL)};
static const struct nt_probe rccl_init_arm64[] = {INIT_ARM64(NT_LIBRARY_RCCL)};

const struct nt_probe_piece nt_probe_nccl = NT_PIECE(nccl);
const struct nt_probe_piece nt_probe_rccl = NT_PIECE(rccl);
const struct nt_probe_piece nt_probe_nccl_init[NT_ARCH_END] = {
	[NT_ARCH_X86_64] = NT_PIECE(nccl_init_x86_64),
	[NT_ARCH_ARM64] = NT_PIECE(nccl_init_arm64),
};
const struct nt_probe_piece nt_probe_rccl_init[NT_ARCH_END] = {
	[NT_ARCH_X86_64] = NT_PIECE(rccl_init_x86_64),
	[NT_ARCH_ARM64] = NT_PIECE(rccl_init_arm64),
};
