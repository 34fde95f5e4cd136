/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An engine whose frames are recorded, and messages for it. */
#ifndef NT_TESTS_UNIT_ENGINE_FRAME_FEED_H
#define NT_TESTS_UNIT_ENGINE_FRAME_FEED_H

#include "engine/frame_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"

#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 4,
	MAX_MESSAGES = 4096,
};

static struct nt_engine *engine;
static struct nt_buf printed; /* all frames as text */
static size_t frames;
static struct nt_frame last; /* its scalars */
static struct nt_frame_rank last_rank[64];
static struct nt_frame_transfer last_transfer;
static uint64_t last_calls, last_bytes; /* of the last operation in the frame */
static double missing_ns; /* of all frames, of the job's time */
static double least_complete;

static inline void note_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	(void)data;
	(void)job;
	frames++;
	missing_ns += (1 - frame->completeness) * (double)(frame->end_ns - frame->start_ns) +
		      frame->missed_ns;
	if (frame->completeness < least_complete)
		least_complete = frame->completeness;
	feed_print_frame(frame, &printed);
	last = *frame;
	assert_true(frame->ranks <= 64);
	memcpy(last_rank, frame->rank, frame->ranks * sizeof(*last_rank));
	for (size_t i = 0; i < frame->ranks; i++)
		last_rank[i].comm = NULL;
	for (size_t i = 0; i < frame->ranks; i++)
		for (size_t j = 0; j < frame->rank[i].comms; j++)
			for (size_t k = 0; k < frame->rank[i].comm[j].ops; k++) {
				last_calls = frame->rank[i].comm[j].op[k].calls;
				last_bytes = frame->rank[i].comm[j].op[k].bytes;
			}
	for (size_t i = 0; i < frame->ranks; i++)
		for (size_t j = 0; j < frame->rank[i].transfers; j++)
			last_transfer = frame->rank[i].transfer[j];
}

static inline void start_engine(void)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {.frame = note_frame};

	nt_buf_clear(&printed);
	frames = 0;
	missing_ns = 0;
	least_complete = 1;
	assert_int_equal(nt_engine_new(&options, &handler, &engine), 0);
}

static inline int set_up(void **state)
{
	(void)state;
	start_engine();
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	nt_engine_free(engine);
	nt_buf_release(&printed);
	return 0;
}

static inline void push(struct nt_message *message)
{
	assert_int_equal(nt_engine_push(engine, message, false), 0);
}

/* Messages to be pushed in any order. */
struct batch {
	struct nt_message *message[MAX_MESSAGES];
	size_t count;
};

static inline void add(struct batch *batch, struct nt_message *message)
{
	assert_true(batch->count < MAX_MESSAGES);
	batch->message[batch->count++] = message;
}

/* Runs the agent's ranks from `first` on; windows are slightly over half a second. */
static inline void add_run(struct batch *batch, struct feed_agent *agent, uint32_t first,
			   uint32_t ranks, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t at = from_ms, n = 0; at + 520 <= to_ms; at += 520, n++)
		for (uint32_t rank = first; rank < first + ranks; rank++) {
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = at + rank,
				.to_ms = at + 520 + rank,
				.steps = 10,
				.own_ms = 30,
				.step_ms = 52,
				.comm = 0xabc,
				.last = 10 * (n + 1),
			};

			add(batch, feed_window(agent, &window));
		}
}

static inline void push_all(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		push(batch->message[i]);
	batch->count = 0;
}

static inline int by_real_time(const void *a, const void *b)
{
	const struct nt_message *left = *(struct nt_message *const *)a;
	const struct nt_message *right = *(struct nt_message *const *)b;

	if (left->real_ns != right->real_ns)
		return left->real_ns < right->real_ns ? -1 : 1;
	return (int)(left->seq - right->seq);
}

static inline void sort_batch(struct batch *batch)
{
	qsort(batch->message, batch->count, sizeof(struct nt_message *), by_real_time);
}

static inline const struct nt_jobs_counters *counters(void)
{
	return nt_jobs_counters(nt_engine_jobs(engine));
}

#endif
