/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much of a job the detection could judge at all: silence about five steps, or about ranks that
 * nobody can be held against, says less than silence about a day.
 */
#ifndef NT_CLI_REACH_H
#define NT_CLI_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/detect.h"

struct nt_reach {
	/* Windows with steps, of all ranks; most: of a rank, in an earlier attempt. */
	uint64_t stepped, most;
	uint32_t ranks; /* most of them in one frame */
	uint32_t needed; /* windows before a rank that was slow from its first one is named */
	uint32_t alone; /* ranks without peers, as the detection knew them last */
	uint32_t few; /* with so few that only a past tells which of them is slow */
	uint32_t blind; /* ranks whose own work does not show */
};

/* Takes in the frame that the detector has just judged. */
void nt_reach_add(struct nt_reach *reach, const struct nt_rules *rules,
		  const struct nt_detect *detect, const struct nt_frame *frame);
/* Another attempt begins, of which the detection knows nothing. */
void nt_reach_restart(struct nt_reach *reach);
/* Windows with steps that a rank had, in the mean. */
uint64_t nt_reach_windows(const struct nt_reach *reach);
/* Too little for anybody to be named. */
bool nt_reach_is_short(const struct nt_reach *reach);

/* Nothing stood in the way of a verdict. */
bool nt_reach_is_whole(const struct nt_reach *reach);

/* What the function returns ends it. */
typedef int nt_reach_note_fn(void *data, const char *note);
/*
 * What stood in the way of a verdict, a sentence each, which begins with the prefix. `unit` is what a
 * window is called, in the singular.
 */
__attribute__((warn_unused_result)) int nt_reach_each(const struct nt_reach *reach,
						      const char *prefix, const char *unit,
						      nt_reach_note_fn *take, void *data);

#endif
