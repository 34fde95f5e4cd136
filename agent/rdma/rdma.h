/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * RDMA: the queue pairs of the node's processes, and their traffic.
 *
 * Queue pairs are known by events of libibverbs (bpf/verbs.bpf.h). Their traffic is observed at the
 * provider's post_send and poll_cq (bpf/traffic.bpf.h), of one process at a time: in ranks in short
 * slices, and in processes at level 1 or above always, completions still in slices. Slices begin at
 * multiples of their period in real time, so that both ends of a link are observed together. After a
 * slice completions are observed until those of its timed requests have come, at most a second.
 *
 * Has no thread and makes no system calls: all of that is in the hooks. Boot time unless stated.
 */
#ifndef NT_AGENT_RDMA_RDMA_H
#define NT_AGENT_RDMA_RDMA_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/rdma/queue_pair.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"
#include "proto/wire.h"

struct nt_rank_probe; /* agent/probes/rank_probe.h */
struct nt_provider_place; /* agent/rdma/provider_file.h */

enum {
	NT_RDMA_PROCESSES = 1024, /* at the cap one of the owner with most that are no rank goes */
	NT_RDMA_PROVIDERS = 32, /* remembered by build-id; the oldest is replaced */
};

/* The kernel's tables of queue pairs. */
enum nt_rdma_table {
	NT_RDMA_TRAFFIC,
	NT_RDMA_SIGNALED,
	NT_RDMA_TABLES,
};

/* Of the period of real time the beginning is observed. */
struct nt_rdma_slices {
	uint64_t period_ns, slice_ns;
};

struct nt_rdma_options {
	struct nt_rdma_slices posts, polls; /* below level 1 */
	struct nt_rdma_slices raised_polls; /* from level 1 on, where posts are always observed */
};

struct nt_rdma_hooks {
	/*
	 * Searches a provider's file: ends with nt_rdma_found(). Addresses 0: that of a device which the
	 * process holds. Negative: not begun.
	 */
	int (*find)(void *data, uint32_t pid, uint64_t start_ns, uint64_t post, uint64_t poll);
	/* Attaches the file at the offset: ends with nt_rdma_made(). Negative: not begun. */
	int (*attach)(void *data, int library, uint32_t pid, uint64_t start_ns, int fd,
		      uint64_t offset);
	void (*detach)(void *data, struct nt_rank_probe *probe);
	/* False: it has had no traffic. */
	bool (*traffic)(void *data, const struct nt_rdma_key *key,
			struct nt_rdma_traffic *ret_traffic);
	/* As nt_traffic_map_forget(). */
	bool (*forget)(void *data, const struct nt_rdma_key *key, bool is_destroyed);
	/* The key after this one, or the first one (NULL), in no order. False: there is none. */
	bool (*next)(void *data, enum nt_rdma_table table, const struct nt_rdma_key *key,
		     struct nt_rdma_key *ret_key);
	/* False: the process has ended. */
	bool (*exists)(void *data, uint32_t pid);
	/* Sets what the kernel side does for the process; NULL: deletes it. */
	void (*watch)(void *data, uint32_t pid, const struct nt_rdma_watch *watch);
	/* Whose the process is (agent/identity/owner.h). 0: not known. */
	uint64_t (*owner)(void *data, uint32_t pid);
	bool (*totals)(void *data, uint32_t pid, struct nt_verbs_totals *ret_totals);
	/* The address of a port of this node. False: not known. */
	bool (*address)(void *data, const char *device, uint32_t port, uint32_t index,
			uint8_t ret_gid[NT_VERBS_GID], uint32_t *ret_lid);
	void *data;
};

struct nt_rdma_stats {
	uint64_t processes, queue_pairs, attached; /* now */
	uint64_t processes_over_cap, queue_pairs_over_cap; /* so far */
	uint64_t verbs_over_cap; /* events of queue pairs left out: too many of one owner, so far */
	uint64_t addresses_late; /* of ports: too many of one owner at once, so far */
	uint64_t not_visible; /* queue pairs whose traffic cannot be observed, so far */
	uint64_t refused; /* processes whose provider cannot be probed, so far */
	uint64_t cut, unread, untimed; /* of struct nt_rdma_traffic, so far */
	uint64_t unfinished; /* timed requests that were not complete by then, so far */
	uint64_t unsent; /* queue pairs left out of windows, so far */
};

struct nt_rdma;

/* A perf link takes 0.1 s to detach: kernels that have no others get fewer slices. */
void nt_rdma_options_set(struct nt_rdma_options *options, bool detaches_slowly);

/* The hooks are copied, the options too. */
NT_MUST_CHECK int nt_rdma_new(const struct nt_rdma_options *options,
			      const struct nt_rdma_hooks *hooks, struct nt_rdma **ret_rdma);
/* Detaches all. Accepts NULL. */
void nt_rdma_free(struct nt_rdma *rdma);
NT_DEFINE_AUTO(nt_rdma, nt_rdma_free)

/* In ring order. Of any process: it may become a rank later. */
void nt_rdma_event(struct nt_rdma *rdma, const struct nt_event_verbs *event);

/* A process has become a rank; has ended, or is no longer watched. */
void nt_rdma_add(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns, uint64_t now_ns);
void nt_rdma_end(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns);

/* In ring order with the events: the process runs another program, which has none of its queue pairs. */
void nt_rdma_exec(struct nt_rdma *rdma, uint32_t pid, uint64_t boot_ns);

/* Level 0: sampled, as at first. */
void nt_rdma_set_level(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns, uint32_t level);
/*
 * What the governor decides: the traffic of the process is not observed, or in slices at any level.
 */
void nt_rdma_govern(struct nt_rdma *rdma, uint32_t pid, bool is_shed, bool is_sliced);

/*
 * Results of hooks. fd: taken over, and set to -1; -1 if only a device was found. provider: NULL with a
 * negative result.
 */
void nt_rdma_found(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns, int result, int *fd,
		   const struct nt_provider_place *provider);
void nt_rdma_made(struct nt_rdma *rdma, int library, uint32_t pid, uint64_t start_ns, int result,
		  struct nt_rank_probe *probe, uint64_t now_ns);

/* To be called several times a second. */
void nt_rdma_tick(struct nt_rdma *rdma, uint64_t now_ns, uint64_t real_ns);

/*
 * What happened since the last call for the process. Borrowed until the next call of any function
 * here. NULL: the process uses no RDMA.
 */
const struct nt_rdma_window *nt_rdma_take_window(struct nt_rdma *rdma, uint32_t pid,
						 uint64_t now_ns);

void nt_rdma_stats(const struct nt_rdma *rdma, struct nt_rdma_stats *ret_stats);

#endif
