/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The end of processes, whose counters are sent a last time before they are freed. Also the walk
 * over all threads for those that are inside a call, and for what main threads do outside of calls.
 */
#ifndef NT_BPF_LIFE_BPF_H
#define NT_BPF_LIFE_BPF_H

#include "bpf/event_query.bpf.h"
#include "bpf/gc_span.bpf.h"
#include "bpf/gemm.bpf.h"
#include "bpf/memory.bpf.h"
#include "bpf/traffic.bpf.h"
#include "bpf/verbs.bpf.h"

enum {
	UNRETURNED_NS = 500000000, /* between the walks that find a call without a return */
	SIGNAL_KILL = 9,
	SIGNAL_GROUP_EXIT = 4, /* the kernel's include/linux/sched/signal.h */
	KILLED_BY_PARENT = 1,
	KILLED_BY_OTHER = 2,
};

/* Who sent the first SIGKILL to a process: with its leader, freed with that task. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} killer SEC(".maps");

/*
 * Whether the current process made a call that is recorded at its return: the thread has an `inside`
 * then. That of the leader stays until the last thread has ended. Processes that only make calls that
 * are recorded at their entry, as NCCL's, launch kernels as well, which are counted.
 */
static __always_inline bool has_called(struct task_struct *task)
{
	return bpf_task_storage_get(&inside, task, 0, 0) ||
	       bpf_task_storage_get(&inside, task->group_leader, 0, 0);
}

/* Sends the counters of the current process as an event, charged to its share. */
static __always_inline void emit_end(struct task_struct *task, __u16 code, __u16 flags)
{
	struct nt_process_counters *c = process_counters(0);
	struct nt_event_end *e = NULL;
	__u64 wakeup;

	if (!c && !has_called(task))
		return;
	if (nt_room(sizeof(*e), &wakeup))
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&dropped[NT_EVENT_END], 1);
		return;
	}
	e->h.type = NT_EVENT_END;
	e->h.size = sizeof(*e);
	e->h.row = code;
	e->h.flags = flags;
	e->h.pid = bpf_get_current_pid_tgid() >> 32;
	e->h.tid = 0;
	e->h.entry_ns = bpf_ktime_get_boot_ns();
	if (c)
		bpf_probe_read_kernel(e->calls, sizeof(*e) - sizeof(e->h), c);
	else
		__builtin_memset(e->calls, 0, sizeof(*e) - sizeof(e->h));
	bpf_ringbuf_submit(e, wakeup);
}

/*
 * In the context of the sender. A launcher kills the ranks that are left once one was killed: these
 * did not die of the same cause, although of the same signal.
 */
static __always_inline void signal_sent(int signal, struct task_struct *task)
{
	struct task_struct *leader;
	__u32 *by;

	if (signal != SIGNAL_KILL)
		return;
	leader = task->group_leader;
	if (!bpf_task_storage_get(&inside, leader, 0, 0) &&
	    !bpf_task_storage_get(&counters, leader, 0, 0))
		return;
	by = bpf_task_storage_get(&killer, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (by && !*by)
		*by = bpf_get_current_pid_tgid() >> 32 == (__u32)task->real_parent->tgid
			      ? KILLED_BY_PARENT
			      : KILLED_BY_OTHER;
}

/* As wait(2) has it. That of a thread may be another. */
static __always_inline int exit_code_of(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;

	return signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code
						 : task->group_leader->exit_code;
}

static __always_inline bool is_killed_by_parent(struct task_struct *task, int exit_code)
{
	__u32 *by = bpf_task_storage_get(&killer, task->group_leader, 0, 0);

	return by && *by == KILLED_BY_PARENT && exit_code == SIGNAL_KILL;
}

/*
 * Called for each thread; the last one ends the process. A thread that began to exit before the last
 * one may come here after it, and then ends the process, too.
 */
static __always_inline void process_exits(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	int exit_code;

	polls_end(task);
	if (task->signal->live.counter != 0)
		return;
	exit_code = exit_code_of(task);
	emit_end(task, (__u16)exit_code,
		 is_killed_by_parent(task, exit_code) ? NT_END_KILLED_BY_PARENT : 0);
}

/* The task executes another program: its state is reset. */
static __always_inline void process_execs(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	emit_end(task, 0, NT_END_EXEC);
	bpf_task_storage_delete(&counters, task);
	bpf_task_storage_delete(&inside, task);
	bpf_task_storage_delete(&allocating, task);
	bpf_task_storage_delete(&ids, task);
	bpf_task_storage_delete(&spans, task);
	bpf_task_storage_delete(&gemms, task);
	bpf_task_storage_delete(&gemm_calls, task);
	bpf_task_storage_delete(&gemm_watches, task);
	bpf_task_storage_delete(&capture_states, task);
	bpf_task_storage_delete(&queries, task);
	bpf_task_storage_delete(&asked, task);
	bpf_task_storage_delete(&detail_limits, task);
	bpf_task_storage_delete(&detail_rates, task);
	bpf_task_storage_delete(&verbs_totals, task);
	bpf_task_storage_delete(&verbs_calls, task);
	bpf_task_storage_delete(&poll_calls, task);
}

/*
 * A thread has a call without a pending return. It may be about to enter or to leave, so the call
 * is dropped only if two walks find it. Then its probes were detached before it returned.
 */
static __always_inline void forget_absent(struct task_struct *task, struct nt_inside *slot,
					  __u64 entry_ns)
{
	__u64 now = bpf_ktime_get_boot_ns();

	if (slot->absent_of != entry_ns) {
		slot->absent_of = entry_ns;
		slot->absent_ns = now;
		return;
	}
	if (now - slot->absent_ns < UNRETURNED_NS)
		return;
	if (__sync_val_compare_and_swap(&slot->entry_ns, entry_ns, 0) == entry_ns)
		call_unreturned(task->group_leader);
}

/* Only of a thread that has returned from a call: an earlier call may have begun before its probes. */
static __always_inline void dump_outside(struct seq_file *seq, struct task_struct *task,
					 const struct nt_inside *slot)
{
	struct nt_inside copy;
	struct pt_regs *regs;

	if (task != task->group_leader || !slot->ret_ns)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bpf_probe_read_kernel(&copy, sizeof(copy), slot);
	if (bpf_probe_read_kernel(&copy.user_ip, sizeof(copy.user_ip), &PT_REGS_IP(regs)) < 0)
		return;
	barrier();
	/* It is at the breakpoint of a call that has just begun. */
	if (copy.entry_ns || *(volatile __u64 *)&slot->entry_ns)
		return;
	bpf_seq_write(seq, &copy, sizeof(copy));
}

/* Without this, an allocation left by longjmp would hide all that are made below its depth. */
static __always_inline void forget_allocation(struct task_struct *task)
{
	struct nt_inside *slot = bpf_task_storage_get(&allocating, task, 0, 0);
	__u64 entry_ns = slot ? *(volatile __u64 *)&slot->entry_ns : 0;

	if (entry_ns && !awaits_return(utask_of(task), slot->sp))
		forget_absent(task, slot, entry_ns);
}

static __always_inline void dump_inside(struct seq_file *seq, struct task_struct *task)
{
	struct nt_inside *slot, copy;

	if (!task)
		return;
	forget_allocation(task);
	slot = bpf_task_storage_get(&inside, task, 0, 0);
	if (!slot)
		return;
	if (!slot->entry_ns) {
		dump_outside(seq, task, slot);
		return;
	}
	bpf_probe_read_kernel(&copy, sizeof(copy), slot);
	barrier();
	/* Modified during the copy: it is in no call, or in one that has just begun. */
	if (!copy.entry_ns || *(volatile __u64 *)&slot->entry_ns != copy.entry_ns)
		return;
	if (!awaits_return(utask_of(task), copy.sp)) {
		forget_absent(task, slot, copy.entry_ns);
		return;
	}
	bpf_seq_write(seq, &copy, sizeof(copy));
}

#endif
