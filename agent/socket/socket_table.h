/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The TCP sockets of one process, by what was read of them: how much each has done since the last
 * window. What a socket did before its first reading does not count. Has no thread.
 */
#ifndef NT_AGENT_SOCKET_SOCKET_TABLE_H
#define NT_AGENT_SOCKET_SOCKET_TABLE_H

#include <linux/types.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/socket_record.h"
#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "proto/wire.h"

enum {
	NT_SOCKETS = 256, /* of one process; further ones are counted */
};

struct nt_process_socket {
	uint64_t socket; /* the key */
	struct nt_socket_record last;
	uint64_t sent_bytes, received_bytes, segments, retransmits; /* since the last window */
	bool is_new, is_read;
	UT_hash_handle hh;
};

/* Zero-initialised: none. */
struct nt_socket_table {
	struct nt_process_socket *socket;
	uint64_t read_ns; /* time of the last reading; 0: none */
	uint64_t observed_ns; /* between readings, since the last window */
	uint32_t over_cap; /* at the last reading */
};

/* What nt_socket_table_window() fills. */
struct nt_socket_rows {
	struct nt_tcp_socket socket[NT_WIRE_MAX_TCP_SOCKETS];
	char local[NT_WIRE_MAX_TCP_SOCKETS][INET6_ADDRSTRLEN];
	char remote[NT_WIRE_MAX_TCP_SOCKETS][INET6_ADDRSTRLEN];
};

/* A complete reading: sockets that are not in it are gone, with what they did since the last one. */
NT_MUST_CHECK int nt_socket_table_take(struct nt_socket_table *table,
				       const struct nt_socket_record *record, size_t records,
				       size_t left_out, uint64_t now_ns);

/*
 * New sockets and those with traffic, the most bytes first. False: nothing was read since the last
 * window. The window refers to the rows.
 */
bool nt_socket_table_window(struct nt_socket_table *table, struct nt_socket_rows *rows,
			    struct nt_tcp_window *ret_window);

/*
 * From one reading of a process to the next, if the first took so long: a process may have a million
 * open files, to keep the reading thread busy.
 */
uint64_t nt_socket_pause_ns(uint64_t took_ns);

void nt_socket_table_release(struct nt_socket_table *table);

#endif
