/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Job and rank of a process, derived from its environment. Values from communicators take
 * precedence (agent/steps/rank.c).
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

/* Inputs of the key other than the environment. */
struct nt_identity_facts {
	/* of the tenant, borrowed; NULL: the key is part of an id, not a job's */
	const char *scope;
	uint64_t boot; /* hash of the node's boot id */
	uint64_t first_id; /* id of the world communicator if it came from a unique id, else 0 */
	uint64_t parent; /* hash of the parent process; last resort, valid on one node only */
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
 * The bus key of the job, equal on all its ranks: letters, digits and "._:/-" only. It begins with
 * the tenant's scope, which is never truncated. A long remainder is truncated and ends in a hash of
 * the whole.
 */
enum nt_identity_source nt_identity_key(const struct nt_environ *env,
					const struct nt_identity_facts *facts,
					char ret_key[NT_IDENTITY_KEY]);

/* Display name: the user's, the scheduler's, else the command with a part of the key. */
void nt_identity_name(const struct nt_environ *env, const struct nt_workload *workload,
		      const struct nt_cgroup *cgroup, const char *command, const char *key,
		      char ret_name[NT_IDENTITY_NAME]);

struct nt_identity_rank {
	bool known;
	uint32_t rank, size; /* size 0: unknown */
	uint32_t local_rank;
};

/* RANK is used only with LOCAL_RANK: alone, it may be the number of the node. */
struct nt_identity_rank nt_identity_rank(const struct nt_environ *env);

#endif
