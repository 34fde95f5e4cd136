/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What calls move between nodes: over which links, for how long, and what proxies see of it. */
#include "tests/sim/cluster/play/network.h"

#include <math.h>
#include <stdlib.h>

#include "tests/sim/cluster/chance.h"
#include "tests/sim/cluster/effect.h"

/* Of a send's time, on average; and of one call in so many all sends take up to some times as long. */
static const double jitter = 0.15, tail = 0.004, longest_tail = 8;

static double link_factor(const struct cl_play *play, uint32_t from, uint32_t to)
{
	const double faults = cl_effect_on_link(play->s, from, to, play->step);

	return faults * fmax(play->strain[from].leaving, play->strain[to].entering);
}

static const struct cl_ring *ring_of(struct cl_play *play, enum cl_group_kind kind,
				     const struct cl_group *group)
{
	struct cl_ring *ring = &play->ring[kind][group->first];

	if (!ring->stops)
		play->failed |= !cl_ring_make(play->s, group, ring);
	return ring;
}

static bool goes_around(const struct cl_act *act)
{
	return act->op != NT_OP_ALL_TO_ALL;
}

double cl_network_factor(struct cl_play *play, const struct cl_act *act,
			 const struct cl_group *group)
{
	const struct cl_ring *ring;
	double factor = 1;

	if (!play->s->fabric)
		return cl_effect_on_transfer(play->s, group, play->step);
	ring = ring_of(play, (enum cl_group_kind)act->group, group);
	for (uint32_t i = 0; i < ring->stops && ring->stops > 1; i++) {
		const uint32_t from = ring->stop[i].node;

		for (uint32_t j = 0; j < ring->stops; j++) {
			const uint32_t to = ring->stop[j].node;

			if (j == i || (goes_around(act) && &ring->stop[j] != cl_ring_next(ring, i)))
				continue;
			factor = fmax(factor, link_factor(play, from, to));
		}
	}
	return factor;
}

double cl_network_pair_factor(struct cl_play *play, uint32_t from, uint32_t to)
{
	const struct cl_group pair = {from < to ? from : to, from < to ? to - from : from - to, 2};
	const uint32_t node = cl_scenario_node_of(play->s, from),
		       other = cl_scenario_node_of(play->s, to);

	if (!play->s->fabric)
		return cl_effect_on_transfer(play->s, &pair, play->step);
	return node == other ? 1 : link_factor(play, node, other);
}

static double exponential(struct cl_play *play)
{
	return -log(cl_chance(&play->sending) + 1e-12);
}

/* usual_ns: of the call, when the slowest rail of a healthy network has all that it moves. */
static void send(struct cl_play *play, const struct cl_act *act, uint32_t from, uint32_t to,
		 const struct cl_load *load, int64_t usual_ns, int64_t end_ns)
{
	const struct cl_group group = cl_group_of(play->s, (enum cl_group_kind)act->group, from);
	const double sends = fmax(1, ceil(load->bytes / load->chunk));
	double one_ns = (double)usual_ns / sends * cl_fabric_rail(play->s, from) *
			cl_network_pair_factor(play, from, to);
	const double least = 1 + jitter * exponential(play) / sends;

	if (cl_chance(&play->sending) < tail)
		one_ns *= 1 + (longest_tail - 1) * pow(cl_chance(&play->sending), 3);
	play->failed |= !cl_sents_add(
		&play->rank[from].sent,
		&(struct cl_sent){
			.end_ns = end_ns,
			.shortest_ns = (uint64_t)fmax(1, one_ns * least),
			.busy_ns = (uint64_t)fmax(1, one_ns * (least + (sends - 1) * (1 + jitter))),
			.peer = cl_group_place(&group, to),
			.bytes = load->chunk,
			.sends = (uint32_t)sends,
			.group = act->group,
			.generation = play->s == &play->sized[1],
			.has_refused = cl_fabric_has_refused(play->s, from, play->step),
		});
}

void cl_network_collective(struct cl_play *play, const struct cl_act *act,
			   const struct cl_group *group, int64_t end_ns)
{
	const struct cl_ring *ring;
	struct cl_load load;

	if (!play->s->proxies)
		return;
	ring = ring_of(play, (enum cl_group_kind)act->group, group);
	if (ring->stops < 2)
		return;
	load = cl_load_of_ring(ring, (double)act->count * CL_ELEMENT_BYTES, group->size,
			       act->op == NT_OP_ALL_REDUCE);
	for (uint32_t i = 0; i < ring->stops && goes_around(act); i++) {
		const struct cl_stop *next = cl_ring_next(ring, i);

		for (uint32_t c = 0; c < load.rings; c++)
			send(play, act, cl_ring_port(ring, &ring->stop[i], c),
			     cl_ring_port(ring, next, c), &load, act->ns, end_ns);
	}
	if (goes_around(act))
		return;
	load = cl_load_of_pair((double)act->count * CL_ELEMENT_BYTES / group->size);
	for (uint32_t i = 0; i < group->size; i++) {
		for (uint32_t j = 0; j < group->size; j++) {
			const uint32_t from = cl_group_member(group, i),
				       to = cl_group_member(group, j);

			if (cl_scenario_node_of(play->s, from) != cl_scenario_node_of(play->s, to))
				send(play, act, from, to, &load, act->ns, end_ns);
		}
	}
}

void cl_network_send(struct cl_play *play, const struct cl_act *act, uint32_t from, uint32_t to,
		     int64_t end_ns)
{
	const struct cl_load load = cl_load_of_pair((double)act->count * CL_ELEMENT_BYTES);

	if (play->s->proxies &&
	    cl_scenario_node_of(play->s, from) != cl_scenario_node_of(play->s, to))
		send(play, act, from, to, &load, act->ns, end_ns);
}

bool cl_network_new(struct cl_play *play)
{
	for (int i = 0; i < CL_GROUP_END && play->s->fabric; i++) {
		play->ring[i] = calloc(play->ranks, sizeof(struct cl_ring));
		if (!play->ring[i])
			return false;
	}
	/* Of all nodes that it ever has, and those are no more. */
	play->strain = calloc(play->ranks, sizeof(*play->strain));
	play->sending = play->s->seed * 0x9e3779b97f4a7c15ULL + 0x5e4d;
	return play->strain;
}

static void forget_rings(struct cl_play *play)
{
	for (int i = 0; i < CL_GROUP_END; i++)
		for (uint32_t r = 0; r < play->ranks && play->ring[i]; r++)
			cl_ring_release(&play->ring[i][r]);
}

void cl_network_step(struct cl_play *play)
{
	if (!play->s->fabric)
		return;
	if (play->s->resize && play->step == play->s->resize)
		forget_rings(play);
	cl_fabric_strain(play->s, play->step, play->strain);
}

void cl_network_free(struct cl_play *play)
{
	forget_rings(play);
	for (int i = 0; i < CL_GROUP_END; i++)
		free(play->ring[i]);
	free(play->strain);
}
