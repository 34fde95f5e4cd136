/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A stack as workers answer it: its caps, what is refused, and the form for windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stack/python_layout.h"
#include "agent/stack/python_process.h"
#include "agent/stack/thread_wait.h"
#include "agent/stack/window_stack.h"

static struct nt_stack stack, parsed;

static int begin(void **state)
{
	(void)state;
	nt_stack_init(&stack);
	stack.threads = 1;
	stack.thread[0] = (struct nt_stack_thread){.tid = 7, .state = 'S', .name = "main"};
	return 0;
}

static void repeated_texts_take_no_room(void **state)
{
	uint32_t bytes;

	(void)state;
	assert_true(nt_stack_add(&stack, "f", "/app/f.py", 1, false));
	bytes = stack.text_bytes;
	assert_true(nt_stack_add(&stack, "f", "/app/f.py", 2, false));
	assert_int_equal(stack.text_bytes, bytes);
	assert_true(nt_stack_add(&stack, "p", "/app/f.py", 2, false)); /* no tail of another */
	assert_int_equal(stack.text_bytes, bytes + 2);
	assert_string_equal(nt_stack_text_at(&stack, stack.frame[2].function), "p");
	assert_string_equal(nt_stack_text_at(&stack, NT_STACK_TEXT_BYTES), "");
}

static void texts_and_frames_are_capped(void **state)
{
	char text[1001];
	int n = 0;

	(void)state;
	for (; n < 1000; n++) {
		memset(text, 'a' + n % 26, sizeof(text) - 1);
		(void)snprintf(text + 990, 11, "%u", (unsigned int)n % 1000);
		if (!nt_stack_add(&stack, text, "", 0, false))
			break;
	}
	assert_int_equal(n, NT_STACK_TEXT_BYTES / 994); /* each has 991 to 993 bytes and a NUL */
	assert_true(stack.text_bytes <= NT_STACK_TEXT_BYTES);

	assert_int_equal(begin(state), 0);
	for (n = 0; n < NT_STACK_FRAMES_ALL; n++)
		assert_true(nt_stack_add(&stack, "f", "", 0, false));
	assert_false(nt_stack_add(&stack, "f", "", 0, false));
	assert_int_equal(stack.frames, NT_STACK_FRAMES_ALL);
}

static int parse(size_t len)
{
	return nt_stack_parse((const uint8_t *)&stack, len, &parsed);
}

static void what_a_worker_answers_is_checked(void **state)
{
	(void)state;
	assert_true(nt_stack_add(&stack, "f\n", "/app/f.py", 1, false));
	assert_int_equal(parse(nt_stack_bytes(&stack)), 0);
	assert_string_equal(nt_stack_text_at(&parsed, parsed.frame[0].function), "f?");
	assert_int_equal(parse(nt_stack_bytes(&stack) - 1), -EBADMSG);
	assert_int_equal(parse(0), -EBADMSG);
	stack.frame[0].file = stack.text_bytes;
	assert_int_equal(parse(nt_stack_bytes(&stack)), -EBADMSG);
	stack.frame[0].file = 0;
	stack.thread[0].first = 1;
	assert_int_equal(parse(nt_stack_bytes(&stack)), -EBADMSG);
	stack.thread[0].first = 0;
	stack.thread[0].python = NT_STACK_REASON_END;
	assert_int_equal(parse(nt_stack_bytes(&stack)), -EBADMSG);
	stack.thread[0].python = 0;
	stack.threads = NT_STACK_THREADS + 1;
	assert_int_equal(parse(nt_stack_bytes(&stack)), -EBADMSG);
	stack.threads = 1;
	memset(stack.thread[0].name, 1, sizeof(stack.thread[0].name));
	stack.thread[0].state = 2;
	assert_int_equal(parse(nt_stack_bytes(&stack)), 0);
	assert_string_equal(parsed.thread[0].name, "???????????????");
	assert_int_equal(parsed.thread[0].state, '?');
}

static void a_window_has_its_own_copy(void **state)
{
	struct nt_window_stack *window;

	(void)state;
	assert_true(nt_stack_add(&stack, "read", "libc.so.6", 0, true));
	assert_true(nt_stack_add(&stack, "load_batch", "/app/loader.py", 42, false));
	stack.python_version = 0x030b;
	stack.gc_running = 1;
	stack.boot_ns = 99;
	stack.thread[0].is_main = stack.thread[0].holds_gil = 1;
	stack.thread[0].native = NT_STACK_NO_UNWIND_INFO;
	assert_int_equal(nt_window_stack_new(&stack, 0xabc, &window), 0);
	memset(&stack, 0xff, sizeof(stack));
	assert_int_equal(window->threads, 1);
	assert_int_equal(window->thread[0].request, 0xabc);
	assert_int_equal(window->thread[0].boot_ns, 99);
	assert_int_equal(window->thread[0].tid, 7);
	assert_string_equal(window->thread[0].name, "main");
	assert_string_equal(window->thread[0].state, "S");
	assert_string_equal(window->thread[0].interpreter, "CPython 3.11");
	assert_true(window->thread[0].is_main && window->thread[0].holds_gil &&
		    window->thread[0].gc_running);
	assert_string_equal(window->thread[0].native_reason, "no call-frame information");
	assert_string_equal(window->thread[0].python_reason, "");
	assert_int_equal(window->thread[0].frames, 2);
	assert_true(window->thread[0].frame[0].native);
	assert_string_equal(window->thread[0].frame[1].function, "load_batch");
	assert_string_equal(window->thread[0].frame[1].file, "/app/loader.py");
	assert_int_equal(window->thread[0].frame[1].line, 42);
	nt_window_stack_free(window);

	nt_window_stack_fail(12, 34, NT_STACK_STALLED, &stack);
	assert_int_equal(nt_window_stack_new(&stack, 1, &window), 0);
	assert_int_equal(window->threads, 1);
	assert_int_equal(window->thread[0].tid, 12);
	assert_string_equal(window->thread[0].state, "");
	assert_string_equal(window->thread[0].python_reason,
			    "reading the process failed or took too long");
	nt_window_stack_free(window);
}

static void every_reason_has_a_text(void **state)
{
	(void)state;
	assert_string_equal(nt_stack_reason_text(NT_STACK_WHOLE), "");
	for (int i = NT_STACK_WHOLE + 1; i < NT_STACK_REASON_END; i++)
		assert_true(nt_stack_reason_text((enum nt_stack_reason)i)[0] != '\0');
	assert_string_equal(nt_stack_reason_text(NT_STACK_REASON_END), "");
}

/* ---- offsets that a process states ------------------------------------------------------------ */

/* Of CPython 3.14 on x86-64, read from one. */
static void state_offsets(uint64_t words[NT_PYTHON_OFFSETS_BYTES / 8])
{
	static const uint16_t stated[] = {
		0,    0,   0,    0,  784,  808,  0,    7280, 7272, 7344, 7360, 7408, 7688, 7672,
		7680, 16,  7784, 0,  7800, 7792, 7992, 0,    832,  0,    8,    16,   72,   152,
		160,  232, 32,   88, 8,    0,    56,   80,   74,   64,   0,    216,  112,  120,
		128,  136, 68,   52, 96,   104,  208,  0,    16,   8,    416,  24,   88,   168,
		40,   32,  16,   40, 24,   32,   16,   24,   40,   32,   48,   32,   24,   40,
		32,   24,  16,   24, 40,   32,   32,   64,   32,   16,   40,   264,  192};
	memset(words, 0, NT_PYTHON_OFFSETS_BYTES);
	for (size_t i = 0; i < sizeof(stated) / sizeof(stated[0]); i++)
		words[i] = stated[i];
	/* The table above counts from the first word of the runtime on. */
	memcpy(&words[0], "xdebugpy", 8);
	words[1] = 0x030e0af0;
	words[2] = 0;
	words[75] = 16;
	words[76] = 32;
	words[78] = 32;
	words[79] = 16;
	words[80] = 40;
	words[82] = 192;
}

static int parse_offsets(const uint64_t *words, size_t len, struct nt_python_layout *layout)
{
	return nt_python_layout_parse((const uint8_t *)words, len, layout);
}

static void stated_offsets_are_taken_within_bounds(void **state)
{
	uint64_t words[NT_PYTHON_OFFSETS_BYTES / 8];
	struct nt_python_layout layout;

	(void)state;
	state_offsets(words);
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), 0);
	assert_int_equal(layout.version, 0x030e);
	assert_int_equal(layout.interpreters, 808);
	assert_int_equal(layout.threads, 7344);
	assert_int_equal(layout.gil_holder, 8);
	assert_int_equal(layout.gil_locked, 16);
	assert_int_equal(layout.frame, 72);
	assert_int_equal(layout.owner, 74);
	assert_int_equal(layout.bytecode, 208);
	assert_int_equal(layout.collecting, 7408 + 192);
	assert_int_equal(layout.lines, NT_PYTHON_LINES_LOCATIONS);

	words[2] = 1;
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), 0);
	assert_int_equal(layout.lines, NT_PYTHON_LINES_NONE);
	words[26] = NT_PYTHON_THREAD_BYTES - 7;
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), -EBADMSG);
	words[26] = NT_PYTHON_THREAD_BYTES - 8;
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), 0);
	assert_int_equal(parse_offsets(words, 640, &layout), -EBADMSG);
	words[19] = 7000; /* the holder, before the GIL */
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), -EBADMSG);
	words[1] = 0x030f00f0;
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), -ENOTSUP);
	words[0]++;
	assert_int_equal(parse_offsets(words, sizeof(words), &layout), -ENOENT);
	assert_int_equal(nt_python_layout_of(0x0307, &layout), -ENOTSUP);
	assert_int_equal(nt_python_layout_of(0x030f, &layout), -ENOTSUP);
}

static void a_version_is_in_the_name_of_the_file(void **state)
{
	(void)state;
	assert_int_equal(nt_python_version_of("libpython3.9.so.1.0"), 0x0309);
	assert_int_equal(nt_python_version_of("python3.10"), 0x030a);
	assert_int_equal(nt_python_version_of("python3"), 0);
	assert_int_equal(nt_python_version_of("python3.x"), 0);
	assert_int_equal(nt_python_version_of("libpython3.999999999999.so"), 0);
}

/* ---- /proc ------------------------------------------------------------------------------------ */

static void registers_of_blocked_threads_are_parsed(void **state)
{
	static const char blocked[] =
		"230 0x0 0x1 0x7ffd 0x0 0x0 0x0 0x7ffd15b1c2f8 0x7f1b2c8e8293\n";
	static const char outside[] = "-1 0x7ffd15b1c2f8 0x7f1b2c8e8293\n";
	static const char *const others[] = {"running\n",
					     "",
					     "-1 0x7ffd 7f1b\n",
					     "-1 0x7ffd 0x\n",
					     "1 2 3 4 5 6 7 8 9 10 0x1 0x2\n",
					     "0 0x1 0x11112222333344445\n"};
	uint64_t sp, pc;

	(void)state;
	assert_true(nt_thread_wait_parse(blocked, sizeof(blocked) - 1, &sp, &pc));
	assert_int_equal(sp, 0x7ffd15b1c2f8);
	assert_int_equal(pc, 0x7f1b2c8e8293);
	assert_true(nt_thread_wait_parse(outside, sizeof(outside) - 1, &sp, &pc));
	assert_int_equal(sp, 0x7ffd15b1c2f8);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(nt_thread_wait_parse(others[i], strlen(others[i]), &sp, &pc));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(repeated_texts_take_no_room, begin),
		cmocka_unit_test_setup(texts_and_frames_are_capped, begin),
		cmocka_unit_test_setup(what_a_worker_answers_is_checked, begin),
		cmocka_unit_test_setup(a_window_has_its_own_copy, begin),
		cmocka_unit_test(every_reason_has_a_text),
		cmocka_unit_test(stated_offsets_are_taken_within_bounds),
		cmocka_unit_test(a_version_is_in_the_name_of_the_file),
		cmocka_unit_test(registers_of_blocked_threads_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
