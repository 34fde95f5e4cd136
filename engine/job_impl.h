/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the job model. Private to job*.c and admission*.c. */
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

/* Find or create. -ENOBUFS at a cap, which is counted; -ENOMEM. */
NT_MUST_CHECK int nt_jobs_find_node(struct nt_jobs *jobs, const char *name,
				    struct nt_node_entry **ret_node);
/* Adds a node at the next index; "" leaves the index free. -EEXIST for a duplicate name. */
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
/* Removes the session from the tables of its key; the caller frees it. */
void nt_jobs_forget_session(struct nt_job_key *key, struct nt_rank_session *session);

/* Indexes the session's communicators, starting at `from`, for its job. */
NT_MUST_CHECK int nt_jobs_index_comms(struct nt_jobs *jobs, struct nt_rank_session *session,
				      size_t from);

/* Assigns the session to another agent. */
void nt_rank_session_move(struct nt_rank_session *session, struct nt_source *source);

/* When the session can be admitted; UINT64_MAX: not known yet. */
uint64_t nt_rank_session_due_ns(const struct nt_job_key *key,
				const struct nt_rank_session *session);

void nt_job_sort(struct nt_job *job);
/* The job's own index of a node. -ENOMEM. */
NT_MUST_CHECK int nt_job_find_node(struct nt_job *job, uint32_t node, uint32_t *ret_index);

#endif
