/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bench/anomaly/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "detect/anomaly/anomaly.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

enum {
	METRICS = 40,
	DELAY = 777, /* rows, of a column that is used again */
	CHUNK = 128, /* rows that are timed together */
	CHUNKS_MOST = 1024,
};

/* The median over chunks of rows: what else ran on the processor disturbs only some of them. */
struct timed {
	double ns[CHUNKS_MOST];
	size_t chunks;
};

static double thread_ns(void)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static void add_time(struct timed *timed, double ns)
{
	if (timed->chunks < CHUNKS_MOST)
		timed->ns[timed->chunks++] = ns;
}

static void print_time(const char *what, struct timed *timed, double per, const char *unit)
{
	double least = INFINITY;

	for (size_t i = 0; i < timed->chunks; i++)
		least = fmin(least, timed->ns[i]);
	printf("%-44s %8.2f %s (least %.2f)\n", what,
	       nt_stats_median_of(timed->ns, timed->chunks) / per, unit, least / per);
}

static double *make_rows(const struct nt_metric_table *table)
{
	double *row = calloc(table->rows * METRICS, sizeof(*row));

	for (size_t i = 0; row && i < table->rows; i++)
		for (size_t j = 0; j < METRICS; j++) {
			size_t from = (i + j / table->metrics * DELAY) % table->rows;

			row[i * METRICS + j] =
				table->value[from * table->metrics + j % table->metrics];
		}
	return row;
}

/* The least that a score could be: the largest deviation from fixed means, by stored reciprocals. */
static double bare_sigma(const double *row, const double *mean, const double *per_sigma)
{
	double most = 0.0;

	for (size_t j = 0; j < METRICS; j++) {
		double away = fabs(row[j] - mean[j]) * per_sigma[j];

		most = away > most ? away : most;
	}
	return most;
}

static void time_bare(const double *row, size_t rows)
{
	double mean[METRICS] = {0}, per_sigma[METRICS];
	struct timed timed = {0};
	volatile double sum = 0.0;

	for (size_t j = 0; j < METRICS; j++)
		per_sigma[j] = 1.0 + (double)j;
	for (size_t i = 0; i + CHUNK <= rows; i += CHUNK) {
		double start = thread_ns();

		for (size_t k = i; k < i + CHUNK; k++)
			sum = sum + bare_sigma(row + k * METRICS, mean, per_sigma);
		add_time(&timed, (thread_ns() - start) / CHUNK);
	}
	print_time("bare k-sigma of a row", &timed, 1e3, "us");
}

static int refit(struct nt_chart *chart, struct timed *timed)
{
	double start = thread_ns();
	int r = nt_chart_refit(chart);

	add_time(timed, thread_ns() - start);
	return r;
}

static int time_chart(const double *row, size_t rows)
{
	nt_auto(nt_chart) struct nt_chart *chart = NULL;
	struct timed timed = {0}, refits = {0};
	int r = nt_chart_new(METRICS, NT_ANOMALY_LEARN_ROWS, &chart);
	volatile double sum = 0.0;

	for (size_t i = 0; r == 0 && i + CHUNK <= rows; i += CHUNK) {
		bool is_learned = nt_chart_is_learned(chart);
		double start = thread_ns();

		for (size_t k = i; k < i + CHUNK; k++)
			sum = sum + nt_chart_take(chart, row + k * METRICS, false);
		if (is_learned)
			add_time(&timed, (thread_ns() - start) / CHUNK);
		if (nt_chart_is_refit_due(chart))
			r = refit(chart, &refits);
	}
	print_time("the chart's part of a row", &timed, 1e3, "us");
	print_time("a refit, which runs in the background", &refits, 1e6, "ms");
	return r;
}

static int time_node(const double *row, size_t rows)
{
	static char text[METRICS][8];
	const char *name[METRICS];
	nt_auto(nt_anomaly_node) struct nt_anomaly_node *node = NULL;
	struct nt_anomaly_options options = nt_anomaly_options_default();
	struct nt_alarm_budget budget;
	struct nt_anomaly_score score = {.is_learning = true};
	struct timed timed = {0};
	int r = nt_anomaly_node_new(&options, &node);

	nt_alarm_budget_init(&budget, NT_ANOMALY_FALSE_ALARMS, NT_ANOMALY_DAY_ROWS);
	for (size_t j = 0; j < METRICS; j++) {
		(void)snprintf(text[j], sizeof(text[j]), "m%zu", j);
		name[j] = text[j];
	}
	for (size_t i = 0; r == 0 && i + CHUNK <= rows; i += CHUNK) {
		bool is_learned = !score.is_learning;
		double start = thread_ns();
		struct nt_chart *chart;

		for (size_t k = i; r == 0 && k < i + CHUNK; k++)
			r = nt_anomaly_node_take(node, &budget,
						 &(struct nt_anomaly_row){
							 .name = name,
							 .value = row + k * METRICS,
							 .metrics = METRICS,
						 },
						 &score);
		if (is_learned)
			add_time(&timed, (thread_ns() - start) / CHUNK);
		while (r == 0 && (chart = nt_anomaly_node_refit_due(node)))
			r = nt_chart_refit(chart);
	}
	print_time("a row: names, chart, level, alarm", &timed, 1e3, "us");
	return r;
}

int print_row_times(const struct nt_metric_table *table)
{
	double *row = make_rows(table);
	int r = row ? 0 : -ENOMEM;

	printf("\n%d metrics, %zu rows, CPU time:\n", METRICS, table->rows);
	if (r == 0) {
		time_bare(row, table->rows);
		r = time_chart(row, table->rows);
	}
	r = r < 0 ? r : time_node(row, table->rows);
	free(row);
	return r;
}
