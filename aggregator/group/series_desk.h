/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The recent past of jobs: a point for each rank, and one for the job, at each frame that a snapshot
 * shows. Where frames are shorter than the time between snapshots, some have no point. A rank takes
 * 2 KiB; ranks over the cap of bytes have no past, and are counted. Nothing survives a restart.
 *
 * The deciding thread writes; HTTP threads read copies.
 */
#ifndef NT_AGGREGATOR_GROUP_SERIES_DESK_H
#define NT_AGGREGATOR_GROUP_SERIES_DESK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/snapshot.h"

enum {
	NT_SERIES_POINTS = 64, /* of a rank */
	NT_SERIES_STEPS = 512, /* points of a job */
};

enum nt_series_metric {
	NT_SERIES_STEP,
	NT_SERIES_OWN,
	NT_SERIES_OWN_PEERS,
	NT_SERIES_HOST,
	NT_SERIES_BLOCKED,
	NT_SERIES_COMMUNICATION,
	NT_SERIES_ENQUEUE_LAG,
	NT_SERIES_KPI,
	NT_SERIES_METRIC_END,
};

/* "step_seconds" …, as the members of a rank in REST. NULL for none. */
const char *nt_series_metric_name(enum nt_series_metric metric);
/* NT_SERIES_METRIC_END if the name is unknown. */
enum nt_series_metric nt_series_metric_of(const char *name);

struct nt_series_point {
	uint64_t real_ns; /* end of the frame */
	float value; /* in seconds, or of the KPI; NaN: not known */
};

struct nt_series_step {
	uint64_t real_ns, frame; /* frame: its number */
	float step_s, completeness; /* step_s: median of the ranks; NaN: no steps */
	uint32_t live; /* ranks */
	uint32_t slowest_rank; /* the most own work */
	float slowest_own_s; /* NaN: no rank's own work is known */
};

struct nt_series_desk;

/* max_bytes of all ranks; 0: 64 MiB. */
NT_MUST_CHECK int nt_series_desk_new(size_t max_bytes, struct nt_series_desk **ret_desk);
void nt_series_desk_free(struct nt_series_desk *desk);
NT_DEFINE_AUTO(nt_series_desk, nt_series_desk_free)

/* On the deciding thread: adds points of jobs with a new frame. desk may be NULL. */
void nt_series_desk_look(struct nt_series_desk *desk, const struct nt_snapshot *snapshot);

/* In order of time. Returns their number; -ENOENT: the job or rank has no past here. */
NT_MUST_CHECK int nt_series_desk_rank(struct nt_series_desk *desk, const char *job_id,
				      uint32_t rank, enum nt_series_metric metric,
				      struct nt_series_point ret_point[NT_SERIES_POINTS]);
NT_MUST_CHECK int nt_series_desk_steps(struct nt_series_desk *desk, const char *job_id,
				       struct nt_series_step ret_step[NT_SERIES_STEPS]);

struct nt_series_desk_stats {
	uint64_t ranks, bytes; /* now */
	uint64_t ranks_over_cap; /* now */
	uint64_t failed; /* jobs that got no point, for want of memory */
};

void nt_series_desk_stats(struct nt_series_desk *desk, struct nt_series_desk_stats *ret_stats);

#endif
