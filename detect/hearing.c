/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the members of a communicator say of its calls. */
#include "detect/hearing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "detect/array.h"
#include "detect/frame.h"
#include "detect/thresholds.h"

void nt_hearing_free(struct nt_hearing *hearing)
{
	free(hearing->op);
	*hearing = (struct nt_hearing){0};
}

void nt_hearing_clear(struct nt_hearing *hearing)
{
	*hearing = (struct nt_hearing){
		.number = hearing->number + 1, .op = hearing->op, .op_cap = hearing->op_cap};
}

/* Where the operation is added up, NULL: out of memory. */
static struct nt_hearing_op *find_op(struct nt_hearing *hearing, uint8_t op)
{
	for (uint32_t i = 0; i < hearing->ops; i++)
		if (hearing->op[i].op == op)
			return &hearing->op[i];
	if (nt_array_room((void **)&hearing->op, &hearing->op_cap, hearing->ops,
			  sizeof(*hearing->op)) < 0)
		return NULL;
	hearing->op[hearing->ops] =
		(struct nt_hearing_op){.op = op, .shortest_ns = {INFINITY, INFINITY}};
	return &hearing->op[hearing->ops++];
}

static void hear_time(struct nt_hearing_op *sum, struct nt_link *link, const struct nt_frame_op *op)
{
	const enum nt_hearing_clock clock = op->by_gpu ? NT_HEARING_BY_GPU : NT_HEARING_BY_HOST;
	const uint32_t bit = UINT32_C(1) << op->op;

	sum->timed[clock] += !(link->timed[clock] & bit);
	link->timed[clock] |= bit;
	sum->shortest_ns[clock] = fmin(sum->shortest_ns[clock], (double)op->min_ns);
}

int nt_hearing_take(struct nt_hearing *hearing, uint64_t frame, uint64_t start_ns,
		    struct nt_link *link, const struct nt_frame_comm *said,
		    const struct nt_frame_rank *seen)
{
	if (link->hearing != hearing->number) {
		link->hearing = hearing->number;
		link->spoke = false;
		link->timed[NT_HEARING_BY_HOST] = link->timed[NT_HEARING_BY_GPU] = 0;
	}
	if (!hearing->frame) {
		hearing->frame = frame;
		hearing->start_ns = start_ns;
	}
	if (seen->steps) {
		hearing->heard += !link->spoke;
		link->spoke = true;
		hearing->tier = seen->own_tier;
		hearing->steps += seen->steps;
		hearing->step_ns += (double)seen->step_ns;
	}
	for (size_t i = 0; i < said->ops; i++) {
		const struct nt_frame_op *op = &said->op[i];
		struct nt_hearing_op *sum;

		if (op->op >= NT_HEARING_OPS || !op->calls ||
		    (op->kind != NT_FRAME_SYNCHRONISING && op->kind != NT_FRAME_ALL_TO_ALL))
			continue;
		sum = find_op(hearing, op->op);
		if (!sum)
			return -ENOMEM;
		sum->bytes += (double)op->bytes;
		sum->calls += (double)op->calls;
		if (op->timed_calls)
			hear_time(sum, link, op);
	}
	return 0;
}

const struct nt_hearing_op *nt_hearing_most(const struct nt_hearing *hearing)
{
	const struct nt_hearing_op *most = NULL;

	for (uint32_t i = 0; i < hearing->ops; i++) {
		const struct nt_hearing_op *op = &hearing->op[i];

		if (!most || op->bytes > most->bytes ||
		    (op->bytes == most->bytes && op->op < most->op))
			most = op;
	}
	return most;
}

/* Some devices have told of the calls that are watched, and some have not yet. */
static bool misses_devices(const struct nt_hearing *hearing)
{
	const struct nt_hearing_op *most = nt_hearing_most(hearing);

	return most && most->timed[NT_HEARING_BY_GPU] &&
	       most->timed[NT_HEARING_BY_GPU] < hearing->heard;
}

enum nt_hearing_end nt_hearing_ends(const struct nt_hearing *hearing, uint64_t frame,
				    uint32_t members)
{
	if (!hearing->frame)
		return NT_HEARING_GOES_ON;
	if (hearing->heard >= members && !misses_devices(hearing))
		return NT_HEARING_IS_WHOLE;
	return frame - hearing->frame + 1 < NT_HEARING_FRAMES ? NT_HEARING_GOES_ON
							      : NT_HEARING_LAPSED;
}
