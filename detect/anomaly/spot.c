/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/spot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/anomaly/pareto.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

struct nt_spot {
	struct nt_spot_rules rules;
	double *first; /* owned; the collected values, then unused */
	double *last; /* owned ring of `depth` values */
	double *excess; /* owned ring */
	uint64_t values, normal, excesses; /* taken in all */
	double last_sum, level, threshold;
};

struct nt_spot_rules nt_spot_rules_default(void)
{
	return (struct nt_spot_rules){
		.probability = NT_SPOT_PROBABILITY,
		.level = NT_SPOT_LEVEL,
		.first = NT_SPOT_FIRST,
	};
}

int nt_spot_new(const struct nt_spot_rules *rules, struct nt_spot **ret_spot)
{
	nt_auto(nt_spot) struct nt_spot *spot = NULL;

	if (!(rules->probability > 0.0 && rules->probability < 1.0) ||
	    !(rules->level > 0.0 && rules->level < 1.0) || !rules->first ||
	    rules->first > NT_SPOT_VALUES || rules->depth > NT_SPOT_VALUES)
		return -EINVAL;
	spot = calloc(1, sizeof(*spot));
	if (!spot)
		return -ENOMEM;
	spot->rules = *rules;
	spot->threshold = INFINITY;
	spot->first = calloc(rules->first, sizeof(*spot->first));
	spot->last = calloc(rules->depth ? rules->depth : 1, sizeof(*spot->last));
	spot->excess = calloc(NT_SPOT_EXCESSES, sizeof(*spot->excess));
	if (!spot->first || !spot->last || !spot->excess)
		return -ENOMEM;
	*ret_spot = nt_take(spot);
	return 0;
}

void nt_spot_free(struct nt_spot *spot)
{
	if (!spot)
		return;
	free(spot->first);
	free(spot->last);
	free(spot->excess);
	free(spot);
}

static double drift_of(const struct nt_spot *spot)
{
	uint64_t n = spot->normal < spot->rules.depth ? spot->normal : spot->rules.depth;

	return n ? spot->last_sum / (double)n : 0.0;
}

/* Only normal values move the mean. */
static void take_drift(struct nt_spot *spot, double value)
{
	double *oldest;

	if (spot->rules.depth) {
		oldest = &spot->last[spot->normal % spot->rules.depth];
		spot->last_sum += value - (spot->normal < spot->rules.depth ? 0.0 : *oldest);
		*oldest = value;
	}
	spot->normal++;
}

static void set_threshold(struct nt_spot *spot)
{
	size_t kept = spot->excesses < NT_SPOT_EXCESSES ? spot->excesses : NT_SPOT_EXCESSES;
	struct nt_pareto pareto = nt_pareto_fit(spot->excess, kept);
	double probability = spot->rules.probability * (double)spot->values /
			     nt_stats_max((double)spot->excesses, 1.0);

	spot->threshold = spot->level + nt_pareto_quantile(&pareto, probability);
}

static void take_excess(struct nt_spot *spot, double excess)
{
	spot->excess[spot->excesses++ % NT_SPOT_EXCESSES] = excess;
}

/* The first values are complete. */
static void begin_tail(struct nt_spot *spot)
{
	nt_stats_sort(spot->first, spot->rules.first);
	spot->level = spot->first[(size_t)(spot->rules.level * (spot->rules.first - 1))];
	for (size_t i = 0; i < spot->rules.first; i++)
		if (spot->first[i] > spot->level)
			take_excess(spot, spot->first[i] - spot->level);
	set_threshold(spot);
}

bool nt_spot_take(struct nt_spot *spot, double value, double *ret_threshold)
{
	double drift = drift_of(spot), away = value - drift;

	*ret_threshold = spot->threshold + drift;
	if (spot->values < spot->rules.first) {
		spot->first[spot->values++] = away;
		take_drift(spot, value);
		if (spot->values == spot->rules.first)
			begin_tail(spot);
		return false;
	}
	if (away > spot->threshold)
		return true;
	spot->values++;
	take_drift(spot, value);
	if (away > spot->level) {
		take_excess(spot, away - spot->level);
		set_threshold(spot);
	}
	return false;
}
