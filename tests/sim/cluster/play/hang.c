/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps that do not come to their end: who waits in which call for what never comes. */
#include "tests/sim/cluster/play/state.h"

#include "tests/sim/cluster/effect.h"

/*
 * The rank waits for what never comes. A blocking host is inside that call; another goes on to
 * enqueue, until it waits for its device.
 */
static void hang(struct cl_play *play, struct cl_rank *rank, uint32_t number)
{
	const struct cl_program *program = cl_play_program(play, number);
	const struct cl_fault *mismatch = cl_effect_now(play->s, CL_MISMATCH, number, play->step);

	rank->host_ns = rank->awaits ? rank->host_ns : rank->call_ns;
	if (rank->host_ns < play->stands_ns)
		play->stands_ns = rank->host_ns;
	for (bool first = true; rank->at < program->acts; rank->at++, first = false) {
		struct cl_act act = program->act[rank->at];

		if (act.kind == CL_SYNC_LOCAL || act.kind == CL_SYNC_ALL) {
			cl_record(play, rank,
				  act.kind == CL_SYNC_ALL ? CL_CALL_SYNC_ALL : CL_CALL_SYNC_LOCAL,
				  NULL, rank->host_ns, CL_NEVER);
			return;
		}
		if (act.kind != CL_COLLECTIVE && act.kind != CL_SEND && act.kind != CL_RECV)
			continue;
		if (first && mismatch)
			act.count *= 2;
		if (play->s->mode == CL_BLOCKING) {
			cl_record(play, rank, CL_CALL_COLLECTIVE, &act, rank->host_ns, CL_NEVER);
			return;
		}
		cl_record(play, rank, CL_CALL_COLLECTIVE, &act, rank->host_ns, rank->host_ns);
		rank->host_ns += ENQUEUE_NS;
	}
}

void cl_hang_all(struct cl_play *play)
{
	play->hung = true;
	play->stands_ns = INT64_MAX;
	for (uint32_t i = 0; i < play->ranks; i++) {
		struct cl_rank *rank = &play->rank[i];

		if (rank->away)
			continue;
		if (!rank->gone && !rank->stuck && rank->at < cl_play_program(play, i)->acts)
			hang(play, rank, i);
		if (rank->host_ns > play->hung_ns)
			play->hung_ns = rank->host_ns;
	}
}

bool cl_hang_holds(const struct cl_play *play, uint32_t number, const struct cl_act *act)
{
	const struct cl_group group = cl_group_of(play->s, (enum cl_group_kind)act->group, number);

	if (act->kind != CL_COLLECTIVE || act->count <= 1000)
		return false;
	for (size_t i = 0; i < play->s->faults; i++) {
		const struct cl_fault *f = &play->s->fault[i];

		if (f->from != play->step)
			continue;
		if (f->kind == CL_NETWORK_HANG ||
		    (f->kind == CL_MISMATCH && cl_group_has(&group, f->target)))
			return true;
	}
	return false;
}
