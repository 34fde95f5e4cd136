/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How long the clock of each GPU was held down, and its errors: totals from readings a second
 * apart, kept while a worker is replaced. A process has the totals of its cards.
 */
#ifndef NT_AGENT_GPU_GPU_TOTALS_H
#define NT_AGENT_GPU_GPU_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/gpu_card.h"
#include "agent/host/gpu_total.h"
#include "common/system/clock.h"

/* Longer times between two readings are unobserved: what held then is unknown. */
#define NT_GPU_TOTALS_GAP_NS (5 * NT_SECOND)
/* A process that a card no longer has keeps its totals so long: it may have ended by its error. */
#define NT_GPU_TOTALS_KEPT_NS (10 * NT_SECOND)

struct nt_gpu_totals {
	uint64_t read_ns; /* of the last reading; 0: none */
	uint32_t count;
	struct nt_gpu_totals_card {
		char id[NT_GPU_CARD_ID];
		struct nt_gpu_total total;
		struct nt_gpu_card last;
		bool is_here; /* in the last reading */
		/* The processes that it had last; a ring. */
		struct nt_gpu_former {
			uint32_t pid;
			uint64_t until_ns;
		} former[NT_GPU_CARD_PIDS];
		uint32_t formers;
	} card[NT_GPU_CARDS];
};

/* Adds a reading. Cards beyond NT_GPU_CARDS, by their names, replace those that are gone. */
void nt_gpu_totals_add(struct nt_gpu_totals *totals, const struct nt_gpu_cards *cards,
		       uint64_t now_ns);

/*
 * The totals of the cards on which the process computes, by the last reading, or if there is none, did
 * so shortly before: the longest times, the slowest clock, and the sums of errors, memory and what
 * computed. gpu: the UUID that the process was given, of a card or of a MIG instance, or NULL: it
 * counts where the driver names no process of that card. False: there is no such card.
 */
bool nt_gpu_totals_get(const struct nt_gpu_totals *totals, uint32_t pid, const char *gpu,
		       struct nt_gpu_total *ret_total);

/* At the last reading. */
enum nt_gpu_shared nt_gpu_totals_shared(const struct nt_gpu_totals *totals, uint32_t pid,
					uint32_t other);

#endif
