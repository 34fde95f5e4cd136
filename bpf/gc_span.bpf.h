/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Time spans of which only the sum is recorded, between a begin mark and an end mark. They make no
 * events; count and nanoseconds are added to the process (bpf/event.h).
 */
#ifndef NT_BPF_GC_SPAN_BPF_H
#define NT_BPF_GC_SPAN_BPF_H

#include "bpf/call.bpf.h"

/* Unmeasured: ends without a begin, and nested spans. */
__u64 unmeasured;

struct gc_span {
	__u64 begin_ns; /* boot time; 0: no span */
	__u64 sp;
	__u64 nested; /* spans within this one that have not ended */
};

/* Of a thread, from its first span on. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct gc_span);
} spans SEC(".maps");

static __always_inline void span_begins(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct gc_span *span =
		bpf_task_storage_get(&spans, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!span) {
		__sync_fetch_and_add(&unmeasured, 1);
		return;
	}
	/* A span whose end was missed is detected as in `inside`, and dropped. */
	if (span->begin_ns && PT_REGS_SP(ctx) < span->sp) {
		span->nested++;
		__sync_fetch_and_add(&unmeasured, 1);
		return;
	}
	span->sp = PT_REGS_SP(ctx);
	span->nested = 0;
	span->begin_ns = bpf_ktime_get_boot_ns();
}

/* Ignores the stack: begin and end of a span may be marks at different depths of a function. */
static __always_inline void span_ends(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct gc_span *span = bpf_task_storage_get(&spans, task, 0, 0);
	__u32 counter = NT_COOKIE_COUNTER(bpf_get_attach_cookie(ctx));

	if (!span || !span->begin_ns) {
		__sync_fetch_and_add(&unmeasured, 1);
		return;
	}
	if (span->nested) {
		span->nested--;
		return;
	}
	if (counter)
		counter_add(counter - 1, now - span->begin_ns);
	span->begin_ns = 0;
}

#endif
