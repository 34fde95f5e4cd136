/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/stacks/incident_stack.h"

#include <errno.h>

bool nt_incident_stack_accuses(const struct nt_wire_incident *incident, uint32_t rank)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];

		if (culprit->has_rank && culprit->rank == rank)
			return true;
		for (size_t j = 0; j < culprit->rank_count; j++)
			if (culprit->ranks[j] == rank)
				return true;
	}
	return false;
}

static int add_thread(struct nt_wire_incident *incident,
		      const struct nt_wire_incident_stack *thread, struct nt_arena *arena)
{
	struct nt_wire_incident_stack *to = &incident->stack[incident->stacks];
	int r;

	if (incident->stacks == NT_INCIDENT_STACKS)
		return 0;
	*to = *thread;
	r = nt_rank_stack_copy(&thread->stack, arena, &to->stack);
	incident->stacks += r == 0;
	return r;
}

/* Threads of the new stack or, if there is none, those of before. */
static int add_side(struct nt_wire_incident *incident, bool is_culprit,
		    const struct nt_incident_stack_source *source,
		    const struct nt_wire_incident *before, struct nt_arena *arena)
{
	int r = 0;

	for (size_t i = 0; source->stack && i < source->stack->threads && r == 0; i++) {
		const struct nt_wire_incident_stack thread = {
			.rank = source->rank,
			.is_culprit = is_culprit,
			.stack = source->stack->thread[i],
			.real_ns = source->stack->real_ns,
		};

		r = add_thread(incident, &thread, arena);
	}
	for (size_t i = 0; !source->stack && before && i < before->stacks && r == 0; i++)
		if (before->stack[i].is_culprit == is_culprit)
			r = add_thread(incident, &before->stack[i], arena);
	return r;
}

int nt_incident_stack_attach(struct nt_wire_incident *incident,
			     const struct nt_incident_stack_source *culprit,
			     const struct nt_incident_stack_source *peer,
			     const struct nt_wire_incident *before, struct nt_arena *arena)
{
	struct nt_wire_incident with = *incident;
	int r;

	with.stack = nt_arena_alloc(arena, NT_INCIDENT_STACKS * sizeof(*with.stack));
	with.stacks = 0;
	if (!with.stack)
		return -ENOMEM;
	r = add_side(&with, true, culprit, before, arena);
	if (r == 0)
		r = add_side(&with, false, peer, before, arena);
	if (r == 0)
		*incident = with;
	return r;
}

const struct nt_wire_stack_frame *
nt_incident_stack_innermost(const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < incident->stacks; i++) {
		const struct nt_wire_stack *stack = &incident->stack[i].stack;

		for (size_t j = 0; incident->stack[i].is_culprit && j < stack->frames; j++)
			if (!stack->frame[j].native)
				return &stack->frame[j];
	}
	return NULL;
}
