/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of Gloo. Every operation takes a reference to a struct of options, read as a record
 * (bpf/event.h). The layouts are those of Gloo since 2018, as in Debian's libgloo and PyTorch.
 * `comm` is the gloo::Context, from which the agent reads rank and size. `number` is the tag, which
 * a process group increments and which is equal on all its ranks.
 */
#include "agent/probes/probe_impl.h"

enum {
	BUFFER_SIZE = 16, /* gloo::transport::UnboundBuffer.size */
	AT_0 = 1, /* record offsets as in the cookie */
	AT_16 = 1 + 16 / 16,
	AT_48 = 1 + 48 / 16,
};

#define GLOO_ROW                                                                                   \
	.library = NT_LIBRARY_GLOO, .subject = NT_SUBJECT_COMM, .role = NT_ROLE_COLLECTIVE,        \
	.returns = true, .peer = NT_NO_WORD, .event = NT_NO_WORD, NT_NO_STREAM, NT_NO_MAKE,        \
	NT_NO_GRAPH, NT_NO_COUNT

/* Operations whose options hold a count and the size of one element. */
#define COUNTED(name, op_, words_, count_, type_, root_, number_)                                  \
	{                                                                                          \
		GLOO_ROW, .symbol = name, .op = op_, .words = words_, .record = AT_0, .comm = 1,   \
			  .count = count_, .type = type_, .root = NT_INT(root_),                   \
			  .number = number_, .bytes = NT_NO_WORD, NT_NO_DEREF                      \
	}

/* Operations whose options hold a buffer with its size. */
#define BUFFERED(name, op_, words_, buffer_, type_, root_, number_)                                \
	{                                                                                          \
		GLOO_ROW, .symbol = name, .op = op_, .words = words_, .record = AT_0, .comm = 1,   \
			  .count = NT_NO_WORD, .type = type_, .root = NT_INT(root_),               \
			  .number = number_, .deref = buffer_, .deref_off = BUFFER_SIZE,           \
			  .bytes = NT_DEREF_WORD                                                   \
	}

static const struct nt_probe rows[] = {
	/*
	 * In these two structs the context, at 0, does not fit into the record: it is read by
	 * deref. Elements at 80, their size at 88, tag at 128.
	 */
	{GLOO_ROW, .symbol = "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE", .op = NT_OP_ALL_REDUCE,
	 .words = 12, .record = AT_48, .deref = 0, .comm = NT_DEREF_WORD, .count = 5, .type = 6,
	 .number = NT_INT(11), .root = NT_NO_WORD, .bytes = NT_NO_WORD},
	/* Elements at 32, their size at 40, root at 48, tag at 88. */
	{GLOO_ROW, .symbol = "_ZN4gloo6reduceERNS_13ReduceOptionsE", .op = NT_OP_REDUCE,
	 .words = 11, .record = AT_16, .deref = 0, .comm = NT_DEREF_WORD, .count = 3, .type = 4,
	 .number = NT_INT(10), .root = NT_INT(5), .bytes = NT_NO_WORD},
	/* name, op, words, count, type, root, number: word i holds offset 8 (i - 1) */
	COUNTED("_ZN4gloo9broadcastERNS_16BroadcastOptionsE", NT_OP_BROADCAST, 8, 5, 6, 7,
		7 + NT_HIGH_WORD),
	COUNTED("_ZN4gloo7barrierERNS_14BarrierOptionsE", NT_OP_BARRIER, 5, NT_NO_WORD, NT_NO_WORD,
		NT_NO_WORD, NT_INT(4)),
	/* name, op, words, buffer, type, root, number */
	BUFFERED("_ZN4gloo9allgatherERNS_16AllgatherOptionsE", NT_OP_ALL_GATHER, 7, 3, 5,
		 NT_NO_WORD, NT_INT(6)),
	BUFFERED("_ZN4gloo10allgathervERNS_17AllgathervOptionsE", NT_OP_ALL_GATHER, 10, 3, 8,
		 NT_NO_WORD, NT_INT(9)),
	BUFFERED("_ZN4gloo8alltoallERNS_15AlltoallOptionsE", NT_OP_ALL_TO_ALL, 7, 3, 5, NT_NO_WORD,
		 NT_INT(6)),
	BUFFERED("_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE", NT_OP_ALL_TO_ALL, 4, 3, NT_NO_WORD,
		 NT_NO_WORD, NT_NO_WORD),
	BUFFERED("_ZN4gloo6gatherERNS_13GatherOptionsE", NT_OP_GATHER, 7, 3, 5, 6,
		 6 + NT_HIGH_WORD),
	BUFFERED("_ZN4gloo7gathervERNS_14GathervOptionsE", NT_OP_GATHER, 9, 3, 8, NT_NO_WORD,
		 NT_NO_WORD),
	/* The inputs are an array of buffers; the one output has the size of each. */
	BUFFERED("_ZN4gloo7scatterERNS_14ScatterOptionsE", NT_OP_SCATTER, 9, 6, 7, 8,
		 8 + NT_HIGH_WORD),
};

const struct nt_probe_piece nt_probe_gloo = NT_PIECE(rows);
