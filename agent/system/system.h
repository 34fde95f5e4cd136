/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * System events of ranks, by tracepoints: where the time of their threads goes, who takes their CPU,
 * what memory, block devices and TCP cost them. They are attached while there is a rank. Only sums
 * leave the kernel, but for processes at level 1.
 */
#ifndef NT_AGENT_SYSTEM_SYSTEM_H
#define NT_AGENT_SYSTEM_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/system_total.h"
#include "common/base/cleanup.h"

enum {
	NT_SYSTEM_LEVEL_EVENTS = 1, /* from it on, single events are reported */
};

struct nt_system_options {
	size_t ring_bytes; /* of single events: a power of two, of pages */
	uint32_t events_max; /* of one process and second; further ones are dropped and counted */
	double budget; /* of the node's processor time in use: see event_budget.h. 0: no limit */
	/* A single event of a process at level 1; may be NULL. */
	void (*event)(void *data, uint64_t start_boot_ns, const struct nt_host_event *event);
	void *data;
};

struct nt_system_stats {
	uint64_t processes; /* observed now */
	uint64_t threads, helpers; /* in the tables now */
	uint64_t is_attached, is_shed; /* now: 1 or 0; shed: detached, as they cost too much */
	uint64_t is_sliced; /* context switches and uses of sockets are observed in slices */
	uint64_t sheds, slices; /* so far */
	uint64_t cost_ns; /* of the last second, on the whole node */
	uint64_t switch_ns, side_ns; /* of one context switch: see event_budget.h */
	uint64_t absent; /* tracepoints that this kernel does not have */
	/* Losses by cause. */
	uint64_t processes_over_cap, threads_over_cap, helpers_over_cap;
	uint64_t events, events_dropped; /* single ones */
	uint64_t takers_dropped, devices_dropped;
	uint64_t sockets_unowned; /* TCP events whose process is not known or no rank */
	uint64_t missed; /* hits inside of another program */
	uint64_t attach_failures;
	uint64_t oom_kills; /* on the node, while attached */
};

struct nt_system;

/*
 * -ENOTSUP: the kernel lacks something without which nothing can be observed. -EPERM, -EACCES: not
 * allowed. Measures what a context switch costs, which takes some 50 ms.
 */
NT_MUST_CHECK int nt_system_new(const struct nt_system_options *options,
				struct nt_system **ret_system);
void nt_system_free(struct nt_system *system);
NT_DEFINE_AUTO(nt_system, nt_system_free)

/*
 * Observes the process and what it has forked. At the cap it is left out, and counted. owner: whose
 * share of the tables its threads take; 0: not known.
 */
void nt_system_enrol(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns,
		     uint64_t owner);
void nt_system_leave(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns);

/*
 * False: the process is not observed, or in slices and none has ended yet. A thread that is not known
 * leaves its sums 0. Between slices the rates of the last one are taken to go on.
 */
bool nt_system_read(struct nt_system *system, uint32_t pid, uint32_t tid,
		    struct nt_system_total *ret_total);

/* A process that is not observed is passed over. */
void nt_system_set_level(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns,
			 uint32_t level);

/*
 * Single events of the process that were dropped since the last call: a context switch stands for as many as
 * the share then says.
 */
double nt_system_take_dropped(struct nt_system *system, uint32_t pid, enum nt_host_event_kind kind);

/*
 * Reports single events, at most 1 ms of them; removes what ranks that have left leave in the tables.
 * To be called ten times a second.
 */
void nt_system_poll(struct nt_system *system);

/*
 * Once a second: whether the cost is within the budget. busy_cores: processors of the node at work.
 * True: what is observed has changed: see is_shed and is_sliced of the stats.
 */
bool nt_system_tick(struct nt_system *system, uint64_t boot_ns, double busy_cores);

/* Part of the time in which context switches are observed: in slices less than 1. boot_ns: of an event. */
double nt_system_switch_share(const struct nt_system *system, uint64_t boot_ns);

void nt_system_stats(const struct nt_system *system, struct nt_system_stats *ret_stats);

#endif
