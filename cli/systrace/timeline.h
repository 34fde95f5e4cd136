/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The device timeline of a rank from its markers: time in communication, time between, and the ends
 * of steps.
 */
#ifndef NT_CLI_READERS_TIMELINE_H
#define NT_CLI_READERS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "cli/systrace/markers.h"
#include "common/base/cleanup.h"

/* Time in communication, as the union of the operations of all streams. */
struct nt_busy {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* sum of those before */
	uint64_t device_ns; /* of all gaps until start_ns: compute time of the device */
	uint64_t
		early_ns; /* of the gap before: the part before the launch, if it counts as the device's */
};

struct nt_timeline {
	struct nt_busy *busy;
	size_t busies;
};

/* All zero is empty. -ENOMEM. */
NT_MUST_CHECK int nt_timeline_make(const struct nt_markers *markers, struct nt_timeline *timeline);
void nt_timeline_release(struct nt_timeline *timeline);
/* Totals from the first operation until then: communication, and the gaps before it. */
void nt_timeline_sum(const struct nt_timeline *timeline, uint64_t time_ns, uint64_t *ret_comm_ns,
		     uint64_t *ret_device_ns);

/*
 * The longest gap before an operation that begins in that time, 0: none. *ret_early_ns: its part
 * before the launch, if that counts as the device's.
 */
uint64_t nt_timeline_longest(const struct nt_timeline *timeline, uint64_t from_ns, uint64_t to_ns,
			     uint64_t *ret_early_ns);

struct nt_timeline_step {
	uint64_t start_ns, end_ns;
	size_t first, last; /* operations: the first and the last of the step */
	uint32_t count; /* of steps; over 1 if an end was lost */
	uint64_t lost_ns; /* of calls that were not recorded: see nt_lost_calls_find() */
};

struct nt_steps {
	struct nt_timeline_step *step;
	size_t steps;
};

/* The steps that the file contains completely; ends ascend. All zero is empty. -ENOMEM. */
NT_MUST_CHECK int nt_steps_cut(const struct nt_markers *markers, struct nt_steps *steps);
void nt_steps_release(struct nt_steps *steps);
/* Needs at least one step; the result is at least 1. -ENOMEM. */
NT_MUST_CHECK int nt_steps_median(const struct nt_steps *steps, uint64_t *ret_ns);

#endif
