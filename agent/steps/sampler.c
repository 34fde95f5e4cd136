/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/sampler.h"

#include "common/base/hash.h"

enum {
	LEVEL_MAX = 40,
};

static uint32_t level_of(const struct nt_sample *sample)
{
	uint64_t hash =
		nt_hash_mix(nt_hash_u64(nt_hash_u64(NT_HASH_SEED, sample->comm), sample->number));

	return hash ? (uint32_t)__builtin_ctzll(hash) : 64;
}

static void raise_level(struct nt_sampler *sampler)
{
	uint32_t kept = 0;

	sampler->level++;
	for (uint32_t i = 0; i < sampler->count; i++) {
		if (level_of(&sampler->sample[i]) < sampler->level)
			continue;
		sampler->nth[kept] = sampler->nth[i];
		sampler->sample[kept++] = sampler->sample[i];
	}
	sampler->left_out += sampler->count - kept;
	sampler->count = kept;
}

static uint32_t cap_of(const struct nt_sampler *sampler)
{
	return sampler->cap && sampler->cap < NT_SAMPLER_CAP ? sampler->cap : NT_SAMPLER_CAP;
}

void nt_sampler_offer(struct nt_sampler *sampler, const struct nt_sample *sample, uint64_t nth)
{
	uint32_t cap = cap_of(sampler);

	/* A sample that would be left out anyway must not displace others. */
	if (level_of(sample) < sampler->level) {
		sampler->left_out++;
		return;
	}
	while (sampler->count >= cap && sampler->level < LEVEL_MAX)
		raise_level(sampler);
	if (sampler->count >= cap || level_of(sample) < sampler->level) {
		sampler->left_out++;
		return;
	}
	sampler->nth[sampler->count] = nth;
	sampler->sample[sampler->count++] = *sample;
}

void nt_sampler_gpu(struct nt_sampler *sampler, enum nt_op op, uint64_t nth, uint64_t start_ns,
		    uint64_t end_ns)
{
	for (uint32_t i = 0; i < sampler->count; i++) {
		if (sampler->nth[i] != nth || sampler->sample[i].op != op)
			continue;
		sampler->sample[i].gpu_start_boot_ns = start_ns;
		sampler->sample[i].gpu_end_boot_ns = end_ns;
	}
}

void nt_sampler_clear(struct nt_sampler *sampler)
{
	if (sampler->level > 0 && sampler->count < cap_of(sampler) / 4)
		sampler->level--;
	sampler->count = 0;
	sampler->left_out = 0;
}
