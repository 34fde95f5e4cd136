/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A node in full, and what its files share. Not for others. */
#ifndef NT_SIM_CLUSTER_NODE_STATE_H
#define NT_SIM_CLUSTER_NODE_STATE_H

#include "agent/gpu/gpu_schedule.h"
#include "agent/publish/publisher.h"
#include "agent/tracker/tracker.h"
#include "common/system/clock.h"
#include "tests/sim/cluster/node/node.h"

#define BOOT_NS (100 * NT_SECOND) /* how long the node has run when the job begins */
#define HANDLES 0x7f0000000000ULL
#define HANDLE  0x1000000ULL /* from one communicator to the next */

enum {
	FIRST_PID = 1000,
	MPI_FLOAT = 0x7000, /* where MPI has its type, and what is read there: */
	MPI_FLOAT_BYTES = 4,
	KERNELS = 0x51, /* streams */
	GRADIENTS = 0x52,
	CL_NODE_PEERS = 64, /* of a process whose sends are measured */
};

/* A communicator of a process: which group of its rank it is, in which generation. */
struct cl_place {
	enum cl_group_kind kind;
	uint8_t generation;
};

/* What was sent to a rank since the last report. */
struct cl_peer {
	struct cl_place place;
	uint32_t number, bytes;
	uint64_t shortest_ns, busy_ns, sends;
};

struct cl_process {
	uint32_t rank;
	struct cl_host host;
	uint32_t launches;
	uint64_t intervals[2]; /* of kernels and of calls, that its plugin told or lost */
	uint8_t generation; /* of its communicators */
	bool begun;
	bool has_refused; /* the network, one of its sends */
	struct cl_peer peer[CL_NODE_PEERS];
	uint32_t peers;
};

struct cl_node {
	const struct cl_scenario *s;
	struct cl_scenario sized[2]; /* the same, by the generation of its groups */
	struct cl_play *play;
	struct nt_bus *bus;
	struct nt_tracker *tracker; /* NULL: nobody looks */
	struct nt_publisher *publisher;
	struct cl_process *process; /* owned */
	uint32_t index, processes, ticks, lives;
	int64_t offset_ns; /* of its clock */
	double drift;
	uint64_t calls;
	uint64_t counted; /* by its ports, as read last */
	struct nt_gpu_schedule schedule;
	bool is_open; /* its devices are measured */
	int64_t opened_ns;
	int64_t now_ns;
	char name[32];
};

static inline bool cl_node_is_mpi(const struct cl_node *node)
{
	return node->s->mode == CL_BLOCKING;
}

static inline enum nt_library cl_node_library(const struct cl_node *node)
{
	return cl_node_is_mpi(node) ? NT_LIBRARY_MPI : NT_LIBRARY_NCCL;
}

static inline uint64_t cl_handle(const struct cl_place *place)
{
	return HANDLES + ((uint64_t)place->generation * CL_GROUP_END + place->kind) * HANDLE;
}

static inline struct cl_group cl_node_group(const struct cl_node *node,
					    const struct cl_place *place, uint32_t rank)
{
	return cl_group_of(&node->sized[place->generation], place->kind, rank);
}

static inline const struct cl_call *cl_node_front(const struct cl_node *node,
						  const struct cl_process *process)
{
	const struct cl_calls *calls = cl_play_calls(node->play, process->rank);

	return calls->first < calls->count ? &calls->call[calls->first] : NULL;
}

/* What the tracker reads of the processes. The node is borrowed. */
struct nt_tracker_source cl_source(struct cl_node *node);

/* The id of a communicator. */
void cl_make_id(const struct cl_node *node, const struct cl_place *place,
		const struct cl_group *group, uint8_t id[NT_ID_BYTES]);

/* A call as a probe records it. */
struct nt_event_call cl_event(const struct cl_node *node, const struct cl_process *process,
			      const struct cl_call *call);

/* The row of probes by which proxies report. */
uint16_t cl_event_row_of_sends(void);

/* What the process's proxies sent until then. */
void cl_node_take_sent(struct cl_node *node, struct cl_process *process, int64_t now_ns);

/* The process makes its communicators. */
void cl_event_comms(struct cl_node *node, struct cl_process *process, int64_t at_ns);

#endif
