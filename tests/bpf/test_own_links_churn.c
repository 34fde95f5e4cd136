/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links of single processes while processes, files and links come, go and fail. */
#include <sys/resource.h>

#include "tests/bpf/own_links.h"

static void a_process_that_ends_takes_its_links_along(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct world world;
	struct child child;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, getpid());
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	for (int i = 0; i < 3; i++)
		turn(&world);
	stop_child(&child);
	nt_own_links_end(world.own, (uint32_t)child.pid, 1);
	for (int i = 0; i < 20; i++)
		turn(&world);
	assert_int_equal(stats_of(&world).processes, 1);
	later_ns = 60 * NT_SECOND;
	for (int i = 0; i < 3000 && stats_of(&world).files_split; i++)
		turn(&world);
	assert_int_equal(stats_of(&world).files_split, 0);
	assert_int_equal(stats_of(&world).link_sets, 0);
	end(&world);
}

/* As the agent does when a file has to make room for another: processes still map it. */
static void drop(struct world *world)
{
	nt_own_links_drop(world->own, nccl.st.st_dev, nccl.st.st_ino);
	nt_attach_drop(world->harness.attach, nccl.st.st_dev, nccl.st.st_ino);
}

static void a_file_can_go_at_any_time_while_processes_use_it(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct child child;
	struct world world;

	(void)state;
	start_child(&child);
	for (int turns = 0; turns < 5; turns++) {
		begin(&world);
		use(&world, getpid());
		use(&world, child.pid);
		nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
		if (turns == 4)
			wait_for_split(&world, 1);
		for (int i = 0; i < turns; i++)
			turn(&world);
		drop(&world);
		assert_int_equal(stats_of(&world).files_split, 0);
		assert_int_equal(stats_of(&world).link_sets, 0);
		assert_int_equal(stats_of(&world).processes, 2);
		for (int i = 0; i < 10; i++)
			turn(&world);
		assert_int_equal(stats_of(&world).files_split, 0);
		nt_own_links_end(world.own, (uint32_t)getpid(), 1);
		end(&world);
	}
	stop_child(&child);
}

static void a_file_that_went_is_split_again_when_it_is_back(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct world world;
	struct child child;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	wait_for_split(&world, 1);
	drop(&world);
	for (int i = 0; i < 10; i++)
		turn(&world);
	assert_true(harness_attach(&world.harness, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
	use(&world, child.pid);
	wait_for_split(&world, 1);
	assert_int_equal(stats_of(&world).splits, 2);
	assert_int_equal(stats_of(&world).link_sets, 1);
	/* As on an eviction: the process goes on, and is found again. */
	nt_own_links_end(world.own, (uint32_t)child.pid, 1);
	assert_int_equal(stats_of(&world).link_sets, 0);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	for (int i = 0; i < 3000 && !stats_of(&world).link_sets; i++)
		turn(&world);
	assert_int_equal(stats_of(&world).link_sets, 1);
	stop_child(&child);
	end(&world);
}

static struct rlimit descriptors;

/* So many more descriptors can be opened. */
static void allow_descriptors(int more)
{
	struct rlimit limit = descriptors;
	int free_fd = dup(STDERR_FILENO);

	assert_true(free_fd >= 0);
	assert_int_equal(close(free_fd), 0);
	limit.rlim_cur = (rlim_t)(free_fd + more);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* more: 0: the request is not even made; 1: the kernel makes no link. */
static void refuse_links(int more)
{
	struct nt_governor_plan plan = hot_plan();
	struct nt_own_links_stats stats;
	struct world world;
	struct child child;
	uint64_t before_ns, after_ns;

	start_child(&child);
	begin(&world);
	use(&world, child.pid);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	allow_descriptors(more);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	for (int i = 0; i < 3000 && !world.paused; i++)
		turn(&world);
	stats = stats_of(&world);
	/* A busy machine makes the links late, and so refuses them late. */
	for (int i = 0; i < 3000 && (i < 10 || !(more ? stats.failed : stats.put_off)); i++) {
		turn(&world);
		stats = stats_of(&world);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
	assert_int_equal(stats.link_sets, 0);
	assert_true(more ? stats.failed > 0 : stats.put_off > 0);
	assert_int_equal(world.paused, 1);
	assert_int_equal(world.resumed, 0);
	before_ns = nt_clock_boot_ns();
	after_ns = before_ns + NT_SECOND;
	assert_int_equal(nt_own_links_observed_ns(world.own, (uint32_t)child.pid, before_ns),
			 nt_own_links_observed_ns(world.own, (uint32_t)child.pid, after_ns));
	/* When there are descriptors again it is observed. */
	for (int i = 0; i < 3000 && !world.resumed; i++)
		turn(&world);
	assert_int_equal(world.resumed, 1);
	assert_int_equal(stats_of(&world).link_sets, 1);
	stop_child(&child);
	end(&world);
}

static void a_process_whose_links_are_put_off_is_not_observed(void **state)
{
	(void)state;
	refuse_links(0);
}

static void a_process_whose_links_the_kernel_does_not_make_is_not_observed(void **state)
{
	(void)state;
	refuse_links(1);
}

static void while_links_are_made_anew_a_process_is_not_observed(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct world world;
	struct child child;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	wait_for_split(&world, 1);
	world.paused = world.resumed = 0;
	plan.version++;
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	turn(&world);
	assert_int_equal(world.paused, 1);
	for (int i = 0; i < 3000 && !world.resumed; i++)
		turn(&world);
	assert_int_equal(world.resumed, 1);
	stop_child(&child);
	end(&world);
}

static void processes_that_come_do_not_put_a_split_off(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct world world;
	struct child child;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, getpid());
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	for (pid_t pid = PID_MAX; pid < PID_MAX + 200 && !stats_of(&world).splits; pid++) {
		use(&world, pid);
		turn(&world);
		use(&world, pid + 1000); /* of which no result can be there */
		nt_own_links_tick(world.own, nt_clock_boot_ns(), nt_clock_real_ns());
	}
	assert_int_equal(stats_of(&world).splits, 1);
	stop_child(&child);
	end(&world);
}

static void a_split_is_not_put_off_for_long(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct world world;
	struct child child;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, getpid());
	use(&world, child.pid);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	allow_descriptors(0);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	for (int i = 0; i < 10; i++)
		turn(&world);
	assert_int_equal(stats_of(&world).splits, 0);
	later_ns = 6 * NT_SECOND;
	turn(&world);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
	assert_int_equal(stats_of(&world).splits, 1);
	assert_int_equal(world.paused, 2);
	stop_child(&child);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_ends_takes_its_links_along),
		cmocka_unit_test(a_file_can_go_at_any_time_while_processes_use_it),
		cmocka_unit_test(a_file_that_went_is_split_again_when_it_is_back),
		cmocka_unit_test(a_process_whose_links_are_put_off_is_not_observed),
		cmocka_unit_test(a_process_whose_links_the_kernel_does_not_make_is_not_observed),
		cmocka_unit_test(processes_that_come_do_not_put_a_split_off),
		cmocka_unit_test(a_split_is_not_put_off_for_long),
		cmocka_unit_test(while_links_are_made_anew_a_process_is_not_observed),
	};

	if (!harness_can_load())
		return EXIT_SKIP;
	if (!harness_has_mode(NT_ATTACH_MULTI)) {
		printf("skip: multi: this kernel has no multi links\n");
		return EXIT_SKIP;
	}
	if (!stub_open(&nccl, NT_LIBRARY_NCCL) || !stub_open(&mpi, NT_LIBRARY_MPI))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
