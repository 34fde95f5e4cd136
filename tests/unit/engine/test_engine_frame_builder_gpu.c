/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of calls by hosts and by devices, on their way into frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/frame_builder.h"

#include "tests/unit/engine/window_feed.h"

static struct nt_engine *engine;
static struct nt_frame_op last_op; /* the first of the first rank's, if it has any */
static struct nt_frame_sample last_sample; /* the first */

static void note_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	(void)data;
	(void)job;
	if (frame->rank[0].comms && frame->rank[0].comm[0].ops)
		last_op = frame->rank[0].comm[0].op[0];
	if (frame->samples)
		last_sample = frame->sample[0];
}

/* The calls of each window by the host, by the device, or both. */
static void push_timed(const uint64_t (*ns)[2], size_t windows)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {.frame = note_frame};
	struct feed_agent agent = feed_agent("n0", "job");

	assert_int_equal(nt_engine_new(&options, &handler, &engine), 0);
	for (uint64_t n = 0; n < 60; n++) {
		const struct feed_window window = {
			.size = 1,
			.steps = 2,
			.own_ms = 10,
			.step_ms = 20,
			.from_ms = 200 * n,
			.to_ms = 200 * (n + 1),
			.comm = 0xabc,
			.last = 2 * (n + 1),
			.call_ns = ns[n % windows][0],
			.gpu_call_ns = ns[n % windows][1],
		};

		assert_int_equal(nt_engine_push(engine, feed_window(&agent, &window), false), 0);
	}
	nt_engine_free(engine);
}

static void times_of_a_device_are_taken_before_those_of_its_host(void **state)
{
	static const uint64_t host[][2] = {{3 * MS, 0}}, device[][2] = {{0, 7 * MS}},
			      both[][2] = {{3 * MS, 7 * MS}},
			      turns[][2] = {{3 * MS, 0}, {3 * MS, 7 * MS}};

	(void)state;
	push_timed(host, 1);
	assert_false(last_op.by_gpu || last_sample.by_gpu);
	assert_int_equal(last_op.timed_calls, last_op.calls);
	assert_int_equal(last_op.min_ns, 3 * MS);
	assert_int_equal(last_sample.release_ns - last_sample.arrive_ns, 3 * MS);
	push_timed(device, 1);
	assert_true(last_op.by_gpu && last_sample.by_gpu);
	assert_int_equal(last_op.timed_calls, last_op.calls);
	assert_int_equal(last_op.min_ns, 7 * MS);
	assert_int_equal(last_sample.release_ns - last_sample.arrive_ns, 7 * MS);
	push_timed(both, 1);
	assert_true(last_op.by_gpu && last_sample.by_gpu);
	assert_int_equal(last_op.timed_calls, last_op.calls);
	assert_int_equal(last_op.min_ns, 7 * MS);
	push_timed(turns, 2); /* and are not one sum with them */
	assert_true(last_op.by_gpu);
	assert_true(last_op.timed_calls < last_op.calls);
	assert_int_equal(last_op.min_ns, 7 * MS);
	assert_int_equal(last_op.sum_ns, last_op.timed_calls * 7 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_of_a_device_are_taken_before_those_of_its_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
