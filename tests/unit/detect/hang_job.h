/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A job that hangs. */
#ifndef NT_TESTS_UNIT_DETECT_HANG_JOB_H
#define NT_TESTS_UNIT_DETECT_HANG_JOB_H

#include "tests/unit/detect/detect_frames.h"

enum {
	FRAME_NS = SIM_SECOND / 2, /* of a hung job */
	SIXTEEN_SECONDS = 32, /* of these */
	DATA = 0xda7a,
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

/* A healthy blocking job of eight ranks, warmed up. */
static inline int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, 8, 11);
	job->sim.blocking = true;
	job->sim.jitter = 0.02;
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 30);
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
