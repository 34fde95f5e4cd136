/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks as the agent asks for them: by the inspector, from a worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/discover/inspector.h"
#include "agent/stack/stack.h"
#include "common/system/clock.h"
#include "tests/unit/agent/stack/live_python.h"

enum {
	REQUEST = 77,
	WAIT_S = 30,
};

static struct nt_workers workers;
static struct nt_quarantine *quarantine;
static struct nt_inspector *inspector;
static struct nt_stack stack;
static int result;
static uint64_t request;
static bool is_done;

static void on_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	(void)data, (void)pid, (void)owner, (void)held;
}

static void on_done(void *data, const struct nt_inspector_task *task,
		    struct nt_inspector_outcome *outcome)
{
	(void)data;
	is_done = true;
	request = task->request.address;
	result = outcome->result;
	if (result == 0 && outcome->kind != NT_ANSWER_STACK)
		result = -EBADMSG;
	if (result == 0)
		result = nt_stack_parse(outcome->body, outcome->len, &stack);
}

static int set_up(void **state)
{
	static const struct nt_inspector_hooks hooks = {.stalled = on_stalled};

	(void)state;
	assert_int_equal(nt_workers_begin(&workers), 0);
	assert_int_equal(nt_quarantine_new(&quarantine), 0);
	return nt_inspector_new(&workers, quarantine, &hooks, &inspector);
}

static int tear_down(void **state)
{
	(void)state;
	nt_inspector_free(inspector);
	nt_quarantine_free(quarantine);
	nt_workers_end(&workers);
	return 0;
}

static void read_stack(uint32_t pid)
{
	static const struct nt_inspector_client client = {.done = on_done};
	const uint64_t end_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;
	const struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_STACK, .pid = pid, .address = REQUEST},
		.client = &client,
	};

	is_done = false;
	assert_int_equal(nt_inspector_submit(inspector, &task, NULL, -1), 0);
	while (!is_done && nt_clock_mono_ns() < end_ns)
		nt_inspector_wait(inspector, NT_SECOND);
	assert_true(is_done);
	assert_int_equal(request, REQUEST);
}

static void a_worker_reads_a_stack(void **state)
{
	struct live_python python = {.pid = -1, .output = -1};
	char path[PATH_MAX];
	int minor = 8, started;

	(void)state;
	while (minor <= 14 && !live_python_find(minor, path))
		minor++;
	if (minor > 14) {
		print_message("skip: CPython: no interpreter on this machine\n");
		skip();
	}
	started = live_python_start(path,
				    "import os, time\n"
				    "def planted():\n"
				    "    os.write(1, b'x')\n"
				    "    time.sleep(1000)\n"
				    "planted()\n",
				    &python);
	if (started == 0)
		read_stack((uint32_t)python.pid);
	live_python_end(&python);
	assert_int_equal(started, 0);
	assert_int_equal(result, 0);
	assert_int_equal(stack.python_version, 0x0300 | minor);
	assert_int_equal(stack.thread[0].python, NT_STACK_WHOLE);
	for (uint32_t i = 0; i < stack.frames; i++)
		if (strcmp(nt_stack_text_at(&stack, stack.frame[i].function), "planted") == 0)
			return;
	fail_msg("%s: the planted function is not in the stack", path);
}

static void an_ended_process_is_an_error_of_the_task(void **state)
{
	const pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	(void)waitpid(pid, NULL, 0);
	read_stack((uint32_t)pid);
	assert_int_equal(result, -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_worker_reads_a_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_ended_process_is_an_error_of_the_task, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
