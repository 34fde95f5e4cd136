/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls as probes record them, and the calls that make communicators. */
#include "tests/sim/cluster/node/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLOAT32 = 7, /* of NCCL */
	READY = 0xe1, /* an event */
};

static uint16_t row_of(const char *symbol, enum nt_library lib)
{
	for (uint16_t i = 0; i < nt_probe_rows(); i++) {
		const struct nt_probe *probe = nt_probe_row(i);

		if (probe->library == lib && strcmp(probe->symbol, symbol) == 0)
			return i;
	}
	(void)fprintf(stderr, "cluster: no probe of %s\n", symbol);
	abort();
}

/* Looked up once: there are hundreds of rows and millions of calls. */
static uint16_t row_of_op(const struct cl_node *node, enum nt_op op)
{
	static const struct {
		enum nt_op op;
		const char *mpi, *nccl;
	} names[] = {
		{NT_OP_ALL_REDUCE, "MPI_Allreduce", "ncclAllReduce"},
		{NT_OP_ALL_GATHER, "MPI_Allgather", "ncclAllGather"},
		{NT_OP_REDUCE_SCATTER, "MPI_Reduce_scatter_block", "ncclReduceScatter"},
		{NT_OP_ALL_TO_ALL, "MPI_Alltoall", "ncclAlltoAll"},
		{NT_OP_SEND, "MPI_Send", "ncclSend"},
		{NT_OP_RECV, "MPI_Recv", "ncclRecv"},
		{NT_OP_SEND_RECV, "MPI_Sendrecv", "ncclSend"},
	};
	static uint16_t row[2][NT_OP_END]; /* 1 + row */
	uint16_t *known = &row[cl_node_is_mpi(node)][op];

	for (size_t i = 0; !*known && i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].op == op)
			*known = 1 + row_of(cl_node_is_mpi(node) ? names[i].mpi : names[i].nccl,
					    cl_node_library(node));
	}
	return *known - 1;
}

static uint16_t row_of_kind(enum cl_call_kind kind)
{
	static const char *const names[] = {
		[CL_CALL_RECORD] = "cudaEventRecord",
		[CL_CALL_WAIT] = "cudaStreamWaitEvent",
		[CL_CALL_SYNC_LOCAL] = "cudaStreamSynchronize",
		[CL_CALL_SYNC_ALL] = "cudaDeviceSynchronize",
	};
	static uint16_t row[CL_CALL_EXIT];

	if (!row[kind])
		row[kind] = 1 + row_of(names[kind], NT_LIBRARY_CUDART);
	return row[kind] - 1;
}

uint16_t cl_event_row_of_sends(void)
{
	static uint16_t row;

	if (!row)
		row = 1 + row_of("nccl_sends", (enum nt_library)NT_LIBRARY_NCCL_SENDS);
	return row - 1;
}

/* Halves of a word are numbered from 16 on. */
static void set_word(struct nt_event_call *event, int8_t word, uint64_t value)
{
	if (word != NT_NO_WORD)
		event->word[word % NT_HIGH_WORD] = value;
}

static struct nt_event_call event_of(const struct cl_node *node, const struct cl_process *process,
				     uint16_t row, int64_t entry_ns, int64_t ret_ns)
{
	uint32_t pid = FIRST_PID + (uint32_t)(process - node->process);
	bool returns = nt_probe_row(row)->returns;

	return (struct nt_event_call){
		.h = {.type = NT_EVENT_CALL,
		      .size = sizeof(struct nt_event_call),
		      .row = row,
		      .flags = returns ? NT_CALL_RETURNED : 0,
		      .pid = pid,
		      .tid = pid,
		      .entry_ns = BOOT_NS + (uint64_t)entry_ns},
		.ret_ns = returns ? BOOT_NS + (uint64_t)ret_ns : 0,
	};
}

/* To the next, from the one before: in a ring, and where the pipeline runs forward. */
static void set_peers(const struct cl_node *node, const struct cl_process *process,
		      const struct cl_call *call, struct nt_event_call *event)
{
	const struct nt_probe *probe = nt_probe_row(event->h.row);
	const struct cl_place where = {(enum cl_group_kind)call->group, call->generation};
	const struct cl_group group = cl_node_group(node, &where, process->rank);
	const uint32_t place = cl_group_place(&group, process->rank);
	const uint32_t next = (place + 1) % group.size;
	const uint32_t last = (place + group.size - 1) % group.size;

	if (call->op == NT_OP_SEND_RECV) {
		set_word(event, probe->peer, next);
		set_word(event, probe->root, last);
	} else if (call->op == NT_OP_SEND || call->op == NT_OP_RECV) {
		set_word(event, probe->peer,
			 (call->op == NT_OP_SEND) == call->forward ? next : last);
	}
}

static struct nt_event_call collective_event(const struct cl_node *node,
					     const struct cl_process *process,
					     const struct cl_call *call)
{
	uint16_t row = row_of_op(node, (enum nt_op)call->op);
	const struct nt_probe *probe = nt_probe_row(row);
	const struct cl_place place = {(enum cl_group_kind)call->group, call->generation};
	struct nt_event_call event = event_of(node, process, row, call->entry_ns, call->ret_ns);

	event.launches = call->launches;
	set_word(&event, probe->count, call->count);
	set_word(&event, probe->type, cl_node_is_mpi(node) ? MPI_FLOAT + (1ULL << 40) : FLOAT32);
	set_word(&event, probe->comm, cl_handle(&place));
	set_word(&event, probe->stream, call->overlaps ? GRADIENTS : KERNELS);
	event.deref = MPI_FLOAT_BYTES;
	set_peers(node, process, call, &event);
	return event;
}

static struct nt_event_call device_event(const struct cl_node *node,
					 const struct cl_process *process,
					 const struct cl_call *call)
{
	uint16_t row = row_of_kind((enum cl_call_kind)call->kind);
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call event = event_of(node, process, row, call->entry_ns, call->ret_ns);

	event.launches = call->launches;
	set_word(&event, probe->event, READY);
	/* What overlaps waits for the kernels; what joins makes the kernels wait. */
	const bool of_gradients = call->kind == CL_CALL_WAIT     ? call->overlaps
				  : call->kind == CL_CALL_RECORD ? !call->overlaps
								 : false;
	set_word(&event, probe->stream, of_gradients ? GRADIENTS : KERNELS);
	return event;
}

struct nt_event_call cl_event(const struct cl_node *node, const struct cl_process *process,
			      const struct cl_call *call)
{
	return call->kind == CL_CALL_COLLECTIVE ? collective_event(node, process, call)
						: device_event(node, process, call);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void make_nccl(struct cl_node *node, struct cl_process *process, enum cl_group_kind kind,
		      int64_t at_ns)
{
	const struct cl_place place = {kind, process->generation};
	struct cl_group group = cl_node_group(node, &place, process->rank);
	uint16_t row = row_of("ncclCommInitRank", NT_LIBRARY_NCCL);
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call event = event_of(node, process, row, at_ns, at_ns);
	uint8_t id[NT_ID_BYTES];

	cl_make_id(node, &place, &group, id);
	event.h.type = NT_EVENT_INIT;
	set_word(&event, probe->nranks, group.size);
	set_word(&event, probe->rank, cl_group_place(&group, process->rank));
	event.deref = cl_handle(&place);
	if (group.size > 1)
		nt_tracker_event(node->tracker, &event, id);
}

static void make_mpi(struct cl_node *node, struct cl_process *process, enum cl_group_kind kind,
		     int64_t at_ns)
{
	const struct cl_place place = {kind, process->generation}, world = {CL_WORLD, 0};
	struct cl_group group = cl_node_group(node, &place, process->rank);
	uint16_t row = row_of(kind == CL_WORLD ? "MPI_Init" : "MPI_Comm_split", NT_LIBRARY_MPI);
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call event = event_of(node, process, row, at_ns, at_ns);

	if (kind != CL_WORLD) {
		set_word(&event, probe->comm, cl_handle(&world));
		set_word(&event, probe->color, group.first);
		event.deref = cl_handle(&place);
	}
	nt_tracker_event(node->tracker, &event, NULL);
}

void cl_event_comms(struct cl_node *node, struct cl_process *process, int64_t at_ns)
{
	for (int kind = 0; kind < CL_GROUP_END; kind++) {
		if (cl_node_is_mpi(node))
			make_mpi(node, process, (enum cl_group_kind)kind, at_ns);
		else
			make_nccl(node, process, (enum cl_group_kind)kind, at_ns);
	}
}
