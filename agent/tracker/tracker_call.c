/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interprets calls, in progress and returned: the rank of each, and its effect. */
#include <errno.h>
#include <string.h>

#include "agent/tracker/tracker_impl.h"

/* ---- ranks ---------------------------------------------------------------------------------- */

/*
 * A process is one rank, unless it creates communicators of one size and id with different ranks. A
 * communicator belongs to its parent's rank, else to the last one that the thread served.
 */
static bool conflicts(const struct nt_rank *rank, const struct nt_communicator *comm)
{
	for (const struct nt_communicator *other = rank->process->comms; other;
	     other = other->hh.next) {
		if (other != comm && other->rank_of == rank && !other->id_is_local &&
		    other->id == comm->id && other->size == comm->size && other->rank != comm->rank)
			return true;
	}
	return false;
}

static struct nt_rank *new_rank(struct nt_tracker *tracker, struct nt_process *process)
{
	struct nt_rank *rank = NULL;

	if (process->ranks == NT_PROCESS_RANKS) {
		tracker->stats.ranks_over_cap++;
		return NULL;
	}
	if (nt_rank_new(process, &rank) < 0) {
		tracker->stats.no_memory++;
		return NULL;
	}
	rank->lost_seen = process->lost_events;
	rank->events_seen = process->events;
	rank->unobserved_seen = process->unobserved_ns;
	process->rank[process->ranks++] = rank;
	if (process->ranks == 1 && tracker->options.sink.ranked)
		tracker->options.sink.ranked(tracker->options.sink.data, process->pid,
					     process->start_ns);
	return rank;
}

static struct nt_rank *rank_of(struct nt_tracker *tracker, struct nt_process *process,
			       struct nt_thread *thread, struct nt_communicator *comm)
{
	struct nt_rank *rank = comm->rank_of;

	if (!rank && thread && thread->rank && !conflicts(thread->rank, comm))
		rank = thread->rank;
	for (uint32_t i = 0; !rank && i < process->ranks; i++) {
		if (!conflicts(process->rank[i], comm))
			rank = process->rank[i];
	}
	if (!rank)
		rank = new_rank(tracker, process);
	if (!rank)
		return NULL;
	comm->rank_of = rank;
	if (thread)
		thread->rank = rank;
	return rank;
}

/* A device call has no communicator: it is its thread's rank's, or the only rank's. */
static struct nt_rank *rank_of_thread(struct nt_process *process, const struct nt_thread *thread)
{
	if (thread && thread->rank)
		return thread->rank;
	return process->ranks == 1 ? process->rank[0] : NULL;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct nt_probe *probe, const struct nt_event_call *call,
			 uint64_t count, uint32_t *ret_type)
{
	uint64_t word = nt_probe_word(call, probe->type), size, bytes;

	if (probe->library == NT_LIBRARY_MPI) {
		size = nt_probe_type_bytes(NT_LIBRARY_MPI, (uint32_t)word);
		/* A pointer: its size was read there. */
		if (word > UINT32_MAX || !size)
			size = probe->type != NT_NO_WORD ? (uint32_t)call->deref : 0;
		*ret_type = (uint32_t)size; /* a pointer would differ on every rank */
	} else {
		size = probe->type != NT_NO_WORD
			       ? nt_probe_type_bytes(probe->library, (uint32_t)word)
			       : 0;
		*ret_type = (uint32_t)word;
	}
	if (probe->bytes != NT_NO_WORD)
		return nt_probe_word(call, probe->bytes);
	return __builtin_mul_overflow(count, size, &bytes) ? 0 : bytes;
}

/* Sets the receiver and the sender, if each is a single member. */
static void name_peers(const struct nt_probe *probe, const struct nt_event_call *call,
		       struct nt_communicator_call *made)
{
	const uint32_t peer = (uint32_t)nt_probe_word(call, probe->peer);

	made->to = made->from = NT_COMMUNICATOR_NOBODY;
	if (probe->peer == NT_NO_WORD)
		return;
	if (probe->op == NT_OP_SEND || probe->op == NT_OP_SEND_RECV)
		made->to = peer;
	if (probe->op == NT_OP_RECV)
		made->from = peer;
	if (probe->op == NT_OP_SEND_RECV && probe->root != NT_NO_WORD)
		made->from = (uint32_t)nt_probe_word(call, probe->root);
}

static struct nt_communicator_call call_of(const struct nt_probe *probe,
					   const struct nt_event_call *call)
{
	struct nt_communicator_call made = {
		.op = probe->op,
		.count = nt_probe_word(call, probe->count),
		.entry_ns = call->h.entry_ns,
		.ret_ns = probe->role == NT_ROLE_COLLECTIVE ? call->ret_ns : 0,
	};

	if (probe->library == NT_LIBRARY_MPI)
		made.count = (uint32_t)made.count; /* an int */
	made.bytes = bytes_of(probe, call, made.count, &made.type);
	if (probe->count == NT_NO_WORD)
		made.count = made.bytes;
	if (probe->number != NT_NO_WORD)
		made.number = (uint64_t)(uint32_t)nt_probe_word(call, probe->number) + 1;
	name_peers(probe, call, &made);
	return made;
}

static void time_peers(struct nt_tracker *tracker, struct nt_communicator *comm,
		       const struct nt_communicator_call *made)
{
	const int r = nt_communicator_time_peers(comm, made);

	if (r == -ENOSPC)
		tracker->stats.peers_over_cap++;
	else if (r < 0)
		tracker->stats.no_memory++;
}

/* So that its kernel can be told from others (agent/steps/gpu_records.h). */
static void note_collective(struct nt_process *process, const struct nt_thread *thread,
			    const struct nt_probe *probe, const struct nt_communicator *comm,
			    const struct nt_communicator_call *made)
{
	if (!process->gpu_records || probe->library != NT_LIBRARY_NCCL || !thread)
		return;
	nt_gpu_records_collective(
		process->gpu_records,
		&(struct nt_gpu_collective){
			.entry_ns = made->entry_ns,
			.comm = comm->id,
			.comm_rank = comm->rank,
			.tid = thread->tid,
			.op = made->op,
			.nth = comm->own_number[made->op],
			.group = thread->group_depth ? (uint64_t)thread->tid << 32 | thread->groups
						     : 0,
		});
}

/* Of the call that was just counted. */
static uint64_t number_of(const struct nt_communicator *comm,
			  const struct nt_communicator_call *made)
{
	if (made->number)
		return made->number;
	return nt_communicator_is_collective(made->op) ? comm->last : comm->own_number[made->op];
}

static void on_comm(struct nt_tracker *tracker, struct nt_process *process,
		    const struct nt_probe *probe, const struct nt_event_call *call)
{
	struct nt_thread *thread = nt_process_thread(process, call->h.tid);
	uint64_t handle = nt_probe_word(call, probe->comm);
	struct nt_communicator_call made = call_of(probe, call);
	struct nt_communicator *comm;
	struct nt_rank *rank;

	if (!thread)
		tracker->stats.threads_over_cap++;
	if (!handle) {
		tracker->stats.malformed_events++;
		return;
	}
	if (probe->library == NT_LIBRARY_MPI)
		process->mpi_called = true;
	comm = nt_registry_find(&tracker->registry, process, probe->library, handle);
	rank = comm ? rank_of(tracker, process, thread, comm) : NULL;
	if (!rank)
		return;
	if (nt_tracker_captured(process, probe, call, comm, &made)) {
		nt_tracker_detail_comm(tracker, rank, probe, call, comm, &made, 0);
		return;
	}
	if (thread)
		thread->comm_calls++;
	time_peers(tracker, comm, &made);
	if ((call->h.flags & NT_CALL_RETURNED) && (uint32_t)call->ret != 0 &&
	    probe->library != NT_LIBRARY_GLOO)
		rank->errors++;
	if (nt_rank_comm(rank, comm, &made, nt_probe_word(call, probe->stream), call->launches))
		nt_tracker_stepped(tracker, rank);
	note_collective(process, thread, probe, comm, &made);
	nt_tracker_detail_comm(tracker, rank, probe, call, comm, &made, number_of(comm, &made));
}

static void on_sync(struct nt_process *process, const struct nt_probe *probe,
		    const struct nt_event_call *call)
{
	struct nt_thread *thread = nt_process_thread(process, call->h.tid);
	struct nt_rank *rank = rank_of_thread(process, thread);
	bool counted = call->h.tid == process->pid || (thread && thread->comm_calls);
	enum nt_stream_order_sync what = NT_STREAM_ORDER_DEVICE;
	uint64_t handle = 0;

	if (!rank || !(call->h.flags & NT_CALL_RETURNED))
		return;
	if (probe->role == NT_ROLE_SYNC_STREAM) {
		what = NT_STREAM_ORDER_STREAM;
		handle = nt_probe_word(call, probe->stream);
	} else if (probe->role == NT_ROLE_SYNC_EVENT) {
		what = NT_STREAM_ORDER_EVENT;
		handle = nt_probe_word(call, probe->event);
	} else if (probe->flags & NT_PROBE_OWN_STREAM) {
		what = NT_STREAM_ORDER_UNCLEAR;
	}
	if ((uint32_t)call->ret != 0)
		rank->errors++;
	nt_rank_sync(rank, what, handle, counted, call->h.entry_ns, call->ret_ns, call->launches);
}

static void on_order(struct nt_process *process, const struct nt_probe *probe,
		     const struct nt_event_call *call)
{
	struct nt_rank *rank = rank_of_thread(process, nt_process_thread(process, call->h.tid));
	uint64_t event = nt_probe_word(call, probe->event);
	uint64_t stream = nt_probe_word(call, probe->stream);

	if (nt_tracker_captured_order(process, probe, call) || !rank)
		return;
	if (probe->role == NT_ROLE_EVENT_RECORD)
		nt_rank_record(rank, event, stream);
	else
		nt_rank_stream_wait(rank, stream, event);
}

static void on_graph_launch(struct nt_tracker *tracker, struct nt_process *process,
			    const struct nt_probe *probe, const struct nt_event_call *call)
{
	struct nt_thread *thread = nt_process_thread(process, call->h.tid);
	struct nt_rank *rank;

	if (probe->library == NT_LIBRARY_CUDA && process->runtime)
		return;
	process->graph_launches++;
	if (nt_tracker_graph_launch(tracker, process, thread, probe, call))
		return;
	rank = rank_of_thread(process, thread);
	if (rank)
		nt_rank_graph(rank, nt_probe_word(call, probe->stream), call->h.entry_ns,
			      call->launches);
}

static void on_wait(struct nt_process *process, const struct nt_event_call *call)
{
	struct nt_rank *rank = rank_of_thread(process, nt_process_thread(process, call->h.tid));

	if (rank && (call->h.flags & NT_CALL_RETURNED))
		nt_rank_wait(rank, call->h.entry_ns, call->ret_ns);
}

static void on_group(struct nt_tracker *tracker, struct nt_process *process,
		     const struct nt_probe *probe, const struct nt_event_call *call)
{
	struct nt_thread *thread = nt_process_thread(process, call->h.tid);

	if (!thread)
		return;
	if (probe->role == NT_ROLE_GROUP_START) {
		thread->groups += thread->group_depth++ == 0;
		return;
	}
	if (thread->group_depth)
		thread->group_depth--;
	if (!thread->group_depth && process->pendings)
		nt_registry_settle(&tracker->registry, process, thread->tid);
}

static void on_library_end(struct nt_process *process, const struct nt_probe *probe)
{
	if (probe->role == NT_ROLE_LIBRARY_END) {
		process->finalized = !(probe->flags & NT_PROBE_ABORTS);
		return;
	}
	process->mpi_begun = true;
}

static void on_question(struct nt_registry *registry, struct nt_process *process,
			const struct nt_probe *probe, const struct nt_event_call *call)
{
	uint64_t handle = nt_probe_word(call, probe->comm);

	/*
	 * A library's first process may be in MPI_Init while it is attached. But programs query
	 * their rank before they communicate.
	 */
	if (!process->late && !process->mpi_called)
		process->mpi_begun = true;
	if (!(call->h.flags & NT_CALL_RETURNED) || (uint32_t)call->ret != 0)
		return;
	if (probe->role == NT_ROLE_COMM_RANK)
		nt_registry_rank(registry, process, handle, (uint32_t)call->deref);
	else
		nt_registry_size(registry, process, handle, (uint32_t)call->deref);
}

static void on_destroy(struct nt_process *process, const struct nt_probe *probe,
		       const struct nt_event_call *call)
{
	uint64_t handle = nt_probe_word(call, probe->comm);

	if (probe->library == NT_LIBRARY_MPI && process->mpich)
		handle = (uint32_t)handle;
	if (!(probe->flags & NT_PROBE_ANNOUNCES))
		nt_registry_end(process, probe->library, handle);
	if (!process->comm_count && !(probe->flags & NT_PROBE_ABORTS))
		process->finalized = true;
}

/*
 * A process is discovered when it maps a library, possibly between fork and exec: its facts were
 * then its launcher's. At its first call they are its own.
 */
static void meet(struct nt_tracker *tracker, struct nt_process *process)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	struct nt_process_facts facts = {0};

	process->met = true;
	nt_environ_parse("", 0, &facts.env);
	if (source->describe(source->data, process->pid, &facts) == 0) {
		process->facts = facts;
		nt_placement_read_own(&facts.cgroup, &facts.env, &process->placement);
	} else {
		process->facts.has_uid = false; /* it may be the launcher's */
	}
}

void nt_tracker_give(struct nt_tracker *tracker, struct nt_process *process,
		     const struct nt_event_call *call, const uint8_t *id)
{
	const struct nt_probe *probe = nt_probe_row(call->h.row);
	struct nt_registry *registry = &tracker->registry;

	registry->now_ns = call->h.flags & NT_CALL_RETURNED ? call->ret_ns : call->h.entry_ns;
	process->events++;
	if (!process->met)
		meet(tracker, process);
	if (probe->library == NT_LIBRARY_CUDART)
		process->runtime = true;
	nt_tracker_detail_call(tracker, process, probe, call);
	if (call->h.flags & NT_CALL_MEMORY) {
		nt_tracker_memory(tracker, process, probe, call);
		return;
	}
	switch (probe->role) {
	case NT_ROLE_START:
		process->starts++;
		on_comm(tracker, process, probe, call);
		break;
	case NT_ROLE_COLLECTIVE:
		on_comm(tracker, process, probe, call);
		break;
	case NT_ROLE_WAIT:
		on_wait(process, call);
		break;
	case NT_ROLE_GROUP_START:
	case NT_ROLE_GROUP_END:
		on_group(tracker, process, probe, call);
		break;
	case NT_ROLE_INIT:
		nt_registry_init(registry, process, probe, call, id);
		break;
	case NT_ROLE_INIT_ALL:
		nt_registry_init_all(registry, process, probe, call);
		break;
	case NT_ROLE_SPLIT:
	case NT_ROLE_SHRINK:
	case NT_ROLE_GROW:
		nt_registry_child(registry, process, probe, call);
		break;
	case NT_ROLE_DESTROY:
		on_destroy(process, probe, call);
		break;
	case NT_ROLE_LIBRARY_INIT:
	case NT_ROLE_LIBRARY_END:
		on_library_end(process, probe);
		break;
	case NT_ROLE_COMM_RANK:
	case NT_ROLE_COMM_SIZE:
		on_question(registry, process, probe, call);
		break;
	case NT_ROLE_SYNC_STREAM:
	case NT_ROLE_SYNC_EVENT:
	case NT_ROLE_SYNC_DEVICE:
		on_sync(process, probe, call);
		break;
	case NT_ROLE_EVENT_RECORD:
	case NT_ROLE_STREAM_WAIT:
		on_order(process, probe, call);
		break;
	case NT_ROLE_SET_DEVICE:
		nt_tracker_set_device(process, call);
		break;
	case NT_ROLE_GRAPH_LAUNCH:
		on_graph_launch(tracker, process, probe, call);
		break;
	case NT_ROLE_CAPTURE_BEGIN:
	case NT_ROLE_CAPTURE_END:
	case NT_ROLE_GRAPH_COPY:
	case NT_ROLE_GRAPH_ADD:
	case NT_ROLE_GRAPH_DESTROY:
		nt_tracker_graph(tracker, process, probe, call);
		break;
	default: /* others are counted in the kernel */
		break;
	}
}

/* ---- calls in progress ---------------------------------------------------------------------- */

void nt_tracker_look(struct nt_tracker *tracker)
{
	for (struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		for (uint32_t i = 0; i < p->ranks; i++)
			p->rank[i]->inside.in_call = false;
	}
}

/* Prefers communication calls to synchronising ones, and of two the older. */
static bool adds_information(const struct nt_rank *rank, bool synchronising, uint64_t since_ns)
{
	if (!rank->inside.in_call)
		return true;
	if (rank->inside.synchronising != synchronising)
		return rank->inside.synchronising;
	return since_ns < rank->inside.since_ns;
}

void nt_tracker_inside(struct nt_tracker *tracker, uint32_t pid, uint32_t tid, uint16_t row,
		       const struct nt_inside *inside, uint64_t now_ns)
{
	struct nt_process *process;
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call call = {
		.h = {.row = row, .pid = pid, .tid = tid, .entry_ns = inside->entry_ns},
		.deref = inside->deref,
	};
	struct nt_communicator_call made;
	struct nt_communicator *comm = NULL;
	struct nt_rank *rank;
	bool synchronising, is_known;

	process = nt_tracker_caller(tracker, pid, now_ns, &is_known);
	if (!process || !probe)
		return;
	if (tid == pid)
		nt_tracker_inside_main(process, now_ns);
	tracker->registry.now_ns = now_ns;
	memcpy(call.word, inside->word, sizeof(call.word));
	synchronising = probe->role == NT_ROLE_SYNC_STREAM || probe->role == NT_ROLE_SYNC_EVENT ||
			probe->role == NT_ROLE_SYNC_DEVICE;
	if (!synchronising && probe->role != NT_ROLE_COLLECTIVE && probe->role != NT_ROLE_WAIT)
		return;
	if (probe->role == NT_ROLE_COLLECTIVE && nt_probe_word(&call, probe->comm))
		comm = nt_registry_find(&tracker->registry, process, probe->library,
					nt_probe_word(&call, probe->comm));
	if (comm)
		rank = rank_of(tracker, process, nt_process_thread(process, tid), comm);
	else
		rank = rank_of_thread(process, nt_process_thread(process, tid));
	if (!rank || !adds_information(rank, synchronising, inside->entry_ns))
		return;
	/* A rank that already hung at attach has made no call yet. */
	if (!rank->window_ns)
		rank->window_ns = now_ns;
	made = call_of(probe, &call);
	rank->inside.in_call = true;
	rank->inside.synchronising = synchronising;
	rank->inside.comm = comm ? comm->id : 0;
	rank->inside.op = made.op;
	rank->inside.since_ns = inside->entry_ns;
	rank->inside.seen_ns = now_ns;
	rank->inside.count = made.count;
	rank->inside.type = made.type;
	rank->inside.number = 0;
	if (comm && made.number)
		rank->inside.number = made.number;
	else if (comm && nt_communicator_is_collective(made.op))
		rank->inside.number = comm->last + 1;
}
