/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiler traces of a job of a few ranks, built by a test. */
#ifndef NT_TESTS_UNIT_CLI_KINETO_JOB_H
#define NT_TESTS_UNIT_CLI_KINETO_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "common/base/buf.h"

enum {
	RANKS = 8,
	STEPS = 40,
};

/* Two stages of four replicas: 0 to 3 are the first. */
struct job {
	struct nt_buf events[RANKS];
	char path[RANKS][64];
	const char *paths[RANKS];
	bool unlisted; /* no pg_config */
};

static inline int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	for (int i = 0; i < RANKS; i++) {
		(void)snprintf(job->path[i], sizeof(job->path[i]),
			       "build/test-kineto-%d-rank%d.json", (int)getpid(), i);
		job->paths[i] = job->path[i];
	}
	*state = job;
	return 0;
}

static inline int end(void **state)
{
	struct job *job = *state;

	for (int i = 0; i < RANKS; i++) {
		nt_buf_release(&job->events[i]);
		(void)unlink(job->path[i]);
	}
	free(job);
	return 0;
}

static inline void add_kernel(struct job *job, int rank, const char *name, unsigned int ts,
			      unsigned int dur, const char *args)
{
	struct nt_buf *buf = &job->events[rank];

	assert_int_equal(
		nt_buf_printf(buf,
			      "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"ts\": "
			      "%u, \"dur\": %u, \"args\": {%s}}",
			      buf->len ? ",\n" : "", name, ts, dur, args),
		0);
}

static inline void add_step(struct job *job, int rank, int n, unsigned int ts, unsigned int dur)
{
	struct nt_buf *buf = &job->events[rank];

	assert_int_equal(nt_buf_printf(buf,
				       "%s{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
				       "\"ProfilerStep#%d\", \"ts\": %u, \"dur\": %u}",
				       buf->len ? ",\n" : "", n, ts, dur),
			 0);
}

/* As PyTorch 2.15 writes them: the ranks are in pg_config only. */
static inline const char *call(const char *collective, const char *group, int size,
			       uint64_t elements)
{
	static char text[256];

	(void)snprintf(
		text, sizeof(text),
		"\"Collective name\": \"%s\", \"In msg nelems\": %" PRIu64
		", \"Out msg nelems\": %" PRIu64
		", \"dtype\": \"Float\", \"Group size\": %d, \"Process Group Name\": \"%s\", "
		"\"Process Group Ranks\": \"[]\"",
		collective, elements, elements, size, group);
	return text;
}

/*
 * A step of 200 ms: the second stage computes twice as long, the slow rank 1.5 times its own time.
 */
static inline void play(struct job *job, int slow)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)n * 200000;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int own = (i < 4 ? 50000 : 100000) * (i == slow ? 3 : 2) / 2;
			/* Replicas differ a little from step to step. */
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int done = start + own + jitter;
			const char *data = i < 4 ? "dp0" : "dp1";
			char pair[8];

			(void)snprintf(pair, sizeof(pair), "pp%d", i % 4);
			add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, own + jitter, "");
			add_kernel(job, i, "ncclDevKernel_SendRecv", done, 100,
				   call(i < 4 ? "send" : "recv", pair, 2, 1000));
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", done + 200,
				   start + 190000 - done - 200,
				   call("allreduce", data, 4, 1000000));
		}
	}
}

/* All ranks reduce together in so many pieces, without process groups; steps may be missing. */
static inline void play_plain(struct job *job, int slow, int pieces, bool steps)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)n * 200000;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int own = 100000 * (i == slow ? 3 : 2) / 2 + jitter;

			if (steps)
				add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, own, "");
			for (int piece = 0; piece < pieces; piece++) {
				const unsigned int end =
					start + 190000 + 1000 * (unsigned int)piece;
				const unsigned int from = piece ? end - 1000 : start + own;

				add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
					   from, end - from, "");
			}
		}
	}
}

static inline void put_files(struct job *job)
{
	for (int i = 0; i < RANKS; i++) {
		const char *data =
			i < 4 ? "{\"pg_name\": \"dp0\", \"pg_size\": 4, \"ranks\": [0, 1, 2, 3]}"
			      : "{\"pg_name\": \"dp1\", \"pg_size\": 4, \"ranks\": [4, 5, 6, 7]}";
		FILE *file = fopen(job->path[i], "w");

		assert_non_null(file);
		assert_true(fprintf(file,
				    "{\"distributedInfo\": {\"rank\": %d, \"world_size\": %d, "
				    "\"pg_config\": [%s%s{\"pg_name\": \"pp%d\", \"pg_size\": 2, "
				    "\"ranks\": [%d, %d]}]},\n\"traceEvents\": [%.*s]}",
				    i, RANKS, job->unlisted ? "" : data, job->unlisted ? "" : ", ",
				    i % 4, i % 4, i % 4 + 4, (int)job->events[i].len,
				    (char *)job->events[i].data) > 0);
		assert_int_equal(fclose(file), 0);
	}
}

static inline struct nt_trace *read_files(struct job *job, size_t count)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_files(job);
	if (nt_trace_read_kineto(job->paths, count, &trace, &error) != 0)
		fail_msg("%s", error.text);
	return trace;
}

static inline const struct nt_frame_comm *comm_of(const struct nt_trace *trace, size_t frame,
						  size_t rank, uint8_t kind)
{
	const struct nt_frame_rank *of = &trace->frame[frame].rank[rank];

	for (size_t i = 0; i < of->comms; i++)
		if (of->comm[i].ops && of->comm[i].op[0].kind == kind)
			return &of->comm[i];
	fail_msg("rank %zu has no such communicator", rank);
	return NULL;
}

static inline void assert_class(const struct nt_trace *trace, uint32_t rank, const char *class)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_wire_incident *incident;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, class);
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "rank");
	assert_int_equal(incident->culprit[0].rank, rank);
	assert_int_equal(incident->culprit[0].peer_count, RANKS - 1);
}

static inline void assert_names(const struct nt_trace *trace, uint32_t rank)
{
	assert_class(trace, rank, "compute");
}

#define KINETO_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
