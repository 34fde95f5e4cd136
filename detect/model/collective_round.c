/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collective rounds. */
#include "detect/model/collective_round.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/array.h"
#include "detect/model/frame.h"
#include "detect/thresholds/thresholds.h"

void nt_collective_round_free(struct nt_collective_round *collective_round)
{
	free(collective_round->op);
	*collective_round = (struct nt_collective_round){0};
}

void nt_collective_round_clear(struct nt_collective_round *collective_round)
{
	*collective_round = (struct nt_collective_round){.number = collective_round->number + 1,
							 .op = collective_round->op,
							 .op_cap = collective_round->op_cap};
}

/* Finds or adds the operation's sums; NULL on allocation failure. */
static struct nt_collective_round_op *find_op(struct nt_collective_round *collective_round,
					      uint8_t op)
{
	for (uint32_t i = 0; i < collective_round->ops; i++)
		if (collective_round->op[i].op == op)
			return &collective_round->op[i];
	if (nt_array_room((void **)&collective_round->op, &collective_round->op_cap,
			  collective_round->ops, sizeof(*collective_round->op)) < 0)
		return NULL;
	collective_round->op[collective_round->ops] =
		(struct nt_collective_round_op){.op = op, .shortest_ns = {INFINITY, INFINITY}};
	return &collective_round->op[collective_round->ops++];
}

static void add_time(struct nt_collective_round_op *sum, struct nt_detect_link *link,
		     const struct nt_frame_op *op)
{
	const enum nt_collective_round_clock clock =
		op->by_gpu ? NT_COLLECTIVE_ROUND_BY_GPU : NT_COLLECTIVE_ROUND_BY_HOST;
	const uint32_t bit = UINT32_C(1) << op->op;

	sum->timed[clock] += !(link->timed[clock] & bit);
	link->timed[clock] |= bit;
	sum->shortest_ns[clock] = fmin(sum->shortest_ns[clock], (double)op->min_ns);
}

int nt_collective_round_take(struct nt_collective_round *collective_round, uint64_t frame,
			     uint64_t start_ns, struct nt_detect_link *link,
			     const struct nt_frame_comm *said, const struct nt_frame_rank *seen)
{
	if (link->collective_round != collective_round->number) {
		link->collective_round = collective_round->number;
		link->reported = false;
		link->timed[NT_COLLECTIVE_ROUND_BY_HOST] = link->timed[NT_COLLECTIVE_ROUND_BY_GPU] =
			0;
	}
	if (!collective_round->frame) {
		collective_round->frame = frame;
		collective_round->start_ns = start_ns;
	}
	if (seen->steps) {
		collective_round->reporters += !link->reported;
		link->reported = true;
		collective_round->tier = seen->own_tier;
		collective_round->steps += seen->steps;
		collective_round->step_ns += (double)seen->step_ns;
	}
	for (size_t i = 0; i < said->ops; i++) {
		const struct nt_frame_op *op = &said->op[i];
		struct nt_collective_round_op *sum;

		if (op->op >= NT_COLLECTIVE_ROUND_OPS || !op->calls ||
		    (op->kind != NT_FRAME_SYNCHRONISING && op->kind != NT_FRAME_ALL_TO_ALL))
			continue;
		sum = find_op(collective_round, op->op);
		if (!sum)
			return -ENOMEM;
		sum->bytes += (double)op->bytes;
		sum->calls += (double)op->calls;
		if (op->timed_calls)
			add_time(sum, link, op);
	}
	return 0;
}

const struct nt_collective_round_op *
nt_collective_round_most(const struct nt_collective_round *collective_round)
{
	const struct nt_collective_round_op *most = NULL;

	for (uint32_t i = 0; i < collective_round->ops; i++) {
		const struct nt_collective_round_op *op = &collective_round->op[i];

		if (!most || op->bytes > most->bytes ||
		    (op->bytes == most->bytes && op->op < most->op))
			most = op;
	}
	return most;
}

/* Whether some devices, but not all, have reported the watched calls. */
static bool misses_devices(const struct nt_collective_round *collective_round)
{
	const struct nt_collective_round_op *most = nt_collective_round_most(collective_round);

	return most && most->timed[NT_COLLECTIVE_ROUND_BY_GPU] &&
	       most->timed[NT_COLLECTIVE_ROUND_BY_GPU] < collective_round->reporters;
}

enum nt_collective_round_end
nt_collective_round_ends(const struct nt_collective_round *collective_round, uint64_t frame,
			 uint32_t members)
{
	if (!collective_round->frame)
		return NT_COLLECTIVE_ROUND_GOES_ON;
	if (collective_round->reporters >= members && !misses_devices(collective_round))
		return NT_COLLECTIVE_ROUND_IS_WHOLE;
	return frame - collective_round->frame + 1 < NT_COLLECTIVE_ROUND_FRAMES
		       ? NT_COLLECTIVE_ROUND_GOES_ON
		       : NT_COLLECTIVE_ROUND_LAPSED;
}
