/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Job summaries on the bus: the data that every aggregator shows of jobs owned by another. */
#ifndef NT_AGGREGATOR_GROUP_JOB_SUMMARY_H
#define NT_AGGREGATOR_GROUP_JOB_SUMMARY_H

#include <stdint.h>

#include "aggregator/group/state_log.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "engine/snapshot.h"
#include "proto/wire.h"

enum {
	NT_JOB_SUMMARIES_MAX = 65536, /* of others' jobs; further ones are counted */
};

/* Monotonic. */
struct nt_job_summaries_counters {
	uint64_t taken, refused, over_cap, published;
};

struct nt_job_summaries;

NT_MUST_CHECK int nt_job_summaries_new(struct nt_job_summaries **ret_summaries);
void nt_job_summaries_free(struct nt_job_summaries *summaries);
NT_DEFINE_AUTO(nt_job_summaries, nt_job_summaries_free)

/* Processes a record of the state topic from another aggregator; skips other records. -ENOMEM. */
NT_MUST_CHECK int nt_job_summaries_take(struct nt_job_summaries *summaries,
					const struct nt_bus_record *record, uint64_t own_boot);

/*
 * Publishes changed summaries of the shard's jobs, and removes those of jobs that are gone.
 * Failures are retried at the next call.
 */
NT_MUST_CHECK int nt_job_summaries_publish(struct nt_job_summaries *summaries,
					   const struct nt_state_log_port *port, const char *owner,
					   uint32_t shard, const struct nt_snapshot_job *const *job,
					   size_t jobs);

/* The shard has another owner now: its published summaries are no longer changed here. */
void nt_job_summaries_drop(struct nt_job_summaries *summaries, uint32_t shard);

/* Snapshots of the jobs that others own, borrowed until the next call. -ENOMEM. */
NT_MUST_CHECK int nt_job_summaries_list(struct nt_job_summaries *summaries,
					const struct nt_snapshot_job ***ret_job, size_t *ret_jobs);

const struct nt_job_summaries_counters *
nt_job_summaries_counters(const struct nt_job_summaries *summaries);

#endif
