/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Six ranks of three stages, in one detector. */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_WHOLE_H
#define NT_TESTS_UNIT_DETECT_DETECT_WHOLE_H

#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

enum {
	RANKS = 6,
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

/* Six ranks: two for each of three stages. */
static inline int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init_ranks(&job->sim, RANKS, 1);
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].stage = (int32_t)(i / 2);
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 2);
	assert_int_equal(job->detect->roles.groups, 3);
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
