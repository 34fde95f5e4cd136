/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a rank's markers say of its device: when it was in communication, what it did between, and
 * where the steps end.
 */
#ifndef NT_CLI_READERS_TIMELINE_H
#define NT_CLI_READERS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "cli/readers/markers.h"
#include "common/base/cleanup.h"

/* Time in communication, as the union of the operations of all streams. */
struct nt_busy {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* sum of those before */
	uint64_t device_ns; /* of all gaps until start_ns: what the device was at work for */
};

struct nt_timeline {
	struct nt_busy *busy;
	size_t busies;
};

/* All zero is empty. -ENOMEM. */
NT_MUST_CHECK int nt_timeline_make(const struct nt_markers *markers, struct nt_timeline *timeline);
void nt_timeline_release(struct nt_timeline *timeline);
/* From the first operation until then: in communication, and at work in the gaps before. */
void nt_timeline_sum(const struct nt_timeline *timeline, uint64_t time_ns, uint64_t *ret_comm_ns,
		     uint64_t *ret_device_ns);

struct nt_timeline_step {
	uint64_t start_ns, end_ns;
	size_t first, last; /* operations: the one after the last step's end, and its own end */
	uint32_t count; /* of steps, where the end of one was lost */
};

struct nt_steps {
	struct nt_timeline_step *step;
	size_t steps;
};

/* The steps that the file holds from end to end; ends ascend. All zero is empty. -ENOMEM. */
NT_MUST_CHECK int nt_steps_cut(const struct nt_markers *markers, struct nt_steps *steps);
void nt_steps_release(struct nt_steps *steps);
/* Of at least one step; at least 1. -ENOMEM. */
NT_MUST_CHECK int nt_steps_median(const struct nt_steps *steps, uint64_t *ret_ns);

#endif
