/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/socket/socket_table.h"

#define SECOND_NS 1000000000ULL

static struct nt_socket_rows rows;

static struct nt_socket_record record_of(uint64_t socket, uint16_t local_port)
{
	return (struct nt_socket_record){
		.socket = socket,
		.family = NT_SOCKET_INET,
		.local = {10, 0, 0, 1},
		.remote = {10, 0, 0, 2},
		.local_port = local_port,
		.remote_port = 7000,
		.acked = 1000,
		.received = 500,
		.segments = 10,
		.retransmits = 1,
		.rtt_us = 40,
	};
}

static void take(struct nt_socket_table *table, const struct nt_socket_record *record,
		 size_t records, uint64_t now_ns)
{
	assert_int_equal(nt_socket_table_take(table, record, records, 0, now_ns), 0);
}

static void what_was_before_the_first_reading_does_not_count(void **state)
{
	struct nt_socket_record record = record_of(1, 40000);
	struct nt_socket_table table = {0};
	struct nt_tcp_window window;

	(void)state;
	assert_false(nt_socket_table_window(&table, &rows, &window));
	take(&table, &record, 1, SECOND_NS);
	assert_false(nt_socket_table_window(&table, &rows, &window)); /* no time has passed */
	record.acked += 3000;
	record.received += 7;
	record.segments += 4;
	record.retransmits += 2;
	take(&table, &record, 1, 11 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.observed_ns, 10 * SECOND_NS);
	assert_int_equal(window.sockets, 1);
	assert_int_equal(window.socket_count, 1);
	assert_string_equal(window.socket[0].local, "10.0.0.1");
	assert_string_equal(window.socket[0].remote, "10.0.0.2");
	assert_int_equal(window.socket[0].local_port, 40000);
	assert_int_equal(window.socket[0].remote_port, 7000);
	assert_int_equal(window.socket[0].sent_bytes, 3000);
	assert_int_equal(window.socket[0].received_bytes, 7);
	assert_int_equal(window.socket[0].segments, 4);
	assert_int_equal(window.socket[0].retransmits, 2);
	assert_int_equal(window.socket[0].rtt_ns, 40000);
	assert_false(nt_socket_table_window(&table, &rows, &window)); /* sent once */
	nt_socket_table_release(&table);
}

/* Two readings before a window, the second without traffic; then one that is idle. */
static void readings_add_up_and_idle_sockets_are_not_sent_again(void **state)
{
	struct nt_socket_record record[2] = {record_of(1, 40000), record_of(2, 40001)};
	struct nt_socket_table table = {0};
	struct nt_tcp_window window;

	(void)state;
	take(&table, record, 2, SECOND_NS);
	record[1].acked += 100;
	record[1].segments = 5; /* it has wrapped */
	take(&table, record, 2, 2 * SECOND_NS);
	take(&table, record, 2, 3 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.observed_ns, 2 * SECOND_NS);
	assert_int_equal(window.socket_count, 2);
	assert_int_equal(window.socket[0].local_port, 40001); /* the most bytes first */
	assert_int_equal(window.socket[0].sent_bytes, 100);
	assert_int_equal(window.socket[0].segments, UINT32_MAX - 4);
	assert_int_equal(window.socket[1].sent_bytes, 0);
	take(&table, record, 2, 4 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.socket_count, 0);
	assert_int_equal(window.sockets, 2);
	nt_socket_table_release(&table);
}

static void a_closed_socket_is_gone_and_its_place_begins_anew(void **state)
{
	struct nt_socket_record record[2] = {record_of(1, 40000), record_of(2, 40001)};
	struct nt_socket_table table = {0};
	struct nt_tcp_window window;

	(void)state;
	take(&table, record, 2, SECOND_NS);
	record[0].local_port = 50000; /* another connection, and fewer bytes */
	record[0].acked = 10;
	take(&table, record, 1, 2 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.sockets, 1);
	assert_int_equal(window.socket_count, 1);
	assert_int_equal(window.socket[0].local_port, 50000);
	assert_int_equal(window.socket[0].sent_bytes, 0);
	/* The same ports once more, with counts that went back. */
	record[0].acked = 5;
	take(&table, record, 1, 3 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.socket[0].sent_bytes, 0);
	nt_socket_table_release(&table);
}

/* Both ends of a connection must state its addresses alike. */
static void ipv4_in_ipv6_is_ipv4(void **state)
{
	static const uint8_t mapped[NT_SOCKET_ADDRESS] = {[10] = 0xff, 0xff, 10, 1, 2, 3};
	struct nt_socket_record record = record_of(1, 40000);
	struct nt_socket_table table = {0};
	struct nt_tcp_window window;

	(void)state;
	record.family = NT_SOCKET_INET6;
	memcpy(record.local, mapped, sizeof(mapped));
	memset(record.remote, 0, sizeof(record.remote));
	record.remote[0] = 0xfd;
	record.remote[15] = 9;
	take(&table, &record, 1, SECOND_NS);
	take(&table, &record, 1, 2 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_string_equal(window.socket[0].local, "10.1.2.3");
	assert_string_equal(window.socket[0].remote, "fd00::9");
	nt_socket_table_release(&table);
}

/* A descriptor that was copied shows the same socket: it counts once. */
static void a_socket_that_comes_twice_counts_once(void **state)
{
	struct nt_socket_record record[2] = {record_of(1, 40000), record_of(1, 40000)};
	struct nt_socket_table table = {0};
	struct nt_tcp_window window;

	(void)state;
	take(&table, record, 2, SECOND_NS);
	record[0].acked = record[1].acked = 1500;
	take(&table, record, 2, 2 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.socket_count, 1);
	assert_int_equal(window.socket[0].sent_bytes, 500);
	nt_socket_table_release(&table);
}

static void sockets_are_capped_and_counted(void **state)
{
	static struct nt_socket_record record[NT_SOCKETS + 3];
	struct nt_socket_table table = {0};
	struct nt_tcp_window window;

	(void)state;
	for (size_t i = 0; i < NT_SOCKETS + 3; i++)
		record[i] = record_of(i + 1, (uint16_t)(10000 + i));
	assert_int_equal(nt_socket_table_take(&table, record, NT_SOCKETS + 3, 5, SECOND_NS), 0);
	assert_int_equal(nt_socket_table_take(&table, record, NT_SOCKETS + 3, 5, 2 * SECOND_NS), 0);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.sockets, NT_SOCKETS);
	assert_int_equal(window.sockets_over_cap, 8);
	assert_int_equal(window.socket_count, NT_WIRE_MAX_TCP_SOCKETS);
	assert_int_equal(window.unsent, NT_SOCKETS - NT_WIRE_MAX_TCP_SOCKETS);
	/* The others follow. */
	take(&table, record, NT_SOCKETS, 3 * SECOND_NS);
	assert_true(nt_socket_table_window(&table, &rows, &window));
	assert_int_equal(window.socket_count, NT_SOCKETS - NT_WIRE_MAX_TCP_SOCKETS);
	nt_socket_table_release(&table);
}

static void a_process_that_takes_long_to_read_is_read_seldom(void **state)
{
	(void)state;
	assert_int_equal(nt_socket_pause_ns(0), 10 * SECOND_NS);
	assert_int_equal(nt_socket_pause_ns(SECOND_NS / 100), 10 * SECOND_NS);
	assert_int_equal(nt_socket_pause_ns(SECOND_NS / 5), 200 * SECOND_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_before_the_first_reading_does_not_count),
		cmocka_unit_test(readings_add_up_and_idle_sockets_are_not_sent_again),
		cmocka_unit_test(a_closed_socket_is_gone_and_its_place_begins_anew),
		cmocka_unit_test(ipv4_in_ipv6_is_ipv4),
		cmocka_unit_test(a_socket_that_comes_twice_counts_once),
		cmocka_unit_test(sockets_are_capped_and_counted),
		cmocka_unit_test(a_process_that_takes_long_to_read_is_read_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
