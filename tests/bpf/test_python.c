/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Collections of a real Python, by the marks in it. Each is counted once, with its time, and only those
 * of the process that is watched.
 *
 * NT_PYTHON=FILE tries another interpreter than /usr/bin/python3.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#include "agent/discover/rank_file.h"
#include "agent/host/root_path.h"
#include "agent/probes/rank_probe.h"
#include "tests/bpf/collections.h"

/*
 * Answers each line, a number, with the nanoseconds that so many collections took. Below 0: a child
 * makes them.
 */
static const char script[] = "import gc, os, sys, time\n"
			     "gc.disable()\n"
			     "heap = [[i] for i in range(100000)]\n"
			     "print(0, flush=True)\n"
			     "for line in sys.stdin:\n"
			     "    begin = time.perf_counter_ns()\n"
			     "    child = int(line) < 0 and os.fork()\n"
			     "    if child:\n"
			     "        os.waitpid(child, 0)\n"
			     "    else:\n"
			     "        for _ in range(abs(int(line))):\n"
			     "            gc.collect()\n"
			     "        if int(line) < 0:\n"
			     "            os._exit(0)\n"
			     "    print(time.perf_counter_ns() - begin, flush=True)\n"
			     "os._exit(0)\n"; /* which collects no more */

struct python {
	pid_t pid;
	FILE *to, *from;
};

static const char *python_path(void)
{
	return getenv("NT_PYTHON") ? getenv("NT_PYTHON") : "/usr/bin/python3";
}

static uint64_t answer(struct python *python)
{
	char line[LINE_BYTES];
	uint64_t value = 0;

	assert_non_null(fgets(line, sizeof(line), python->from));
	for (const char *c = line; *c >= '0' && *c <= '9'; c++)
		value = value * 10 + (uint64_t)(*c - '0');
	return value;
}

static struct python start_python(void)
{
	struct python python = {0};
	int to[2], from[2];

	if (access(python_path(), X_OK) < 0) {
		print_message("skip: python: there is no %s\n", python_path());
		skip();
	}
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	python.pid = fork();
	if (python.pid == 0) {
		(void)dup2(to[0], 0);
		(void)dup2(from[1], 1);
		(void)execl(python_path(), "python3", "-c", script, NULL);
		_exit(127);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	python.to = fdopen(to[1], "we");
	python.from = fdopen(from[0], "re");
	assert_true(python.pid > 0 && python.to && python.from);
	assert_int_equal(answer(&python), 0);
	return python;
}

static uint64_t collect(struct python *python, int times)
{
	(void)fprintf(python->to, "%d\n", times);
	(void)fflush(python->to);
	return answer(python);
}

static void stop_python(struct python *python)
{
	int status = -1;

	(void)fclose(python->to);
	assert_int_equal(waitpid(python->pid, &status, 0), python->pid);
	(void)fclose(python->from);
	assert_int_equal(status, 0);
}

struct watch {
	const struct harness *h;
	pid_t pid;
	struct nt_rank_probe *probe;
};

static int watch_file(void *data, int fd, const struct stat *st)
{
	struct watch *watch = data;
	nt_autoclose int file = nt_root_path_read(fd, st->st_dev, st->st_ino);

	assert_true(file >= 0);
	return attach_rank_probe(watch->h->attach, file, watch->pid, &watch->probe);
}

/* As the agent does. */
static struct nt_rank_probe *watch_python(const struct harness *h, pid_t pid)
{
	struct watch watch = {.h = h, .pid = pid};

	assert_int_equal(nt_rank_file_find((uint32_t)pid, NT_LIBRARY_PYTHON, watch_file, &watch),
			 0);
	return watch.probe;
}

static void every_collection_of_a_python_is_counted_with_its_time(void **state)
{
	struct harness *h = of_mode(state);
	struct python python = start_python();
	struct nt_rank_probe *probe = watch_python(h, python.pid);
	struct nt_process_counters counters;
	uint64_t took_ns;

	took_ns = collect(&python, COLLECTIONS);
	counters = counters_of(h, python.pid);
	print_message("# %d collections: %llu us by Python's clock, %llu us by ours\n", COLLECTIONS,
		      (unsigned long long)took_ns / 1000,
		      (unsigned long long)counters.bytes[NT_COUNTER_GC] / 1000);
	assert_int_equal(counters.calls[NT_COUNTER_GC], COLLECTIONS);
	assert_in_range(counters.bytes[NT_COUNTER_GC], took_ns / 2, took_ns);
	assert_int_equal(harness_stats(h).unmeasured, 0);
	/* And none when nobody looks any more. */
	nt_rank_probe_free(probe);
	(void)collect(&python, COLLECTIONS);
	assert_int_equal(counters_of(h, python.pid).calls[NT_COUNTER_GC], COLLECTIONS);
	stop_python(&python);
}

static void another_python_of_the_same_file_is_left_alone(void **state)
{
	struct harness *h = of_mode(state);
	struct python python = start_python(), other = start_python();
	struct nt_rank_probe *probe = watch_python(h, python.pid);
	struct nt_process_counters counters;

	(void)collect(&other, COLLECTIONS);
	(void)collect(&python, 1);
	assert_false(nt_attach_counters(h->attach, (uint32_t)other.pid, &counters));
	assert_int_equal(counters_of(h, python.pid).calls[NT_COUNTER_GC], 1);
	nt_rank_probe_free(probe);
	stop_python(&other);
	stop_python(&python);
}

static void two_of_one_file_are_counted_each_by_itself(void **state)
{
	struct harness *h = of_mode(state);
	struct python python = start_python(), other = start_python();
	struct nt_rank_probe *probe = watch_python(h, python.pid),
			     *second = watch_python(h, other.pid);

	(void)collect(&other, 2);
	(void)collect(&python, 1);
	assert_int_equal(counters_of(h, other.pid).calls[NT_COUNTER_GC], 2);
	assert_int_equal(counters_of(h, python.pid).calls[NT_COUNTER_GC], 1);
	nt_rank_probe_free(probe);
	(void)collect(&other, 2);
	assert_int_equal(counters_of(h, other.pid).calls[NT_COUNTER_GC], 4);
	nt_rank_probe_free(second);
	stop_python(&other);
	stop_python(&python);
}

/* As the workers of a data loader. It has the breakpoints of its parent, and goes on. */
static void what_it_forks_is_not_counted(void **state)
{
	struct harness *h = of_mode(state);
	struct python python = start_python();
	struct nt_rank_probe *probe = watch_python(h, python.pid);

	(void)collect(&python, -COLLECTIONS);
	assert_int_equal(counters_of(h, python.pid).calls[NT_COUNTER_GC], 0);
	(void)collect(&python, 1);
	assert_int_equal(counters_of(h, python.pid).calls[NT_COUNTER_GC], 1);
	assert_int_equal(harness_stats(h).unmeasured, 0);
	nt_rank_probe_free(probe);
	stop_python(&python);
}

static void a_process_that_ended_can_be_let_go(void **state)
{
	struct harness *h = of_mode(state);
	struct python python = start_python();
	struct nt_rank_probe *probe = watch_python(h, python.pid);

	stop_python(&python);
	nt_rank_probe_free(probe);
}

static bool is_program(uint32_t pid, const char *name)
{
	char path[64], target[PATH_MAX];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	return strcmp(strrchr(target, '/') + 1, name) == 0;
}

static void a_program_without_python_has_no_interpreter(void **state)
{
	const struct harness *h = of_mode(state);
	struct watch watch = {.h = h, .pid = fork()};

	if (watch.pid == 0) {
		(void)execl("/bin/sleep", "sleep", "60", NULL);
		_exit(127);
	}
	assert_true(watch.pid > 0);
	while (!is_program((uint32_t)watch.pid, "sleep") && kill(watch.pid, 0) == 0)
		(void)sched_yield();
	assert_int_equal(
		nt_rank_file_find((uint32_t)watch.pid, NT_LIBRARY_PYTHON, watch_file, &watch),
		-ENOENT);
	assert_null(watch.probe);
	assert_int_equal(kill(watch.pid, SIGKILL), 0);
	assert_int_equal(waitpid(watch.pid, NULL, 0), watch.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_collection_of_a_python_is_counted_with_its_time),
		TEST(another_python_of_the_same_file_is_left_alone),
		TEST(two_of_one_file_are_counted_each_by_itself),
		TEST(what_it_forks_is_not_counted),
		TEST(a_process_that_ended_can_be_let_go),
		TEST(a_program_without_python_has_no_interpreter),
	};
	int r;

	if (!stub_begin())
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
