/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System events of disks, memory, TCP and members: each is provoked in a real process, and its figure is read. */
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "tests/bpf/parts/host_members.h"

enum {
	FILE_BYTES = 64 << 20,
	CHUNK = 1 << 20,
	LIMIT_BYTES = 24 << 20,
	CONNECTS = 4,
	READERS = 32,
};

static char large[PATH_MAX]; /* a file of FILE_BYTES on a disk; "": none could be made */

static void idle(void *data)
{
	(void)data;
	host_pause_ms(10);
}

static bool waits_at_all(const struct nt_system_total *total, const void *data)
{
	const enum nt_host_wait *reason = data;

	return total->thread.wait_ns[*reason] > 0 && total->wait_ns[*reason] > 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

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
	struct nt_system_total total = {0};

	if (!large[0]) {
		print_message("skip: disk: no file can be made on a disk here\n");
		skip();
	}
	assert_true(host_observe(*state, read_directly, NULL, has_requests, &reason, &total));
	assert_true(total.device[0] != '\0');
	assert_in_range(total.device_requests, 1, total.requests);
	assert_in_range(total.device_ns, 1, total.request_ns);
}

/* Several at once, so that requests queue up at the device. */
static void read_in_parallel(void *data)
{
	for (int i = 0; i < READERS; i++)
		if (host_fork() == 0)
			for (;;)
				read_directly(data);
	(void)pause();
}

/* A rank's request that is in flight as the programs are detached is no later rank's. */
static void a_request_from_before_a_pause_is_no_later_ones(void **state)
{
	struct host_test *test = *state;
	struct nt_system_total total = {0};
	int go, go_idle;
	pid_t reader, other;

	if (!large[0]) {
		print_message("skip: disk: no file can be made on a disk here\n");
		skip();
	}
	reader = host_start(read_in_parallel, NULL, &go);
	other = host_start(idle, NULL, &go_idle);
	assert_int_equal(write(go, "", 1), 1);
	assert_int_equal(write(go_idle, "", 1), 1);
	host_pause_ms(100);
	for (int i = 0; i < 10 && !total.requests; i++) {
		nt_system_enrol(test->system, (uint32_t)reader, 1, 1);
		host_pause_ms(50);
		nt_system_leave(test->system, (uint32_t)reader, 1);
		nt_system_poll(test->system); /* its slot is free */
		nt_system_enrol(test->system, (uint32_t)other, 1, 1);
		host_pause_ms(100);
		assert_true(nt_system_read(test->system, (uint32_t)other, (uint32_t)other, &total));
		nt_system_leave(test->system, (uint32_t)other, 1);
	}
	host_stop(reader);
	host_stop(other);
	assert_int_equal(total.requests, 0);
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
	struct nt_system_total total = {0};

	if (!path) {
		print_message("skip: network-file: NT_NETWORK_FILE names none\n");
		skip();
	}
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
	struct nt_system_total total = {0};

	if (!large[0]) {
		print_message("skip: disk: no file can be made on a disk here\n");
		skip();
	}
	assert_true(host_observe(*state, touch_pages, NULL, waits_at_all, &reason, &total));
}

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
	struct nt_system_total total = {0};

	if (!large[0]) {
		print_message("skip: disk: no file can be made on a disk here\n");
		skip();
	}
	assert_true(host_observe(*state, fork_a_reader, NULL, helper_reads, NULL, &total));
	assert_int_equal(total.wait_ns[NT_HOST_WAIT_BLOCK_IO], 0);
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
	struct nt_system_total total = {0};
	struct host_cgroup group;
	bool held;

	if (!large[0] || !limit_memory(&group)) {
		print_message("skip: cgroup: no memory can be limited, or no disk is here\n");
		skip();
	}
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
	struct nt_system_total total = {0};
	struct nt_system_stats stats;
	struct host_test *test = *state;
	struct host_cgroup group;
	bool held;

	if (!limit_memory(&group)) {
		print_message("skip: cgroup: no memory can be limited here\n");
		skip();
	}
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
	const pid_t other = host_start(idle, NULL, &go);
	bool held;

	nt_system_enrol(test->system, (uint32_t)other, 1, 1);
	held = host_observe(test, connect_in_vain, NULL, loses_packets, NULL, &total);
	assert_true(nt_system_read(test->system, (uint32_t)other, (uint32_t)other, &others));
	nt_system_leave(test->system, (uint32_t)other, 1);
	(void)close(go);
	host_stop(other);
	assert_true(held);
	assert_int_equal(others.retransmits + others.resets, 0);
}

/* ---- members -------------------------------------------------------------------------------- */

static void a_thread_that_execs_leaves_nothing_behind(void **state)
{
	struct host_test *test = *state;
	int go;
	const pid_t pid = host_start(fork_one_that_execs, NULL, &go);
	bool was_seen, is_gone;

	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	(void)close(go);
	was_seen = has_members(test, 2, 1);
	is_gone = has_members(test, 1, 0);
	host_stop(pid);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	assert_true(was_seen);
	assert_true(is_gone);
	assert_true(has_members(test, 0, 0));
}

static void a_helper_that_becomes_a_rank_is_no_helper(void **state)
{
	struct host_test *test = *state;
	bool was_helper, is_rank, is_left;
	pid_t pid, child;
	int go;

	host_steps->pid = 0;
	pid = host_start(fork_a_rank, NULL, &go);
	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	(void)close(go);
	was_helper = has_members(test, 2, 1);
	child = wait_for_forked();
	nt_system_enrol(test->system, (uint32_t)child, 1, 1);
	is_rank = has_members(test, 2, 0);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	is_left = has_members(test, 1, 0);
	host_stop(pid); /* and with it the other */
	nt_system_leave(test->system, (uint32_t)child, 1);
	assert_true(child);
	assert_true(was_helper);
	assert_true(is_rank);
	assert_true(is_left);
}

static void helpers_beyond_a_page_of_numbers_are_listed_or_counted(void **state)
{
	struct host_test *test = *state;
	struct nt_system_stats stats;
	pid_t pid;
	int go;

	host_skip_if_emulated();
	host_steps->pid = 0;
	pid = host_start(fork_many, NULL, &go);
	(void)close(go);
	(void)wait_for_forked();
	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	stats = stats_of(test);
	host_stop(pid);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	assert_int_equal(host_steps->pid, pid);
	assert_int_equal(stats.helpers, NT_HOST_HELPERS);
	assert_int_equal(stats.helpers_over_cap, MANY_HELPERS - NT_HOST_HELPERS);
	assert_int_equal(stats.threads, 1 + NT_HOST_HELPERS);
	assert_true(has_members(test, 0, 0));
}

static void one_with_many_threads_takes_no_place_of_others(void **state)
{
	static int many = MANY_THREADS, some = SOME_THREADS;
	const uint64_t most = NT_HOST_OWN_THREADS + NT_HOST_OPEN_THREADS / 2;
	struct host_test *test = *state;
	bool are_bounded, are_observed, is_left;
	uint64_t over_cap;
	int go, go_other;
	pid_t pid, other;

	host_skip_if_emulated();
	pid = host_start(make_threads, &many, &go);
	other = host_start(make_threads, &some, &go_other);
	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	assert_int_equal(write(go, "", 1), 1);
	are_bounded = has_members(test, most, 0);
	host_pause_ms(500);
	over_cap = stats_of(test).threads_over_cap;
	nt_system_enrol(test->system, (uint32_t)other, 1, 2);
	assert_int_equal(write(go_other, "", 1), 1);
	are_observed = has_members(test, most + 1 + SOME_THREADS, 0);
	/* They are still alive. */
	nt_system_leave(test->system, (uint32_t)pid, 1);
	is_left = has_members(test, 1 + SOME_THREADS, 0);
	host_stop(pid);
	host_stop(other);
	nt_system_leave(test->system, (uint32_t)other, 1);
	assert_true(are_bounded);
	assert_int_equal(over_cap, 1 + MANY_THREADS - most);
	assert_true(are_observed);
	assert_true(is_left);
}

static void helpers_that_have_ended_are_not_listed(void **state)
{
	struct host_test *test = *state;
	bool are_left_out;
	pid_t pid;
	int go;

	host_steps->pid = 0;
	pid = host_start(fork_ended, NULL, &go);
	(void)close(go);
	assert_int_equal(wait_for_forked(), pid);
	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	are_left_out = has_members(test, 1, 0);
	host_stop(pid);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	assert_true(are_left_out);
}

/* What has ended, been taken by its parent or not; a number that another process has got; what lives stays. */
static void what_ends_in_a_pause_leaves_its_place(void **state)
{
	const struct nt_system_options options = {
		.ring_bytes = 256 << 10, .events_max = 1, .budget = 1e-9};
	struct host_test test = {0};
	bool were_seen, are_gone, are_seen;
	struct nt_system_stats stats;
	uint64_t now_ns;
	pid_t pid, other;
	int go;

	(void)state;
	host_steps->step = 0;
	pid = host_start(replace_helpers, NULL, &go);
	assert_int_equal(nt_system_new(&options, &test.system), 0);
	nt_system_enrol(test.system, (uint32_t)pid, 1, 1);
	(void)close(go);
	host_wait_for_step(1);
	were_seen = has_members(&test, 2 + STAYING_THREADS + ENDING, STAYING + ENDING);
	now_ns = let_go(test.system);
	host_set_step(2);
	host_wait_for_step(3);
	other = fork_as(host_steps->pid);
	(void)nt_system_tick(test.system, now_ns + 2 * NT_MINUTE, 1.0);
	are_gone = has_members(&test, 1 + STAYING_THREADS, STAYING);
	host_set_step(4);
	host_wait_for_step(5);
	are_seen = has_members(&test, 1 + STAYING_THREADS + ENDING, STAYING + ENDING);
	stats = stats_of(&test);
	if (other)
		host_stop(other);
	else
		print_message("skip: numbers: no process can be given one here\n");
	host_stop(pid);
	nt_system_free(test.system);
	assert_true(were_seen);
	assert_true(now_ns);
	assert_true(are_gone);
	assert_true(are_seen);
	assert_int_equal(stats.helpers_over_cap, 0);
}

/* ---- the program ---------------------------------------------------------------------------- */

static void make_file(void)
{
	static char chunk[CHUNK];
	struct stat status;
	int fd;

	(void)snprintf(large, sizeof(large), "/var/tmp/neutracer-test-%d", getpid());
	fd = open(large, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	memset(chunk, 7, sizeof(chunk));
	for (int i = 0; fd >= 0 && i < FILE_BYTES / CHUNK; i++)
		if (write(fd, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk)) {
			(void)close(fd);
			fd = -1;
		}
	/* A file system in memory has no device of its own, although it may take direct reads. */
	if (fd >= 0 && fstat(fd, &status) == 0 && major(status.st_dev) && fsync(fd) == 0 &&
	    close(fd) == 0) {
		fd = open(large, O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (fd >= 0) {
			(void)close(fd);
			return;
		}
	}
	(void)unlink(large);
	large[0] = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOST_CASE(a_direct_read_waits_for_its_block_device),
		HOST_CASE(a_request_from_before_a_pause_is_no_later_ones),
		HOST_CASE(a_file_of_a_server_is_no_block_device),
		HOST_CASE(a_page_that_is_read_from_disk_is_a_fault),
		HOST_CASE(what_a_forked_process_reads_is_the_ranks),
		HOST_CASE(a_limit_of_memory_makes_the_process_reclaim),
		HOST_CASE(a_kill_for_want_of_memory_is_counted_for_the_forker),
		HOST_CASE(a_thread_that_execs_leaves_nothing_behind),
		HOST_CASE(a_helper_that_becomes_a_rank_is_no_helper),
		HOST_CASE(helpers_beyond_a_page_of_numbers_are_listed_or_counted),
		HOST_CASE(one_with_many_threads_takes_no_place_of_others),
		HOST_CASE(helpers_that_have_ended_are_not_listed),
		cmocka_unit_test(what_ends_in_a_pause_leaves_its_place),
		HOST_CASE(retransmits_and_resets_belong_to_the_sockets_process),
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
	make_file();
	if (!host_share_steps())
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	if (large[0])
		(void)unlink(large);
	return r;
}
