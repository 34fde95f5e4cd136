/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Heads of jobs on the bus: the little that every aggregator shows of a job which another one owns.
 */
#ifndef NT_AGGREGATOR_HEAD_H
#define NT_AGGREGATOR_HEAD_H

#include <stdint.h>

#include "aggregator/depot.h"
#include "aggregator/snapshot.h"
#include "common/bus.h"
#include "common/cleanup.h"
#include "proto/wire.h"

enum {
	NT_HEADS_MAX = 65536, /* of others; more are counted */
};

/* Monotonic. */
struct nt_heads_counters {
	uint64_t taken, refused, over_cap, published;
};

struct nt_heads;

NT_MUST_CHECK int nt_heads_new(struct nt_heads **ret_heads);
void nt_heads_free(struct nt_heads *heads);
NT_DEFINE_AUTO(nt_heads, nt_heads_free)

/* A record of the state topic that another aggregator wrote; what is no head is passed over. -ENOMEM. */
NT_MUST_CHECK int nt_heads_take(struct nt_heads *heads, const struct nt_bus_record *record,
				uint64_t own_boot);

/*
 * Publishes those of the shard's jobs whose heads have changed, and removes those of jobs that are
 * gone. What the port refuses is tried again the next time.
 */
NT_MUST_CHECK int nt_heads_publish(struct nt_heads *heads, const struct nt_depot_port *port,
				   const char *owner, uint32_t shard,
				   const struct nt_snapshot_job *const *job, size_t jobs);

/* The shard is another one's: what was published of it is no longer ours to change. */
void nt_heads_drop(struct nt_heads *heads, uint32_t shard);

/* Pictures of the jobs that others own, borrowed until the next call: how many. -ENOMEM. */
NT_MUST_CHECK int nt_heads_list(struct nt_heads *heads, const struct nt_snapshot_job ***ret_job,
				size_t *ret_jobs);

const struct nt_heads_counters *nt_heads_counters(const struct nt_heads *heads);

#endif
