/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The part of the time in which context switches are observed, and what single events stand for by it.
 * An event, dropped or not, has the part that held when it happened. Pure: no clock, no system call.
 */
#ifndef NT_AGENT_SYSTEM_SWITCH_SHARE_H
#define NT_AGENT_SYSTEM_SWITCH_SHARE_H

#include <stdint.h>

#include "bpf/host_event.h"

struct nt_switch_share {
	double now, former;
	uint64_t since_ns; /* boot time from which `now` holds */
};

/* Single events of one rank that were dropped, as many as those that they stand for. */
struct nt_dropped_events {
	double calls[NT_HOST_EVENT_END];
};

void nt_switch_share_set(struct nt_switch_share *share, double now, uint64_t boot_ns);
/* Of an event then; earlier changes than the last one are not known. */
double nt_switch_share_at(const struct nt_switch_share *share, uint64_t boot_ns);

/* Takes what the kernel side has counted since the last call, all of it while the share held. */
void nt_dropped_events_settle(struct nt_dropped_events *events, __u64 counted[NT_HOST_EVENT_END],
			      double share);
/* Those of one kind since the last call. */
double nt_dropped_events_take(struct nt_dropped_events *events, __u64 counted[NT_HOST_EVENT_END],
			      enum nt_host_event_kind kind, double share);

#endif
