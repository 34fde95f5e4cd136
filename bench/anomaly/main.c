/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Scores labelled series with each method and prints how well they find the labelled rows:
 *
 *   anomaly [-v | -t] FILE...      -v: also each series; -t: only the time of rows
 *
 * Then it prints what a row of 40 metrics costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/anomaly/measures.h"
#include "bench/anomaly/methods.h"
#include "bench/anomaly/rows.h"
#include "common/system/clock.h"

struct sums {
	struct measures total;
	double row_ns, per_day, most_per_day;
};

static double now_ns(void)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static void print_row(const char *name, const struct measures *m, double per_day, double row_ns)
{
	printf("%-28s %5.3f  %5.3f  %5.3f  %5.3f  %6.2f  %8.0f\n", name, m->best_f1, m->f1,
	       m->auc_pr, m->vus_pr, per_day, row_ns);
}

/* Series of 5-minute rows have 288 a day; the tables say so by their names alone. */
static double day_rows(const char *path)
{
	return strstr(path, "smd") ? 1440.0 : 288.0;
}

static int judge(const struct method *method, const struct nt_metric_table *table, const char *path,
		 bool verbose, struct sums *sums)
{
	struct scored scored = {
		.score = calloc(table->rows, sizeof(double)),
		.alarm = calloc(table->rows, 1),
	};
	size_t first = first_judged(table), n = table->rows - first;
	struct measures m = {0};
	double start = now_ns(), row_ns, per_day;
	int r = scored.score && scored.alarm ? method->run(table, &scored) : -1;

	row_ns = (now_ns() - start) / (double)table->rows;
	if (r == 0)
		r = measure(scored.score + first, scored.alarm + first, table->label + first, n,
			    &m);
	per_day = m.false_alarms / ((double)n / day_rows(path));
	sums->total.best_f1 += m.best_f1;
	sums->total.f1 += m.f1;
	sums->total.auc_pr += m.auc_pr;
	sums->total.vus_pr += m.vus_pr;
	sums->per_day += per_day;
	sums->most_per_day = per_day > sums->most_per_day ? per_day : sums->most_per_day;
	sums->row_ns += row_ns;
	if (verbose) {
		const char *base = strrchr(path, '/');
		char name[64];

		(void)snprintf(name, sizeof(name), "    %s", base ? base + 1 : path);
		print_row(name, &m, per_day, row_ns);
	}
	free(scored.score);
	free(scored.alarm);
	return r;
}

static const struct nt_metric_table *widest(struct nt_metric_table *const *table, size_t n)
{
	const struct nt_metric_table *best = table[0];

	for (size_t i = 1; i < n; i++)
		if (table[i]->metrics > best->metrics)
			best = table[i];
	return best;
}

static int judge_all(struct nt_metric_table *const *table, char **path, size_t n, bool verbose)
{
	printf("%-28s %5s  %5s  %5s  %5s  %6s  %8s\n", "", "best", "F1 as", "AUC-", "VUS-",
	       "false/", "CPU ns");
	printf("%-28s %5s  %5s  %5s  %5s  %6s  %8s\n", "method", "F1", "set", "PR", "PR", "day",
	       "a row");
	for (size_t k = 0; k < method_count; k++) {
		struct sums sums = {0};
		double count = (double)n;

		for (size_t i = 0; i < n; i++)
			if (judge(&methods[k], table[i], path[i], verbose, &sums) < 0)
				return -1;
		sums.total.best_f1 /= count;
		sums.total.f1 /= count;
		sums.total.auc_pr /= count;
		sums.total.vus_pr /= count;
		print_row(methods[k].name, &sums.total, sums.per_day / count, sums.row_ns / count);
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	bool only_times = argc > 1 && strcmp(argv[1], "-t") == 0;
	char **path = argv + 1 + (verbose || only_times);
	size_t n = (size_t)(argv + argc - path);
	struct nt_metric_table **table = calloc(n + 1, sizeof(struct nt_metric_table *));
	struct nt_trace_error error = {0};

	for (size_t i = 0; i < n; i++)
		if (nt_metric_table_read(path[i], &table[i], &error) < 0 || !table[i]->label) {
			(void)fprintf(stderr, "anomaly: %s: %s\n", path[i],
				      *error.text ? error.text : "no labels");
			return 1;
		}
	if (!only_times && judge_all(table, path, n, verbose) < 0)
		return 1;
	if (n && print_row_times(widest(table, n)) < 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		nt_metric_table_free(table[i]);
	free(table);
	return 0;
}
