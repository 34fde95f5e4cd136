/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A deterministic job of two ranks with two common calls. */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_PAIR_H
#define NT_TESTS_UNIT_DETECT_DETECT_PAIR_H

#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

static inline int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, 2, 1);
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 2);
	*state = job;
	return 0;
}

static inline int end(void **state)
{
	struct job *job = *state;

	nt_detect_free(job->detect);
	sim_free(&job->sim);
	free(job);
	return 0;
}

#define JOB_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
