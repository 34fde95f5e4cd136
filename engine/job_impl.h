/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of the job model share: job.c, job_table.c, job_state.c, lobby.c. Private to them. */
#ifndef NT_ENGINE_JOB_IMPL_H
#define NT_ENGINE_JOB_IMPL_H

#include "engine/job.h"

struct nt_jobs {
	struct nt_jobs_limits limits;
	struct nt_jobs_counters counters;
	struct nt_job_key *key;
	struct nt_node_entry *node; /* hash by name */
	struct nt_node_entry **node_at; /* by index */
	size_t nodes, node_cap;
	uint32_t free_nodes; /* entries of node_at without a name */
	uint32_t live; /* jobs */
	uint64_t lead_ns;
	nt_job_gone_fn gone;
	void *gone_data;
};

/* Room for one more in a doubling array. -ENOMEM. */
NT_MUST_CHECK int nt_jobs_grow(void *array, size_t count, size_t *cap, size_t size);

/* What is missing is made; -ENOBUFS at a cap, which is counted; -ENOMEM. */
NT_MUST_CHECK int nt_jobs_find_node(struct nt_jobs *jobs, const char *name,
				    struct nt_node_entry **ret_node);
/* At the next index; "" leaves it free. -EEXIST for a name that is there already. */
NT_MUST_CHECK int nt_jobs_append_node(struct nt_jobs *jobs, const char *name,
				      struct nt_node_entry **ret_node);
NT_MUST_CHECK int nt_jobs_find_source(struct nt_jobs *jobs, struct nt_job_key *key,
				      const char *agent, struct nt_source **ret_source);
NT_MUST_CHECK int nt_jobs_find_key(struct nt_jobs *jobs, const char *text,
				   struct nt_job_key **ret_key);
NT_MUST_CHECK int nt_jobs_find_process(struct nt_jobs *jobs, struct nt_job_key *key,
				       const struct nt_process_id *id,
				       struct nt_process_index **ret_process);

void nt_jobs_forget_process(struct nt_job_key *key, struct nt_process_index *process);
/* Takes the member out of the tables of its key; the caller frees it. */
void nt_jobs_forget_member(struct nt_job_key *key, struct nt_rank_session *member);

/* Makes the member's communicators from the given one on known as its job's. */
NT_MUST_CHECK int nt_jobs_index_ties(struct nt_jobs *jobs, struct nt_rank_session *member,
				     size_t from);

/* The member is reported by this agent from now on. */
void nt_rank_session_move(struct nt_rank_session *member, struct nt_source *source);

/* When all that is needed to place the member will have happened; UINT64_MAX: not yet known. */
uint64_t nt_rank_session_due_ns(const struct nt_job_key *key, const struct nt_rank_session *member);

void nt_job_sort(struct nt_job *job);
/* The job's own index of a node. -ENOMEM. */
NT_MUST_CHECK int nt_job_find_node(struct nt_job *job, uint32_t node, uint32_t *ret_index);

#endif
