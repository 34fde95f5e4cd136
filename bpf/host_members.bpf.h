/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which threads and processes belong to a rank: what forks, execs and exits make of the tables. */
#ifndef NT_BPF_HOST_MEMBERS_BPF_H
#define NT_BPF_HOST_MEMBERS_BPF_H

#include "bpf/host_maps.bpf.h"
#include "bpf/host_switch.bpf.h"

enum {
	FLAG_IO_WORKER = 0x10, /* a thread of io_uring, which is not the process's own work */
	ERROR_EXISTS = -17,
};

/* ---- places in the tables --------------------------------------------------------------------- */

static __always_inline struct nt_host_share *owner_of(const struct nt_host_process *process)
{
	return &owners[process->owner % NT_HOST_PROCESSES];
}

static __always_inline bool take_thread(struct nt_host_process *process)
{
	return nt_host_take(&process->threads, NT_HOST_OWN_THREADS, &owner_of(process)->threads,
			    &all_owners.threads, NT_HOST_OPEN_THREADS);
}

static __always_inline void give_thread(struct nt_host_process *process)
{
	nt_host_give(&process->threads, NT_HOST_OWN_THREADS, &owner_of(process)->threads,
		     &all_owners.threads);
}

static __always_inline bool take_helper(struct nt_host_process *process)
{
	return nt_host_taken(&process->helpers) < NT_HOST_HELPERS &&
	       nt_host_take(&process->helpers, NT_HOST_OWN_HELPERS, &owner_of(process)->helpers,
			    &all_owners.helpers, NT_HOST_OPEN_HELPERS);
}

static __always_inline void give_helper(struct nt_host_process *process)
{
	nt_host_give(&process->helpers, NT_HOST_OWN_HELPERS, &owner_of(process)->helpers,
		     &all_owners.helpers);
}

static __always_inline void remove_thread(__u32 tid, __u32 slot)
{
	struct nt_host_process *process = process_at(slot);

	if (bpf_map_delete_elem(&threads, &tid) == 0 && process)
		give_thread(process);
}

static __always_inline void remove_member(__u32 tgid, const struct nt_host_member *member)
{
	struct nt_host_process *process = process_at(member->slot);
	const bool is_helper = member->is_helper;

	if (bpf_map_delete_elem(&members, &tgid) == 0 && is_helper && process)
		give_helper(process);
}

/* ---- forks ------------------------------------------------------------------------------------ */

/* What is known by this number is of an earlier thread, whose end was not observed. */
static __always_inline void add_thread(__u32 tid, __u32 tgid, const struct nt_host_member *member)
{
	struct nt_host_thread thread = {
		.slot = member->slot, .tgid = tgid, .is_helper = member->is_helper != 0};
	const struct nt_host_thread *stale = bpf_map_lookup_elem(&threads, &tid);
	struct nt_host_process *process = process_at(member->slot);
	long r;

	if (stale)
		remove_thread(tid, stale->slot);
	if (!process)
		return;
	if (!take_thread(process)) {
		__sync_fetch_and_add(&process->threads_over_cap, 1);
		return;
	}
	r = bpf_map_update_elem(&threads, &tid, &thread, BPF_NOEXIST);
	if (r == 0)
		return;
	give_thread(process);
	if (r != ERROR_EXISTS)
		__sync_fetch_and_add(&process->threads_over_cap, 1);
}

/* A process that a rank forks, such as a worker of a data loader, is its helper. */
static __always_inline bool add_helper(__u32 tgid, const struct nt_host_member *helper)
{
	const struct nt_host_member *stale = bpf_map_lookup_elem(&members, &tgid);
	struct nt_host_process *process = process_at(helper->slot);

	if (stale)
		remove_member(tgid, stale);
	if (!process)
		return false;
	if (take_helper(process)) {
		if (bpf_map_update_elem(&members, &tgid, helper, BPF_NOEXIST) == 0)
			return true;
		give_helper(process);
	}
	__sync_fetch_and_add(&process->helpers_over_cap, 1);
	return false;
}

static __always_inline void task_forks(const struct task_struct *parent,
				       const struct task_struct *child)
{
	const struct task_struct___host *by = (const void *)parent, *made = (const void *)child;
	__u32 parent_tgid = (__u32)by->tgid, tgid = (__u32)made->tgid;
	const struct nt_host_member *found = bpf_map_lookup_elem(&members, &parent_tgid);
	struct nt_host_member member;

	hit();
	if (!found || made->flags & FLAG_IO_WORKER)
		return;
	member = *found;
	if (tgid != parent_tgid) {
		member.is_helper = 1;
		member.start_ns = made->start_boottime;
		if (!add_helper(tgid, &member))
			return;
	}
	add_thread((__u32)made->pid, tgid, &member);
}

/* ---- execs ------------------------------------------------------------------------------------ */

/* A thread that is not the first of its process takes that one's number, as the others end. */
static __always_inline void thread_execs(__u32 old_tid)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), slot;
	const struct nt_host_thread *thread, *stale;

	hit();
	if (tid == old_tid)
		return;
	thread = bpf_map_lookup_elem(&threads, &old_tid);
	if (!thread)
		return;
	slot = thread->slot;
	stale = bpf_map_lookup_elem(&threads, &tid);
	if (stale)
		remove_thread(tid, stale->slot);
	if (bpf_map_update_elem(&threads, &tid, thread, BPF_NOEXIST) == 0)
		bpf_map_delete_elem(&threads, &old_tid); /* its place is taken by the new one */
	else
		remove_thread(old_tid, slot);
}

/* ---- exits ------------------------------------------------------------------------------------ */

static __always_inline void add_times(struct nt_host_times *sum, const struct nt_host_times *of)
{
	__u64 *to = (__u64 *)sum;
	const __u64 *from = (const __u64 *)of;

	for (int i = 0; i < (int)(sizeof(*sum) / sizeof(*to)); i++)
		if (from[i])
			__sync_fetch_and_add(&to[i], from[i]);
}

/* Its last wait is settled here: it leaves the CPU once more, but is not observed any more. */
static __always_inline void observed_thread_exits(struct nt_host_thread *thread, __u32 tid,
						  const struct task_struct___host *task)
{
	struct nt_host_process *process = process_at(thread->slot);

	if (process) {
		settle_wait(thread, process, task);
		if (!thread->is_helper)
			add_times(&process->ended, &thread->times);
	}
	remove_thread(tid, thread->slot);
}

/* The process may be known although this thread of it is not. */
static __always_inline void thread_exits(void)
{
	const struct task_struct___host *task = (const void *)bpf_get_current_task_btf();
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), tgid = bpf_get_current_pid_tgid() >> 32;
	struct nt_host_thread *thread = current_thread();
	const struct nt_host_member *member;

	hit();
	if (thread)
		observed_thread_exits(thread, tid, task);
	if (task->signal->live.counter != 0)
		return;
	member = bpf_map_lookup_elem(&members, &tgid);
	if (member)
		remove_member(tgid, member);
}

#endif
