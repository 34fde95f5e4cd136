/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System events: each is provoked in a real process, and the figure of it is read. */
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/bpf/host_child.h"

enum {
	FILE_BYTES = 64 << 20,
	CHUNK = 1 << 20,
	LIMIT_BYTES = 24 << 20,
	CONNECTS = 4,
};

static char large[PATH_MAX]; /* a file of FILE_BYTES on a disk; "": none could be made */
static char name[] = "neighbour";

/* ---- waits ---------------------------------------------------------------------------------- */

static bool waits_for(const struct nt_system_total *total, const void *data)
{
	const enum nt_host_wait *reason = data;

	return total->thread.wait_ns[*reason] >= 30 * NT_MILLISECOND;
}

static bool waits_at_all(const struct nt_system_total *total, const void *data)
{
	const enum nt_host_wait *reason = data;

	return total->thread.wait_ns[*reason] > 0 && total->wait_ns[*reason] > 0;
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

static void read_directly(void *data)
{
	static char *buffer;
	int fd = open(large, O_RDONLY | O_DIRECT | O_CLOEXEC);

	(void)data;
	if (!buffer && posix_memalign((void **)&buffer, 4096, CHUNK) != 0)
		_exit(1);
	while (fd >= 0 && read(fd, buffer, CHUNK) > 0)
		;
	(void)close(fd);
}

static bool has_requests(const struct nt_system_total *total, const void *data)
{
	return waits_at_all(total, data) && total->requests >= 16 && total->request_ns > 0;
}

static void a_direct_read_waits_for_its_block_device(void **state)
{
	const enum nt_host_wait reason = NT_HOST_WAIT_BLOCK_IO;
	struct nt_system_total total;

	if (!large[0])
		skip();
	assert_true(host_observe(*state, read_directly, NULL, has_requests, &reason, &total));
	assert_true(total.device[0] != '\0');
	assert_in_range(total.device_requests, 1, total.requests);
	assert_in_range(total.device_ns, 1, total.request_ns);
}

static void read_again(void *data)
{
	static char buffer[CHUNK];
	int fd = open(data, O_RDONLY | O_CLOEXEC);

	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (fd >= 0 && read(fd, buffer, sizeof(buffer)) > 0)
		;
	(void)close(fd);
}

/* NT_NETWORK_FILE: one on NFS, 9p and the like, as a virtual machine has. */
static void a_file_of_a_server_is_no_block_device(void **state)
{
	const enum nt_host_wait reason = NT_HOST_WAIT_NETWORK_FILE;
	char *path = getenv("NT_NETWORK_FILE");
	struct nt_system_total total;

	if (!path)
		skip();
	assert_true(host_observe(*state, read_again, path, waits_at_all, &reason, &total));
	assert_int_equal(total.thread.wait_ns[NT_HOST_WAIT_BLOCK_IO], 0);
}

static void touch_pages(void *data)
{
	int fd = open(large, O_RDONLY | O_CLOEXEC);
	volatile const char *map;

	(void)data;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		_exit(1);
	(void)madvise((void *)map, FILE_BYTES, MADV_RANDOM);
	for (size_t i = 0; i < FILE_BYTES; i += CHUNK)
		(void)map[i];
	(void)munmap((void *)map, FILE_BYTES);
	(void)close(fd);
}

static void a_page_that_is_read_from_disk_is_a_fault(void **state)
{
	const enum nt_host_wait reason = NT_HOST_WAIT_FAULT;
	struct nt_system_total total;

	if (!large[0])
		skip();
	assert_true(host_observe(*state, touch_pages, NULL, waits_at_all, &reason, &total));
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

	if (!host_cgroup_make(&group, "cpu", &is_v2))
		skip();
	assert_true(is_v2 ? host_write(group.path, "cpu.max", "20000 100000")
			  : host_write(group.path, "cpu.cfs_quota_us", "20000"));
	held = host_observe(*state, burn_in_group, &group, waits_for, &reason, &total);
	host_cgroup_remove(&group);
	assert_true(held);
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

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	assert_true(host_observe(*state, wander, NULL, has_moved, NULL, &total));
	assert_true(total.thread.numa_moves <= total.thread.migrations);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void read_in_group(void *data)
{
	static bool entered;
	static char buffer[CHUNK];
	int fd;

	if (!entered)
		host_cgroup_enter(data);
	entered = true;
	fd = open(large, O_RDONLY | O_CLOEXEC);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	(void)close(fd);
}

static bool reclaims(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->thread.reclaim_ns > 0 && total->reclaim_ns > 0;
}

static bool limit_memory(struct host_cgroup *group)
{
	char limit[32];
	bool is_v2;

	(void)snprintf(limit, sizeof(limit), "%d", LIMIT_BYTES);
	return host_cgroup_make(group, "memory", &is_v2) &&
	       host_write(group->path, is_v2 ? "memory.max" : "memory.limit_in_bytes", limit);
}

static void a_limit_of_memory_makes_the_process_reclaim(void **state)
{
	struct nt_system_total total;
	struct host_cgroup group;
	bool held;

	if (!large[0] || !limit_memory(&group))
		skip();
	held = host_observe(*state, read_in_group, &group, reclaims, NULL, &total);
	host_cgroup_remove(&group);
	assert_true(held);
}

static void take_too_much(void *data)
{
	pid_t pid = fork();

	if (pid == 0) {
		host_cgroup_enter(data);
		(void)mmap(NULL, 4 * LIMIT_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static bool was_killed(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->oom_kills > 0;
}

static void a_kill_for_want_of_memory_is_counted_for_the_forker(void **state)
{
	struct nt_system_total total;
	struct nt_system_stats stats;
	struct host_test *test = *state;
	struct host_cgroup group;
	bool held;

	if (!limit_memory(&group))
		skip();
	held = host_observe(test, take_too_much, &group, was_killed, NULL, &total);
	host_cgroup_remove(&group);
	assert_true(held);
	nt_system_stats(test->system, &stats);
	assert_true(stats.oom_kills > 0);
}

/* ---- TCP ------------------------------------------------------------------------------------ */

/* The backlog is full after one: the kernel sends the others' first packet again. */
static void connect_in_vain(void *data)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd[CONNECTS];

	(void)data;
	if (bind(listener, (struct sockaddr *)&address, len) < 0 || listen(listener, 0) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) < 0)
		_exit(1);
	for (int i = 0; i < CONNECTS; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fd[i], (struct sockaddr *)&address, sizeof(address));
	}
	host_pause_ms(2500);
	for (int i = 0; i < CONNECTS; i++)
		(void)close(fd[i]);
	(void)close(listener);
	/* Nobody listens any more. */
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	(void)connect(fd[0], (struct sockaddr *)&address, sizeof(address));
	(void)close(fd[0]);
}

static bool loses_packets(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->retransmits > 0 && total->resets > 0;
}

static void retransmits_and_resets_belong_to_the_sockets_process(void **state)
{
	struct nt_system_total total, others;
	struct host_test *test = *state;
	int go;
	const pid_t other = host_start(sleep_10_ms, NULL, &go);
	bool held;

	nt_system_enrol(test->system, (uint32_t)other, 1);
	held = host_observe(test, connect_in_vain, NULL, loses_packets, NULL, &total);
	assert_true(nt_system_read(test->system, (uint32_t)other, (uint32_t)other, &others));
	nt_system_leave(test->system, (uint32_t)other, 1);
	(void)close(go);
	host_stop(other);
	assert_true(held);
	assert_int_equal(others.retransmits + others.resets, 0);
}

/* ---- members -------------------------------------------------------------------------------- */

static void fork_a_reader(void *data)
{
	pid_t pid = fork();

	if (pid == 0) {
		read_directly(data);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static bool helper_reads(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->helper_wait_ns[NT_HOST_WAIT_BLOCK_IO] > 0 && total->requests > 0;
}

static void what_a_forked_process_reads_is_the_ranks(void **state)
{
	struct nt_system_total total;

	if (!large[0])
		skip();
	assert_true(host_observe(*state, fork_a_reader, NULL, helper_reads, NULL, &total));
	assert_int_equal(total.wait_ns[NT_HOST_WAIT_BLOCK_IO], 0);
}

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
		nt_system_enrol(test->system, first + i, 1);
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
		(void)usleep(1);
}

static void single_events_come_at_level_3_alone_and_are_bounded(void **state)
{
	const uint64_t end_ns = nt_clock_mono_ns() + HOST_DEADLINE_NS;
	struct host_test *test = *state;
	struct nt_system_stats stats = {0};
	size_t out = 0;
	int go;
	const pid_t pid = host_start(switch_often, NULL, &go);

	nt_system_enrol(test->system, (uint32_t)pid, 7);
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
	while ((!stats.events_dropped || test->events < 100) && nt_clock_mono_ns() < end_ns) {
		host_pause_ms(20);
		nt_system_poll(test->system);
		nt_system_stats(test->system, &stats);
	}
	nt_system_set_level(test->system, (uint32_t)pid, 7, 0);
	nt_system_leave(test->system, (uint32_t)pid, 7);
	host_stop(pid);
	assert_true(test->events >= 100);
	assert_true(stats.events_dropped > 0);
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

/* ---- the end -------------------------------------------------------------------------------- */

static void all_tracepoints_are_let_go_within_a_second(void **state)
{
	struct host_test *test = *state;
	struct nt_system_stats stats;
	uint64_t start_ns;

	nt_system_enrol(test->system, (uint32_t)getpid(), 1);
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
				nt_system_enrol(test.system, (uint32_t)getpid(), 1);
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

static int open_system(void **state)
{
	static struct host_test test;

	test = (struct host_test){0};
	*state = &test;
	return host_open(&test);
}

static int close_system(void **state)
{
	struct host_test *test = *state;

	nt_system_free(test->system);
	return 0;
}

static void make_file(void)
{
	static char chunk[CHUNK];
	int fd;

	(void)snprintf(large, sizeof(large), "/var/tmp/neutracer-test-%d", getpid());
	fd = open(large, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	memset(chunk, 7, sizeof(chunk));
	for (int i = 0; fd >= 0 && i < FILE_BYTES / CHUNK; i++)
		if (write(fd, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk)) {
			(void)close(fd);
			fd = -1;
		}
	if (fd >= 0 && fsync(fd) == 0 && close(fd) == 0) {
		fd = open(large, O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (fd >= 0) {
			(void)close(fd);
			return;
		}
	}
	(void)unlink(large);
	large[0] = '\0';
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, open_system, close_system)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_sleep_a_lock_and_a_socket_are_told_apart),
		CASE(a_direct_read_waits_for_its_block_device),
		CASE(a_file_of_a_server_is_no_block_device),
		CASE(a_page_that_is_read_from_disk_is_a_fault),
		CASE(a_neighbour_on_the_core_is_named),
		CASE(a_quota_that_is_used_up_is_no_neighbour),
		CASE(moves_to_another_cpu_are_counted),
		CASE(a_limit_of_memory_makes_the_process_reclaim),
		CASE(a_kill_for_want_of_memory_is_counted_for_the_forker),
		CASE(retransmits_and_resets_belong_to_the_sockets_process),
		CASE(what_a_forked_process_reads_is_the_ranks),
		CASE(threads_that_start_later_are_observed),
		CASE(a_process_over_the_cap_is_left_out_and_counted),
		CASE(single_events_come_at_level_3_alone_and_are_bounded),
		CASE(all_tracepoints_are_let_go_within_a_second),
		cmocka_unit_test(nothing_stays_after_a_kill),
	};
	struct host_test test = {0};
	int r = host_open(&test);

	if (r < 0) {
		printf("skip: bpf: tracepoints cannot be loaded here: %s\n", strerror(-r));
		return 77;
	}
	nt_system_free(test.system);
	make_file();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	if (large[0])
		(void)unlink(large);
	return r;
}
