/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that processes map: deleted, replaced, changed, in other namespaces, too many. */
#include "tests/bpf/discover.h"

static char copy_path[2 * PATH_MAX];

static void map_copy(int in, int out)
{
	(void)in;
	(void)out;
	if (!dlopen(copy_path, RTLD_NOW))
		_exit(1);
}

static void make_copy(const char *name)
{
	const char *const argv[] = {"cp", nccl.path, copy_path, NULL};

	(void)snprintf(copy_path, sizeof(copy_path), "%s/%s", stub_dir, name);
	assert_int_equal(stub_run(argv), 0);
}

static void a_library_that_was_deleted_is_reached_through_its_mapping(void **state)
{
	const struct note *n;
	struct child *child;

	(void)state;
	make_copy("libnccl.so.2.1.1");
	child = spawn(map_copy);
	step(child);
	assert_int_equal(unlink(copy_path), 0);
	start(NULL);
	n = find(child->pid, false);
	assert_non_null(n);
	assert_int_equal(n->links, 0);
	assert_string_equal(n->name, copy_path);
}

/* As a new container image: the file at that path is another one by now. */
static void a_library_that_was_replaced_is_reached_through_its_mapping(void **state)
{
	char other[2 * PATH_MAX];
	const struct note *n;
	struct child *child;

	(void)state;
	make_copy("libnccl.so.2.1.2");
	child = spawn(map_copy);
	(void)snprintf(other, sizeof(other), "%s", copy_path);
	step(child);
	make_copy("replacement");
	assert_int_equal(rename(copy_path, other), 0);
	start(NULL);
	n = find(child->pid, false);
	assert_non_null(n);
	assert_int_equal(n->links, 0);
	assert_int_equal(unlink(other), 0);
}

static void map_in_namespace(int in, int out)
{
	const char *const argv[] = {"cp", nccl.path, "/mnt/libnccl.so.2.7", NULL};

	(void)in;
	(void)out;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/mnt", "tmpfs", 0, NULL) < 0 || stub_run(argv) != 0 ||
	    !dlopen("/mnt/libnccl.so.2.7", RTLD_NOW))
		_exit(1);
}

static void a_library_in_another_mount_namespace_is_reached_through_the_process(void **state)
{
	struct child *child = spawn(map_in_namespace);
	const struct note *n;

	(void)state;
	start(NULL);
	step(child);
	n = wait_for(child->pid, false);
	assert_non_null(n);
	assert_string_equal(n->name, "/mnt/libnccl.so.2.7");
	assert_true(access("/mnt/libnccl.so.2.7", F_OK) < 0);
	assert_int_equal(n->links, 1);
}

static char program_path[2 * PATH_MAX];

static void run_program(int in, int out)
{
	(void)in;
	(void)out;
	(void)execl(program_path, program_path, (char *)NULL);
	_exit(1);
}

static bool make_program(void)
{
	char command[3 * PATH_MAX];
	FILE *compiler;

	(void)snprintf(program_path, sizeof(program_path), "%s/static-nccl", stub_dir);
	(void)snprintf(command, sizeof(command), "cc -w -x c - -o '%s'", program_path);
	if (access(program_path, X_OK) == 0)
		return true;
	compiler = popen(command, "w");
	if (!compiler)
		return false;
	(void)fputs("static int ncclCommInitRank(void) { return 1; }\n"
		    "int main(void) { pause(); return ncclCommInitRank(); }\n",
		    compiler);
	return pclose(compiler) == 0;
}

static void map_and_run_program(int in, int out)
{
	map_nccl(in, out);
	next(in, out);
	run_program(in, out);
}

static void a_process_that_becomes_such_a_program_begins_anew(void **state)
{
	struct child *child = spawn(map_and_run_program);
	char byte = 0;

	(void)state;
	start(NULL);
	step(child);
	assert_non_null(wait_for(child->pid, false));
	assert_int_equal(write(child->to, &byte, 1), 1);
	assert_non_null(wait_for(child->pid, true));
	/* What is reported meanwhile does not matter: the last report is of the program. */
	for (int ms = 0; ms < PATIENCE_MS && !note[notes - 1].executable; ms += 20)
		run_for(20);
	assert_int_equal(note[notes - 1].pid, child->pid);
	assert_true(note[notes - 1].executable && !note[notes - 1].exited);
	assert_int_equal(kill(child->pid, SIGKILL), 0);
}

static void a_program_that_holds_a_library_is_found_by_its_symbols(void **state)
{
	const struct note *n;
	struct child *child;
	char byte = 0;

	(void)state;
	child = spawn(run_program);
	start(NULL);
	assert_int_equal(write(child->to, &byte, 1), 1);
	n = wait_for(child->pid, false);
	assert_non_null(n);
	assert_true(n->executable);
	assert_int_equal(n->library, NT_LIBRARY_UNKNOWN);
	assert_string_equal(n->name, program_path);
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	assert_non_null(wait_for(child->pid, true));
}

static void map_many(int in, int out)
{
	char path[2 * PATH_MAX + 16];

	(void)in;
	(void)out;
	for (int i = 0; i < 40; i++) {
		const char *const argv[] = {"cp", nccl.path, path, NULL};

		(void)snprintf(path, sizeof(path), "%s/libnccl.so.9.%d", stub_dir, i);
		if (stub_run(argv) != 0 || !dlopen(path, RTLD_NOW) || unlink(path) < 0)
			_exit(1);
	}
}

static void the_files_of_one_process_are_capped_and_counted(void **state)
{
	struct child *child = spawn(map_many);

	(void)state;
	step(child);
	start(NULL);
	assert_int_equal(count(child->pid, false), 32);
	assert_int_equal(stats().over_cap, 8);
}

static void map_and_change(int in, int out)
{
	for (int i = 0; i < 12; i++) {
		int fd = open(copy_path, O_RDONLY | O_CLOEXEC);
		void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (fd < 0 || at == MAP_FAILED || chmod(copy_path, i % 2 ? 0755 : 0644) < 0)
			_exit(1);
		next(in, out);
		(void)munmap(at, 4096);
		(void)close(fd);
	}
}

static void a_file_that_is_changed_again_and_again_is_refused_and_counted(void **state)
{
	struct child *child;

	(void)state;
	make_copy("libnccl.so.2.9");
	child = spawn(map_and_change);
	start(NULL);
	for (int i = 0; i < 12; i++) {
		step(child);
		for (int ms = 0; ms < PATIENCE_MS && !nt_discover_is_idle(discover); ms += 20)
			run_for(20);
		run_for(20);
	}
	assert_int_equal(stats().refused[NT_REFUSED_CHANGES], 1);
	assert_int_equal(refusals_of_changes, 1);
	(void)unlink(copy_path);
}

#define WITH(test) cmocka_unit_test_teardown(test, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_library_that_was_deleted_is_reached_through_its_mapping),
		WITH(a_library_that_was_replaced_is_reached_through_its_mapping),
		WITH(a_library_in_another_mount_namespace_is_reached_through_the_process),
		WITH(a_process_that_becomes_such_a_program_begins_anew),
		WITH(a_program_that_holds_a_library_is_found_by_its_symbols),
		WITH(the_files_of_one_process_are_capped_and_counted),
		WITH(a_file_that_is_changed_again_and_again_is_refused_and_counted),
	};
	int r;

	/* The library is made, and not kept: this process shall not map it. */
	if (!stub_begin() || !make_program() || !stub_open(&nccl, NT_LIBRARY_NCCL) ||
	    dlclose(nccl.handle) != 0)
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
	r = cmocka_run_group_tests(tests, NULL, NULL);
	nt_quarantine_free(quarantine);
	stub_clean();
	return r;
}
