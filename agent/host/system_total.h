/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel's tracepoints show of a rank's process and of one of its threads. */
#ifndef NT_AGENT_HOST_SYSTEM_TOTAL_H
#define NT_AGENT_HOST_SYSTEM_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/host_event.h"

enum {
	NT_SYSTEM_DEVICE_NAME = 32,
};

/* Sums since the process is observed, but for the taker. */
struct nt_system_total {
	uint64_t observed_ns; /* boot time in which the tracepoints were attached */
	bool is_shed; /* they are not now: they cost more than the budget */
	bool is_estimated; /* context switches are observed in slices: their sums are estimates */
	/* Of the thread; wait_ns by enum nt_host_wait, its current wait included. */
	struct nt_host_times thread;
	/* Of all threads, when their waits end; helpers are processes that it has forked. */
	uint64_t wait_ns[NT_HOST_WAITS], helper_wait_ns[NT_HOST_WAITS];
	uint64_t reclaim_ns, compaction_ns;
	/* Requests to all block devices, and to the one that took most time. */
	uint64_t requests, request_ns;
	uint64_t device_requests, device_ns;
	char device[NT_SYSTEM_DEVICE_NAME]; /* "": none */
	uint64_t retransmits, resets, oom_kills;
	/* Since the last reading: who had the CPU while the process's threads were runnable. */
	struct nt_host_taker taker; /* the one that had it longest; tgid 0: none */
	uint64_t taken_ns; /* by all of them */
};

#endif
