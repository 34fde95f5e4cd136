/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks of real interpreters, of each version that this machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/stack/stack_read.h"
#include "common/system/clock.h"
#include "tests/attack/attack.h"
#include "tests/attack/fuse.h"
#include "tests/unit/agent/stack/live_python.h"

enum {
	FIRST_MINOR = 8,
	LAST_MINOR = 14,
	QUALIFIED_MINOR = 11, /* from here on code objects hold qualified names */
	WAIT_S = 20, /* for what the script shall do: the machine may be busy */
};

static const char script_head[] = "import gc, os, sys, threading, time\n"
				  "def ready():\n"
				  "    os.write(1, b'x')\n"
				  "class Loader:\n"
				  "    def load_batch(self):\n"
				  "        names = [\n"
				  "            str(i)\n"
				  "            for i in range(3)]\n"
				  "        ready()\n"
				  "        time.sleep(  # SLEEPS\n"
				  "            1000)\n"
				  "        return names\n"
				  "def recurse(n):\n"
				  "    if n:\n"
				  "        return recurse(n - 1)  # DEEPER\n"
				  "    return Loader().load_batch()  # CALLS\n"
				  "def spin():\n"
				  "    k = 0\n"
				  "    while True:\n"
				  "        k += 1\n"
				  "def collect():\n"
				  "    keep = [[i] for i in range(200000)]\n"
				  "    ready()\n"
				  "    while True:\n"
				  "        gc.collect()  # COLLECTS\n"
				  "def hold():\n"
				  "    threading.Thread(target=spin, daemon=True).start()\n"
				  "    ready()\n"
				  "    time.sleep(1000)  # WAITS\n"
				  "def compute():\n"
				  "    ready()\n"
				  "    spin()\n";

static struct nt_stack stack;
static char script[4096];
static char interpreter[PATH_MAX];
static struct live_python python;

/* Runs the body in CPython 3.minor; skips if there is none. */
static void start(int minor, const char *body)
{
	if (!live_python_find(minor, interpreter)) {
		print_message("skip: CPython 3.%d: no interpreter on this machine\n", minor);
		skip();
	}
	(void)snprintf(script, sizeof(script), "%s%s\n", script_head, body);
	if (live_python_start(interpreter, script, &python) < 0) {
		live_python_end(&python);
		fail_msg("%s does not run", interpreter);
	}
}

static const struct nt_stack_frame *frame_of(const struct nt_stack_thread *thread,
					     uint32_t python_i)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < thread->frames; i++) {
		const struct nt_stack_frame *frame = &stack.frame[thread->first + i];

		if (!frame->is_native && n++ == python_i)
			return frame;
	}
	return NULL;
}

/* True if the Python frame at this place is of this function; where it stands is in *ret_line. */
static bool is_at(const struct nt_stack_thread *thread, uint32_t i, const char *function,
		  uint32_t *ret_line)
{
	const struct nt_stack_frame *frame = frame_of(thread, i);

	if (!frame || strcmp(nt_stack_text_at(&stack, frame->function), function) != 0)
		return false;
	assert_string_equal(nt_stack_text_at(&stack, frame->file), "<string>");
	*ret_line = frame->line;
	return true;
}

static const struct nt_stack_thread *find_holder(void)
{
	for (uint32_t i = 0; i < stack.threads; i++)
		if (stack.thread[i].holds_gil)
			return &stack.thread[i];
	return NULL;
}

/* Reads until the condition holds: a script needs time to get where it shall be. */
static void await(bool (*holds)(int minor), int minor)
{
	const uint64_t end_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;

	do {
		nt_stack_read((uint32_t)python.pid, false, NULL, 0, &stack);
		if (holds(minor))
			return;
	} while (nt_clock_mono_ns() < end_ns);
	for (uint32_t i = 0; i < stack.threads; i++)
		print_message("thread %u: %s, %s, %u frames\n", stack.thread[i].tid,
			      nt_stack_reason_text((enum nt_stack_reason)stack.thread[i].python),
			      nt_stack_reason_text((enum nt_stack_reason)stack.thread[i].native),
			      stack.thread[i].frames);
	live_python_end(&python);
	fail_msg("%s was not found where it is", interpreter);
}

static const char *method_name(int minor)
{
	return minor >= QUALIFIED_MINOR ? "Loader.load_batch" : "load_batch";
}

static bool has_native(const struct nt_stack_thread *thread)
{
	for (uint32_t i = 0; i < thread->frames; i++)
		if (stack.frame[thread->first + i].is_native)
			return true;
	return false;
}

static bool sleeps(int minor)
{
	const struct nt_stack_thread *main_thread = &stack.thread[0];
	uint32_t line;

	if (stack.threads != 1 || main_thread->state != 'S' ||
	    !is_at(main_thread, 0, method_name(minor), &line))
		return false;
	assert_int_equal(line, live_python_line(script, "# SLEEPS"));
	assert_true(is_at(main_thread, 1, "recurse", &line));
	assert_int_equal(line, live_python_line(script, "# CALLS"));
	for (uint32_t i = 2; i < 5; i++) {
		assert_true(is_at(main_thread, i, "recurse", &line));
		assert_int_equal(line, live_python_line(script, "# DEEPER"));
	}
	assert_true(is_at(main_thread, 5, "<module>", &line));
	assert_int_equal(line, live_python_line(script, "recurse(3)"));
	assert_null(frame_of(main_thread, 6));
	assert_int_equal(main_thread->python, NT_STACK_WHOLE);
	assert_int_equal(stack.python_version, 0x0300 | minor);
	assert_true(main_thread->is_main);
	assert_false(main_thread->holds_gil);
	assert_false(stack.gc_running);
#if defined(__x86_64__)
	/* time.sleep() is in the kernel, called by the C library, called by CPython. */
	assert_int_equal(main_thread->native, NT_STACK_WHOLE);
	assert_true(has_native(main_thread));
	assert_true(strstr(nt_stack_text_at(&stack, stack.frame[main_thread->first].file),
			   "libc") != NULL);
#endif
	return true;
}

static bool computes(int minor)
{
	const struct nt_stack_thread *main_thread = &stack.thread[0];
	uint32_t line;

	(void)minor;
	/* The GIL is read before the frames: it may still be that of the moment before. */
	if (!is_at(main_thread, 0, "spin", &line) || main_thread->state != 'R' ||
	    !main_thread->holds_gil)
		return false;
	assert_in_range(line, live_python_line(script, "while True:"),
			live_python_line(script, "k += 1"));
	assert_int_equal(main_thread->native, NT_STACK_ON_CPU);
	return true;
}

static bool collects(int minor)
{
	uint32_t line;

	(void)minor;
	return stack.gc_running && stack.thread[0].holds_gil &&
	       is_at(&stack.thread[0], 0, "collect", &line) &&
	       line == live_python_line(script, "# COLLECTS");
}

static bool is_held(int minor)
{
	const struct nt_stack_thread *holder = find_holder();
	uint32_t line;

	(void)minor;
	if (!holder || holder == &stack.thread[0] || !is_at(holder, 0, "spin", &line) ||
	    !is_at(&stack.thread[0], 0, "hold", &line))
		return false;
	assert_int_equal(line, live_python_line(script, "# WAITS"));
	assert_true(holder->tid && holder->tid != (uint32_t)python.pid);
	assert_false(stack.thread[0].holds_gil);
	return true;
}

static void check_version(void **state, const char *body, bool (*holds)(int minor))
{
	const int minor = (int)(intptr_t)*state;

	start(minor, body);
	await(holds, minor);
	live_python_end(&python);
}

static void a_function_that_sleeps_is_named_with_its_line(void **state)
{
	check_version(state, "recurse(3)", sleeps);
}

static void a_function_that_computes_is_named_and_holds_the_gil(void **state)
{
	check_version(state, "compute()", computes);
}

static void a_collection_that_runs_is_reported(void **state)
{
	check_version(state, "collect()", collects);
}

static void another_thread_that_holds_the_gil_is_named(void **state)
{
	check_version(state, "hold()", is_held);
}

static void a_process_without_python_has_a_native_stack_and_a_reason(void **state)
{
	const pid_t pid = fork(); /* not -1, which stands for all processes */
	const uint64_t end_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;

	(void)state;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	do {
		nt_stack_read((uint32_t)pid, false, NULL, 0, &stack);
	} while (stack.thread[0].state != 'S' && nt_clock_mono_ns() < end_ns);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_int_equal(stack.threads, 1);
	assert_int_equal(stack.thread[0].python, NT_STACK_NO_PYTHON);
	assert_int_equal(stack.python_version, 0);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_string_equal(nt_stack_text_at(&stack, stack.frame[0].function), "pause");
#endif
}

static void a_process_that_has_ended_is_stated(void **state)
{
	const pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
	nt_stack_read((uint32_t)pid, false, NULL, 0, &stack);
	assert_int_equal(stack.threads, 1);
	assert_int_equal(stack.frames, 0);
	assert_int_equal(stack.thread[0].python, NT_STACK_ENDED);
	assert_int_equal(stack.thread[0].native, NT_STACK_ENDED);
}

/* ---- files on FUSE ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/neutracer-test-XXXXXX";
static bool has_failed; /* no file system of our own can be mounted here */

/* For tests/attack/fuse.c. */
long attack_must(long r, const char *what)
{
	(void)what;
	has_failed |= r < 0;
	return r;
}

void attack_give_up(const char *what)
{
	print_message("%s\n", what);
	_exit(1);
}

/* Serves this program there, in a mount namespace of our own. False: that is not allowed. */
static bool serve_program(struct fuse *fuse)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0 || access("/dev/fuse", R_OK | W_OK) < 0 ||
	    unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	assert_true(bytes != MAP_FAILED && mkdtemp(folder));
	fuse_start(fuse, folder, bytes, (size_t)st.st_size);
	if (!has_failed)
		return true;
	fuse_end(fuse, folder);
	(void)rmdir(folder);
	return false;
}

/* Begun: it executes the file, which the kernel opened for that. */
static pid_t run_served(uint64_t end_ns)
{
	char path[PATH_MAX], exe[64], now[PATH_MAX] = "", wait[] = "wait",
				      *arguments[] = {path, wait, NULL};
	const pid_t pid = fork();

	(void)snprintf(path, sizeof(path), "%s/%s", folder, FUSE_FILE);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execv(path, arguments);
		_exit(1);
	}
	assert_true(pid > 0);
	(void)snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
	while (strcmp(now, path) != 0 && nt_clock_mono_ns() < end_ns) {
		const ssize_t length = readlink(exe, now, sizeof(now) - 1);

		now[length > 0 ? length : 0] = '\0';
	}
	return pid;
}

static uint32_t opens_of_a_reading(struct fuse *fuse, pid_t pid, bool takes_fuse)
{
	const unsigned int before = fuse->opened;

	nt_stack_read((uint32_t)pid, takes_fuse, NULL, 0, &stack);
	return fuse->opened - before;
}

/* Its server might not answer: nothing on it is opened unless that is allowed. */
static void a_program_on_fuse_is_opened_only_if_it_may_be(void **state)
{
	const uint64_t end_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;
	static struct fuse fuse;
	uint32_t refused = 0, taken = 0;
	pid_t pid;

	(void)state;
	if (!serve_program(&fuse)) {
		print_message("skip: fuse: no file system can be mounted here\n");
		skip();
	}
	pid = run_served(end_ns);
	/* It has begun to wait once its own function is in the stack. */
	do {
		refused += opens_of_a_reading(&fuse, pid, false);
		taken += stack.frames > 1 && stack.thread[0].state == 'S'
				 ? opens_of_a_reading(&fuse, pid, true)
				 : 0;
	} while (!taken && nt_clock_mono_ns() < end_ns);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	fuse_end(&fuse, folder);
	(void)rmdir(folder);
	assert_int_equal(refused, 0);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_in_range(taken, 1, 100);
#endif
}

int main(int argc, char **argv)
{
	static const struct {
		CMUnitTestFunction fn;
		const char *name;
	} claims[] = {
		{a_function_that_sleeps_is_named_with_its_line,
		 "a_function_that_sleeps_is_named_with_its_line"},
		{a_function_that_computes_is_named_and_holds_the_gil,
		 "a_function_that_computes_is_named_and_holds_the_gil"},
		{a_collection_that_runs_is_reported, "a_collection_that_runs_is_reported"},
		{another_thread_that_holds_the_gil_is_named,
		 "another_thread_that_holds_the_gil_is_named"},
	};
	enum {
		CLAIMS = sizeof(claims) / sizeof(claims[0]),
		VERSIONS = LAST_MINOR - FIRST_MINOR + 1,
	};
	static char names[CLAIMS * VERSIONS][80];
	struct CMUnitTest tests[CLAIMS * VERSIONS + 3] = {
		[CLAIMS * VERSIONS] =
			cmocka_unit_test(a_process_without_python_has_a_native_stack_and_a_reason),
		[CLAIMS * VERSIONS + 1] = cmocka_unit_test(a_process_that_has_ended_is_stated),
		[CLAIMS * VERSIONS + 2] =
			cmocka_unit_test(a_program_on_fuse_is_opened_only_if_it_may_be),
	};

	while (argc > 1 && strcmp(argv[1], "wait") == 0) /* the one that is served */
		(void)pause();

	for (size_t i = 0; i < CLAIMS * VERSIONS; i++) {
		const int minor = FIRST_MINOR + (int)(i / CLAIMS);

		(void)snprintf(names[i], sizeof(names[i]), "3.%d: %s", minor,
			       claims[i % CLAIMS].name);
		tests[i] = (struct CMUnitTest){.name = names[i],
					       .test_func = claims[i % CLAIMS].fn,
					       .initial_state = (void *)(intptr_t)minor};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
