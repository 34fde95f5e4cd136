/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What bpf/socket.bpf.c writes of each TCP socket of a process. Needs vmlinux.h or <linux/types.h>. */
#ifndef NT_BPF_SOCKET_RECORD_H
#define NT_BPF_SOCKET_RECORD_H

enum {
	NT_SOCKET_ADDRESS = 16, /* bytes; of IPv4 the first four */
	NT_SOCKET_INET = 2, /* AF_INET */
	NT_SOCKET_INET6 = 10, /* AF_INET6 */
};

/* Counts are of the socket's life, and may wrap. */
struct nt_socket_record {
	__u64 socket; /* its identity, as long as it exists */
	__u64 acked, received; /* bytes that the other end has acknowledged, and bytes from there */
	__u32 segments, retransmits; /* sent segments with data, and those sent again */
	__u32 rtt_us; /* smoothed round-trip time; 0: not known */
	__u16 local_port, remote_port;
	__u32 family;
	__u32 unused;
	__u8 local[NT_SOCKET_ADDRESS], remote[NT_SOCKET_ADDRESS];
};

#endif
