/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What hosts and devices did, as it is written down. */
#include "tests/sim/cluster/play/state.h"

static void put(struct cl_play *play, struct cl_rank *rank, const struct cl_call *call)
{
	play->failed |= !cl_calls_add(&rank->calls, call);
}

void cl_record_host(struct cl_play *play, struct cl_rank *rank, int64_t start_ns, bool asleep)
{
	const struct cl_call call = {
		.kind = CL_CALL_HOST,
		.entry_ns = start_ns,
		.ret_ns = rank->host_ns,
		.asleep = asleep,
		.host = rank->host,
	};

	put(play, rank, &call);
	rank->host = (struct cl_host){0};
}

void cl_record(struct cl_play *play, struct cl_rank *rank, enum cl_call_kind kind,
	       const struct cl_act *act, int64_t entry_ns, int64_t ret_ns)
{
	const struct cl_call call = {
		.kind = (uint8_t)kind,
		.entry_ns = entry_ns,
		.ret_ns = ret_ns,
		.count = act ? act->count : 0,
		.launches = rank->launches,
		.group = act ? act->group : 0,
		.op = act ? act->op : 0,
		.overlaps = act && act->overlaps,
		.forward = act && act->forward,
		.generation = play->s == &play->sized[1],
	};

	if (rank->host.on_cpu_ns || rank->host.run_queue_ns)
		cl_record_host(play, rank, entry_ns, false);
	put(play, rank, &call);
}

void cl_record_busy(struct cl_play *play, struct cl_rank *rank, const struct cl_act *act,
		    int64_t entry_ns, int64_t start_ns, int64_t end_ns)
{
	const struct cl_busy busy = {
		.entry_ns = entry_ns,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.kernels = 1,
		.nth = ++rank->nth[act->group][act->op],
		.group = act->group,
		.op = act->op,
		.communicates = true,
		.overlaps = act->overlaps,
		.generation = play->s == &play->sized[1],
	};

	if (play->s->mode == CL_PLUGIN)
		play->failed |= !cl_busies_add(&rank->busies, &busy);
}
