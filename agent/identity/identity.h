/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which job a process belongs to and which of its ranks it is, as far as its environment tells.
 * Communicators tell more, and are believed first (agent/tracker/tracker.c).
 */
#ifndef NT_AGENT_IDENTITY_IDENTITY_H
#define NT_AGENT_IDENTITY_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identity/cgroup.h"
#include "agent/identity/environ.h"
#include "agent/identity/workload.h"

enum {
	NT_IDENTITY_KEY = 128, /* bytes of a job's bus key, with its NUL */
	NT_IDENTITY_NAME = 128,
};

/* What the key may be made of, beside the environment. */
struct nt_identity_facts {
	/* of the tenant, borrowed; NULL: the key is no job's, but part of an id */
	const char *scope;
	uint64_t boot; /* hash of the node's boot id */
	uint64_t first_id; /* id of the world communicator, where it came from a unique id; or 0 */
	uint64_t parent; /* hash of the parent process; the last resort, holds on one node alone */
};

/* In the order in which they are tried. */
enum nt_identity_source {
	NT_IDENTITY_MASTER, /* MASTER_ADDR, MASTER_PORT, run id */
	NT_IDENTITY_SCHEDULER, /* SLURM job and step */
	NT_IDENTITY_MPI, /* PMIx namespace */
	NT_IDENTITY_UNIQUE_ID,
	NT_IDENTITY_PARENT,
};

/*
 * The bus key of the job: the same for all its ranks, letters, digits and "._:/-" only. It begins
 * with the scope of the tenant, which is never cut. What is long behind it is cut and ends in a hash
 * of the whole.
 */
enum nt_identity_source nt_identity_key(const struct nt_environ *env,
					const struct nt_identity_facts *facts,
					char ret_key[NT_IDENTITY_KEY]);

/* A name for people: the user's, the scheduler's, else the command with a piece of the key. */
void nt_identity_name(const struct nt_environ *env, const struct nt_workload *workload,
		      const struct nt_cgroup *cgroup, const char *command, const char *key,
		      char ret_name[NT_IDENTITY_NAME]);

struct nt_identity_rank {
	bool known;
	uint32_t rank, size; /* size 0: not told */
	uint32_t local_rank;
};

/* RANK counts only beside LOCAL_RANK: without it, it may be the number of the node. */
struct nt_identity_rank nt_identity_rank(const struct nt_environ *env);

#endif
