/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Timelines of jobs without memory: what fails, fails whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/duration.h"
#include "engine/timeline/job_timeline.h"
#include "tests/oom/oom.h"

enum {
	RANKS = 8,
	FRAMES = 40,
};

/* Ranks come and go, so that lists of ranks and the open cell grow. */
static int add_frames(struct nt_job_timeline *timeline, const struct nt_detect *detect)
{
	struct nt_frame_rank rank[RANKS] = {{0}};
	int r = 0;

	for (uint32_t i = 0; i < FRAMES && r == 0; i++) {
		const struct nt_frame frame = {
			.start_ns = (1 + i) * NT_SECOND,
			.end_ns = (2 + i) * NT_SECOND,
			.rank = rank,
			.ranks = RANKS / 2 + i / 10,
		};

		for (uint32_t j = 0; j < RANKS; j++)
			rank[j] = (struct nt_frame_rank){
				.rank = j + i / 20,
				.observed = true,
				.steps = 1,
				.own_tier = NT_FRAME_T2,
				.own_ns = NT_SECOND / 2,
				.step_ns = NT_SECOND,
			};
		r = nt_job_timeline_add(timeline, detect, &frame);
	}
	return r;
}

static int run_timeline(void *data)
{
	const struct nt_rules rules = nt_rules_default();
	nt_auto(nt_job_timelines) struct nt_job_timelines *timelines = NULL;
	nt_auto(nt_job_timeline) struct nt_job_timeline *timeline = NULL;
	struct nt_detect *detect = NULL;
	int r = nt_job_timelines_new(NULL, &timelines);

	(void)data;
	if (r == 0)
		r = nt_job_timeline_new(timelines, &timeline);
	if (r == 0)
		r = nt_detect_new(&rules, 1, 1, &detect);
	if (r == 0)
		r = add_frames(timeline, detect);
	if (r == 0)
		assert_int_equal(nt_job_timeline_count(timeline), 4);
	nt_detect_free(detect);
	return r;
}

static void a_timeline_grows(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(run_timeline, NULL) > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timeline_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
