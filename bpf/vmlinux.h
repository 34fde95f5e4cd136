/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few kernel types that our probes name, cut from a full BTF dump (`make vmlinux` prints one).
 * Members of structs that carry preserve_access_index are found by CO-RE, wherever the kernel has them.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;

enum {
	false = 0,
	true = 1,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
	int group_exit_code; /* if flags has SIGNAL_GROUP_EXIT */
	unsigned int flags;
} __attribute__((preserve_access_index));

/* A return that a uprobe waits for. */
struct return_instance {
	unsigned long stack; /* the stack pointer at the entry */
	struct return_instance *next; /* entered before */
} __attribute__((preserve_access_index));

struct uprobe_task {
	struct return_instance *return_instances;
} __attribute__((preserve_access_index));

typedef struct {
	__u32 val;
} kuid_t;

struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the initial one */
	kuid_t owner; /* who has made it */
} __attribute__((preserve_access_index));

struct cred {
	struct user_namespace *user_ns;
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase; /* of the current task too, unless it set it by an instruction */
} __attribute__((preserve_access_index));
#endif

struct task_struct {
	const struct cred *cred;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct uprobe_task *utask;
	struct task_struct *real_parent;
	int tgid;
	int exit_code; /* as wait(2) has it */
#if defined(__TARGET_ARCH_x86)
	struct thread_struct thread;
#endif
} __attribute__((preserve_access_index));

struct kernel_siginfo;
struct seq_file;

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

struct pt_regs {
	struct user_pt_regs user_regs;
};
#else
#error "no argument registers known for this architecture"
#endif

#endif
