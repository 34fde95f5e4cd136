/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State of agent/rdma/rdma.h; for agent/rdma/rdma*.c alone. */
#ifndef NT_AGENT_RDMA_RDMA_IMPL_H
#define NT_AGENT_RDMA_RDMA_IMPL_H

#include "agent/rdma/provider_file.h"
#include "agent/rdma/rdma.h"

#define NT_RDMA_GUESS_NS       (5 * NT_SECOND) /* a rank without verbs: its provider is guessed */
#define NT_RDMA_GUESS_AGAIN_NS (30 * NT_SECOND)
#define NT_RDMA_REST_NS        NT_SECOND /* after a slice: for completions of what was posted in it */
#define NT_RDMA_PORT_NS        (10 * NT_SECOND) /* so long the address of a port is not read again */
#define NT_RDMA_REFRESH_NS     (10 * NT_SECOND) /* queue pairs without traffic are sent again */

enum {
	NT_RDMA_FAILURES = 3, /* in a row, to attach: then the process is not observed */
	NT_RDMA_SENT = 64, /* queue pairs in one window */
	NT_RDMA_VERBS = 4096, /* events of one owner between two ticks */
	NT_RDMA_READS = 32, /* the same: addresses of ports that are not in the cache */
	NT_RDMA_PORTS = 256, /* in the cache */
	NT_RDMA_GUESSES = 5, /* after which the pause is doubled: up to 16 minutes */
};

enum nt_rdma_link_kind {
	NT_RDMA_LINK_POST,
	NT_RDMA_LINK_POLL,
	NT_RDMA_LINKS,
};

struct nt_rdma_link {
	enum { NT_RDMA_LINK_OFF, NT_RDMA_LINK_MAKING, NT_RDMA_LINK_ON } state;
	struct nt_rank_probe *probe; /* owned, by way of the hooks */
	uint64_t since_ns; /* attached, or last read */
	uint64_t observed_ns; /* since the last window, up to since_ns */
	uint32_t failures;
};

/* Who the processes belong to: a pod, a container or a user (agent/identity/owner.h). */
struct nt_rdma_owner {
	uint64_t id; /* 0: not known, which is one owner, too */
	uint32_t processes,
		idle; /* idle: of them, those that may be dropped; set where it is used */
	uint32_t verbs, reads; /* since the last tick */
	size_t pairs;
	bool is_lost; /* out of memory when it was added */
	UT_hash_handle hh;
};

struct nt_rdma_process {
	uint32_t pid, level;
	uint64_t start_ns; /* 0: not known yet */
	uint64_t seen_ns; /* of the first event; 0: none */
	bool is_rank, is_shed, is_sliced, is_watched, is_lost;
	bool has_extended, has_direct;
	enum {
		NT_RDMA_PROVIDER_UNKNOWN,
		NT_RDMA_PROVIDER_ASKED,
		NT_RDMA_PROVIDER_READY,
		NT_RDMA_PROVIDER_REFUSED,
	} provider;
	bool is_guess; /* the search is for any provider */
	bool holds_device; /* a guess found it open */
	uint32_t guesses; /* up to NT_RDMA_GUESSES */
	uint64_t guess_ns; /* when it is guessed; 0: never */
	uint64_t post, poll; /* addresses; 0: not known */
	uint64_t post_offset, poll_offset; /* in the file */
	int fd; /* owned; -1: none */
	struct nt_rdma_link link[NT_RDMA_LINKS];
	struct nt_rdma_watch watch;
	uint64_t rest_end_ns; /* with NT_RDMA_POLLED_REST */
	struct nt_queue_pairs pairs;
	struct nt_rdma_owner *owner;
	uint64_t refreshed_ns;
	UT_hash_handle hh;
};

/* Where a provider's functions are, by its build-id. */
struct nt_rdma_provider_place {
	char build_id[NT_PROVIDER_FILE_BUILD_ID];
	uint64_t post_offset, poll_offset;
};

/* The address of a port as it was read. */
struct nt_rdma_local {
	uint8_t port, index;
	bool has_gid;
	char device[NT_VERBS_DEVICE];
	uint8_t gid[NT_VERBS_GID];
	uint32_t lid;
	uint64_t end_ns; /* until when it holds; 0: never read */
};

/* A row of the window that is being made, and what it points to. */
struct nt_rdma_row {
	struct nt_rdma_pair pair;
	struct nt_queue_pair *of;
	struct nt_rdma_traffic now;
	uint64_t bytes;
	bool has_traffic;
};

struct nt_rdma {
	struct nt_rdma_options options;
	struct nt_rdma_hooks hooks;
	struct nt_rdma_process *process; /* uthash, owned, oldest first */
	size_t pairs; /* of all processes */
	struct nt_rdma_owner *owner; /* uthash, owned */
	struct nt_rdma_local port[NT_RDMA_PORTS]; /* the oldest is replaced */
	size_t ports; /* so far */
	uint64_t now_ns; /* of the last tick or event */
	struct nt_rdma_process *swept; /* the next that is looked at; NULL: the first one */
	struct {
		bool has_key; /* else the walk begins anew */
		struct nt_rdma_key key; /* the next that is looked at */
	} walk[NT_RDMA_TABLES];
	struct nt_rdma_provider_place place[NT_RDMA_PROVIDERS];
	size_t places; /* so far */
	struct nt_rdma_stats stats;
	/* Of the last window. */
	struct nt_rdma_window window;
	struct nt_rdma_row *row; /* owned; NT_QUEUE_PAIRS of them */
	struct nt_rdma_pair sent[NT_RDMA_SENT];
	char device[NT_RDMA_SENT][NT_VERBS_DEVICE];
	char local[NT_RDMA_SENT][NT_QUEUE_PAIR_ADDRESS],
		remote[NT_RDMA_SENT][NT_QUEUE_PAIR_ADDRESS];
};

/* Forgets the queue pair, its traffic included. */
void nt_rdma_forget_pair(struct nt_rdma *rdma, struct nt_rdma_process *process,
			 struct nt_queue_pair *pair);

struct nt_rdma_process *nt_rdma_find_process(const struct nt_rdma *rdma, uint32_t pid);
void nt_rdma_free_process(struct nt_rdma *rdma, struct nt_rdma_process *process);

/*
 * agent/rdma/rdma_address.c: sets the local address of the queue pair. An owner that asks for too many at
 * once gets the rest later: with windows.
 */
void nt_rdma_note_address(struct nt_rdma *rdma, struct nt_rdma_owner *owner,
			  struct nt_queue_pair *pair);

/* agent/rdma/rdma_sweep.c: drops a process that is no rank, if possible one that has ended. False: none is. */
bool nt_rdma_make_room(struct nt_rdma *rdma);
/* Some of the processes that have ended and whose end is not reported, and what the kernel keeps of such. */
void nt_rdma_sweep(struct nt_rdma *rdma);

/* agent/rdma/rdma_share.c: false if there is no memory, or the process has ended. */
bool nt_rdma_share_join(struct nt_rdma *rdma, struct nt_rdma_process *process);
void nt_rdma_share_leave(struct nt_rdma *rdma, struct nt_rdma_process *process);
/*
 * Makes room for one more queue pair of the process: half of the table is open to all, the other half to
 * owners below their share. At the cap one of the owner with most is forgotten. False: no room.
 */
bool nt_rdma_share_admit(struct nt_rdma *rdma, const struct nt_rdma_process *process);
/* What the kernel side may hold of the process. */
uint32_t nt_rdma_share_of(const struct nt_rdma *rdma, const struct nt_rdma_process *process);
/* Sets what the kernel side does for the process, its share included. */
void nt_rdma_watch_process(struct nt_rdma *rdma, struct nt_rdma_process *process);

#endif
