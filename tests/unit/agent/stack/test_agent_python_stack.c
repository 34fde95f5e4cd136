/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads and frames from memory that a test makes: caps, circles, bad pointers, changes meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/stack/python_text.h"
#include "tests/unit/agent/stack/fake_python.h"

static struct nt_python_runtime runtime;
static struct nt_stack stack;
static struct nt_python_threads threads;

static int begin(void **state)
{
	(void)state;
	if (nt_python_layout_of(0x030b, &runtime.layout) < 0) {
		print_message("skip: layout: it is known on x86-64 alone\n");
		skip();
	}
	runtime.runtime = FAKE_RUNTIME;
	runtime.code_type = FAKE_CODE_TYPE;
	nt_stack_init(&stack);
	stack.threads = 1;
	return 0;
}

static enum nt_stack_reason read_frames(void)
{
	struct nt_stack_memory memory = fake_memory();

	return nt_python_frames(&memory, &runtime, FAKE_THREAD, &stack);
}

static void frames_have_function_file_and_line(void **state)
{
	(void)state;
	fake_python(3);
	assert_int_equal(read_frames(), NT_STACK_WHOLE);
	assert_int_equal(stack.frames, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(nt_stack_text_at(&stack, stack.frame[i].function), "f");
		assert_string_equal(nt_stack_text_at(&stack, stack.frame[i].file), "/app/f.py");
		assert_int_equal(stack.frame[i].line, 7);
		assert_false(stack.frame[i].is_native);
	}
	assert_int_equal(stack.thread[0].left_out, 0);
}

static void a_thread_without_frames_runs_no_python(void **state)
{
	(void)state;
	fake_python(0);
	assert_int_equal(read_frames(), NT_STACK_NO_PYTHON_THREAD);
}

static void frames_over_the_cap_are_counted(void **state)
{
	(void)state;
	fake_python(NT_STACK_FRAMES);
	assert_int_equal(read_frames(), NT_STACK_WHOLE);
	assert_int_equal(stack.frames, NT_STACK_FRAMES);
	assert_int_equal(stack.thread[0].left_out, 0);

	assert_int_equal(begin(state), 0);
	fake_python(NT_STACK_FRAMES + 1);
	assert_int_equal(read_frames(), NT_STACK_WHOLE);
	assert_int_equal(stack.frames, NT_STACK_FRAMES);
	assert_int_equal(stack.thread[0].left_out, 1);
}

static void a_circle_of_frames_ends(void **state)
{
	(void)state;
	fake_python(4);
	fake_set(fake_frame(3) + 48, fake_frame(0), 8);
	assert_int_equal(read_frames(), NT_STACK_WHOLE);
	assert_int_equal(stack.frames, NT_STACK_FRAMES);
	assert_int_equal(stack.thread[0].left_out, NT_PYTHON_DEPTH - NT_STACK_FRAMES + 1);
	assert_true(fake.reads < 3 * NT_PYTHON_DEPTH);
}

static void a_shim_is_no_frame(void **state)
{
	(void)state;
	fake_python(3);
	fake_set(fake_frame(1) + 69, 3, 1);
	assert_int_equal(read_frames(), NT_STACK_WHOLE);
	assert_int_equal(stack.frames, 2);
}

static void code_of_another_type_is_refused(void **state)
{
	(void)state;
	fake_python(2);
	fake_set(FAKE_CODE + 8, FAKE_CODE_TYPE + 8, 8);
	assert_int_equal(read_frames(), NT_STACK_MALFORMED);
	assert_int_equal(stack.frames, 0);
}

static void a_bad_pointer_gives_no_frame(void **state)
{
	(void)state;
	fake_python(2);
	fake_set(fake_frame(1) + 48, 0x42, 8);
	assert_int_equal(read_frames(), NT_STACK_CHANGED);
	assert_int_equal(stack.frames, 0);
}

/* The innermost function is called from elsewhere whenever its frame is read. */
static void change_innermost(uint64_t address)
{
	static uint64_t turn;

	if (address == fake_frame(0))
		fake_set(fake_frame(0) + 48, ++turn % 2 ? fake_frame(2) : fake_frame(1), 8);
}

static void frames_that_change_in_each_attempt_are_left_out(void **state)
{
	(void)state;
	fake_python(4);
	fake.before = change_innermost;
	assert_int_equal(read_frames(), NT_STACK_CHANGED);
	/* Those that stay: the outermost two, and frame 1 if the last walk led there. */
	assert_in_range(stack.frames, 2, 3);
}

static uint32_t calls_left;

static void change_once(uint64_t address)
{
	if (address == fake_frame(3) && calls_left && !--calls_left)
		fake_set(FAKE_CFRAME + 8, fake_frame(1), 8);
}

static void a_change_during_one_attempt_is_read_again(void **state)
{
	(void)state;
	fake_python(4);
	calls_left = 1;
	fake.before = change_once;
	assert_int_equal(read_frames(), NT_STACK_WHOLE);
	assert_int_equal(stack.frames, 3);
}

static void threads_are_bounded_and_the_holder_is_known(void **state)
{
	struct nt_stack_memory memory = fake_memory();

	(void)state;
	fake_python(1);
	assert_int_equal(nt_python_threads(&memory, &runtime, &threads), 0);
	assert_int_equal(threads.count, 1);
	assert_int_equal(threads.thread[0].tid, 42);
	assert_true(threads.thread[0].holds_gil);
	assert_false(threads.gc_running);

	fake_set(FAKE_INTERPRETER + 848, 1, 4);
	fake_set(FAKE_RUNTIME + 376, 0, 4);
	fake_set(FAKE_THREAD + 8, FAKE_THREAD, 8); /* a circle */
	assert_int_equal(nt_python_threads(&memory, &runtime, &threads), 0);
	assert_int_equal(threads.count, NT_PYTHON_THREADS);
	assert_true(threads.is_cut);
	assert_true(threads.gc_running);
	assert_false(threads.thread[0].holds_gil);

	fake_set(FAKE_INTERPRETER + 16, 0, 8);
	assert_int_equal(nt_python_threads(&memory, &runtime, &threads), -ENODATA);
	fake_set(FAKE_RUNTIME + 40, 0, 8);
	assert_int_equal(nt_python_threads(&memory, &runtime, &threads), -ENODATA);
}

static void a_circle_of_interpreters_ends(void **state)
{
	struct nt_stack_memory memory = fake_memory();

	(void)state;
	fake_python(1);
	fake_set(FAKE_INTERPRETER, FAKE_INTERPRETER, 8);
	assert_int_equal(nt_python_threads(&memory, &runtime, &threads), 0);
	assert_int_equal(threads.count, NT_PYTHON_INTERPRETERS);
}

static void reads_are_limited(void **state)
{
	struct nt_stack_memory memory = fake_memory();

	(void)state;
	fake_python(2);
	memory.reads = NT_STACK_READS - 3;
	assert_int_equal(nt_python_frames(&memory, &runtime, FAKE_THREAD, &stack), NT_STACK_BUDGET);
	assert_int_equal(memory.reads, NT_STACK_READS);
}

static void strings_are_ascii_and_cut(void **state)
{
	struct nt_stack_memory memory = fake_memory();
	char text[6];

	(void)state;
	fake_python(1);
	fake_text(FAKE_FUNCTION, "beginning");
	assert_int_equal(
		nt_python_text(&memory, &runtime.layout, FAKE_FUNCTION, false, text, sizeof(text)),
		0);
	assert_string_equal(text, "begin");
	assert_int_equal(
		nt_python_text(&memory, &runtime.layout, FAKE_FUNCTION, true, text, sizeof(text)),
		0);
	assert_string_equal(text, "nning");
	/* Two bytes a character, not ASCII: its characters begin later. */
	fake_set(FAKE_FUNCTION + 16, 3, 8);
	fake_set(FAKE_FUNCTION + 32, 2 << 2 | 1 << 5, 4);
	fake_set(FAKE_FUNCTION + 72, 'a' | 0x4e00 << 16 | (uint64_t)'b' << 32, 8);
	assert_int_equal(
		nt_python_text(&memory, &runtime.layout, FAKE_FUNCTION, false, text, sizeof(text)),
		0);
	assert_string_equal(text, "a?b");
	/* The number before the kind takes 16 bits. */
	fake_set(FAKE_FUNCTION + 32, 2 << 16 | 1 << 19 | 3, 4);
	assert_int_equal(
		nt_python_text(&memory, &runtime.layout, FAKE_FUNCTION, false, text, sizeof(text)),
		0);
	assert_string_equal(text, "a?b");
	fake_set(FAKE_FUNCTION + 32, 3 << 2 | 1 << 5, 4);
	assert_int_equal(
		nt_python_text(&memory, &runtime.layout, FAKE_FUNCTION, false, text, sizeof(text)),
		-EBADMSG);
	fake_text(FAKE_FUNCTION, "x");
	fake_set(FAKE_FUNCTION + 16, NT_PYTHON_TEXT_LENGTH + 1, 8);
	assert_int_equal(
		nt_python_text(&memory, &runtime.layout, FAKE_FUNCTION, false, text, sizeof(text)),
		-EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frames_have_function_file_and_line, begin),
		cmocka_unit_test_setup(a_thread_without_frames_runs_no_python, begin),
		cmocka_unit_test_setup(frames_over_the_cap_are_counted, begin),
		cmocka_unit_test_setup(a_circle_of_frames_ends, begin),
		cmocka_unit_test_setup(a_shim_is_no_frame, begin),
		cmocka_unit_test_setup(code_of_another_type_is_refused, begin),
		cmocka_unit_test_setup(a_bad_pointer_gives_no_frame, begin),
		cmocka_unit_test_setup(frames_that_change_in_each_attempt_are_left_out, begin),
		cmocka_unit_test_setup(a_change_during_one_attempt_is_read_again, begin),
		cmocka_unit_test_setup(threads_are_bounded_and_the_holder_is_known, begin),
		cmocka_unit_test_setup(a_circle_of_interpreters_ends, begin),
		cmocka_unit_test_setup(reads_are_limited, begin),
		cmocka_unit_test_setup(strings_are_ascii_and_cut, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
