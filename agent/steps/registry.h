/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The registry of communicators. It learns those of a process from the calls that create them, or,
 * for a call in a group, from the address of the handle. If the creation was not observed, it reads
 * the library's memory.
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
	/* of all processes, freed but unreported ones included */
	NT_REGISTRY_COMMS = 8192,
};

struct nt_registry {
	struct nt_memory memory;
	struct nt_share share; /* of communicators; cap 0: only the cap per process applies */
	uint64_t boot; /* hash of the boot id */
	uint64_t epochs; /* seed of epochs whose numbers do not count from the start */
	uint64_t now_ns; /* boot time of the current event; set by the caller of all below */
	struct nt_comm_layout_learned learned;
	/* Losses by cause. */
	uint64_t comms_over_cap, pending_over_cap, unresolved, no_memory;
};

/* Ready for use when zeroed, with memory and boot set. */

/* The communicator of a call, learned if necessary. NULL at the cap. */
struct nt_communicator *nt_registry_find(struct nt_registry *registry, struct nt_process *process,
					 enum nt_library library, uint64_t handle);

/* The same, without learning. */
struct nt_communicator *nt_registry_known(struct nt_process *process, enum nt_library library,
					  uint64_t handle);

/* Adds one that is not known, or replaces it: a reused handle names another. NULL at the cap. */
struct nt_communicator *nt_registry_add(struct nt_registry *registry, struct nt_process *process,
					uint64_t library, uint64_t handle);

/* Calls that create communicators; given at entry and return, or at return alone. */
void nt_registry_init(struct nt_registry *registry, struct nt_process *process,
		      const struct nt_probe *probe, const struct nt_event_call *call,
		      const uint8_t *id);
void nt_registry_init_all(struct nt_registry *registry, struct nt_process *process,
			  const struct nt_probe *probe, const struct nt_event_call *call);
void nt_registry_child(struct nt_registry *registry, struct nt_process *process,
		       const struct nt_probe *probe, const struct nt_event_call *call);
/* Reads handles written at the end of a group. tid 0: of any thread. */
void nt_registry_settle(struct nt_registry *registry, struct nt_process *process, uint32_t tid);

/* The result of MPI_Comm_rank. */
void nt_registry_rank(struct nt_registry *registry, struct nt_process *process, uint64_t handle,
		      uint32_t rank);
/* The result of MPI_Comm_size; used if no other source exists, once the rank is known. */
void nt_registry_size(struct nt_registry *registry, struct nt_process *process, uint64_t handle,
		      uint32_t size);

/* True if it is NCCL's, and its place in the job could not be read. */
bool nt_registry_is_unresolved(const struct nt_communicator *comm);
/*
 * Reads the unresolved communicators of the process again, after the layout of its library was
 * learned. Those that can be read are replaced, as the same id must not be used for calls from before.
 * Returns their number.
 */
uint32_t nt_registry_resolve(struct nt_registry *registry, struct nt_process *process);

/* The communicator was freed; its sums are kept until reported. */
void nt_registry_end(struct nt_process *process, enum nt_library library, uint64_t handle);

/* A new epoch, for numbers that other ranks do not share. */
uint64_t nt_registry_epoch(struct nt_registry *registry);

#endif
