/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Queries of CUDA events, by which a program finds out how far its GPU is: PyTorch's watchdogs poll
 * the events of each collective. They are probed in ranks alone, since any program may poll them in
 * a loop. The runtime's query calls the driver's: a process has one of the two probed.
 */
#include "agent/probes/probe_impl.h"

#define QUERY(name)                                                                                \
	{                                                                                          \
		.symbol = name, .library = (enum nt_library)NT_LIBRARY_EVENT,                      \
		.subject = NT_SUBJECT_COMPLETION, .role = NT_ROLE_EVENT_QUERY,                     \
		.op = NT_OP_UNKNOWN, .returns = true, .queried = true, .words = 1, .event = 0,     \
		.bytes = NT_NO_WORD, NT_NO_COUNT, NT_NO_COMM, NT_NO_STREAM, NT_NO_DATA,            \
		NT_NO_MAKE, NT_NO_GRAPH, NT_NO_DEREF                                               \
	}

static const struct nt_probe rows[] = {
	QUERY("cudaEventQuery"),
	QUERY("cuEventQuery"),
};

const struct nt_probe_piece nt_probe_event = NT_PIECE(rows);
