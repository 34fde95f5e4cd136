/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The probe programs of all libraries, with separate links for entries and returns. The agent loads
 * them for perf links (5.15) or for uprobe.multi (6.6); see docs/probes.md.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/event.h"

#include "bpf/call.bpf.h"
#include "bpf/event_query.bpf.h"
#include "bpf/gc_span.bpf.h"
#include "bpf/gemm.bpf.h"
#include "bpf/gpu_batch.bpf.h"
#include "bpf/life.bpf.h"
#include "bpf/memory.bpf.h"
#include "bpf/traffic.bpf.h"
#include "bpf/verbs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Hot: a call that is only counted. */
SEC("uprobe")
int call_count(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 counter = NT_COOKIE_COUNTER(cookie);

	if (is_passed_over(cookie))
		return 0;
	count(ctx, cookie);
	if (counter == NT_COUNTER_LAUNCH + 1 || counter == NT_COUNTER_DRIVER_LAUNCH + 1)
		launched(counter - 1);
	if (is_detailed() && counter)
		detail_call(detail_class(counter - 1) << 16 | NT_COOKIE_ROW(cookie), 0, 0,
			    NT_COOKIE_BYTES(cookie)
				    ? register_word(ctx, NT_COOKIE_BYTES(cookie) - 1)
				    : 0,
			    register_word(ctx, 0));
	return 0;
}

SEC("uprobe")
int call_entry(struct pt_regs *ctx)
{
	call_seen(ctx);
	return 0;
}

SEC("uprobe")
int call_enter(struct pt_regs *ctx)
{
	call_entered(ctx, true);
	return 0;
}

SEC("uretprobe")
int call_leave(struct pt_regs *ctx)
{
	call_returned(ctx, true);
	return 0;
}

/* Of device memory. */
SEC("uprobe")
int memory_enter(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);

	if (is_passed_over(cookie))
		return 0;
	memory_entered(ctx, cookie);
	if (NT_COOKIE_LONG_ONLY(cookie))
		call_entered(ctx, false);
	return 0;
}

SEC("uretprobe")
int memory_leave(struct pt_regs *ctx)
{
	memory_returned(ctx);
	if (NT_COOKIE_LONG_ONLY(bpf_get_attach_cookie(ctx)))
		call_returned(ctx, false);
	return 0;
}

SEC("uprobe")
int gemm_enter(struct pt_regs *ctx)
{
	gemm_entered(ctx);
	return 0;
}

SEC("uretprobe")
int gemm_leave(struct pt_regs *ctx)
{
	gemm_returned(ctx);
	return 0;
}

SEC("uprobe")
int span_begin(struct pt_regs *ctx)
{
	span_begins(ctx);
	return 0;
}

/* At a mark or at the return of a function. */
SEC("uprobe")
int span_end(struct pt_regs *ctx)
{
	span_ends(ctx);
	return 0;
}

SEC("uprobe")
int gpu_batch(struct pt_regs *ctx)
{
	batch_seen(ctx);
	return 0;
}

SEC("uprobe")
int query_begin(struct pt_regs *ctx)
{
	query_begins(ctx);
	return 0;
}

SEC("uretprobe")
int query_end(struct pt_regs *ctx)
{
	query_ends(ctx);
	return 0;
}

SEC("uprobe")
int verbs_enter(struct pt_regs *ctx)
{
	verbs_begun(ctx);
	return 0;
}

SEC("uretprobe")
int verbs_leave(struct pt_regs *ctx)
{
	verbs_returned(ctx);
	return 0;
}

SEC("uprobe")
int traffic_post(struct pt_regs *ctx)
{
	posts(ctx);
	return 0;
}

/* Hot: most polls find nothing. */
SEC("uprobe")
int traffic_poll_begin(struct pt_regs *ctx)
{
	poll_begins(ctx);
	return 0;
}

SEC("uretprobe")
int traffic_poll_end(struct pt_regs *ctx)
{
	poll_ends(ctx);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int process_exit(void *ctx)
{
	process_exits();
	return 0;
}

SEC("raw_tp/sched_process_exec")
int process_exec(void *ctx)
{
	process_execs();
	return 0;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int signal, struct kernel_siginfo *info, struct task_struct *task)
{
	signal_sent(signal, task);
	return 0;
}

SEC("iter/task")
int inside_dump(struct bpf_iter__task *ctx)
{
	dump_inside(ctx->meta->seq, ctx->task);
	return 0;
}
