/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/proxy_send.h"

#include "plugin/gpu_record.h"
#include "plugin/nccl/handle.h"
#include "plugin/nccl/send_batch.h"

/* What is sent to a rank. */
struct peer {
	uint64_t comm;
	uint32_t rank, peer;
	uint8_t channel;
	/* Since the last report. */
	uint64_t bytes; /* of the largest sends, which alone count */
	uint64_t shortest_ns, busy_ns;
	uint32_t sends;
	uint64_t last_done_ns; /* of any of them */
};

struct op {
	uint64_t generation; /* odd: in use */
	struct peer *peer;
	uint32_t tried; /* bits: steps that tried to send */
	uint64_t taken_ns[NT_NCCL_STEPS]; /* 0: the network does not have it */
	uint64_t bytes[NT_NCCL_STEPS];
};

static struct peer peers[NT_PROXY_SEND_PEERS];
static uint32_t peers_known;
static struct op ops[NT_PROXY_SEND_OPS];
static uint32_t next_op;
static uint32_t unmeasured; /* operations to further peers and lost events, since the last report */
static int has_credit; /* the network refused a send: it takes none without a buffer of the peer */
static uint64_t reported_ns; /* 0: nothing was measured yet */
static struct nt_gpu_transfer batch[NT_GPU_BATCH];
static uint32_t batched;
static uint64_t handed_over; /* so far */

void nt_proxy_send_reset(void)
{
	peers_known = unmeasured = 0;
	reported_ns = 0;
	for (uint32_t i = 0; i < NT_PROXY_SEND_OPS; i++)
		ops[i].generation += ops[i].generation % 2;
}

/* ---- operations ----------------------------------------------------------------------------- */

/* NULL: there are too many. */
static struct peer *peer_of(uint64_t comm, const struct nt_nccl_event *event)
{
	const uint32_t number = (uint32_t)event->proxy_op.peer;

	for (uint32_t i = 0; i < peers_known; i++)
		if (peers[i].comm == comm && peers[i].peer == number &&
		    peers[i].rank == (uint32_t)event->rank)
			return &peers[i];
	if (peers_known == NT_PROXY_SEND_PEERS)
		return NULL;
	peers[peers_known] = (struct peer){
		.comm = comm,
		.rank = (uint32_t)event->rank,
		.peer = number,
		.channel = event->proxy_op.channel,
	};
	return &peers[peers_known++];
}

void *nt_proxy_send_op(uint64_t comm, const struct nt_nccl_event *event)
{
	const uint32_t slot = next_op % NT_PROXY_SEND_OPS;
	struct op *op = &ops[slot];
	struct peer *peer;

	if (!event->proxy_op.is_send || event->proxy_op.peer < 0 || event->rank < 0)
		return NULL;
	peer = peer_of(comm, event);
	unmeasured += !peer;
	if (!peer || peer->channel != event->proxy_op.channel)
		return NULL;
	next_op++;
	*op = (struct op){
		.generation = op->generation + (op->generation % 2 ? 2 : 1),
		.peer = peer,
	};
	return nt_handle_of(NT_HANDLE_PROXY_OP, slot, op->generation);
}

/* ---- steps ---------------------------------------------------------------------------------- */

void *nt_proxy_send_step(const struct nt_nccl_event *event)
{
	const uint32_t step = (uint32_t)event->proxy_step.step % NT_NCCL_STEPS;

	if (nt_handle_kind(event->parent) != NT_HANDLE_PROXY_OP)
		return NULL;
	return nt_handle_of(NT_HANDLE_PROXY_STEP,
			    nt_handle_slot(event->parent) * NT_NCCL_STEPS + step,
			    nt_handle_generation(event->parent));
}

/* NULL: it is of something else, or of what has ended. */
static struct op *op_of(const void *handle, uint32_t *ret_step)
{
	const uint32_t slot = nt_handle_slot(handle) / NT_NCCL_STEPS;

	*ret_step = nt_handle_slot(handle) % NT_NCCL_STEPS;
	if (nt_handle_kind(handle) != NT_HANDLE_PROXY_STEP || slot >= NT_PROXY_SEND_OPS)
		return NULL;
	return nt_handle_is_of(handle, ops[slot].generation) ? &ops[slot] : NULL;
}

int nt_proxy_send_is_credit_unknown(void)
{
	return !__atomic_load_n(&has_credit, __ATOMIC_RELAXED);
}

void nt_proxy_send_tries(const void *handle)
{
	uint32_t step;
	struct op *op = op_of(handle, &step);

	if (!op)
		return;
	if (op->tried & 1U << step)
		__atomic_store_n(&has_credit, 1, __ATOMIC_RELAXED);
	op->tried |= 1U << step;
}

void nt_proxy_send_taken(const void *handle, size_t bytes, uint64_t now_ns)
{
	uint32_t step;
	struct op *op = op_of(handle, &step);

	if (!op)
		return;
	op->tried &= ~(1U << step);
	op->taken_ns[step] = now_ns;
	op->bytes[step] = bytes;
}

static void add(struct peer *peer, uint64_t bytes, uint64_t from_ns, uint64_t now_ns)
{
	const uint64_t ns = now_ns - from_ns;

	if (bytes < peer->bytes)
		return;
	if (bytes > peer->bytes || !peer->sends) {
		peer->bytes = bytes;
		peer->shortest_ns = ns;
		peer->busy_ns = 0;
		peer->sends = 0;
	}
	peer->sends++;
	if (ns < peer->shortest_ns)
		peer->shortest_ns = ns;
	/* They end in the order in which they began. */
	peer->busy_ns += now_ns - (from_ns > peer->last_done_ns ? from_ns : peer->last_done_ns);
}

void nt_proxy_send_done(const void *handle, uint64_t now_ns)
{
	uint32_t step;
	struct op *op = op_of(handle, &step);
	uint64_t from_ns;

	if (!op)
		return;
	from_ns = op->taken_ns[step];
	op->taken_ns[step] = 0; /* the next step of the slot */
	if (!from_ns || from_ns > now_ns || op->peer->last_done_ns > now_ns)
		return;
	add(op->peer, op->bytes[step], from_ns, now_ns);
	op->peer->last_done_ns = now_ns;
	nt_proxy_send_report(now_ns);
}

/* ---- reports -------------------------------------------------------------------------------- */

static uint32_t u32_of(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void hand_over(void)
{
	if (batched)
		nt_send_batch_hand_over(batch, batched, handed_over + 1);
	handed_over += batched;
	batched = 0;
}

static void add_to_batch(const struct nt_gpu_transfer *transfer)
{
	batch[batched++] = *transfer;
	if (batched == NT_GPU_BATCH)
		hand_over();
}

static void report_peer(struct peer *peer)
{
	add_to_batch(&(struct nt_gpu_transfer){.comm = peer->comm,
					       .rank = peer->rank,
					       .peer = peer->peer,
					       .bytes = u32_of(peer->bytes),
					       .shortest_ns = u32_of(peer->shortest_ns),
					       .sends = peer->sends,
					       .busy_ns = u32_of(peer->busy_ns)});
	peer->bytes = peer->sends = 0;
}

void nt_proxy_send_miss(uint32_t events)
{
	unmeasured += events;
}

void nt_proxy_send_report(uint64_t now_ns)
{
	if (!reported_ns)
		reported_ns = now_ns;
	if (now_ns - reported_ns < NT_PROXY_SEND_REPORT_NS)
		return;
	reported_ns = now_ns;
	for (uint32_t i = 0; i < peers_known; i++)
		if (peers[i].sends && has_credit)
			report_peer(&peers[i]);
	if (unmeasured)
		add_to_batch(
			&(struct nt_gpu_transfer){.peer = NT_GPU_NO_PEER, .sends = unmeasured});
	unmeasured = 0;
	hand_over();
}
