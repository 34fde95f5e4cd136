/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Context switches: where the time of a rank's thread goes, and who has the CPU while it is runnable.
 *
 * No program runs at wakeups, which are as frequent as switches. A thread that was woken shows at its
 * next switch how long it was in the run queue: the kernel keeps that sum. Who had the CPU before it
 * is kept until then.
 */
#ifndef NT_BPF_HOST_SWITCH_BPF_H
#define NT_BPF_HOST_SWITCH_BPF_H

#include "bpf/host_maps.bpf.h"
#include "bpf/host_wait.bpf.h"

enum {
	SHORT_NS = 20000, /* a task that had the CPU for less is not named */
};

/* ---- who took the CPU ----------------------------------------------------------------------- */

static __always_inline void name_taker(struct nt_host_taker *taker, struct task_struct *task)
{
	const struct task_struct___host *host = (const void *)task;

	taker->tgid = (__u32)host->tgid;
	bpf_probe_read_kernel(taker->comm, sizeof(taker->comm), host->comm);
}

/* If all places are taken, the smallest is given up for a larger one. */
static __always_inline void charge_taker(struct nt_host_process *process,
					 const struct nt_host_taker *from, __u64 ns)
{
	struct nt_host_taker *bank = process->taker[process->bank & 1], *least = bank;

	if (!from->tgid || !ns)
		return;
	for (int i = 0; i < NT_HOST_TAKERS; i++) {
		struct nt_host_taker *taker = &bank[i];

		if (taker->tgid == from->tgid) {
			__sync_fetch_and_add(&taker->ns, ns);
			return;
		}
		if (taker->ns < least->ns)
			least = taker;
	}
	if (least->tgid) {
		__sync_fetch_and_add(&process->takers_dropped, 1);
		if (least->ns >= ns)
			return;
	}
	__builtin_memcpy(least->comm, from->comm, sizeof(least->comm));
	least->tgid = from->tgid;
	least->ns = ns;
}

/* How long the task that leaves the CPU had it: by the scheduler's clock. */
static __always_inline __u64 stint_of(struct task_struct *task)
{
	const struct task_struct___host *host = (const void *)task;
	const __u64 ran = host->se.sum_exec_runtime, before = host->se.prev_sum_exec_runtime;

	return host->tgid && ran > before ? ran - before : 0;
}

/* A begin from before the programs were attached has lost its end. */
static __always_inline bool in_fence(const struct nt_host_thread *thread)
{
	return thread->fence_since > work_since_ns;
}

/* ---- quotas --------------------------------------------------------------------------------- */

static __always_inline bool is_throttled(const struct task_struct___host *task)
{
	struct cfs_rq *queue;

	if (!bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(struct cfs_rq, throttle_count))
		return false;
	queue = task->se.cfs_rq;
	return queue && queue->throttle_count > 0;
}

/* For how long the thread's group was throttled on its CPU, so far. */
static __always_inline __u64 frozen_of(const struct task_struct___host *task)
{
	struct cfs_rq *queue;

	if (!bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(struct cfs_rq, throttled_clock_pelt_time))
		return 0;
	queue = task->se.cfs_rq;
	return queue ? queue->throttled_clock_pelt_time : 0;
}

/* The part of a wait as runnable for which the quota was used up. */
static __always_inline __u64 quota_part(const struct nt_host_thread *thread,
					const struct task_struct___host *task, __u64 wait_ns)
{
	const __u64 frozen = frozen_of(task);
	__u64 part = 0;

	if (thread->is_throttled)
		return wait_ns;
	/* On another CPU the sum is another one. */
	if (thread->has_run && thread->cpu == bpf_get_smp_processor_id() &&
	    frozen > thread->frozen_seen)
		part = frozen - thread->frozen_seen;
	return part < wait_ns ? part : wait_ns;
}

/* ---- charging ------------------------------------------------------------------------------- */

static __always_inline void charge_wait(struct nt_host_thread *thread,
					struct nt_host_process *process, __u32 reason, __u64 ns)
{
	if (reason >= NT_HOST_WAITS)
		return;
	thread->times.wait_ns[reason] += ns;
	__sync_fetch_and_add(thread->is_helper ? &process->helper_wait_ns[reason]
					       : &process->wait_ns[reason],
			     ns);
}

/* A wait in the run queue. */
static __always_inline void charge_queue(struct nt_host_thread *thread,
					 struct nt_host_process *process,
					 const struct task_struct___host *task, __u64 wait_ns)
{
	const __u64 quota = quota_part(thread, task, wait_ns);
	const __u64 queue = wait_ns - quota;

	if (quota)
		charge_wait(thread, process, NT_HOST_WAIT_QUOTA, quota);
	if (!queue)
		return;
	charge_wait(thread, process, NT_HOST_WAIT_RUN_QUEUE, queue);
	if (!thread->is_helper)
		charge_taker(process, &thread->taker,
			     queue < thread->stint_ns ? queue : thread->stint_ns);
}

/* What the last wait was, now that the run queue's part of it is known. */
static __always_inline void settle_wait(struct nt_host_thread *thread,
					struct nt_host_process *process,
					const struct task_struct___host *task)
{
	const __u64 delay = task->sched_info.run_delay - thread->delay_seen;
	const __u64 queue = delay < thread->off_ns ? delay : thread->off_ns;

	if (!thread->off_ns)
		return;
	charge_wait(thread, process, thread->reason, thread->off_ns - queue);
	charge_queue(thread, process, task, queue);
	thread->off_ns = 0;
}

/* ---- between slices --------------------------------------------------------------------------- */

/* Its last switch is of an earlier slice: since then it may have made others. */
static __always_inline bool is_unseen(const struct nt_host_thread *thread)
{
	const __u64 last = thread->out_ns ? thread->out_ns : thread->in_ns;

	return last && last < slice_since_ns;
}

/* What is known of its last wait: the part in the earlier slice, or a wait whose delay is not known. */
static __always_inline void close_unseen(struct nt_host_thread *thread,
					 struct nt_host_process *process)
{
	charge_wait(thread, process, thread->reason,
		    thread->out_ns ? slice_since_ns - thread->out_ns : thread->off_ns);
	thread->off_ns = 0;
	thread->out_ns = 0;
	thread->in_ns = 0;
}

/* A thread that comes now has waited since the slice began: it is still in the call that it waits in. */
static __always_inline void open_unseen(struct nt_host_thread *thread, struct task_struct *task)
{
	const struct task_struct___host *host = (const void *)task;
	const bool is_io = BPF_CORE_READ_BITFIELD(host, in_iowait);

	thread->reason = wait_of(task, in_fence(thread), is_io ? STATE_UNINTERRUPTIBLE : 0);
	thread->is_throttled = 0;
	/* The delay of this wait is not part of the sum yet. */
	thread->delay_seen = host->sched_info.run_delay;
	thread->frozen_seen = frozen_of(host);
	thread->out_ns = slice_since_ns;
}

/* ---- leaving and coming ----------------------------------------------------------------------- */

static __always_inline void record_switch(struct nt_host_process *process, __u32 tid, __u64 now,
					  enum nt_host_event_kind kind, __u8 reason, __u64 ns,
					  struct task_struct *other)
{
	const struct task_struct___host *host = (const void *)other;
	struct nt_host_event *event = begin_event(process, now + unobserved_ns, kind);

	if (!event)
		return;
	event->tid = tid;
	event->reason = reason;
	event->value = ns;
	event->other = (__u32)host->tgid;
	bpf_probe_read_kernel(event->comm, sizeof(event->comm), host->comm);
	send_event(event);
}

static __always_inline __u64 irq_total(void)
{
	struct nt_host_cpu *cpu = irq_observed ? this_cpu() : NULL;

	return cpu ? cpu->irq_ns : 0;
}

static __always_inline void charge_run(struct nt_host_thread *thread, __u64 exec)
{
	const __u64 ran = exec - thread->exec_seen, irq = irq_total();
	__u64 stolen = irq > thread->irq_seen && thread->irq_seen ? irq - thread->irq_seen : 0;

	if (stolen > ran)
		stolen = ran;
	thread->times.on_cpu_ns += ran - stolen;
	thread->times.irq_ns += stolen;
}

static __always_inline void thread_leaves(struct nt_host_thread *thread, struct task_struct *task,
					  struct task_struct *next, bool is_preempted,
					  unsigned int state, __u64 now)
{
	const struct task_struct___host *host = (const void *)task;
	struct nt_host_process *process = process_at(thread->slot);
	const __u64 exec = host->se.sum_exec_runtime;
	__u64 in_ns;

	if (!process)
		return;
	if (is_unseen(thread))
		close_unseen(thread, process);
	in_ns = thread->in_ns;
	if (in_ns)
		charge_run(thread, exec);
	settle_wait(thread, process, host);
	thread->delay_seen = host->sched_info.run_delay;
	thread->frozen_seen = frozen_of(host);
	thread->is_throttled = 0;
	if (is_preempted || !state) {
		thread->reason = NT_HOST_WAIT_RUN_QUEUE;
		thread->is_throttled = is_throttled(host);
		thread->times.preempted++;
	} else {
		thread->reason = wait_of(task, in_fence(thread), state);
		thread->times.blocked++;
	}
	thread->in_ns = 0;
	thread->out_ns = now;
	if (is_recorded(process))
		record_switch(process, (__u32)host->pid, now, NT_HOST_EVENT_OUT, thread->reason,
			      in_ns ? now - in_ns : 0, next);
}

static __always_inline void note_place(struct nt_host_thread *thread)
{
	const __u32 cpu = bpf_get_smp_processor_id();
	__u32 node;

	if (thread->has_run && thread->cpu == cpu)
		return;
	node = (__u32)bpf_get_numa_node_id();
	if (thread->has_run) {
		thread->times.migrations++;
		thread->times.numa_moves += thread->node != node;
	}
	thread->cpu = cpu;
	thread->node = node;
	thread->has_run = 1;
}

static __always_inline void thread_comes(struct nt_host_thread *thread, struct task_struct *task,
					 struct task_struct *before, __u64 now)
{
	const struct task_struct___host *host = (const void *)task;
	struct nt_host_process *process = process_at(thread->slot);
	__u64 off_ns;

	if (!process)
		return;
	if (is_unseen(thread)) {
		close_unseen(thread, process);
		open_unseen(thread, task);
	}
	off_ns = thread->out_ns ? now - thread->out_ns : 0;
	thread->stint_ns = off_ns ? stint_of(before) : 0;
	thread->taker.tgid = 0;
	if (thread->stint_ns >= SHORT_NS)
		name_taker(&thread->taker, before);
	if (thread->reason == NT_HOST_WAIT_RUN_QUEUE && off_ns)
		charge_queue(thread, process, host, off_ns);
	else
		thread->off_ns = off_ns;
	note_place(thread);
	thread->exec_seen = host->se.sum_exec_runtime;
	thread->irq_seen = irq_total();
	thread->out_ns = 0;
	thread->in_ns = now;
	if (is_recorded(process))
		record_switch(process, (__u32)host->pid, now, NT_HOST_EVENT_IN, thread->reason,
			      off_ns, before);
}

static __always_inline void switched(bool is_preempted, struct task_struct *prev,
				     struct task_struct *next, unsigned int state)
{
	const __u32 from = (__u32)((const struct task_struct___host *)(const void *)prev)->pid;
	const __u32 to = (__u32)((const struct task_struct___host *)(const void *)next)->pid;
	struct nt_host_thread *thread = from ? bpf_map_lookup_elem(&threads, &from) : NULL;
	struct nt_host_cpu *cpu = this_cpu();

	if (!cpu)
		return;
	cpu->switches++;
	if (thread) {
		cpu->sides++;
		thread_leaves(thread, prev, next, is_preempted, state, switch_clock());
	}
	thread = to ? bpf_map_lookup_elem(&threads, &to) : NULL;
	if (thread) {
		cpu->sides++;
		thread_comes(thread, next, prev, switch_clock());
	}
}

#endif
