/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internal state of the tracker; only for agent/tracker/tracker*.c. */
#ifndef NT_AGENT_TRACKER_TRACKER_IMPL_H
#define NT_AGENT_TRACKER_TRACKER_IMPL_H

#include <uthash.h>

#include "agent/steps/process.h"
#include "agent/steps/rank.h"
#include "agent/steps/registry.h"
#include "agent/steps/window.h"
#include "agent/tracker/tracker.h"

enum {
	NT_TRACKER_STRANGERS = 256, /* pids of processes not watched */
};

/*
 * The entry of every process that discovery has reported. It is watched, which takes far more
 * memory, while it has a slot. Otherwise it requests one with its next call, which the shares of
 * its owner and of others decide.
 */
struct nt_tracker_candidate {
	uint32_t pid;
	uint64_t start_ns;
	struct nt_process *process; /* owned by the table of processes; NULL: no slot */
	struct nt_owner owner;
	struct nt_share_entry place;
	uint32_t libraries;
	uint64_t nccl_file;
	bool late, mpich;
	bool is_probed_late; /* it mapped CUDA before that was attached: calls are missing */
	uint64_t refused_ns; /* by the clock of events, when it was last refused a slot … */
	uint64_t refused_for_ns; /* … and for how long */
	UT_hash_handle hh;
};

/* An event that came before discovery reported its process. */
struct nt_tracker_orphan {
	struct nt_event_call call;
	bool has_id;
	uint8_t id[NT_ID_BYTES];
	uint32_t next; /* of the same process, or free; NT_TRACKER_ORPHANS: none */
};

/* Held events of one owner's processes. */
struct nt_tracker_group {
	struct nt_owner owner;
	uint32_t count, processes; /* numbers of held events and of processes */
	UT_hash_handle hh;
};

/* Held events of one process. */
struct nt_tracker_held {
	uint32_t pid;
	struct nt_tracker_group *group;
	bool has_owner; /* the group is its owner's */
	uint32_t first, last; /* of its events, in order, if there are any */
	uint32_t count;
	uint32_t judged; /* of them, those from before the current scan */
	bool is_judged; /* a scan has begun since it was added */
	uint64_t over_cap; /* further ones over the cap */
	UT_hash_handle hh;
};

struct nt_tracker_stranger {
	uint32_t pid; /* 0: free */
	uint64_t until_ns; /* by the clock of events: a pid may be reused */
};

struct nt_tracker_orphans {
	struct nt_tracker_orphan *orphan; /* NT_TRACKER_ORPHANS, owned */
	uint32_t count, free, used; /* free: head of the free list; used: all beyond are unused */
	struct nt_tracker_held *processes; /* uthash by pid, owned */
	struct nt_tracker_group *groups; /* uthash by owner, owned */
	struct nt_share share; /* counts losses; its slots are not used */
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

/* An encoded window whose job has no key yet. */
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
	uint64_t
		gpu_lines_ns; /* boot time, when the minute of these lines of the log began; 0: never */
	uint64_t gpu_second; /* in which these batches came */
	uint32_t gpu_batches;
	uint32_t gpu_lines; /* so far in that minute */
	size_t detail_logs; /* of all ranks */
	uint64_t details_drawn; /* state of the random numbers for them */
	struct nt_tracker_stats stats;
};

/* A step of the rank has ended: sends its window if that is long enough. */
void nt_tracker_stepped(struct nt_tracker *tracker, struct nt_rank *rank);
/* Sends the rank's pending data. ended: its process is gone, and it is the rank's last window. */
void nt_tracker_send(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t end_ns, bool ended);

/* The entry of the rank's key, which the rank joins if necessary. NULL: no free slot, counted. */
struct nt_tracker_key *nt_tracker_join_key(struct nt_tracker *tracker, struct nt_rank *rank);
/* The rank is removed, or no longer sent. */
void nt_tracker_leave_key(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t now_ns);
void nt_tracker_free_key(struct nt_tracker *tracker, struct nt_tracker_key *key);
void nt_tracker_free_keys(struct nt_tracker *tracker);
/* Names the rank by what is now known of its process. */
void nt_tracker_name(struct nt_rank *rank);
/* Keys and names the rank, whose tenant is decided, and joins the key as above. */
struct nt_tracker_key *nt_tracker_fix_key(struct nt_tracker *tracker, struct nt_rank *rank);
/* All data of the key's ranks before this time has been sent. */
uint64_t nt_tracker_watermark(const struct nt_tracker_key *key, uint64_t now_ns);

/*
 * agent/tracker/tracker_tenant.c: looks up the placement again, and decides the tenant if that is
 * known, or must be. True: it is decided.
 */
bool nt_tracker_settle(struct nt_tracker *tracker, struct nt_process *process, bool must);
/* Holds the window until the tenant is known. False: no room. */
bool nt_tracker_hold(struct nt_tracker *tracker, struct nt_rank *rank,
		     const struct nt_window *window);
/* Hands out held windows whose tenant is known, or did not come in time. */
void nt_tracker_release(struct nt_tracker *tracker, uint64_t now_ns);
/* The same of one process, whose tenant is decided now. */
void nt_tracker_release_one(struct nt_tracker *tracker, struct nt_process *process);
/* Frees the held windows of a process. */
void nt_tracker_discard(struct nt_tracker *tracker, struct nt_process *process);

/* agent/tracker/tracker_call.c: takes an event of a known process, of a valid row. */
void nt_tracker_give(struct nt_tracker *tracker, struct nt_process *process,
		     const struct nt_event_call *call, const uint8_t *id);

/* agent/tracker/tracker_unprobed.c: the main thread is inside a probed call. */
void nt_tracker_inside_main(struct nt_process *process, uint64_t now_ns);

/* agent/tracker/tracker_process.c: the candidate of this pid; NULL: not reported. */
struct nt_tracker_candidate *nt_tracker_find_candidate(const struct nt_tracker *tracker,
						       uint32_t pid);
/* Begins to watch the candidate's process, if its owner gets a slot. */
void nt_tracker_watch(struct nt_tracker *tracker, struct nt_tracker_candidate *candidate,
		      bool called);
void nt_tracker_free_process(struct nt_tracker *tracker, struct nt_process *process);
/* Copies the candidate's libraries to its process, which must exist. */
void nt_tracker_set_libraries(const struct nt_tracker_candidate *candidate);
/* Sends the open windows of its ranks. ended: these are their last windows. */
void nt_tracker_send_rest(struct nt_tracker *tracker, struct nt_process *process, uint64_t boot_ns,
			  bool ended);
/* Call numbers of its communicators start anew: earlier ones no longer match. */
void nt_tracker_lose_numbers(struct nt_tracker *tracker, struct nt_process *process);
/* Events of this process are lost: its numbers and sums are no longer reliable. */
void nt_tracker_lose(struct nt_tracker *tracker, struct nt_process *process, uint64_t events);

/* The process that makes a call, given a slot if necessary. NULL: unknown, or no free slot. */
void nt_tracker_called(struct nt_tracker *tracker, struct nt_process *process);
struct nt_process *nt_tracker_caller(struct nt_tracker *tracker, uint32_t pid, uint64_t now_ns,
				     bool *ret_is_known);

/* Evicts and frees the process, which gets no slot again for half a minute. */
void nt_tracker_give_up(struct nt_tracker *tracker, struct nt_process *process);

struct nt_process *nt_tracker_process(const struct nt_tracker *tracker, uint32_t pid);

/*
 * agent/tracker/tracker_orphan.c: holds an event of an unknown process, or counts it as foreign.
 * Returns whether any of a pid are held. Passes the held events to a process, in order.
 */
void nt_tracker_keep(struct nt_tracker *tracker, const struct nt_event_call *call,
		     const uint8_t *id);
bool nt_tracker_keeps(const struct nt_tracker *tracker, uint32_t pid);
void nt_tracker_claim(struct nt_tracker *tracker, struct nt_process *process);
int nt_tracker_open_orphans(struct nt_tracker_orphans *orphans);
void nt_tracker_free_orphans(struct nt_tracker_orphans *orphans);

/* agent/tracker/tracker_gpu.c: of that id and rank in it, and with a rank here; NULL: none. */
struct nt_communicator *nt_tracker_comm(const struct nt_process *process, uint64_t id,
					uint32_t comm_rank);
/* agent/tracker/tracker_transfer.c: false: it is of records, and not of transfers. */
bool nt_tracker_take_transfers(struct nt_tracker *tracker, const struct nt_process *process,
			       const struct nt_event_gpu *batch);
/* agent/tracker/tracker_gpu.c: adds those of a process that is measured now. */
void nt_tracker_add_completion(struct nt_tracker_stats *sum, const struct nt_rank *rank);
void nt_tracker_add_gpu_records(struct nt_tracker_stats *sum, const struct nt_gpu_records *records);

/*
 * agent/tracker/tracker_heap.c: takes the record of a call that allocates or frees device memory; a
 * thread has set its device. Some calls are not observed; `shed` is what is not from now on.
 */
void nt_tracker_memory(struct nt_tracker *tracker, struct nt_process *process,
		       const struct nt_probe *probe, const struct nt_event_call *call);
void nt_tracker_set_device(struct nt_process *process, const struct nt_event_call *call);
void nt_tracker_lose_heap(const struct nt_tracker *tracker, struct nt_process *process);
void nt_tracker_shed_heap(const struct nt_tracker *tracker, struct nt_process *process,
			  uint32_t shed);
/* Decides what of the heap is sent with the rank's window. */
/* Of those that wait for a window. */
void nt_tracker_drop_profile(struct nt_process *process, uint32_t index);
void nt_tracker_report_heap(const struct nt_tracker *tracker, struct nt_rank *rank,
			    struct nt_window_context *context);
void nt_tracker_add_heap(struct nt_tracker_stats *sum, const struct nt_gpu_heap *heap);

/*
 * agent/tracker/tracker_detail.c: records a call of a process at level L1, which is no collective or
 * the like; records such a call, whose number is 0 if it was captured. Sends what is due, or all.
 */
void nt_tracker_detail_call(struct nt_tracker *tracker, struct nt_process *process,
			    const struct nt_probe *probe, const struct nt_event_call *call);
void nt_tracker_detail_comm(struct nt_tracker *tracker, struct nt_rank *rank,
			    const struct nt_probe *probe, const struct nt_event_call *call,
			    const struct nt_communicator *comm,
			    const struct nt_communicator_call *made, uint64_t number);
void nt_tracker_tick_details(struct nt_tracker *tracker, struct nt_process *process,
			     uint64_t now_ns);
void nt_tracker_end_details(struct nt_tracker *tracker, struct nt_process *process,
			    uint64_t now_ns);
void nt_tracker_drop_details(struct nt_tracker *tracker, struct nt_process *process);

/*
 * agent/tracker/tracker_graph.c: captures, and launches of what was captured. True: the call, or
 * the order of the streams, is captured and has no effect now.
 */
bool nt_tracker_captured(struct nt_process *process, const struct nt_probe *probe,
			 const struct nt_event_call *call, const struct nt_communicator *comm,
			 const struct nt_communicator_call *made);
bool nt_tracker_captured_order(struct nt_process *process, const struct nt_probe *probe,
			       const struct nt_event_call *call);
/* A call that begins or ends a capture, or creates or changes a graph. */
void nt_tracker_graph(struct nt_tracker *tracker, struct nt_process *process,
		      const struct nt_probe *probe, const struct nt_event_call *call);
/* False: the graph's contents are unknown. thread: NULL at the cap. */
bool nt_tracker_graph_launch(struct nt_tracker *tracker, struct nt_process *process,
			     struct nt_thread *thread, const struct nt_probe *probe,
			     const struct nt_event_call *call);

#endif
