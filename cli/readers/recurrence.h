/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The calls from one run of equal calls to the next one of its kind, as a step. A recording that lacks some
 * calls, and what a job does between steps, change the length of such a stretch little, or of few of them.
 */
#ifndef NT_CLI_READERS_RECURRENCE_H
#define NT_CLI_READERS_RECURRENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_recurrence {
	uint32_t calls; /* of a step, the median; 0: nothing recurs like a step */
	uint32_t anchor; /* the kind of call whose runs end it */
	uint32_t run; /* shorter runs do not */
	double share; /* of the calls, in steps of about that length */
};

/* Whether such a call moves as little as a loss or a norm. See nt_period_find() for `shape`. */
bool nt_recurrence_is_scalar(uint64_t shape);
/*
 * The shortest step of the n calls. times: calls of each kind. idle_ns: before each call the time in which no
 * other one runs, or NULL. Takes n log n, and 64 times that and all kinds. -ENOMEM.
 */
NT_MUST_CHECK int nt_recurrence_find(const uint32_t *call, uint32_t n, const uint64_t *idle_ns,
				     const uint64_t *shape, const uint32_t *times, uint32_t kinds,
				     struct nt_recurrence *ret_recurrence);

#endif
