/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/socket_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"

enum {
	MICROSECOND = 1000,
	TIME_SHARE = 1000, /* readings of one process take at most 1 / this of the time */
	MAPPED = 12, /* bytes before an IPv4 address in one of IPv6 */
};

#define PERIOD_NS (10 * NT_SECOND)

uint64_t nt_socket_pause_ns(uint64_t took_ns)
{
	return took_ns > PERIOD_NS / TIME_SHARE ? TIME_SHARE * took_ns : PERIOD_NS;
}

static void drop(struct nt_socket_table *table, struct nt_process_socket *socket)
{
	HASH_DEL(table->socket, socket);
	free(socket);
}

void nt_socket_table_release(struct nt_socket_table *table)
{
	struct nt_process_socket *socket, *next;

	HASH_ITER(hh, table->socket, socket, next)
	drop(table, socket);
	*table = (struct nt_socket_table){0};
}

/* The kernel gives the place of a closed socket to another one. */
static bool is_same(const struct nt_socket_record *a, const struct nt_socket_record *b)
{
	return a->local_port == b->local_port && a->remote_port == b->remote_port &&
	       a->family == b->family && memcmp(a->local, b->local, sizeof(a->local)) == 0 &&
	       memcmp(a->remote, b->remote, sizeof(a->remote)) == 0 && a->acked <= b->acked &&
	       a->received <= b->received;
}

static void begin_socket(struct nt_process_socket *socket, const struct nt_socket_record *record)
{
	socket->socket = record->socket;
	socket->last = *record;
	socket->sent_bytes = socket->received_bytes = 0;
	socket->segments = socket->retransmits = 0;
	socket->is_new = true;
}

static void add_traffic(struct nt_process_socket *socket, const struct nt_socket_record *record)
{
	const struct nt_socket_record *last = &socket->last;

	socket->sent_bytes += record->acked - last->acked;
	socket->received_bytes += record->received - last->received;
	/* Of 32 bits: they wrap. */
	socket->segments += (uint32_t)(record->segments - last->segments);
	socket->retransmits += (uint32_t)(record->retransmits - last->retransmits);
	socket->last = *record;
}

static int take_record(struct nt_socket_table *table, const struct nt_socket_record *record)
{
	struct nt_process_socket *socket = NULL;

	HASH_FIND(hh, table->socket, &record->socket, sizeof(record->socket), socket);
	if (socket) {
		if (is_same(&socket->last, record))
			add_traffic(socket, record);
		else
			begin_socket(socket, record);
		socket->is_read = true;
		return 0;
	}
	if (HASH_COUNT(table->socket) >= NT_SOCKETS) {
		table->over_cap++;
		return 0;
	}
	socket = calloc(1, sizeof(*socket));
	if (!socket)
		return -ENOMEM;
	begin_socket(socket, record);
	socket->is_read = true;
	HASH_ADD(hh, table->socket, socket, sizeof(socket->socket), socket);
	if (nt_table_has(socket))
		return 0;
	free(socket);
	return -ENOMEM;
}

int nt_socket_table_take(struct nt_socket_table *table, const struct nt_socket_record *record,
			 size_t records, size_t left_out, uint64_t now_ns)
{
	struct nt_process_socket *socket, *next;
	int r = 0;

	if (table->read_ns && now_ns > table->read_ns)
		table->observed_ns += now_ns - table->read_ns;
	table->read_ns = now_ns;
	table->over_cap = left_out < UINT32_MAX ? (uint32_t)left_out : UINT32_MAX;
	HASH_ITER(hh, table->socket, socket, next)
	socket->is_read = false;
	for (size_t i = 0; i < records && r == 0; i++)
		r = take_record(table, &record[i]);
	HASH_ITER(hh, table->socket, socket, next)
	if (r == 0 && !socket->is_read)
		drop(table, socket);
	return r;
}

/* ---- windows --------------------------------------------------------------------------------- */

static int by_traffic(const void *left, const void *right)
{
	const struct nt_process_socket *const *a = left, *const *b = right;
	const uint64_t more = (*a)->sent_bytes + (*a)->received_bytes,
		       less = (*b)->sent_bytes + (*b)->received_bytes;

	if (more != less)
		return more > less ? -1 : 1;
	return (*a)->last.local_port < (*b)->last.local_port ? -1 : 1;
}

/* A socket of IPv6 may carry IPv4, which its other end states as such. */
static void write_address(uint32_t family, const uint8_t address[NT_SOCKET_ADDRESS],
			  char ret_text[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[MAPPED] = {[10] = 0xff, [11] = 0xff};
	const bool is_mapped = family == NT_SOCKET_INET6 && memcmp(address, mapped, MAPPED) == 0;

	if (family == NT_SOCKET_INET || is_mapped)
		(void)inet_ntop(AF_INET, is_mapped ? address + MAPPED : address, ret_text,
				INET6_ADDRSTRLEN);
	else
		(void)inet_ntop(AF_INET6, address, ret_text, INET6_ADDRSTRLEN);
}

static void send_socket(struct nt_process_socket *socket, size_t i, struct nt_socket_rows *rows)
{
	write_address(socket->last.family, socket->last.local, rows->local[i]);
	write_address(socket->last.family, socket->last.remote, rows->remote[i]);
	rows->socket[i] = (struct nt_tcp_socket){
		.local = rows->local[i],
		.local_port = socket->last.local_port,
		.remote = rows->remote[i],
		.remote_port = socket->last.remote_port,
		.sent_bytes = socket->sent_bytes,
		.received_bytes = socket->received_bytes,
		.segments = socket->segments,
		.retransmits = socket->retransmits,
		.rtt_ns = (uint64_t)socket->last.rtt_us * MICROSECOND,
	};
	socket->is_new = false;
	socket->sent_bytes = socket->received_bytes = 0;
	socket->segments = socket->retransmits = 0;
}

bool nt_socket_table_window(struct nt_socket_table *table, struct nt_socket_rows *rows,
			    struct nt_tcp_window *ret_window)
{
	struct nt_process_socket *row[NT_SOCKETS];
	size_t count = 0;

	if (!table->observed_ns)
		return false;
	*ret_window = (struct nt_tcp_window){
		.socket = rows->socket,
		.observed_ns = table->observed_ns,
		.sockets = HASH_COUNT(table->socket),
		.sockets_over_cap = table->over_cap,
	};
	table->observed_ns = 0;
	for (struct nt_process_socket *s = table->socket; s; s = s->hh.next)
		if (s->is_new || s->sent_bytes || s->received_bytes || s->segments ||
		    s->retransmits)
			row[count++] = s;
	qsort(row, count, sizeof(struct nt_process_socket *), by_traffic);
	ret_window->socket_count =
		count < NT_WIRE_MAX_TCP_SOCKETS ? count : NT_WIRE_MAX_TCP_SOCKETS;
	ret_window->unsent = (uint32_t)(count - ret_window->socket_count);
	for (size_t i = 0; i < ret_window->socket_count; i++)
		send_socket(row[i], i, rows);
	return true;
}
