/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tracker reads of a process: its environment, its samples, its communicators in memory. */
#include "tests/sim/cluster/node/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/steps/comm_layout.h"
#include "common/base/hash.h"

enum {
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
};

#define NCCL_MAGIC 0x0280028002800280ULL

static struct cl_process *process_of(struct cl_node *node, uint32_t pid)
{
	return pid - FIRST_PID < node->processes ? &node->process[pid - FIRST_PID] : NULL;
}

static int describe(void *data, uint32_t pid, struct nt_process_facts *ret_facts)
{
	struct cl_node *node = data;
	const struct cl_process *process = process_of(node, pid);
	uint32_t ranks;
	char text[TEXT_BYTES];
	int len;

	if (!process)
		return -ESRCH;
	ranks = cl_scenario_ranks(&node->sized[process->generation]);
	if (cl_node_is_mpi(node))
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

static int sample(void *data, uint32_t pid, uint32_t tid, const char *gpu, struct nt_host **host,
		  struct nt_host_sample *ret_sample)
{
	struct cl_node *node = data;
	const struct cl_process *process = process_of(node, pid);
	const struct cl_call *call = process ? cl_node_front(node, process) : NULL;
	struct cl_host now;

	(void)tid;
	(void)gpu;
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
	const struct cl_process *process = process_of(data, pid);

	*ret_counters = (struct nt_process_counters){0};
	if (process) {
		ret_counters->calls[NT_COUNTER_LAUNCH] = process->launches;
		ret_counters->bytes[NT_COUNTER_GC] = process->host.gc_ns;
	}
	return process;
}

void cl_make_id(const struct cl_node *node, const struct cl_place *place,
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
static int read_nccl(const struct cl_node *node, const struct cl_place *where, uint32_t rank,
		     uint64_t at, uint8_t *buf, size_t size)
{
	struct cl_group group = cl_node_group(node, where, rank);
	uint32_t place = cl_group_place(&group, rank);
	uint8_t id[NT_ID_BYTES];
	uint64_t word = NCCL_MAGIC;

	memset(buf, 0, size);
	if (at == 0 && size >= sizeof(word)) {
		memcpy(buf, &word, sizeof(word));
	} else if (at == NCCL_HASH && size >= 16) {
		cl_make_id(node, where, &group, id);
		word = nt_comm_layout_nccl_hash(id, NT_ID_BYTES);
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

static int read_mpi(const struct cl_node *node, const struct cl_place *where, uint32_t rank,
		    uint64_t at, uint8_t *buf, size_t size)
{
	struct cl_group group = cl_node_group(node, where, rank);
	uint8_t bytes[2 * MPI_BYTES] = {0};
	uint64_t behind = cl_handle(where) + MPI_BYTES;

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
	const struct cl_process *process = process_of(node, pid);
	const uint64_t index = (address - HANDLES) / HANDLE;
	const struct cl_place place = {(enum cl_group_kind)(index % CL_GROUP_END),
				       (uint8_t)(index / CL_GROUP_END)};

	if (!process || address < HANDLES || index >= 2 * CL_GROUP_END)
		return -EFAULT;
	address -= cl_handle(&place);
	return cl_node_is_mpi(node) ? read_mpi(node, &place, process->rank, address, buf, size)
				    : read_nccl(node, &place, process->rank, address, buf, size);
}

struct nt_tracker_source cl_source(struct cl_node *node)
{
	return (struct nt_tracker_source){
		.memory = {.read = read_memory, .data = node},
		.describe = describe,
		.sample = sample,
		.counters = counters,
		.data = node,
	};
}
