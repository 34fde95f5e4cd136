/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/heap/window_heap.h"

static void fill_devices(const struct nt_gpu_heap *heap, struct nt_window_heap *room,
			 struct nt_heap_window *window)
{
	window->device = room->device;
	for (uint32_t i = 0; i <= NT_GPU_HEAP_ANY_DEVICE; i++) {
		const struct nt_gpu_heap_device *device = &heap->device[i];
		const bool is_known = i != NT_GPU_HEAP_ANY_DEVICE;

		if (!device->high && !device->blocks)
			continue;
		room->device[window->devices++] = (struct nt_heap_device){
			.number = is_known ? i : 0,
			.number_unknown = !is_known,
			.live_bytes = device->live,
			.high_bytes = device->high,
			.managed_bytes = device->managed,
			.blocks = device->blocks,
		};
	}
}

static void fill_sites(const struct nt_gpu_heap *heap, struct nt_window_heap *room,
		       struct nt_heap_window *window)
{
	uint32_t index[NT_WINDOW_HEAP_SITES];

	window->site = room->site;
	window->sites = nt_gpu_heap_largest(heap, index, NT_WINDOW_HEAP_SITES);
	for (size_t i = 0; i < window->sites; i++) {
		const struct nt_gpu_heap_site *site = nt_gpu_heap_site(heap, index[i]);
		struct nt_heap_site *wire = &room->site[i];

		*wire = (struct nt_heap_site){
			.file = site->file,
			.offset = site->offset,
			.live_bytes = site->live,
			.blocks = site->blocks,
		};
		wire->leaks = nt_gpu_heap_leaks(heap, site, &wire->growth_probability,
						&wire->growth_bytes);
	}
}

static void fill_failure(const struct nt_gpu_heap *heap, const struct nt_window_holder *holder,
			 struct nt_heap_failure *failure)
{
	const struct nt_gpu_heap_failure *last = &heap->last;
	const struct nt_gpu_heap_site *site = nt_gpu_heap_site(heap, last->site);

	*failure = (struct nt_heap_failure){
		.call = last->symbol,
		.bytes = last->bytes,
		.boot_ns = last->boot_ns,
		.live_bytes = last->live,
		.device = last->device == NT_GPU_HEAP_ANY_DEVICE ? 0 : last->device,
		.device_unknown = last->device == NT_GPU_HEAP_ANY_DEVICE,
		.file = site ? site->file : "",
		.offset = site ? site->offset : 0,
		.holder_pid = holder->pid,
		.holder_rank = holder->rank,
		.holder_rank_known = holder->rank_known,
		.holder_is_whole = holder->is_whole,
		.holder_bytes = holder->bytes,
		.holder_file = holder->file,
		.holder_offset = holder->offset,
		.holder_site_bytes = holder->site_bytes,
	};
}

void nt_window_heap_fill(struct nt_gpu_heap *heap, const struct nt_window_holder *holder,
			 bool with_sites, uint64_t end_ns, struct nt_window_heap *room,
			 struct nt_heap_window *ret_window)
{
	*ret_window = (struct nt_heap_window){
		.is_whole = nt_gpu_heap_is_whole(heap, end_ns),
		.since_boot_ns = heap->since_ns,
		.has_sites = with_sites,
		.failures = heap->failures,
		.out_of_memory = heap->out_of_memory,
	};
	fill_devices(heap, room, ret_window);
	if (!with_sites)
		return;
	fill_sites(heap, room, ret_window);
	if (heap->last.symbol)
		fill_failure(heap, holder, &ret_window->failure);
}
