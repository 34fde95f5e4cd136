/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel side's counters of a process, and what is left of them after its end. */
#include <linux/sched.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "common/system/clock.h"
#include "tests/bpf/call_stubs.h"

enum {
	ENDS = 40,
};

/* A child that counts some launches, and ends. */
static pid_t run_child(int launches)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < launches; i++)
			(void)stub_call(&cudart, "cudaLaunchKernel", args);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return pid;
}

static void the_last_counters_of_a_process_outlive_it_until_they_are_read(void **state)
{
	struct nt_process_counters counters;
	struct harness *h = *state;
	pid_t pid = run_child(7);

	(void)harness_poll(h);
	assert_true(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	assert_int_equal(counters.calls[NT_COUNTER_LAUNCH], 7);
	nt_attach_forget(h->attach, (uint32_t)pid);
	assert_false(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
}

/* A child that makes one call, which has no counter, and ends by that signal or with that status. */
static uint32_t exit_code_of(struct harness *h, int signal, int exit_status)
{
	struct nt_process_counters counters;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)stub_call(&mpi, "MPI_Barrier", args);
		if (signal)
			(void)kill(getpid(), signal);
		_exit(exit_status);
	}
	/* Also before it was waited for. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	(void)harness_poll(h);
	assert_true(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	assert_int_equal(counters.ended, NT_ENDED);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(counters.exit_code, (uint16_t)status);
	nt_attach_forget(h->attach, (uint32_t)pid);
	return counters.exit_code;
}

static void how_a_process_ended_is_what_wait_says_of_it(void **state)
{
	struct harness *h = *state;

	assert_int_equal(exit_code_of(h, 0, 0), 0);
	assert_int_equal(exit_code_of(h, 0, 3), 3 << 8);
	assert_int_equal(exit_code_of(h, SIGKILL, 0), SIGKILL);
	assert_int_equal(exit_code_of(h, SIGTERM, 0), SIGTERM);
	assert_int_equal(exit_code_of(h, SIGABRT, 0) & 0x7f, SIGABRT);
}

static void *call_from_thread(void *data)
{
	(void)data;
	(void)stub_call(&mpi, "MPI_Barrier", args);
	return NULL;
}

static void call_and_be_killed(struct harness *h)
{
	struct nt_process_counters counters;
	pthread_t thread;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (pthread_create(&thread, NULL, call_from_thread, NULL) == 0)
			(void)pthread_join(thread, NULL);
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)harness_poll(h);
	assert_true(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	assert_int_equal(counters.ended, NT_ENDED);
	assert_int_equal(counters.exit_code, SIGKILL);
	nt_attach_forget(h->attach, (uint32_t)pid);
}

/*
 * Gloo's calls are made by a pool of threads: the main thread, which is left, has made none. Another
 * may still be on its way out when the process is killed: how the process ended counts.
 */
static void a_process_whose_threads_made_the_calls_is_seen_to_end(void **state)
{
	for (int i = 0; i < ENDS; i++)
		call_and_be_killed(*state);
}

static void a_kill_by_the_parent_is_told_from_others(void **state)
{
	struct nt_process_counters counters;
	struct harness *h = *state;
	uint64_t killed_ns;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)stub_call(&mpi, "MPI_Barrier", args);
		(void)!write(ready[1], "", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(nt_attach_ended_ns(h->attach, (uint32_t)pid), 0);
	killed_ns = nt_clock_boot_ns();
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)harness_poll(h);
	assert_true(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	assert_int_equal(counters.ended, NT_ENDED | NT_ENDED_BY_PARENT);
	assert_in_range(nt_attach_ended_ns(h->attach, (uint32_t)pid), killed_ns,
			nt_clock_boot_ns());
	assert_int_equal(counters.exit_code, SIGKILL);
	nt_attach_forget(h->attach, (uint32_t)pid);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* A child of that pid, which makes one launch and waits to be killed. */
static pid_t run_with_pid(pid_t wanted)
{
	struct clone_args clone = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&wanted,
		.set_tid_size = 1,
	};
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = (pid_t)syscall(SYS_clone3, &clone, sizeof(clone));
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* if an assertion fails */
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
		(void)!write(ready[1], "", 1);
		(void)pause();
		_exit(0);
	}
	(void)close(ready[1]);
	if (pid > 0)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void counters_of_one_that_ended_are_not_those_of_the_next_with_its_pid(void **state)
{
	struct nt_process_counters counters;
	struct harness *h = *state;
	pid_t pid = run_child(7), next;

	(void)harness_poll(h);
	next = run_with_pid(pid);
	if (next != pid)
		skip(); /* another process has taken it, or this kernel gives out no pid on request */
	assert_true(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	assert_int_equal(counters.ended, 0);
	assert_int_equal(counters.calls[NT_COUNTER_LAUNCH], 1);
	(void)kill(next, SIGKILL);
	(void)waitpid(next, NULL, 0);
	nt_attach_forget(h->attach, (uint32_t)pid);
}

static void a_process_that_counted_nothing_leaves_nothing(void **state)
{
	struct nt_process_counters counters;
	struct harness *h = *state;
	pid_t pid = run_child(0);

	(void)harness_poll(h);
	assert_false(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
}

static void a_program_that_is_run_anew_counts_from_zero(void **state)
{
	struct nt_process_counters counters;
	struct harness *h = *state;
	int ready[2], status;
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
		(void)dup2(ready[1], 1);
		(void)execlp("sh", "sh", "-c", "echo; exec sleep 60", NULL);
		_exit(127);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)harness_poll(h);
	/* Those of the program before. */
	assert_true(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	assert_int_equal(counters.calls[NT_COUNTER_LAUNCH], 1);
	nt_attach_forget(h->attach, (uint32_t)pid);
	assert_false(nt_attach_counters(h->attach, (uint32_t)pid, &counters));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

#define IN(mode, test) IN_MODE(mode, test, NULL)

#define COUNTER_TESTS(mode)                                                                        \
	IN(mode, the_last_counters_of_a_process_outlive_it_until_they_are_read),                   \
		IN(mode, how_a_process_ended_is_what_wait_says_of_it),                             \
		IN(mode, a_process_whose_threads_made_the_calls_is_seen_to_end),                   \
		IN(mode, a_kill_by_the_parent_is_told_from_others),                                \
		IN(mode, counters_of_one_that_ended_are_not_those_of_the_next_with_its_pid),       \
		IN(mode, a_process_that_counted_nothing_leaves_nothing),                           \
		IN(mode, a_program_that_is_run_anew_counts_from_zero)

int main(void)
{
	int r;

	if (!stub_begin() || load_libraries(NULL) < 0)
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = RUN_IN_MODES(COUNTER_TESTS);
	stub_clean();
	return r;
}
