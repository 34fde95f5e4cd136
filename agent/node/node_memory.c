/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metrics of the node's memory. */
#include "agent/node/node.h"

#include "agent/node/kernel_text.h"

enum {
	KIB = 1024,
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void nt_node_take_memory(struct nt_node *node, const char *text, size_t len)
{
	enum {
		SWAP_TOTAL,
		SWAP_FREE,
		OTHERS,
	};
	static const char *const name[] = {
		[SWAP_TOTAL] = "SwapTotal:",
		[SWAP_FREE] = "SwapFree:",
		"MemTotal:",
		"MemAvailable:",
		"Dirty:",
		"Writeback:",
	};
	static const char *const metric[] = {
		[OTHERS] = "memory_total_bytes",
		"memory_available_bytes",
		"memory_dirty_bytes",
		"memory_writeback_bytes",
	};
	const uint64_t swap = 1U << SWAP_TOTAL | 1U << SWAP_FREE;
	uint64_t value[COUNT(name)], found;

	found = nt_kernel_text_find(text, len, name, COUNT(name), value);
	for (size_t i = OTHERS; i < COUNT(name); i++)
		if (found >> i & 1)
			nt_node_add_value(node, metric[i], (double)value[i] * KIB);
	if ((found & swap) == swap && value[SWAP_FREE] <= value[SWAP_TOTAL])
		nt_node_add_value(node, "swap_used_bytes",
				  (double)(value[SWAP_TOTAL] - value[SWAP_FREE]) * KIB);
}

void nt_node_take_vmstat(struct nt_node *node, const char *text, size_t len)
{
	static const char *const name[] = {
		"pgmajfault ",    "pswpin ",        "pswpout ",
		"pgscan_direct ", "compact_stall ", "oom_kill ",
	};
	static const char *const metric[] = {
		"page_faults_major",    "swap_in_pages",     "swap_out_pages",
		"reclaim_direct_pages", "compaction_stalls", "oom_kills",
	};
	uint64_t value[COUNT(name)];
	const uint64_t found = nt_kernel_text_find(text, len, name, COUNT(name), value);

	for (size_t i = 0; i < COUNT(name); i++)
		if (found >> i & 1)
			nt_node_add_value(node, metric[i], (double)value[i]);
}
