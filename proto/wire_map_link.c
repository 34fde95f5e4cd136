/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of what windows state of RDMA and TCP. */
#include "proto/wire_map.h"
#include "proto/wire_row.h"

/* clang-format off */
static const struct nt_wire_field fields_nt_rdma_pair[] = {
	U32(RdmaPair, nt_rdma_pair, qpn),
	U32(RdmaPair, nt_rdma_pair, remote_qpn),
	TEXT(RdmaPair, nt_rdma_pair, local_gid),
	TEXT(RdmaPair, nt_rdma_pair, remote_gid),
	U32(RdmaPair, nt_rdma_pair, local_lid),
	U32(RdmaPair, nt_rdma_pair, remote_lid),
	TEXT(RdmaPair, nt_rdma_pair, device),
	U32(RdmaPair, nt_rdma_pair, port),
	U32(RdmaPair, nt_rdma_pair, type),
	U32(RdmaPair, nt_rdma_pair, state),
	BOOL(RdmaPair, nt_rdma_pair, not_visible),
	U64(RdmaPair, nt_rdma_pair, writes),
	U64(RdmaPair, nt_rdma_pair, write_bytes),
	U64(RdmaPair, nt_rdma_pair, sends),
	U64(RdmaPair, nt_rdma_pair, send_bytes),
	U64(RdmaPair, nt_rdma_pair, reads),
	U64(RdmaPair, nt_rdma_pair, read_bytes),
	U64(RdmaPair, nt_rdma_pair, atomics),
	U64(RdmaPair, nt_rdma_pair, atomic_bytes),
	U64(RdmaPair, nt_rdma_pair, others),
	U64(RdmaPair, nt_rdma_pair, other_bytes),
	U64(RdmaPair, nt_rdma_pair, completions),
	U64(RdmaPair, nt_rdma_pair, received),
	U64(RdmaPair, nt_rdma_pair, received_bytes),
	U64(RdmaPair, nt_rdma_pair, errors),
	U32(RdmaPair, nt_rdma_pair, error_status),
	U64(RdmaPair, nt_rdma_pair, timed),
	U64(RdmaPair, nt_rdma_pair, latency_ns),
	U64(RdmaPair, nt_rdma_pair, latency_least_ns),
	U64(RdmaPair, nt_rdma_pair, latency_most_ns),
	U64(RdmaPair, nt_rdma_pair, untimed),
};
SHAPE(nt_rdma_pair, rdma_pair, NULL);

static const struct nt_wire_field fields_nt_rdma_window[] = {
	MANY(Rdma, nt_rdma_window, pair, pair_count, NT_WIRE_MAX_RDMA_PAIRS, RdmaPair, nt_rdma_pair),
	U64(Rdma, nt_rdma_window, observed_ns),
	U64(Rdma, nt_rdma_window, polled_ns),
	U32(Rdma, nt_rdma_window, pairs),
	U64(Rdma, nt_rdma_window, pairs_over_cap),
	U32(Rdma, nt_rdma_window, unsent),
	U64(Rdma, nt_rdma_window, regions),
	U64(Rdma, nt_rdma_window, region_bytes),
	U32(Rdma, nt_rdma_window, not_visible),
	U64(Rdma, nt_rdma_window, cut),
	U64(Rdma, nt_rdma_window, unread),
};
SHAPE_SHARED(nt_rdma_window, rdma, nt_wire_rdma_shape);

static const struct nt_wire_field fields_nt_tcp_socket[] = {
	TEXT(TcpSocket, nt_tcp_socket, local),
	U32(TcpSocket, nt_tcp_socket, local_port),
	TEXT(TcpSocket, nt_tcp_socket, remote),
	U32(TcpSocket, nt_tcp_socket, remote_port),
	U64(TcpSocket, nt_tcp_socket, sent_bytes),
	U64(TcpSocket, nt_tcp_socket, received_bytes),
	U64(TcpSocket, nt_tcp_socket, segments),
	U64(TcpSocket, nt_tcp_socket, retransmits),
	U64(TcpSocket, nt_tcp_socket, rtt_ns),
};
SHAPE(nt_tcp_socket, tcp_socket, NULL);

static const struct nt_wire_field fields_nt_tcp_window[] = {
	MANY(Tcp, nt_tcp_window, socket, socket_count, NT_WIRE_MAX_TCP_SOCKETS, TcpSocket, nt_tcp_socket),
	U64(Tcp, nt_tcp_window, observed_ns),
	U32(Tcp, nt_tcp_window, sockets),
	U32(Tcp, nt_tcp_window, sockets_over_cap),
	U32(Tcp, nt_tcp_window, unsent),
};
SHAPE_SHARED(nt_tcp_window, tcp, nt_wire_tcp_shape);
