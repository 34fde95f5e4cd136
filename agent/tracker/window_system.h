/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System events of one window: the differences of two readings. */
#ifndef NT_AGENT_TRACKER_WINDOW_SYSTEM_H
#define NT_AGENT_TRACKER_WINDOW_SYSTEM_H

#include "agent/host/host.h"
#include "proto/wire.h"

/*
 * Fills in what the tracepoints showed between the two readings. Texts of the result are those of
 * `now`, which must outlive it.
 */
void nt_window_system_fill(const struct nt_host_sample *before, const struct nt_host_sample *now,
			   struct nt_host_evidence *host);
/* NT_WIRE_SHED_*: what of them is not observed all the time, as it costs too much. */
uint32_t nt_window_system_shed(const struct nt_host_sample *now);

#endif
