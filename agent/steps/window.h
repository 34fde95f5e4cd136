/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds the window message from a rank's sums. */
#ifndef NT_AGENT_STEPS_WINDOW_H
#define NT_AGENT_STEPS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/heap/window_heap.h"
#include "agent/profile/window_profile.h"
#include "agent/stack/window_stack.h"
#include "agent/steps/rank.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

/* Contents of the window beside the rank's own sums. */
struct nt_window_context {
	const char *node;
	uint64_t end_ns;
	const struct nt_host_evidence *host;
	const struct nt_process_counters *counters; /* since the last window; of the process */
	const struct nt_gemms *gemms; /* the same; NULL: none */
	const struct nt_rdma_window *rdma; /* the same */
	const struct nt_tcp_window *tcp; /* the same */
	/* Lost events of the node and intervals of the process; taken: received, where lost. */
	uint64_t lost, taken;
	uint64_t unobserved_ns; /* part of the window in which the process's calls were not seen */
	uint32_t shed; /* NT_WIRE_SHED_* */
	/* overhead of a probed call outside its own time; own work is less it */
	uint64_t outside_ns;
	bool ended;
	/* NULL: the rank sends none; the holder of its last failure; its sites are sent too */
	struct nt_gpu_heap *heap;
	const struct nt_window_holder *holder;
	bool with_heap_sites;
	struct nt_window_stack *stack; /* borrowed; NULL: none */
	struct nt_window_profile *profile; /* the same */
};

struct nt_window_message; /* a struct nt_window and what it points to */

/* Borrows the texts and multiplications of rank and context: they must outlive the message. -ENOMEM. */
NT_MUST_CHECK int nt_window_build(const struct nt_rank *rank,
				  const struct nt_window_context *context,
				  struct nt_window_message **ret_message);
void nt_window_free(struct nt_window_message *message);
NT_DEFINE_AUTO(nt_window_message, nt_window_free)

/* The current identity of the rank: job, pod and the like. Borrows as above. */
void nt_window_name(const struct nt_rank *rank, struct nt_rank_id *id);

/* The same with its place in the job and the process. */
void nt_window_rank(const struct nt_rank *rank, const char *node, struct nt_rank_id *ret_id);

const struct nt_window *nt_window_get(const struct nt_window_message *message);
/* Pairs of peer and direction that are not in it: it has as many as it may. */
uint32_t nt_window_transfers_over_cap(const struct nt_window_message *message);

#endif
