/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stacks of an incident: of the first accused rank that has one, and of one healthy rank of the
 * same job. Once attached, they stay until newer ones replace them.
 */
#ifndef NT_ENGINE_STACKS_INCIDENT_STACK_H
#define NT_ENGINE_STACKS_INCIDENT_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/stacks/rank_stack.h"
#include "proto/arena.h"
#include "proto/wire.h"

enum {
	/* Of two ranks. */
	NT_INCIDENT_STACKS = 2 * NT_RANK_STACK_THREADS,
};

/* True if a culprit of the incident is this rank. */
bool nt_incident_stack_accuses(const struct nt_wire_incident *incident, uint32_t rank);

/*
 * Sets the incident's stacks: of `culprit` and `peer`, where NULL keeps those of `before`, whose
 * stacks are copied. before: NULL if there is none. -ENOMEM.
 */
struct nt_incident_stack_source {
	const struct nt_rank_stack *stack; /* NULL: none */
	uint32_t rank;
};
NT_MUST_CHECK int nt_incident_stack_attach(struct nt_wire_incident *incident,
					   const struct nt_incident_stack_source *culprit,
					   const struct nt_incident_stack_source *peer,
					   const struct nt_wire_incident *before,
					   struct nt_arena *arena);

/* The innermost Python frame of the accused rank's first thread that has one. NULL: none. */
const struct nt_wire_stack_frame *
nt_incident_stack_innermost(const struct nt_wire_incident *incident);

#endif
