/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Single calls of processes at level L1 that are else only counted: launches, asynchronous copies,
 * allocations of host memory, and synchronising calls that are too short for an event. They have a
 * ring of their own, so no flood of them takes room from other events. The agent reads it with each
 * of its ticks and is never woken.
 */
#ifndef NT_BPF_DETAIL_BPF_H
#define NT_BPF_DETAIL_BPF_H

/* The agent sizes it before load. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} detail_events SEC(".maps");

/* By thread group leader: written by the agent, deleted by it, by exec, or with the task. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_detail_limits);
} detail_limits SEC(".maps");

/* The same, written here. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_detail_rates);
} detail_rates SEC(".maps");

/* Processes of the node in detail_limits, written by the agent. 0: no call costs more than this. */
__u32 detailed;

_Static_assert((NT_DETAIL_CLASSES & (NT_DETAIL_CLASSES - 1)) == 0, "a mask keeps to the classes");

static __always_inline bool is_detailed(void)
{
	return *(volatile __u32 *)&detailed;
}

static __always_inline __u32 detail_class(__u32 counter)
{
	switch (counter) {
	case NT_COUNTER_LAUNCH:
	case NT_COUNTER_DRIVER_LAUNCH:
		return NT_DETAIL_LAUNCHES;
	case NT_COUNTER_COPY:
	case NT_COUNTER_DRIVER_COPY:
		return NT_DETAIL_COPIES;
	case NT_COUNTER_SYNC:
		return NT_DETAIL_SYNCS;
	default:
		return NT_DETAIL_ALLOCS;
	}
}

/*
 * A counted call of a process that may be at level L1. ret_ns 0: it is seen at its entry, and value
 * is its first word; else value is its result. Not static, so that the verifier checks it once.
 */
__noinline int detail_call(__u32 class_and_row, __u64 entry_ns, __u64 ret_ns, __u64 bytes,
			   __u64 value)
{
	struct task_struct *leader = bpf_get_current_task_btf()->group_leader;
	__u64 class = class_and_row >> 16 & (NT_DETAIL_CLASSES - 1);
	const struct nt_detail_limits *limits = bpf_task_storage_get(&detail_limits, leader, 0, 0);
	struct nt_detail_rates *rates;
	struct nt_detail_rate *rate;
	struct nt_event_detail *e;
	__u32 threshold = 0;
	__u64 now;

	if (!limits)
		return 0;
	rates = bpf_task_storage_get(&detail_rates, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!rates) {
		__sync_fetch_and_add(&dropped[NT_EVENT_DETAIL], 1);
		return 0;
	}
	/* Verifiers up to 6.1 know no limit that the compiler has moved: it is masked where it is used. */
	barrier_var(class);
	class &= NT_DETAIL_CLASSES - 1;
	rate = &rates->of[class];
	now = ret_ns ? ret_ns : bpf_ktime_get_boot_ns();
	if (nt_detail_draw(rate, now >> NT_DETAIL_SHIFT, limits->most[class], bpf_get_prandom_u32(),
			   &threshold) != NT_DETAIL_TAKE)
		return 0;
	e = bpf_ringbuf_reserve(&detail_events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&dropped[NT_EVENT_DETAIL], 1);
		__sync_fetch_and_add(&rate->lost, nt_detail_stands_for(threshold));
		return 0;
	}
	__sync_fetch_and_add(&rates->sent, 1);
	e->h.type = NT_EVENT_DETAIL;
	e->h.size = sizeof(*e);
	e->h.row = (__u16)class_and_row;
	e->h.flags = ret_ns ? NT_CALL_RETURNED : 0;
	e->h.pid = bpf_get_current_pid_tgid() >> 32;
	e->h.tid = (__u32)bpf_get_current_pid_tgid();
	e->h.entry_ns = ret_ns ? entry_ns : now;
	e->ret_ns = ret_ns;
	e->bytes = bytes;
	e->value = value;
	e->threshold = threshold;
	e->class = (__u32) class;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
