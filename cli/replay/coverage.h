/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much of a job the detection could judge at all: silence about five steps, or about ranks that
 * nobody can be held against, says less than silence about a day.
 */
#ifndef NT_CLI_REPLAY_COVERAGE_H
#define NT_CLI_REPLAY_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/detect.h"

struct nt_coverage {
	/* Windows with steps, of all ranks; most: of a rank, in an earlier attempt. */
	uint64_t stepped, most;
	uint32_t ranks; /* most of them in one frame */
	uint32_t needed; /* windows before a rank that was slow from its first one is named */
	uint32_t alone; /* ranks without peers, as the detection knew them last */
	uint32_t few; /* with so few that only a past tells which of them is slow */
	uint32_t blind; /* ranks whose own work does not show */
};

/* Takes in the frame that the detector has just judged. */
void nt_coverage_add(struct nt_coverage *reach, const struct nt_rules *rules,
		     const struct nt_detect *detect, const struct nt_frame *frame);
/* Another attempt begins, of which the detection knows nothing. */
void nt_coverage_restart(struct nt_coverage *reach);
/* Windows with steps that a rank had, in the mean. */
uint64_t nt_coverage_windows(const struct nt_coverage *reach);
/* Too little for anybody to be named. */
bool nt_coverage_is_short(const struct nt_coverage *reach);

/* Nothing stood in the way of a verdict. */
bool nt_coverage_is_whole(const struct nt_coverage *reach);

/* What the function returns ends it. */
typedef int nt_coverage_note_fn(void *data, const char *note);
/*
 * What stood in the way of a verdict, a sentence each, which begins with the prefix. `unit` is what a
 * window is called, in the singular.
 */
__attribute__((warn_unused_result)) int nt_coverage_each(const struct nt_coverage *reach,
							 const char *prefix, const char *unit,
							 nt_coverage_note_fn *take, void *data);

#endif
