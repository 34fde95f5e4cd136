/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a probe emits. The agent is woken only when the ring fills: it reads the ring every few
 * milliseconds in any case, and a wake-up costs the traced process more than the event itself.
 *
 * Up to a quarter of the ring is first come, first served. Beyond, a process has a share of events per
 * period, and so has an owner; both shrink as the ring fills. A flood of one process, or of many of one
 * owner, then leaves room for the others.
 *
 * The owner is the third cgroup from the root of the unified hierarchy, which only root can make more
 * of: the pod (kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice), the container of
 * a guaranteed pod, which has no slice for its class (kubepods.slice/kubepods-podUID.slice/ID.scope), the
 * user's manager or a login (user.slice/user-N.slice/user@N.service), or Slurm's job
 * (system.slice/slurmstepd.scope/job_N). What is below may be delegated to its user, who can make as many
 * cgroups there as it pleases. User ids do not count there: root in a container has all of them, and a
 * user 65,536 by /etc/subuid.
 *
 * A process that is not so deep down (a service, a container of Docker, or every process of a host whose
 * controllers are all of version 1) has its own cgroup and its user for an owner: of a user namespace the
 * user that has made it. As ids are many there too, all users of such a cgroup have a share as well.
 */
#ifndef NT_BPF_EMIT_BPF_H
#define NT_BPF_EMIT_BPF_H

#include "bpf/process.bpf.h"

/* Every event leaves through this map. The agent sizes it before load. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} events SEC(".maps");

/* Unread bytes from which the agent is woken; set by the agent to a 16th of the ring. */
const volatile __u64 wakeup_bytes = 1 << 18;

/* Of the boot time in ns, to the number of a period of shares: 134 ms. */
const volatile __u32 share_shift = 27;

enum {
	RING_HEADER = 8, /* bytes that the kernel puts before each event */
	FREE_PART = 4, /* of wakeup_bytes, which is a 16th: a quarter of the ring */
	/* bytes of wakeup_bytes for one event of the share in the second quarter */
	PROCESS_SHARE = 2048,
	/* shares of a process that make one of an owner; of an owner, of a cgroup */
	OWNER_TIMES = 4,
	OWNER_LEVEL = 3,
	NAMESPACES_MAX = 33, /* of users, one in another: 32 and the initial one */
};

#define ANY_USER (~0ULL)

/* Events that found no room, by type; the agent exports them as a metric. */
__u64 dropped[NT_EVENT_TYPE_END];
/* Of them, those of a process or owner over its share. */
__u64 over_share;

struct owner_key {
	__u64 cgroup; /* version 2; 1 where all processes are in the root */
	__u64 uid; /* or ANY_USER */
};

struct owner_share {
	__u64 period;
	__u64 events;
};

/* Owners whose events came while the ring was filling. LRU: a period is all that an entry is for. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct owner_key);
	__type(value, struct owner_share);
} shares SEC(".maps");

static const struct owner_share no_share;

/* Of the current process: its user id, or who has made the outermost of the namespaces that it is in. */
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

/* Races between threads make a share a little larger or smaller, which does no harm. */
static __noinline bool key_has_share(__u64 cgroup, __u64 uid, __u64 period, __u64 most)
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
	return ++share->events <= most;
}

static __noinline bool owner_has_share(__u64 period, __u64 most)
{
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(OWNER_LEVEL);

	if (cgroup)
		return key_has_share(cgroup, ANY_USER, period, most);
	cgroup = bpf_get_current_cgroup_id();
	if (!key_has_share(cgroup, current_user(), period, most))
		return false;
	/* The root is nobody's. */
	return !bpf_get_current_ancestor_cgroup_id(1) ||
	       key_has_share(cgroup, ANY_USER, period, most * OWNER_TIMES);
}

/* May an event be sent while so many bytes are unread, a quarter of the ring or more? */
static __noinline bool has_share(__u64 unread)
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
	if (++process->period_events <= most && owner_has_share(period, most * OWNER_TIMES))
		return true;
	__sync_fetch_and_add(&over_share, 1);
	return false;
}

/* The event of a row of the current process is lost. */
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
 * Is there room for an event of that size? *ret_flags: for its submission. They wake the agent once, as
 * the unread data grow past wakeup_bytes, not for each event beyond: a wake-up costs ten times what the
 * event does, and a crossing missed to a race only means that the agent looks when it would have
 * looked anyway.
 */
static __always_inline bool nt_room(__u32 size, __u64 *ret_flags)
{
	__u64 unread = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	*ret_flags = unread < wakeup_bytes && unread + size + RING_HEADER >= wakeup_bytes
			     ? BPF_RB_FORCE_WAKEUP
			     : BPF_RB_NO_WAKEUP;
	return unread < wakeup_bytes * FREE_PART || has_share(unread);
}

/* Copies an event of any size into the ring. It must be complete. */
static __always_inline void nt_output(enum nt_event_type type, __u32 row, const void *event,
				      __u32 size)
{
	__u64 flags;

	if (!nt_room(size, &flags) || bpf_ringbuf_output(&events, (void *)event, size, flags) < 0)
		event_lost(type, row);
}

/* For an event that is put together in the ring itself. The caller fills every byte of it. */
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
