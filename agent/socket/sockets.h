/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The TCP sockets of the node's ranks: bytes, segments that were sent again, and round-trip times of
 * each connection. A thread reads one process after the other, each about every ten seconds, and
 * seldomer one with so many open files that this takes long.
 */
#ifndef NT_AGENT_SOCKET_SOCKETS_H
#define NT_AGENT_SOCKET_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_SOCKETS_PROCESSES =
		1024, /* as many as the tracker has, which shares them among owners */
};

struct nt_sockets_stats {
	uint64_t processes, sockets; /* now */
	uint64_t readings, failed, read_ns; /* so far; read_ns: in readings */
	uint64_t processes_over_cap, sockets_over_cap, unsent; /* so far */
};

struct nt_sockets;

/* -ENOTSUP: this kernel cannot show them (before 6.1). -EPERM, -ENOMEM, -EAGAIN. */
NT_MUST_CHECK int nt_sockets_new(struct nt_sockets **ret_sockets);
/* Accepts NULL, like the other functions. */
void nt_sockets_free(struct nt_sockets *sockets);
NT_DEFINE_AUTO(nt_sockets, nt_sockets_free)

/* A process has become a rank; has ended, or is no longer watched. */
void nt_sockets_add(struct nt_sockets *sockets, uint32_t pid);
void nt_sockets_end(struct nt_sockets *sockets, uint32_t pid);

/* To be called several times a second, in boot time: takes what was read, and has the next one read. */
void nt_sockets_tick(struct nt_sockets *sockets, uint64_t now_ns);

/*
 * What the sockets of the process have done since the last call. Borrowed until the next call of any
 * function here. NULL: nothing was read since.
 */
const struct nt_tcp_window *nt_sockets_take_window(struct nt_sockets *sockets, uint32_t pid);

void nt_sockets_stats(const struct nt_sockets *sockets, struct nt_sockets_stats *ret_stats);

#endif
