/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Real processes that map stand-in libraries in all the ways that there are: before and after the
 * agent, forked, deleted, in a mount namespace, linked statically, moved between cgroups.
 */
#include "tests/bpf/discover.h"

/* ---- tests -------------------------------------------------------------------------------- */

static void a_process_that_ran_before_is_found_late(void **state)
{
	struct child *child = spawn(map_nccl);
	const struct note *n;

	(void)state;
	step(child);
	start(NULL);
	n = find(child->pid, false);
	assert_non_null(n);
	assert_true(n->late);
	assert_false(n->executable);
	assert_int_equal(n->library, NT_LIBRARY_NCCL);
	assert_string_equal(n->name, nccl.path);
}

static void a_process_that_maps_a_library_later_is_found_once(void **state)
{
	struct child *child = spawn(map_nccl);
	const struct note *n;

	(void)state;
	start(NULL);
	assert_null(find(child->pid, false));
	step(child);
	n = wait_for(child->pid, false);
	assert_non_null(n);
	assert_false(n->late);
	assert_true(n->start_ns > 0 && n->start_ns <= nt_clock_boot_ns());
	run_for(100);
	assert_int_equal(count(child->pid, false), 1);
}

static void its_end_is_told_once(void **state)
{
	struct child *child = spawn(map_nccl);
	pid_t pid = child->pid;

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(pid, false));
	finish(child);
	assert_non_null(wait_for(pid, true));
	run_for(100);
	assert_int_equal(count(pid, true), 1);
	assert_int_equal(find(pid, true)->start_ns, find(pid, false)->start_ns);
}

/* Not reaped: a zombie has ended all the same. */
static void a_killed_process_has_ended_before_it_is_reaped(void **state)
{
	struct child *child = spawn(map_nccl);

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(child->pid, false));
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	assert_non_null(wait_for(child->pid, true));
}

static void map_nothing_of_interest(int in, int out)
{
	(void)in;
	(void)out;
	if (!dlopen("libm.so.6", RTLD_NOW))
		_exit(1);
}

static void a_process_without_such_a_library_is_never_told(void **state)
{
	struct child *child = spawn(map_nothing_of_interest);
	pid_t pid = child->pid;

	(void)state;
	start(NULL);
	step(child);
	finish(child);
	run_for(200);
	assert_null(find(pid, false));
	assert_null(find(pid, true));
}

static pid_t *grandchild; /* shared memory */

static void map_and_fork(int in, int out)
{
	pid_t pid;

	map_nccl(in, out);
	next(in, out);
	pid = fork();
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	*grandchild = pid;
	next(in, out);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void a_forked_child_has_its_parents_libraries(void **state)
{
	struct child *child = spawn(map_and_fork);

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(child->pid, false));
	step(child);
	assert_non_null(wait_for(*grandchild, false));
	step(child);
	assert_non_null(wait_for(*grandchild, true));
	assert_null(find(child->pid, true));
}

static void map_and_exec(int in, int out)
{
	map_nccl(in, out);
	next(in, out);
	(void)execlp("sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void a_process_that_runs_another_program_has_ended(void **state)
{
	struct child *child = spawn(map_and_exec);
	char byte = 0;

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(child->pid, false));
	assert_int_equal(write(child->to, &byte, 1), 1);
	assert_non_null(wait_for(child->pid, true));
	assert_int_equal(kill(child->pid, SIGKILL), 0);
}

static void *return_soon(void *data)
{
	return data;
}

static void *stay(void *data)
{
	(void)pause();
	return data;
}

static void map_and_thread(int in, int out)
{
	pthread_t thread;

	map_nccl(in, out);
	next(in, out);
	if (pthread_create(&thread, NULL, return_soon, NULL) != 0 ||
	    pthread_join(thread, NULL) != 0 || pthread_create(&thread, NULL, stay, NULL) != 0)
		_exit(1);
	next(in, out);
	if (write(out, "", 1) == 1)
		pthread_exit(NULL); /* the first thread ends, the process does not */
}

static void the_end_of_a_thread_is_not_that_of_its_process(void **state)
{
	struct child *child = spawn(map_and_thread);

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(child->pid, false));
	step(child);
	run_for(200);
	assert_null(find(child->pid, true));
	step(child);
	run_for(1500);
	assert_null(find(child->pid, true));
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	assert_non_null(wait_for(child->pid, true));
}

static void a_scan_of_many_processes_goes_on_over_several_runs(void **state)
{
	enum { MANY = 600 };
	static pid_t pid[MANY];
	struct child *child = spawn(map_nccl);
	int runs = 0;

	(void)state;
	step(child);
	for (int i = 0; i < MANY; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
	}
	notes = 0;
	assert_int_equal(open_discover(NULL), 0);
	assert_false(nt_discover_is_complete(discover));
	for (; !runs || (runs < 100000 && nt_discover_is_scanning(discover)); runs++) {
		assert_int_equal(nt_discover_run(discover), 0);
		if (runs == 0) {
			assert_true(nt_discover_is_scanning(discover));
			assert_false(nt_discover_is_complete(discover));
			assert_false(nt_discover_is_idle(discover));
		}
	}
	for (int i = 0; i < MANY; i++) {
		(void)kill(pid[i], SIGKILL);
		(void)waitpid(pid[i], NULL, 0);
	}
	assert_true(runs > MANY / 256);
	assert_non_null(wait_for(child->pid, false));
	assert_true(find(child->pid, false)->late);
}

static void map_too_often(int in, int out)
{
	int fd = open(nccl.path, O_RDONLY | O_CLOEXEC);

	(void)in;
	(void)out;
	for (int i = 0; fd >= 0 && i < 20000; i++) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (at == MAP_FAILED || munmap(at, 4096) < 0)
			_exit(1);
	}
	(void)close(fd);
	if (!dlopen(nccl.path, RTLD_NOW))
		_exit(1);
}

static void lost_records_are_counted_and_made_up_for_by_a_scan(void **state)
{
	struct child *child = spawn(map_too_often);

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(child->pid, false));
	for (int ms = 0; ms < PATIENCE_MS && stats().scans < 2; ms += 20)
		run_for(20);
	assert_true(stats().lost_records > 0);
	assert_true(stats().scans >= 2);
}

/* ---- cgroups ------------------------------------------------------------------------------ */

static const char *const cgroup_mounts[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer",
					    "/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
static char group[2 * PATH_MAX], inner[2 * PATH_MAX + 8];

static bool move_to(const char *directory, pid_t pid)
{
	char path[2 * PATH_MAX + 32], text[16];
	int len = snprintf(text, sizeof(text), "%d", (int)pid), fd;
	bool ok;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, (size_t)len) == len;
	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* A directory that processes can be moved to, and one within; false: none can be made here. */
static bool make_group(const char *mount_point)
{
	(void)snprintf(group, sizeof(group), "%s/nt-test-%d", mount_point, getpid());
	(void)snprintf(inner, sizeof(inner), "%s/inner", group);
	if (mkdir(group, 0755) < 0)
		return false;
	if (mkdir(inner, 0755) == 0)
		return true;
	(void)rmdir(group);
	return false;
}

static void remove_group(void)
{
	/* Members leave a moment after they have ended. */
	for (int i = 0; i < 100 && rmdir(inner) < 0 && errno == EBUSY; i++)
		run_for(10);
	for (int i = 0; i < 100 && rmdir(group) < 0 && errno == EBUSY; i++)
		run_for(10);
}

static void only_processes_of_the_cgroup_filter_are_told(void **state)
{
	bool made = false;

	(void)state;
	for (size_t i = 0; i < sizeof(cgroup_mounts) / sizeof(cgroup_mounts[0]) && !made; i++) {
		struct child *in, *out, *moved;

		if (!make_group(cgroup_mounts[i]))
			continue;
		in = spawn(map_nccl);
		out = spawn(map_nccl);
		moved = spawn(map_nccl);
		if (!move_to(inner, in->pid)) {
			remove_group();
			continue;
		}
		made = true;
		start(group);
		step(in);
		step(out);
		step(moved);
		assert_non_null(wait_for(in->pid, false));
		run_for(100);
		assert_null(find(out->pid, false));
		assert_null(find(moved->pid, false));
		assert_true(move_to(inner, moved->pid));
		assert_non_null(wait_for(moved->pid, false));
		assert_null(find(out->pid, false));
		finish(in);
		finish(moved);
		finish(out);
		run_for(100);
		remove_group();
	}
	if (!made) {
		print_message("skip: cgroup: none can be made here\n");
		skip();
	}
}

#define WITH(test) cmocka_unit_test_teardown(test, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_process_that_ran_before_is_found_late),
		WITH(a_process_that_maps_a_library_later_is_found_once),
		WITH(its_end_is_told_once),
		WITH(a_killed_process_has_ended_before_it_is_reaped),
		WITH(a_process_without_such_a_library_is_never_told),
		WITH(a_forked_child_has_its_parents_libraries),
		WITH(a_process_that_runs_another_program_has_ended),
		WITH(the_end_of_a_thread_is_not_that_of_its_process),
		WITH(a_scan_of_many_processes_goes_on_over_several_runs),
		WITH(lost_records_are_counted_and_made_up_for_by_a_scan),
		WITH(only_processes_of_the_cgroup_filter_are_told),
	};
	int r;

	/* The library is made, and not kept: this process shall not map it. */
	if (!stub_begin() || !stub_open(&nccl, NT_LIBRARY_NCCL) || dlclose(nccl.handle) != 0)
		return 1;
	if (stub_only())
		return 0;
	if (nt_quarantine_new(&quarantine) < 0)
		return 1;
	r = open_discover(NULL);
	if (r < 0) {
		printf("skip: bpf: mappings of other processes cannot be watched here\n");
		stub_clean();
		return EXIT_SKIP;
	}
	nt_discover_free(discover);
	discover = NULL;
	grandchild = mmap(NULL, sizeof(*grandchild), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (grandchild == MAP_FAILED)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	nt_quarantine_free(quarantine);
	stub_clean();
	return r;
}
