/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank: identity, current measurements and learned state. Plain data. */
#ifndef NT_DETECT_MODEL_RANK_H
#define NT_DETECT_MODEL_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/math/cusum.h"
#include "detect/math/far_rate.h"
#include "detect/model/collective_round.h"
#include "detect/model/frame.h"
#include "detect/model/gpu_span.h"
#include "detect/model/time.h"

enum {
	NT_NO_INDEX = UINT32_MAX,
};

/* Quantities summed per rank; divided by its steps they are its step metrics. */
enum nt_step_metric {
	NT_STEP_METRIC_OWN,
	NT_STEP_METRIC_OWN_BLOCKED,
	NT_STEP_METRIC_OWN_LONGEST,
	NT_STEP_METRIC_HOST,
	NT_STEP_METRIC_BLOCKED,
	NT_STEP_METRIC_COMM,
	NT_STEP_METRIC_SYNC, /* in collectives that synchronise, by their durations */
	NT_STEP_METRIC_STEP,
	/* Of the thread and the whole window; scaled to one step. */
	NT_STEP_METRIC_ON_CPU,
	NT_STEP_METRIC_RUN_QUEUE,
	NT_STEP_METRIC_IO,
	NT_STEP_METRIC_GC,
	NT_STEP_METRIC_READ,
	NT_STEP_METRIC_WRITE,
	NT_STEP_METRIC_FAULTS,
	NT_STEP_METRIC_GPU_THERMAL, /* ns in which the clock of its GPU was held down: temperature, */
	NT_STEP_METRIC_GPU_POWER, /* a power cap, */
	NT_STEP_METRIC_GPU_HARDWARE, /* the hardware */
	NT_STEP_METRIC_GPU_ERRORS, /* uncorrected, of its memory */
	/* By tracepoints; of SYSTEM, the time with them. Without it the others hold nothing. */
	NT_STEP_METRIC_SYSTEM,
	NT_STEP_METRIC_QUOTA, /* part of RUN_QUEUE: the CPU quota was used up */
	NT_STEP_METRIC_FILE, /* part of IO: in a network file system */
	NT_STEP_METRIC_FAULT_WAIT, /* page faults that read from a disk */
	NT_STEP_METRIC_RECLAIM, /* reclaim and compaction of memory by the thread itself */
	NT_STEP_METRIC_PROCESS_IO, /* as IO, of all threads and of processes that it forked */
	NT_STEP_METRIC_RETRANSMITS, /* of TCP, its sockets */
	NT_STEP_METRIC_CALLS, /* synchronising ones */
	NT_STEP_METRIC_END,
	NT_STEP_METRIC_THREAD = NT_STEP_METRIC_ON_CPU,
};

enum nt_series {
	NT_SERIES_OWN,
	NT_SERIES_HOST,
	NT_SERIES_END,
};

/* The reference of a judged window. */
enum nt_mode {
	NT_MODE_NONE,
	NT_MODE_PEERS,
	NT_MODE_PAST, /* its own past: few peers, or two populations */
};

/* One series of one rank. Hot members come first. */
struct nt_track {
	/* Of the last round. */
	uint64_t frame; /* of the last round that held this rank, 0: none */
	double growth; /* of the value, relative to its own past; 0: unknown */
	bool growth_known; /* that past was complete before this round */
	double net; /* the same without what its role shares */
	double settled; /* growth that its role shares since a while; 0: none, or unknown */
	double slow_cost; /* slow mean of the growth as part of the step */
	struct nt_past past;
	double value, peers, peer_deviation, width;
	double shift_width; /* of the deviation minus its own centre; not saved */
	double residual; /* cost beyond its usual one, part of the step */
	uint8_t mode;
	uint8_t tier; /* of the values; a change resets the track */
	uint8_t far_run; /* far windows in a row until now, at most 255; see nt_adaptation */
	/* Of the last windows, how many until the evidence of a far one (nt_far_rate) is old. */
	uint8_t far_fresh;
	struct nt_far_rate far_given; /* what it added to its group's rate */
	struct nt_far_own far_own; /* windows added to `rate` since it left zero */
	double marked; /* share of about the last NT_MARKED_WINDOWS in which it was far behind */
	bool always; /* accused of a level present from the start: its past is no reference */
	uint8_t peers_seen; /* at most 255 */
	struct nt_cusum level; /* of the peer deviation */
	struct nt_cusum shift; /* of the deviation minus its own centre */
	struct nt_cusum rate; /* of how often it is far: see nt_far_rate */
	struct nt_far_rhythm rhythm;
};

/* Evidence gathered while a sum is high: weighted means of the rank and of its reference. */
struct nt_rank_evidence {
	double weight, own_weight; /* own_weight: of rounds with observable own work */
	double value[NT_STEP_METRIC_END], peers[NT_STEP_METRIC_END];
};

/*
 * Ordered by access. Members up to the sums are filled from a window, and sums to means are
 * computed per round. The rest is used by the rules.
 */
struct nt_detect_rank {
	uint32_t rank, node;
	bool known, observed, silent, ended, finalized, uses_gpu;
	bool accepted; /* its current state was accepted as normal */
	uint8_t group_kind;
	uint32_t group, place; /* index into roles.group, NT_NO_INDEX: none; and within it */
	uint32_t links, link_cap;
	struct nt_detect_link *link;
	uint64_t seen_frame, seen_ns;
	bool sampled, lost_sight; /* in its last window: see struct nt_frame_rank */
	bool unrecorded; /* the same; offline only, and not saved */
	char state; /* the same */
	/* Its position in its last window, and when it was last busy. */
	struct nt_frame_inside inside;
	uint64_t worked_ns, stored_ns, inside_ns; /* when it was last seen so; 0: never */
	uint64_t ended_ns;
	uint8_t exit_signal, exit_status;
	/* Of the last window with an error of its GPU that the driver reported: number, end. 0: none. */
	uint32_t xid;
	uint64_t xid_ns;
	bool ended_by_parent;
	int32_t stage, replica;
	uint64_t group_id;
	uint64_t sum[NT_STEP_METRIC_END];
	uint64_t window_ns;
	uint32_t steps; /* summed up since the last round */
	uint8_t tier;
	bool own_by_device; /* its steps are the device's, not those of its calls */
	bool no_host; /* of that round: host work is not observable */
	bool in_incident;
	bool has_metric_mean;
	uint8_t unit_rounds; /* in a row in which its step had another unit than its group's */
	uint64_t round_frame; /* last judged in */
	uint64_t rounds; /* judged so far */
	double step_metric[NT_STEP_METRIC_END]; /* of the last round */
	double metric_mean[NT_STEP_METRIC_END]; /* moving average while nothing is suspicious */
	struct nt_track track[NT_SERIES_END];
	struct nt_rank_evidence evidence;
	/* While the steps were as usual, and since the onset of the job's longer steps. */
	struct nt_gpu_span gpu_before, gpu_since;
};

/* A rank's contribution to job-wide statistics: see step_judge.c. By series. */
struct nt_rank_contribution {
	struct nt_track_contribution {
		double growth; /* NAN: it was not judged or has no past */
		double slow_cost, centre, spread;
	} of[NT_SERIES_END];
};

/* The learning windows of a rank's tracks. */
struct nt_lessons {
	struct nt_lesson of[NT_SERIES_END];
};

/* The track's contribution to job-wide statistics. */
struct nt_track_contribution nt_track_contribute(const struct nt_track *track);
/* After a fault, or if what they were compared with is no reference. */
void nt_track_clear_sums(struct nt_track *track);
/* The largest of the track's sums, each comparable with the threshold. */
double nt_track_sum(const struct nt_track *track, const struct nt_rules *rules);
/* That of the rate, which needs no constant part: its increments are exact. */
double nt_track_rate_sum(const struct nt_track *track, const struct nt_rules *rules);
/* False in two populations of more than two ranks until the rank has a complete past. */
bool nt_track_is_judged(const struct nt_track *track);
/* The largest of the rank's sums. */
double nt_detect_rank_sum(const struct nt_detect_rank *rank, const struct nt_rules *rules);

/* Whether its host work is observable and comparable. */
static inline bool nt_detect_rank_shows_host(const struct nt_detect_rank *rank)
{
	return rank->tier >= NT_FRAME_T1 && !rank->no_host;
}

/*
 * Ranks lie far apart in memory, so that a scan misses the cache on each. They are prefetched
 * NT_RANKS_AHEAD ranks in advance.
 */
enum {
	NT_RANKS_AHEAD = 6,
	NT_CACHE_LINE = 64,
};

/* Prefetches all cache lines that the object overlaps. */
static inline void nt_detect_rank_expect(const void *data, size_t size)
{
	const size_t before = (uintptr_t)data % NT_CACHE_LINE;

	for (size_t i = 0; i < before + size; i += NT_CACHE_LINE)
		__builtin_prefetch((const char *)data + i - before);
}

#endif
