/* SPDX-License-Identifier: GPL-3.0-or-later */
/* k-sigma test of a value against its own history. */
#include "detect/math/ksigma.h"

#include <math.h>
#include <string.h>

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

struct nt_ksigma_rules nt_ksigma_rules_default(void)
{
	return (struct nt_ksigma_rules){
		.window = NT_KSIGMA_WINDOW,
		.warm_up = NT_KSIGMA_WARM_UP,
		.n_sigma = NT_KSIGMA_SIGMAS,
		.low = -INFINITY,
		.high = INFINITY,
		.min_width = NT_KSIGMA_WIDTH,
		.direction = NT_KSIGMA_UP,
		.min_upper = -INFINITY,
		.max_upper = INFINITY,
		.min_lower = -INFINITY,
		.max_lower = INFINITY,
	};
}

/* Bounds extended by the bias and limited to a range. */
static bool is_beyond(const struct nt_ksigma_rules *rules, double value,
		      struct nt_ksigma_answer *answer)
{
	const double reach = rules->n_sigma * answer->width;
	double upper = answer->centre + reach, lower = answer->centre - reach;

	upper += fmax(rules->bias * upper, rules->abs_bias);
	lower -= fmax(rules->bias * lower, rules->abs_bias);
	answer->upper = fmin(fmax(upper, rules->min_upper), rules->max_upper);
	answer->lower = fmin(fmax(lower, rules->min_lower), rules->max_lower);
	return (rules->direction != NT_KSIGMA_DOWN && value >= answer->upper) ||
	       (rules->direction != NT_KSIGMA_UP && value < answer->lower);
}

struct nt_ksigma_answer nt_ksigma_judge(const struct nt_ksigma *ksigma,
					const struct nt_ksigma_rules *rules, double value)
{
	struct nt_ksigma_answer answer = {0};
	double copy[NT_KSIGMA_MAX_WINDOW];
	double *from = copy, away;
	uint32_t n = ksigma->count;

	answer.abnormal = value < rules->low || value > rules->high;
	if (!ksigma->count || ksigma->count < rules->warm_up)
		return answer;
	answer.ready = true;
	memcpy(copy, ksigma->value, ksigma->count * sizeof(copy[0]));
	if (rules->trimmed && n >= NT_KSIGMA_TRIMMED) {
		nt_stats_sort(copy, n);
		from++;
		n -= 2;
	}
	if (rules->mean) {
		nt_stats_mean(from, n, &answer.centre, &answer.width);
	} else {
		answer.centre = nt_stats_median_of(from, n);
		answer.width = nt_stats_mad(from, n, answer.centre);
	}
	if (!(answer.width > 0.0))
		answer.width = rules->zero_width;
	answer.width = fmax(answer.width, rules->min_width * fabs(answer.centre));
	away = value - answer.centre;
	answer.z = answer.width > 0.0 ? away / answer.width
		   : away > 0.0       ? 1e9
		   : away < 0.0       ? -1e9
				      : 0.0;
	if (rules->beyond) {
		answer.abnormal |= is_beyond(rules, value, &answer);
		return answer;
	}
	if (rules->direction == NT_KSIGMA_DOWN)
		away = -away;
	else if (rules->direction == NT_KSIGMA_BOTH)
		away = fabs(away);
	answer.abnormal |= away > rules->n_sigma * answer.width &&
			   away >= rules->bias * fabs(answer.centre) && away >= rules->abs_bias &&
			   away > 0.0;
	return answer;
}

void nt_ksigma_learn(struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules, double value)
{
	uint32_t window = rules->window;

	if (!window || window > NT_KSIGMA_MAX_WINDOW)
		window = NT_KSIGMA_MAX_WINDOW;
	if (ksigma->next >= window)
		ksigma->next = 0;
	ksigma->value[ksigma->next++] = value;
	if (ksigma->count < window)
		ksigma->count++;
}

struct nt_ksigma_answer nt_ksigma_add(struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules,
				      double value)
{
	const struct nt_ksigma_answer answer = nt_ksigma_judge(ksigma, rules, value);

	if (!answer.abnormal)
		nt_ksigma_learn(ksigma, rules, value);
	return answer;
}
