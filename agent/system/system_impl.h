/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of agent/system; for its files alone. */
#ifndef NT_AGENT_SYSTEM_SYSTEM_IMPL_H
#define NT_AGENT_SYSTEM_SYSTEM_IMPL_H

#include "agent/system/event_budget.h"
#include "agent/system/system.h"

struct host_bpf;
struct bpf_link;
struct ring_buffer;

enum {
	NT_SYSTEM_PROGRAMS = 48,
};

/* In place of a slot's process: its threads are still to be removed. */
#define NT_SYSTEM_LEAVING UINT32_MAX

/* The kernel side. */
struct nt_system_loader {
	struct host_bpf *programs;
	struct ring_buffer *ring;
	struct nt_host_process *process; /* the map of the kernel side, by slot */
	size_t process_bytes;
	struct nt_host_cpu *cpus; /* room for one reading */
	int cpu_count;
	struct bpf_link *link[NT_SYSTEM_PROGRAMS];
	uint64_t absent, attach_failures;
	bool has_irq_time; /* the kernel itself takes interrupts out of run times */
	bool is_attached, is_irq_attached, is_switch_attached; /* is_attached: all that is rare */
	uint64_t switch_clock_ns; /* switch_clock() of the kernel side, when it was stopped */
};

/* agent/system/system_loader.c. event: of the ring. Errors as of nt_system_new(). */
NT_MUST_CHECK int nt_system_loader_open(struct nt_system_loader *loader, size_t ring_bytes,
					int (*event)(void *data, void *record, size_t bytes),
					void *data);
void nt_system_loader_close(struct nt_system_loader *loader);
/* Attaches what the state wants, and detaches the rest. A failure is counted. */
void nt_system_loader_set(struct nt_system_loader *loader, enum nt_event_budget_state state);
/* As the kernel side's switch_clock(): boot time in which switches were observed. */
uint64_t nt_system_loader_switch_clock(const struct nt_system_loader *loader);
/* Sums over all CPUs. */
void nt_system_loader_load(const struct nt_system_loader *loader,
			   struct nt_event_budget_load *ret_load);
uint64_t nt_system_loader_missed(const struct nt_system_loader *loader);

/* Where a pass through a table goes on. All 0: at its begin, also after its end. */
struct nt_system_cursor {
	uint32_t at;
	bool is_set, is_last; /* last: the entries that were read now */
};

/*
 * agent/system/system_members.c: puts a rank into the maps, with its threads and the processes that it
 * has forked, for at most 20 ms. What is left out is counted in its slot.
 */
void nt_system_members_add(const struct nt_system_loader *loader, uint32_t pid, uint32_t slot);

/* After a pause; a pass of several turns. Set to begin it: is_running, the rest 0. */
struct nt_system_again {
	uint32_t table, slot; /* the table that is looked through; the next slot to be listed */
	struct nt_system_cursor cursor;
	bool is_running;
};

/*
 * Goes on with the pass for at most 20 ms; the last rank may exceed them. Processes and threads that ended
 * unobserved leave their places; then each rank is listed again. pid: of a slot; 0, NT_SYSTEM_LEAVING: none.
 */
void nt_system_members_again(const struct nt_system_loader *loader, struct nt_system_again *again,
			     const uint32_t pid[NT_HOST_PROCESSES]);

/* True: `known` is no forked process of the slot that started then; start_ns 0: at a time not known. */
bool nt_system_members_is_stale(const struct nt_host_member *known, uint32_t slot,
				uint64_t start_ns);

/* Removes the threads of ranks that have left, in one pass of several turns. */
struct nt_system_sweep {
	bool is_swept[NT_HOST_PROCESSES]; /* the slots whose threads this pass removes */
	struct nt_system_cursor cursor;
	bool is_running;
};

/* agent/system/system_shares.c. Owners of ranks, by the index that struct nt_host_process has. There are as many as slots. */
struct nt_system_owners {
	uint64_t id[NT_HOST_PROCESSES];
	uint32_t slots[NT_HOST_PROCESSES]; /* of its ranks; 0: the place is free */
};

/* The index of the owner, which has one slot more from then on. */
uint32_t nt_system_shares_enter(struct nt_system_owners *owners, uint64_t owner);

/* Places in the maps. False: there is none for the slot. */
NT_MUST_CHECK bool nt_system_shares_take_thread(const struct nt_system_loader *loader,
						uint32_t slot);
void nt_system_shares_give_thread(const struct nt_system_loader *loader, uint32_t slot);
NT_MUST_CHECK bool nt_system_shares_take_helper(const struct nt_system_loader *loader,
						uint32_t slot);
void nt_system_shares_give_helper(const struct nt_system_loader *loader, uint32_t slot);
/* Removes an entry, and gives its place back. */
void nt_system_shares_drop_thread(const struct nt_system_loader *loader, uint32_t tid,
				  uint32_t slot);
void nt_system_shares_drop_member(const struct nt_system_loader *loader, uint32_t pid);
/* The next entries of a table, at most that many. 0: there are none, or an error ends the pass. */
uint32_t nt_system_shares_next(int fd, struct nt_system_cursor *cursor, uint32_t *key, void *value,
			       uint32_t max);
/* Removes the processes of the slot: no thread is added from then on. */
void nt_system_shares_close(const struct nt_system_loader *loader, uint32_t pid, uint32_t slot);
/* Goes on with a pass. True: it has reached the end. */
NT_MUST_CHECK bool nt_system_shares_sweep(const struct nt_system_loader *loader,
					  struct nt_system_sweep *sweep, uint64_t budget_ns);
/* Zeroes the slot. What it has not given back is given back. */
void nt_system_shares_clear(const struct nt_system_loader *loader, uint32_t slot);

/* agent/system/system_device.c: all requests, and those of the device for which it waited longest. */
void nt_system_devices_read(const struct nt_host_process *process, struct nt_system_total *total);

/* agent/system/system_cost.c: what context switches cost; slot: a free one. */
void nt_system_cost_measure(struct nt_system_loader *loader, uint32_t slot,
			    struct nt_event_budget_costs *ret_costs);

#endif
