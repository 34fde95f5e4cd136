/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel side of bpf/host.bpf.c and the agent share: where the time of a rank's threads
 * goes, and what the kernel does for it. As bpf/event.h, this never leaves the node.
 */
#ifndef NT_BPF_HOST_EVENT_H
#define NT_BPF_HOST_EVENT_H

#include "bpf/event.h"
#include "bpf/host_share.h"

enum {
	NT_HOST_PROCESSES = 1024, /* slots of ranks */
	NT_HOST_MEMBERS = 8192, /* processes: ranks, and those that they have forked */
	NT_HOST_HELPERS = 128, /* forked processes of one rank */
	NT_HOST_THREADS = 32768, /* of all of them */
	NT_HOST_OWN_THREADS = 16, /* of one rank, whatever the others do; see host_share.h */
	NT_HOST_OWN_HELPERS = 3,
	NT_HOST_OPEN_THREADS = NT_HOST_THREADS - NT_HOST_PROCESSES * NT_HOST_OWN_THREADS,
	NT_HOST_OPEN_HELPERS = NT_HOST_MEMBERS - NT_HOST_PROCESSES * (1 + NT_HOST_OWN_HELPERS),
	NT_HOST_TAKERS = 8, /* processes that took a rank's CPU, in one window */
	NT_HOST_DEVICES = 4, /* block devices of one rank */
	NT_HOST_SOCKETS = 16384, /* the least recently used is forgotten first */
	NT_HOST_REQUESTS = 8192, /* to block devices, in flight; as above */
	NT_HOST_COMM = 16, /* the name of a task, its NUL included */
	NT_HOST_CPUS = 4096, /* whose NUMA node is known */
};

/* Why a thread does not run. */
enum nt_host_wait {
	NT_HOST_WAIT_RUN_QUEUE, /* runnable: another task has the CPU */
	NT_HOST_WAIT_QUOTA, /* runnable: the quota of its control group is used up */
	NT_HOST_WAIT_BLOCK_IO,
	NT_HOST_WAIT_NETWORK_FILE, /* in a file system whose server is elsewhere */
	NT_HOST_WAIT_LOCK, /* futex */
	NT_HOST_WAIT_NETWORK, /* sockets, and poll */
	NT_HOST_WAIT_SLEEP,
	NT_HOST_WAIT_FAULT, /* a page fault: of a mapped file, or swapped out */
	NT_HOST_WAIT_DEVICE, /* a fence, or a device's own call */
	NT_HOST_WAIT_OTHER,
	NT_HOST_WAITS,
};

/* Sums in ns, and counts, since the thread or process is observed. */
struct nt_host_times {
	__u64 on_cpu_ns; /* without interrupts, where these are observed */
	__u64 irq_ns; /* interrupts while it was on a CPU */
	__u64 wait_ns[NT_HOST_WAITS];
	__u64 reclaim_ns,
		compaction_ns; /* of memory, by the thread itself; also part of the above */
	__u64 blocked, preempted; /* times that it left the CPU: to wait, runnable */
	__u64 migrations, numa_moves; /* to another CPU, to another NUMA node */
};

struct nt_host_taker {
	__u32 tgid; /* 0: free */
	__u32 pad;
	__u64 ns;
	char comm[NT_HOST_COMM]; /* of one of its tasks */
};

/* A thread; key: its number. */
struct nt_host_thread {
	__u32 slot, tgid;
	__u32 cpu, node; /* where it ran last */
	__u64 in_ns, out_ns; /* the last switch by switch_clock(); one of them is not 0, or none */
	__u64 exec_seen, delay_seen, frozen_seen,
		irq_seen; /* totals of the kernel at that switch */
	__u64 off_ns; /* its last wait, of which the run queue's part is not known yet */
	__u64 reclaim_since, compaction_since, fence_since; /* boot time; 0: not in it */
	__u64 stint_ns; /* how long the task before it had the CPU */
	struct nt_host_taker taker; /* who had the CPU last before it; its ns are not used */
	__u8 reason; /* enum nt_host_wait: of out_ns, or of off_ns */
	__u8 has_run; /* cpu and node are known */
	__u8 is_throttled, is_helper;
	__u8 pad[4];
	struct nt_host_times times;
};

enum nt_host_event_kind {
	NT_HOST_EVENT_OUT = 1, /* left the CPU; value: ns on it; other: the next task */
	NT_HOST_EVENT_IN, /* value: ns off it; other: the task before */
	NT_HOST_EVENT_BLOCK, /* a request is complete; value: ns; other: device; bytes */
	NT_HOST_EVENT_RETRANSMIT,
	NT_HOST_EVENT_RESET, /* other: 1 sent, 2 received */
	NT_HOST_EVENT_OOM,
	NT_HOST_EVENT_END, /* keep last */
};

struct nt_host_device {
	__u32 device; /* major << 20 | minor; 0: free */
	__u32 requests;
	__u64 bytes, ns, most_ns;
};

/* A rank. Written by both sides: the agent writes the first four. */
struct nt_host_process {
	__u32 tgid; /* 0: free */
	__u32 bank; /* of takers: the kernel side adds to bank % 2 */
	__u32 level; /* from 1 on each event is recorded */
	__u32 events_max; /* in a tenth of a second */
	__u64 events_since_ns; /* boot time, when that tenth began */
	__u32 events, helpers; /* events in that tenth; forked processes now */
	__u32 threads; /* in the table now, those of helpers included */
	__u32 owner; /* whose open places it takes; the agent writes it */
	__u64 threads_over_cap, helpers_over_cap; /* that found no room */
	__u64 events_dropped; /* over events_max, or without room in the ring */
	__u64 dropped[NT_HOST_EVENT_END]; /* the same by kind; the agent takes them out */
	__u64 takers_dropped; /* evicted for others that took more */
	__u64 devices_dropped; /* requests to a fifth device */
	struct nt_host_times ended; /* of threads that have ended, those of helpers left out */
	__u64 wait_ns[NT_HOST_WAITS],
		helper_wait_ns[NT_HOST_WAITS]; /* of threads that ended a wait */
	__u64 reclaim_ns, compaction_ns; /* of all threads, those of helpers included */
	__u64 retransmits, resets_sent, resets_received; /* of TCP, its sockets */
	__u64 oom_kills; /* of it, or of a process that it forked */
	struct nt_host_device device[NT_HOST_DEVICES];
	struct nt_host_taker taker[2][NT_HOST_TAKERS];
};

/* A process that is observed; key: its number. */
struct nt_host_member {
	__u32 slot;
	__u32 is_helper; /* forked by the rank of that slot */
	__u64 start_ns; /* of a helper: boot time when it was forked */
};

/* Of one CPU. */
struct nt_host_cpu {
	__u64 irq_ns, irq_since_ns;
	__u64 switches, sides; /* context switches; of them, threads that are observed */
	__u64 hits; /* of all other programs */
	__u32 depth, pad; /* of interrupts */
};

/* One event of a rank at level 1 or above. */
struct nt_host_event {
	__u64 boot_ns;
	__u64 value, bytes;
	__u32 tgid; /* of the rank */
	__u32 tid; /* 0: not known */
	__u32 other;
	__u16 cpu;
	__u8 kind, reason; /* enum nt_host_event_kind, nt_host_wait */
	char comm[NT_HOST_COMM]; /* of the other task */
};

#define NT_HOST_DEVICE(major, minor) ((__u32)(major) << 20 | ((__u32)(minor)&0xfffff))

_Static_assert(sizeof(struct nt_host_times) == 18 * 8, "the maps would change");
_Static_assert(sizeof(struct nt_host_taker) == 32, "the maps would change");
_Static_assert(sizeof(struct nt_host_thread) == 288, "the map would change");
_Static_assert(sizeof(struct nt_host_device) == 32, "the map would change");
_Static_assert(sizeof(struct nt_host_process) == 1128, "the map would change");
_Static_assert(sizeof(struct nt_host_member) == 16, "the map would change");
_Static_assert(sizeof(struct nt_host_event) == 56, "the ring would change");

#endif
