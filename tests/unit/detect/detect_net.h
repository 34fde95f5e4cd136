/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs with transfers between nodes, for the tests of links. */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_NET_H
#define NT_TESTS_UNIT_DETECT_DETECT_NET_H

#include "tests/unit/detect/detect_frames.h"

enum {
	DATA = 0xda7a,
	PIPE = 0x9191,
	NODE_RANKS = 4,
	MAX_NODES = 8,
	MAX_RANKS = MAX_NODES * NODE_RANKS,
	MEGABYTE = 1 << 20,
};

/*
 * A job with one rank on each node, which sends to the nodes given by `linked`. factor[from][to]
 * scales the duration of a transfer.
 */
struct net {
	struct sim sim;
	struct nt_detect *detect;
	uint32_t nodes;
	bool linked[MAX_NODES][MAX_NODES];
	bool one_sided; /* the receivers' calls are not observed */
	bool in_network; /* transfers are measured in the network alone */
	double factor[MAX_NODES][MAX_NODES];
	double transfer_ns, noise;
	double step_more_ns; /* the effect on the job's step */
	uint64_t retransmits[MAX_NODES]; /* per frame */
	uint32_t slices; /* a window is so many times its observed part; 0: fully observed */
	double starved; /* fraction of the window in which threads wait for a processor */
	struct nt_frame_transfer transfer[MAX_RANKS][2 * MAX_NODES];
};

static inline void net_init(struct net *net, uint32_t nodes, uint64_t seed)
{
	*net = (struct net){.nodes = nodes, .transfer_ns = 2.0 * SIM_MS, .noise = 0.05};
	sim_init(&net->sim, nodes * NODE_RANKS, seed);
	net->sim.jitter = 0.005;
	net->sim.blocking = true;
	for (uint32_t i = 0; i < net->sim.ranks; i++)
		net->sim.rank[i].node = i / NODE_RANKS;
	sim_comm_add(&net->sim, PIPE, NT_FRAME_POINT_TO_POINT, 8, MEGABYTE, 0.0)->world = true;
	for (uint32_t i = 0; i < nodes; i++)
		for (uint32_t j = 0; j < nodes; j++) {
			net->linked[i][j] = i != j;
			net->factor[i][j] = 1.0;
		}
	net->detect = sim_detect();
}

static inline void net_free(struct net *net)
{
	nt_detect_free(net->detect);
	sim_free(&net->sim);
}

static inline void link_only(struct net *net, uint32_t from, uint32_t to)
{
	net->linked[from][to] = true;
}

static inline void unlink_all(struct net *net)
{
	memset(net->linked, 0, sizeof(net->linked));
}

static inline struct nt_frame_rank *rank_of(struct net *net, uint32_t node)
{
	return &net->sim.out[node * NODE_RANKS];
}

static inline void add_transfer(struct net *net, uint32_t at, uint32_t peer, bool sends, double ns)
{
	struct nt_frame_rank *rank = rank_of(net, at);

	net->transfer[at * NODE_RANKS][rank->transfers++] = (struct nt_frame_transfer){
		.comm = PIPE,
		.calls = 8ULL * net->sim.steps,
		.bytes = MEGABYTE,
		.min_ns = (uint64_t)ns,
		.peer = peer * NODE_RANKS,
		.sends = sends,
		.in_network = net->in_network,
	};
	rank->transfer = net->transfer[at * NODE_RANKS];
}

/* Either side may have waited; one of them did not. */
static inline void add_edge(struct net *net, uint32_t from, uint32_t to)
{
	const double ns = net->transfer_ns * net->factor[from][to] *
			  (1.0 + net->noise * sim_gauss(&net->sim));
	const double waited = ns + 20.0 * SIM_MS * sim_uniform(&net->sim);
	const bool sender_waits = !net->in_network && sim_uniform(&net->sim) < 0.5;

	add_transfer(net, from, to, true, sender_waits ? waited : ns);
	if (!net->one_sided)
		add_transfer(net, to, from, false, sender_waits ? ns : waited);
}

static inline const struct nt_frame *net_next(struct net *net)
{
	net->sim.extra_ns = (uint64_t)(net->step_more_ns * net->sim.steps);
	/* The added step time is not host work, but waiting in calls. */
	const struct nt_frame *frame = sim_next(&net->sim);

	for (uint32_t i = 0; i < net->sim.ranks; i++) {
		struct nt_frame_rank *rank = &net->sim.out[i];
		const uint64_t more = (uint64_t)net->step_more_ns * rank->steps;

		rank->host_ns -= more;
		rank->own_ns -= more;
		rank->comm_ns += more;
		rank->window_ns *= net->slices ? net->slices : 1;
		rank->run_queue_ns = (uint64_t)(net->starved * (double)rank->window_ns);
		rank->transfers = 0;
		rank->nic_retransmits = net->retransmits[rank->node];
	}
	for (uint32_t i = 0; i < net->nodes; i++)
		for (uint32_t j = 0; j < net->nodes; j++)
			if (net->linked[i][j])
				add_edge(net, i, j);
	return frame;
}

static inline void net_pass(struct net *net, uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(net->detect, net_next(net), &finding, &findings),
				 0);
	}
}

/* A healthy job that has passed its warm-up. */
static inline void net_start(struct net *net, uint32_t nodes, uint64_t seed)
{
	net_init(net, nodes, seed);
	net_pass(net, 40);
}

static inline void slow_down(struct net *net, uint32_t from, uint32_t to, double factor)
{
	net->factor[from][to] = factor;
	/* 8 transfers a step. */
	net->step_more_ns = 8.0 * net->transfer_ns * (factor - 1.0);
}

/* All transfers of the node to the others. */
static inline void slow_row(struct net *net, uint32_t from, double factor)
{
	for (uint32_t i = 0; i < net->nodes; i++)
		if (i != from)
			slow_down(net, from, i, factor);
}

static inline void slow_column(struct net *net, uint32_t to, double factor)
{
	for (uint32_t i = 0; i < net->nodes; i++)
		if (i != to)
			slow_down(net, i, to, factor);
}

/* After so many more frames. */
static inline void assert_names_nobody(struct net *net, uint32_t frames)
{
	net_pass(net, frames);
	assert_null(sim_firing(net->detect, 0));
}

static inline void assert_names_nic(const struct net *net, uint32_t node)
{
	const struct nt_finding *finding = sim_firing(net->detect, 0);

	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_NETWORK);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_NIC);
	assert_int_equal(finding->culprit[0].node, node);
	assert_null(sim_firing(net->detect, 1));
}

static inline void assert_names_path(const struct net *net, uint32_t from, uint32_t to)
{
	const struct nt_finding *finding = sim_firing(net->detect, 0);

	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_NETWORK);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_PATH);
	assert_int_equal(finding->culprit[0].node, from);
	assert_int_equal(finding->culprit[0].peer_node, to);
	assert_null(sim_firing(net->detect, 1));
}

static inline bool has_evidence(const struct net *net, const char *what)
{
	const struct nt_finding *finding = sim_firing(net->detect, 0);

	for (size_t i = 0; i < finding->evidences; i++)
		if (strcmp(finding->evidence[i].what, what) == 0)
			return true;
	return false;
}

#endif
