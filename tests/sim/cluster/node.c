/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/layout.h"
#include "agent/publisher.h"
#include "agent/tracker.h"
#include "common/clock.h"
#include "common/hash.h"

#define BOOT_NS (100 * NT_SECOND) /* how long the node has run when the job begins */
#define HANDLES 0x7f0000000000ULL
#define HANDLE  0x1000000ULL /* from one communicator to the next */

enum {
	FIRST_PID = 1000,
	TICKS_A_SECOND = 10,
	TEXT_BYTES = 256,
	/* struct ncclComm of 2.28.9. */
	NCCL_HASH = 0x1044c8,
	NCCL_LOCAL = 0x10458c,
	/* struct ompi_communicator_t of 4.1, and its group behind it. */
	MPI_BYTES = 256,
	MPI_NAME = 160,
	MPI_RANK = 228,
	MPI_GROUP = 248,
	MPI_COUNT = 16,
	FLOAT32 = 7, /* of NCCL */
	MPI_FLOAT = 0x7000, /* where MPI has its type, and what is read there: */
	MPI_FLOAT_BYTES = 4,
	KERNELS = 0x51, /* streams */
	GRADIENTS = 0x52,
	READY = 0xe1, /* an event */
	FLUSH_TICKS = 3, /* from which to which a plugin keeps what it saw */
	LOST_RUN = 8, /* intervals that are lost together */
};

#define NCCL_MAGIC 0x0280028002800280ULL

struct process {
	uint32_t rank;
	struct cl_host host;
	uint32_t launches;
	uint64_t intervals[2]; /* of kernels and of calls, that its plugin told or lost */
	uint8_t generation; /* of its communicators */
	bool begun;
};

struct cl_node {
	const struct cl_scenario *s;
	struct cl_scenario sized[2]; /* the same, by the generation of its groups */
	struct cl_play *play;
	struct nt_bus *bus;
	struct nt_tracker *tracker; /* NULL: nobody looks */
	struct nt_publisher *publisher;
	struct process *process; /* owned */
	uint32_t index, processes, ticks, lives;
	int64_t offset_ns; /* of its clock */
	double drift;
	uint64_t calls;
	uint64_t counted; /* by its ports, as read last */
	int64_t now_ns;
	char name[32];
};

static bool is_mpi(const struct cl_node *node)
{
	return node->s->mode == CL_BLOCKING;
}

static enum nt_library library(const struct cl_node *node)
{
	return is_mpi(node) ? NT_LIBRARY_MPI : NT_LIBRARY_NCCL;
}

/* A communicator of a process: which group of its rank it is, in which generation. */
struct place {
	enum cl_group_kind kind;
	uint8_t generation;
};

static uint64_t handle_of(const struct place *place)
{
	return HANDLES + ((uint64_t)place->generation * CL_GROUP_END + place->kind) * HANDLE;
}

static struct cl_group group_of(const struct cl_node *node, const struct place *place,
				uint32_t rank)
{
	return cl_group_of(&node->sized[place->generation], place->kind, rank);
}

static const struct cl_calls *calls_of(const struct cl_node *node, const struct process *process)
{
	return cl_play_calls(node->play, process->rank);
}

static const struct cl_call *front(const struct cl_node *node, const struct process *process)
{
	const struct cl_calls *calls = calls_of(node, process);

	return calls->first < calls->count ? &calls->call[calls->first] : NULL;
}

static struct process *process_of(struct cl_node *node, uint32_t pid)
{
	return pid - FIRST_PID < node->processes ? &node->process[pid - FIRST_PID] : NULL;
}

/* ---- what the agent asks for ---------------------------------------------------------------- */

static int describe(void *data, uint32_t pid, struct nt_process_facts *ret_facts)
{
	struct cl_node *node = data;
	const struct process *process = process_of(node, pid);
	uint32_t ranks;
	char text[TEXT_BYTES];
	int len;

	if (!process)
		return -ESRCH;
	ranks = cl_scenario_ranks(&node->sized[process->generation]);
	if (is_mpi(node))
		len = snprintf(text, sizeof(text),
			       "OMPI_COMM_WORLD_RANK=%u%cOMPI_COMM_WORLD_SIZE=%u%c"
			       "OMPI_COMM_WORLD_LOCAL_RANK=%u%cPMIX_NAMESPACE=cluster-%llu",
			       process->rank, 0, ranks, 0, pid - FIRST_PID, 0,
			       (unsigned long long)node->s->seed);
	else
		len = snprintf(text, sizeof(text),
			       "RANK=%u%cWORLD_SIZE=%u%cLOCAL_RANK=%u%cMASTER_ADDR=10.0.0.1%c"
			       "MASTER_PORT=29500",
			       process->rank, 0, ranks, 0, pid - FIRST_PID, 0, 0);
	*ret_facts = (struct nt_process_facts){.command = "train", .parent = 1, .has_uid = true};
	nt_environ_parse(text, (size_t)len, &ret_facts->env);
	return 0;
}

static uint64_t part(uint64_t whole, const struct cl_call *call, int64_t now_ns)
{
	double of = (double)(call->ret_ns - call->entry_ns);

	if (now_ns >= call->ret_ns)
		return whole;
	return (uint64_t)((double)whole * (double)(now_ns - call->entry_ns) / of);
}

static int sample(void *data, uint32_t pid, uint32_t tid, struct nt_host **host,
		  struct nt_host_sample *ret_sample)
{
	struct cl_node *node = data;
	const struct process *process = process_of(node, pid);
	const struct cl_call *call = process ? front(node, process) : NULL;
	struct cl_host now;

	(void)tid;
	(void)host;
	if (!process)
		return -ESRCH;
	now = process->host;
	*ret_sample = (struct nt_host_sample){.state = 'R'};
	if (call && call->entry_ns < node->now_ns && call->kind == CL_CALL_HOST) {
		now.on_cpu_ns += part(call->host.on_cpu_ns, call, node->now_ns);
		now.run_queue_ns += part(call->host.run_queue_ns, call, node->now_ns);
		now.read_bytes += part(call->host.read_bytes, call, node->now_ns);
		now.write_bytes += part(call->host.write_bytes, call, node->now_ns);
		if (call->asleep && !call->host.run_queue_ns)
			ret_sample->state = 'D';
	} else if (call && call->entry_ns < node->now_ns) {
		ret_sample->state = 'S';
	}
	ret_sample->nic_retransmits = node->counted;
	ret_sample->on_cpu_ns = now.on_cpu_ns;
	ret_sample->process_cpu_ns = now.on_cpu_ns;
	ret_sample->run_queue_ns = now.run_queue_ns;
	ret_sample->read_bytes = now.read_bytes;
	ret_sample->write_bytes = now.write_bytes;
	return 0;
}

static bool counters(void *data, uint32_t pid, struct nt_process_counters *ret_counters)
{
	const struct process *process = process_of(data, pid);

	*ret_counters = (struct nt_process_counters){0};
	if (process) {
		ret_counters->calls[NT_COUNTER_LAUNCH] = process->launches;
		ret_counters->bytes[NT_COUNTER_GC] = process->host.gc_ns;
	}
	return process;
}

static void make_id(const struct cl_node *node, const struct place *place,
		    const struct cl_group *group, uint8_t id[NT_ID_BYTES])
{
	uint64_t word = nt_hash_mix(node->s->seed << 8 | (uint64_t)place->generation << 4 |
				    (uint64_t)place->kind);

	for (size_t i = 0; i < NT_ID_BYTES; i += 8) {
		word = nt_hash_mix(word + group->first + group->stride * 131071ULL);
		memcpy(id + i, &word, sizeof(word));
	}
}

static void put_u32(uint8_t *bytes, size_t at, uint32_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

/* A communicator as the library has it in memory: `size` bytes from `at` on. */
static int read_nccl(const struct cl_node *node, const struct place *where, uint32_t rank,
		     uint64_t at, uint8_t *buf, size_t size)
{
	struct cl_group group = group_of(node, where, rank);
	uint32_t place = cl_group_place(&group, rank);
	uint8_t id[NT_ID_BYTES];
	uint64_t word = NCCL_MAGIC;

	memset(buf, 0, size);
	if (at == 0 && size >= sizeof(word)) {
		memcpy(buf, &word, sizeof(word));
	} else if (at == NCCL_HASH && size >= 16) {
		make_id(node, where, &group, id);
		word = nt_layout_nccl_hash(id, NT_ID_BYTES);
		memcpy(buf, &word, sizeof(word));
		put_u32(buf, 8, place);
		put_u32(buf, 12, group.size);
	} else if (at == NCCL_LOCAL && size >= 8) {
		uint32_t before = 0, here = 0; /* members on this node */

		for (uint32_t i = 0; i < group.size; i++) {
			if (cl_scenario_node_of(node->s, cl_group_member(&group, i)) != node->index)
				continue;
			before += i < place;
			here++;
		}
		put_u32(buf, 0, before);
		put_u32(buf, 4, here);
	}
	return 0;
}

static int read_mpi(const struct cl_node *node, const struct place *where, uint32_t rank,
		    uint64_t at, uint8_t *buf, size_t size)
{
	struct cl_group group = group_of(node, where, rank);
	uint8_t bytes[2 * MPI_BYTES] = {0};
	uint64_t behind = handle_of(where) + MPI_BYTES;

	if (at > sizeof(bytes) || size > sizeof(bytes) - at)
		return -EFAULT;
	if (where->kind == CL_WORLD)
		memcpy(bytes + MPI_NAME, "MPI_COMM_WORLD", sizeof("MPI_COMM_WORLD"));
	put_u32(bytes, MPI_RANK, cl_group_place(&group, rank));
	memcpy(bytes + MPI_GROUP, &behind, sizeof(behind));
	put_u32(bytes, MPI_BYTES + MPI_COUNT, group.size);
	put_u32(bytes, MPI_BYTES + MPI_COUNT + 4, cl_group_place(&group, rank));
	memcpy(buf, bytes + at, size);
	return 0;
}

static int read_memory(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	struct cl_node *node = data;
	const struct process *process = process_of(node, pid);
	const uint64_t index = (address - HANDLES) / HANDLE;
	const struct place place = {(enum cl_group_kind)(index % CL_GROUP_END),
				    (uint8_t)(index / CL_GROUP_END)};

	if (!process || address < HANDLES || index >= 2 * CL_GROUP_END)
		return -EFAULT;
	address -= handle_of(&place);
	return is_mpi(node) ? read_mpi(node, &place, process->rank, address, buf, size)
			    : read_nccl(node, &place, process->rank, address, buf, size);
}

/* ---- what the agent sends ------------------------------------------------------------------- */

static void on_window(void *data, const char *key, const struct nt_window *window,
		      uint64_t watermark_ns)
{
	struct cl_node *node = data;

	nt_publisher_window(node->publisher, key, window, watermark_ns);
}

static void on_heartbeat(void *data, const char *key, uint32_t ranks, uint64_t watermark_ns)
{
	struct cl_node *node = data;

	nt_publisher_heartbeat(node->publisher, key, ranks, watermark_ns);
}

/* ---- events --------------------------------------------------------------------------------- */

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
	uint16_t *known = &row[is_mpi(node)][op];

	for (size_t i = 0; !*known && i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].op == op)
			*known = 1 +
				 row_of(is_mpi(node) ? names[i].mpi : names[i].nccl, library(node));
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

/* Halves of a word are numbered from 16 on. */
static void set_word(struct nt_event_call *event, int8_t word, uint64_t value)
{
	if (word != NT_NO_WORD)
		event->word[word % NT_HIGH_WORD] = value;
}

static struct nt_event_call event_of(const struct cl_node *node, const struct process *process,
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
static void set_peers(const struct cl_node *node, const struct process *process,
		      const struct cl_call *call, struct nt_event_call *event)
{
	const struct nt_probe *probe = nt_probe_row(event->h.row);
	const struct place where = {(enum cl_group_kind)call->group, call->generation};
	const struct cl_group group = group_of(node, &where, process->rank);
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
					     const struct process *process,
					     const struct cl_call *call)
{
	uint16_t row = row_of_op(node, (enum nt_op)call->op);
	const struct nt_probe *probe = nt_probe_row(row);
	const struct place place = {(enum cl_group_kind)call->group, call->generation};
	struct nt_event_call event = event_of(node, process, row, call->entry_ns, call->ret_ns);

	event.launches = call->launches;
	set_word(&event, probe->count, call->count);
	set_word(&event, probe->type, is_mpi(node) ? MPI_FLOAT + (1ULL << 40) : FLOAT32);
	set_word(&event, probe->comm, handle_of(&place));
	set_word(&event, probe->stream, call->overlaps ? GRADIENTS : KERNELS);
	event.deref = MPI_FLOAT_BYTES;
	set_peers(node, process, call, &event);
	return event;
}

static struct nt_event_call device_event(const struct cl_node *node, const struct process *process,
					 const struct cl_call *call)
{
	uint16_t row = row_of_kind((enum cl_call_kind)call->kind);
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call event = event_of(node, process, row, call->entry_ns, call->ret_ns);

	event.launches = call->launches;
	set_word(&event, probe->event, READY);
	set_word(&event, probe->stream, call->kind == CL_CALL_WAIT ? GRADIENTS : KERNELS);
	return event;
}

/* ---- communicators -------------------------------------------------------------------------- */

static void make_nccl(struct cl_node *node, struct process *process, enum cl_group_kind kind,
		      int64_t at_ns)
{
	const struct place place = {kind, process->generation};
	struct cl_group group = group_of(node, &place, process->rank);
	uint16_t row = row_of("ncclCommInitRank", NT_LIBRARY_NCCL);
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call event = event_of(node, process, row, at_ns, at_ns);
	uint8_t id[NT_ID_BYTES];

	make_id(node, &place, &group, id);
	event.h.type = NT_EVENT_INIT;
	set_word(&event, probe->nranks, group.size);
	set_word(&event, probe->rank, cl_group_place(&group, process->rank));
	event.deref = handle_of(&place);
	if (group.size > 1)
		nt_tracker_event(node->tracker, &event, id);
}

static void make_mpi(struct cl_node *node, struct process *process, enum cl_group_kind kind,
		     int64_t at_ns)
{
	const struct place place = {kind, process->generation}, world = {CL_WORLD, 0};
	struct cl_group group = group_of(node, &place, process->rank);
	uint16_t row = row_of(kind == CL_WORLD ? "MPI_Init" : "MPI_Comm_split", NT_LIBRARY_MPI);
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_event_call event = event_of(node, process, row, at_ns, at_ns);

	if (kind != CL_WORLD) {
		set_word(&event, probe->comm, handle_of(&world));
		set_word(&event, probe->color, group.first);
		event.deref = handle_of(&place);
	}
	nt_tracker_event(node->tracker, &event, NULL);
}

static void make_comms(struct cl_node *node, struct process *process, int64_t at_ns)
{
	for (int kind = 0; kind < CL_GROUP_END; kind++) {
		if (is_mpi(node))
			make_mpi(node, process, (enum cl_group_kind)kind, at_ns);
		else
			make_nccl(node, process, (enum cl_group_kind)kind, at_ns);
	}
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void give(struct cl_node *node, struct process *process, const struct cl_call *call)
{
	uint32_t pid = FIRST_PID + (uint32_t)(process - node->process);
	struct nt_event_call event;

	if (call->kind == CL_CALL_HOST) {
		process->host.on_cpu_ns += call->host.on_cpu_ns;
		process->host.run_queue_ns += call->host.run_queue_ns;
		process->host.gc_ns += call->host.gc_ns;
		process->host.read_bytes += call->host.read_bytes;
		process->host.write_bytes += call->host.write_bytes;
		return;
	}
	node->calls++;
	process->launches = call->launches;
	if (!node->tracker)
		return;
	if (call->kind == CL_CALL_EXIT) {
		nt_tracker_exited(node->tracker, pid, pid, BOOT_NS + (uint64_t)call->entry_ns);
		return;
	}
	if (call->kind == CL_CALL_COLLECTIVE && call->generation != process->generation) {
		process->generation = call->generation;
		make_comms(node, process, call->entry_ns);
	}
	event = call->kind == CL_CALL_COLLECTIVE ? collective_event(node, process, call)
						 : device_event(node, process, call);
	nt_tracker_event(node->tracker, &event, NULL);
}

static void give_until(struct cl_node *node, struct process *process, int64_t now_ns)
{
	struct cl_calls *calls = cl_play_calls(node->play, process->rank);

	while (calls->first < calls->count && calls->call[calls->first].ret_ns <= now_ns) {
		node->now_ns = calls->call[calls->first].ret_ns;
		give(node, process, &calls->call[calls->first++]);
	}
	node->now_ns = now_ns;
	if (calls->first == calls->count)
		calls->first = calls->count = 0;
}

/* ---- what plugins tell ---------------------------------------------------------------------- */

static int by_end(const void *left, const void *right)
{
	const struct cl_busy *a = left, *b = right;

	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static void tell_busy(struct cl_node *node, const struct process *process,
		      const struct cl_busy *busy)
{
	const struct place place = {(enum cl_group_kind)busy->group, busy->generation};
	struct cl_group group = group_of(node, &place, process->rank);
	struct nt_gpu_interval interval = {
		.pid = FIRST_PID + (uint32_t)(process - node->process),
		.kernels = busy->kernels,
		.number = process->intervals[busy->communicates],
		.entry_ns = BOOT_NS + (uint64_t)busy->entry_ns,
		.start_ns = BOOT_NS + (uint64_t)busy->start_ns,
		.end_ns = BOOT_NS + (uint64_t)busy->end_ns,
		.stream = busy->overlaps ? GRADIENTS : KERNELS,
		.communicates = busy->communicates,
	};
	uint8_t id[NT_ID_BYTES];

	if (busy->communicates) {
		make_id(node, &place, &group, id);
		interval.comm = nt_layout_nccl_hash(id, NT_ID_BYTES);
		interval.comm_rank = cl_group_place(&group, process->rank);
		interval.op = (enum nt_op)busy->op;
		interval.nth = busy->nth;
	}
	nt_tracker_gpu(node->tracker, &interval);
}

/* Now and then a plugin tells of what has ended since, or loses a run of it. */
static void flush(struct cl_node *node, struct process *process, int64_t now_ns)
{
	struct cl_busies *busies = cl_play_busies(node->play, process->rank);
	size_t ended = 0, kept = 0;

	if (!busies->count || (node->ticks + process->rank) % FLUSH_TICKS)
		return;
	qsort(busies->busy, busies->count, sizeof(*busies->busy), by_end);
	while (ended < busies->count && busies->busy[ended].end_ns <= now_ns)
		ended++;
	for (size_t i = 0; i < ended; i++) {
		bool communicates = busies->busy[i].communicates;
		uint64_t number = ++process->intervals[communicates] / LOST_RUN;
		uint64_t run = nt_hash_u64(nt_hash_mix(node->s->seed + process->rank),
					   number << 1 | communicates);

		if (node->tracker && !cl_scenario_is_bare(node->s, node->index) &&
		    (double)(nt_hash_mix(run) >> 11) * 0x1p-53 >= node->s->weather.intervals_lost)
			tell_busy(node, process, &busies->busy[i]);
	}
	for (size_t i = ended; i < busies->count; i++)
		busies->busy[kept++] = busies->busy[i];
	busies->count = kept;
}

/* Who is inside a call that has not returned. */
static void look(struct cl_node *node, int64_t now_ns)
{
	nt_tracker_look(node->tracker);
	for (uint32_t i = 0; i < node->processes; i++) {
		struct process *process = &node->process[i];
		const struct cl_call *call = front(node, process);
		struct nt_event_call event;
		struct nt_inside inside = {0};

		if (!call || call->entry_ns > now_ns || call->kind == CL_CALL_HOST ||
		    call->kind == CL_CALL_EXIT)
			continue;
		event = call->kind == CL_CALL_COLLECTIVE ? collective_event(node, process, call)
							 : device_event(node, process, call);
		inside.entry_ns = event.h.entry_ns;
		inside.deref = event.deref;
		memcpy(inside.word, event.word, sizeof(inside.word));
		nt_tracker_inside(node->tracker, event.h.pid, event.h.tid, event.h.row, &inside,
				  BOOT_NS + (uint64_t)now_ns);
	}
}

/* ---- the beginning of a process ------------------------------------------------------------- */

static void map(struct cl_node *node, uint32_t pid, const char *name, bool late)
{
	const struct nt_mapped_file file = {
		.pid = pid,
		.start_boot_ns = pid,
		.dev = 1,
		.ino = 1 + (ino_t)nt_probe_library_of(name),
		.path = name,
		.name = name,
		.library = nt_probe_library_of(name),
		.late = late,
	};

	nt_tracker_mapped(node->tracker, &file);
}

static void begin(struct cl_node *node, struct process *process, bool late)
{
	const uint32_t pid = FIRST_PID + (uint32_t)(process - node->process);

	if (is_mpi(node)) {
		map(node, pid, "libmpi.so.40", late);
	} else {
		map(node, pid, "libcudart.so.13", late);
		map(node, pid, "libnccl.so.2", late);
	}
	if (!late)
		make_comms(node, process, cl_play_start_ns(node->play, process->rank));
}

/* Those whose time has come. */
static void begin_some(struct cl_node *node, int64_t now_ns)
{
	for (uint32_t i = 0; i < node->processes; i++) {
		struct process *process = &node->process[i];

		if (process->begun || cl_play_start_ns(node->play, process->rank) > now_ns)
			continue;
		process->begun = true;
		if (node->tracker)
			begin(node, process, false);
	}
}

/* ---- life ----------------------------------------------------------------------------------- */

static int start_agent(struct cl_node *node)
{
	uint64_t life = nt_hash_u64(node->s->seed, (uint64_t)node->index << 8 | ++node->lives);
	const struct nt_tracker_options options = {
		.node = node->name,
		.boot = nt_hash_mix(node->s->seed + node->index),
		.seed = life,
		.window_min_ns = (uint64_t)(node->s->window_s * 1e9),
		.source = {.memory = {.read = read_memory, .data = node},
			   .describe = describe,
			   .sample = sample,
			   .counters = counters,
			   .data = node},
		.sink = {.window = on_window, .heartbeat = on_heartbeat, .data = node},
	};
	int r = nt_tracker_new(&options, &node->tracker);

	if (r < 0)
		return r;
	/* It knows the time, by which it judges what plugins tell. */
	nt_tracker_tick(node->tracker, BOOT_NS + (uint64_t)node->now_ns);
	return nt_publisher_new(node->bus, node->name, life, &node->publisher);
}

int cl_node_new(const struct cl_scenario *scenario, struct cl_play *play, uint32_t index,
		struct nt_bus *bus, struct cl_node **ret_node)
{
	struct cl_node *node = calloc(1, sizeof(*node));
	uint64_t chance = nt_hash_u64(nt_hash_mix(scenario->seed), index);
	int r = 0;

	if (!node)
		return -ENOMEM;
	node->s = scenario;
	for (int i = 0; i < 2; i++)
		node->sized[i] = cl_scenario_sized(scenario, i);
	node->play = play;
	node->bus = bus;
	node->index = index;
	node->processes = cl_scenario_ranks_on(scenario, index);
	node->offset_ns = (int64_t)(((double)(chance & 0xffff) / 0x8000 - 1) *
				    scenario->weather.clock_offset_s * 1e9);
	node->drift =
		((double)(chance >> 16 & 0xffff) / 0x8000 - 1) * scenario->weather.clock_drift;
	(void)snprintf(node->name, sizeof(node->name), "node-%05u", index);
	node->process = calloc(node->processes, sizeof(*node->process));
	if (!node->process)
		r = -ENOMEM;
	else if (!cl_scenario_agent_step(scenario, index))
		r = start_agent(node);
	if (r < 0) {
		cl_node_free(node);
		return r;
	}
	for (uint32_t i = 0; i < node->processes; i++) {
		node->process[i].rank = cl_scenario_rank_on(scenario, index, i);
		node->process[i].generation =
			node->process[i].rank >= cl_scenario_ranks(&node->sized[0]);
	}
	*ret_node = node;
	return 0;
}

void cl_node_free(struct cl_node *node)
{
	if (!node)
		return;
	cl_node_kill(node);
	free(node->process);
	free(node);
}

void cl_node_kill(struct cl_node *node)
{
	nt_tracker_free(node->tracker);
	nt_publisher_free(node->publisher);
	node->tracker = NULL;
	node->publisher = NULL;
}

int cl_node_revive(struct cl_node *node, int64_t now_ns)
{
	int r;

	node->now_ns = now_ns;
	r = start_agent(node);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < node->processes; i++) {
		if (node->process[i].begun)
			begin(node, &node->process[i], true);
	}
	return 0;
}

int cl_node_tick(struct cl_node *node, int64_t now_ns)
{
	uint64_t boot_ns = BOOT_NS + (uint64_t)now_ns;
	int64_t real_ns = (int64_t)CL_EPOCH_NS + node->offset_ns + now_ns +
			  (int64_t)((double)now_ns * node->drift);

	node->now_ns = now_ns;
	begin_some(node, now_ns);
	if (node->tracker && node->ticks++ % TICKS_A_SECOND == 0) {
		look(node, now_ns);
		node->counted = cl_play_counted(node->play, node->index);
	}
	if (node->publisher)
		nt_publisher_set_time(node->publisher, boot_ns, (uint64_t)real_ns);
	for (uint32_t i = 0; i < node->processes; i++)
		give_until(node, &node->process[i], now_ns);
	for (uint32_t i = 0; i < node->processes; i++)
		flush(node, &node->process[i], now_ns);
	if (!node->tracker)
		return 0;
	nt_tracker_tick(node->tracker, boot_ns);
	return nt_publisher_flush(node->publisher);
}

uint64_t cl_node_calls(const struct cl_node *node)
{
	return node->calls;
}
