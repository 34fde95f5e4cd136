/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Event output of probes. The agent is woken only when the ring fills: it reads the ring every few
 * milliseconds in any case. A wake-up costs the traced process more than the event itself.
 *
 * The first quarter of the ring is first come, first served. Beyond that, each process and each
 * owner has a share of events per period, which shrinks as the ring fills. A flood from one
 * process, or from many of one owner, then leaves room for the others.
 *
 * The owner is the third cgroup from the root of the unified hierarchy, which only root can create.
 * It is one of these:
 *
 * - the pod (kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice),
 * - the container of a guaranteed pod, which has no slice for its class
 *   (kubepods.slice/kubepods-podUID.slice/ID.scope),
 * - the user's manager or a login (user.slice/user-N.slice/user@N.service),
 * - Slurm's job (system.slice/slurmstepd.scope/job_N).
 *
 * Levels below may be delegated to a user, who can create any number of cgroups there. User ids do
 * not count there: root in a container has all of them, and a user has 65,536 by /etc/subuid.
 *
 * Processes above that level are a service, a Docker container, or all if every controller is of
 * version 1. Their owner is their cgroup and user; in a user namespace, the user that created it.
 * As ids are many there too, all users of such a cgroup also have a joint share.
 */
#ifndef NT_BPF_EMIT_BPF_H
#define NT_BPF_EMIT_BPF_H

#include "bpf/process.bpf.h"

/* The ring of all events. The agent sizes it before load. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} events SEC(".maps");

/* Unread bytes from which the agent is woken; set by the agent to a 16th of the ring. */
const volatile __u64 wakeup_bytes = 1 << 18;

/* Shift from boot time in ns to the number of a share period: 134 ms. */
const volatile __u32 share_shift = 27;

enum {
	RING_HEADER = 8, /* bytes that the kernel puts before each event */
	FREE_PART = 4, /* of wakeup_bytes, which is a 16th: a quarter of the ring */
	/* bytes of wakeup_bytes for one event of the share in the second quarter */
	PROCESS_SHARE = 2048,
	SHARE_BYTES = 128, /* of an event that counts once */
	/* shares of a process that make one of an owner; of an owner, of a cgroup */
	OWNER_TIMES = 4,
	OWNER_LEVEL = 3,
	NAMESPACES_MAX = 33, /* of users, one in another: 32 and the initial one */
};

#define ANY_USER (~0ULL)

/* Events dropped by type, exported as a metric. */
__u64 dropped[NT_EVENT_TYPE_END];
/* Of them, those over a process's or owner's share. */
__u64 over_share;

struct owner_key {
	__u64 cgroup; /* version 2; 1 where all processes are in the root */
	__u64 uid; /* or ANY_USER */
};

struct owner_share {
	__u64 period;
	__u64 events;
};

/* Owners with events while the ring was filling. LRU: an entry matters for one period only. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct owner_key);
	__type(value, struct owner_share);
} shares SEC(".maps");

static const struct owner_share no_share;

/* The current process's user id, or the creator of its outermost user namespace. */
static __always_inline __u32 current_user(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct user_namespace *at = BPF_CORE_READ(task, cred, user_ns);

	for (int i = 0; i < NAMESPACES_MAX && at; i++) {
		int level = BPF_CORE_READ(at, level);

		if (level == 1)
			return BPF_CORE_READ(at, owner.val);
		if (level < 1)
			break;
		at = BPF_CORE_READ(at, parent);
	}
	return (__u32)bpf_get_current_uid_gid();
}

/* Races between threads change a share slightly, which is harmless. */
static __noinline bool key_has_share(__u64 cgroup, __u64 uid, __u64 period, __u64 most,
				     __u64 weight)
{
	struct owner_key key = {.cgroup = cgroup, .uid = uid};
	struct owner_share *share = bpf_map_lookup_elem(&shares, &key);

	if (!share) {
		bpf_map_update_elem(&shares, &key, &no_share, BPF_NOEXIST);
		share = bpf_map_lookup_elem(&shares, &key);
		if (!share)
			return true;
	}
	if (share->period != period) {
		share->period = period;
		share->events = 0;
	}
	share->events += weight;
	return share->events <= most;
}

static __noinline bool owner_has_share(__u64 period, __u64 most, __u64 weight)
{
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(OWNER_LEVEL);

	if (cgroup)
		return key_has_share(cgroup, ANY_USER, period, most, weight);
	cgroup = bpf_get_current_cgroup_id();
	if (!key_has_share(cgroup, current_user(), period, most, weight))
		return false;
	/* The root cgroup has no owner. */
	return !bpf_get_current_ancestor_cgroup_id(1) ||
	       key_has_share(cgroup, ANY_USER, period, most * OWNER_TIMES, weight);
}

/*
 * Checks the shares of process and owner while a quarter of the ring or more is unread. weight: 1, or
 * how many events a large one counts as.
 */
static __noinline bool has_share(__u64 unread, __u64 weight)
{
	struct nt_process_counters *process = process_counters(BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 period = bpf_ktime_get_boot_ns() >> share_shift;
	/* Of the default ring: 2048 events, from half on 512, from three quarters on 128. */
	__u64 most = wakeup_bytes * 16 / PROCESS_SHARE;

	if (unread >= wakeup_bytes * 12)
		most >>= 4;
	else if (unread >= wakeup_bytes * 8)
		most >>= 2;
	if (!process)
		return false;
	if (process->period != period) {
		process->period = period;
		process->period_events = 0;
	}
	process->period_events += weight;
	if (process->period_events <= most && owner_has_share(period, most * OWNER_TIMES, weight))
		return true;
	__sync_fetch_and_add(&over_share, 1);
	return false;
}

/* Counts an event of the current process as lost. */
static __noinline int event_lost(__u32 type, __u32 row)
{
	struct nt_process_counters *process = process_counters(BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (type < NT_EVENT_TYPE_END)
		__sync_fetch_and_add(&dropped[type], 1);
	if (process)
		__sync_fetch_and_add(&process->lost, 1);
	row_unseen(process, row);
	return 0;
}

/*
 * True if there is room for an event of that size. *ret_flags: for its submission. They wake the
 * agent once, as the unread data grow past wakeup_bytes, not for each event beyond, as a wake-up
 * costs ten times the event. A crossing missed to a race only delays the agent to its next regular
 * read.
 */
static __always_inline bool nt_room(__u32 size, __u64 *ret_flags)
{
	__u64 unread = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	*ret_flags = unread < wakeup_bytes && unread + size + RING_HEADER >= wakeup_bytes
			     ? BPF_RB_FORCE_WAKEUP
			     : BPF_RB_NO_WAKEUP;
	return unread < wakeup_bytes * FREE_PART ||
	       has_share(unread, size <= 4 * SHARE_BYTES ? 1 : size / SHARE_BYTES);
}

/* Copies an event of any size into the ring. It must be complete. False: it is lost, and counted. */
static __always_inline bool nt_output(enum nt_event_type type, __u32 row, const void *event,
				      __u32 size)
{
	__u64 flags;

	if (nt_room(size, &flags) && bpf_ringbuf_output(&events, (void *)event, size, flags) == 0)
		return true;
	event_lost(type, row);
	return false;
}

/* Reserves an event to be built in the ring. The caller fills every byte of it. */
static __always_inline void *nt_reserve(enum nt_event_type type, __u32 row, __u32 size,
					__u64 *ret_flags)
{
	void *event = NULL;

	if (nt_room(size, ret_flags))
		event = bpf_ringbuf_reserve(&events, size, 0);
	if (!event)
		event_lost(type, row);
	return event;
}

#endif
