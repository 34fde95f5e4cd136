/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device memory of a process (agent/heap/gpu_heap.h) in a window. */
#ifndef NT_AGENT_HEAP_WINDOW_HEAP_H
#define NT_AGENT_HEAP_WINDOW_HEAP_H

#include "agent/heap/gpu_heap.h"
#include "proto/wire.h"

enum {
	NT_WINDOW_HEAP_SITES = 4, /* the largest, or those that leak */
};

/* The process that held the most of a card when an allocation failed. */
struct nt_window_holder {
	uint32_t pid, rank;
	uint64_t start_ns; /* of the process */
	bool rank_known, is_whole;
	uint64_t bytes;
	/* Its largest call site then. */
	uint64_t site, site_bytes;
	char file[NT_GPU_HEAP_FILE]; /* "": not known (yet) */
	uint64_t offset;
};

/* What the filled part of a window points to. */
struct nt_window_heap {
	struct nt_heap_device device[NT_GPU_HEAP_DEVICES + 1];
	struct nt_heap_site site[NT_WINDOW_HEAP_SITES];
};

/*
 * Fills the part of a window that ends at end_ns. with_sites: call sites and the last failure are sent
 * too. Borrows the texts of heap and holder.
 */
void nt_window_heap_fill(struct nt_gpu_heap *heap, const struct nt_window_holder *holder,
			 bool with_sites, uint64_t end_ns, struct nt_window_heap *room,
			 struct nt_heap_window *ret_window);

#endif
