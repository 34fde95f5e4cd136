/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples the calls whose exact times are sent. The level of a call is the number of trailing zeros
 * in the hash of (communicator, number). A rank keeps as many calls of the highest levels as fit.
 * Ranks that see the same calls keep the same ones, or one a subset, without coordination.
 */
#ifndef NT_AGENT_STEPS_SAMPLER_H
#define NT_AGENT_STEPS_SAMPLER_H

#include "proto/wire.h"

enum {
	NT_SAMPLER_CAP = 16, /* calls of one communicator in one window */
	NT_SAMPLER_ALIGNED = 4, /* enough if numbers are equal on all ranks */
};

struct nt_sampler {
	struct nt_sample sample[NT_SAMPLER_CAP];
	uint64_t nth[NT_SAMPLER_CAP]; /* of the communicator's calls of its operation */
	uint32_t count;
	uint32_t cap; /* 0: NT_SAMPLER_CAP */
	uint32_t level; /* calls of lower levels are left out */
	uint64_t left_out; /* since the last clear */
};

void nt_sampler_offer(struct nt_sampler *sampler, const struct nt_sample *sample, uint64_t nth);
/* Adds the device times of a call, if it is sampled. */
void nt_sampler_gpu(struct nt_sampler *sampler, enum nt_op op, uint64_t nth, uint64_t start_ns,
		    uint64_t end_ns);
/* Clears after a window was sent; lowers the level if the rate of calls has dropped. */
void nt_sampler_clear(struct nt_sampler *sampler);

#endif
