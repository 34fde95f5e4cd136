/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of /metrics for jobs, nodes, culprits and ranks of a snapshot. The number of series is
 * limited: a scrape has ranks only if a firing incident names them, or if it requests their job.
 * What a limit leaves out is counted in neutracer_aggregator_series_left_out.
 */
#ifndef NT_AGGREGATOR_API_JOB_METRICS_H
#define NT_AGGREGATOR_API_JOB_METRICS_H

#include "aggregator/group/node_desk.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/system/metrics_text.h"
#include "engine/snapshot.h"

enum {
	NT_JOB_METRICS_MAX_JOBS = 512,
	NT_JOB_METRICS_MAX_NODES = 2048,
	NT_JOB_METRICS_MAX_CULPRITS = 128, /* of firing incidents */
	NT_JOB_METRICS_MAX_RANKS = 1024, /* of requested jobs */
};

enum nt_series_kind {
	NT_SERIES_JOB,
	NT_SERIES_NODE,
	NT_SERIES_CULPRIT,
	NT_SERIES_RANK,
	NT_SERIES_KIND_END,
};

/* A rank with series of its own. */
struct nt_rank_series {
	const struct nt_snapshot_job *job;
	const struct nt_snapshot_rank *rank;
};

/* job_id="…",job_name="…",job_namespace="…", behind an opening brace. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_job_metrics_labels(const struct nt_snapshot_job *job, struct nt_buf *out);

/* Jobs, nodes, incidents and the ranks that these name. desk: NULL: no scores. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_job_metrics_write(const struct nt_snapshot *snapshot,
				       struct nt_node_desk *desk, enum nt_metrics_format format,
				       struct nt_buf *out);

/* The ranks of the jobs that `wanted` names: nt_snapshot_job_matches(). -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_job_metrics_write_ranks(const struct nt_snapshot *snapshot, const char *wanted,
					     enum nt_metrics_format format, struct nt_buf *out);

/* ---- rank_metrics.c --------------------------------------------------------------------------- */

/* All families of these ranks, which are distinct. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_rank_metrics_write(const struct nt_rank_series *series, size_t count,
					enum nt_metrics_format format, struct nt_buf *out);

#endif
