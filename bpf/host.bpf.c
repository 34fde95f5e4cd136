/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * System events of ranks, from tracepoints alone: kernels without kprobes have them too. The agent
 * loads those programs whose tracepoint the kernel has.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/host_event.h"

#include "bpf/host_kernel.bpf.h"
#include "bpf/host_kernel_work.bpf.h"
#include "bpf/host_maps.bpf.h"
#include "bpf/host_members.bpf.h"
#include "bpf/host_switch.bpf.h"
#include "bpf/host_wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- the scheduler -------------------------------------------------------------------------- */

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	switched(is_preempted, prev, next, state);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	task_forks(parent, child);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int sched_process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	thread_execs((__u32)ctx->args[1]);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int sched_process_exit(void *ctx)
{
	thread_exits();
	return 0;
}

/* ---- memory --------------------------------------------------------------------------------- */

SEC("raw_tp/mm_vmscan_direct_reclaim_begin")
int reclaim_begin(void *ctx)
{
	reclaim_begins();
	return 0;
}

SEC("raw_tp/mm_vmscan_direct_reclaim_end")
int reclaim_end(void *ctx)
{
	reclaim_ends();
	return 0;
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_begin")
int memcg_begin(void *ctx)
{
	reclaim_begins();
	return 0;
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_end")
int memcg_end(void *ctx)
{
	reclaim_ends();
	return 0;
}

SEC("raw_tp/mm_compaction_begin")
int compaction_begin(void *ctx)
{
	compaction_begins();
	return 0;
}

SEC("raw_tp/mm_compaction_end")
int compaction_end(void *ctx)
{
	compaction_ends();
	return 0;
}

SEC("raw_tp/mark_victim")
int mark_victim(struct bpf_raw_tracepoint_args *ctx)
{
	victim_marked(ctx->args[0]);
	return 0;
}

/* ---- devices -------------------------------------------------------------------------------- */

SEC("raw_tp/dma_fence_wait_start")
int fence_begin(void *ctx)
{
	fence_wait(true);
	return 0;
}

SEC("raw_tp/dma_fence_wait_end")
int fence_end(void *ctx)
{
	fence_wait(false);
	return 0;
}

/* From 6.4 on; before, a request is seen when it is queued or issued. */
SEC("raw_tp/block_io_start")
int block_start(struct bpf_raw_tracepoint_args *ctx)
{
	request_starts(ctx->args[0]);
	return 0;
}

SEC("raw_tp/block_rq_insert")
int block_insert(struct bpf_raw_tracepoint_args *ctx)
{
	request_is_seen(ctx->args[0]);
	return 0;
}

SEC("raw_tp/block_rq_issue")
int block_issue(struct bpf_raw_tracepoint_args *ctx)
{
	request_is_seen(ctx->args[0]);
	return 0;
}

/* It became a part of another one, and has no end of its own. */
SEC("raw_tp/block_rq_merge")
int block_merge(struct bpf_raw_tracepoint_args *ctx)
{
	request_is_gone(ctx->args[0]);
	return 0;
}

SEC("raw_tp/block_rq_complete")
int block_complete(struct bpf_raw_tracepoint_args *ctx)
{
	request_ends(ctx->args[0], (__u32)ctx->args[2]);
	return 0;
}

/* ---- TCP ------------------------------------------------------------------------------------ */

SEC("raw_tp/inet_sock_set_state")
int socket_state(struct bpf_raw_tracepoint_args *ctx)
{
	socket_changes(ctx->args[0], (int)ctx->args[2]);
	return 0;
}

/* As the process takes what has come. */
SEC("raw_tp/tcp_rcv_space_adjust")
int socket_receive(struct bpf_raw_tracepoint_args *ctx)
{
	socket_used(ctx->args[0]);
	return 0;
}

/* From 6.3 on. */
SEC("raw_tp/sock_send_length")
int socket_send(struct bpf_raw_tracepoint_args *ctx)
{
	socket_used(ctx->args[0]);
	return 0;
}

SEC("raw_tp/tcp_retransmit_skb")
int tcp_retransmit(struct bpf_raw_tracepoint_args *ctx)
{
	tcp_event(ctx->args[0], NT_HOST_EVENT_RETRANSMIT, true);
	return 0;
}

SEC("raw_tp/tcp_send_reset")
int tcp_reset_sent(struct bpf_raw_tracepoint_args *ctx)
{
	tcp_event(ctx->args[0], NT_HOST_EVENT_RESET, true);
	return 0;
}

SEC("raw_tp/tcp_receive_reset")
int tcp_reset_received(struct bpf_raw_tracepoint_args *ctx)
{
	tcp_event(ctx->args[0], NT_HOST_EVENT_RESET, false);
	return 0;
}

/* ---- interrupts ----------------------------------------------------------------------------- */

SEC("raw_tp/irq_handler_entry")
int irq_entry(void *ctx)
{
	irq_begins();
	return 0;
}

SEC("raw_tp/irq_handler_exit")
int irq_exit(void *ctx)
{
	irq_ends();
	return 0;
}

SEC("raw_tp/softirq_entry")
int softirq_begin(void *ctx)
{
	irq_begins();
	return 0;
}

SEC("raw_tp/softirq_exit")
int softirq_end(void *ctx)
{
	irq_ends();
	return 0;
}
