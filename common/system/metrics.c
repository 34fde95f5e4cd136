/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "common/system/clock.h"

struct nt_metrics {
	const struct nt_metric *table;
	size_t count;
	size_t *order; /* of the rows in the text: those of one name are adjacent */
	_Atomic uint64_t value[];
};

static bool is_known(const struct nt_metric *table, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (!strcmp(table[i].name, table[row].name))
			return true;
	return false;
}

static void set_order(struct nt_metrics *metrics)
{
	const struct nt_metric *table = metrics->table;
	size_t at = 0;

	for (size_t i = 0; i < metrics->count; i++)
		for (size_t k = i; !is_known(table, i) && k < metrics->count; k++)
			if (!strcmp(table[i].name, table[k].name))
				metrics->order[at++] = k;
}

int nt_metrics_new(const struct nt_metric *table, size_t count, struct nt_metrics **ret_metrics)
{
	struct nt_metrics *metrics;

	metrics = calloc(1, sizeof(*metrics) + count * sizeof(metrics->value[0]));
	if (!metrics)
		return -ENOMEM;
	metrics->order = calloc(count + 1, sizeof(*metrics->order));
	if (!metrics->order) {
		free(metrics);
		return -ENOMEM;
	}
	metrics->table = table;
	metrics->count = count;
	set_order(metrics);
	*ret_metrics = metrics;
	return 0;
}

void nt_metrics_free(struct nt_metrics *metrics)
{
	if (metrics)
		free(metrics->order);
	free(metrics);
}

static bool is_counter(const struct nt_metric *metric)
{
	return metric->kind == NT_METRIC_COUNTER || metric->kind == NT_METRIC_COUNTER_NS;
}

void nt_metrics_set(struct nt_metrics *metrics, size_t id, uint64_t value)
{
	uint64_t old;

	if (id >= metrics->count)
		return;
	old = atomic_load_explicit(&metrics->value[id], memory_order_relaxed);
	while (!is_counter(&metrics->table[id]) || value > old)
		if (atomic_compare_exchange_weak_explicit(&metrics->value[id], &old, value,
							  memory_order_relaxed,
							  memory_order_relaxed))
			break;
}

static int write_sample(const struct nt_metric *metric, uint64_t value, struct nt_buf *out)
{
	const char *labels = metric->labels;
	int r;

	r = nt_buf_printf(out, "%s%s%s%s ", metric->name, labels ? "{" : "", labels ? labels : "",
			  labels ? "}" : "");
	if (r < 0)
		return r;
	if (metric->kind == NT_METRIC_COUNTER || metric->kind == NT_METRIC_GAUGE)
		return nt_buf_printf(out, "%" PRIu64 "\n", value);
	return nt_buf_printf(out, "%" PRIu64 ".%09" PRIu64 "\n", value / (uint64_t)NT_SECOND,
			     value % (uint64_t)NT_SECOND);
}

int nt_metrics_write(const struct nt_metrics *metrics, enum nt_metrics_format format,
		     struct nt_buf *out)
{
	for (size_t i = 0; i < metrics->count; i++) {
		const size_t row = metrics->order[i];
		const struct nt_metric *metric = &metrics->table[row];
		const uint64_t value =
			atomic_load_explicit(&metrics->value[row], memory_order_relaxed);
		int r = 0;

		if (i == 0 || strcmp(metrics->table[metrics->order[i - 1]].name, metric->name) != 0)
			r = nt_metrics_write_family(metric->name, is_counter(metric), metric->help,
						    format, out);
		if (r < 0)
			return r;
		r = write_sample(metric, value, out);
		if (r < 0)
			return r;
	}
	return nt_metrics_write_end(format, out);
}
