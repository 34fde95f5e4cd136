/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Timelines: what each rank of a job did in the last half hour, in cells of ten seconds. A cell holds
 * three bytes a rank. It is immutable and reference-counted, so snapshots share it with the timeline.
 *
 * Frames are whole steps. A cell therefore ends with the first frame that ends ten seconds or more
 * after the cell's start, and a frame that is longer is a cell of its own.
 *
 * Used by the deciding thread, except for the references of cells. Timelines are in no saved state.
 */
#ifndef NT_ENGINE_TIMELINE_JOB_TIMELINE_H
#define NT_ENGINE_TIMELINE_JOB_TIMELINE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/detect.h"

enum {
	NT_TIMELINE_CELLS = 180, /* kept of a job */
	/* Own work and waiting: hundredths of the job's step on top of the third. */
	NT_TIMELINE_UNKNOWN = 0, /* not observed, or not observable */
	NT_TIMELINE_NO_STEP = 1, /* observed, but no step ended */
	NT_TIMELINE_ZERO = 2,
	NT_TIMELINE_MOST = 255, /* and more */
	/* Excess over the peers: hundredths of the job's step on top of this. */
	NT_TIMELINE_EVEN = 128,
};

#define NT_TIMELINE_CELL_NS (10ULL * 1000000000)

enum nt_timeline_series {
	NT_TIMELINE_OWN, /* work outside of waiting */
	NT_TIMELINE_WAITING, /* for others: the rest of the step */
	NT_TIMELINE_EXCESS, /* of own work, or of host work if that is not observable */
	NT_TIMELINE_SERIES,
};

/* The ranks of a cell, ascending; cells of the same ranks share it. */
struct nt_timeline_ranks {
	atomic_uint refs; /* private */
	size_t count;
	uint32_t rank[];
};

struct nt_timeline_cell {
	atomic_uint refs; /* private */
	size_t bytes; /* private */
	uint64_t start_ns, end_ns; /* real time, whole milliseconds */
	double step_ns; /* mean of the job's steps; 0: no step ended */
	struct nt_timeline_ranks *ranks;
	uint8_t value[]; /* those of one series after those of another */
};

/* The values of a series, in the order of the ranks. */
const uint8_t *nt_timeline_values(const struct nt_timeline_cell *cell,
				  enum nt_timeline_series series);

/* From any thread. */
struct nt_timeline_cell *nt_timeline_cell_ref(struct nt_timeline_cell *cell);
void nt_timeline_cell_unref(struct nt_timeline_cell *cell);

/* What all timelines of a program share: their memory. */
struct nt_job_timelines;

struct nt_job_timelines_limits {
	uint64_t job_bytes, bytes; /* of the cells of a job, and of all; 0: 32 and 128 MiB */
};

/* Evicted: within the half hour, the oldest of the job or of all jobs. */
struct nt_job_timelines_stats {
	uint64_t evicted;
	uint64_t bytes_now;
};

NT_MUST_CHECK int nt_job_timelines_new(const struct nt_job_timelines_limits *limits,
				       struct nt_job_timelines **ret_timelines);
/* After all its timelines. */
void nt_job_timelines_free(struct nt_job_timelines *timelines);
NT_DEFINE_AUTO(nt_job_timelines, nt_job_timelines_free)

void nt_job_timelines_stats(const struct nt_job_timelines *timelines,
			    struct nt_job_timelines_stats *ret_stats);

struct nt_job_timeline;

/* The timelines are borrowed. */
NT_MUST_CHECK int nt_job_timeline_new(struct nt_job_timelines *timelines,
				      struct nt_job_timeline **ret_timeline);
void nt_job_timeline_free(struct nt_job_timeline *timeline);
NT_DEFINE_AUTO(nt_job_timeline, nt_job_timeline_free)

/* Adds the frame that the detector has just judged. -ENOMEM. */
NT_MUST_CHECK int nt_job_timeline_add(struct nt_job_timeline *timeline,
				      const struct nt_detect *detect, const struct nt_frame *frame);

/* The cells that are kept, oldest first. Borrowed until the next call of nt_job_timeline_add(). */
size_t nt_job_timeline_count(const struct nt_job_timeline *timeline);
struct nt_timeline_cell *nt_job_timeline_at(const struct nt_job_timeline *timeline, size_t index);

#endif
