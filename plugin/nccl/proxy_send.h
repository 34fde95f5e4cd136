/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the network takes for what NCCL's proxies send. A step of a send first waits for the own
 * GPU, then for a free buffer of the peer. Only then the network takes it, and holds it until the
 * step ends; that part alone is measured, so neither a slow sender nor a slow receiver is in it.
 *
 * That holds for networks that refuse a send until the peer has a buffer, as InfiniBand's plugin does.
 * NCCL's sockets take it at once, and hold it until a slow receiver has read it. So nothing is
 * reported until a send of the process was refused once: its state is then repeated
 * [NCCL, src/transport/net.cc and net_socket.cc].
 *
 * Of each peer one channel is measured, the first that sends to it: channels mostly share the card.
 * Not safe for several threads at a time, but for nt_proxy_send_step(). All times in nanoseconds.
 */
#ifndef NT_PLUGIN_NCCL_PROXY_SEND_H
#define NT_PLUGIN_NCCL_PROXY_SEND_H

#include <stddef.h>
#include <stdint.h>

#include "plugin/nccl/profiler_abi.h"

enum {
	NT_PROXY_SEND_PEERS = 64, /* of all communicators; operations to further ones are counted */
	NT_PROXY_SEND_OPS =
		512, /* that are under way; of the oldest one nothing more is measured */
};

#define NT_PROXY_SEND_REPORT_NS 250000000 /* from one report to the next, at least */

/* Nothing is under way, and nothing waits to be reported. */
void nt_proxy_send_reset(void);

/*
 * The returned handle is NULL if nothing more of the event is needed. comm: ncclComm.commHash; rank:
 * of this process in it.
 */
void *nt_proxy_send_op(uint64_t comm, const struct nt_nccl_event *event);
/* A step of an operation: takes a few instructions, in any thread. */
void *nt_proxy_send_step(const struct nt_nccl_event *event);
/* The step has its data, and tries to send it. True if it is not yet known whether sends are refused. */
int nt_proxy_send_is_credit_unknown(void);
void nt_proxy_send_tries(const void *handle);
/* The network has taken the step's bytes; it has sent them. */
void nt_proxy_send_taken(const void *handle, size_t bytes, uint64_t now_ns);
void nt_proxy_send_done(const void *handle, uint64_t now_ns);

/* Events were lost: that many sends at most are not measured. */
void nt_proxy_send_miss(uint32_t events);
/* Hands over what was measured, if the last report is old. */
void nt_proxy_send_report(uint64_t now_ns);

#endif
