/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/minute.h"

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

static const double wrap = 0x1p32;

bool nt_minute_is_over(const struct nt_minute *minute, uint64_t time_ns)
{
	return minute->number && time_ns / NT_ANOMALY_ROW_NS > minute->number;
}

/* What a counter grew by; negative: it was reset. */
static double growth_of(double last, double value)
{
	if (value >= last)
		return value - last;
	if (last < wrap && value + wrap - last < wrap / 2.0)
		return value + wrap - last;
	return -1.0;
}

/* False: the counter gives no rate this time. */
static bool find_rate(struct nt_minute *minute, struct nt_minute_metric *metric, double value,
		      uint64_t time_ns, double *ret_rate)
{
	bool had_last = metric->has_last;
	double growth = growth_of(metric->last, value);
	uint64_t past_ns = time_ns - metric->last_ns;

	if (had_last && time_ns <= metric->last_ns)
		return false;
	metric->has_last = true;
	metric->last = value;
	metric->last_ns = time_ns;
	if (!had_last)
		return false;
	minute->resets += growth < 0.0;
	minute->gaps += growth >= 0.0 && past_ns > NT_ANOMALY_GAP_NS;
	if (growth < 0.0 || past_ns > NT_ANOMALY_GAP_NS)
		return false;
	*ret_rate = growth / ((double)past_ns / 1e9);
	return true;
}

void nt_minute_add(struct nt_minute *minute, size_t metric, enum nt_minute_kind kind, double value,
		   uint64_t time_ns)
{
	struct nt_minute_metric *at = &minute->metric[metric];

	if (!minute->number)
		minute->number = time_ns / NT_ANOMALY_ROW_NS;
	if (!nt_anomaly_is_value(value))
		return;
	if (kind != NT_MINUTE_GAUGE && !find_rate(minute, at, value, time_ns, &value))
		return;
	at->sum += kind == NT_MINUTE_TROUBLE ? 0.0 : value;
	at->most = at->samples ? nt_stats_max(at->most, value) : value;
	at->samples++;
	if (kind == NT_MINUTE_TROUBLE)
		at->sum = at->most * at->samples;
}

void nt_minute_close(struct nt_minute *minute, size_t metrics, double *ret_row)
{
	for (size_t j = 0; j < metrics; j++) {
		struct nt_minute_metric *at = &minute->metric[j];

		ret_row[j] = at->samples ? at->sum / at->samples : NAN;
		at->sum = at->most = 0.0;
		at->samples = 0;
	}
	minute->number = 0;
}
