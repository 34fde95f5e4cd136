/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/frame/samples.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	SLOTS = 1024, /* a power of two */
	MAX_CALLS = SLOTS / 2,
};

/* A call, sampled by `samples` ranks. */
struct sampled_call {
	uint64_t comm, epoch, number;
	size_t samples, start; /* start: where its next sample goes */
	uint32_t index;
};

struct calls {
	struct sampled_call *slot[SLOTS];
	struct sampled_call call[MAX_CALLS];
	struct sampled_call *sorted[MAX_CALLS];
	uint32_t count;
};

static int by_call(const void *a, const void *b)
{
	const struct sampled_call *left = *(struct sampled_call *const *)a,
				  *right = *(struct sampled_call *const *)b;

	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	if (left->epoch != right->epoch)
		return left->epoch < right->epoch ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

static int by_sample(const void *a, const void *b)
{
	const struct nt_frame_sample *left = a, *right = b;

	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	if (left->epoch != right->epoch)
		return left->epoch < right->epoch ? -1 : 1;
	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return (left->op > right->op) - (left->op < right->op);
}

/* NULL: too many different calls. */
static struct sampled_call *find_call(struct calls *calls, const struct nt_frame_sample *sample)
{
	uint64_t at = nt_hash_mix(sample->comm + nt_hash_mix(sample->epoch) + sample->number);
	struct sampled_call *call;

	for (;; at++) {
		call = calls->slot[at % SLOTS];
		if (!call)
			break;
		if (call->comm == sample->comm && call->epoch == sample->epoch &&
		    call->number == sample->number)
			return call;
	}
	if (calls->count == MAX_CALLS)
		return NULL;
	call = &calls->call[calls->count];
	*call = (struct sampled_call){
		.comm = sample->comm,
		.epoch = sample->epoch,
		.number = sample->number,
		.index = calls->count,
	};
	calls->slot[at % SLOTS] = call;
	calls->sorted[calls->count++] = call;
	return call;
}

/* Assigns each sample to its call. */
static bool assign_calls(struct calls *calls, const struct nt_frame_sample *sample, size_t samples,
			 uint16_t *ret_of)
{
	for (size_t i = 0; i < samples; i++) {
		struct sampled_call *call = find_call(calls, &sample[i]);

		if (!call)
			return false;
		call->samples++;
		ret_of[i] = (uint16_t)call->index;
	}
	return true;
}

static bool is_sorted(const struct nt_frame_sample *sample, size_t samples)
{
	for (size_t i = 1; i < samples; i++)
		if (by_sample(&sample[i - 1], &sample[i]) > 0)
			return false;
	return true;
}

int nt_samples_sort(struct nt_arena *arena, struct nt_frame_sample *sample, size_t samples,
		    struct nt_frame_sample **ret_sample)
{
	struct nt_frame_sample *sorted = nt_arena_alloc(arena, samples * sizeof(*sorted) + 1);
	struct calls *calls;
	size_t start = 0;
	uint16_t *of;

	if (!sorted)
		return -ENOMEM;
	if (!samples) {
		*ret_sample = sorted;
		return 0;
	}
	calls = nt_arena_alloc(arena, sizeof(*calls));
	of = nt_arena_alloc(arena, samples * sizeof(*of));
	if (!calls || !of)
		return -ENOMEM;
	if (!assign_calls(calls, sample, samples, of)) {
		memcpy(sorted, sample, samples * sizeof(*sorted));
		qsort(sorted, samples, sizeof(*sorted), by_sample);
		*ret_sample = sorted;
		return 0;
	}
	qsort(calls->sorted, calls->count, sizeof(struct sampled_call *), by_call);
	for (uint32_t i = 0; i < calls->count; i++) {
		calls->sorted[i]->start = start;
		start += calls->sorted[i]->samples;
	}
	for (size_t i = 0; i < samples; i++)
		sorted[calls->call[of[i]].start++] = sample[i];
	/* Ranks out of order, or a call that a rank reported twice. */
	if (!is_sorted(sorted, samples))
		qsort(sorted, samples, sizeof(*sorted), by_sample);
	*ret_sample = sorted;
	return 0;
}
