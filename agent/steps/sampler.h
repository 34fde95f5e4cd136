/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Chooses the calls whose exact times are sent. Each call has a level, the number of trailing zeros
 * in the hash of (communicator, number), and a rank keeps the calls of the highest levels, as many
 * as fit. So two ranks that see the same calls keep the same ones, or one a subset of the other's,
 * with no word between them.
 */
#ifndef NT_AGENT_STEPS_SAMPLER_H
#define NT_AGENT_STEPS_SAMPLER_H

#include "proto/wire.h"

enum {
	NT_SAMPLER_CAP = 16, /* calls of one communicator in one window */
	NT_SAMPLER_ALIGNED = 4, /* enough where the numbers are known to be those of all ranks */
};

struct nt_sampler {
	struct nt_sample sample[NT_SAMPLER_CAP];
	uint64_t nth[NT_SAMPLER_CAP]; /* of the communicator's calls of its operation */
	uint32_t count;
	uint32_t cap; /* at most NT_SAMPLER_CAP; 0: that */
	uint32_t level; /* calls of a lower one are left out */
	uint64_t left_out; /* since the last clear */
};

void nt_sampler_offer(struct nt_sampler *sampler, const struct nt_sample *sample, uint64_t nth);
/* When the device made that call, if it is one of those that are kept. */
void nt_sampler_gpu(struct nt_sampler *sampler, enum nt_op op, uint64_t nth, uint64_t start_ns,
		    uint64_t end_ns);
/* The window has been sent; the level follows the rate of calls down, too. */
void nt_sampler_clear(struct nt_sampler *sampler);

#endif
