/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one event of a profiler trace: a kernel, a call on the host, an operator, or a step. */
#include "cli/readers/kineto.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"
#include "proto/wire.h"

enum {
	MAX_KERNELS = 1 << 24, /* of one file */
};

static const double MAX_US = 9e15; /* 1e6 seconds before the nanoseconds overflow */

/* Microseconds, integer or not, plus the trace's base, as nanoseconds. */
static bool event_time(const json_t *event, const char *key, uint64_t base_ns, uint64_t *ret_ns)
{
	const json_t *value = json_object_get(event, key);
	double us = json_number_value(value);

	if (!json_is_number(value) || !(us >= 0) || us > MAX_US)
		return false;
	if (json_is_integer(value))
		*ret_ns = base_ns + (uint64_t)json_integer_value(value) * 1000;
	else
		*ret_ns = base_ns + (uint64_t)llround(us * 1000);
	return true;
}

/* "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)" → "AllReduce". */
static void collective_name(const char *kernel, char *ret_name, size_t size)
{
	const char *start = strchr(kernel, '_');
	size_t len;

	start = start ? start + 1 : kernel;
	len = strcspn(start, "_(");
	(void)nt_text_clean(start, len, ret_name, size - 1);
}

static int add_interval(struct nt_kineto_interval **list, size_t *count,
			const struct nt_kineto_interval *interval)
{
	/* Grows at powers of two, so that no capacity is stored. */
	if (!*list || (*count & (*count - 1)) == 0) {
		struct nt_kineto_interval *grown =
			reallocarray(*list, *count ? *count * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		*list = grown;
	}
	(*list)[(*count)++] = *interval;
	return 0;
}

static bool starts_with(const char *text, const char *prefix)
{
	return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "gloo:all_reduce" → "all_reduce"; NCCL's calls are recorded so, too, but end when enqueued. */
static const char *host_call(const char *name)
{
	static const char *const backends[] = {"gloo:", "mpi:"};

	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		if (starts_with(name, backends[i]))
			return name + strlen(backends[i]);
	return NULL;
}

/* Operators are nested and sorted by start: only the outermost ones are stored. */
static int add_work(struct nt_kineto_rank *out, const struct nt_kineto_interval *interval)
{
	struct nt_kineto_interval *last = out->works ? &out->work[out->works - 1] : NULL;

	if (last && interval->start_ns >= last->start_ns && interval->end_ns <= last->end_ns)
		return 0;
	return out->works < MAX_KERNELS ? add_interval(&out->work, &out->works, interval) : 0;
}

int nt_kineto_read_event(struct nt_kineto_rank *out, const json_t *event, uint64_t base_ns,
			 struct nt_trace_error *error)
{
	const char *category = json_string_value(json_object_get(event, "cat"));
	const char *name = json_string_value(json_object_get(event, "name"));
	const char *phase = json_string_value(json_object_get(event, "ph"));
	struct nt_kineto_interval interval = {0};
	uint64_t duration_ns = 0;
	int r;

	if (!name || !phase || strcmp(phase, "X") != 0)
		return 0;
	if (!event_time(event, "ts", base_ns, &interval.start_ns) ||
	    !event_time(event, "dur", 0, &duration_ns))
		return nt_trace_refuse(
			error, "'%.60s' has no sound ts and dur (want microseconds from 0)", name);
	interval.end_ns = interval.start_ns + duration_ns;
	if (starts_with(name, "ProfilerStep") &&
	    (!category || strcmp(category, "gpu_user_annotation") != 0))
		return add_interval(&out->step, &out->steps, &interval);
	if (!category)
		return 0;
	if (host_call(name) && strcmp(category, "user_annotation") == 0) {
		if (out->spans == MAX_KERNELS)
			return nt_trace_refuse(error, "more than %d calls", MAX_KERNELS);
		interval.comm = true;
		name = host_call(name);
		(void)nt_text_clean(name, strlen(name), interval.name, sizeof(interval.name) - 1);
		return add_interval(&out->span, &out->spans, &interval);
	}
	if (starts_with(name, "aten::") && strcmp(category, "cpu_op") == 0)
		return add_work(out, &interval);
	if (strcmp(category, "kernel") == 0 || starts_with(category, "gpu_mem")) {
		if (out->kernels == MAX_KERNELS)
			return nt_trace_refuse(error, "more than %d kernels", MAX_KERNELS);
		interval.comm = starts_with(name, "nccl");
		if (interval.comm) {
			collective_name(name, interval.name, sizeof(interval.name));
			r = nt_kineto_read_call(out, json_object_get(event, "args"), &interval,
						error);
			if (r < 0)
				return r;
		}
		return add_interval(&out->kernel, &out->kernels, &interval);
	}
	return 0;
}
