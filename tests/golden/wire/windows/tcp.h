/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The TCP sockets of the golden window. */
#ifndef NT_TESTS_GOLDEN_WIRE_WINDOWS_TCP_H
#define NT_TESTS_GOLDEN_WIRE_WINDOWS_TCP_H

#include "proto/wire.h"

static struct nt_tcp_socket golden_tcp_sockets[] = {
	{.local = "10.0.0.1",
	 .local_port = 2601,
	 .remote = "10.0.0.2",
	 .remote_port = 2602,
	 .sent_bytes = 2605,
	 .received_bytes = 2606,
	 .segments = 2607,
	 .retransmits = 2608,
	 .rtt_ns = 2609},
	{.local = "fd00::1",
	 .local_port = 2603,
	 .remote = "fd00::2",
	 .remote_port = 2604,
	 .sent_bytes = 2610,
	 .received_bytes = 2611,
	 .segments = 2612,
	 .retransmits = 2613,
	 .rtt_ns = 2614},
};

static inline void golden_fill_tcp(struct nt_window *window)
{
	window->tcp = (struct nt_tcp_window){.socket = golden_tcp_sockets,
					     .socket_count = 2,
					     .observed_ns = 2615,
					     .sockets = 2616,
					     .sockets_over_cap = 2617,
					     .unsent = 2618};
}

#endif
