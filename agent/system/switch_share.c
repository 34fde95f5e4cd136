/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/switch_share.h"

void nt_switch_share_set(struct nt_switch_share *share, double now, uint64_t boot_ns)
{
	*share = (struct nt_switch_share){.now = now, .former = share->now, .since_ns = boot_ns};
}

double nt_switch_share_at(const struct nt_switch_share *share, uint64_t boot_ns)
{
	return boot_ns < share->since_ns ? share->former : share->now;
}

static void settle(struct nt_dropped_events *events, __u64 counted[NT_HOST_EVENT_END],
		   enum nt_host_event_kind kind, double share)
{
	const double calls =
		(double)__atomic_exchange_n(&counted[kind], (__u64)0, __ATOMIC_RELAXED);

	events->calls[kind] +=
		kind == NT_HOST_EVENT_OUT || kind == NT_HOST_EVENT_IN ? calls / share : calls;
}

void nt_dropped_events_settle(struct nt_dropped_events *events, __u64 counted[NT_HOST_EVENT_END],
			      double share)
{
	for (enum nt_host_event_kind kind = NT_HOST_EVENT_OUT; kind < NT_HOST_EVENT_END; kind++)
		settle(events, counted, kind, share);
}

double nt_dropped_events_take(struct nt_dropped_events *events, __u64 counted[NT_HOST_EVENT_END],
			      enum nt_host_event_kind kind, double share)
{
	double calls;

	settle(events, counted, kind, share);
	calls = events->calls[kind];
	events->calls[kind] = 0.0;
	return calls;
}
