/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A lane is communication that ends in the order in which it was enqueued, with a counter of its
 * calls. For each lane, a stream or event records the last call that it is ordered after: a vector
 * clock.
 */
#include "agent/steps/stream_order.h"

#include <errno.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	FEW_LAUNCHES = 2, /* launches after the last synchronisation that are ignored */
};

struct clock {
	uint32_t call[NT_STREAM_ORDER_LANES];
};

/* Calls that certainly, and calls that possibly, come before. */
struct bounds {
	struct clock surely, possibly;
};

struct ordered_stream {
	uint64_t handle;
	struct bounds after;
};

struct ordered_event {
	uint64_t handle;
	struct bounds after;
	bool used;
};

struct lane {
	uint64_t key;
	struct bounds after; /* position of its last call: the next one comes after it */
};

struct nt_stream_order {
	struct ordered_stream stream[NT_STREAM_ORDER_STREAMS];
	uint32_t streams;
	struct ordered_event
		event[NT_STREAM_ORDER_EVENTS]; /* one slot per hash: the newer takes it */
	struct lane lane[NT_STREAM_ORDER_LANES];
	uint32_t lanes;
	bool last_lane_shared; /* it then proves nothing */
	struct clock enqueued, done;
	uint64_t overflows;

	/* The span that is being proven. */
	bool open;
	uint64_t proven_ns; /* handed over up to here */
	uint64_t covered_launches; /* launches up to this count are known to have ended */
};

int nt_stream_order_new(struct nt_stream_order **ret_order)
{
	struct nt_stream_order *order = calloc(1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	*ret_order = order;
	return 0;
}

void nt_stream_order_free(struct nt_stream_order *order)
{
	free(order);
}

size_t nt_stream_order_bytes(void)
{
	return sizeof(struct nt_stream_order);
}

/* ---- clocks --------------------------------------------------------------------------------- */

static void merge(struct clock *into, const struct clock *other)
{
	for (int i = 0; i < NT_STREAM_ORDER_LANES; i++) {
		if (other->call[i] > into->call[i])
			into->call[i] = other->call[i];
	}
}

/* True if `clock` contains something that is not in `base`. */
static bool exceeds(const struct clock *clock, const struct clock *base)
{
	for (int i = 0; i < NT_STREAM_ORDER_LANES; i++) {
		if (clock->call[i] > base->call[i])
			return true;
	}
	return false;
}

/* Unknown work is possibly after everything, and certainly after nothing. */
static struct bounds unknown(const struct nt_stream_order *order)
{
	return (struct bounds){.possibly = order->enqueued};
}

/* NULL if the table is full. A new stream is ordered after nothing. */
static struct ordered_stream *find_stream(struct nt_stream_order *order, uint64_t handle)
{
	for (uint32_t i = 0; i < order->streams; i++) {
		if (order->stream[i].handle == handle)
			return &order->stream[i];
	}
	if (order->streams == NT_STREAM_ORDER_STREAMS) {
		order->overflows++;
		return NULL;
	}
	order->stream[order->streams] = (struct ordered_stream){.handle = handle};
	return &order->stream[order->streams++];
}

static struct bounds after_stream(struct nt_stream_order *order, uint64_t handle)
{
	const struct ordered_stream *stream = find_stream(order, handle);

	return stream ? stream->after : unknown(order);
}

static struct ordered_event *event_place(struct nt_stream_order *order, uint64_t handle)
{
	return &order->event[nt_hash_mix(handle) % NT_STREAM_ORDER_EVENTS];
}

static struct bounds after_event(struct nt_stream_order *order, uint64_t handle)
{
	const struct ordered_event *event = event_place(order, handle);

	return event->used && event->handle == handle ? event->after : unknown(order);
}

/* Over the cap, the last lane is shared. */
static uint32_t find_lane(struct nt_stream_order *order, uint64_t key)
{
	for (uint32_t i = 0; i < order->lanes; i++) {
		if (order->lane[i].key == key)
			return i;
	}
	if (order->lanes == NT_STREAM_ORDER_LANES) {
		order->overflows++;
		order->last_lane_shared = true;
		return NT_STREAM_ORDER_LANES - 1;
	}
	order->lane[order->lanes] = (struct lane){.key = key};
	return order->lanes++;
}

void nt_stream_order_record(struct nt_stream_order *order, uint64_t event, uint64_t stream)
{
	*event_place(order, event) = (struct ordered_event){
		.handle = event,
		.after = after_stream(order, stream),
		.used = true,
	};
}

void nt_stream_order_wait(struct nt_stream_order *order, uint64_t stream, uint64_t event)
{
	struct bounds after = after_event(order, event);
	struct ordered_stream *s = find_stream(order, stream);

	if (!s)
		return;
	merge(&s->after.surely, &after.surely);
	merge(&s->after.possibly, &after.possibly);
}

/* ---- own work ------------------------------------------------------------------------------- */

bool nt_stream_order_is_clear(const struct nt_stream_order *order)
{
	return !exceeds(&order->enqueued, &order->done);
}

static void prove(struct nt_stream_order *order, struct nt_accounting *work, uint64_t until_ns,
		  uint64_t launches, bool sync)
{
	uint64_t more = launches > order->covered_launches ? launches - order->covered_launches : 0;

	if (until_ns > order->proven_ns) {
		nt_accounting_own(work, order->proven_ns, until_ns, more, sync);
		order->proven_ns = until_ns;
	}
	order->covered_launches += more;
}

/* The stream continues after the call, and the call follows all before it in its lane. */
static void chain(struct nt_stream_order *order, struct ordered_stream *stream, uint32_t index)
{
	struct lane *lane = &order->lane[index];
	bool shared = order->last_lane_shared && index == NT_STREAM_ORDER_LANES - 1;

	if (!stream) {
		lane->after = unknown(order);
		return;
	}
	merge(&stream->after.possibly, &lane->after.possibly);
	stream->after.possibly.call[index] = order->enqueued.call[index];
	if (!shared) {
		merge(&stream->after.surely, &lane->after.surely);
		stream->after.surely.call[index] = order->enqueued.call[index];
	}
	lane->after = stream->after;
}

void nt_stream_order_enqueue(struct nt_stream_order *order, struct nt_accounting *work,
			     uint64_t lane_key, uint64_t stream, uint64_t entry_ns,
			     uint64_t launches)
{
	struct ordered_stream *s = find_stream(order, stream);
	uint32_t lane = find_lane(order, lane_key);

	if (order->open && nt_stream_order_is_clear(order) &&
	    launches <= order->covered_launches + FEW_LAUNCHES)
		prove(order, work, entry_ns, launches, false);
	order->enqueued.call[lane]++;
	chain(order, s, lane);
}

static struct bounds reach(struct nt_stream_order *order, enum nt_stream_order_sync what,
			   uint64_t handle)
{
	switch (what) {
	case NT_STREAM_ORDER_STREAM:
		return after_stream(order, handle);
	case NT_STREAM_ORDER_EVENT:
		return after_event(order, handle);
	case NT_STREAM_ORDER_DEVICE:
		return (struct bounds){.surely = order->enqueued, .possibly = order->enqueued};
	default:
		return unknown(order);
	}
}

void nt_stream_order_sync(struct nt_stream_order *order, struct nt_accounting *work,
			  enum nt_stream_order_sync what, uint64_t handle, uint64_t ret_ns,
			  uint64_t launches)
{
	struct bounds reached = reach(order, what, handle);

	if (!exceeds(&reached.possibly, &order->done)) {
		/* It waited for local work only. */
		if (order->open)
			prove(order, work, ret_ns, launches, true);
		return;
	}
	/* It may have waited for others: not attributed, and unproven time stays so. */
	order->open = false;
	merge(&order->done, &reached.surely);
	if (!nt_stream_order_is_clear(order))
		return;
	order->open = true;
	order->proven_ns = ret_ns;
	order->covered_launches = launches;
}

uint64_t nt_stream_order_overflows(const struct nt_stream_order *order)
{
	return order->overflows;
}
