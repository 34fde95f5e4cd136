/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)

#include "agent/rdma/queue_pair.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* enum ibv_qp_attr_mask */
	MASK_PORT = 1 << 5,
	MASK_AV = 1 << 7,
	MASK_REMOTE_QPN = 1 << 20,
};

void nt_queue_pairs_remove(struct nt_queue_pairs *pairs, struct nt_queue_pair *pair)
{
	HASH_DEL(pairs->table, pair);
	free(pair);
}

struct nt_queue_pair *nt_queue_pairs_find(const struct nt_queue_pairs *pairs,
					  const struct nt_rdma_key *key)
{
	struct nt_queue_pair *pair = NULL;

	HASH_FIND(hh, pairs->table, key, sizeof(*key), pair);
	return pair;
}

struct nt_queue_pair *nt_queue_pairs_take(struct nt_queue_pairs *pairs,
					  const struct nt_rdma_key *key)
{
	struct nt_queue_pair *pair = nt_queue_pairs_find(pairs, key);

	if (pair)
		return pair;
	if (HASH_COUNT(pairs->table) >= NT_QUEUE_PAIRS) {
		pairs->over_cap++;
		return NULL;
	}
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	pair->key = *key;
	pair->is_new = true;
	HASH_ADD(hh, pairs->table, key, sizeof(pair->key), pair);
	if (!pair->is_lost)
		return pair;
	free(pair);
	return NULL;
}

bool nt_queue_pair_update(struct nt_queue_pair *pair, const struct nt_event_verbs *event)
{
	const bool modifies = event->verb == NT_VERB_MODIFY_QP;
	const bool has_av = modifies && event->mask & MASK_AV;

	pair->is_new = true;
	if (event->qp) {
		pair->type = event->qp_type;
		pair->state = event->qp_state;
	}
	pair->is_extended |= event->verb == NT_VERB_EXTENDED;
	if (event->device[0])
		memcpy(pair->device, event->device, sizeof(pair->device));
	if (modifies && event->mask & MASK_REMOTE_QPN)
		pair->remote_qpn = event->remote_qpn;
	if (modifies && event->mask & (MASK_PORT | MASK_AV))
		pair->port = event->port;
	if (!has_av)
		return modifies && event->mask & MASK_PORT;
	pair->remote_lid = event->remote_lid;
	pair->is_global = event->is_global;
	pair->sgid_index = event->sgid_index;
	memcpy(pair->remote_gid, event->gid, sizeof(pair->remote_gid));
	return true;
}

void nt_queue_pair_reset(struct nt_queue_pair *pair)
{
	pair->type = pair->state = pair->remote_qpn = pair->remote_lid = pair->local_lid = 0;
	pair->port = pair->sgid_index = 0;
	pair->is_global = pair->is_extended = pair->is_foreign = false;
	pair->is_counted = pair->is_ended = pair->has_local_gid = false;
	pair->lacks_address = false;
	memset(pair->remote_gid, 0, sizeof(pair->remote_gid));
	memset(pair->local_gid, 0, sizeof(pair->local_gid));
	pair->is_new = true;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static void fill_errors(const struct nt_rdma_traffic *now, const struct nt_rdma_traffic *before,
			struct nt_rdma_pair *row)
{
	uint64_t most = 0;

	for (uint32_t i = 1; i < NT_RDMA_STATUSES; i++) {
		const uint64_t errors = (uint32_t)(now->errors[i] - before->errors[i]);

		row->errors += errors;
		if (errors <= most)
			continue;
		most = errors;
		row->error_status = i;
	}
}

static void fill_requests(const struct nt_rdma_traffic *now, const struct nt_rdma_traffic *before,
			  struct nt_rdma_pair *row)
{
	uint64_t *const posts[NT_RDMA_CLASSES] = {&row->writes, &row->sends, &row->reads,
						  &row->atomics, &row->others};
	uint64_t *const bytes[NT_RDMA_CLASSES] = {&row->write_bytes, &row->send_bytes,
						  &row->read_bytes, &row->atomic_bytes,
						  &row->other_bytes};

	for (int i = 0; i < NT_RDMA_CLASSES; i++) {
		*posts[i] = since(now->posts[i], before->posts[i]);
		*bytes[i] = since(now->bytes[i], before->bytes[i]);
	}
}

void nt_queue_pair_row(const struct nt_queue_pair *pair, const struct nt_rdma_traffic *now,
		       uint32_t window, struct nt_rdma_pair *ret_row)
{
	const struct nt_rdma_traffic *before = &pair->sent;
	struct nt_rdma_pair row = {
		.qpn = pair->key.qpn,
		.remote_qpn = pair->remote_qpn,
		.local_lid = pair->local_lid,
		.remote_lid = pair->remote_lid,
		.port = pair->port,
		.type = pair->type,
		.state = pair->state,
		.device = pair->device,
	};

	fill_requests(now, before, &row);
	fill_errors(now, before, &row);
	row.completions = since(now->completions, before->completions);
	row.received = since(now->received, before->received);
	row.received_bytes = since(now->received_bytes, before->received_bytes);
	row.timed = since(now->timed, before->timed);
	row.latency_ns = since(now->latency_ns, before->latency_ns);
	row.untimed = since(now->untimed, before->untimed);
	if (row.timed && now->window == window) {
		row.latency_least_ns = now->least_ns;
		row.latency_most_ns = now->most_ns;
	}
	*ret_row = row;
}

bool nt_queue_pair_is_active(const struct nt_rdma_pair *row)
{
	return row->writes || row->sends || row->reads || row->atomics || row->others ||
	       row->completions || row->received || row->errors;
}

void nt_queue_pair_address(const uint8_t gid[NT_VERBS_GID], char ret_text[NT_QUEUE_PAIR_ADDRESS])
{
	static const uint8_t none[NT_VERBS_GID];

	ret_text[0] = '\0';
	if (memcmp(gid, none, sizeof(none)) != 0)
		(void)!inet_ntop(AF_INET6, gid, ret_text, NT_QUEUE_PAIR_ADDRESS);
}
