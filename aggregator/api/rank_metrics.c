/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The series of ranks. Times are those of a step of the last frame with steps. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/job_metrics.h"
#include "common/system/clock.h"
#include "common/system/metrics.h"
#include "engine/gpu/gemm_rate.h"

/* ---- what a rank has: NAN if unknown ----------------------------------------------------------- */

static double of_step(const struct nt_snapshot_rank *rank, double value)
{
	return rank->steps ? value : NAN;
}

static double own_work(const struct nt_snapshot_rank *rank)
{
	return rank->own_observable ? of_step(rank, rank->own_ns) : NAN;
}

static double peers_own_work(const struct nt_snapshot_rank *rank)
{
	return rank->own_peers_ns > 0 ? of_step(rank, rank->own_peers_ns) : NAN;
}

static double host_work(const struct nt_snapshot_rank *rank)
{
	return of_step(rank, rank->host_ns);
}

static double blocked(const struct nt_snapshot_rank *rank)
{
	return of_step(rank, rank->blocked_ns);
}

static double communication(const struct nt_snapshot_rank *rank)
{
	return of_step(rank, rank->comm_ns);
}

static double step(const struct nt_snapshot_rank *rank)
{
	return of_step(rank, rank->step_ns);
}

static double is_observed(const struct nt_snapshot_rank *rank)
{
	return rank->observed && !rank->silent;
}

static double flops(const struct nt_snapshot_rank *rank)
{
	return rank->gemms && rank->gemms->flops >= 0 ? rank->gemms->flops : NAN;
}

static double mfu(const struct nt_snapshot_rank *rank)
{
	return rank->gemms && rank->gemms->mfu >= 0 ? rank->gemms->mfu : NAN;
}

static double clock_hertz(const struct nt_snapshot_rank *rank)
{
	return rank->gpu_state.clock_mhz ? rank->gpu_state.clock_mhz * 1e6 : NAN;
}

static double temperature(const struct nt_snapshot_rank *rank)
{
	return rank->gpu_state.celsius ? rank->gpu_state.celsius : NAN;
}

static double steps_so_far(const struct nt_snapshot_rank *rank)
{
	return (double)rank->total_steps;
}

static double copied_bytes(const struct nt_snapshot_rank *rank)
{
	return (double)rank->copy_bytes;
}

static double allocated_bytes(const struct nt_snapshot_rank *rank)
{
	return (double)rank->alloc_bytes;
}

static double lost_events(const struct nt_snapshot_rank *rank)
{
	return (double)rank->lost;
}

#define STEP "per step"

static const struct rank_family {
	struct nt_metric metric;
	double (*read)(const struct nt_snapshot_rank *rank);
} families[] = {
	{{"neutracer_rank_observed", NT_METRIC_GAUGE, "1 if data of the rank arrive, 0 otherwise.",
	  NULL},
	 is_observed},
	{{"neutracer_rank_own_work_seconds", NT_METRIC_GAUGE_NS,
	  "Own work of the rank " STEP ", without waiting for others.", NULL},
	 own_work},
	{{"neutracer_rank_peers_own_work_seconds", NT_METRIC_GAUGE_NS,
	  "Median of the own work of its peers " STEP ".", NULL},
	 peers_own_work},
	{{"neutracer_rank_host_seconds", NT_METRIC_GAUGE_NS,
	  "Part of the own work that the host does " STEP ".", NULL},
	 host_work},
	{{"neutracer_rank_blocked_seconds", NT_METRIC_GAUGE_NS,
	  "Time blocked in synchronizing calls " STEP ".", NULL},
	 blocked},
	{{"neutracer_rank_communication_seconds", NT_METRIC_GAUGE_NS,
	  "Time in communication calls " STEP ".", NULL},
	 communication},
	{{"neutracer_rank_step_seconds", NT_METRIC_GAUGE_NS, "Step time of the rank.", NULL}, step},
	{{"neutracer_rank_steps_total", NT_METRIC_COUNTER,
	  "Steps since the agent first saw the rank.", NULL},
	 steps_so_far},
	{{"neutracer_rank_flops", NT_METRIC_GAUGE,
	  "Floating-point operations per second of its matrix multiplications.", NULL},
	 flops},
	{{"neutracer_rank_mfu_ratio", NT_METRIC_GAUGE,
	  "Share of the peak of its GPUs that these operations are.", NULL},
	 mfu},
	{{"neutracer_rank_gpu_clock_hertz", NT_METRIC_GAUGE, "Clock of its GPU.", NULL},
	 clock_hertz},
	{{"neutracer_rank_gpu_temperature_celsius", NT_METRIC_GAUGE, "Temperature of its GPU.",
	  NULL},
	 temperature},
	{{"neutracer_rank_copied_bytes_total", NT_METRIC_COUNTER,
	  "Bytes that its calls copied from, to and between GPUs.", NULL},
	 copied_bytes},
	{{"neutracer_rank_allocated_bytes_total", NT_METRIC_COUNTER,
	  "Bytes of device memory that its calls allocated.", NULL},
	 allocated_bytes},
	{{"neutracer_rank_events_lost_total", NT_METRIC_COUNTER,
	  "Events of the rank that were lost.", NULL},
	 lost_events},
};

/* The names of these two are those of the NeuTracer before this one. */
static const struct nt_metric memory_metric = {
	"neutracer_gpu_memory_size_bytes", NT_METRIC_GAUGE,
	"Device memory that the process holds now, by device.", NULL};
static const struct nt_metric calls_metric = {
	"neutracer_function_calls_total", NT_METRIC_COUNTER,
	"Calls of functions since the agent first saw the rank, by kind of function.", NULL};

/* ---- samples ---------------------------------------------------------------------------------- */

/* The name, and the labels up to the closing brace. */
static int begin_sample(const char *name, const struct nt_rank_series *series, struct nt_buf *out)
{
	const struct nt_snapshot_rank *rank = series->rank;
	char number[32];
	int r;

	/* Without a known rank the number identifies the process alone. */
	(void)snprintf(number, sizeof(number), "%s%" PRIu32, rank->rank_known ? "" : "process-",
		       rank->rank);
	r = nt_buf_printf(out, "%s{", name);
	if (r == 0)
		r = nt_job_metrics_labels(series->job, out);
	if (r == 0)
		r = nt_metrics_write_label("rank", number, false, out);
	return r < 0 ? r : nt_metrics_write_label("node", rank->node, false, out);
}

static int write_family(const struct nt_metric *metric, enum nt_metrics_format format,
			struct nt_buf *out)
{
	return nt_metrics_write_family(metric->name, metric->kind == NT_METRIC_COUNTER,
				       metric->help, format, out);
}

static int write_value(const struct rank_family *family, const struct nt_rank_series *series,
		       struct nt_buf *out)
{
	double value = family->read(series->rank);
	int r;

	if (!isfinite(value))
		return 0;
	r = begin_sample(family->metric.name, series, out);
	if (r < 0)
		return r;
	if (family->metric.kind == NT_METRIC_GAUGE_NS)
		return nt_buf_printf(out, "} %.9f\n", value / (double)NT_SECOND);
	return nt_buf_printf(
		out, family->metric.kind == NT_METRIC_COUNTER ? "} %.0f\n" : "} %.9g\n", value);
}

static bool is_same_device(const struct nt_rank_heap_device *one,
			   const struct nt_rank_heap_device *other)
{
	return one->number_known == other->number_known &&
	       (!one->number_known || one->number == other->number);
}

/* Rows of one device are one series: a series that is there twice would make the scrape invalid. */
static bool sum_device(const struct nt_rank_heap *heap, uint32_t number, uint64_t *ret_bytes)
{
	for (uint32_t i = 0; i < number; i++)
		if (is_same_device(&heap->device[i], &heap->device[number]))
			return false;
	*ret_bytes = 0;
	for (uint32_t i = number; i < heap->devices; i++)
		if (is_same_device(&heap->device[i], &heap->device[number]))
			*ret_bytes += heap->device[i].live_bytes;
	return true;
}

static int write_memory(const struct nt_rank_series *series, struct nt_buf *out)
{
	const struct nt_rank_heap *heap = series->rank->heap;
	uint64_t bytes;
	int r = 0;

	for (uint32_t i = 0; r == 0 && heap && i < heap->devices; i++) {
		char number[16] = "unknown";

		if (!sum_device(heap, i, &bytes))
			continue;
		if (heap->device[i].number_known)
			(void)snprintf(number, sizeof(number), "%" PRIu32, heap->device[i].number);
		r = begin_sample(memory_metric.name, series, out);
		if (r == 0)
			r = nt_metrics_write_label("device", number, false, out);
		if (r == 0)
			r = nt_buf_printf(out, ",pid=\"%" PRIu32 "\"} %" PRIu64 "\n",
					  series->rank->pid, bytes);
	}
	return r;
}

static int write_calls(const struct nt_rank_series *series, const char *function, uint64_t calls,
		       struct nt_buf *out)
{
	int r = begin_sample(calls_metric.name, series, out);

	if (r == 0)
		r = nt_metrics_write_label("function", function, false, out);
	if (r == 0)
		r = nt_metrics_write_label("process", series->rank->process, false, out);
	return r < 0 ? r : nt_buf_printf(out, "} %" PRIu64 "\n", calls);
}

/* Calls of one operation of all communicators are one series. */
static int write_all_calls(const struct nt_rank_series *series, struct nt_buf *out)
{
	const struct nt_snapshot_rank *rank = series->rank;
	uint64_t calls[NT_LIBRARY_END][NT_OP_END] = {0};
	int r;

	for (size_t i = 0; i < rank->ops; i++)
		if (rank->op[i].library < NT_LIBRARY_END && rank->op[i].op < NT_OP_END)
			calls[rank->op[i].library][rank->op[i].op] += rank->op[i].calls;
	r = write_calls(series, "kernel-launch", rank->launches, out);
	if (r == 0)
		r = write_calls(series, "memory-copy", rank->copies, out);
	if (r == 0)
		r = write_calls(series, "memory-allocation", rank->allocs, out);
	for (int library = 0; library < NT_LIBRARY_END; library++) {
		for (int op = 0; r == 0 && op < NT_OP_END; op++) {
			char function[64];

			if (!calls[library][op])
				continue;
			(void)snprintf(function, sizeof(function), "%s %s",
				       nt_library_name((enum nt_library)library),
				       nt_op_name((enum nt_op)op));
			r = write_calls(series, function, calls[library][op], out);
		}
	}
	return r;
}

int nt_rank_metrics_write(const struct nt_rank_series *series, size_t count,
			  enum nt_metrics_format format, struct nt_buf *out)
{
	int r = 0;

	if (!count)
		return 0;
	for (size_t i = 0; r == 0 && i < sizeof(families) / sizeof(families[0]); i++) {
		r = write_family(&families[i].metric, format, out);
		for (size_t k = 0; r == 0 && k < count; k++)
			r = write_value(&families[i], &series[k], out);
	}
	if (r == 0)
		r = write_family(&memory_metric, format, out);
	for (size_t k = 0; r == 0 && k < count; k++)
		r = write_memory(&series[k], out);
	if (r == 0)
		r = write_family(&calls_metric, format, out);
	for (size_t k = 0; r == 0 && k < count; k++)
		r = write_all_calls(&series[k], out);
	return r;
}
