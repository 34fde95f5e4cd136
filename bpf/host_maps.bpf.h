/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who is observed by the system events, their sums, and the ring of single events. */
#ifndef NT_BPF_HOST_MAPS_BPF_H
#define NT_BPF_HOST_MAPS_BPF_H

#include "bpf/host_event.h"
#include "bpf/host_kernel.bpf.h"

/* Ranks, added by the agent, and processes that they fork, added here. Key: their number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NT_HOST_MEMBERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct nt_host_member);
} members SEC(".maps");

/* Their threads: added by the agent and at forks, removed at their end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NT_HOST_THREADS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct nt_host_thread);
} threads SEC(".maps");

/* By slot; the agent maps it into its memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NT_HOST_PROCESSES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct nt_host_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nt_host_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10); /* the agent sets it */
} host_events SEC(".maps");

/* Open places that are taken. */
struct nt_host_share owners[NT_HOST_PROCESSES], all_owners;
/* TCP events of sockets whose process is not known, which may be no rank's. */
__u64 sockets_unowned;
/* On the whole node. */
__u64 oom_kills;
/* Set by the agent while the programs at interrupts are attached. */
__u32 irq_observed;
/*
 * Context switches may be observed in slices. Their clock stands still between these: boot time less
 * unobserved_ns. It read slice_since_ns when the slice began. Set by the agent before it attaches.
 */
__u64 unobserved_ns, slice_since_ns;
/* Boot time at which the programs other than these were attached; as above. */
__u64 work_since_ns;

static __always_inline struct nt_host_cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

/* Counts a hit of a program that is not the one at context switches, whose hits the kernel counts. */
static __always_inline void hit(void)
{
	struct nt_host_cpu *cpu = this_cpu();

	if (cpu)
		cpu->hits++;
}

static __always_inline __u64 switch_clock(void)
{
	return bpf_ktime_get_boot_ns() - unobserved_ns;
}

static __always_inline struct nt_host_process *process_at(__u32 slot)
{
	return bpf_map_lookup_elem(&processes, &slot);
}

static __always_inline struct nt_host_thread *current_thread(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&threads, &tid);
}

/* ---- single events -------------------------------------------------------------------------- */

enum {
	TENTH_NS = 100000000,
	LEVEL_EVENTS = 1,
};

static __always_inline bool is_recorded(const struct nt_host_process *process)
{
	return process->level >= LEVEL_EVENTS;
}

/* Threads of one process may miscount each other's; the bound holds but for these. */
static __always_inline bool has_event_share(struct nt_host_process *process, __u64 now)
{
	if (now - process->events_since_ns >= TENTH_NS) {
		process->events_since_ns = now;
		process->events = 0;
	}
	return __sync_fetch_and_add(&process->events, 1) < process->events_max;
}

/* An event to be filled in and sent. NULL: dropped, and counted. */
static __always_inline struct nt_host_event *begin_event(struct nt_host_process *process, __u64 now,
							 enum nt_host_event_kind kind)
{
	struct nt_host_event *event = NULL;

	if (has_event_share(process, now))
		event = bpf_ringbuf_reserve(&host_events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&process->events_dropped, 1);
		__sync_fetch_and_add(&process->dropped[kind], 1);
		return NULL;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->boot_ns = now;
	event->tgid = process->tgid;
	event->kind = kind;
	event->cpu = (__u16)bpf_get_smp_processor_id();
	return event;
}

static __always_inline void send_event(struct nt_host_event *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP); /* the agent reads it ten times a second */
}

#endif
