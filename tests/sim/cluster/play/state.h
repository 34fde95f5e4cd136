/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A play in full, and what its files share. Not for others. */
#ifndef NT_SIM_CLUSTER_PLAY_STATE_H
#define NT_SIM_CLUSTER_PLAY_STATE_H

#include "tests/sim/cluster/fabric.h"
#include "tests/sim/cluster/play/play.h"
#include "tests/sim/cluster/program.h"
#include "tests/sim/cluster/ring.h"

enum {
	ENQUEUE_NS = 8000, /* the host's part of an asynchronous call */
};

struct cl_group_state {
	uint32_t arrived;
	int64_t last_ns;
};

struct cl_rank {
	size_t at; /* the act that comes next */
	int64_t host_ns, compute_ns, comm_ns; /* until when each is busy */
	int64_t gathered_ns; /* when the last weights are there that were gathered ahead */
	int64_t call_ns, arrive_ns; /* of the call that it is in */
	int64_t start_ns; /* when its process begins */
	double nature; /* how long its kernels take, against the average */
	struct cl_calls calls;
	struct cl_busies busies;
	struct cl_sents sent;
	uint32_t nth[CL_GROUP_END][NT_OP_END]; /* calls so far */
	struct cl_host host; /* not yet told */
	uint32_t launches, sequences;
	bool stalled, gone, stuck; /* waits in play; has ended; will never arrive anywhere */
	bool away; /* belongs to the job at another time, when that has another size */
	uint8_t awaits; /* 1 + direction of the message that it waits for; 0: none */
};

/* What is on its way to a rank, in one direction. */
struct cl_inbox {
	int64_t *at_ns; /* owned, one for each micro-batch */
	uint32_t sent, taken;
};

struct cl_play {
	const struct cl_scenario *s; /* as it is now: one of these */
	struct cl_scenario sized[2];
	struct cl_program *program[CL_STEP_END]; /* owned, by stage */
	struct cl_rank *rank; /* owned */
	struct cl_group_state *group[CL_GROUP_END]; /* owned, by first rank */
	struct cl_inbox *inbox[2]; /* owned, by rank; backward and forward */
	uint32_t *runnable, runnables; /* owned */
	double *counted; /* by the ports of each node, owned */
	struct cl_ring *ring[CL_GROUP_END]; /* owned, by first rank; with a fabric */
	struct cl_strain *strain; /* of each node in this step, owned */
	uint64_t sending; /* random, of what proxies sent alone */
	uint32_t ranks, step;
	uint64_t random;
	bool hung; /* the step did not come to its end, and no other will */
	bool failed; /* no memory */
	int64_t hung_ns;
	int64_t stands_ns; /* start of a wait that never ends */
};

/* The acts of the rank in this step. */
const struct cl_program *cl_play_program(const struct cl_play *play, uint32_t rank);

/* What the thread did since the last call, from start_ns on. */
void cl_record_host(struct cl_play *play, struct cl_rank *rank, int64_t start_ns, bool asleep);

/* A call of the host. act may be NULL. */
void cl_record(struct cl_play *play, struct cl_rank *rank, enum cl_call_kind kind,
	       const struct cl_act *act, int64_t entry_ns, int64_t ret_ns);

/* A call as the device has it, for plugins. */
void cl_record_busy(struct cl_play *play, struct cl_rank *rank, const struct cl_act *act,
		    int64_t entry_ns, int64_t start_ns, int64_t end_ns);

/* False: the rank goes no further. */
bool cl_act(struct cl_play *play, struct cl_rank *rank, uint32_t number, const struct cl_act *act);

/* The step did not come to its end: those who wait do so for ever. */
void cl_hang_all(struct cl_play *play);

/* Does this large collective hold its members for good? */
bool cl_hang_holds(const struct cl_play *play, uint32_t number, const struct cl_act *act);

#endif
