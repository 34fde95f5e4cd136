/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is played: a layout of ranks on nodes, how they work and talk, and what goes wrong when. Plain
 * data. Times are in seconds or nanoseconds as the name says; steps count from 0.
 */
#ifndef NT_SIM_CLUSTER_SCENARIO_H
#define NT_SIM_CLUSTER_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CL_MAX_RANKS = 131072,
	CL_MAX_FAULTS = 8,
	CL_SWITCH_NODES = 4, /* of a switch */
};

/* How a rank's work can be seen from outside. */
enum cl_mode {
	CL_BLOCKING, /* MPI: every call blocks, so that own work is what lies outside of calls (T2) */
	CL_LOCAL_SYNC, /* NCCL, with a synchronisation before the gradients are reduced (T2 with DP) */
	CL_ASYNC, /* NCCL, and the host waits for everything once, at the end of the step (T1) */
	CL_PLUGIN, /* NCCL, a host that runs ahead, and its devices' times by a plugin (T3) */
	CL_MODE_END,
};

/* Names as on the command line: "blocking", "local-sync" … */
const char *cl_mode_name(enum cl_mode mode);
/* 0, or -EINVAL: no such mode. */
int cl_mode_parse(const char *text, enum cl_mode *ret_mode);

enum cl_fault_kind {
	CL_COMPUTE_RANK, /* target rank: kernels take `factor` times as long */
	CL_COMPUTE_NODE, /* target node: the same on all its ranks */
	CL_COMPUTE_HALF, /* the same on every second member of each data-parallel group */
	CL_BATCH, /* the same on all ranks: the user's doing */
	CL_LATE_STAGE, /* target stage: the same on that stage, in all replicas */
	CL_UNEVEN, /* a different replica each step has a sequence `factor` times as long */
	CL_LOADER, /* target rank: the step begins `factor` seconds late, which go to reading */
	CL_CONTENTION, /* target node: launching threads wait for a processor, `factor` s a step */
	CL_GC_RANK, /* target rank: every other step the thread collects garbage for `factor` s */
	CL_GC_ALL, /* on all ranks, each in its own time */
	CL_CHECKPOINT_RANK, /* target rank: writes for `factor` s, once, at step `from` */
	CL_CHECKPOINT_ALL, /* all do */
	CL_NIC, /* target node: what leaves or enters it takes `factor` times as long */
	CL_PATH, /* target and peer node: what goes between the two does */
	CL_EXIT, /* target rank: its process ends at step `from` */
	CL_LAGGARD, /* target rank: never enters the first collective of step `from` */
	CL_MISMATCH, /* target rank: reduces another number of elements, at step `from` */
	CL_NETWORK_HANG, /* the first large collective of step `from` never ends on any rank */
	CL_AGENT_DIES, /* target node: nothing more is heard of its agent from step `from` on */
	CL_AGENT_RESTARTS, /* target node: its agent ends and another begins at step `from` */
	CL_COUNTERS, /* target node: its ports count `factor` errors a second, which slow nobody */
	CL_SWITCH, /* target node: what leaves or enters it, or one of the same switch, is slow */
	CL_FAULT_END,
};

/* Names as on the command line: "compute", "compute-node" … */
const char *cl_fault_name(enum cl_fault_kind kind);

struct cl_fault {
	enum cl_fault_kind kind;
	uint32_t target, peer;
	double factor;
	uint32_t from, until; /* steps; until is the first without it, UINT32_MAX: to the end */
	uint32_t ramp; /* steps in which it grows to its full size */
	uint32_t on, of; /* on for so many of every so many steps; of 0: always */
	bool random; /* which of them is drawn, step by step */
};

/* How messages travel from the agents. Chances in [0, 1]. */
struct cl_weather {
	double lost, doubled, late;
	double late_s; /* the longest */
	double intervals_lost; /* of what plugins tell, in runs of some */
	double clock_offset_s, clock_drift; /* the largest of any node, drift as a ratio */
};

/* What real jobs do beside computing and reducing. All zero: none of it. */
struct cl_structure {
	/* Sharded, and hosts do not block: the next layer's weights are gathered beside this one's kernels. */
	bool prefetch;
	uint32_t
		ahead; /* asynchronous hosts wait for their device once in so many steps; 0: in each */
	uint32_t
		save_every; /* after so many steps all write for about save_s, and meet in a barrier */
	double save_s;
	double shares; /* work of a replica's step, as long as its sequences: deviation of the logarithm */
	uint32_t warmup; /* steps at the start, which take up to three times as long, by chance */
	uint32_t
		phase; /* from this step on the work of all is phase_factor times as long; 0: never */
	double phase_factor;
	/* Ranks by nature: deviation of the logarithm; one in 20 is up to 8 % slower beyond that. */
	double fleet;
};

struct cl_scenario {
	uint64_t seed;
	uint32_t tp, dp, pp, ep; /* ranks = tp * dp * pp; ep divides dp, 1: no experts */
	bool sharded; /* FSDP: weights are gathered and gradients scattered, layer by layer */
	/* With blocking hosts: a send lasts until it is received, and gradients go by send-receive. */
	bool rendezvous, ring;
	bool counters; /* ports count what has to be sent again */
	bool aligned_end; /* a small all-reduce of all ranks ends the step */
	uint32_t node_ranks;
	uint32_t stride; /* places from a rank to the next: 1: numbered node by node */
	/*
	 * With CL_PLUGIN: devices are measured as the agent schedules it (agent/gpu/gpu_schedule.h). A
	 * job is new for 25 s in place of 90 s, as runs are short. Else devices are measured always.
	 */
	bool measures;
	/*
	 * With CL_PLUGIN or CL_ASYNC. Calls use the links of their rings, and the network is not always
	 * alike (fabric.h). With `proxies` NCCL's proxies report how long it takes for what they send.
	 */
	bool fabric, proxies;
	double bare; /* share of nodes that no plugin tells of, with CL_PLUGIN */
	/* Agents come to a running job, each within so many steps; 0: they are there before it. */
	uint32_t late_agents;
	double start_s; /* in which one process after the other begins */
	/*
	 * From step `resize` on the job has `dp_after` replicas in place of `dp_before`, and new
	 * communicators: who is too many ends, who is new begins. dp is the larger one; 0: never.
	 */
	uint32_t resize, dp_before, dp_after;
	enum cl_mode mode;
	uint32_t steps, layers, microbatches, buckets;
	uint32_t evaluate_every, evaluation; /* so many steps of it end so many; every 0: never */
	double step_s; /* about how long a healthy step takes */
	double jitter; /* of each kernel, standard deviation */
	double spread; /* of ranks by nature, standard deviation */
	double hiccups; /* share of phases that take three times as long, on any rank */
	double window_s; /* shortest window of the agents */
	struct cl_structure structure;
	struct cl_weather weather;
	struct cl_fault fault[CL_MAX_FAULTS];
	size_t faults;
};

struct cl_scenario cl_scenario_default(void);

uint32_t cl_scenario_ranks(const struct cl_scenario *scenario);
uint32_t cl_scenario_nodes(const struct cl_scenario *scenario);
uint32_t cl_scenario_node_of(const struct cl_scenario *scenario, uint32_t rank);
/* How many ranks a node has, and which they are. */
uint32_t cl_scenario_ranks_on(const struct cl_scenario *scenario, uint32_t node);
uint32_t cl_scenario_rank_on(const struct cl_scenario *scenario, uint32_t node, uint32_t place);
/* NCCL's proxies may report what they send: beside times of kernels, or as NCCL 2.31 without. */
bool cl_scenario_can_have_proxies(const struct cl_scenario *scenario);
/* No plugin tells of this node's devices: of its ranks no more shows than what their hosts do. */
bool cl_scenario_is_bare(const struct cl_scenario *scenario, uint32_t node);
/* The step at which the node's agent comes; 0: it is there before the job. */
uint32_t cl_scenario_agent_step(const struct cl_scenario *scenario, uint32_t node);
bool cl_scenario_is_evaluation(const struct cl_scenario *scenario, uint32_t step);

/* What a step is made of. */
enum cl_step_kind {
	CL_STEP_TRAINING,
	CL_STEP_EVALUATION,
	CL_STEP_SAVED, /* training, behind a checkpoint and its barrier */
	CL_STEP_AHEAD, /* training, and the host does not wait for its device at the end */
	CL_STEP_END,
};

enum cl_step_kind cl_scenario_step_kind(const struct cl_scenario *scenario, uint32_t step);

/* The scenario as it is before its size changes, or afterwards. */
struct cl_scenario cl_scenario_sized(const struct cl_scenario *scenario, bool afterwards);

/*
 * Reads "NAME TARGET[,PEER] FACTOR from STEP [until STEP] [ramp STEPS] [on N of M]". 0, or -EINVAL
 * with what is wrong in `why`, a constant.
 */
int cl_fault_parse(const char *text, struct cl_fault *ret_fault, const char **why);

/* NULL, or what is wrong with it: a constant. */
const char *cl_scenario_check(const struct cl_scenario *scenario);

/* How much of the fault there is in the step, 0 to 1. */
double cl_fault_strength(const struct cl_fault *fault, uint32_t step);

#endif
