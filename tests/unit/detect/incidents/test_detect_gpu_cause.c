/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a GPU's driver states is the cause of a slow rank, and may make its class. */
#include "tests/unit/detect/incidents/rank_verdict.h"

/* No call to it is known, but its driver names the process. */
static void a_gpu_without_probes_computes_if_its_clock_was_held_down(void **state)
{
	(void)state;
	rank->uses_gpu = false;
	value[NT_STEP_METRIC_ON_CPU] = peers[NT_STEP_METRIC_ON_CPU] = 100;
	IS(HOST, NONE);
	value[NT_STEP_METRIC_GPU_THERMAL] = 0.5 * STEP - 1;
	peers[NT_STEP_METRIC_STEP] = STEP;
	IS(HOST, NONE);
	value[NT_STEP_METRIC_GPU_THERMAL] = 0.5 * STEP;
	IS(COMPUTE, GPU_THERMAL);
	/* As that of its peers. */
	peers[NT_STEP_METRIC_GPU_THERMAL] = 0.5 * STEP;
	IS(HOST, NONE);
	/* A cause of the host's goes first. */
	peers[NT_STEP_METRIC_GPU_THERMAL] = 0;
	value[NT_STEP_METRIC_GC] = 32;
	IS(HOST, GC);
	/* Where its calls are known, they show whether it computes. */
	value[NT_STEP_METRIC_GC] = 0;
	rank->uses_gpu = true;
	IS(HOST, NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_gpu_without_probes_computes_if_its_clock_was_held_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
