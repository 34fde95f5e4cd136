/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Jobs as they show in the data. Windows come under a bus key; a key is split into jobs where the
 * same rank is alive twice or sets of ranks share no communicator, and a job whose ranks come back
 * as new processes is the next attempt. Time is event time: what the agents' watermarks say.
 *
 * A new member waits in the admission of its key until its first communicator is known and all that
 * happened before that has arrived, so that the order of arrival does not decide where it belongs.
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
	NT_JOBS_MAX_ENDED = 64, /* kept to be shown */
	NT_JOBS_MAX_NODES = 20000,
	NT_JOBS_MAX_SPLITS = 64, /* jobs of one key, living ones */
	NT_JOBS_MAX_COMMS = 1 << 20, /* communicators of one key */
	NT_SOURCE_MAX_AHEAD = 64, /* messages of an agent that may overtake one that is late */
	NT_JOB_FIRST_UNKNOWN = 1 << 20, /* numbers of members whose rank is not known start here */
};

#define NT_JOBS_LATENESS_NS  (3ULL * 1000000000) /* the most advanced agent waits so long */
#define NT_JOBS_SILENCE_NS   (10ULL * 1000000000) /* an agent so far behind is silent */
#define NT_JOBS_ADMISSION_NS (2ULL * 1000000000) /* the longest wait for a first communicator */
#define NT_JOBS_FORGET_NS    (3600ULL * 1000000000) /* ended and silent jobs are shown so long */

/* A message that came before an earlier one of its agent. */
struct nt_ahead {
	uint64_t seq, watermark_ns;
};

/* An agent, as far as one key goes. */
struct nt_source {
	char *agent; /* name */
	uint64_t watermark_ns; /* real time: everything before has arrived */
	/* A watermark vouches for what was sent; that it arrived, the sequence numbers tell. */
	uint64_t boot, next_seq;
	uint64_t claimed_ns; /* highest watermark, whatever is missing */
	uint64_t unsure_ns; /* first watermark, where messages before it may still come; 0: none */
	/* The last long stretch of which nothing had come when it was given up. */
	uint64_t unheard_ns, heard_ns;
	struct nt_ahead ahead[NT_SOURCE_MAX_AHEAD]; /* in no order */
	uint32_t aheads;
	uint32_t members; /* living ones of this key */
	UT_hash_handle hh;
};

struct nt_job_node {
	uint32_t node; /* among all nodes */
	uint32_t index; /* among the job's */
	UT_hash_handle hh;
};

/* The grid of a job's frames: see framer.h. */
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
	uint32_t size; /* as its members say */

	struct nt_rank_session **member; /* ascending by number; retired ones are at the end */
	size_t members, member_cap, retired;
	uint32_t live, unknowns; /* unknowns: numbers given to members of unknown rank */
	uint32_t world_ties; /* communicators of the size of the job that were seen */

	struct nt_job_node *node; /* hash by nt_job_node.node */
	struct nt_job_node **node_at; /* by index */
	size_t nodes, node_cap;

	struct nt_frame_grid grid;
	uint64_t since_ns, last_seen_ns, ended_ns; /* ended_ns: all members have ended */
	bool closed; /* ended, judged to its last frame, and open incidents resolved */
	bool changed; /* since the last picture */
	bool is_shifted; /* numbers of some member are read with a shift */
	struct nt_detect *detect; /* owned */
	void *user; /* the engine's */
	struct nt_job *next; /* of the key */
};

struct nt_tie_index {
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
	struct nt_rank_session *member; /* list */
	UT_hash_handle hh;
};

struct nt_job_key {
	char *key;
	struct nt_source *source; /* hash by agent */
	struct nt_process_index *process;
	struct nt_tie_index *tie;
	struct nt_rank_session **admission; /* in no order */
	size_t lobbies, admission_cap;
	uint32_t admission_size; /* largest size of a job that one of them claims */
	struct nt_job *job; /* list, oldest first */
	size_t jobs;
	uint32_t splits; /* numbers given so far */
	size_t members; /* of all jobs and the admission */
	uint64_t lead_ns; /* watermark of the most advanced agent */
	uint64_t unheard_ns, heard_ns; /* as of a source, but of all of them */
	uint64_t quiet_ns; /* time waited since the last message */
	uint64_t due_ns; /* nothing is due before */
	const struct nt_source *laggard; /* one that was behind due_ns; or NULL */
	UT_hash_handle hh;
};

/* A node's name, and what is known of it. */
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
	struct nt_rank_session_counters member;
	uint64_t windows, early_windows; /* early: ended before their member's job began */
	uint64_t refused_keys, refused_jobs, refused_ranks, refused_nodes;
	uint64_t jobs, attempts, splits, replaced_ranks, conflicting_ranks, forgotten_jobs;
};

struct nt_jobs;

/* The job is about to be freed: take back what hangs on `user`. */
typedef void (*nt_job_gone_fn)(void *data, struct nt_job *job);

NT_MUST_CHECK int nt_jobs_new(const struct nt_jobs_limits *limits, nt_job_gone_fn gone, void *data,
			      struct nt_jobs **ret_jobs);
void nt_jobs_free(struct nt_jobs *jobs);
NT_DEFINE_AUTO(nt_jobs, nt_jobs_free)

/*
 * Takes a message with a window or a heartbeat, and consumes it, always. *ret_key is the key that
 * it belongs to, or NULL where a cap refused it. With `again` the message was taken before the
 * state was saved: only a window that still waits for its frame is queued, nothing is counted.
 */
NT_MUST_CHECK int nt_jobs_put(struct nt_jobs *jobs, struct nt_message *message, bool again,
			      struct nt_job_key **ret_key);

/* So much time has gone by in which nothing came. Each key and node has its own account of it. */
void nt_jobs_wait(struct nt_jobs *jobs, uint64_t waited_ns);

/* The end of the oldest window that waits for its frame; UINT64_MAX: none does. */
uint64_t nt_jobs_waiting_ns(const struct nt_jobs *jobs);

/*
 * Everything before this has arrived for the key, or is not waited for any more; where that is
 * before due_ns, it may be too low.
 */
uint64_t nt_jobs_closable_ns(struct nt_job_key *key);

/* When the next member can leave the admission; UINT64_MAX: none waits. */
uint64_t nt_jobs_admission_ns(const struct nt_job_key *key);

/*
 * Lets in all members that are due at now_ns, in an order that only the data decide; then those that
 * are due by until_ns, as far as no new job begins.
 */
NT_MUST_CHECK int nt_jobs_admit(struct nt_jobs *jobs, struct nt_job_key *key, uint64_t now_ns,
				uint64_t until_ns);

/* Takes the member's end to the job: what is left of it is shown, not judged. */
void nt_jobs_end_member(struct nt_rank_session *member, uint64_t ended_ns, bool finalized);

/* What the member now says of the job and of its own rank, which may have become known. -ENOMEM. */
NT_MUST_CHECK int nt_jobs_describe(struct nt_jobs *jobs, struct nt_rank_session *member);

/* The job has been judged to its end, and is only shown from now on. */
void nt_jobs_close(struct nt_jobs *jobs, struct nt_job *job);

/* Forgets jobs that ended or fell silent long ago, and ended ones over the cap. */
void nt_jobs_sweep(struct nt_jobs *jobs);

/* All keys, nodes and counters, for pictures and saving. Lists of uthash. */
struct nt_job_key *nt_jobs_keys(struct nt_jobs *jobs);
size_t nt_jobs_max_nodes(const struct nt_jobs *jobs);
struct nt_node_entry *nt_jobs_nodes(struct nt_jobs *jobs);
const struct nt_node_entry *nt_jobs_node(const struct nt_jobs *jobs, uint32_t index);
const struct nt_jobs_counters *nt_jobs_counters(const struct nt_jobs *jobs);
uint64_t nt_jobs_lead_ns(const struct nt_jobs *jobs); /* of the most advanced agent of all */

#endif
