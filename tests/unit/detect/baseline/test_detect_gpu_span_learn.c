/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's GPU did before its job's steps became longer, and since. */
#include "detect/baseline/gpu_span_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detect/model/detector_state.h"

struct spans {
	struct nt_detect detect;
	struct nt_detect_rank rank;
	struct nt_frame_rank seen;
};

static int begin(void **state)
{
	struct spans *spans = calloc(1, sizeof(*spans));

	assert_non_null(spans);
	spans->detect.step.past.ready = true;
	spans->seen = (struct nt_frame_rank){
		.steps = 5,
		.step_ns = 1000,
		.window_ns = 1100,
		.gpu_activity_ns = 1000,
		.gpu_sm_ns = 600,
		.gpu_tensor_ns = 300,
		.gpu_thermal_ns = 7,
		.gpu_power_ns = 8,
		.gpu_hardware_ns = 9,
	};
	*state = spans;
	return 0;
}

static int end(void **state)
{
	free(*state);
	return 0;
}

static void learn(struct spans *spans)
{
	nt_gpu_span_learn(&spans->detect, &spans->rank, &spans->seen);
}

static void windows_are_of_the_time_before_or_since(void **state)
{
	struct spans *spans = *state;
	const struct nt_gpu_span *before = &spans->rank.gpu_before, *since = &spans->rank.gpu_since;

	learn(spans);
	learn(spans);
	assert_true(before->known_ns == 2000.0 && before->sm_ns == 1200.0);
	assert_true(before->tensor_ns == 600.0 && before->window_ns == 2200.0);
	assert_true(before->step_ns == 2000.0 && before->steps == 10.0);
	assert_true(before->held_ns[NT_GPU_HELD_THERMAL] == 14.0);
	assert_true(before->held_ns[NT_GPU_HELD_POWER] == 16.0);
	assert_true(before->held_ns[NT_GPU_HELD_HARDWARE] == 18.0);
	spans->detect.step.level.sum = 0.1;
	learn(spans);
	assert_true(before->known_ns == 2000.0 && since->known_ns == 1000.0);
	/* The steps are as usual again: it was no fault, or is over. */
	spans->detect.step.level.sum = 0.0;
	learn(spans);
	assert_true(before->known_ns == 3000.0 && since->known_ns == 0.0 && since->steps == 0.0);
}

static void nothing_is_learned_before_a_usual_step_is_known(void **state)
{
	struct spans *spans = *state;

	spans->detect.step.past.ready = false;
	learn(spans);
	assert_true(spans->rank.gpu_before.known_ns == 0.0);
}

/* A window shorter than a second may have no reading; its steps count if others have. */
static void a_gpu_that_is_not_known_has_no_span(void **state)
{
	struct spans *spans = *state;

	spans->seen.gpu_activity_ns = 0;
	learn(spans);
	assert_true(spans->rank.gpu_before.steps == 0.0);
	spans->seen.gpu_activity_ns = 1000;
	learn(spans);
	spans->seen.gpu_activity_ns = 0;
	learn(spans);
	assert_true(spans->rank.gpu_before.steps == 10.0);
	assert_true(spans->rank.gpu_before.known_ns == 1000.0);
}

static void a_share_of_more_than_the_whole_counts_as_the_whole(void **state)
{
	struct spans *spans = *state;

	spans->seen.gpu_sm_ns = spans->seen.gpu_tensor_ns = UINT64_MAX;
	learn(spans);
	assert_true(spans->rank.gpu_before.sm_ns == 1000.0);
	assert_true(spans->rank.gpu_before.tensor_ns == 1000.0);
}

static void older_readings_count_half(void **state)
{
	struct spans *spans = *state;
	const struct nt_gpu_span *before = &spans->rank.gpu_before;

	spans->seen.gpu_activity_ns = (uint64_t)NT_GPU_SPAN_NS;
	learn(spans);
	assert_true(before->known_ns == (double)NT_GPU_SPAN_NS && before->steps == 5.0);
	spans->seen.gpu_activity_ns = 2;
	learn(spans);
	assert_true(before->known_ns == (double)NT_GPU_SPAN_NS / 2 + 1.0);
	assert_true(before->steps == 5.0 && before->step_ns == 1000.0);
	assert_true(before->window_ns == 1100.0 && before->sm_ns == 301.0);
	assert_true(before->held_ns[NT_GPU_HELD_THERMAL] == 7.0);
}

#define SPAN_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPAN_TEST(windows_are_of_the_time_before_or_since),
		SPAN_TEST(nothing_is_learned_before_a_usual_step_is_known),
		SPAN_TEST(a_gpu_that_is_not_known_has_no_span),
		SPAN_TEST(a_share_of_more_than_the_whole_counts_as_the_whole),
		SPAN_TEST(older_readings_count_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
