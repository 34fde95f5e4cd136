/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Kernel-side state of a process, in the storage of its thread group leader: no table that fills
 * up, and no key that outlives the process.
 */
#ifndef NT_BPF_PROCESS_BPF_H
#define NT_BPF_PROCESS_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_process_counters);
} counters SEC(".maps");

/* Counters of the current process. NULL: none and not to be created, or out of memory. */
static __always_inline struct nt_process_counters *process_counters(__u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_task_storage_get(&counters, task->group_leader, 0, flags);
}

/* enum nt_split by slot of a file; written by the agent. */
__u8 splits[NT_SPLIT_SLOTS];
/* Calls not recorded for lack of memory. */
__u64 untracked;
/* Calls that returned after their probes were detached. */
__u64 unreturned;

/* Counts such a loss for the process of `leader`. */
static __always_inline void call_unreturned(struct task_struct *leader)
{
	struct nt_process_counters *process =
		bpf_task_storage_get(&counters, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	__sync_fetch_and_add(&unreturned, 1);
	if (process)
		__sync_fetch_and_add(&process->lost, 1);
}

/* Counts a hit of an event row without an event. */
static __always_inline void row_unseen(struct nt_process_counters *process, __u32 row)
{
	row = NT_ROW_OF(row);
	if (process && row < NT_ROWS_MAX)
		__sync_fetch_and_add(&process->unseen[row], 1);
}

#endif
