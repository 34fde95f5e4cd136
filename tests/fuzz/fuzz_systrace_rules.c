/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Parameters of any bytes are taken or refused in one line; what is taken is then judged by, on
 * values that are as wild.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cli/report/systrace_metric.h"
#include "tests/fuzz/lib/cost.h"

enum {
	RANKS = 5,
	BINS = 48,
};

static void judge(const struct nt_systrace_metric *metric, const uint8_t *data, size_t size)
{
	double value[RANKS * BINS];
	bool abnormal[RANKS];

	for (size_t i = 0; i < RANKS * BINS; i++)
		value[i] =
			size ? ldexp(data[i % size], (int)(data[(i * 7) % size] % 48) - 16) : 1.0;
	if (metric->has_space)
		assert(nt_systrace_space(&metric->space, value, RANKS, BINS, abnormal) == 0);
	for (size_t i = 0; metric->has_time && i < RANKS; i++)
		assert(nt_systrace_time(&metric->time, metric->alarm_filter, &value[i * BINS], BINS,
					&abnormal[i]) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_systrace_rules) struct nt_systrace_rules *rules = NULL;
	struct nt_trace_error error = {0};
	const int r = nt_systrace_rules_parse(data, size, "fuzz", &rules, &error);

	assert(r == 0 || r == -EBADMSG);
	assert((r == 0) == (error.text[0] == '\0'));
	assert((r == 0) == (rules != NULL));
	if (r < 0)
		return 0;
	assert(rules->metrics > 0 && rules->metrics <= NT_SYSTRACE_MAX_METRICS);
	for (uint32_t i = 0; i < rules->metrics; i++) {
		assert(rules->metric[i].funcs > 0);
		assert(rules->metric[i].funcs <= NT_SYSTRACE_MAX_FUNCS);
		judge(&rules->metric[i], data, size);
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {256 << 10, 64}, .steps = {1000000, 500})
