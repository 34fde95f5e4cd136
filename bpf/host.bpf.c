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
#include "bpf/host_switch.bpf.h"
#include "bpf/host_wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	FLAG_IO_WORKER = 0x10, /* a thread of io_uring, which is not the process's own work */
};

/* ---- the scheduler -------------------------------------------------------------------------- */

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	switched(is_preempted, prev, next, state);
	return 0;
}

/* A process that a rank forks, such as a worker of a data loader, is its helper. */
static __always_inline void fork_helper(const struct nt_host_member *parent, __u32 tgid)
{
	struct nt_host_member helper = {.slot = parent->slot, .is_helper = 1};
	struct nt_host_process *process = process_at(parent->slot);

	if (!process)
		return;
	if (process->helpers >= NT_HOST_HELPERS ||
	    bpf_map_update_elem(&members, &tgid, &helper, BPF_NOEXIST) != 0) {
		__sync_fetch_and_add(&helpers_over_cap, 1);
		return;
	}
	__sync_fetch_and_add(&process->helpers, 1);
	add_thread(tgid, tgid, &helper);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	const struct task_struct___host *by = (const void *)parent, *made = (const void *)child;
	__u32 parent_tgid = (__u32)by->tgid, tgid = (__u32)made->tgid;
	struct nt_host_member *member = bpf_map_lookup_elem(&members, &parent_tgid);

	hit();
	if (!member || made->flags & FLAG_IO_WORKER)
		return 0;
	if (tgid != parent_tgid)
		fork_helper(member, tgid);
	else
		add_thread((__u32)made->pid, tgid, member);
	return 0;
}

static __always_inline void add_times(struct nt_host_times *sum, const struct nt_host_times *of)
{
	__u64 *to = (__u64 *)sum;
	const __u64 *from = (const __u64 *)of;

	for (int i = 0; i < (int)(sizeof(*sum) / sizeof(*to)); i++)
		if (from[i])
			__sync_fetch_and_add(&to[i], from[i]);
}

/* Its last wait is settled here: it leaves the CPU once more, but is not observed any more. */
SEC("raw_tp/sched_process_exit")
int sched_process_exit(void *ctx)
{
	const struct task_struct___host *task = (const void *)bpf_get_current_task_btf();
	struct nt_host_thread *thread = current_thread();
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), tgid = bpf_get_current_pid_tgid() >> 32;
	struct nt_host_process *process;
	bool is_helper;

	hit();
	if (!thread)
		return 0;
	is_helper = thread->is_helper;
	process = process_at(thread->slot);
	if (process) {
		settle_wait(thread, process, task);
		if (!is_helper)
			add_times(&process->ended, &thread->times);
	}
	bpf_map_delete_elem(&threads, &tid);
	if (task->signal->live.counter != 0)
		return 0;
	if (process && is_helper && process->helpers)
		__sync_fetch_and_add(&process->helpers, -1);
	bpf_map_delete_elem(&members, &tgid);
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
	request_begins(ctx->args[0]);
	return 0;
}

SEC("raw_tp/block_rq_insert")
int block_insert(struct bpf_raw_tracepoint_args *ctx)
{
	request_begins(ctx->args[0]);
	return 0;
}

SEC("raw_tp/block_rq_issue")
int block_issue(struct bpf_raw_tracepoint_args *ctx)
{
	request_begins(ctx->args[0]);
	return 0;
}

SEC("raw_tp/block_rq_complete")
int block_complete(struct bpf_raw_tracepoint_args *ctx)
{
	request_ends(ctx->args[0]);
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
