/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scratch and lookup in the state of a job's detector. */
#include "detect/model/detector_state.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/search.h"

/*
 * Distance of arrays that are scanned in parallel: at a power of two they would evict each other
 * from the cache.
 */
enum {
	APART = 40,
};

int nt_detect_make_room(struct nt_detect *detect, uint32_t need)
{
	struct nt_scratch made = {.cap = detect->scratch.cap ? detect->scratch.cap : 16};
	double **const array[] = {&made.a,
				  &made.b,
				  &made.c,
				  &made.d,
				  &made.e,
				  &made.f,
				  &made.step_metric_step,
				  &made.run_queue,
				  &made.gc,
				  &made.sum};
	const size_t arrays = sizeof(array) / sizeof(array[0]);
	size_t stride;
	double *at;

	if (detect->scratch.cap && need <= detect->scratch.cap)
		return 0;
	while (made.cap < need)
		made.cap *= 2;
	stride = made.cap + APART;
	made.room = calloc(1, made.cap * (sizeof(*made.contribution) + 4 * sizeof(*made.index)) +
				      (arrays + NT_STEP_METRIC_END) * stride * sizeof(*at));
	if (!made.room)
		return -ENOMEM;
	made.contribution = made.room;
	at = (double *)(made.contribution + made.cap);
	for (size_t i = 0; i < arrays; i++, at += stride)
		*array[i] = at;
	for (size_t i = 0; i < NT_STEP_METRIC_END; i++, at += stride)
		made.column[i] = at;
	made.index = (void *)at;
	made.label = made.index + 2 * (size_t)made.cap;
	free(detect->scratch.room);
	detect->scratch = made;
	return 0;
}

uint64_t nt_detect_began_ns(const struct nt_detect *detect, uint64_t frame)
{
	const double ago = (double)(detect->frames - frame) * detect->window_ns;

	if (detect->frames - frame < NT_BEGAN_FRAMES && detect->began_ns[frame % NT_BEGAN_FRAMES])
		return detect->began_ns[frame % NT_BEGAN_FRAMES];
	return ago < (double)detect->start_ns ? detect->start_ns - (uint64_t)ago : 0;
}

struct nt_detect_rank *nt_detect_find(const struct nt_detect *detect, uint32_t number)
{
	uint32_t low;

	/* In most jobs all ranks from 0 on are known, which the last rank's number shows. */
	if (number < detect->ranks && (detect->rank[detect->ranks - 1].rank == detect->ranks - 1 ||
				       detect->rank[number].rank == number))
		return &detect->rank[number];
	low = nt_search_first(0, detect->ranks, i, detect->rank[i].rank >= number);
	return low < detect->ranks && detect->rank[low].rank == number ? &detect->rank[low] : NULL;
}

struct nt_lesson *nt_detect_rank_lesson(const struct nt_detect *detect,
					const struct nt_detect_rank *rank, enum nt_series series)
{
	return &detect->lessons[rank - detect->rank].of[series];
}

bool nt_detect_is_observed(const struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++)
		if (!detect->rank[i].ended && !detect->rank[i].silent)
			return true;
	return false;
}

double nt_detect_rank_factor(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			     enum nt_series series)
{
	const struct nt_adaptation *tail = &detect->roles.group[rank->group].tail[series];
	/* The logarithm of the number of windows in which no healthy rank may be accused. */
	const double windows =
		nt_cusum_exponent() * (detect->threshold - detect->rules.threshold_base);

	if (nt_adaptation_rarity(tail, rank->track[series].far_run) >= windows)
		return 1.0;
	return nt_adaptation_factor(tail);
}

double nt_detect_rank_threshold(const struct nt_detect *detect, const struct nt_detect_rank *rank,
				enum nt_series series)
{
	return nt_cusum_raised(&detect->rules, detect->threshold,
			       nt_detect_rank_factor(detect, rank, series));
}
