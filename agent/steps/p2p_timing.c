/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/p2p_timing.h"

#include <errno.h>
#include <stdlib.h>

static struct nt_transfer *find(const struct nt_p2p_timing *peers, uint32_t peer, enum nt_op op)
{
	for (uint32_t i = 0; i < peers->count; i++) {
		if (peers->transfer[i].peer == peer && peers->transfer[i].op == op)
			return &peers->transfer[i];
	}
	return NULL;
}

int nt_p2p_timing_note(struct nt_p2p_timing *peers, uint32_t peer, enum nt_op op, uint64_t bytes,
		       uint64_t calls, uint64_t ns)
{
	struct nt_transfer *transfer = find(peers, peer, op);

	if (bytes < NT_P2P_TIMING_LEAST_BYTES)
		return 0;
	if (!transfer && peers->count == NT_P2P_TIMING_MAX)
		return -ENOSPC;
	if (!peers->transfer)
		peers->transfer = calloc(NT_P2P_TIMING_MAX, sizeof(*peers->transfer));
	if (!peers->transfer)
		return -ENOMEM;
	if (!transfer)
		transfer = &peers->transfer[peers->count++];
	else if (bytes < transfer->bytes)
		return 0;
	if (!transfer->calls || transfer->bytes < bytes)
		*transfer =
			(struct nt_transfer){.peer = peer, .op = op, .bytes = bytes, .min_ns = ns};
	transfer->calls += calls;
	if (ns < transfer->min_ns)
		transfer->min_ns = ns;
	return 0;
}

void nt_p2p_timing_clear(struct nt_p2p_timing *peers)
{
	for (uint32_t i = 0; i < peers->count; i++)
		peers->transfer[i] = (struct nt_transfer){0};
	peers->count = 0;
}

void nt_p2p_timing_release(struct nt_p2p_timing *peers)
{
	free(peers->transfer);
	*peers = (struct nt_p2p_timing){0};
}
