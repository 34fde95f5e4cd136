/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tracker from inside; for agent/tracker*.c alone. */
#ifndef NT_AGENT_TRACKER_TRACKER_IMPL_H
#define NT_AGENT_TRACKER_TRACKER_IMPL_H

#include <uthash.h>

#include "agent/steps/process.h"
#include "agent/steps/rank.h"
#include "agent/steps/registry.h"
#include "agent/tracker/tracker.h"

enum {
	NT_TRACKER_STRANGERS = 256, /* pids of processes that are not watched */
};

/*
 * What is kept of every process that discovery has reported. It is watched, which takes far more
 * memory, while it has a place; without one it gets it with its next call, if its owner's share and
 * those of others allow.
 */
struct nt_tracker_candidate {
	uint32_t pid;
	uint64_t start_ns;
	struct nt_process *process; /* owned by the table of processes; NULL: it has no place */
	struct nt_owner owner;
	struct nt_share_entry place;
	uint32_t libraries;
	uint64_t nccl_file;
	bool late, mpich;
	uint64_t refused_ns; /* by the clock of events, when it was last refused a place … */
	uint64_t refused_for_ns; /* … and how long that holds */
	UT_hash_handle hh;
};

/* An event that came before discovery told of its process. */
struct nt_tracker_orphan {
	struct nt_event_call call;
	bool has_id;
	uint8_t id[NT_ID_BYTES];
	uint32_t next; /* of the same process, or free; NT_TRACKER_ORPHANS: none */
};

/* Whose processes' events wait. */
struct nt_tracker_group {
	struct nt_owner owner;
	uint32_t count, waits; /* events, and processes */
	UT_hash_handle hh;
};

/* The events of a process that wait. */
struct nt_tracker_wait {
	uint32_t pid;
	struct nt_tracker_group *group;
	bool has_owner; /* the group is its owner's */
	uint32_t first, last; /* of its events, in order, if there are any */
	uint32_t count;
	uint32_t judged; /* of them, those that came before the look that runs */
	bool is_judged; /* some look has begun since it was added */
	uint64_t over_cap; /* more that found no room */
	UT_hash_handle hh;
};

struct nt_tracker_stranger {
	uint32_t pid; /* 0: free */
	uint64_t until_ns; /* by the clock of events: a pid may come again as another process */
};

struct nt_tracker_orphans {
	struct nt_tracker_orphan *orphan; /* NT_TRACKER_ORPHANS, owned */
	uint32_t count, free, used; /* free: the first of the list; used: from there on none was */
	struct nt_tracker_wait *waits; /* uthash by pid, owned */
	struct nt_tracker_group *groups; /* uthash by owner, owned */
	struct nt_share share; /* counts what found no room; its places are not used */
	struct nt_tracker_stranger stranger[NT_TRACKER_STRANGERS]; /* hashed */
};

/* A job's key with something to send under it. */
struct nt_tracker_key {
	char key[NT_IDENTITY_KEY];
	struct nt_rank *rank; /* list */
	uint32_t ranks;
	struct nt_owner owner; /* of the first rank */
	struct nt_share_entry place;
	uint64_t sent_ns, watermark_ns; /* of the last message */
	uint64_t empty_ns; /* since when it has no ranks */
	UT_hash_handle hh;
};

/* A window whose job has no key yet, encoded. */
struct nt_held {
	struct nt_held *next;
	struct nt_rank *rank; /* borrowed */
	uint64_t start_ns;
	size_t size;
	uint8_t data[];
};

struct nt_tracker {
	struct nt_tracker_options options;
	struct nt_registry registry;
	struct nt_tracker_candidate *candidates; /* uthash by pid, owned */
	struct nt_process *processes; /* uthash by pid, owned */
	struct nt_share share; /* of those */
	struct nt_tracker_key *keys; /* uthash, owned */
	struct nt_share key_share;
	uint32_t period; /* in which losses of keys are counted */
	uint64_t period_ns; /* since when */
	struct nt_tracker_orphans orphans;
	uint64_t now_ns; /* of the last tick */
	uint32_t waiting; /* processes with held windows */
	struct nt_tracker_stats stats;
};

/* A step of the rank has ended: sends its window if that is long enough. */
void nt_tracker_stepped(struct nt_tracker *tracker, struct nt_rank *rank);
/* Sends what there is. ended: its process is gone, and it is the rank's last window. */
void nt_tracker_send(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t end_ns, bool ended);

/* The entry of the rank's key, which the rank joins if it has not. NULL: there is no room, counted. */
struct nt_tracker_key *nt_tracker_join_key(struct nt_tracker *tracker, struct nt_rank *rank);
/* The rank goes away, or is not to be sent any more. */
void nt_tracker_leave_key(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t now_ns);
void nt_tracker_free_key(struct nt_tracker *tracker, struct nt_tracker_key *key);
void nt_tracker_free_keys(struct nt_tracker *tracker);
/* The rank's name, by what is known of its process now. */
void nt_tracker_name(struct nt_rank *rank);
/* Keys and names the rank, whose tenant is decided, and joins the key as above. */
struct nt_tracker_key *nt_tracker_fix_key(struct nt_tracker *tracker, struct nt_rank *rank);
/* Nothing of the ranks of the key that lies before this is still to come. */
uint64_t nt_tracker_watermark(const struct nt_tracker_key *key, uint64_t now_ns);

/*
 * agent/tracker/tracker_wait.c: looks again where the process runs, and decides its tenant if that is known,
 * or must be. True: it is decided.
 */
bool nt_tracker_settle(struct nt_tracker *tracker, struct nt_process *process, bool must);
/* Keeps the window until the tenant is known. False: there is no room. */
bool nt_tracker_hold(struct nt_tracker *tracker, struct nt_rank *rank,
		     const struct nt_window *window);
/* Hands out what processes hold whose tenant is known, or did not come in time. */
void nt_tracker_release(struct nt_tracker *tracker, uint64_t now_ns);
/* The same of one process, whose tenant is decided now. */
void nt_tracker_release_one(struct nt_tracker *tracker, struct nt_process *process);
/* Frees what a process holds. */
void nt_tracker_discard(struct nt_tracker *tracker, struct nt_process *process);

/* agent/tracker/tracker_call.c: what an event of a known process means. Its row is valid. id: NT_ID_BYTES or NULL. */
void nt_tracker_give(struct nt_tracker *tracker, struct nt_process *process,
		     const struct nt_event_call *call, const uint8_t *id);

/* agent/tracker/tracker_process.c: the candidate of this pid; NULL: discovery has reported none. */
struct nt_tracker_candidate *nt_tracker_find_candidate(const struct nt_tracker *tracker,
						       uint32_t pid);
/* Begins to watch the candidate's process, if its owner has room. */
void nt_tracker_watch(struct nt_tracker *tracker, struct nt_tracker_candidate *candidate,
		      bool called);
void nt_tracker_free_process(struct nt_tracker *tracker, struct nt_process *process);
/* Copies what is known of the candidate's libraries to its process, which must exist. */
void nt_tracker_know_libraries(const struct nt_tracker_candidate *candidate);
/* Sends the open windows of its ranks. ended: these are their last windows. */
void nt_tracker_send_rest(struct nt_tracker *tracker, struct nt_process *process, uint64_t boot_ns,
			  bool ended);
/* Call numbers of its communicators start anew: earlier ones no longer match. */
void nt_tracker_lose_numbers(struct nt_tracker *tracker, struct nt_process *process);
/* Events of this process are lost: its numbers are no longer certain, nor are its sums. */
void nt_tracker_lose(struct nt_tracker *tracker, struct nt_process *process, uint64_t events);

/*
 * The process that makes a call: it gets a place if it has none. NULL: it is not known, or there is no
 * room.
 */
void nt_tracker_called(struct nt_tracker *tracker, struct nt_process *process);
struct nt_process *nt_tracker_caller(struct nt_tracker *tracker, uint32_t pid, uint64_t now_ns,
				     bool *ret_is_known);

/* It makes room, and gets no place again for half a minute. The process is freed. */
void nt_tracker_give_up(struct nt_tracker *tracker, struct nt_process *process);

struct nt_process *nt_tracker_process(const struct nt_tracker *tracker, uint32_t pid);

/*
 * agent/tracker/tracker_orphan.c: keeps an event whose process is not known, or counts it as a stranger's; says
 * whether any of a pid are kept; and gives a process what was kept of it, in order.
 */
void nt_tracker_keep(struct nt_tracker *tracker, const struct nt_event_call *call,
		     const uint8_t *id);
bool nt_tracker_keeps(const struct nt_tracker *tracker, uint32_t pid);
void nt_tracker_claim(struct nt_tracker *tracker, struct nt_process *process);
int nt_tracker_open_orphans(struct nt_tracker_orphans *orphans);
void nt_tracker_free_orphans(struct nt_tracker_orphans *orphans);

/*
 * agent/tracker/tracker_graph.c: what is captured, and what a launch makes of it. True: the call, or the
 * order of the streams, is captured, and of no effect now.
 */
bool nt_tracker_captured(struct nt_process *process, const struct nt_probe *probe,
			 const struct nt_event_call *call, const struct nt_communicator *comm,
			 const struct nt_communicator_call *made);
bool nt_tracker_captured_order(struct nt_process *process, const struct nt_probe *probe,
			       const struct nt_event_call *call);
/* A call that begins or ends a capture, or makes or changes a graph. */
void nt_tracker_graph(struct nt_tracker *tracker, struct nt_process *process,
		      const struct nt_probe *probe, const struct nt_event_call *call);
/* False: what the graph holds is not known. thread: NULL at the cap. */
bool nt_tracker_graph_launch(struct nt_tracker *tracker, struct nt_process *process,
			     struct nt_thread *thread, const struct nt_probe *probe,
			     const struct nt_event_call *call);

#endif
