/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a synchronisation of the device waits for: local work alone, or communication too. Streams
 * and events are followed as far as they order work after communication, and from that come spans
 * of time in which the rank, host and device, can only have been busy with its own work:
 *
 * The rank is *clear* when a synchronisation has covered all communication enqueued so far. From
 * then until the next communication is enqueued, whatever it waits for is its own, provided that
 * at the end nothing is left running that no synchronisation has covered. Where the device still
 * communicates, a synchronisation of a stream that is not ordered after it is its own, too. A
 * synchronisation that may also wait for communication belongs to nobody. In doubt, it may.
 */
#ifndef NT_AGENT_ORDER_H
#define NT_AGENT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/work.h"
#include "common/cleanup.h"

enum {
	NT_ORDER_LANES = 16, /* communicators, or streams that carry communication */
	NT_ORDER_STREAMS = 64,
	NT_ORDER_EVENTS = 512,
};

struct nt_order;

NT_MUST_CHECK int nt_order_new(struct nt_order **ret_order);
size_t nt_order_bytes(void);
void nt_order_free(struct nt_order *order);
NT_DEFINE_AUTO(nt_order, nt_order_free)

/*
 * lane: calls of one lane are known to end in the order in which they are enqueued, on whatever
 * streams. NCCL chains the calls of a communicator so (ncclLaunchFinish: its device stream waits for
 * each, and each waits for it); of others only calls on one stream are. This matters where a program
 * asks whether a call has ended, and, as it has, does not wait for it: the queries are not seen.
 * launches: of the process at the entry of the call. Proven own work goes to `work`. The times of
 * one order must not go backwards by more than calls of its threads overlap.
 */
void nt_order_enqueue(struct nt_order *order, struct nt_work *work, uint64_t lane, uint64_t stream,
		      uint64_t entry_ns, uint64_t launches);
void nt_order_record(struct nt_order *order, uint64_t event, uint64_t stream);
void nt_order_wait(struct nt_order *order, uint64_t stream, uint64_t event);

enum nt_order_sync {
	NT_ORDER_STREAM, /* waits for the stream */
	NT_ORDER_EVENT,
	NT_ORDER_DEVICE,
	NT_ORDER_UNCLEAR, /* may wait for anything, and proves nothing: a blocking copy */
};

void nt_order_sync(struct nt_order *order, struct nt_work *work, enum nt_order_sync what,
		   uint64_t handle, uint64_t ret_ns, uint64_t launches);

/* Is no communication pending? */
bool nt_order_is_clear(const struct nt_order *order);

/* Streams, events or lanes that found no place: what they order is then in doubt. */
uint64_t nt_order_overflows(const struct nt_order *order);

#endif
