/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Kernel types of the scheduler, files, block devices and sockets. Members are found by CO-RE; the
 * part of a name behind ___ is not compared.
 */
#ifndef NT_BPF_HOST_KERNEL_BPF_H
#define NT_BPF_HOST_KERNEL_BPF_H

struct cfs_rq {
	int throttle_count; /* of it and the groups around it */
	__u64 throttled_clock_pelt_time; /* throttled so far; from 5.18 on */
} __attribute__((preserve_access_index));

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* the same when it was last given a CPU */
	struct cfs_rq *cfs_rq;
} __attribute__((preserve_access_index));

struct sched_info {
	unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct super_block {
	unsigned long s_magic;
} __attribute__((preserve_access_index));

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
} __attribute__((preserve_access_index));

struct file___host {
	struct inode *f_inode;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file___host **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct___host {
	int pid, tgid;
	unsigned int flags;
	__u64 start_boottime;
	struct sched_entity se;
	struct sched_info sched_info;
	struct files_struct *files;
	struct signal_struct *signal;
	unsigned int in_iowait : 1;
	char comm[16];
} __attribute__((preserve_access_index));

struct gendisk {
	int major, first_minor;
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk;
} __attribute__((preserve_access_index));

struct request___host {
	struct request_queue *q;
	unsigned int __data_len;
} __attribute__((preserve_access_index));

struct sock_common {
	unsigned short skc_family;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_arm64)
struct pt_regs___host {
	__u64 orig_x0;
	__s32 syscallno;
} __attribute__((preserve_access_index));
#endif

#endif
