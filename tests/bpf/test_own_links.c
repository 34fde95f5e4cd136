/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Links of single processes beside those that all share: what one process calls too often goes, and its
 * neighbour on the same file loses no call and gets none twice, whenever links come and go.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/linker.h"
#include "agent/own_links.h"
#include "tests/bpf/harness.h"

enum {
	WAIT_S = 60,
	SEQUENCE = 2, /* the word that numbers the neighbour's calls */
	SEEN_MAX = 1 << 20,
	PID_MAX = 1 << 22, /* no process has this number or a larger one */
};

static struct stub nccl, mpi;
static uint64_t args[STUB_ARGS];

struct world {
	struct harness harness;
	struct nt_linker *linker;
	struct nt_own_links *own;
	/* The neighbour's calls, as judged. */
	uint64_t next, repeated, left_out, taken;
	uint64_t others_taken, others_counted;
	uint64_t barriers; /* of the neighbour, that were left */
	uint64_t look_ns;
	uint32_t paused, resumed, missed, looked;
};

/* ---- the other process ----------------------------------------------------------------------- */

struct child {
	pid_t pid;
	int command[2], answer[2];
};

static void start_child(struct child *child)
{
	assert_int_equal(pipe(child->command), 0);
	assert_int_equal(pipe(child->answer), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		uint32_t calls;

		(void)close(child->command[1]);
		while (read(child->command[0], &calls, sizeof(calls)) == sizeof(calls)) {
			for (uint32_t i = 0; i < calls; i++)
				(void)stub_call(&nccl, "ncclAllReduce", args);
			(void)stub_call(&nccl, "ncclGroupStart", args);
			(void)!write(child->answer[1], &calls, sizeof(calls));
		}
		_exit(0);
	}
	(void)close(child->command[0]);
}

static void call_in_child(const struct child *child, uint32_t calls)
{
	uint32_t answer;

	assert_int_equal(write(child->command[1], &calls, sizeof(calls)), sizeof(calls));
	assert_int_equal(read(child->answer[0], &answer, sizeof(answer)), sizeof(answer));
}

static void stop_child(struct child *child)
{
	int status;

	(void)close(child->command[1]);
	(void)close(child->answer[0]);
	(void)close(child->answer[1]);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
}

/* ---- the neighbour: a thread of this process -------------------------------------------------- */

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

/* ---- the agent's part ------------------------------------------------------------------------- */

static void on_paused(void *data, uint32_t pid, uint64_t boot_ns)
{
	(void)pid;
	(void)boot_ns;
	((struct world *)data)->paused++;
}

static void on_resumed(void *data, uint32_t pid, uint64_t boot_ns)
{
	(void)pid;
	(void)boot_ns;
	((struct world *)data)->resumed++;
}

static void on_missed(void *data, uint32_t pid)
{
	((struct world *)data)->missed += pid == (uint32_t)getpid();
}

static void on_looked(void *data, uint32_t pid, uint64_t look_ns)
{
	(void)pid;
	assert_true(look_ns >= 10 * NT_MILLISECOND);
	((struct world *)data)->looked++;
}

static void take_call(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct world *world = data;
	enum nt_own_links_verdict verdict = nt_own_links_judge(world->own, call);

	(void)id;
	if (call->h.row == harness_row("MPI_Barrier", NT_LIBRARY_MPI) &&
	    call->h.pid == (uint32_t)getpid() && verdict == NT_OWN_LINKS_TAKE)
		world->barriers++;
	if (call->h.row != harness_row("ncclAllReduce", NT_LIBRARY_NCCL))
		return;
	if (call->h.pid != (uint32_t)getpid()) {
		world->others_taken += verdict == NT_OWN_LINKS_TAKE;
		world->others_counted += verdict == NT_OWN_LINKS_COUNT;
		return;
	}
	if (verdict != NT_OWN_LINKS_TAKE)
		return;
	world->taken++;
	if (call->word[SEQUENCE] < world->next)
		world->repeated++;
	else
		world->left_out += call->word[SEQUENCE] - world->next;
	world->next = call->word[SEQUENCE] + 1;
}

static uint64_t later_ns; /* added to the clock that files are joined by */

static void turn_within(struct world *world, int ms)
{
	struct pollfd ready = {.fd = nt_linker_fd(world->linker), .events = POLLIN};
	uint64_t boot_ns, real_ns;

	(void)poll(&ready, 1, ms);
	assert_int_equal(harness_drain(world->harness.attach, take_call, world), 0);
	nt_own_links_settle(world->own);
	nt_clock_pair(&boot_ns, &real_ns);
	nt_own_links_tick(world->own, boot_ns + later_ns, real_ns);
}

static void turn(struct world *world)
{
	turn_within(world, 20);
}

static struct nt_own_links_stats stats_of(const struct world *world)
{
	struct nt_own_links_stats stats;

	nt_own_links_stats(world->own, &stats);
	return stats;
}

static void begin(struct world *world)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	const struct nt_own_links_hooks hooks = {on_paused, on_resumed, on_missed, on_looked,
						 world};

	*world = (struct world){0};
	later_ns = 0;
	harness_init(&world->harness, &options);
	assert_int_equal(nt_linker_new(nt_attach_kernel(world->harness.attach), &world->linker), 0);
	assert_int_equal(
		nt_own_links_new(world->harness.attach, world->linker, &hooks, &world->own), 0);
	assert_true(harness_attach(&world->harness, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
}

static void use(struct world *world, pid_t pid)
{
	nt_own_links_use(world->own, (uint32_t)pid, 1, nccl.st.st_dev, nccl.st.st_ino);
}

static void end(struct world *world)
{
	nt_own_links_free(world->own);
	nt_linker_free(world->linker);
	harness_release(&world->harness);
}

/* What the governor says of a process whose ncclAllReduce is hot. */
static struct nt_governor_plan hot_plan(void)
{
	uint16_t row = harness_row("ncclAllReduce", NT_LIBRARY_NCCL);
	struct nt_governor_plan plan = {
		.governed = true,
		.permille = NT_GOVERNOR_WHOLE,
		.period_ns = 2 * NT_SECOND,
		.hot_count = 1,
		.version = 1,
	};

	plan.hot[row / 64] |= 1ULL << row % 64;
	return plan;
}

static void wait_for_split(struct world *world, uint64_t files)
{
	uint64_t until_ns = nt_clock_boot_ns() + WAIT_S * NT_SECOND;

	/* Own links of both, and the shared ones gone. */
	while (nt_clock_boot_ns() < until_ns) {
		struct nt_own_links_stats stats = stats_of(world);

		if (stats.files_split == files && (!files || stats.splits))
			break;
		turn(world);
	}
	assert_int_equal(stats_of(world).files_split, files);
	for (int i = 0; i < 60; i++)
		turn(world); /* past the time for which the shared links linger */
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

	(void)state;
	start_child(&child);
	begin(&world);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	wait_for_split(&world, 1);
	world.others_taken = world.others_counted = 0;
	later_ns = 11 * NT_SECOND;
	until_ns = nt_clock_boot_ns() + WAIT_S * NT_SECOND;
	while (!world.looked && nt_clock_boot_ns() < until_ns) {
		call_in_child(&child, 2000);
		turn_within(&world, 0);
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
		assert_int_equal(nt_attach_inside(world->harness.attach, note_inside, world), 0);
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
	assert_int_equal(stats_of(&world).bundles, 0);
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
		assert_int_equal(stats_of(&world).bundles, 0);
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
	assert_int_equal(stats_of(&world).bundles, 1);
	/* As on an eviction: the process goes on, and is found again. */
	nt_own_links_end(world.own, (uint32_t)child.pid, 1);
	assert_int_equal(stats_of(&world).bundles, 0);
	use(&world, child.pid);
	nt_own_links_plan(world.own, (uint32_t)child.pid, &plan);
	for (int i = 0; i < 3000 && !stats_of(&world).bundles; i++)
		turn(&world);
	assert_int_equal(stats_of(&world).bundles, 1);
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
	for (int i = 0; i < 10; i++)
		turn(&world);
	stats = stats_of(&world);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
	assert_int_equal(stats.bundles, 0);
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
	assert_int_equal(stats_of(&world).bundles, 1);
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
		cmocka_unit_test(a_neighbour_loses_no_call_and_gets_none_twice),
		cmocka_unit_test(a_look_sees_a_hot_function_and_its_calls_are_only_counted),
		cmocka_unit_test(a_call_that_lasts_while_its_file_is_split_is_seen),
		cmocka_unit_test(a_call_that_lasts_a_minute_longer_is_missed),
		cmocka_unit_test(between_slices_nothing_of_a_process_is_attached),
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
