/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void sim_must(int result, const char *what)
{
	if (result == 0)
		return;
	(void)fprintf(stderr, "train: %s failed with %d\n", what, result);
	_exit(3);
}

/* All elements are floats. */
static void count(struct sim_world *world, const struct sim_group *group, const char *op,
		  size_t elements)
{
	sim_truth_add(&world->truth, op, group->name, group->rank, group->size,
		      elements * sizeof(float));
}

void sim_all_reduce(struct sim_world *world, const struct sim_group *group, void *buffer,
		    size_t elements, cudaStream_t stream)
{
	if (!group->comm)
		return;
	sim_watchdog_begin(world->watchdog, stream);
	sim_must(ncclAllReduce(buffer, buffer, elements, ncclFloat32, ncclSum, group->comm, stream),
		 "ncclAllReduce");
	sim_watchdog_end(world->watchdog, stream);
	count(world, group, "all-reduce", elements);
}

void sim_reduce_scatter(struct sim_world *world, const struct sim_group *group, void *buffer,
			size_t elements, cudaStream_t stream)
{
	if (!group->comm)
		return;
	sim_watchdog_begin(world->watchdog, stream);
	sim_must(ncclReduceScatter(buffer, (float *)buffer + group->rank * elements, elements,
				   ncclFloat32, ncclSum, group->comm, stream),
		 "ncclReduceScatter");
	sim_watchdog_end(world->watchdog, stream);
	count(world, group, "reduce-scatter", elements);
}

void sim_all_gather(struct sim_world *world, const struct sim_group *group, void *buffer,
		    size_t elements, cudaStream_t stream)
{
	if (!group->comm)
		return;
	sim_watchdog_begin(world->watchdog, stream);
	sim_must(ncclAllGather((float *)buffer + group->rank * elements, buffer, elements,
			       ncclFloat32, group->comm, stream),
		 "ncclAllGather");
	sim_watchdog_end(world->watchdog, stream);
	count(world, group, "all-gather", elements);
}

void sim_broadcast(struct sim_world *world, const struct sim_group *group, void *buffer,
		   size_t elements, cudaStream_t stream)
{
	if (!group->comm)
		return;
	sim_watchdog_begin(world->watchdog, stream);
	sim_must(ncclBroadcast(buffer, buffer, elements, ncclFloat32, 0, group->comm, stream),
		 "ncclBroadcast");
	sim_watchdog_end(world->watchdog, stream);
	count(world, group, "broadcast", elements);
}

void sim_send(struct sim_world *world, const struct sim_group *group, const void *buffer,
	      size_t elements, uint32_t peer, cudaStream_t stream)
{
	sim_must(ncclSend(buffer, elements, ncclFloat32, (int)peer, group->comm, stream),
		 "ncclSend");
	count(world, group, "send", elements);
}

void sim_recv(struct sim_world *world, const struct sim_group *group, void *buffer, size_t elements,
	      uint32_t peer, cudaStream_t stream)
{
	sim_must(ncclRecv(buffer, elements, ncclFloat32, (int)peer, group->comm, stream),
		 "ncclRecv");
	count(world, group, "recv", elements);
}

/* ---- making the groups ---- */

enum {
	GROUPS = 3,
};

/* The group of a rank by the ranks that differ from it in one place alone: first and step. */
struct place {
	struct sim_group *group;
	uint32_t first, color;
};

static int by_split(struct sim_world *world, const struct place *place)
{
	for (int i = 0; i < GROUPS; i++) {
		struct sim_group *group = place[i].group;

		if (group->size < 2)
			continue;
		if (ncclCommSplit(world->world.comm, (int)place[i].color, (int)group->rank,
				  &group->comm, NULL) != ncclSuccess)
			return -EIO;
	}
	return 0;
}

/* The first rank of each group makes an id; an all-gather tells all ids to all. */
static int by_id(struct sim_world *world, const struct place *place)
{
	uint32_t rank = world->world.rank, size = world->world.size;
	size_t each = GROUPS * sizeof(ncclUniqueId);
	ncclUniqueId own[GROUPS], id;
	char *ids = NULL;
	int r = 0;

	for (int i = 0; i < GROUPS; i++)
		if (ncclGetUniqueId(&own[i]) != ncclSuccess)
			return -EIO;
	if (cudaMalloc((void **)&ids, size * each) != cudaSuccess)
		return -EIO;
	if (cudaMemcpy(ids + rank * each, own, each, cudaMemcpyHostToDevice) != cudaSuccess ||
	    ncclAllGather(ids + rank * each, ids, each, ncclUint8, world->world.comm, NULL) !=
		    ncclSuccess ||
	    cudaStreamSynchronize(NULL) != cudaSuccess)
		r = -EIO;
	sim_truth_add(&world->truth, "all-gather", "world", rank, size, each);
	for (int i = 0; i < GROUPS && r == 0; i++) {
		struct sim_group *group = place[i].group;

		if (group->size < 2)
			continue;
		if (cudaMemcpy(&id, ids + place[i].first * each + (size_t)i * sizeof(id),
			       sizeof(id), cudaMemcpyDeviceToHost) != cudaSuccess ||
		    ncclCommInitRankConfig(&group->comm, (int)group->size, id, (int)group->rank,
					   NULL) != ncclSuccess)
			r = -EIO;
	}
	(void)cudaFree(ids);
	return r;
}

int sim_world_open(struct sim_world *world, uint32_t rank, struct sim_layout layout,
		   const ncclUniqueId *id, enum sim_making making)
{
	uint32_t size = layout.tp * layout.dp * layout.pp;
	uint32_t tp = rank % layout.tp, dp = rank / layout.tp % layout.dp;
	uint32_t pp = rank / (layout.tp * layout.dp);
	struct place place[GROUPS] = {
		{&world->tensor, rank - tp, rank / layout.tp},
		{&world->data, rank - dp * layout.tp, pp * layout.tp + tp},
		{&world->pipeline, rank % (layout.tp * layout.dp), rank % (layout.tp * layout.dp)},
	};

	if (size == 0 || rank >= size)
		return -EINVAL;
	*world = (struct sim_world){.truth = {.rank = rank, .size = size}};
	world->world = (struct sim_group){.name = "world", .rank = rank, .size = size};
	world->tensor = (struct sim_group){.name = "tp", .rank = tp, .size = layout.tp};
	world->data = (struct sim_group){.name = "dp", .rank = dp, .size = layout.dp};
	world->pipeline = (struct sim_group){.name = "pp", .rank = pp, .size = layout.pp};

	if (ncclCommInitRank(&world->world.comm, (int)size, *id, (int)rank) != ncclSuccess)
		return -EIO;
	return making == SIM_MAKING_SPLIT ? by_split(world, place) : by_id(world, place);
}

void sim_world_close(struct sim_world *world)
{
	struct sim_group *group[] = {&world->tensor, &world->data, &world->pipeline, &world->world};

	for (size_t i = 0; i < sizeof(group) / sizeof(*group); i++) {
		if (!group[i]->comm)
			continue;
		(void)ncclCommFinalize(group[i]->comm);
		(void)ncclCommDestroy(group[i]->comm);
		group[i]->comm = NULL;
	}
}
