/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one event of a profiler trace: a kernel, a call on the host, an operator, or a step. */
#include "cli/kineto/kineto.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "proto/text.h"
#include "proto/wire.h"

/* Those of nt_kineto_read_call() too. */
static const struct nt_json_pick event_args[] = {
	{"correlation"},
	{"Process Group Name"},
	{"Collective name"},
	{"Seq"},
	{"Group size"},
	{"Process Group Ranks"},
	{"In msg nelems"},
	{"Out msg nelems"},
	{"dtype"},
	{"stream"},
	{NULL},
};

const struct nt_json_pick nt_kineto_event[] = {
	{"ph"}, {"cat"}, {"name"}, {"ts"}, {"dur"}, {"args", event_args}, {NULL},
};

static const double MAX_US = 9e15; /* 1e6 seconds before the nanoseconds overflow */

/* Microseconds, integer or not, plus the trace's base, as nanoseconds. */
static bool event_time(const struct nt_json_value *event, const char *key, uint64_t base_ns,
		       uint64_t *ret_ns)
{
	const struct nt_json_value *value = nt_json_value_get(event, key);
	double us = nt_json_value_number(value);

	if (!nt_json_value_is_number(value) || !(us >= 0) || us > MAX_US)
		return false;
	if (nt_json_value_is(value, NT_JSON_INTEGER))
		*ret_ns = base_ns + (uint64_t)nt_json_value_integer(value) * 1000;
	else
		*ret_ns = base_ns + (uint64_t)llround(us * 1000);
	return true;
}

void nt_kineto_collective_name(const char *kernel, char *ret_name, size_t size)
{
	const char *start = strchr(kernel, '_');
	size_t len;

	start = start ? start + 1 : kernel;
	len = strcspn(start, "_(");
	(void)nt_text_clean(start, len, ret_name, size - 1);
}

int nt_kineto_add_interval(struct nt_kineto_interval **list, size_t *count,
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
	return out->works < NT_KINETO_MAX_KERNELS
		       ? nt_kineto_add_interval(&out->work, &out->works, interval)
		       : 0;
}

int nt_kineto_add_call(struct nt_kineto_rank *out, const char *name, uint32_t correlation,
		       const struct nt_kineto_interval *interval)
{
	const bool waits = strstr(name, "Synchronize") || strstr(name, "Memcpy");

	if (out->launches == NT_KINETO_MAX_KERNELS || out->waits == NT_KINETO_MAX_KERNELS)
		return 0;
	if (waits) {
		int r = nt_kineto_add_interval(&out->wait, &out->waits, interval);

		if (r < 0)
			return r;
	}
	if (!correlation)
		return 0;
	if (!out->launch || (out->launches & (out->launches - 1)) == 0) {
		struct nt_kineto_launch *grown = reallocarray(
			out->launch, out->launches ? out->launches * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		out->launch = grown;
	}
	out->launch[out->launches++] = (struct nt_kineto_launch){
		.start_ns = interval->start_ns,
		.end_ns = interval->end_ns,
		.correlation = correlation,
	};
	return 0;
}

/* 0: none. */
static uint32_t correlation_of(const struct nt_json_value *event)
{
	const int64_t value = nt_json_value_integer(
		nt_json_value_get(nt_json_value_get(event, "args"), "correlation"));

	return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* 0: not recorded, which is the device's default stream, too. */
static uint32_t stream_of(const struct nt_json_value *event)
{
	const int64_t value = nt_json_value_integer(
		nt_json_value_get(nt_json_value_get(event, "args"), "stream"));

	return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

int nt_kineto_read_event(struct nt_kineto_rank *out, const struct nt_json_value *event,
			 uint64_t base_ns, struct nt_trace_error *error)
{
	const char *category = nt_json_value_text(nt_json_value_get(event, "cat"));
	const char *name = nt_json_value_text(nt_json_value_get(event, "name"));
	const char *phase = nt_json_value_text(nt_json_value_get(event, "ph"));
	struct nt_kineto_interval interval = {0};
	uint64_t duration_ns = 0;
	int r;

	if (!name || !phase || strcmp(phase, "X") != 0)
		return 0;
	if (!event_time(event, "ts", base_ns, &interval.start_ns) ||
	    !event_time(event, "dur", 0, &duration_ns))
		return nt_trace_refuse(error, "'%.60s': expected ts and dur in microseconds from 0",
				       name);
	interval.end_ns = interval.start_ns + duration_ns;
	if (starts_with(name, "ProfilerStep") &&
	    (!category || strcmp(category, "gpu_user_annotation") != 0))
		return nt_kineto_add_interval(&out->step, &out->steps, &interval);
	if (!category)
		return 0;
	if (host_call(name) && strcmp(category, "user_annotation") == 0) {
		if (out->spans == NT_KINETO_MAX_KERNELS)
			return nt_trace_refuse(error, "more than %d calls", NT_KINETO_MAX_KERNELS);
		interval.comm = true;
		name = host_call(name);
		(void)nt_text_clean(name, strlen(name), interval.name, sizeof(interval.name) - 1);
		return nt_kineto_add_interval(&out->span, &out->spans, &interval);
	}
	if (starts_with(name, "aten::") && strcmp(category, "cpu_op") == 0)
		return add_work(out, &interval);
	if (strcmp(category, "cuda_runtime") == 0 || strcmp(category, "cuda_driver") == 0)
		return nt_kineto_add_call(out, name, correlation_of(event), &interval);
	if (strcmp(category, "kernel") == 0 || starts_with(category, "gpu_mem")) {
		if (out->kernels == NT_KINETO_MAX_KERNELS)
			return nt_trace_refuse(error, "more than %d kernels",
					       NT_KINETO_MAX_KERNELS);
		interval.comm = starts_with(name, "nccl");
		interval.correlation = correlation_of(event);
		if (interval.comm) {
			nt_kineto_collective_name(name, interval.name, sizeof(interval.name));
			interval.kind = stream_of(event);
			r = nt_kineto_read_call(out, nt_json_value_get(event, "args"), &interval,
						error);
			if (r < 0)
				return r;
		} else {
			interval.kind = (uint32_t)nt_hash_text(NT_HASH_SEED, name);
		}
		return nt_kineto_add_interval(&out->kernel, &out->kernels, &interval);
	}
	return 0;
}
