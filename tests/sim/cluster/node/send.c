/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What proxies sent, as the plugin hands it over (plugin/nccl/proxy_send.c). */
#include "tests/sim/cluster/node/state.h"

#include <string.h>

#include "agent/steps/comm_layout.h"
#include "common/base/hash.h"

enum {
	REPORT_TICKS = 3, /* from one report to the next: 250 ms, at least */
};

/* NULL: to further ranks than the plugin measures. */
static struct cl_peer *peer_of(struct cl_process *process, const struct cl_sent *sent)
{
	struct cl_peer *peer;

	for (uint32_t i = 0; i < process->peers; i++) {
		peer = &process->peer[i];
		if (peer->place.kind == (enum cl_group_kind)sent->group &&
		    peer->place.generation == sent->generation && peer->number == sent->peer)
			return peer;
	}
	if (process->peers == CL_NODE_PEERS)
		return NULL;
	peer = &process->peer[process->peers++];
	*peer = (struct cl_peer){
		.place = {(enum cl_group_kind)sent->group, sent->generation},
		.number = sent->peer,
	};
	return peer;
}

/* Of sends of several sizes the largest count. */
static void add(struct cl_process *process, const struct cl_sent *sent)
{
	struct cl_peer *peer = peer_of(process, sent);

	process->has_refused |= sent->has_refused;
	if (!peer || sent->bytes < peer->bytes)
		return;
	if (sent->bytes > peer->bytes) {
		peer->bytes = sent->bytes;
		peer->shortest_ns = UINT64_MAX;
		peer->busy_ns = peer->sends = 0;
	}
	peer->sends += sent->sends;
	peer->busy_ns += sent->busy_ns;
	if (sent->shortest_ns < peer->shortest_ns)
		peer->shortest_ns = sent->shortest_ns;
}

static uint32_t u32_of(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void hand_over(struct cl_node *node, struct nt_event_gpu *batch)
{
	if (batch->records)
		(void)nt_tracker_gpu_batch(node->tracker, batch);
	batch->records = 0;
}

static void report(struct cl_node *node, struct cl_process *process)
{
	struct nt_event_gpu batch = {
		.h = {.row = cl_event_row_of_sends(),
		      .pid = FIRST_PID + (uint32_t)(process - node->process),
		      .entry_ns = BOOT_NS + (uint64_t)node->now_ns},
	};

	for (uint32_t i = 0; i < process->peers; i++) {
		struct cl_peer *peer = &process->peer[i];
		const struct cl_group group = cl_node_group(node, &peer->place, process->rank);
		struct nt_gpu_transfer transfer = {
			.rank = cl_group_place(&group, process->rank),
			.peer = peer->number,
			.bytes = peer->bytes,
			.shortest_ns = u32_of(peer->shortest_ns),
			.sends = u32_of(peer->sends),
			.busy_ns = u32_of(peer->busy_ns),
		};
		uint8_t id[NT_ID_BYTES];

		if (!peer->sends)
			continue;
		cl_make_id(node, &peer->place, &group, id);
		transfer.comm = nt_comm_layout_nccl_hash(id, NT_ID_BYTES);
		memcpy(&batch.record[batch.records++], &transfer, sizeof(transfer));
		peer->bytes = 0;
		peer->sends = 0;
		if (batch.records == NT_GPU_BATCH)
			hand_over(node, &batch);
	}
	hand_over(node, &batch);
}

/* A batch may be lost as those of kernels are. */
static bool is_lost(const struct cl_node *node, const struct cl_process *process)
{
	const uint64_t random =
		nt_hash_u64(nt_hash_mix(node->s->seed + 0x105e + process->rank), node->ticks);

	return (double)(nt_hash_mix(random) >> 11) * 0x1p-53 < node->s->weather.intervals_lost;
}

void cl_node_take_sent(struct cl_node *node, struct cl_process *process, int64_t now_ns)
{
	struct cl_sents *sents = cl_play_sent(node->play, process->rank);
	size_t kept = 0;

	for (size_t i = 0; i < sents->count; i++) {
		const struct cl_sent *sent = &sents->sent[i];

		if (sent->end_ns > now_ns)
			sents->sent[kept++] = *sent;
		else if (!node->tracker)
			continue;
		else if (!node->s->measures || (node->is_open && sent->end_ns >= node->opened_ns))
			add(process, sent);
	}
	sents->count = kept;
	if ((node->ticks + process->rank) % REPORT_TICKS || !process->has_refused ||
	    !node->tracker || cl_scenario_is_bare(node->s, node->index) || is_lost(node, process))
		return;
	report(node, process);
}
