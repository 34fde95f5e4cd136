/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Samples become counts of distinct stacks, and what exceeds a cap is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/profile/profile.h"
#include "agent/profile/window_profile.h"

static struct nt_profile profile;
static struct nt_stack stack;
static char file[NT_STACK_FILE]; /* of all frames */

static const struct nt_profile_wish wish = {.seconds = 60, .hz = 99};

static void begin_thread(const char *name, char state)
{
	struct nt_stack_thread *thread = &stack.thread[stack.threads++];

	*thread = (struct nt_stack_thread){
		.tid = stack.threads,
		.is_main = stack.threads == 1,
		.state = state,
		.first = (uint16_t)stack.frames,
	};
	(void)snprintf(thread->name, sizeof(thread->name), "%s", name);
}

/* One sample of a thread with these functions, innermost first. */
static void sample(char state, const char *const *function, size_t n, enum nt_profile_kind kind)
{
	nt_stack_init(&stack);
	begin_thread("main", state);
	for (size_t i = 0; i < n; i++)
		assert_true(nt_stack_add(&stack, function[i], file, (uint32_t)i, false));
	nt_profile_add(&profile, &stack, kind);
}

static struct nt_window_profile *window_of(void)
{
	struct nt_window_profile *window;

	assert_int_equal(nt_profile_check(&profile, &wish), 0);
	assert_int_equal(nt_window_profile_new(&profile, 7, &wish, &window), 0);
	return window;
}

static const char *function_at(uint32_t number, uint32_t frame)
{
	const uint16_t at = profile.number[profile.stack[number].first + frame];

	return profile.text + profile.frame[at].function;
}

static int set_up(void **state)
{
	(void)state;
	nt_profile_init(&profile);
	memcpy(file, "/a.py", sizeof("/a.py"));
	return 0;
}

static void equal_stacks_are_counted_once(void **state)
{
	const char *const deep[] = {"inner", "outer"}, *const flat[] = {"outer"};
	nt_auto(nt_window_profile) struct nt_window_profile *window = NULL;
	const struct nt_wire_profile *wire;

	(void)state;
	sample('S', flat, 1, NT_PROFILE_ALL);
	for (int i = 0; i < 3; i++)
		sample('S', deep, 2, NT_PROFILE_ALL);
	sample('R', deep, 2, NT_PROFILE_ALL);
	sample('R', deep, 2, NT_PROFILE_ALL);
	window = window_of();
	wire = &window->wire;
	assert_int_equal(wire->request, 7);
	assert_int_equal(wire->taken, 6);
	assert_int_equal(wire->stacks, 3);
	assert_int_equal(wire->frames, 2);
	assert_int_equal(wire->stack[0].count, 3);
	assert_false(wire->stack[0].on_cpu);
	assert_int_equal(wire->stack[1].count, 2);
	assert_true(wire->stack[1].on_cpu);
	assert_int_equal(wire->stack[2].count, 1);
	assert_string_equal(wire->frame[wire->stack[0].frame[0]].function, "inner");
	assert_string_equal(wire->frame[wire->stack[0].frame[1]].function, "outer");
	assert_string_equal(wire->stack[0].thread, "main");
}

static void a_kind_leaves_the_other_out(void **state)
{
	const char *const flat[] = {"f"};

	(void)state;
	sample('S', flat, 1, NT_PROFILE_ON_CPU);
	assert_int_equal(profile.stacks, 0);
	sample('R', flat, 1, NT_PROFILE_ON_CPU);
	assert_int_equal(profile.stacks, 1);
	sample('R', flat, 1, NT_PROFILE_OFF_CPU);
	assert_int_equal(profile.stack[0].count, 1);
	sample('D', flat, 1, NT_PROFILE_OFF_CPU);
	assert_int_equal(profile.stacks, 2);
	assert_int_equal(profile.left_out, 0);
}

static void stacks_over_the_cap_are_counted(void **state)
{
	(void)state;
	/* Of 64 functions, pairs: more distinct stacks than the cap. */
	for (int i = 0; i < NT_PROFILE_STACKS + 5; i++) {
		char names[2][16];
		const char *const pair[] = {names[0], names[1]};

		(void)snprintf(names[0], sizeof(names[0]), "f%d", i % 64);
		(void)snprintf(names[1], sizeof(names[1]), "g%d", i / 64);
		sample('S', pair, 2, NT_PROFILE_ALL);
	}
	assert_int_equal(profile.stacks, NT_PROFILE_STACKS);
	assert_int_equal(profile.left_out, 5);
}

static void frames_over_the_cap_are_counted(void **state)
{
	(void)state;
	for (int i = 0; i < NT_PROFILE_FRAMES + 3; i++) {
		char name[16];
		const char *const one[] = {name};

		(void)snprintf(name, sizeof(name), "f%d", i);
		sample('S', one, 1, NT_PROFILE_ALL);
	}
	assert_int_equal(profile.frames, NT_PROFILE_FRAMES);
	assert_int_equal(profile.left_out, 3);
	assert_int_equal(profile.missed, 0);
}

static void outer_frames_over_the_cap_are_counted(void **state)
{
	(void)state;
	nt_stack_init(&stack);
	begin_thread("main", 'S');
	for (int i = 0; i < NT_PROFILE_DEPTH + 6; i++)
		assert_true(nt_stack_add(&stack, "f", "/a.py", 1, false));
	nt_profile_add(&profile, &stack, NT_PROFILE_ALL);
	assert_int_equal(profile.stack[0].frames, NT_PROFILE_DEPTH + 1);
	assert_string_equal(function_at(0, NT_PROFILE_DEPTH), NT_PROFILE_OUTER);
	assert_int_equal(profile.stack[0].left_out, 6);
	assert_int_equal(profile.left_out, 0);
}

/* A torn sample has its thread's time, but its innermost frame is not that of the next function. */
static void a_torn_sample_is_marked_and_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		nt_stack_init(&stack);
		begin_thread("main", 'R');
		assert_true(nt_stack_add(&stack, "f", "/a.py", 1, false));
		stack.thread[0].is_torn = i > 0;
		stack.thread[0].python = i > 0 ? NT_STACK_CHANGED : NT_STACK_WHOLE;
		nt_profile_add(&profile, &stack, NT_PROFILE_ALL);
	}
	nt_profile_add(&profile, &stack, NT_PROFILE_OFF_CPU);
	assert_int_equal(profile.torn, 2);
	assert_int_equal(profile.reason, NT_STACK_WHOLE);
	assert_int_equal(profile.empty, 0);
	assert_int_equal(profile.stacks, 2);
	assert_int_equal(profile.stack[0].count, 1);
	assert_string_equal(function_at(0, 0), "f");
	assert_int_equal(profile.stack[1].count, 2);
	assert_string_equal(function_at(1, 0), NT_PROFILE_TORN);
	assert_string_equal(function_at(1, 1), "f");
}

static void a_sample_without_frames_is_counted(void **state)
{
	(void)state;
	nt_stack_init(&stack);
	begin_thread("cpp", 'R');
	begin_thread("gone", '?');
	stack.thread[1].native = stack.thread[1].python = NT_STACK_ENDED;
	nt_profile_add(&profile, &stack, NT_PROFILE_ALL);
	assert_int_equal(profile.empty, 1);
	assert_int_equal(profile.stacks, 1);
	assert_string_equal(profile.stack[0].thread, "cpp");
	assert_int_equal(profile.stack[0].frames, 0);
}

/* Texts as long as they can be: the rarest stacks are left out, and the message stays small. */
static void a_window_has_the_most_frequent_stacks(void **state)
{
	nt_auto(nt_window_profile) struct nt_window_profile *window = NULL;
	static struct nt_message message;
	nt_autobuf struct nt_buf buf = {0};
	uint64_t sent = 0;

	(void)state;
	memset(file, 'd', sizeof(file) - 1);
	for (int i = 0; i < NT_PROFILE_STACKS; i++) {
		const char *function[NT_PROFILE_DEPTH];
		char name[NT_PROFILE_DEPTH][16];

		for (int j = 0; j < 48; j++) {
			(void)snprintf(name[j], sizeof(name[j]), "f%d", (i * 7 + j * j) % 1900);
			function[j] = name[j];
		}
		(void)snprintf(name[0], sizeof(name[0]), "g%d", i % 64);
		(void)snprintf(name[1], sizeof(name[1]), "h%d", i / 64);
		sample('S', function, 48, NT_PROFILE_ALL);
		if (i < 10)
			sample('S', function, 48, NT_PROFILE_ALL);
	}
	assert_int_equal(profile.stacks * 48, profile.numbers);
	window = window_of();
	assert_in_range(window->wire.left_out, 1, NT_PROFILE_STACKS / 2);
	for (size_t i = 0; i < window->wire.stacks; i++)
		sent += window->wire.stack[i].count;
	assert_int_equal(sent + window->wire.left_out, NT_PROFILE_STACKS + 10);
	assert_int_equal(window->wire.stack[9].count, 2);
	assert_int_equal(window->wire.stack[10].count, 1);
	message = (struct nt_message){.agent = "a", .key = "k", .body = NT_BODY_WINDOW};
	message.window.rank = (struct nt_rank_id){0};
	message.window.profile = &window->wire;
	message.window.profiles = 1;
	assert_int_equal(nt_message_encode(&message, &buf), 0);
	assert_true(buf.len <= NT_WINDOW_PROFILE_BYTES + 1024);
}

static void a_hostile_profile_is_refused(void **state)
{
	const char *const deep[] = {"inner", "outer"};

	(void)state;
	sample('S', deep, 2, NT_PROFILE_ALL);
	assert_int_equal(nt_profile_check(&profile, &wish), 0);
	profile.number[1] = 2;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.number[1] = 1;
	profile.frame[1].function = profile.text_bytes;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.frame[1].function = 1;
	profile.stack[0].frames = 3;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.stack[0].frames = 2;
	profile.stack[0].first = UINT32_MAX;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.stack[0].first = 0;
	profile.reason = NT_STACK_REASON_END;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.reason = 0;
	profile.torn = 60 * 99 * NT_STACK_THREADS + 1;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.torn = 0;
	profile.missed = 60 * 99 + 1;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.missed = 0;
	profile.text_bytes = NT_PROFILE_TEXT_BYTES + 1;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
	profile.text_bytes = 0;
	assert_int_equal(nt_profile_check(&profile, &wish), -EBADMSG);
}

#define TEST(fn) cmocka_unit_test_setup(fn, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_stacks_are_counted_once),
		TEST(a_kind_leaves_the_other_out),
		TEST(stacks_over_the_cap_are_counted),
		TEST(frames_over_the_cap_are_counted),
		TEST(outer_frames_over_the_cap_are_counted),
		TEST(a_torn_sample_is_marked_and_counted),
		TEST(a_sample_without_frames_is_counted),
		TEST(a_window_has_the_most_frequent_stacks),
		TEST(a_hostile_profile_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
