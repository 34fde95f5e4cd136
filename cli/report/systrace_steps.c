/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Slow steps of the job in the form of sysTrace's fail-slow result. sysTrace's rule is kept: a
 * step, and the one after it, far above the mean of the ten before. That rule detects jumps only,
 * so each incident that starts elsewhere adds a point, too, once.
 */
#include "cli/report/systrace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/system/clock.h"
#include "proto/json.h"

enum {
	WINDOW = 10, /* steps_window_size */
	MAX_POINTS = 4096,
};

static const double k_sigma = 2.0, least_degree = 0.2;
static const double incident_degree = 0.03; /* an incident that costs less is no slow step */

struct point {
	size_t step;
	uint64_t time_ns;
	double degree, slow_ms, normal_ms;
};

struct series {
	const struct nt_report *report;
	const struct nt_trace *trace;
	size_t steps;
	struct point *point;
	size_t points;
	const struct nt_wire_incident *hang;
};

static void release_series(struct series *series)
{
	free(series->point);
}

/* If the trace does not distinguish steps from frames, a frame is one. */
static void bounds(const struct series *series, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct nt_trace *trace = series->trace;

	if (trace->step) {
		*ret_start = trace->step[i].start_ns;
		*ret_end = trace->step[i].end_ns;
	} else {
		*ret_start = trace->frame[i].frame.start_ns;
		*ret_end = trace->frame[i].frame.end_ns;
	}
}

static double length_ms(const struct series *series, size_t i)
{
	uint64_t start = 0, end = 0;

	bounds(series, i, &start, &end);
	return (double)(end - start) / 1e6;
}

static double mean_ms(const struct series *series, size_t from, size_t to)
{
	double sum = 0.0;

	for (size_t i = from; i < to; i++)
		sum += length_ms(series, i);
	return to > from ? sum / (double)(to - from) : 0.0;
}

static double sigma_ms(const struct series *series, size_t from, size_t to, double mean)
{
	double sum = 0.0;

	for (size_t i = from; i < to; i++)
		sum += (length_ms(series, i) - mean) * (length_ms(series, i) - mean);
	return sqrt(sum / (double)(to - from));
}

static int add_point(struct series *series, const struct point *point)
{
	if (series->points == MAX_POINTS)
		return 0;
	if (!series->point) {
		series->point = calloc(MAX_POINTS, sizeof(*series->point));
		if (!series->point)
			return -ENOMEM;
	}
	series->point[series->points++] = *point;
	return 0;
}

static int find_jumps(struct series *series)
{
	for (size_t i = WINDOW; i + 1 < series->steps; i++) {
		const double mean = mean_ms(series, i - WINDOW, i);
		const double far =
			fmax(k_sigma * sigma_ms(series, i - WINDOW, i, mean), least_degree * mean);
		struct point point = {
			.step = i, .slow_ms = length_ms(series, i), .normal_ms = mean};
		uint64_t end = 0;
		int r;

		if (!(point.slow_ms - mean > far) || !(length_ms(series, i + 1) - mean > far))
			continue;
		point.degree = (point.slow_ms - mean) / mean;
		bounds(series, i, &point.time_ns, &end);
		r = add_point(series, &point);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The step in progress at that time; the number of steps if it is later. */
static size_t step_at(const struct series *series, uint64_t time_ns)
{
	uint64_t start = 0, end = 0;
	size_t i = 0;

	for (; i < series->steps; i++) {
		bounds(series, i, &start, &end);
		if (time_ns < end)
			break;
	}
	return i;
}

static bool is_known(const struct series *series, size_t step)
{
	for (size_t i = 0; i < series->points; i++) {
		const size_t other = series->point[i].step;

		if (step <= other + WINDOW && other <= step + WINDOW)
			return true;
	}
	return false;
}

static int add_incident(struct series *series, const struct nt_wire_incident *incident)
{
	struct point point = {.time_ns = incident->since_real_ns,
			      .degree = incident->slowdown - 1.0};

	if (!(point.degree >= incident_degree) || strcmp(incident->class, "imbalance") == 0)
		return 0;
	if (series->steps) {
		const size_t from = step_at(series, incident->since_real_ns);
		size_t to = incident->until_real_ns ? step_at(series, incident->until_real_ns)
						    : series->steps;

		to = to > from ? to : from + 1;
		to = to < series->steps ? to : series->steps;
		if (is_known(series, from))
			return 0;
		point.step = from < series->steps ? from : series->steps - 1;
		point.slow_ms = mean_ms(series, point.step, to);
		/* Slow from the start: the normal duration is known all the same. */
		point.normal_ms =
			from ? mean_ms(series, 0, from) : point.slow_ms / incident->slowdown;
	}
	return add_point(series, &point);
}

static int find_incidents(struct series *series)
{
	const struct nt_judgement *judgement = series->report->judgement;

	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;
		int r;

		if (strcmp(incident->class, "hang") == 0) {
			/* A continuing one is more relevant than one that is over. */
			if (!series->hang || !incident->until_real_ns)
				series->hang = incident;
			continue;
		}
		r = add_incident(series, incident);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_step(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* ---- the document ------------------------------------------------------------------------- */

/* "2025-06-12 19:39:24"; UTC, where sysTrace takes the zone of the host that it runs on. */
static void format_time(uint64_t ns, char text[NT_CLOCK_TEXT])
{
	(void)nt_clock_format(ns, 0, text);
	text[strcspn(text, "T")] = ' ';
	text[strcspn(text, "Z")] = '\0';
}

/* Milliseconds, with one decimal if they are not whole. */
static void format_ms(double ms, char *text, size_t size)
{
	const double tenths = round(ms * 10.0);

	(void)snprintf(text, size, fmod(tenths, 10.0) == 0.0 ? "%.0fms" : "%.1fms", tenths / 10.0);
}

static json_t *describe_point(const struct point *point)
{
	char time[NT_CLOCK_TEXT], slow[32], normal[32];

	format_time(point->time_ns, time);
	format_ms(point->slow_ms, slow, sizeof(slow));
	format_ms(point->normal_ms, normal, sizeof(normal));
	return json_pack("{s:I, s:s, s:o, s:s, s:s}", "training_step", (json_int_t)point->step,
			 "anomaly_time", time, "anomaly_degree",
			 nt_json_number(round(point->degree * 1000.0) / 1000.0),
			 "anomaly_training_time", slow, "normal_training_time", normal);
}

static json_t *describe_hang(const struct nt_wire_incident *hang, uint64_t end_ns)
{
	char from[NT_CLOCK_TEXT], to[NT_CLOCK_TEXT];

	format_time(hang->since_real_ns, from);
	format_time(end_ns, to);
	return json_pack(
		"{s:[s, s], s:o}", "detect_point", from, to, "hang_minutes",
		nt_json_number(round((double)(end_ns - hang->since_real_ns) / 6e8) / 100.0));
}

static json_t *list_points(const struct series *series, uint64_t end_ns)
{
	nt_autojson json_t *list = json_array();

	if (series->hang)
		return json_array_append_new(list, describe_hang(series->hang, end_ns)) < 0
			       ? NULL
			       : json_incref(list);
	for (size_t i = 0; i < series->points; i++)
		if (json_array_append_new(list, describe_point(&series->point[i])) < 0)
			return NULL;
	return json_incref(list);
}

static int print(const struct series *series, struct nt_buf *buf)
{
	uint64_t start_ns = series->report->start_ns, end_ns = series->report->end_ns, other = 0;
	const size_t count = series->hang ? 1 : series->points;
	nt_autojson json_t *root = NULL;

	if (series->steps && !series->hang) {
		bounds(series, 0, &start_ns, &other);
		bounds(series, series->steps - 1, &other, &end_ns);
	}
	if (series->hang) {
		start_ns = series->hang->since_real_ns;
		if (series->hang->until_real_ns)
			end_ns = series->hang->until_real_ns;
		end_ns = end_ns > start_ns ? end_ns : start_ns;
	}
	root = json_pack("{s:b, s:I, s:o, s:s, s:I, s:I}", "is_anomaly", count > 0,
			 "anomaly_count_times", (json_int_t)count, "anomaly_info",
			 list_points(series, end_ns), "anomaly_type",
			 series->hang ? "hang"
			 : count      ? "failSlow"
				      : "normal",
			 "start_time", (json_int_t)(start_ns / 1000000), "end_time",
			 (json_int_t)(end_ns / 1000000));
	if (!root)
		return -ENOMEM;
	return nt_json_dump(root, true, buf);
}

int nt_systrace_steps(const struct nt_report *report, const struct nt_trace *trace,
		      struct nt_buf *buf)
{
	__attribute__((cleanup(release_series))) struct series series = {
		.report = report,
		.trace = trace,
		.steps = !trace        ? 0
			 : trace->step ? trace->steps
				       : trace->frames,
	};
	int r;

	r = find_jumps(&series);
	r = r ?: find_incidents(&series);
	if (r < 0)
		return r;
	if (series.points)
		qsort(series.point, series.points, sizeof(*series.point), by_step);
	return print(&series, buf);
}
