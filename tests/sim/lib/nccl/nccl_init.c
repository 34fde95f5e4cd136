/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libnccl: the ways to make a communicator. */
#include "tests/sim/lib/nccl/nccl_group.h"
#include "tests/sim/lib/nccl/nccl_handle.h"

static const char *name_in(const ncclConfig_t *config)
{
	return config && config->size >= sizeof(*config) ? config->comm_name : NULL;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	struct sim_init init = {.kind = SIM_INIT_ID,
				.id = id,
				.ranks = (unsigned int)nranks,
				.rank = (unsigned int)rank,
				.device = -1,
				.name = name_in(config),
				.ret = comm};

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	return sim_group_init(&init);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	struct sim_init init = {.kind = SIM_INIT_ID,
				.id = id,
				.ranks = (unsigned int)nranks,
				.rank = (unsigned int)rank,
				.device = -1,
				.ret = comm};

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	return sim_group_init(&init);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nid,
				      ncclUniqueId *ids, ncclConfig_t *config)
{
	struct sim_init init = {.kind = SIM_INIT_ID,
				.ranks = (unsigned int)nranks,
				.rank = (unsigned int)rank,
				.device = -1,
				.name = name_in(config),
				.ret = comm};

	if (!comm || !ids || nid < 1 || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	init.id = ids[0];
	return sim_group_init(&init);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices)
{
	ncclUniqueId id;
	ncclResult_t r;

	if (!comms || ndev < 1)
		return ncclInvalidArgument;
	r = ncclGetUniqueId(&id);
	if (r != ncclSuccess)
		return r;
	(void)ncclGroupStart();
	for (int i = 0; i < ndev && r == ncclSuccess; i++) {
		struct sim_init init = {.kind = SIM_INIT_ID,
					.id = id,
					.ranks = (unsigned int)ndev,
					.rank = (unsigned int)i,
					.device = devices ? devices[i] : i,
					.ret = &comms[i]};

		r = sim_group_init(&init);
	}
	return r == ncclSuccess ? ncclGroupEnd() : r;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
			   ncclConfig_t *config)
{
	struct sim_init init = {.kind = SIM_INIT_SPLIT,
				.parent = comm,
				.color = color,
				.key = key,
				.device = -1,
				.name = name_in(config),
				.ret = newcomm};

	if (!sim_handle_is_valid(comm) || !newcomm)
		return ncclInvalidArgument;
	return sim_group_init(&init);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *exclude, int count, ncclComm_t *newcomm,
			    ncclConfig_t *config, int flags)
{
	struct sim_init init = {.kind = SIM_INIT_ID,
				.parent = comm,
				.device = -1,
				.name = name_in(config),
				.ret = newcomm};

	(void)flags;
	if (!sim_handle_is_valid(comm) || !newcomm || count < 0 || (count > 0 && !exclude))
		return ncclInvalidArgument;
	init.ranks = comm->comm->ranks - (unsigned int)count;
	init.rank = comm->comm->rank;
	for (int i = 0; i < count; i++) {
		if (exclude[i] == (int)comm->comm->rank)
			return ncclInvalidArgument;
		init.rank -= exclude[i] < (int)comm->comm->rank;
	}
	sim_comm_derive(comm->comm, sim_hash(3, exclude, (size_t)count * sizeof(*exclude)),
			&init.id);
	return sim_group_init(&init);
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
	if (!sim_handle_is_valid(comm) || !id)
		return ncclInvalidArgument;
	sim_comm_derive(comm->comm, 4, id);
	return ncclSuccess;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
			  ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct sim_init init = {.kind = SIM_INIT_ID,
				.parent = comm,
				.ranks = (unsigned int)nranks,
				.rank = (unsigned int)rank,
				.device = -1,
				.name = name_in(config),
				.ret = newcomm};

	if (!newcomm || (!comm && !id) || (comm && !sim_handle_is_valid(comm)))
		return ncclInvalidArgument;
	if (id)
		init.id = *id;
	else
		sim_comm_derive(comm->comm, 4, &init.id);
	if (rank < 0 && comm)
		init.rank = comm->comm->rank;
	return sim_group_init(&init);
}
