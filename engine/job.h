/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The job model: jobs, rank sessions and nodes, derived from messages. Windows have a bus key. A
 * key is split into jobs if a rank is alive twice or sets of ranks share no communicator. A job
 * whose ranks return as new processes is the next attempt. Time is event time, given by the agents'
 * watermarks.
 *
 * A new rank session is in the admission list of its key until its first communicator is known and
 * all earlier messages have arrived. Its job therefore does not depend on the order of arrival.
 */
#ifndef NT_ENGINE_JOB_H
#define NT_ENGINE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "detect/detect.h"
#include "engine/rank_session.h"
#include "proto/wire.h"

enum {
	NT_JOBS_MAX_KEYS = 4096,
	NT_JOBS_MAX_LIVE = 4096, /* default of the limit */
	NT_JOBS_MAX_ENDED = 64, /* kept for display */
	NT_JOBS_MAX_NODES = 20000,
	NT_JOBS_MAX_SPLITS = 64, /* live jobs of one key */
	NT_JOBS_MAX_COMMS = 1 << 20, /* communicators of one key */
	NT_SOURCE_MAX_AHEAD = 64, /* messages of an agent buffered behind a missing one */
	NT_JOB_FIRST_UNKNOWN = 1 << 20, /* session numbers without a known rank start here */
};

#define NT_JOBS_LATENESS_NS  (3ULL * 1000000000) /* maximum wait of the most advanced agent */
#define NT_JOBS_SILENCE_NS   (10ULL * 1000000000) /* an agent this far behind is silent */
#define NT_JOBS_ADMISSION_NS (2ULL * 1000000000) /* maximum wait for a first communicator */
/* the same for a rank with few calls yet: on a busy host, steps take seconds */
#define NT_JOBS_ADMISSION_FEW_NS (15ULL * 1000000000)
#define NT_JOBS_FORGET_NS        (3600ULL * 1000000000) /* ended and silent jobs are kept this long */

/* A message received before an earlier one of its agent. */
struct nt_ahead {
	uint64_t seq, watermark_ns;
};

/* An agent within one key. */
struct nt_source {
	char *agent; /* name */
	uint64_t watermark_ns; /* real time: everything before has arrived */
	/* A watermark covers sent messages; sequence numbers show which have arrived. */
	uint64_t boot, next_seq;
	uint64_t claimed_ns; /* highest watermark, regardless of missing messages */
	uint64_t unsure_ns; /* first watermark with earlier messages missing; 0: none */
	/* The last long period without messages that was given up. */
	uint64_t silent_from_ns, silent_until_ns;
	struct nt_ahead ahead[NT_SOURCE_MAX_AHEAD]; /* in no order */
	uint32_t aheads;
	uint32_t sessions; /* live ones of this key */
	UT_hash_handle hh;
};

struct nt_job_node {
	uint32_t node; /* index among all nodes */
	uint32_t index; /* index among the job's nodes */
	UT_hash_handle hh;
};

/* The grid of a job's frames: see frame_builder.h. */
struct nt_frame_grid {
	uint64_t start_ns; /* of the open cell */
	uint64_t length_ns; /* of the open cell */
	uint64_t frames; /* closed so far */
	double completeness; /* of the last one */
};

struct nt_job_key;

struct nt_job {
	struct nt_job_key *owner;
	uint64_t hash; /* of (key, split): the same in all attempts */
	uint64_t id; /* of (key, split, attempt) */
	uint32_t split, attempt;
	char *name, *namespace;
	uint32_t size; /* as reported by its members */

	struct nt_rank_session **session; /* ascending by number; retired ones are at the end */
	size_t sessions, session_cap, retired;
	uint32_t live, unknowns; /* unknowns: numbers assigned to sessions of unknown rank */
	uint32_t world_comms; /* observed communicators of the job's size */

	struct nt_job_node *node; /* hash by nt_job_node.node */
	struct nt_job_node **node_at; /* by index */
	size_t nodes, node_cap;

	struct nt_frame_grid grid;
	uint64_t since_ns, last_seen_ns, ended_ns; /* ended_ns: all sessions have ended */
	bool closed; /* ended, judged to its last frame, and open incidents resolved */
	bool changed; /* since the last snapshot */
	bool is_shifted; /* some session's call numbers are shifted */
	struct nt_detect *detect; /* owned */
	void *user; /* the engine's */
	struct nt_job *next; /* of the key */
};

struct nt_shared_comm_index {
	uint64_t comm;
	struct nt_job *job;
	UT_hash_handle hh;
};

/* Without padding: it is hashed as bytes. */
struct nt_process_id {
	uint32_t node, pid;
	uint64_t start_boot_ns;
};

struct nt_process_index {
	struct nt_process_id id;
	struct nt_rank_session *session; /* list */
	UT_hash_handle hh;
};

struct nt_job_key {
	char *key;
	struct nt_source *source; /* hash by agent */
	struct nt_process_index *process;
	struct nt_shared_comm_index *shared_comm;
	struct nt_rank_session **admission; /* in no order */
	size_t admissions, admission_cap;
	uint32_t admission_size; /* largest job size that one of them reports */
	struct nt_job *job; /* list, oldest first */
	size_t jobs;
	uint32_t splits; /* numbers assigned so far */
	size_t sessions; /* of all jobs and of the admission list */
	uint64_t lead_ns; /* watermark of the most advanced agent */
	uint64_t silent_from_ns, silent_until_ns; /* as in nt_source, over all sources */
	uint64_t quiet_ns; /* time waited since the last message */
	uint64_t due_ns; /* nothing is due before */
	const struct nt_source *laggard; /* a source behind due_ns, or NULL */
	UT_hash_handle hh;
};

/* A node. */
struct nt_node_entry {
	char *name; /* NULL: the index is free */
	uint32_t index;
	uint64_t last_seen_ns;
	uint64_t quiet_ns; /* time waited since then */
	uint32_t live; /* ranks, as of the last nt_jobs_nodes() */
	bool is_used; /* private */
	UT_hash_handle hh;
};

struct nt_jobs_limits {
	uint32_t jobs, ranks, keys, nodes; /* 0: defaults */
};

/* Monotonic, each a loss or an event with a name. */
struct nt_jobs_counters {
	struct nt_rank_session_counters session;
	uint64_t windows, early_windows; /* early: ended before their session's job began */
	uint64_t refused_keys, refused_jobs, refused_ranks, refused_nodes;
	uint64_t jobs, attempts, splits, replaced_ranks, conflicting_ranks, forgotten_jobs;
};

struct nt_jobs;

/* Called before a job is freed: releases nt_job.user. */
typedef void (*nt_job_gone_fn)(void *data, struct nt_job *job);

NT_MUST_CHECK int nt_jobs_new(const struct nt_jobs_limits *limits, nt_job_gone_fn gone, void *data,
			      struct nt_jobs **ret_jobs);
void nt_jobs_free(struct nt_jobs *jobs);
NT_DEFINE_AUTO(nt_jobs, nt_jobs_free)

/*
 * Processes a message with a window or a heartbeat and takes ownership in every case. *ret_key is
 * its key, or NULL if a cap refused it. `again`: the message was taken before the state was saved;
 * only windows that still wait for their frame are queued, and nothing is counted.
 */
NT_MUST_CHECK int nt_jobs_put(struct nt_jobs *jobs, struct nt_message *message, bool again,
			      struct nt_job_key **ret_key);

/* Adds idle time of the bus, in which no message arrived, to each key and node. */
void nt_jobs_wait(struct nt_jobs *jobs, uint64_t waited_ns);

/* The end of the oldest window that waits for its frame; UINT64_MAX: none does. */
uint64_t nt_jobs_waiting_ns(const struct nt_jobs *jobs);

/*
 * Time up to which the key's messages have arrived or are no longer awaited. May be too low if it
 * is before due_ns.
 */
uint64_t nt_jobs_closable_ns(struct nt_job_key *key);

/* When a session can leave the admission next; UINT64_MAX: none waits. */
uint64_t nt_jobs_admission_ns(const struct nt_job_key *key);

/*
 * Admits all sessions due at now_ns, in an order that depends only on the data; then those due by
 * until_ns, until a new job begins.
 */
NT_MUST_CHECK int nt_jobs_admit(struct nt_jobs *jobs, struct nt_job_key *key, uint64_t now_ns,
				uint64_t until_ns);

/* Records the end of a session in its job; from then on it is shown, not judged. */
void nt_jobs_end_session(struct nt_rank_session *session, uint64_t ended_ns, bool finalized);
/* The same, with its last window. */
void nt_jobs_end_session_by(struct nt_rank_session *session, uint64_t ended_ns,
			    const struct nt_window *window);

/* Updates the job from the session, whose rank or names may have become known. -ENOMEM. */
NT_MUST_CHECK int nt_jobs_describe(struct nt_jobs *jobs, struct nt_rank_session *session);

/* Closes a job that was judged to its end; from then on it is only shown. */
void nt_jobs_close(struct nt_jobs *jobs, struct nt_job *job);

/* Frees jobs that ended or fell silent long ago, and ended ones over the cap. */
void nt_jobs_sweep(struct nt_jobs *jobs);

/* All keys, nodes and counters, for snapshots and saving. uthash lists. */
struct nt_job_key *nt_jobs_keys(struct nt_jobs *jobs);
size_t nt_jobs_max_nodes(const struct nt_jobs *jobs);
struct nt_node_entry *nt_jobs_nodes(struct nt_jobs *jobs);
const struct nt_node_entry *nt_jobs_node(const struct nt_jobs *jobs, uint32_t index);
const struct nt_jobs_counters *nt_jobs_counters(const struct nt_jobs *jobs);
uint64_t nt_jobs_lead_ns(const struct nt_jobs *jobs); /* of the most advanced agent of all */

#endif
