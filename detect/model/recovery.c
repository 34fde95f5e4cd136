/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recovery test of a fault. */
#include "detect/model/recovery.h"

#include <math.h>
#include <string.h>

#include "detect/thresholds/thresholds.h"

/* A single bad window among healthy ones does not make up for the healthy ones before it. */
static void find_end(struct nt_recovery *recovery, uint64_t end_ns, double cost, double whole)
{
	const double least = NT_COSTLY_PART * whole;

	recovery->drop = recovery->buckets ? fmax(0.0, recovery->drop + least - cost) : 0.0;
	if (cost >= least)
		recovery->height += (recovery->height > 0.0 ? NT_INCIDENT_PART : 1.0) *
				    (cost - recovery->height);
	if (recovery->drop <= 0.0)
		recovery->bad_ns = end_ns;
	recovery->seen_ns = end_ns;
	recovery->ended = recovery->drop >= NT_RECOVERY_DROP * fmax(whole, recovery->height);
}

void nt_recovery_add(struct nt_recovery *recovery, const struct nt_rules *rules, uint64_t start_ns,
		     uint64_t end_ns, double cost, double whole)
{
	struct nt_recovery_bucket *last;

	find_end(recovery, end_ns, cost, fmax(rules->size_floor, whole));
	if (recovery->buckets) {
		last = &recovery->bucket[recovery->buckets - 1];
		if (end_ns - last->start_ns <= rules->resolve_min_ns / NT_RECOVERY_PARTS ||
		    last->windows < rules->resolve_windows / NT_RECOVERY_PARTS)
			goto add;
	}
	if (recovery->buckets == NT_RECOVERY_BUCKETS) {
		memmove(recovery->bucket, recovery->bucket + 1,
			(NT_RECOVERY_BUCKETS - 1) * sizeof(*recovery->bucket));
		recovery->buckets--;
	}
	last = &recovery->bucket[recovery->buckets++];
	*last = (struct nt_recovery_bucket){.start_ns = start_ns};
add:
	if (last->windows < UINT32_MAX)
		last->windows++;
	last->sum += cost;
}

bool nt_recovery_is_over(const struct nt_recovery *recovery, const struct nt_rules *rules,
			 uint64_t end_ns, uint32_t absent)
{
	double sum = 0.0, mean;
	uint64_t windows = 0;

	for (uint32_t i = recovery->buckets; i-- > 0;) {
		const struct nt_recovery_bucket *bucket = &recovery->bucket[i];

		sum += bucket->sum;
		windows += bucket->windows;
		if (end_ns - bucket->start_ns < rules->resolve_min_ns ||
		    windows < rules->resolve_windows)
			continue;
		mean = sum / (double)windows;
		return mean < NT_COSTLY_PART * rules->size_floor ||
		       (recovery->ended && absent >= windows &&
			mean < NT_RECOVERY_REST * recovery->height);
	}
	return false;
}
