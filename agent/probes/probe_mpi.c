/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of MPI. They serve Open MPI, whose handles are pointers, and MPICH, whose handles are
 * integers: both pass the same words. The size of a data type is read at +24 of Open MPI's. MPICH's
 * handle contains it, and there the read fails. MPI_X is an alias of PMPI_X: one probe covers both,
 * and calls from Fortran.
 */
#include "agent/probes/probe_impl.h"

enum {
	TYPE_SIZE = 24, /* opal_datatype_t.size */
};

#define MPI_ROW .library = NT_LIBRARY_MPI, .subject = NT_SUBJECT_COMM

/* Blocks until the caller's part is done. */
#define BLOCKING(name, op_, words_, count_, type_, comm_, peer_, root_, hot_)                      \
	{                                                                                          \
		MPI_ROW, .symbol = name, .role = NT_ROLE_COLLECTIVE, .op = op_, .returns = true,   \
			 .hot = hot_, .words = words_, .count = count_, .type = type_,             \
			 .comm = comm_, .peer = NT_INT(peer_), .root = NT_INT(root_),              \
			 .number = NT_NO_WORD, .deref = type_, .deref_off = TYPE_SIZE,             \
			 NT_NO_STREAM, NT_NO_MAKE, NT_NO_DEVICE, NT_NO_COUNT                       \
	}

/* The non-blocking sibling: the same words and a request after them. */
#define STARTING(name, op_, words_, count_, type_, comm_, peer_, root_, hot_)                      \
	{                                                                                          \
		MPI_ROW, .symbol = name, .role = NT_ROLE_START, .op = op_, .hot = hot_,            \
			 .words = words_, .count = count_, .type = type_, .comm = comm_,           \
			 .peer = NT_INT(peer_), .root = NT_INT(root_), .number = NT_NO_WORD,       \
			 .deref = type_, .deref_off = TYPE_SIZE, NT_NO_STREAM, NT_NO_MAKE,         \
			 NT_NO_DEVICE, NT_NO_COUNT                                                 \
	}

/*
 * MPI-4 has a sibling of each function with counts, whose counts are MPI_Count: 64 bits. Programs
 * such as mpi4py 4 call only these.
 */
#define BLOCKING_C(name, op_, words_, count_, type_, comm_, peer_, root_, hot_)                    \
	BLOCKING(#name, op_, words_, NT_INT(count_), type_, comm_, peer_, root_, hot_),            \
		BLOCKING(#name "_c", op_, words_, count_, type_, comm_, peer_, root_, hot_)

#define STARTING_C(name, op_, words_, count_, type_, comm_, peer_, root_, hot_)                    \
	STARTING(#name, op_, words_, NT_INT(count_), type_, comm_, peer_, root_, hot_),            \
		STARTING(#name "_c", op_, words_, count_, type_, comm_, peer_, root_, hot_)

#define BOTH_C(blocking, starting, op_, words_, count_, type_, comm_, peer_, root_, hot_)          \
	BLOCKING_C(blocking, op_, words_, count_, type_, comm_, peer_, root_, hot_),               \
		STARTING_C(starting, op_, words_, count_, type_, comm_, peer_, root_, hot_)

/* Blocks until other ranks arrive. */
#define WAITING(name, words_, comm_)                                                               \
	{                                                                                          \
		MPI_ROW, .symbol = #name, .role = NT_ROLE_WAIT, .op = NT_OP_WAIT, .returns = true, \
			 .hot = true, .words = words_, .comm = comm_, NT_NO_DATA, NT_NO_STREAM,    \
			 NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF, NT_NO_COUNT                        \
	}

/* Makes a communicator from another. */
#define MAKING(name, words_, color_, key_, newcomm_, flags_)                                       \
	{                                                                                          \
		MPI_ROW, .symbol = #name, .role = NT_ROLE_SPLIT, .flags = flags_, .returns = true, \
			 .words = words_, .comm = 0, .color = NT_INT(color_), .key = NT_INT(key_), \
			 .newcomm = newcomm_, .deref = newcomm_, .deref_at_return = true,          \
			 .nranks = NT_NO_WORD, .rank = NT_NO_WORD, .id = NT_NO_WORD, NT_NO_DATA,   \
			 NT_NO_STREAM, NT_NO_DEVICE, NT_NO_COUNT                                   \
	}

/*
 * Queries of rank or size. They alone identify MPICH's communicators, whose handles are no
 * addresses. An int: the upper half of the word read is undefined.
 */
#define QUERY(name, role_)                                                                         \
	{                                                                                          \
		MPI_ROW, .symbol = #name, .role = role_, .returns = true, .hot = true, .words = 2, \
			 .comm = 0, .newcomm = 1, .deref = 1, .deref_at_return = true,             \
			 .nranks = NT_NO_WORD, .rank = NT_NO_WORD, .id = NT_NO_WORD,               \
			 .color = NT_NO_WORD, .key = NT_NO_WORD, NT_NO_DATA, NT_NO_STREAM,         \
			 NT_NO_DEVICE, NT_NO_COUNT                                                 \
	}

#define LIFE(name, role_, returns_, words_, comm_, flags_)                                         \
	{                                                                                          \
		MPI_ROW, .symbol = #name, .role = role_, .flags = flags_, .returns = returns_,     \
			 .words = words_, .comm = comm_, NT_NO_DATA, NT_NO_STREAM, NT_NO_MAKE,     \
			 NT_NO_DEVICE, NT_NO_DEREF, NT_NO_COUNT                                    \
	}

enum {
	NO = NT_NO_WORD,
};

static const struct nt_probe rows[] = {
	/* name, op, words, count, type, comm, peer, root, hot */
	BOTH_C(MPI_Allreduce, MPI_Iallreduce, NT_OP_ALL_REDUCE, 6, 2, 3, 5, NO, NO, false),
	BOTH_C(MPI_Allgather, MPI_Iallgather, NT_OP_ALL_GATHER, 7, 1, 2, 6, NO, NO, false),
	BOTH_C(MPI_Allgatherv, MPI_Iallgatherv, NT_OP_ALL_GATHER, 8, 1, 2, 7, NO, NO, false),
	BOTH_C(MPI_Reduce_scatter, MPI_Ireduce_scatter, NT_OP_REDUCE_SCATTER, 6, NO, 3, 5, NO, NO,
	       false),
	BOTH_C(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, NT_OP_REDUCE_SCATTER, 6, 2, 3,
	       5, NO, NO, false),
	BOTH_C(MPI_Alltoall, MPI_Ialltoall, NT_OP_ALL_TO_ALL, 7, 1, 2, 6, NO, NO, false),
	BOTH_C(MPI_Alltoallv, MPI_Ialltoallv, NT_OP_ALL_TO_ALL, 9, NO, 3, 8, NO, NO, false),
	BOTH_C(MPI_Alltoallw, MPI_Ialltoallw, NT_OP_ALL_TO_ALL, 9, NO, NO, 8, NO, NO, false),
	BLOCKING("MPI_Barrier", NT_OP_BARRIER, 1, NO, NO, 0, NO, NO, false),
	STARTING("MPI_Ibarrier", NT_OP_BARRIER, 1, NO, NO, 0, NO, NO, false),
	BOTH_C(MPI_Bcast, MPI_Ibcast, NT_OP_BROADCAST, 5, 1, 2, 4, NO, 3, false),
	BOTH_C(MPI_Reduce, MPI_Ireduce, NT_OP_REDUCE, 7, 2, 3, 6, NO, 5, false),
	BOTH_C(MPI_Gather, MPI_Igather, NT_OP_GATHER, 8, 1, 2, 7, NO, 6, false),
	BOTH_C(MPI_Gatherv, MPI_Igatherv, NT_OP_GATHER, 9, 1, 2, 8, NO, 7, false),
	BOTH_C(MPI_Scatter, MPI_Iscatter, NT_OP_SCATTER, 8, 4, 5, 7, NO, 6, false),
	BOTH_C(MPI_Scatterv, MPI_Iscatterv, NT_OP_SCATTER, 9, 5, 6, 8, NO, 7, false),
	BOTH_C(MPI_Scan, MPI_Iscan, NT_OP_SCAN, 6, 2, 3, 5, NO, NO, false),
	BOTH_C(MPI_Exscan, MPI_Iexscan, NT_OP_SCAN, 6, 2, 3, 5, NO, NO, false),
	BOTH_C(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, NT_OP_ALL_GATHER, 7, 1, 2, 6, NO,
	       NO, false),
	BOTH_C(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, NT_OP_ALL_GATHER, 8, 1, 2, 7, NO,
	       NO, false),
	BOTH_C(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, NT_OP_ALL_TO_ALL, 9, NO, 3, 8, NO,
	       NO, false),
	BOTH_C(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, NT_OP_ALL_TO_ALL, 9, NO, NO, 8, NO,
	       NO, false),
	BOTH_C(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, NT_OP_ALL_TO_ALL, 7, 1, 2, 6, NO, NO,
	       false),
	BOTH_C(MPI_Send, MPI_Isend, NT_OP_SEND, 6, 1, 2, 5, 3, NO, true),
	BOTH_C(MPI_Ssend, MPI_Issend, NT_OP_SEND, 6, 1, 2, 5, 3, NO, true),
	BOTH_C(MPI_Bsend, MPI_Ibsend, NT_OP_SEND, 6, 1, 2, 5, 3, NO, true),
	BOTH_C(MPI_Rsend, MPI_Irsend, NT_OP_SEND, 6, 1, 2, 5, 3, NO, true),
	BOTH_C(MPI_Recv, MPI_Irecv, NT_OP_RECV, 6, 1, 2, 5, 3, NO, true),
	BOTH_C(MPI_Sendrecv, MPI_Isendrecv, NT_OP_SEND_RECV, 11, 1, 2, 10, 3, 8, true),
	BOTH_C(MPI_Sendrecv_replace, MPI_Isendrecv_replace, NT_OP_SEND_RECV, 8, 1, 2, 7, 3, 5,
	       true),

	WAITING(MPI_Wait, 2, NO),
	WAITING(MPI_Waitall, 3, NO),
	WAITING(MPI_Waitany, 4, NO),
	WAITING(MPI_Waitsome, 5, NO),
	WAITING(MPI_Probe, 4, 2),
	WAITING(MPI_Mprobe, 5, 2),
	WAITING(MPI_Win_fence, 2, NO),
	WAITING(MPI_Win_wait, 1, NO),
	WAITING(MPI_Win_complete, 1, NO),
	WAITING(MPI_Win_unlock, 2, NO),
	WAITING(MPI_Win_unlock_all, 1, NO),
	WAITING(MPI_Win_flush, 2, NO),
	WAITING(MPI_Win_flush_all, 1, NO),
	WAITING(MPI_Win_flush_local, 2, NO),
	WAITING(MPI_Win_flush_local_all, 1, NO),
	WAITING(MPI_Mrecv, 5, NO),
	WAITING(MPI_Mrecv_c, 5, NO),

	/* name, words, color, key, newcomm, flags */
	MAKING(MPI_Comm_split, 4, 1, 2, 3, 0),
	MAKING(MPI_Comm_split_type, 5, 1, 2, 4, NT_PROBE_PER_NODE),
	MAKING(MPI_Comm_dup, 2, NO, NO, 1, NT_PROBE_SAME_MEMBERS),
	MAKING(MPI_Comm_dup_with_info, 3, NO, NO, 2, NT_PROBE_SAME_MEMBERS),
	MAKING(MPI_Comm_create, 3, NO, NO, 2, 0),
	MAKING(MPI_Comm_create_group, 4, NO, NO, 3, 0),
	MAKING(MPI_Cart_create, 6, NO, NO, 5, 0),
	MAKING(MPI_Cart_sub, 3, NO, NO, 2, 0),
	MAKING(MPI_Graph_create, 6, NO, NO, 5, 0),
	MAKING(MPI_Dist_graph_create, 9, NO, NO, 8, 0),
	MAKING(MPI_Dist_graph_create_adjacent, 10, NO, NO, 9, 0),

	/* MPI_Comm_free takes a pointer to the handle. */
	{MPI_ROW, .symbol = "MPI_Comm_free", .role = NT_ROLE_DESTROY, .returns = true, .words = 1,
	 .comm = NT_DEREF_WORD, .deref = 0, NT_NO_DATA, NT_NO_STREAM, NT_NO_MAKE, NT_NO_DEVICE,
	 NT_NO_COUNT},
	QUERY(MPI_Comm_rank, NT_ROLE_COMM_RANK),
	QUERY(MPI_Comm_size, NT_ROLE_COMM_SIZE),

	LIFE(MPI_Init, NT_ROLE_LIBRARY_INIT, true, 2, NO, 0),
	LIFE(MPI_Init_thread, NT_ROLE_LIBRARY_INIT, true, 4, NO, 0),
	LIFE(MPI_Finalize, NT_ROLE_LIBRARY_END, true, 0, NO, 0),
	LIFE(MPI_Abort, NT_ROLE_LIBRARY_END, false, 2, 0, NT_PROBE_ABORTS),
};

const struct nt_probe_piece nt_probe_mpi = NT_PIECE(rows);
