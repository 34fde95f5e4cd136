/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel side keeps of a process, in the storage of the task that leads its thread group: no
 * table that fills up, no key that outlives the process.
 */
#ifndef NT_BPF_PROCESS_BPF_H
#define NT_BPF_PROCESS_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_process_counters);
} counters SEC(".maps");

/* Of the current process. NULL: it has none and is to get none, or memory is short. */
static __always_inline struct nt_process_counters *process_counters(__u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_task_storage_get(&counters, task->group_leader, 0, flags);
}

/* enum nt_split by slot of a file; written by the agent. */
__u8 splits[NT_SPLIT_SLOTS];
/* Calls that could not be recorded for want of memory. */
__u64 untracked;
/* Calls whose return came when their probes were gone. */
__u64 unreturned;

/* A call of the process that `leader` leads is lost in this way. */
static __always_inline void call_unreturned(struct task_struct *leader)
{
	struct nt_process_counters *process =
		bpf_task_storage_get(&counters, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	__sync_fetch_and_add(&unreturned, 1);
	if (process)
		__sync_fetch_and_add(&process->lost, 1);
}

/* A hit of an event row makes no event. */
static __always_inline void row_unseen(struct nt_process_counters *process, __u32 row)
{
	row = NT_ROW_OF(row);
	if (process && row < NT_ROWS_MAX)
		__sync_fetch_and_add(&process->unseen[row], 1);
}

#endif
