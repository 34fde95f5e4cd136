/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel does for a rank or to it: reclaim and compaction of memory, fences, requests to
 * block devices, TCP, kills for want of memory, interrupts.
 */
#ifndef NT_BPF_HOST_KERNEL_WORK_BPF_H
#define NT_BPF_HOST_KERNEL_WORK_BPF_H

#include "bpf/host_maps.bpf.h"

/* ---- memory --------------------------------------------------------------------------------- */

/* A begin from before the programs were attached has lost its end. */
static __always_inline void reclaim_begins(void)
{
	struct nt_host_thread *thread = current_thread();

	hit();
	if (thread && thread->reclaim_since <= work_since_ns)
		thread->reclaim_since = bpf_ktime_get_boot_ns();
}

static __always_inline void reclaim_ends(void)
{
	struct nt_host_thread *thread = current_thread();
	struct nt_host_process *process;
	__u64 ns;

	if (!thread || thread->reclaim_since <= work_since_ns)
		return;
	ns = bpf_ktime_get_boot_ns() - thread->reclaim_since;
	thread->reclaim_since = 0;
	thread->times.reclaim_ns += ns;
	process = process_at(thread->slot);
	if (process)
		__sync_fetch_and_add(&process->reclaim_ns, ns);
}

static __always_inline void compaction_begins(void)
{
	struct nt_host_thread *thread = current_thread();

	hit();
	if (thread && thread->compaction_since <= work_since_ns)
		thread->compaction_since = bpf_ktime_get_boot_ns();
}

static __always_inline void compaction_ends(void)
{
	struct nt_host_thread *thread = current_thread();
	struct nt_host_process *process;
	__u64 ns;

	if (!thread || thread->compaction_since <= work_since_ns)
		return;
	ns = bpf_ktime_get_boot_ns() - thread->compaction_since;
	thread->compaction_since = 0;
	thread->times.compaction_ns += ns;
	process = process_at(thread->slot);
	if (process)
		__sync_fetch_and_add(&process->compaction_ns, ns);
}

enum {
	PID_LIMIT = 1 << 22, /* no process has a larger number */
};

/* The argument is the victim; before 6.9 it was its number. */
static __always_inline void victim_marked(__u64 argument)
{
	struct nt_host_process *process = NULL;
	struct nt_host_member *member;
	struct nt_host_event *event;
	__u32 tgid = (__u32)argument;

	__sync_fetch_and_add(&oom_kills, 1);
	if (argument > PID_LIMIT)
		tgid = (__u32)BPF_CORE_READ((struct task_struct___host *)argument, tgid);
	member = bpf_map_lookup_elem(&members, &tgid);
	if (member)
		process = process_at(member->slot);
	if (!process)
		return;
	__sync_fetch_and_add(&process->oom_kills, 1);
	if (!is_recorded(process))
		return;
	event = begin_event(process, bpf_ktime_get_boot_ns(), NT_HOST_EVENT_OOM);
	if (!event)
		return;
	event->other = tgid;
	send_event(event);
}

/* ---- fences --------------------------------------------------------------------------------- */

static __always_inline void fence_wait(bool begins)
{
	struct nt_host_thread *thread = current_thread();

	hit();
	if (thread)
		thread->fence_since = begins ? bpf_ktime_get_boot_ns() : 0;
}

/* ---- block devices -------------------------------------------------------------------------- */

/* A request of a rank, in flight. Key: its address in the kernel, which later ones have again. */
struct block_request {
	__u64 since_ns, bytes; /* bytes: that are complete */
	__u32 slot, tgid, tid, device; /* tgid: of the rank */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NT_HOST_REQUESTS);
	__type(key, __u64);
	__type(value, struct block_request);
} requests SEC(".maps");

/* In the context of the process that makes it. False: it is no rank's, or was not noted. */
static __always_inline bool note_request(__u64 key)
{
	const struct request___host *from = (const void *)key;
	struct nt_host_thread *thread = current_thread();
	struct nt_host_process *process = thread ? process_at(thread->slot) : NULL;
	struct block_request request = {0};
	struct gendisk *disk;

	if (!process)
		return false;
	disk = BPF_CORE_READ(from, q, disk);
	request.since_ns = bpf_ktime_get_boot_ns();
	request.slot = thread->slot;
	request.tgid = process->tgid;
	request.tid = (__u32)bpf_get_current_pid_tgid();
	request.device =
		NT_HOST_DEVICE(BPF_CORE_READ(disk, major), BPF_CORE_READ(disk, first_minor));
	return bpf_map_update_elem(&requests, &key, &request, BPF_ANY) == 0;
}

static __always_inline void forget_request(__u64 key)
{
	if (bpf_map_lookup_elem(&requests, &key))
		bpf_map_delete_elem(&requests, &key);
}

/* What is known of an earlier request at this address has lost its end. */
static __always_inline void request_starts(__u64 key)
{
	hit();
	if (!note_request(key))
		forget_request(key);
}

/* Several calls for one request: the first counts, unless the programs were not attached since. */
static __always_inline void request_is_seen(__u64 key)
{
	struct block_request *known;

	hit();
	if (!current_thread())
		return;
	known = bpf_map_lookup_elem(&requests, &key);
	if (!known || known->since_ns <= work_since_ns)
		note_request(key);
}

static __always_inline void request_is_gone(__u64 key)
{
	hit();
	forget_request(key);
}

static __always_inline void charge_device(struct nt_host_process *process,
					  const struct block_request *request, __u64 ns)
{
	for (int i = 0; i < NT_HOST_DEVICES; i++) {
		struct nt_host_device *device = &process->device[i];

		if (device->device != request->device &&
		    __sync_val_compare_and_swap(&device->device, 0, request->device) != 0)
			continue;
		__sync_fetch_and_add(&device->requests, 1);
		__sync_fetch_and_add(&device->bytes, request->bytes);
		__sync_fetch_and_add(&device->ns, ns);
		if (ns > device->most_ns)
			device->most_ns = ns;
		return;
	}
	__sync_fetch_and_add(&process->devices_dropped, 1);
}

/* bytes: that are complete now, which may be a part of those that are left. */
static __always_inline void request_ends(__u64 key, __u32 bytes)
{
	struct block_request *found = bpf_map_lookup_elem(&requests, &key), request;
	const struct request___host *from = (const void *)key;
	struct nt_host_process *process;
	struct nt_host_event *event;
	__u64 now;

	hit();
	if (!found)
		return;
	found->bytes += bytes;
	if (bytes < BPF_CORE_READ(from, __data_len))
		return;
	request = *found;
	bpf_map_delete_elem(&requests, &key);
	process = process_at(request.slot);
	/* From before a pause of the programs, or of a rank that has left. */
	if (!process || process->tgid != request.tgid || request.since_ns <= work_since_ns)
		return;
	now = bpf_ktime_get_boot_ns();
	charge_device(process, &request, now - request.since_ns);
	if (!is_recorded(process))
		return;
	event = begin_event(process, now, NT_HOST_EVENT_BLOCK);
	if (!event)
		return;
	event->tid = request.tid;
	event->value = now - request.since_ns;
	event->bytes = request.bytes;
	event->other = request.device;
	event->reason = NT_HOST_WAIT_BLOCK_IO;
	send_event(event);
}

/* ---- TCP ------------------------------------------------------------------------------------ */

enum {
	TCP_SYN_SENT = 2,
	TCP_CLOSE = 7,
	FAMILY_INET = 2,
	FAMILY_INET6 = 10,
};

/* Whose a socket is: its member. Key: its address in the kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NT_HOST_SOCKETS);
	__type(key, __u64);
	__type(value, __u32);
} sockets SEC(".maps");

/* In the context of a process that uses the socket. Timers and interrupts come elsewhere. */
static __always_inline void socket_used(__u64 key)
{
	const struct sock *sock = (const void *)key;
	struct nt_host_thread *thread = current_thread();
	unsigned short family;
	__u32 *known, tgid;

	hit();
	if (!thread)
		return;
	known = bpf_map_lookup_elem(&sockets, &key);
	if (known && *known == thread->tgid)
		return;
	family = BPF_CORE_READ(sock, __sk_common.skc_family);
	if (family != FAMILY_INET && family != FAMILY_INET6)
		return;
	tgid = thread->tgid;
	bpf_map_update_elem(&sockets, &key, &tgid, BPF_ANY);
}

static __always_inline void socket_changes(__u64 key, int state)
{
	if (state == TCP_SYN_SENT) {
		socket_used(key);
	} else if (state == TCP_CLOSE) {
		hit();
		bpf_map_delete_elem(&sockets, &key);
	}
}

static __always_inline void tcp_event(__u64 key, enum nt_host_event_kind kind, bool is_sent)
{
	__u32 *tgid = bpf_map_lookup_elem(&sockets, &key);
	struct nt_host_process *process = NULL;
	struct nt_host_member *member;
	struct nt_host_event *event;

	hit();
	member = tgid ? bpf_map_lookup_elem(&members, tgid) : NULL;
	if (member)
		process = process_at(member->slot);
	if (!process) {
		__sync_fetch_and_add(&sockets_unowned, 1);
		return;
	}
	if (kind == NT_HOST_EVENT_RETRANSMIT)
		__sync_fetch_and_add(&process->retransmits, 1);
	else
		__sync_fetch_and_add(is_sent ? &process->resets_sent : &process->resets_received,
				     1);
	if (!is_recorded(process))
		return;
	event = begin_event(process, bpf_ktime_get_boot_ns(), kind);
	if (!event)
		return;
	event->other = kind == NT_HOST_EVENT_RESET ? 2 - is_sent : 0;
	send_event(event);
}

/* ---- interrupts ----------------------------------------------------------------------------- */

enum {
	STUCK_NS = 1000000000, /* no interrupt takes that long: its end was not observed */
};

static __always_inline void irq_begins(void)
{
	struct nt_host_cpu *cpu = this_cpu();
	__u64 now;

	if (!cpu)
		return;
	cpu->hits += 2;
	now = bpf_ktime_get_boot_ns();
	if (cpu->depth && now - cpu->irq_since_ns > STUCK_NS)
		cpu->depth = 0;
	if (!cpu->depth++)
		cpu->irq_since_ns = now;
}

static __always_inline void irq_ends(void)
{
	struct nt_host_cpu *cpu = this_cpu();

	if (!cpu || !cpu->depth || --cpu->depth)
		return;
	cpu->irq_ns += bpf_ktime_get_boot_ns() - cpu->irq_since_ns;
}

#endif
