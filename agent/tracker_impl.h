/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tracker from inside; for agent/tracker*.c alone. */
#ifndef NT_AGENT_TRACKER_IMPL_H
#define NT_AGENT_TRACKER_IMPL_H

#include <uthash.h>

#include "agent/process.h"
#include "agent/rank.h"
#include "agent/registry.h"
#include "agent/tracker.h"

enum {
	NT_TRACKER_FOREIGN = 256, /* pids of processes that are not watched */
};

/* An event that came before discovery told of its process. */
struct nt_tracker_orphan {
	struct nt_event_call call;
	bool has_id;
	uint8_t id[NT_ID_BYTES];
};

/* A job's key with something to send under it. */
struct nt_tracker_key {
	char key[NT_IDENTITY_KEY];
	uint32_t ranks;
	uint64_t sent_ns, watermark_ns; /* of the last message */
	uint64_t empty_ns; /* since when it has no ranks */
	UT_hash_handle hh;
};

struct nt_tracker {
	struct nt_tracker_options options;
	struct nt_registry registry;
	struct nt_process *processes; /* uthash by pid, owned */
	struct nt_tracker_key *keys; /* uthash, owned */
	struct nt_tracker_orphan *orphan; /* NT_TRACKER_ORPHANS, owned */
	uint32_t orphans;
	uint32_t foreign[NT_TRACKER_FOREIGN]; /* hashed; 0: free */
	uint64_t now_ns; /* of the last tick */
	struct nt_tracker_stats stats;
};

/* A step of the rank has ended: sends its window if that is long enough. */
void nt_tracker_stepped(struct nt_tracker *tracker, struct nt_rank *rank);
/* Sends what there is. ended: its process is gone, and it is the rank's last window. */
void nt_tracker_send(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t end_ns, bool ended);

#endif
