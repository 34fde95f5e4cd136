/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/budget.h"

#include <math.h>

#include "detect/anomaly/pareto.h"
#include "detect/math/stats.h"

static double tail(const struct nt_pareto *pareto, double rate, double wanted)
{
	return NT_ANOMALY_PEAK + nt_pareto_quantile(pareto, wanted / rate);
}

/* Between the threshold of recorded series and the fleet's own, by the rows behind each. */
static void set_alarm_threshold(struct nt_alarm_budget *budget)
{
	static const struct nt_pareto recorded = {NT_ANOMALY_PRIOR_SHAPE, NT_ANOMALY_PRIOR_SCALE};
	double wanted = budget->false_alarms / budget->day_rows;
	double prior = tail(&recorded, NT_ANOMALY_PRIOR_RATE, wanted);
	double weight = budget->rows / (budget->rows + NT_ANOMALY_PRIOR_ROWS), own;
	struct nt_pareto pareto;

	budget->threshold = prior;
	if (budget->peaks < NT_ANOMALY_PEAKS_LEAST)
		return;
	pareto =
		nt_pareto_fit(budget->peak, budget->peaks < NT_ANOMALY_PEAKS ? (size_t)budget->peaks
									     : NT_ANOMALY_PEAKS);
	own = tail(&pareto, (double)budget->peaks / budget->rows, wanted);
	own = nt_stats_clip(own, prior / NT_ANOMALY_PRIOR_FACTOR, prior * NT_ANOMALY_PRIOR_FACTOR);
	budget->threshold = exp(weight * log(own) + (1.0 - weight) * log(prior));
}

void nt_alarm_budget_init(struct nt_alarm_budget *budget, double false_alarms, double day_rows)
{
	*budget = (struct nt_alarm_budget){
		.false_alarms = false_alarms < 0.0 ? NT_ANOMALY_FALSE_ALARMS : false_alarms,
		.day_rows = day_rows};
	set_alarm_threshold(budget);
}

void nt_alarm_budget_row(struct nt_alarm_budget *budget)
{
	budget->rows += 1.0;
}

void nt_alarm_budget_peak(struct nt_alarm_budget *budget, double peak)
{
	if (peak <= NT_ANOMALY_PEAK)
		return;
	budget->peak[budget->peaks++ % NT_ANOMALY_PEAKS] = peak - NT_ANOMALY_PEAK;
	if (budget->rows > 0.0)
		set_alarm_threshold(budget);
}

void nt_alarm_budget_code(struct nt_codec *codec, struct nt_alarm_budget *budget)
{
	size_t kept;

	nt_code_real(codec, &budget->rows);
	nt_code_u64(codec, &budget->peaks);
	nt_code_fail(codec, budget->rows < 0.0 || (double)budget->peaks > budget->rows);
	if (codec->error)
		budget->peaks = 0;
	kept = budget->peaks < NT_ANOMALY_PEAKS ? (size_t)budget->peaks : NT_ANOMALY_PEAKS;
	nt_code_reals(codec, budget->peak, kept);
	for (size_t i = 0; i < kept; i++)
		nt_code_fail(codec, budget->peak[i] <= 0.0);
	if (codec->loads && !codec->error)
		set_alarm_threshold(budget);
}
