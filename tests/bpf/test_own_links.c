/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Links of single processes beside those that all share: what one process calls too often goes, and its
 * neighbour on the same file loses no call and gets none twice, whenever links come and go.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/bpf/own_links.h"

static void call_in_child(const struct child *child, uint32_t calls)
{
	uint32_t answer;

	assert_int_equal(write(child->command[1], &calls, sizeof(calls)), sizeof(calls));
	assert_int_equal(read(child->answer[0], &answer, sizeof(answer)), sizeof(answer));
}

static atomic_bool neighbour_ends;

static void *call_without_end(void *data)
{
	uint64_t mine[STUB_ARGS] = {0};
	const struct timespec pause = {.tv_nsec = 20000};

	while (!atomic_load(&neighbour_ends)) {
		(void)stub_call(&nccl, "ncclAllReduce", mine);
		mine[SEQUENCE]++;
		(void)nanosleep(&pause, NULL);
	}
	return data;
}

static void a_neighbour_loses_no_call_and_gets_none_twice(void **state)
{
	struct nt_governor_plan plan = hot_plan(), none = {.permille = NT_GOVERNOR_WHOLE,
							   .period_ns = 2 * NT_SECOND,
							   .version = 2};
	struct world world;
	struct child child;
	pthread_t neighbour;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, getpid());
	use(&world, child.pid);
	atomic_store(&neighbour_ends, false);
	assert_int_equal(pthread_create(&neighbour, NULL, call_without_end, NULL), 0);
	for (int i = 0; i < 10; i++)
		turn(&world);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	wait_for_split(&world, 1);
	/* The hot function of the other is detached, its neighbour's is not. */
	world.others_taken = world.others_counted = 0;
	call_in_child(&child, 1000);
	turn(&world);
	turn(&world);
	assert_int_equal(world.others_taken + world.others_counted, 0);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &none);
	turn(&world);
	later_ns = 60 * NT_SECOND;
	for (int i = 0; i < 3000 && stats_of(&world).files_split; i++)
		turn(&world);
	assert_int_equal(stats_of(&world).files_split, 0);
	assert_int_equal(stats_of(&world).joins, 1);
	call_in_child(&child, 5);
	atomic_store(&neighbour_ends, true);
	assert_int_equal(pthread_join(neighbour, NULL), 0);
	turn(&world);
	turn(&world);
	assert_int_equal(world.others_taken, 5);
	assert_true(world.taken > 100);
	print_message("# taken %llu repeated %llu left out %llu missed %u\n",
		      (unsigned long long)world.taken, (unsigned long long)world.repeated,
		      (unsigned long long)world.left_out, world.missed);
	assert_int_equal(world.repeated, 0);
	assert_int_equal(world.left_out, 0);
	assert_int_equal(world.missed, 0);
	stop_child(&child);
	end(&world);
}

static void a_look_sees_a_hot_function_and_its_calls_are_only_counted(void **state)
{
	struct nt_governor_plan plan = hot_plan();
	struct world world;
	struct child child;
	uint64_t until_ns;
	uint32_t looked = 0;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	wait_for_split(&world, 1);
	world.others_taken = world.others_counted = 0;
	later_ns = 11 * NT_SECOND;
	until_ns = nt_clock_boot_ns() + WAIT_S * NT_SECOND;
	/* On a busy machine a look of 10 ms may pass between two calls: then the next one is due. */
	while ((!world.looked || !world.others_counted) && nt_clock_boot_ns() < until_ns) {
		call_in_child(&child, 2000);
		turn_within(&world, 0);
		if (world.looked > looked)
			later_ns += 11 * NT_SECOND;
		looked = world.looked;
	}
	turn(&world);
	assert_true(world.looked > 0);
	assert_true(world.others_counted > 0);
	assert_int_equal(world.others_taken, 0);
	stop_child(&child);
	end(&world);
}

static atomic_bool blocks, is_blocked;

static void block(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	atomic_store(&is_blocked, true);
	while (atomic_load(&blocks))
		(void)nanosleep(&pause, NULL);
	atomic_store(&is_blocked, false);
}

static void *call_barrier(void *data)
{
	(void)stub_call(&mpi, "MPI_Barrier", args);
	return data;
}

static void note_inside(void *data, uint32_t pid, uint32_t tid, uint16_t row,
			const struct nt_inside *inside)
{
	struct world *world = data;

	(void)tid;
	nt_own_links_inside(world->own, pid, row, inside->entry_ns, world->look_ns);
}

/* For so long, and with a look at all threads at every turn. */
static void turn_and_look(struct world *world, uint64_t ns)
{
	uint64_t until_ns = nt_clock_boot_ns() + ns;

	while (nt_clock_boot_ns() < until_ns) {
		world->look_ns = nt_clock_boot_ns();
		assert_int_equal(nt_attach_inside(world->harness.attach, note_inside, NULL, world),
				 0);
		nt_own_links_looked(world->own, world->look_ns);
		turn(world);
	}
}

/* later: the clock goes so much further while the neighbour is inside. Returns events of its barrier. */
static uint64_t split_while_inside(struct world *world, uint64_t later)
{
	struct nt_governor_plan plan = hot_plan();
	struct child child;
	pthread_t neighbour;

	start_child(&child);
	begin(world);
	assert_true(harness_attach(&world->harness, &mpi, NT_LIBRARY_MPI, UINT32_MAX) > 0);
	nt_own_links_use(world->own, (uint32_t)getpid(), 1, mpi.st.st_dev, mpi.st.st_ino);
	nt_own_links_use(world->own, (uint32_t)child.pid, 1, mpi.st.st_dev, mpi.st.st_ino);
	atomic_store(&blocks, true);
	*mpi.hook = block;
	assert_int_equal(pthread_create(&neighbour, NULL, call_barrier, NULL), 0);
	while (!atomic_load(&is_blocked))
		turn_and_look(world, NT_MILLISECOND);
	nt_own_links_plan(world->own, (uint32_t)child.pid, &plan);
	for (int i = 0; i < 3000 && !stats_of(world).splits; i++)
		turn_and_look(world, NT_MILLISECOND);
	turn_and_look(world, NT_SECOND);
	later_ns = later;
	turn_and_look(world, NT_SECOND);
	atomic_store(&blocks, false);
	assert_int_equal(pthread_join(neighbour, NULL), 0);
	*mpi.hook = NULL;
	turn(world);
	stop_child(&child);
	return world->barriers;
}

static void a_call_that_lasts_while_its_file_is_split_is_seen(void **state)
{
	struct world world;

	(void)state;
	assert_int_equal(split_while_inside(&world, 0), 1);
	assert_int_equal(world.missed, 0);
	end(&world);
}

static void a_call_that_lasts_a_minute_longer_is_missed(void **state)
{
	struct world world;

	(void)state;
	assert_int_equal(split_while_inside(&world, 61 * NT_SECOND), 0);
	assert_int_equal(world.missed, 1);
	end(&world);
}

static void between_slices_nothing_of_a_process_is_attached(void **state)
{
	struct nt_governor_plan plan = {.governed = true,
					.permille = 20, /* of a second: 20 ms */
					.period_ns = NT_SECOND,
					.version = 1};
	struct world world;
	struct child child;
	uint64_t until_ns, unobserved_ns, start_ns;

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	start_ns = nt_clock_boot_ns();
	until_ns = start_ns + WAIT_S * NT_SECOND;
	while ((world.paused < 3 || world.resumed < 2) && nt_clock_boot_ns() < until_ns)
		turn(&world);
	assert_true(world.paused >= 3);
	assert_true(world.resumed >= 2);
	until_ns = nt_clock_boot_ns();
	unobserved_ns =
		until_ns - nt_own_links_observed_ns(world.own, (uint32_t)child.pid, until_ns);
	assert_true(unobserved_ns > 0 && unobserved_ns < until_ns - start_ns);
	stop_child(&child);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_neighbour_loses_no_call_and_gets_none_twice),
		cmocka_unit_test(a_look_sees_a_hot_function_and_its_calls_are_only_counted),
		cmocka_unit_test(a_call_that_lasts_while_its_file_is_split_is_seen),
		cmocka_unit_test(a_call_that_lasts_a_minute_longer_is_missed),
		cmocka_unit_test(between_slices_nothing_of_a_process_is_attached),
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
