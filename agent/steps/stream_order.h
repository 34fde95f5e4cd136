/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stream order: decides whether a synchronisation of the device waits for local work alone or also
 * for communication. Streams and events are tracked as far as they order work after communication.
 * The result is spans in which the rank, host and device, only did own work.
 *
 * The rank is *clear* when a synchronisation has covered all communication enqueued so far. Until
 * the next communication is enqueued, its waits are own work, provided that at the end no uncovered
 * work is left running. While the device still communicates, synchronising a stream that is not
 * ordered after it is own work too. A synchronisation that may also wait for communication counts
 * as neither. In doubt, it may.
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
 * lane: calls of one lane end in the order in which they are enqueued, on whatever streams. NCCL
 * chains the calls of a communicator so (ncclLaunchFinish: its device stream waits for each, and
 * each waits for it). Other libraries' calls are ordered on one stream only. This matters if a
 * program polls for completion and then does not wait: polls are not taken here. launches: of the
 * process at the entry of the call. Proven own work is added to `work`. Times must not go backwards
 * by more than calls of several threads overlap.
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

/* True if no communication is pending. */
bool nt_stream_order_is_clear(const struct nt_stream_order *order);

/* Streams, events or lanes over the caps; what they order is unknown. */
uint64_t nt_stream_order_overflows(const struct nt_stream_order *order);

#endif
