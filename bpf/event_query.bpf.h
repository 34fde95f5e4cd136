/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Queries of CUDA events: how far the GPU of a process is, as its own program finds out. A query
 * may be polled in a loop, so not each makes an event. These do:
 *
 * - the first that finds an event complete. A further one only after RESTS_NS, in which a program
 *   that records the event again gets no farther than later events show;
 * - of those that find an event pending, one in RESTS_NS for the whole process.
 */
#ifndef NT_BPF_EVENT_QUERY_BPF_H
#define NT_BPF_EVENT_QUERY_BPF_H

#include "bpf/call.bpf.h"

enum {
	QUERY_SLOTS = 64, /* a power of two */
	RESTS_NS = 1000000,
	/* enum cudaError, enum CUresult */
	CUDA_SUCCESS = 0,
	CUDA_NOT_READY = 600,
};

/* The last query of one event; another event of the same hash takes the slot. */
struct query_slot {
	__u64 event;
	__u64 complete_ns; /* when it was sent that the event is complete; 0: pending, or never */
};

/* Of a process, with the leader of its thread group. Races between its threads cost an event. */
struct process_queries {
	__u64 queries; /* so far */
	__u64 pending_sent_ns;
	struct query_slot slot[QUERY_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct process_queries);
} queries SEC(".maps");

/* The event that a thread asks about; 0: none. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} asked SEC(".maps");

/* No call is lost with it. */
static __always_inline void query_lost(void)
{
	__sync_fetch_and_add(&dropped[NT_EVENT_QUERY], 1);
}

static __always_inline void query_begins(struct pt_regs *ctx)
{
	__u64 *event = bpf_task_storage_get(&asked, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (event)
		*event = PT_REGS_PARM1(ctx);
	else
		query_lost();
}

static __always_inline struct query_slot *slot_of(struct process_queries *process, __u64 event)
{
	/* Handles are addresses: their low bits are alike. */
	__u32 at = (__u32)((event * 0x9e3779b97f4a7c15ULL) >> 58) & (QUERY_SLOTS - 1);
	struct query_slot *slot = &process->slot[at];

	if (slot->event != event) {
		slot->event = event;
		slot->complete_ns = 0;
	}
	return slot;
}

static __always_inline void send_query(__u16 row, __u64 event, __u64 count_so_far, bool is_complete,
				       __u64 now_ns)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), flags;
	struct nt_event_query *e = NULL;

	if (nt_room(sizeof(*e), &flags))
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		query_lost();
		return;
	}
	e->h.type = NT_EVENT_QUERY;
	e->h.size = sizeof(*e);
	e->h.row = row;
	e->h.flags = is_complete ? NT_QUERY_COMPLETE : 0;
	e->h.pid = pid_tgid >> 32;
	e->h.tid = (__u32)pid_tgid;
	e->h.entry_ns = now_ns;
	e->event = event;
	e->queries = count_so_far;
	bpf_ringbuf_submit(e, flags);
}

static __always_inline void query_ends(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 *of_thread = bpf_task_storage_get(&asked, task, 0, 0);
	__u64 now = bpf_ktime_get_boot_ns(), event;
	__u32 result = (__u32)PT_REGS_RC(ctx);
	struct process_queries *process;
	struct query_slot *slot;

	if (!of_thread || !*of_thread)
		return;
	event = *of_thread;
	*of_thread = 0;
	if (result != CUDA_SUCCESS && result != CUDA_NOT_READY)
		return;
	process = bpf_task_storage_get(&queries, task->group_leader, 0,
				       BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* Without memory, or when threads of the process ask for the storage at once. */
	if (!process) {
		query_lost();
		return;
	}
	__sync_fetch_and_add(&process->queries, 1);
	slot = slot_of(process, event);
	if (result == CUDA_NOT_READY) {
		slot->complete_ns = 0;
		if (now - process->pending_sent_ns < RESTS_NS)
			return;
		process->pending_sent_ns = now;
	} else {
		if (slot->complete_ns && now - slot->complete_ns < RESTS_NS)
			return;
		slot->complete_ns = now;
	}
	send_query(NT_COOKIE_ROW(bpf_get_attach_cookie(ctx)), event, process->queries,
		   result == CUDA_SUCCESS, now);
}

#endif
