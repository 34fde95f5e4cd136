/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * When matrix multiplications ran on the host, while the kernels of the process are reported with
 * the calls that enqueued them: the agent finds out which of those were made inside. No other event
 * has to stand back for these: they take the first quarter of the ring alone.
 */
#ifndef NT_BPF_GEMM_TIME_BPF_H
#define NT_BPF_GEMM_TIME_BPF_H

#include "bpf/emit.bpf.h"

/* Of a process. Races between its threads cost an event, or send one more. */
struct gemm_watch {
	__u64 until_ns; /* boot time */
	__u64 period;
	__u32 spans; /* sent in the period */
	__u32 lost; /* so far */
};

/* With the leader, from the first batch of such records on; freed with that task. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct gemm_watch);
} gemm_watches SEC(".maps");

/* A batch is about to be sent. Later by a part than the agent relies on: it is sent in between. */
static __always_inline struct gemm_watch *gemms_watched(void)
{
	struct gemm_watch *watch =
		bpf_task_storage_get(&gemm_watches, bpf_get_current_task_btf()->group_leader, 0,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (watch)
		watch->until_ns = bpf_ktime_get_boot_ns() + NT_GEMM_WATCH_NS + NT_GEMM_WATCH_NS / 8;
	return watch;
}

static __always_inline __u32 thread_of(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return (__u32)task->thread.fsbase;
#else
	return 0;
#endif
}

/* Of a call that is counted and returns. Not static, so that the verifier checks it once. */
__noinline int gemm_span(__u64 entry_ns, __u32 row)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct gemm_watch *watch = bpf_task_storage_get(&gemm_watches, task->group_leader, 0, 0);
	__u64 now = bpf_ktime_get_boot_ns(), period = now >> NT_GEMM_PERIOD_SHIFT, flags;
	struct nt_event_gemm *e = NULL;

	if (!watch || now >= watch->until_ns)
		return 0;
	if (watch->period != period) {
		watch->period = period;
		watch->spans = 0;
	}
	if (watch->spans < NT_GEMM_SPANS_MOST &&
	    bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < wakeup_bytes * FREE_PART &&
	    nt_room(sizeof(*e), &flags))
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&watch->lost, 1);
		__sync_fetch_and_add(&dropped[NT_EVENT_GEMM], 1);
		return 0;
	}
	watch->spans++;
	e->h.type = NT_EVENT_GEMM;
	e->h.size = sizeof(*e);
	e->h.row = (__u16)row;
	e->h.flags = 0;
	e->h.pid = bpf_get_current_pid_tgid() >> 32;
	e->h.tid = (__u32)bpf_get_current_pid_tgid();
	e->h.entry_ns = entry_ns;
	e->ret_ns = now;
	e->thread = thread_of(task);
	e->unused = 0;
	bpf_ringbuf_submit(e, flags);
	return 0;
}

#endif
