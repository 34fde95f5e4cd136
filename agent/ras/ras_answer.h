/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The status of a job as the RAS subsystem of NCCL reports it in JSON (2.28.7 and later): its
 * communicators with their ranks. Every value is untrusted: a process of the job writes it.
 */
#ifndef NT_AGENT_RAS_RAS_ANSWER_H
#define NT_AGENT_RAS_RAS_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_RAS_BYTES = 64 << 20, /* of a status; a longer one is refused */
	NT_RAS_COMMS = 1024, /* places with the wanted pid; further ones are counted */
	NT_RAS_RANKS = 1 << 20, /* of a communicator */
};

/* The place of a process in a communicator. */
struct nt_ras_comm {
	uint64_t hash; /* NCCL's id, the same on all ranks; not 0 */
	uint32_t rank, size;
};

/* Flat, as a worker sends it to the agent. */
struct nt_ras_answer {
	uint32_t communicators, ranks; /* of the job */
	/* Of the job: ranks that did not answer; of these, those considered dead. */
	uint32_t missing, dead;
	uint32_t initialising; /* ranks whose communicator is still being created */
	uint32_t
		impossible; /* communicators and ranks dropped: a value is missing or out of range */
	uint32_t over_cap; /* places dropped: more than NT_RAS_COMMS */
	uint32_t comms;
	struct nt_ras_comm comm[NT_RAS_COMMS]; /* by hash, then rank */
};

/*
 * Reads a status and keeps the places of the processes with this pid, which is that of the PID
 * namespace of the process. On other nodes other processes may have the same pid: their places are
 * kept, too. `fill` returns bytes, 0 at the end, or a negative errno, which is returned.
 * -EBADMSG: no status. -EFBIG: over NT_RAS_BYTES. -ENOMEM.
 */
NT_MUST_CHECK int nt_ras_answer_read(ptrdiff_t (*fill)(void *context, char *data, size_t size),
				     void *context, uint32_t pid, struct nt_ras_answer *ret_answer);

/* Finds a place in places that are sorted as above, or NULL. */
const struct nt_ras_comm *nt_ras_answer_find(const struct nt_ras_comm *comm, size_t comms,
					     const struct nt_ras_comm *wanted);

#endif
