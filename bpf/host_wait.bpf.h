/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Why a thread of a rank leaves the CPU: by the system call that it is in, and by what the descriptor
 * that it passes is open on. No stack is read.
 */
#ifndef NT_BPF_HOST_WAIT_BPF_H
#define NT_BPF_HOST_WAIT_BPF_H

#include "bpf/host_event.h"
#include "bpf/host_kernel.bpf.h"

enum {
	STATE_UNINTERRUPTIBLE = 2, /* the kernel's include/linux/sched.h */
	FD_LIMIT = 1 << 20,
	SYSCALLS = 512,
	MODE_TYPE = 0170000,
	MODE_SOCKET = 0140000,
	MODE_REGULAR = 0100000,
	MODE_FOLDER = 0040000,
	MODE_CHARACTER = 0020000,
};

/* What a system call waits for. */
enum syscall_kind {
	SYSCALL_OTHER,
	SYSCALL_FILE, /* its first argument is a descriptor */
	SYSCALL_DEVICE, /* the same, of a device */
	SYSCALL_LOCK,
	SYSCALL_NETWORK,
	SYSCALL_SLEEP,
	SYSCALL_BLOCK,
};

#define WAITS_FOR(number, kind) [number] = SYSCALL_##kind

static const __u8 syscall_kinds[SYSCALLS] = {
#if defined(__TARGET_ARCH_x86)
	/* read write poll lseek pread64 pwrite64 readv writev */
	WAITS_FOR(0, FILE),
	WAITS_FOR(1, FILE),
	WAITS_FOR(7, NETWORK),
	WAITS_FOR(17, FILE),
	WAITS_FOR(18, FILE),
	WAITS_FOR(19, FILE),
	WAITS_FOR(20, FILE),
	/* ioctl select nanosleep connect accept sendto recvfrom sendmsg recvmsg */
	WAITS_FOR(16, DEVICE),
	WAITS_FOR(23, NETWORK),
	WAITS_FOR(35, SLEEP),
	WAITS_FOR(42, NETWORK),
	WAITS_FOR(43, NETWORK),
	WAITS_FOR(44, NETWORK),
	WAITS_FOR(45, NETWORK),
	WAITS_FOR(46, NETWORK),
	WAITS_FOR(47, NETWORK),
	/* flock fsync fdatasync ftruncate getdents futex io_getevents getdents64 fadvise64 */
	WAITS_FOR(73, LOCK),
	WAITS_FOR(74, FILE),
	WAITS_FOR(75, FILE),
	WAITS_FOR(77, FILE),
	WAITS_FOR(78, FILE),
	WAITS_FOR(202, LOCK),
	WAITS_FOR(208, BLOCK),
	WAITS_FOR(217, FILE),
	WAITS_FOR(221, FILE),
	/* clock_nanosleep epoll_wait pselect6 ppoll sync_file_range epoll_pwait fallocate accept4 */
	WAITS_FOR(230, SLEEP),
	WAITS_FOR(232, NETWORK),
	WAITS_FOR(270, NETWORK),
	WAITS_FOR(271, NETWORK),
	WAITS_FOR(277, FILE),
	WAITS_FOR(281, NETWORK),
	WAITS_FOR(285, FILE),
	WAITS_FOR(288, NETWORK),
	/* preadv pwritev recvmmsg sendmmsg preadv2 pwritev2 copy_file_range io_pgetevents */
	WAITS_FOR(295, FILE),
	WAITS_FOR(296, FILE),
	WAITS_FOR(299, NETWORK),
	WAITS_FOR(307, NETWORK),
	WAITS_FOR(326, FILE),
	WAITS_FOR(327, FILE),
	WAITS_FOR(328, FILE),
	WAITS_FOR(333, BLOCK),
#elif defined(__TARGET_ARCH_arm64)
	/* io_getevents ioctl flock ftruncate fallocate getdents64 read write readv writev */
	WAITS_FOR(4, BLOCK),
	WAITS_FOR(29, DEVICE),
	WAITS_FOR(32, LOCK),
	WAITS_FOR(46, FILE),
	WAITS_FOR(47, FILE),
	WAITS_FOR(61, FILE),
	WAITS_FOR(63, FILE),
	WAITS_FOR(64, FILE),
	WAITS_FOR(65, FILE),
	WAITS_FOR(66, FILE),
	/* pread64 pwrite64 preadv pwritev pselect6 ppoll fsync fdatasync sync_file_range */
	WAITS_FOR(67, FILE),
	WAITS_FOR(68, FILE),
	WAITS_FOR(69, FILE),
	WAITS_FOR(70, FILE),
	WAITS_FOR(72, NETWORK),
	WAITS_FOR(73, NETWORK),
	WAITS_FOR(82, FILE),
	WAITS_FOR(83, FILE),
	WAITS_FOR(84, FILE),
	/* epoll_pwait futex nanosleep clock_nanosleep accept connect sendto recvfrom sendmsg recvmsg */
	WAITS_FOR(22, NETWORK),
	WAITS_FOR(98, LOCK),
	WAITS_FOR(101, SLEEP),
	WAITS_FOR(115, SLEEP),
	WAITS_FOR(202, NETWORK),
	WAITS_FOR(203, NETWORK),
	WAITS_FOR(206, NETWORK),
	WAITS_FOR(207, NETWORK),
	WAITS_FOR(211, NETWORK),
	WAITS_FOR(212, NETWORK),
	/* fadvise64 accept4 recvmmsg sendmmsg copy_file_range preadv2 pwritev2 io_pgetevents */
	WAITS_FOR(223, FILE),
	WAITS_FOR(242, NETWORK),
	WAITS_FOR(243, NETWORK),
	WAITS_FOR(269, NETWORK),
	WAITS_FOR(285, FILE),
	WAITS_FOR(286, FILE),
	WAITS_FOR(287, FILE),
	WAITS_FOR(292, BLOCK),
#endif
	/* On all architectures: io_uring_enter epoll_pwait2 futex_waitv futex_wait */
	WAITS_FOR(426, NETWORK),
	WAITS_FOR(441, NETWORK),
	WAITS_FOR(449, LOCK),
	WAITS_FOR(455, LOCK),
};

/* File systems whose data lie elsewhere: the kernel's include/uapi/linux/magic.h. */
static __always_inline bool is_network_magic(unsigned long magic)
{
	switch (magic & 0xffffffff) {
	case 0x6969: /* NFS */
	case 0x01021997: /* 9p */
	case 0xff534d42: /* CIFS */
	case 0xfe534d42: /* SMB2 */
	case 0x00c36400: /* Ceph */
	case 0x0bd00bd0: /* Lustre */
	case 0x5346414f: /* AFS */
	case 0x47504653: /* GPFS */
	case 0x19830326: /* BeeGFS */
	case 0x65735546: /* FUSE, by which most object stores are mounted */
		return true;
	default:
		return false;
	}
}

/* The number of the system call that the task is in, -1: in none, as during a page fault. */
static __always_inline long syscall_of(struct task_struct *task, __u64 *ret_first)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long number = -1;

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_ax);
	bpf_probe_read_kernel(ret_first, sizeof(*ret_first), &regs->di);
#elif defined(__TARGET_ARCH_arm64)
	const struct pt_regs___host *host = (const void *)regs;

	number = BPF_CORE_READ(host, syscallno);
	*ret_first = BPF_CORE_READ(host, orig_x0);
#endif
	return number;
}

/* The inode that a descriptor of the task is open on. NULL: none. */
static __always_inline struct inode *inode_of(const struct task_struct___host *task, __u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file___host **slot = BPF_CORE_READ(table, fd);
	struct file___host *file = NULL;

	if (!slot || fd >= FD_LIMIT || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), slot + fd);
	return file ? BPF_CORE_READ(file, f_inode) : NULL;
}

static __always_inline enum nt_host_wait wait_of_file(const struct task_struct___host *task,
						      __u64 fd, bool is_deep, bool is_io)
{
	struct inode *inode = inode_of(task, fd);
	unsigned int type = inode ? BPF_CORE_READ(inode, i_mode) & MODE_TYPE : 0;

	if (type == MODE_SOCKET)
		return NT_HOST_WAIT_NETWORK;
	if (inode && (type == MODE_REGULAR || type == MODE_FOLDER) &&
	    is_network_magic(BPF_CORE_READ(inode, i_sb, s_magic)))
		return NT_HOST_WAIT_NETWORK_FILE;
	if (is_io || (is_deep && (type == MODE_REGULAR || type == MODE_FOLDER)))
		return NT_HOST_WAIT_BLOCK_IO;
	return NT_HOST_WAIT_OTHER;
}

static __always_inline bool is_device(const struct task_struct___host *task, __u64 fd)
{
	struct inode *inode = inode_of(task, fd);

	return inode && (BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_CHARACTER;
}

/* Of a thread that is not runnable any more. */
static __always_inline enum nt_host_wait wait_of(struct task_struct *task, bool in_fence,
						 unsigned int state)
{
	const struct task_struct___host *host = (const void *)task;
	const bool is_deep = state & STATE_UNINTERRUPTIBLE;
	const bool is_io = BPF_CORE_READ_BITFIELD(host, in_iowait);
	__u64 first = 0;
	long number;

	if (in_fence)
		return NT_HOST_WAIT_DEVICE;
	number = syscall_of(task, &first);
	if (number < 0)
		return is_deep ? NT_HOST_WAIT_FAULT : NT_HOST_WAIT_OTHER;
	switch (number < SYSCALLS ? syscall_kinds[number] : SYSCALL_OTHER) {
	case SYSCALL_FILE:
		return wait_of_file(host, first, is_deep, is_io);
	case SYSCALL_DEVICE:
		return is_device(host, first) ? NT_HOST_WAIT_DEVICE : NT_HOST_WAIT_OTHER;
	case SYSCALL_LOCK:
		return NT_HOST_WAIT_LOCK;
	case SYSCALL_NETWORK:
		return is_io ? NT_HOST_WAIT_BLOCK_IO : NT_HOST_WAIT_NETWORK;
	case SYSCALL_SLEEP:
		return NT_HOST_WAIT_SLEEP;
	case SYSCALL_BLOCK:
		return NT_HOST_WAIT_BLOCK_IO;
	default:
		return is_io ? NT_HOST_WAIT_BLOCK_IO : NT_HOST_WAIT_OTHER;
	}
}

#endif
