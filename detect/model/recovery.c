/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recovery test of a fault. */
#include "detect/model/recovery.h"

#include <math.h>
#include <string.h>

#include "detect/thresholds/thresholds.h"

/* What the windows after the end must cost to be of the fault, if its windows cost `mean`. */
static double least_since(const struct nt_recovery *recovery, double floor, double mean,
			  double whole)
{
	return NT_COSTLY_PART * fmin(fmax(floor, mean), whole) * recovery->since.windows;
}

/* The fault lasted until now. What is long ago counts less. */
static void extend(struct nt_recovery *recovery, uint64_t end_ns)
{
	struct nt_recovery_part *before = &recovery->before;

	recovery->bad_ns = end_ns;
	before->cost += recovery->since.cost;
	before->windows += recovery->since.windows;
	if (before->windows > NT_RECOVERY_WINDOWS) {
		before->cost *= NT_RECOVERY_WINDOWS / before->windows;
		before->windows = NT_RECOVERY_WINDOWS;
	}
	recovery->since = (struct nt_recovery_part){0};
}

/* A single bad window among healthy ones does not make up for the healthy ones before it. */
static void find_end(struct nt_recovery *recovery, uint64_t end_ns, double cost, double floor,
		     double whole)
{
	const bool is_bad = cost >= NT_COSTLY_PART * whole;
	const struct nt_recovery_part *before = &recovery->before;
	struct nt_recovery_part *since = &recovery->since;
	double mean, drop;

	since->cost += cost;
	since->windows++;
	if (is_bad)
		recovery->height += (recovery->height > 0.0 ? NT_INCIDENT_PART : 1.0) *
				    (cost - recovery->height);
	mean = (before->cost + since->cost) / (before->windows + since->windows);
	if (!recovery->buckets ||
	    (is_bad && since->cost >= least_since(recovery, floor, mean, whole)))
		extend(recovery, end_ns);
	recovery->seen_ns = end_ns;
	mean = before->windows > 0.0 ? before->cost / before->windows : whole;
	drop = least_since(recovery, floor, mean, whole) - since->cost;
	recovery->ended = drop >= NT_RECOVERY_DROP * fmax(floor, recovery->height);
}

void nt_recovery_add(struct nt_recovery *recovery, const struct nt_rules *rules, uint64_t start_ns,
		     uint64_t end_ns, double cost, double whole)
{
	struct nt_recovery_bucket *last;

	find_end(recovery, end_ns, cost, rules->size_floor, fmax(rules->size_floor, whole));
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
