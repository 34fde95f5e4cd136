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
#ifndef NT_AGENT_STEPS_STREAM_ORDER_H
#define NT_AGENT_STEPS_STREAM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/steps/step_accounting.h"
#include "common/base/cleanup.h"

enum {
	NT_STREAM_ORDER_LANES = 16, /* communicators, or streams that carry communication */
	NT_STREAM_ORDER_STREAMS = 64,
	NT_STREAM_ORDER_EVENTS = 512,
};

struct nt_stream_order;

NT_MUST_CHECK int nt_stream_order_new(struct nt_stream_order **ret_order);
size_t nt_stream_order_bytes(void);
void nt_stream_order_free(struct nt_stream_order *order);
NT_DEFINE_AUTO(nt_stream_order, nt_stream_order_free)

/*
 * lane: calls of one lane are known to end in the order in which they are enqueued, on whatever
 * streams. NCCL chains the calls of a communicator so (ncclLaunchFinish: its device stream waits for
 * each, and each waits for it); of others only calls on one stream are. This matters where a program
 * asks whether a call has ended, and, as it has, does not wait for it: the queries are not seen.
 * launches: of the process at the entry of the call. Proven own work goes to `work`. The times of
 * one order must not go backwards by more than calls of its threads overlap.
 */
void nt_stream_order_enqueue(struct nt_stream_order *order, struct nt_accounting *work,
			     uint64_t lane, uint64_t stream, uint64_t entry_ns, uint64_t launches);
void nt_stream_order_record(struct nt_stream_order *order, uint64_t event, uint64_t stream);
void nt_stream_order_wait(struct nt_stream_order *order, uint64_t stream, uint64_t event);

enum nt_stream_order_sync {
	NT_STREAM_ORDER_STREAM, /* waits for the stream */
	NT_STREAM_ORDER_EVENT,
	NT_STREAM_ORDER_DEVICE,
	NT_STREAM_ORDER_UNCLEAR, /* may wait for anything, and proves nothing: a blocking copy */
};

void nt_stream_order_sync(struct nt_stream_order *order, struct nt_accounting *work,
			  enum nt_stream_order_sync what, uint64_t handle, uint64_t ret_ns,
			  uint64_t launches);

/* Is no communication pending? */
bool nt_stream_order_is_clear(const struct nt_stream_order *order);

/* Streams, events or lanes that found no place: what they order is then in doubt. */
uint64_t nt_stream_order_overflows(const struct nt_stream_order *order);

#endif
