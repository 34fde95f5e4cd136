/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A blocking job of three ranks, run frame by frame. */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_JOB_H
#define NT_TESTS_UNIT_DETECT_DETECT_JOB_H

#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

enum {
	RANKS = 3,
	COMMS = 5,
	MAX_SAMPLES = 64,
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
	struct nt_frame_sample sample[MAX_SAMPLES];
	size_t samples;
};

static inline int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init_ranks(&job->sim, RANKS, 1);
	job->sim.blocking = true;
	job->detect = sim_detect();
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

static inline void add_comms(struct job *job, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sim_comm_add(&job->sim, 10 * (i + 1), NT_FRAME_SYNCHRONISING, 2, 1e6, SIM_MS)
			->world = true;
}

/* A call of all ranks, in order, which took `transfer` from the last arrival on. */
static inline void add_call(struct job *job, uint64_t comm, uint64_t number, uint64_t transfer)
{
	for (uint32_t i = 0; i < RANKS; i++)
		job->sample[job->samples++] = (struct nt_frame_sample){
			.comm = comm,
			.epoch = 1,
			.number = number,
			.bytes = 1000000,
			.op = 1,
			.kind = NT_FRAME_SYNCHRONISING,
			.rank = i,
			.arrive_ns = 1000 + 10 * i,
			.release_ns = 1000 + 10 * (RANKS - 1) + transfer,
		};
}

static inline void step(struct job *job, const struct nt_frame *frame)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	assert_int_equal(nt_detect_step(job->detect, frame, &finding, &findings), 0);
}

static inline void step_now(struct job *job)
{
	step(job, &job->sim.frame);
}

static inline const struct nt_network *network_of(const struct job *job, uint64_t comm)
{
	return &nt_detect_comm_find(job->detect->comms, comm)->network;
}

#define JOB_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
