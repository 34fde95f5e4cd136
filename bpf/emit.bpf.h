/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a probe emits. Nothing here wakes the agent but a ring that fills: it looks every few
 * milliseconds anyway, and a wake-up costs the traced process more than the event itself.
 */
#ifndef NT_BPF_EMIT_BPF_H
#define NT_BPF_EMIT_BPF_H

/* Every event leaves through this map. The agent sizes it before load. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} events SEC(".maps");

/* Unread bytes from which the agent is woken; set by the agent to a 16th of the ring. */
const volatile __u64 wakeup_bytes = 1 << 18;

enum {
	RING_HEADER = 8, /* bytes that the kernel puts before each event */
};

/* Events that found the ring full, by type; the agent exports them as a metric. */
__u64 dropped[NT_EVENT_TYPE_END];

/*
 * Flags for an event of that size which is about to be sent. Wakes the agent once, as the unread
 * data grow past wakeup_bytes, not for each event beyond: a wake-up costs ten times what the event
 * does, and a crossing missed to a race only means that the agent looks when it would have looked
 * anyway.
 */
static __always_inline __u64 nt_wakeup(__u32 size)
{
	__u64 unread = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	return unread < wakeup_bytes && unread + size + RING_HEADER >= wakeup_bytes
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

/* Copies an event of any size into the ring. It must be complete. */
static __always_inline void nt_output(enum nt_event_type type, const void *event, __u32 size)
{
	if (bpf_ringbuf_output(&events, (void *)event, size, nt_wakeup(size)) < 0)
		__sync_fetch_and_add(&dropped[type], 1);
}

/* For an event that is put together in the ring itself. The caller fills every byte of it. */
static __always_inline void *nt_reserve(enum nt_event_type type, __u32 size)
{
	void *event = bpf_ringbuf_reserve(&events, size, 0);

	if (!event)
		__sync_fetch_and_add(&dropped[type], 1);
	return event;
}

#endif
