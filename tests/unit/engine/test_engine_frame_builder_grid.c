/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much of the ranks' time frames cover, where windows come that are not whole. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/engine.h"

#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 4,
	WINDOWS = 30, /* of each */
	WINDOW_MS = 500,
};

struct seen {
	double missing_ns, least;
};

static void note_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	struct seen *seen = data;

	(void)job;
	seen->missing_ns += (1 - frame->completeness) * (double)(frame->end_ns - frame->start_ns) +
			    frame->missed_ns;
	seen->least = fmin(seen->least, frame->completeness);
}

/* The tenth window of the third rank, or a longer one in the place of several, has lost some. */
static struct seen push_with(uint64_t lost, uint64_t taken, uint64_t windows)
{
	const struct nt_engine_options options = nt_engine_options_default();
	struct seen seen = {.least = 1};
	const struct nt_engine_handler handler = {.frame = note_frame, .data = &seen};
	struct feed_agent agent = feed_agent("n0", "job");
	struct nt_engine *engine = NULL;

	assert_int_equal(nt_engine_new(&options, &handler, &engine), 0);
	for (uint64_t n = 0; n < WINDOWS; n++)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			const bool odd = rank == 2 && n == 9 + windows;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = WINDOW_MS * (odd ? n + 1 - windows : n) + rank,
				.to_ms = WINDOW_MS * (n + 1) + rank,
				.steps = 10,
				.own_ms = 30,
				.step_ms = 50,
				.comm = 0xabc,
				.last = 10 * (n + 1),
			};
			struct nt_message *message;

			if (rank == 2 && n > 9 && n < 9 + windows)
				continue;
			message = feed_window(&agent, &window);
			message->window.lost = odd ? lost : 0;
			message->window.taken = odd ? taken : 0;
			assert_int_equal(nt_engine_push(engine, message, false), 0);
		}
	assert_int_equal(nt_engine_finish(engine), 0);
	nt_engine_free(engine);
	return seen;
}

/* Of the four ranks together. */
static bool misses(const struct seen *seen, double ms)
{
	return fabs(RANKS * seen->missing_ns - ms * MS) < 1e4;
}

static void what_a_window_lost_is_missing_in_its_part(void **state)
{
	static const struct {
		uint64_t lost, taken;
		double part;
	} cases[] = {
		{0, 0, 0},
		{0, 300, 0},
		{100, 300, 0.25},
		{300, 100, 0.75},
		{1, 999, 0.001},
		/* How many came is not told. */
		{1, 0, 1},
		{UINT64_MAX, UINT64_MAX, 0.5},
		{UINT64_MAX, 1, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct seen seen = push_with(cases[i].lost, cases[i].taken, 1);
		const struct seen whole = push_with(0, 0, 1);

		assert_true(
			misses(&seen, RANKS * whole.missing_ns / MS + cases[i].part * WINDOW_MS));
		if (cases[i].part > 0)
			assert_true(seen.least < 1);
	}
}

/* It is longer than a frame, so that a part of what is missing is of frames that were judged. */
static void a_long_window_that_lost_some_is_missing_in_frames_before_too(void **state)
{
	const struct seen whole = push_with(0, 0, 4), seen = push_with(3, 1, 4);

	(void)state;
	assert_true(misses(&seen, RANKS * whole.missing_ns / MS + 0.75 * 4 * WINDOW_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_window_lost_is_missing_in_its_part),
		cmocka_unit_test(a_long_window_that_lost_some_is_missing_in_frames_before_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
