/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * For how long the control groups of a process have had no processor, as their quota was used up: an
 * iterator over its tasks, which the agent reads while the scheduler's tracepoints are not attached.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	GROUPS_MAX = 16, /* groups within each other */
};

struct cfs_bandwidth {
	__u64 throttled_time;
} __attribute__((preserve_access_index));

struct task_group {
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
} __attribute__((preserve_access_index));

struct task_struct___quota {
	struct task_group *sched_task_group;
} __attribute__((preserve_access_index));

SEC("iter/task")
int process_quota(struct bpf_iter__task *ctx)
{
	const struct task_struct___quota *task = (const void *)ctx->task;
	const struct task_group *group = NULL;
	__u64 ns = 0;

	if (!task || !bpf_core_field_exists(task->sched_task_group) ||
	    !bpf_core_field_exists(group->cfs_bandwidth.throttled_time))
		return 0;
	group = BPF_CORE_READ(task, sched_task_group);
	for (int i = 0; i < GROUPS_MAX && group; i++) {
		ns += BPF_CORE_READ(group, cfs_bandwidth.throttled_time);
		group = BPF_CORE_READ(group, parent);
	}
	bpf_seq_write(ctx->meta->seq, &ns, sizeof(ns));
	return 0;
}
