/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The TCP sockets of one process, whatever network namespace they are in: an iterator over its open
 * files, which the agent reads now and then. Nothing is attached between two readings.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/socket_record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	PROTOCOL_TCP = 6,
	TYPE_STREAM = 1, /* a raw socket may be of TCP, too */
	STATE_ESTABLISHED = 1,
	STATE_CLOSE_WAIT = 8, /* the other end sends no more */
	RTT_SHIFT = 3,
};

struct in6_addr___socket {
	__u8 bytes[NT_SOCKET_ADDRESS];
};

struct sock_common___socket {
	__be32 skc_daddr, skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr___socket skc_v6_daddr, skc_v6_rcv_saddr;
} __attribute__((preserve_access_index));

struct sock___socket {
	struct sock_common___socket __sk_common;
	__u16 sk_protocol, sk_type;
} __attribute__((preserve_access_index));

struct tcp_sock {
	__u32 data_segs_out, total_retrans, srtt_us;
	__u64 bytes_acked, bytes_received;
} __attribute__((preserve_access_index));

struct socket {
	struct sock___socket *sk;
} __attribute__((preserve_access_index));

struct file;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} __attribute__((preserve_access_index));

static __always_inline void read_addresses(const struct sock___socket *sk,
					   struct nt_socket_record *r)
{
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	r->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	r->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (r->family == NT_SOCKET_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&r->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&r->remote, sk, __sk_common.skc_v6_daddr);
		return;
	}
	BPF_CORE_READ_INTO((__be32 *)r->local, sk, __sk_common.skc_rcv_saddr);
	BPF_CORE_READ_INTO((__be32 *)r->remote, sk, __sk_common.skc_daddr);
}

SEC("iter/task_file")
int process_sockets(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket;
	struct nt_socket_record r;
	const struct tcp_sock *tcp;
	const struct sock___socket *sk;
	__u8 state;

	if (!file || !ctx->task)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || BPF_CORE_READ(sk, sk_protocol) != PROTOCOL_TCP ||
	    BPF_CORE_READ(sk, sk_type) != TYPE_STREAM)
		return 0;
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state != STATE_ESTABLISHED && state != STATE_CLOSE_WAIT)
		return 0;
	__builtin_memset(&r, 0, sizeof(r));
	read_addresses(sk, &r);
	if (r.family != NT_SOCKET_INET && r.family != NT_SOCKET_INET6)
		return 0;
	tcp = (const struct tcp_sock *)sk;
	r.socket = (__u64)sk;
	r.acked = BPF_CORE_READ(tcp, bytes_acked);
	r.received = BPF_CORE_READ(tcp, bytes_received);
	r.segments = BPF_CORE_READ(tcp, data_segs_out);
	r.retransmits = BPF_CORE_READ(tcp, total_retrans);
	r.rtt_us = BPF_CORE_READ(tcp, srtt_us) >> RTT_SHIFT;
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
