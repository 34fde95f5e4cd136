/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Coverage: how much of a job the detection could judge. The absence of a verdict means little
 * after five steps, or for ranks without peers.
 */
#ifndef NT_CLI_REPLAY_COVERAGE_H
#define NT_CLI_REPLAY_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/detect.h"

/* The rank whose own work exceeds that of its peers by most, as long as it is the same one. */
struct nt_coverage_leader {
	uint32_t rank, peers; /* number of its peers */
	uint32_t windows;
	double ratio; /* sum of its work ÷ that of its peers */
	bool none; /* in some window it was another one, or no rank worked much longer */
};

struct nt_coverage {
	/* Windows with steps, of all ranks; most: of a rank, in an earlier attempt. */
	uint64_t stepped, most;
	uint32_t ranks; /* most of them in one frame */
	uint32_t needed; /* before a rank can be named that was slow from its first window */
	uint32_t alone; /* ranks without peers, in the last frame */
	uint32_t few; /* ranks with so few peers that only their history shows which is slow */
	uint32_t blind; /* ranks whose own work is not observable */
	bool network; /* ranks call collectives */
	struct nt_coverage_leader leader;
};

/* Adds the frame that the detector has just processed. */
void nt_coverage_add(struct nt_coverage *coverage, const struct nt_rules *rules,
		     const struct nt_detect *detect, const struct nt_frame *frame);
/* Starts another attempt, without history for the detection. */
void nt_coverage_restart(struct nt_coverage *coverage);
/* Mean number of windows with steps per rank. */
uint64_t nt_coverage_windows(const struct nt_coverage *coverage);
/* Too short for any rank to be named. */
bool nt_coverage_is_short(const struct nt_coverage *coverage);
/* Some rank could be judged: not too short, and one has enough peers or a history. */
bool nt_coverage_is_enough(const struct nt_coverage *coverage);

/* Nothing prevented a verdict. */
bool nt_coverage_is_whole(const struct nt_coverage *coverage);

/* A result other than 0 ends the iteration and is returned. */
typedef int nt_coverage_note_fn(void *data, const char *note);
/*
 * Passes each reason that prevented a verdict, as one sentence with this prefix. `unit` is the name
 * of a window, in the singular.
 */
__attribute__((warn_unused_result)) int nt_coverage_each(const struct nt_coverage *coverage,
							 const char *prefix, const char *unit,
							 nt_coverage_note_fn *take, void *data);

#endif
