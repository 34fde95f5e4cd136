/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls that a recording lacks (cli/systrace/lost_calls.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/systrace/lost_calls.h"

enum {
	KINDS = 3,
	STEPS = 30,
	MAX_OPS = 1024,
};

/* Calls of the kinds that digits name, 1 ms apart; a call of kind n takes n + 1 ms. */
struct recording {
	struct nt_marker_op op[MAX_OPS];
	struct nt_marker_kind kind[KINDS];
	struct nt_markers markers;
	struct nt_timeline_step step[STEPS];
	struct nt_steps steps;
	uint64_t now_ns;
};

/* A letter is a call that was not recorded: 'a' of kind 0. */
static void add_step(struct recording *recording, const char *kinds)
{
	struct nt_timeline_step *step = &recording->step[recording->steps.steps++];

	assert_true(recording->steps.steps <= STEPS);
	step->first = recording->markers.ops;
	step->start_ns = recording->now_ns;
	for (; *kinds; kinds++) {
		const bool is_lost = *kinds >= 'a';
		const uint32_t kind = (uint32_t)(*kinds - (is_lost ? 'a' : '0'));

		recording->now_ns += 1000000;
		assert_true(recording->markers.ops < MAX_OPS);
		if (!is_lost)
			recording->op[recording->markers.ops++] = (struct nt_marker_op){
				.start_ns = recording->now_ns,
				.end_ns = recording->now_ns + (kind + 1) * 1000000,
				.kind = kind,
			};
		recording->now_ns += (kind + 1) * 1000000;
	}
	step->last = recording->markers.ops - 1;
	step->end_ns = recording->now_ns;
	step->count = 1;
}

static void find(struct recording *recording)
{
	__attribute__((cleanup(nt_timeline_release))) struct nt_timeline line = {0};

	assert_int_equal(nt_timeline_make(&recording->markers, &line), 0);
	assert_int_equal(nt_lost_calls_find(&recording->markers, &line, &recording->steps), 0);
}

static void begin(struct recording *recording)
{
	*recording = (struct recording){0};
	recording->markers.op = recording->op;
	recording->markers.kind = recording->kind;
	recording->markers.kinds = KINDS;
	recording->steps.step = recording->step;
}

static void a_step_that_lacks_a_call_was_busy_for_as_long_as_one_takes(void **state)
{
	static struct recording recording;

	(void)state;
	begin(&recording);
	for (int i = 0; i < 24; i++)
		add_step(&recording, "0000000000112");
	add_step(&recording, "00000a0000112");
	add_step(&recording, "000000000011c");
	/* Two steps, as the end of the first was lost. */
	add_step(&recording, "000000000011c0000000000112");
	recording.step[26].count = 2;
	/* More than an eighth; calls that no other step has; a call beside another one leaves no gap. */
	add_step(&recording, "00000aaaaa112");
	add_step(&recording, "0000000000111112");
	add_step(&recording, "000000000112");
	find(&recording);
	for (int i = 0; i < 24; i++)
		assert_int_equal(recording.step[i].lost_ns, 0);
	assert_int_equal(recording.step[24].lost_ns, 1000000);
	assert_int_equal(recording.step[25].lost_ns, 3000000);
	assert_int_equal(recording.step[26].lost_ns, 3000000);
	assert_int_equal(recording.step[27].lost_ns, 0);
	assert_int_equal(recording.step[28].lost_ns, 0);
	assert_int_equal(recording.step[29].lost_ns, 0);
}

static void a_short_step_may_lack_one_call(void **state)
{
	static struct recording recording;

	(void)state;
	begin(&recording);
	for (int i = 0; i < 20; i++)
		add_step(&recording, "112");
	add_step(&recording, "1b2");
	add_step(&recording, "bb2");
	/* What a third of the steps have is no part of each. */
	for (int i = 0; i < 8; i++)
		add_step(&recording, "1120");
	find(&recording);
	for (int i = 0; i < 30; i++)
		assert_int_equal(recording.step[i].lost_ns, i == 20 ? 2000000 : 0);
}

static void without_steps_nothing_is_lost(void **state)
{
	static struct recording recording;

	(void)state;
	begin(&recording);
	find(&recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_lacks_a_call_was_busy_for_as_long_as_one_takes),
		cmocka_unit_test(a_short_step_may_lack_one_call),
		cmocka_unit_test(without_steps_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
