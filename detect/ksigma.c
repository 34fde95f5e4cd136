/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A value against its own history. */
#include "detect/ksigma.h"

#include <math.h>
#include <string.h>

#include "detect/stats.h"

struct nt_ksigma_rules nt_ksigma_rules_default(void)
{
	return (struct nt_ksigma_rules){
		.window = 20,
		.warm_up = 20,
		.n_sigma = 3.0,
		.low = -INFINITY,
		.high = INFINITY,
		.min_width = 0.01,
		.direction = NT_KSIGMA_UP,
	};
}

struct nt_ksigma_answer nt_ksigma_judge(const struct nt_ksigma *ksigma,
					const struct nt_ksigma_rules *rules, double value)
{
	struct nt_ksigma_answer answer = {0};
	double copy[NT_KSIGMA_MAX_WINDOW];
	double away;

	answer.abnormal = value < rules->low || value > rules->high;
	if (!ksigma->count || ksigma->count < rules->warm_up)
		return answer;
	answer.ready = true;
	memcpy(copy, ksigma->value, ksigma->count * sizeof(copy[0]));
	if (rules->mean) {
		nt_stats_mean(copy, ksigma->count, &answer.centre, &answer.width);
	} else {
		answer.centre = nt_stats_median_of(copy, ksigma->count);
		answer.width = nt_stats_mad(copy, ksigma->count, answer.centre);
	}
	answer.width = fmax(answer.width, rules->min_width * fabs(answer.centre));
	away = value - answer.centre;
	answer.z = answer.width > 0.0 ? away / answer.width
		   : away > 0.0       ? 1e9
		   : away < 0.0       ? -1e9
				      : 0.0;
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
