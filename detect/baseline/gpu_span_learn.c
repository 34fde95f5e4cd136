/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/baseline/gpu_span_learn.h"

#include <math.h>

#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* Older time counts half: a span covers about the last NT_GPU_SPAN_NS. */
static void fade(struct nt_gpu_span *span)
{
	span->known_ns /= 2;
	span->sm_ns /= 2;
	span->tensor_ns /= 2;
	span->window_ns /= 2;
	for (int i = 0; i < NT_GPU_HELD_END; i++)
		span->held_ns[i] /= 2;
	span->step_ns /= 2;
	span->steps /= 2;
}

static void add(struct nt_gpu_span *span, const struct nt_frame_rank *seen)
{
	const double known_ns = (double)seen->gpu_activity_ns;

	span->known_ns += known_ns;
	span->sm_ns += fmin((double)seen->gpu_sm_ns, known_ns);
	span->tensor_ns += fmin((double)seen->gpu_tensor_ns, known_ns);
	span->window_ns += (double)seen->window_ns;
	span->held_ns[NT_GPU_HELD_HARDWARE] += (double)seen->gpu_hardware_ns;
	span->held_ns[NT_GPU_HELD_THERMAL] += (double)seen->gpu_thermal_ns;
	span->held_ns[NT_GPU_HELD_POWER] += (double)seen->gpu_power_ns;
	span->step_ns += (double)seen->step_ns;
	span->steps += seen->steps;
}

/*
 * The evidence of the job's step ends with another incident that it explained. An incident of GPUs
 * rests on the spans, so that they continue.
 */
static bool has_incident(const struct nt_incidents *incidents)
{
	for (uint32_t i = 0; i < incidents->opens; i++)
		if (incidents->open[i]->family == NT_FAMILY_GPU)
			return true;
	return false;
}

void nt_gpu_span_learn(const struct nt_detect *detect, struct nt_detect_rank *rank,
		       const struct nt_frame_rank *seen)
{
	struct nt_gpu_span *span = &rank->gpu_since;

	/* Not before it is known what a usual step is. */
	if (!detect->step.past.ready ||
	    (!seen->gpu_activity_ns && rank->gpu_before.known_ns <= 0.0))
		return;
	if (detect->step.level.sum <= 0.0 && !has_incident(&detect->incidents)) {
		rank->gpu_since = (struct nt_gpu_span){0};
		span = &rank->gpu_before;
	}
	add(span, seen);
	if (span->known_ns > NT_GPU_SPAN_NS)
		fade(span);
}
