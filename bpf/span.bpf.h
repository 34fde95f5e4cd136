/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stretches of time of which only the sum is wanted: a mark where one begins, another where it ends.
 * They make no events; counter and nanoseconds are the process's (bpf/event.h).
 */
#ifndef NT_BPF_SPAN_BPF_H
#define NT_BPF_SPAN_BPF_H

#include "bpf/call.bpf.h"

/* Ends without a begin, and spans within another: not measured. */
__u64 unmeasured;

struct span {
	__u64 begin_ns; /* boot time; 0: the thread is in none */
	__u64 sp;
	__u64 nested; /* spans within this one that have not ended */
};

/* Key: pid << 32 | tid. Made by a thread's first span and used again; else as `inside`. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct span);
} spans SEC(".maps");

static const struct span no_span;

static __always_inline void span_begins(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct span *span = bpf_map_lookup_elem(&spans, &pid_tgid);

	if (!span) {
		bpf_map_update_elem(&spans, &pid_tgid, &no_span, BPF_ANY);
		span = bpf_map_lookup_elem(&spans, &pid_tgid);
		if (!span) {
			__sync_fetch_and_add(&unmeasured, 1);
			return;
		}
	}
	/* One whose end was never seen is found out as in `inside`, and forgotten. */
	if (span->begin_ns && PT_REGS_SP(ctx) < span->sp) {
		span->nested++;
		__sync_fetch_and_add(&unmeasured, 1);
		return;
	}
	span->sp = PT_REGS_SP(ctx);
	span->nested = 0;
	span->begin_ns = bpf_ktime_get_boot_ns();
}

/* No look at the stack: begin and end of one may be marks at different depths of a function. */
static __always_inline void span_ends(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct span *span = bpf_map_lookup_elem(&spans, &pid_tgid);
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
		counter_add(pid_tgid, counter - 1, now - span->begin_ns);
	span->begin_ns = 0;
}

#endif
