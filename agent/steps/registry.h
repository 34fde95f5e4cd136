/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How the communicators of a process are learned: from the calls that make them; where a call was
 * in a group, from the place it wrote the handle to; and where nothing was seen of the making,
 * from the library's own memory.
 */
#ifndef NT_AGENT_STEPS_REGISTRY_H
#define NT_AGENT_STEPS_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/share.h"
#include "agent/probes/probe.h"
#include "agent/steps/comm_layout.h"
#include "agent/steps/process.h"

enum {
	/* of all processes, those that are gone and not reported included */
	NT_REGISTRY_COMMS = 8192,
};

struct nt_registry {
	struct nt_memory memory;
	struct nt_share share; /* of communicators; cap 0: only a process's cap holds */
	uint64_t boot; /* hash of the boot id */
	uint64_t epochs; /* seed of numbers that do not count from the start */
	uint64_t now_ns; /* boot time of the event that is taken; set by the caller of all below */
	struct nt_comm_layout_learned learned;
	/* Named losses. */
	uint64_t comms_over_cap, pending_over_cap, unresolved, no_memory;
};

/* A zeroed one with memory and boot set is ready for use. */

/* The communicator of a call, learned now if need be. NULL at the cap. */
struct nt_communicator *nt_registry_find(struct nt_registry *registry, struct nt_process *process,
					 enum nt_library library, uint64_t handle);

/* The same, but learns nothing. */
struct nt_communicator *nt_registry_known(struct nt_process *process, enum nt_library library,
					  uint64_t handle);

/* Calls that make communicators; each is given at entry and at return, or at return alone. */
void nt_registry_init(struct nt_registry *registry, struct nt_process *process,
		      const struct nt_probe *probe, const struct nt_event_call *call,
		      const uint8_t *id);
void nt_registry_init_all(struct nt_registry *registry, struct nt_process *process,
			  const struct nt_probe *probe, const struct nt_event_call *call);
void nt_registry_child(struct nt_registry *registry, struct nt_process *process,
		       const struct nt_probe *probe, const struct nt_event_call *call);
/* Handles that a group's end has written. tid 0: of any thread. */
void nt_registry_settle(struct nt_registry *registry, struct nt_process *process, uint32_t tid);

/* MPI_Comm_rank said so. */
void nt_registry_rank(struct nt_registry *registry, struct nt_process *process, uint64_t handle,
		      uint32_t rank);
/* MPI_Comm_size said so: believed where nothing else tells, and once the rank is told too. */
void nt_registry_size(struct nt_registry *registry, struct nt_process *process, uint64_t handle,
		      uint32_t size);

/* The communicator is gone; its sums stay until they are reported. */
void nt_registry_end(struct nt_process *process, enum nt_library library, uint64_t handle);

/* A fresh epoch for numbers that other ranks do not share. */
uint64_t nt_registry_epoch(struct nt_registry *registry);

#endif
