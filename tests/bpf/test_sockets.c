/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The TCP sockets of real processes, in this network namespace and in another. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/socket/socket_reader.h"
#include "agent/socket/sockets.h"
#include "common/system/clock.h"

enum {
	BYTES = 100000,
	CONNECTIONS = 3,
	RECORDS = 16,
	EXIT_SKIP = 77,
	TRIES = 6000,
};

struct child {
	pid_t pid;
	int to, from; /* pipes: each byte is a step, which a byte answers */
};

static struct nt_socket_reader *reader;

/* ---- the process that is read ---------------------------------------------------------------- */

static void raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		_exit(2);
	(void)close(fd);
}

static void connect_pair(int listener, int pair[2])
{
	struct sockaddr_in6 address;
	socklen_t size = sizeof(address);

	if (getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		_exit(3);
	pair[0] = socket(address.sin6_family, SOCK_STREAM, 0);
	if (connect(pair[0], (struct sockaddr *)&address, size) < 0)
		_exit(4);
	pair[1] = accept(listener, NULL, NULL);
	if (pair[1] < 0)
		_exit(5);
}

static void send_bytes(const int pair[2])
{
	char buf[BYTES] = {0};
	size_t got = 0;

	if (write(pair[0], buf, BYTES) != BYTES)
		_exit(6);
	while (got < BYTES) {
		const ssize_t n = read(pair[1], buf, sizeof(buf));

		if (n <= 0)
			_exit(7);
		got += (size_t)n;
	}
}

/* Sends over its first connection at each step, over a second one of IPv6, and has others idle. */
static void act(int in, int out, bool is_apart)
{
	const struct sockaddr_in any4 = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6,
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const int four = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0);
	int pair[CONNECTIONS][2];
	char byte;

	if (is_apart)
		raise_loopback();
	if (bind(four, (const struct sockaddr *)&any4, sizeof(any4)) < 0 || listen(four, 8) < 0)
		_exit(8);
	if (bind(six, (const struct sockaddr *)&any6, sizeof(any6)) < 0 || listen(six, 8) < 0)
		_exit(9);
	for (int i = 0; i < CONNECTIONS; i++)
		connect_pair(i == 1 ? six : four, pair[i]);
	(void)socket(AF_INET, SOCK_DGRAM, 0);
	if (dup(pair[0][0]) < 0)
		_exit(11);
	while (read(in, &byte, 1) == 1) {
		send_bytes(pair[0]);
		send_bytes(pair[1]);
		if (write(out, &byte, 1) != 1)
			_exit(10);
	}
	_exit(0);
}

static void step(const struct child *child)
{
	char byte = 0;

	assert_int_equal(write(child->to, &byte, 1), 1);
	assert_int_equal(read(child->from, &byte, 1), 1);
}

static struct child begin(bool is_apart)
{
	struct child child;
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(to[1]);
		if (is_apart && unshare(CLONE_NEWNET) < 0)
			_exit(1);
		act(to[0], from[1], is_apart);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	child.to = to[1];
	child.from = from[0];
	step(&child);
	return child;
}

static void end(const struct child *child)
{
	int status;

	(void)close(child->to);
	(void)close(child->from);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const struct nt_socket_record *sender(const struct nt_socket_record *record, size_t count,
					     uint32_t family)
{
	for (size_t i = 0; i < count; i++)
		if (record[i].family == family && record[i].acked > BYTES / 2)
			return &record[i];
	return NULL;
}

static void bytes_are_those_that_the_process_sent(const struct child *child)
{
	struct nt_socket_record record[RECORDS];
	const struct nt_socket_record *four, *six;
	size_t count, left_out;

	step(child);
	assert_int_equal(nt_socket_reader_read(reader, (uint32_t)child->pid, record, RECORDS,
					       &count, &left_out),
			 0);
	/* Both ends of each, and one of them twice; neither those that listen nor the one of UDP. */
	assert_int_equal(count, 2 * CONNECTIONS + 1);
	assert_int_equal(left_out, 0);
	four = sender(record, count, NT_SOCKET_INET);
	six = sender(record, count, NT_SOCKET_INET6);
	assert_non_null(four);
	assert_non_null(six);
	/* The handshake counts as a byte. */
	assert_in_range(four->acked, 2 * BYTES, 2 * BYTES + 1);
	assert_in_range(six->acked, 2 * BYTES, 2 * BYTES + 1);
	assert_true(four->segments > 0 && four->rtt_us > 0);
	assert_memory_equal(four->remote, ((uint8_t[]){127, 0, 0, 1}), 4);
	assert_memory_equal(six->remote, &in6addr_loopback, 16);
	for (size_t i = 0, found = 0; i < count; i++) {
		found += record[i].local_port == four->remote_port &&
			 record[i].remote_port == four->local_port &&
			 record[i].received == 2 * BYTES;
		assert_true(i + 1 < count || found == 1);
	}
}

static void sockets_of_a_process_are_read(void **state)
{
	const struct child child = begin(false);

	(void)state;
	bytes_are_those_that_the_process_sent(&child);
	end(&child);
}

static void sockets_in_another_network_namespace_are_read(void **state)
{
	const struct child child = begin(true);

	(void)state;
	bytes_are_those_that_the_process_sent(&child);
	end(&child);
}

static void further_sockets_are_counted_and_a_process_that_ended_has_none(void **state)
{
	const struct child child = begin(false);
	struct nt_socket_record record[2];
	size_t count, left_out;

	(void)state;
	assert_int_equal(
		nt_socket_reader_read(reader, (uint32_t)child.pid, record, 2, &count, &left_out),
		0);
	assert_int_equal(count, 2);
	assert_int_equal(left_out, 2 * CONNECTIONS - 1);
	end(&child);
	if (nt_socket_reader_read(reader, (uint32_t)child.pid, record, 2, &count, &left_out) == 0)
		assert_int_equal(count, 0);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Ticks until a window of the process is there. Each reading is due at once. */
static const struct nt_tcp_window *next_window(struct nt_sockets *sockets, uint32_t pid,
					       uint64_t *now_ns)
{
	const struct timespec pause = {.tv_nsec = 10 * NT_MILLISECOND};

	for (int i = 0; i < TRIES; i++) {
		const struct nt_tcp_window *window;

		*now_ns += 20 * NT_SECOND;
		nt_sockets_tick(sockets, *now_ns);
		window = nt_sockets_take_window(sockets, pid);
		if (window)
			return window;
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

static void the_window_of_a_process_has_its_traffic(void **state)
{
	const struct child child = begin(false);
	const uint32_t pid = (uint32_t)child.pid;
	nt_auto(nt_sockets) struct nt_sockets *sockets = NULL;
	const struct nt_tcp_window *window;
	struct nt_sockets_stats stats;
	uint64_t now_ns = 0, sent = 0;

	(void)state;
	assert_int_equal(nt_sockets_new(&sockets), 0);
	nt_sockets_add(sockets, pid);
	nt_sockets_add(sockets, pid);
	assert_null(nt_sockets_take_window(sockets, pid));
	window = next_window(sockets, pid, &now_ns);
	assert_non_null(window);
	assert_int_equal(window->sockets, 2 * CONNECTIONS);
	step(&child);
	for (int i = 0; i < TRIES && sent < 2ULL * BYTES; i++) {
		window = next_window(sockets, pid, &now_ns);
		assert_non_null(window);
		for (size_t j = 0; j < window->socket_count; j++)
			sent += window->socket[j].sent_bytes;
	}
	assert_int_equal(sent, 2 * BYTES);
	nt_sockets_stats(sockets, &stats);
	assert_int_equal(stats.processes, 1);
	assert_true(stats.readings >= 3 && stats.failed == 0);
	nt_sockets_end(sockets, pid);
	nt_sockets_tick(sockets, now_ns);
	assert_null(nt_sockets_take_window(sockets, pid));
	end(&child);
}

static void processes_are_capped_and_counted(void **state)
{
	nt_auto(nt_sockets) struct nt_sockets *sockets = NULL;
	struct nt_sockets_stats stats;

	(void)state;
	assert_int_equal(nt_sockets_new(&sockets), 0);
	for (uint32_t i = 0; i < NT_SOCKETS_PROCESSES + 4; i++)
		nt_sockets_add(sockets, 0x40000000 + i);
	nt_sockets_stats(sockets, &stats);
	assert_int_equal(stats.processes, NT_SOCKETS_PROCESSES);
	assert_int_equal(stats.processes_over_cap, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_of_a_process_are_read),
		cmocka_unit_test(sockets_in_another_network_namespace_are_read),
		cmocka_unit_test(further_sockets_are_counted_and_a_process_that_ended_has_none),
		cmocka_unit_test(the_window_of_a_process_has_its_traffic),
		cmocka_unit_test(processes_are_capped_and_counted),
	};
	int r = nt_socket_reader_new(&reader);

	if (r == -EPERM || r == -ENOTSUP) {
		printf("skip: bpf: sockets cannot be read here (%d)\n", r);
		return EXIT_SKIP;
	}
	if (r == 0)
		r = cmocka_run_group_tests(tests, NULL, NULL);
	nt_socket_reader_free(reader);
	return r;
}
