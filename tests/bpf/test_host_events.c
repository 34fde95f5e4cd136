/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System events: each is provoked in a real process, and the figure of it is read. */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "agent/system/quota_reader.h"
#include "tests/bpf/parts/host_child.h"

static char name[] = "neighbour";

/* ---- waits ---------------------------------------------------------------------------------- */

static bool waits_for(const struct nt_system_total *total, const void *data)
{
	const enum nt_host_wait *reason = data;

	return total->thread.wait_ns[*reason] >= 30 * NT_MILLISECOND;
}

static void sleep_10_ms(void *data)
{
	(void)data;
	host_pause_ms(10);
}

static void wait_for_lock(void *data)
{
	const struct timespec wait = {.tv_nsec = 10000000};
	uint32_t word = 0;

	(void)data;
	(void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0);
}

static void wait_for_socket(void *data)
{
	const struct timeval wait = {.tv_usec = 10000};
	static int pair[2];
	char byte;

	(void)data;
	if (!pair[0] && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
		(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)!read(pair[0], &byte, 1);
}

static void a_sleep_a_lock_and_a_socket_are_told_apart(void **state)
{
	static const struct {
		host_work work;
		enum nt_host_wait reason;
	} cases[] = {
		{sleep_10_ms, NT_HOST_WAIT_SLEEP},
		{wait_for_lock, NT_HOST_WAIT_LOCK},
		{wait_for_socket, NT_HOST_WAIT_NETWORK},
	};
	struct nt_system_total total;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(host_observe(*state, cases[i].work, NULL, waits_for, &cases[i].reason,
					 &total));
		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++)
			if (j != i)
				assert_int_equal(total.thread.wait_ns[cases[j].reason], 0);
		assert_true(total.thread.blocked > 0);
		assert_true(total.observed_ns > 0);
	}
}

/* ---- the CPU -------------------------------------------------------------------------------- */

static void burn_on_first_cpu(void *data)
{
	host_pin(0);
	if (data)
		(void)prctl(PR_SET_NAME, data);
	host_burn_ms(100);
}

static bool is_taken_by(const struct nt_system_total *total, const void *data)
{
	const pid_t *pid = data;

	return total->thread.wait_ns[NT_HOST_WAIT_RUN_QUEUE] >= 50 * NT_MILLISECOND &&
	       total->taker.tgid == (uint32_t)*pid && total->taker.ns >= NT_MILLISECOND;
}

static void a_neighbour_on_the_core_is_named(void **state)
{
	struct nt_system_total total;
	int go;
	const pid_t neighbour = host_start(burn_on_first_cpu, name, &go);
	bool held;

	(void)setpriority(PRIO_PROCESS, (id_t)neighbour, -10);
	(void)close(go);
	held = host_observe(*state, burn_on_first_cpu, NULL, is_taken_by, &neighbour, &total);
	host_stop(neighbour);
	assert_true(held);
	assert_string_equal(total.taker.comm, name);
	assert_true(total.taken_ns >= total.taker.ns);
	assert_true(total.thread.preempted > 0);
	assert_int_equal(total.thread.wait_ns[NT_HOST_WAIT_QUOTA], 0);
}

static void burn_in_group(void *data)
{
	static bool entered;

	if (!entered)
		host_cgroup_enter(data);
	entered = true;
	host_burn_ms(100);
}

static void a_quota_that_is_used_up_is_no_neighbour(void **state)
{
	const enum nt_host_wait reason = NT_HOST_WAIT_QUOTA;
	struct nt_system_total total;
	struct host_cgroup group;
	bool is_v2, held;

	if (!host_cgroup_make(&group, "cpu", &is_v2)) {
		print_message("skip: cgroup: none can be made here\n");
		skip();
	}
	assert_true(is_v2 ? host_write(group.path, "cpu.max", "20000 100000")
			  : host_write(group.path, "cpu.cfs_quota_us", "20000"));
	held = host_observe(*state, burn_in_group, &group, waits_for, &reason, &total);
	host_cgroup_remove(&group);
	assert_true(held);
}

/* The pauses of its group so far, once they are long; 0: they never are. */
static uint64_t long_pauses(const struct nt_quota_reader *reader, pid_t pid)
{
	struct host_deadline deadline = host_deadline(HOST_DEADLINE_S);
	uint64_t ns = 0;

	while (ns < 100 * NT_MILLISECOND) {
		if (host_is_over(&deadline) || nt_quota_reader_read(reader, (uint32_t)pid, &ns) < 0)
			return 0;
		host_pause_ms(10);
	}
	return ns;
}

static void a_used_up_quota_shows_without_tracepoints(void **state)
{
	nt_auto(nt_quota_reader) struct nt_quota_reader *reader = NULL;
	struct host_cgroup group;
	uint64_t ns, ended_ns;
	bool is_v2;
	pid_t child;
	int go;

	(void)state;
	if (!host_cgroup_make(&group, "cpu", &is_v2)) {
		print_message("skip: cgroup: none can be made here\n");
		skip();
	}
	assert_true(is_v2 ? host_write(group.path, "cpu.max", "20000 100000")
			  : host_write(group.path, "cpu.cfs_quota_us", "20000"));
	assert_int_equal(nt_quota_reader_new(&reader), 0);
	child = host_start(burn_in_group, &group, &go);
	(void)close(go);
	ns = long_pauses(reader, child);
	host_stop(child);
	host_cgroup_remove(&group);
	assert_true(ns >= 100 * NT_MILLISECOND);
	assert_int_not_equal(nt_quota_reader_read(reader, (uint32_t)child, &ended_ns), 0);
}

static void wander(void *data)
{
	(void)data;
	for (int i = 0; i < 40; i++) {
		host_pin(i % 2);
		host_pause_ms(1);
	}
}

static bool has_moved(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->thread.migrations >= 10;
}

static void moves_to_another_cpu_are_counted(void **state)
{
	struct nt_system_total total;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		print_message("skip: processors: there is one alone\n");
		skip();
	}
	assert_true(host_observe(*state, wander, NULL, has_moved, NULL, &total));
	assert_true(total.thread.numa_moves <= total.thread.migrations);
}

/* ---- members -------------------------------------------------------------------------------- */

static void *sleep_long(void *data)
{
	host_pause_ms(20);
	return data;
}

static void start_threads(void *data)
{
	pthread_t thread;

	(void)data;
	if (pthread_create(&thread, NULL, sleep_long, NULL) == 0)
		(void)pthread_join(thread, NULL);
}

static bool threads_sleep(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->wait_ns[NT_HOST_WAIT_SLEEP] >= 100 * NT_MILLISECOND;
}

static void threads_that_start_later_are_observed(void **state)
{
	struct nt_system_total total;

	assert_true(host_observe(*state, start_threads, NULL, threads_sleep, NULL, &total));
	assert_int_equal(total.thread.wait_ns[NT_HOST_WAIT_SLEEP], 0);
}

static void a_process_over_the_cap_is_left_out_and_counted(void **state)
{
	struct host_test *test = *state;
	struct nt_system_stats stats;
	const uint32_t first = 100000000;

	for (uint32_t i = 0; i <= NT_HOST_PROCESSES; i++)
		nt_system_enrol(test->system, first + i, 1, 1);
	nt_system_stats(test->system, &stats);
	assert_int_equal(stats.processes, NT_HOST_PROCESSES);
	assert_int_equal(stats.processes_over_cap, 1);
	for (uint32_t i = 0; i <= NT_HOST_PROCESSES; i++)
		nt_system_leave(test->system, first + i, 1);
	nt_system_stats(test->system, &stats);
	assert_int_equal(stats.processes, 0);
	assert_false(stats.is_attached);
}

/* ---- single events -------------------------------------------------------------------------- */

static void switch_often(void *data)
{
	(void)data;
	for (int i = 0; i < 1000; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
}

static void single_events_come_from_level_1_on_and_are_bounded(void **state)
{
	struct host_deadline deadline = host_deadline(HOST_DEADLINE_S);
	struct host_test *test = *state;
	struct nt_system_stats stats = {0};
	uint64_t dropped[NT_HOST_EVENT_END] = {0}, again;
	size_t out = 0;
	int go;
	const pid_t pid = host_start(switch_often, NULL, &go);

	nt_system_enrol(test->system, (uint32_t)pid, 7, 1);
	(void)close(go);
	host_pause_ms(300);
	test->events = 0;
	nt_system_poll(test->system);
	assert_int_equal(test->events, 0);
	nt_system_set_level(test->system, (uint32_t)pid, 8, NT_SYSTEM_LEVEL_EVENTS);
	host_pause_ms(100);
	nt_system_poll(test->system);
	assert_int_equal(test->events, 0); /* another process had that number */
	nt_system_set_level(test->system, (uint32_t)pid, 7, NT_SYSTEM_LEVEL_EVENTS);
	while ((!stats.events_dropped || test->events < 100) && !host_is_over(&deadline)) {
		host_pause_ms(20);
		nt_system_poll(test->system);
		nt_system_stats(test->system, &stats);
	}
	nt_system_set_level(test->system, (uint32_t)pid, 7, 0);
	host_pause_ms(20);
	nt_system_stats(test->system, &stats);
	for (enum nt_host_event_kind kind = NT_HOST_EVENT_OUT; kind < NT_HOST_EVENT_END; kind++)
		dropped[kind] = (uint64_t)nt_system_take_dropped(test->system, (uint32_t)pid, kind);
	again = (uint64_t)nt_system_take_dropped(test->system, (uint32_t)pid, NT_HOST_EVENT_OUT);
	nt_system_leave(test->system, (uint32_t)pid, 7);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	host_stop(pid);
	print_message("# %zu events, %llu dropped\n", test->events,
		      (unsigned long long)stats.events_dropped);
	assert_true(test->events >= 100);
	assert_true(stats.events_dropped > 0);
	assert_true(dropped[NT_HOST_EVENT_OUT] > 0 && dropped[NT_HOST_EVENT_IN] > 0);
	assert_int_equal(dropped[NT_HOST_EVENT_OUT] + dropped[NT_HOST_EVENT_IN],
			 stats.events_dropped);
	assert_int_equal(again, 0);
	assert_int_equal(test->event_start_ns, 7);
	for (size_t i = 0; i < test->events; i++) {
		const struct nt_host_event *event = &test->event[i];

		assert_int_equal(event->tgid, pid);
		assert_int_equal(event->tid, pid);
		assert_in_range(event->kind, NT_HOST_EVENT_OUT, NT_HOST_EVENT_IN);
		out += event->kind == NT_HOST_EVENT_OUT && event->reason == NT_HOST_WAIT_SLEEP;
		if (i)
			assert_true(event->boot_ns >= event[-1].boot_ns);
	}
	assert_true(out > 0);
}

/* ---- slices --------------------------------------------------------------------------------- */

static void sleep_three_quarters(void *data)
{
	(void)data;
	host_pause_ms(300);
	host_burn_ms(100);
}

/* A byte goes to and fro between two processes on one CPU. */
static void switch_all_the_time(void *data)
{
	int to[2], from[2];
	char byte = 0;

	(void)data;
	host_pin(0);
	if (pipe(to) < 0 || pipe(from) < 0)
		_exit(1);
	if (host_fork() == 0) {
		while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	while (write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1)
		;
}

/* Once a second, as the agent does; the child is read as at the end of a window. */
static uint64_t pass_second(struct nt_system *system, pid_t pid, struct nt_system_stats *ret_stats)
{
	struct nt_system_total total = {0};

	host_pause_ms(1000);
	(void)nt_system_tick(system, nt_clock_boot_ns(), 1.0);
	(void)nt_system_read(system, (uint32_t)pid, (uint32_t)pid, &total);
	nt_system_stats(system, ret_stats);
	return total.thread.wait_ns[NT_HOST_WAIT_SLEEP];
}

/*
 * With the largest budget that switches exceed: a machine that is emulated makes fewer, and the cost of
 * interrupts is not theirs.
 */
static struct nt_system *open_sliced(pid_t pid, uint64_t *ret_sleep_ns)
{
	struct nt_system_options options = {.ring_bytes = 256 << 10, .events_max = 1};
	struct nt_system_stats stats;

	for (options.budget = 0.04; options.budget > 1e-5; options.budget /= 3) {
		nt_auto(nt_system) struct nt_system *system = NULL;

		assert_int_equal(nt_system_new(&options, &system), 0);
		nt_system_enrol(system, (uint32_t)pid, 1, 1);
		for (int i = 0; i < 6; i++) {
			*ret_sleep_ns = pass_second(system, pid, &stats);
			if (stats.is_sliced)
				return nt_take(system);
		}
	}
	fail_msg("no budget gives slices");
	return NULL;
}

/* Another process switches so often that the budget pays for some of the time. */
static void between_slices_waits_are_estimated(void **state)
{
	nt_auto(nt_system) struct nt_system *system = NULL;
	struct nt_system_stats stats = {0};
	uint64_t start_ns, sleep_ns, first_ns, slices;
	int go, go_often, seconds;
	/* Forked before: a process that has the links' descriptors keeps them attached. */
	const pid_t pid = host_start(sleep_three_quarters, NULL, &go);
	const pid_t often = host_start(switch_all_the_time, NULL, &go_often);
	double part;

	(void)state;
	assert_int_equal(write(go, "", 1), 1);
	assert_int_equal(write(go_often, "", 1), 1);
	system = open_sliced(pid, &first_ns);
	nt_system_stats(system, &stats);
	assert_true(stats.is_attached && !stats.is_shed);
	start_ns = nt_clock_boot_ns();
	slices = stats.slices;
	sleep_ns = first_ns;
	for (seconds = 0; seconds < 200 && stats.slices < slices + 2; seconds++) {
		const uint64_t now_ns = pass_second(system, pid, &stats);

		/* Window by window, not all of it at the end of a slice. */
		assert_true(now_ns >= sleep_ns + 50 * NT_MILLISECOND);
		sleep_ns = now_ns;
	}
	part = (double)(sleep_ns - first_ns) / (double)(nt_clock_boot_ns() - start_ns);
	printf("# %d s with 2 slices: asleep %.2f of the time\n", seconds, part);
	host_stop(pid);
	host_stop(often);
	assert_true(nt_system_switch_share(system, nt_clock_boot_ns()) < 1.0);
	assert_int_equal(stats.slices, slices + 2);
	assert_true(seconds > 3);
	assert_true(part > 0.4 && part < 0.95);
}

/* Sums of the process since its start are no part of one slice. */
static void another_thread_in_a_slice_makes_no_rate_of_all_that_was(void **state)
{
	nt_auto(nt_system) struct nt_system *system = NULL;
	struct nt_system_stats stats;
	struct nt_system_total total;
	uint64_t slices, since_ns = 0, sleep_ns;
	uint32_t tid = 0;
	int go, go_often, seconds = 0;
	const pid_t pid = host_start(sleep_three_quarters, NULL, &go);
	const pid_t often = host_start(switch_all_the_time, NULL, &go_often);

	(void)state;
	assert_int_equal(write(go, "", 1), 1);
	assert_int_equal(write(go_often, "", 1), 1);
	system = open_sliced(pid, &sleep_ns);
	nt_system_stats(system, &stats);
	slices = stats.slices;
	/* In each second another one is read, until the slice has ended; then that one again. */
	for (; stats.slices == slices && seconds < 200; seconds++) {
		tid = tid == 1 ? (uint32_t)pid : 1;
		(void)nt_system_read(system, (uint32_t)pid, tid, &total);
		host_pause_ms(1000);
		(void)nt_system_tick(system, nt_clock_boot_ns(), 1.0);
		nt_system_stats(system, &stats);
	}
	for (int i = 0; i < 2; i++) {
		const uint64_t now_ns = nt_clock_boot_ns();

		assert_true(nt_system_read(system, (uint32_t)pid, tid, &total));
		if (i)
			assert_true(total.wait_ns[NT_HOST_WAIT_SLEEP] - sleep_ns <=
				    2 * (now_ns - since_ns));
		sleep_ns = total.wait_ns[NT_HOST_WAIT_SLEEP];
		since_ns = now_ns;
		host_pause_ms(300);
	}
	host_stop(pid);
	host_stop(often);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void all_tracepoints_are_let_go_within_a_second(void **state)
{
	struct host_test *test = *state;
	struct nt_system_stats stats;
	uint64_t start_ns;

	nt_system_enrol(test->system, (uint32_t)getpid(), 1, 1);
	nt_system_stats(test->system, &stats);
	assert_true(stats.is_attached);
	assert_int_equal(stats.attach_failures, 0);
	start_ns = nt_clock_mono_ns();
	nt_system_leave(test->system, (uint32_t)getpid(), 1);
	printf("# detached in %llu us\n",
	       (unsigned long long)((nt_clock_mono_ns() - start_ns) / NT_MICROSECOND));
	assert_true(nt_clock_mono_ns() - start_ns < NT_SECOND);
	nt_system_stats(test->system, &stats);
	assert_false(stats.is_attached);
}

static unsigned int count_links(void)
{
	char line[256];
	unsigned int links = 0;
	FILE *pipe = popen("bpftool link 2>/dev/null", "r");

	while (pipe && fgets(line, sizeof(line), pipe))
		links += strstr(line, "raw_tracepoint") || strstr(line, "tracing");
	if (pipe)
		(void)pclose(pipe);
	return links;
}

/* Links of others may come and go, so that some tries may be needed. */
static void nothing_stays_after_a_kill(void **state)
{
	bool gone = false, seen = false;

	(void)state;
	for (int i = 0; i < 20 && !(gone && seen); i++) {
		const unsigned int before = count_links();
		struct host_test test = {0};
		pid_t pid = fork();

		if (pid == 0) {
			if (host_open(&test) == 0)
				nt_system_enrol(test.system, (uint32_t)getpid(), 1, 1);
			host_pause_ms(60000);
			_exit(0);
		}
		for (int j = 0; j < 100 && !seen; j++) {
			host_pause_ms(50);
			seen = count_links() >= before + 15;
		}
		host_stop(pid);
		for (int j = 0; j < 20 && !gone; j++) {
			gone = count_links() <= before;
			host_pause_ms(50);
		}
	}
	assert_true(seen);
	assert_true(gone);
}

/* ---- the program ---------------------------------------------------------------------------- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOST_CASE(a_sleep_a_lock_and_a_socket_are_told_apart),
		HOST_CASE(a_neighbour_on_the_core_is_named),
		HOST_CASE(a_quota_that_is_used_up_is_no_neighbour),
		cmocka_unit_test(a_used_up_quota_shows_without_tracepoints),
		HOST_CASE(moves_to_another_cpu_are_counted),
		HOST_CASE(threads_that_start_later_are_observed),
		HOST_CASE(a_process_over_the_cap_is_left_out_and_counted),
		HOST_CASE(single_events_come_from_level_1_on_and_are_bounded),
		HOST_CASE(all_tracepoints_are_let_go_within_a_second),
		cmocka_unit_test(nothing_stays_after_a_kill),
		cmocka_unit_test(between_slices_waits_are_estimated),
		cmocka_unit_test(another_thread_in_a_slice_makes_no_rate_of_all_that_was),
	};
	struct host_test test = {0};
	int r = host_open(&test);

	if (r < 0) {
		printf("skip: bpf: tracepoints cannot be loaded here: %s\n", strerrordesc_np(-r));
		return 77;
	}
	nt_system_free(test.system);
	cmocka_set_test_filter(
		getenv("NT_TEST")); /* one of them, or those of a pattern; NULL: all */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
