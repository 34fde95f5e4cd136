/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sysTrace's own detectors on its own files. A series is the duration of an operation on a rank in
 * one communicator. The ranks of a communicator are compared by DBSCAN over windows of their
 * series. If there are few, each is compared with its own history by k-sigma.
 */
#include "cli/report/systrace_metric.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/report/systrace.h"
#include "cli/systrace/markers.h"
#include "detect/math/dbscan.h"
#include "detect/math/stats.h"

enum {
	CUT = 5, /* the first one of so many parts of a series is the job's start */
	MAX_BINS = 1 << 20,
};

struct metric_series {
	uint32_t metric, func;
	uint64_t group;
	uint32_t rank;
	double *value;
	size_t bins;
	bool abnormal;
};

struct metric_run {
	const struct nt_systrace_rules *rules;
	struct nt_trace *trace; /* only ranks and nodes */
	struct metric_series *series;
	size_t count, cap;
	struct nt_systrace_accused *accused;
	size_t accusations, accused_cap;
	uint32_t **peers; /* of them, one list per group */
	size_t lists, list_cap;
	uint64_t end_ns;
	uint32_t left_out; /* groups that are too large */
	bool compute, network;
};

static void release_run(struct metric_run *run)
{
	for (size_t i = 0; i < run->count; i++)
		free(run->series[i].value);
	for (size_t i = 0; i < run->lists; i++)
		free(run->peers[i]);
	free(run->series);
	free(run->accused);
	free(run->peers);
	nt_trace_free(run->trace);
}

/* Grows the list for one more than `count`. */
static int make_room(void *list, size_t *cap, size_t count, size_t size)
{
	void **at = list, *grown;

	if (count < *cap)
		return 0;
	grown = reallocarray(*at, *cap ? *cap * 2 : 16, size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*cap = *cap ? *cap * 2 : 16;
	return 0;
}

/* ---- the detectors --------------------------------------------------------------------------- */

/* Values between 1 and 100 are unchanged; others are scaled by a power of ten. */
static double scale_of(const double *value, size_t n)
{
	double top = 0.0;

	for (size_t i = 0; i < n; i++)
		top = fmax(top, value[i]);
	if (!(top > 0.0) || (top <= 100.0 && top >= 1.0))
		return 1.0;
	return pow(10.0, ceil(log10(top / 100.0)));
}

/* The distance of two ranks in a window. */
static double distance(const double *a, const double *b, size_t bins, double scale)
{
	double squares = 0.0;

	for (size_t i = 0; i < bins; i++)
		squares += (a[i] - b[i]) / scale * ((a[i] - b[i]) / scale);
	return round(sqrt(squares) / (double)bins * 1e6) / 1e6;
}

/* Whether the values of the window differ by this fraction of their median. */
static bool differs(const struct nt_systrace_space *rules, const double *value, size_t n,
		    size_t stride, size_t first, double *copy)
{
	const size_t all = n * rules->window_size;
	double low = INFINITY, high = -INFINITY, median;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < rules->window_size; j++) {
			const double one = value[i * stride + first + j];

			copy[i * rules->window_size + j] = one;
			low = fmin(low, one);
			high = fmax(high, one);
		}
	}
	median = fabs(nt_stats_median_of(copy, all));
	return high - low > rules->cv_threshold * 2.0 * median;
}

/* The largest cluster, of equal ones the first; noise if there is none. */
static uint32_t largest(const uint32_t *label, size_t n, uint32_t clusters, uint32_t *count)
{
	uint32_t best = 0;

	if (!clusters)
		return NT_DBSCAN_NOISE;
	memset(count, 0, clusters * sizeof(*count));
	for (size_t i = 0; i < n; i++)
		if (label[i] != NT_DBSCAN_NOISE)
			count[label[i]]++;
	for (uint32_t i = 1; i < clusters; i++)
		best = count[i] > count[best] ? i : best;
	return best;
}

int nt_systrace_space(const struct nt_systrace_space *rules, const double *value, size_t n,
		      size_t bins, bool *ret_abnormal)
{
	const size_t window = rules->window_size;
	const double scale = rules->scaling ? scale_of(value, n * bins) : 1.0;
	nt_autofree double *apart = calloc(n, n * sizeof(*apart));
	nt_autofree double *copy = calloc(n, window * sizeof(*copy));
	nt_autofree uint32_t *label = calloc(2 * n, sizeof(*label));

	if (!apart || !copy || !label)
		return -ENOMEM;
	memset(ret_abnormal, 0, n * sizeof(*ret_abnormal));
	for (size_t end = bins; end >= window; end -= window) {
		const size_t first = end - window;
		uint32_t clusters, normal;

		if (!differs(rules, value, n, bins, first, copy))
			continue;
		for (size_t i = 0; i < n; i++)
			for (size_t j = i; j < n; j++)
				apart[i * n + j] = apart[j * n + i] =
					distance(&value[i * bins + first], &value[j * bins + first],
						 window, scale);
		/* The distances of a rank are its coordinates. */
		clusters = nt_dbscan_points(apart, n, n, rules->eps, rules->min_samples, label,
					    &label[n]);
		normal = largest(label, n, clusters, &label[n]);
		for (size_t i = 0; i < n; i++)
			ret_abnormal[i] |= label[i] != normal;
	}
	return 0;
}

static int by_value(const void *left, const void *right)
{
	const double *a = *(const double *const *)left, *b = *(const double *const *)right;

	return (*a > *b) - (*a < *b);
}

/* Values outside the largest cluster of the series, scaled to 1, are excluded from training. */
static int find_noise(const struct nt_systrace_time *rules, const double *value, size_t bins,
		      bool *ret_noisy)
{
	nt_autofree const double **order = calloc(bins, sizeof(*order));
	nt_autofree double *sorted = calloc(bins, sizeof(*sorted));
	nt_autofree uint32_t *label = calloc(2 * bins, sizeof(*label));
	double range;
	uint32_t clusters, normal;

	if (!order || !sorted || !label)
		return -ENOMEM;
	for (size_t i = 0; i < bins; i++)
		order[i] = &value[i];
	qsort(order, bins, sizeof(*order), by_value);
	range = *order[bins - 1] - *order[0];
	for (size_t i = 0; i < bins && range > 0.0; i++)
		sorted[i] = (*order[i] - *order[0]) / range;
	clusters = nt_dbscan_sorted(sorted, bins, rules->preprocess_eps,
				    rules->preprocess_min_samples, label);
	normal = largest(label, bins, clusters, &label[bins]);
	for (size_t i = 0; i < bins; i++)
		ret_noisy[order[i] - value] = label[i] != normal;
	return 0;
}

int nt_systrace_time(const struct nt_systrace_time *rules, uint32_t alarm_filter,
		     const double *value, size_t bins, bool *ret_abnormal)
{
	nt_autofree bool *noisy = calloc(bins + 1, sizeof(*noisy));
	struct nt_ksigma past = {.count = 0};
	uint32_t run = 0;
	int r = noisy ? 0 : -ENOMEM;

	*ret_abnormal = false;
	if (r == 0 && bins && rules->preprocess_eps > 0.0)
		r = find_noise(rules, value, bins, noisy);
	for (size_t i = 0; i < bins && r == 0; i++) {
		if (past.count < rules->sigma.warm_up) {
			if (!noisy[i])
				nt_ksigma_learn(&past, &rules->sigma, value[i]);
			continue;
		}
		run = nt_ksigma_add(&past, &rules->sigma, value[i]).abnormal ? run + 1 : 0;
		*ret_abnormal |= run >= alarm_filter;
	}
	return r;
}

/* ---- series ---------------------------------------------------------------------------------- */

static int by_double(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Interpolates linearly between two values, as NumPy does. */
static double percentile(double *value, size_t n, double q)
{
	const double at = q / 100.0 * (double)(n - 1);
	const size_t low = (size_t)at;

	qsort(value, n, sizeof(*value), by_double);
	if (low + 1 >= n)
		return value[n - 1];
	return value[low] + (at - (double)low) * (value[low + 1] - value[low]);
}

static double aggregate(const struct nt_systrace_aggregate *how, double *value, size_t n)
{
	double mean = 0.0, low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < n; i++) {
		mean += value[i] / (double)n;
		low = fmin(low, value[i]);
		high = fmax(high, value[i]);
	}
	if (how->func == NT_SYSTRACE_PERCENTILE)
		return percentile(value, n, how->q);
	return how->func == NT_SYSTRACE_MIN ? low : how->func == NT_SYSTRACE_MAX ? high : mean;
}

struct sample {
	uint64_t start_ns;
	double ms;
};

static int by_start(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static bool is_op(const struct nt_systrace_metric *metric, const struct nt_marker_kind *kind)
{
	return strcasecmp(metric->op, kind->name) == 0; /* HcclAllReduce matches HcclAllreduce */
}

/* One series of a metric: empty bins do not count. */
static int fill_bins(const struct nt_systrace_metric *metric, uint32_t func,
		     const struct sample *sample, size_t n, struct metric_series *series)
{
	const double bin_ns = metric->during_s * 1e9;
	nt_autofree double *value = calloc(n, sizeof(*value));

	series->value = calloc(n, sizeof(*series->value));
	if (!value || !series->value)
		return -ENOMEM;
	for (size_t i = 0, end; i < n; i = end) {
		const double bin =
			floor((double)(sample[i].start_ns - sample[0].start_ns) / bin_ns);
		size_t held = 0;

		for (end = i; end < n; end++) {
			const double age = (double)(sample[end].start_ns - sample[0].start_ns);

			/* Without a length each operation is a bin. */
			if (bin_ns > 0.0 ? floor(age / bin_ns) != bin : end > i)
				break;
			value[held++] = sample[end].ms;
		}
		series->value[series->bins++] = aggregate(&metric->func[func], value, held);
	}
	return 0;
}

static int add_series(struct metric_run *run, uint32_t metric, uint64_t group, uint32_t rank,
		      const struct sample *sample, size_t n)
{
	for (uint32_t i = 0; i < run->rules->metric[metric].funcs; i++) {
		struct metric_series series = {
			.metric = metric, .func = i, .group = group, .rank = rank};
		int r = make_room(&run->series, &run->cap, run->count, sizeof(*run->series));

		r = r ?: fill_bins(&run->rules->metric[metric], i, sample, n, &series);
		if (r < 0) {
			free(series.value);
			return r;
		}
		run->series[run->count++] = series;
	}
	return 0;
}

/* The operations of a metric in one communicator, sorted by start. */
static size_t gather(const struct nt_systrace_metric *metric, const struct nt_markers *markers,
		     uint64_t group, struct sample *sample)
{
	size_t n = 0, cut;

	for (size_t i = 0; i < markers->ops && n < MAX_BINS; i++) {
		const struct nt_marker_op *op = &markers->op[i];
		const struct nt_marker_kind *kind = &markers->kind[op->kind];
		const uint64_t from = metric->launch ? op->launched_ns : op->start_ns;
		const uint64_t until = metric->launch ? op->start_ns : op->end_ns;

		if (kind->group != group || !is_op(metric, kind) || (metric->launch && !from))
			continue;
		sample[n++] = (struct sample){
			.start_ns = from,
			.ms = (until > from ? (double)(until - from) : (double)(from - until)) /
			      1e6,
		};
	}
	qsort(sample, n, sizeof(*sample), by_start);
	cut = n / CUT;
	memmove(sample, &sample[cut], (n - cut) * sizeof(*sample));
	return n - cut;
}

static int read_metric(struct metric_run *run, uint32_t index, const struct nt_markers *markers,
		       uint32_t rank, struct sample *sample)
{
	const struct nt_systrace_metric *metric = &run->rules->metric[index];

	for (uint32_t i = 0; i < markers->kinds; i++) {
		bool known = !is_op(metric, &markers->kind[i]);
		size_t n;
		int r;

		for (uint32_t j = 0; j < i && !known; j++)
			known = is_op(metric, &markers->kind[j]) &&
				markers->kind[j].group == markers->kind[i].group;
		if (known)
			continue;
		n = gather(metric, markers, markers->kind[i].group, sample);
		r = n ? add_series(run, index, markers->kind[i].group, rank, sample, n) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_file(struct metric_run *run, const char *path, struct nt_trace_error *error)
{
	struct nt_trace_rank_info *info = &run->trace->rank_info[run->trace->rank_infos];
	nt_auto(nt_markers) struct nt_markers *markers = NULL;
	nt_autofree struct sample *sample = NULL;
	int r;

	if (!nt_markers_place(path, &info->rank, &run->trace->node[run->trace->nodes]))
		return nt_trace_refuse(error, "%s: its name holds no rank", path);
	r = nt_markers_read(path, &markers, error);
	if (r < 0)
		return r;
	info->node = *run->trace->node[run->trace->nodes].name ? (uint32_t)run->trace->nodes
							       : NT_FRAME_NO_NODE;
	info->lacks = !markers->ops;
	run->trace->rank_infos++;
	run->trace->nodes++;
	sample = calloc(markers->ops + 1, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	for (size_t i = 0; i < markers->ops; i++)
		if (markers->op[i].end_ns > run->end_ns)
			run->end_ns = markers->op[i].end_ns;
	for (uint32_t i = 0; i < run->rules->metrics && r == 0; i++)
		r = read_metric(run, i, markers, info->rank, sample);
	return r;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int by_group(const void *left, const void *right)
{
	const struct metric_series *a = left, *b = right;

	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	if (a->func != b->func)
		return a->func < b->func ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

static int judge_space(const struct nt_systrace_space *rules, struct metric_series *series,
		       size_t n)
{
	nt_autofree double *value = NULL;
	bool abnormal[NT_SYSTRACE_MAX_GROUP];
	size_t bins = series[0].bins;
	int r;

	for (size_t i = 1; i < n; i++)
		bins = series[i].bins < bins ? series[i].bins : bins;
	value = calloc(n, (bins + 1) * sizeof(*value));
	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		memcpy(&value[i * bins], series[i].value, bins * sizeof(*value));
	r = nt_systrace_space(rules, value, n, bins, abnormal);
	for (size_t i = 0; i < n && r == 0; i++)
		series[i].abnormal = abnormal[i];
	return r;
}

static int accuse(struct metric_run *run, const struct metric_series *series, size_t n,
		  enum nt_systrace_method method)
{
	const struct nt_systrace_metric *metric = &run->rules->metric[series->metric];
	uint32_t *peers;
	int r = make_room(&run->peers, &run->list_cap, run->lists, sizeof(*run->peers));

	peers = r == 0 ? calloc(n, sizeof(*peers)) : NULL;
	if (!peers)
		return -ENOMEM;
	run->peers[run->lists++] = peers;
	for (size_t i = 0; i < n; i++)
		peers[i] = series[i].rank;
	for (size_t i = 0; i < n; i++) {
		if (!series[i].abnormal)
			continue;
		r = make_room(&run->accused, &run->accused_cap, run->accusations,
			      sizeof(*run->accused));
		if (r < 0)
			return r;
		run->accused[run->accusations++] = (struct nt_systrace_accused){
			.rank = series[i].rank,
			.method = method,
			.peer_deviation = metric->name,
			.peers = peers,
			.peer_count = n,
		};
		run->network |= metric->network;
		run->compute |= !metric->network;
	}
	return 0;
}

static int judge_group(struct metric_run *run, struct metric_series *series, size_t n)
{
	const struct nt_systrace_metric *metric = &run->rules->metric[series->metric];
	int r = 0;

	assert(n > 0);
	if (n > NT_SYSTRACE_MAX_GROUP) {
		run->left_out++;
		return 0;
	}
	if (metric->has_space && n >= NT_SYSTRACE_LEAST_GROUP) {
		r = judge_space(&metric->space, series, n);
		return r ?: accuse(run, series, n, NT_SYSTRACE_SPACE);
	}
	for (size_t i = 0; metric->has_time && i < n && r == 0; i++)
		r = nt_systrace_time(&metric->time, metric->alarm_filter, series[i].value,
				     series[i].bins, &series[i].abnormal);
	return r ?: accuse(run, series, n, NT_SYSTRACE_TIME);
}

static int by_rank(const void *left, const void *right)
{
	const struct nt_trace_rank_info *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

int nt_systrace_run(const struct nt_systrace_rules *rules, const char *const *paths, size_t count,
		    struct nt_buf *buf, struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_run))) struct metric_run run = {.rules = rules};
	struct nt_systrace_verdict verdict = {.message = ""};
	char message[96];
	int r = 0;

	run.trace = calloc(1, sizeof(*run.trace));
	if (!run.trace)
		return -ENOMEM;
	run.trace->rank_info = calloc(count, sizeof(*run.trace->rank_info));
	run.trace->node = calloc(count, sizeof(*run.trace->node));
	if (!run.trace->rank_info || !run.trace->node)
		return -ENOMEM;
	for (size_t i = 0; i < count && r == 0; i++)
		r = read_file(&run, paths[i], ret_error);
	if (r < 0)
		return r;
	qsort(run.trace->rank_info, run.trace->rank_infos, sizeof(*run.trace->rank_info), by_rank);
	for (size_t i = 1; i < run.trace->rank_infos; i++)
		if (run.trace->rank_info[i].rank == run.trace->rank_info[i - 1].rank)
			return nt_trace_refuse(ret_error, "two files are of rank %u",
					       run.trace->rank_info[i].rank);
	if (run.count)
		qsort(run.series, run.count, sizeof(*run.series), by_group);
	for (size_t i = 0, end; i < run.count && r == 0; i = end) {
		for (end = i + 1; end < run.count; end++)
			if (run.series[end].metric != run.series[i].metric ||
			    run.series[end].func != run.series[i].func ||
			    run.series[end].group != run.series[i].group)
				break;
		r = judge_group(&run, &run.series[i], end - i);
	}
	if (r < 0)
		return r;
	if (run.left_out) {
		(void)snprintf(message, sizeof(message),
			       "%u groups of more than %d ranks are left out", run.left_out,
			       NT_SYSTRACE_MAX_GROUP);
		verdict.message = message;
	}
	verdict.accused = run.accused;
	verdict.count = run.accusations;
	verdict.compute = run.compute;
	verdict.network = run.network;
	verdict.time_ns = run.end_ns;
	return nt_systrace_document(&verdict, run.trace, buf);
}
