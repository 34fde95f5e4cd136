/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/heap/gpu_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ascii.h"

enum {
	SITES_FIRST = 4,
};

int nt_gpu_heap_new(uint64_t since_ns, uint64_t seed, struct nt_gpu_heap **ret_heap)
{
	struct nt_gpu_heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	heap->since_ns = since_ns;
	heap->is_whole = !since_ns;
	heap->blocks.seed = seed;
	*ret_heap = heap;
	return 0;
}

void nt_gpu_heap_free(struct nt_gpu_heap *heap)
{
	if (!heap)
		return;
	nt_gpu_blocks_clear(&heap->blocks);
	free(heap->site);
	free(heap);
}

size_t nt_gpu_heap_bytes(const struct nt_gpu_heap *heap)
{
	return sizeof(*heap) + heap->site_room * sizeof(heap->site[0]) +
	       heap->blocks.room * sizeof(heap->blocks.block[0]);
}

/* ---- sites ---------------------------------------------------------------------------------- */

static struct nt_gpu_heap_site *site_at(struct nt_gpu_heap *heap, uint32_t index)
{
	return index < heap->sites ? &heap->site[index] : &heap->others;
}

const struct nt_gpu_heap_site *nt_gpu_heap_site(const struct nt_gpu_heap *heap, uint32_t index)
{
	if (index < heap->sites)
		return &heap->site[index];
	return index == NT_GPU_HEAP_OTHER_SITES ? &heap->others : NULL;
}

static bool make_site_room(struct nt_gpu_heap *heap)
{
	uint32_t room = heap->site_room ? 2 * heap->site_room : SITES_FIRST;
	struct nt_gpu_heap_site *grown;

	if (heap->sites < heap->site_room)
		return true;
	if (heap->sites == NT_GPU_HEAP_SITES)
		return false;
	grown = reallocarray(heap->site, room, sizeof(*grown));
	if (!grown)
		return false;
	heap->site = grown;
	heap->site_room = room;
	return true;
}

/* The index of the site with this address, which is added if there is room. */
static uint32_t take_site(struct nt_gpu_heap *heap, uint64_t address)
{
	for (uint32_t i = 0; i < heap->sites; i++)
		if (heap->site[i].address == address)
			return i;
	if (!address || !make_site_room(heap)) {
		heap->sites_over_cap++;
		return NT_GPU_HEAP_OTHER_SITES;
	}
	heap->site[heap->sites] = (struct nt_gpu_heap_site){.address = address, .offset = address};
	return heap->sites++;
}

void nt_gpu_heap_locate(struct nt_gpu_heap *heap, uint64_t address, const char *file,
			uint64_t offset)
{
	for (uint32_t i = 0; i < heap->sites; i++) {
		struct nt_gpu_heap_site *site = &heap->site[i];

		if (site->address != address)
			continue;
		nt_ascii_copy(site->file, sizeof(site->file), file, strlen(file));
		site->offset = offset;
	}
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void add(struct nt_gpu_heap *heap, const struct nt_gpu_block *block)
{
	struct nt_gpu_heap_device *device = &heap->device[block->device];
	struct nt_gpu_heap_site *site = site_at(heap, block->site);

	if (block->space == NT_GPU_BLOCK_MAPPING)
		return;
	device->blocks++;
	if (block->is_managed)
		device->managed += block->bytes;
	else
		device->live += block->bytes;
	if (device->live > device->high)
		device->high = device->live;
	site->blocks++;
	site->live += block->bytes;
	if (site->live > site->peak)
		site->peak = site->live;
}

static void subtract(struct nt_gpu_heap *heap, const struct nt_gpu_block *block)
{
	struct nt_gpu_heap_device *device = &heap->device[block->device];
	struct nt_gpu_heap_site *site = site_at(heap, block->site);

	if (block->space == NT_GPU_BLOCK_MAPPING)
		return;
	device->blocks--;
	if (block->is_managed)
		device->managed -= block->bytes;
	else
		device->live -= block->bytes;
	site->blocks--;
	site->live -= block->bytes;
}

static void drop(struct nt_gpu_heap *heap, struct nt_gpu_block *block)
{
	subtract(heap, block);
	nt_gpu_blocks_remove(&heap->blocks, block);
}

static void drop_all(struct nt_gpu_heap *heap)
{
	nt_gpu_blocks_clear(&heap->blocks);
	memset(heap->device, 0, sizeof(heap->device));
	heap->reused = 0;
	heap->others = (struct nt_gpu_heap_site){0};
	for (uint32_t i = 0; i < heap->sites; i++) {
		heap->site[i].live = heap->site[i].peak = heap->site[i].blocks = 0;
		heap->site[i].growth = (struct nt_gpu_growth){0};
	}
}

void nt_gpu_heap_lose(struct nt_gpu_heap *heap, uint64_t now_ns)
{
	drop_all(heap);
	heap->is_whole = false;
	heap->since_ns = now_ns;
}

/* A release that did not come was lost. */
static void settle(struct nt_gpu_heap *heap, uint64_t now_ns)
{
	if (!heap->reused || now_ns < heap->reused_ns + NT_GPU_HEAP_RELEASE_NS)
		return;
	heap->unmatched += heap->reused;
	nt_gpu_heap_lose(heap, now_ns);
}

bool nt_gpu_heap_is_whole(struct nt_gpu_heap *heap, uint64_t now_ns)
{
	settle(heap, now_ns);
	return heap->is_whole && !heap->reused;
}

/* False: there is no room. */
static bool put(struct nt_gpu_heap *heap, struct nt_gpu_block *block)
{
	struct nt_gpu_block *old = nt_gpu_blocks_find(
		&heap->blocks, (enum nt_gpu_block_space)block->space, block->key);

	if (old) {
		heap->reused -= old->is_reused;
		drop(heap, old);
		if (!heap->reused++)
			heap->reused_ns = block->since_ns;
		block->is_reused = true;
	}
	if (nt_gpu_blocks_add(&heap->blocks, block) < 0) {
		heap->reused -= block->is_reused;
		heap->blocks_over_cap++;
		heap->is_whole = false;
		return false;
	}
	add(heap, block);
	return true;
}

/* True: the call released an earlier block with this key. */
static bool is_of_earlier(struct nt_gpu_heap *heap, struct nt_gpu_block *block,
			  const struct nt_gpu_heap_call *call)
{
	if (!block->is_reused)
		return false;
	block->is_reused = false;
	heap->reused--;
	if (call->entry_ns < block->since_ns)
		return true;
	/* That release was lost, and others may be. */
	heap->unmatched++;
	nt_gpu_heap_lose(heap, call->ret_ns);
	return true;
}

uint64_t nt_gpu_heap_live(const struct nt_gpu_heap *heap)
{
	uint64_t live = 0;

	for (size_t i = 0; i <= NT_GPU_HEAP_ANY_DEVICE; i++)
		live += heap->device[i].live;
	return live;
}

uint64_t nt_gpu_heap_single(const struct nt_gpu_heap *heap)
{
	uint64_t live = 0;

	for (size_t i = 0; i <= NT_GPU_HEAP_ANY_DEVICE; i++) {
		if (live && heap->device[i].live)
			return 0;
		if (heap->device[i].live)
			live = heap->device[i].live;
	}
	return live;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void allocate(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	const bool is_handle = call->op == NT_MEMORY_CREATE;

	if (!call->address && !is_handle)
		return; /* no bytes were asked for */
	if (call->bytes > NT_GPU_HEAP_BLOCK_MOST) {
		heap->malformed++;
		heap->is_whole = false;
		return;
	}
	(void)put(heap, &(struct nt_gpu_block){
				.key = call->address,
				.bytes = call->bytes,
				.handles = is_handle,
				.since_ns = call->ret_ns,
				.site = (uint16_t)take_site(heap, call->site),
				.space = is_handle ? NT_GPU_BLOCK_HANDLE : NT_GPU_BLOCK_ADDRESS,
				.device = (uint8_t)call->device,
				.is_managed = call->op == NT_MEMORY_ALLOC_MANAGED,
			});
}

static void release(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	struct nt_gpu_block *block =
		nt_gpu_blocks_find(&heap->blocks, NT_GPU_BLOCK_ADDRESS, call->address);

	if (!call->address)
		return;
	if (block) {
		if (!is_of_earlier(heap, block, call))
			drop(heap, block);
		return;
	}
	/* It was allocated unseen: before the process was observed, or by a call without a probe. */
	heap->unmatched++;
	heap->is_whole = false;
}

static struct nt_gpu_block *handle_of(const struct nt_gpu_heap *heap, uint64_t handle)
{
	return nt_gpu_blocks_find(&heap->blocks, NT_GPU_BLOCK_HANDLE, handle);
}

/* Handles that are not known are those of other processes' memory, or came before. */
static void release_handle(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	struct nt_gpu_block *block = handle_of(heap, call->address);

	if (!block || !block->handles || is_of_earlier(heap, block, call))
		return;
	block->handles--;
	if (!block->handles && !block->mappings)
		drop(heap, block);
}

static void map(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	struct nt_gpu_block mapping = {
		.key = call->address,
		.bytes = call->bytes,
		.handle = call->handle,
		.site = NT_GPU_HEAP_OTHER_SITES,
		.space = NT_GPU_BLOCK_MAPPING,
		.since_ns = call->ret_ns,
	};
	struct nt_gpu_block *block;

	/* An address is unmapped before it is mapped again: that was lost. */
	if (nt_gpu_blocks_find(&heap->blocks, NT_GPU_BLOCK_MAPPING, call->address)) {
		heap->unmatched++;
		nt_gpu_heap_lose(heap, call->ret_ns);
		return;
	}
	block = handle_of(heap, call->handle);
	if (!block)
		return;
	mapping.device = block->device;
	if (!put(heap, &mapping))
		return;
	block = handle_of(heap, call->handle); /* it may have moved */
	block->mappings++;
}

/* A range may hold several mappings, one after another. */
static void unmap(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	uint64_t at = call->address, left = call->bytes;

	while (left) {
		struct nt_gpu_block *mapping =
			nt_gpu_blocks_find(&heap->blocks, NT_GPU_BLOCK_MAPPING, at);
		struct nt_gpu_block *block;
		uint64_t bytes, handle;

		if (!mapping || !mapping->bytes)
			return;
		bytes = mapping->bytes;
		handle = mapping->handle;
		drop(heap, mapping);
		block = handle_of(heap, handle);
		if (block && block->mappings && !--block->mappings && !block->handles)
			drop(heap, block);
		if (bytes > left)
			return;
		at += bytes;
		left -= bytes;
	}
}

static void reset_device(struct nt_gpu_heap *heap, uint32_t device)
{
	struct nt_gpu_blocks *blocks = &heap->blocks;

	/* Removal may move a block into the place that was just looked at. */
	for (size_t i = 0; i < blocks->room;) {
		struct nt_gpu_block *block = &blocks->block[i];

		if (block->space != NT_GPU_BLOCK_NONE && block->device == device) {
			heap->reused -= block->is_reused;
			drop(heap, block);
		} else {
			i++;
		}
	}
}

static void note_failure(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	heap->failures++;
	if (call->result != NT_GPU_HEAP_OUT_OF_MEMORY)
		return;
	heap->out_of_memory++;
	heap->last = (struct nt_gpu_heap_failure){
		.symbol = call->symbol,
		.bytes = call->bytes,
		.boot_ns = call->ret_ns,
		.live = heap->device[call->device].live,
		.device = call->device,
		.site = take_site(heap, call->site),
	};
}

static bool allocates(enum nt_memory_op op)
{
	return op == NT_MEMORY_ALLOC || op == NT_MEMORY_ALLOC_PITCHED ||
	       op == NT_MEMORY_ALLOC_MANAGED || op == NT_MEMORY_ALLOC_OPAQUE ||
	       op == NT_MEMORY_CREATE;
}

static void take(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	struct nt_gpu_block *block;

	switch (call->op) {
	case NT_MEMORY_ALLOC:
	case NT_MEMORY_ALLOC_PITCHED:
	case NT_MEMORY_ALLOC_MANAGED:
	case NT_MEMORY_CREATE:
		allocate(heap, call);
		return;
	case NT_MEMORY_ALLOC_OPAQUE:
		heap->is_whole = false;
		return;
	case NT_MEMORY_FREE:
		release(heap, call);
		return;
	case NT_MEMORY_RETAIN:
		block = handle_of(heap, call->address);
		if (block)
			block->handles++;
		return;
	case NT_MEMORY_RELEASE:
		release_handle(heap, call);
		return;
	case NT_MEMORY_MAP:
		map(heap, call);
		return;
	case NT_MEMORY_UNMAP:
		unmap(heap, call);
		return;
	case NT_MEMORY_RESET:
		if (call->device != NT_GPU_HEAP_ANY_DEVICE)
			reset_device(heap, call->device);
		else
			nt_gpu_heap_lose(heap, call->ret_ns);
		return;
	case NT_MEMORY_RESET_UNKNOWN:
		nt_gpu_heap_lose(heap, call->ret_ns);
		return;
	case NT_MEMORY_NONE:
		return;
	}
}

bool nt_gpu_heap_take(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call)
{
	struct nt_gpu_heap_call known = *call;

	if (known.device > NT_GPU_HEAP_ANY_DEVICE)
		known.device = NT_GPU_HEAP_ANY_DEVICE;
	settle(heap, known.ret_ns);
	if (!known.result) {
		take(heap, &known);
		return false;
	}
	if (!allocates(known.op))
		return false;
	note_failure(heap, &known);
	return known.result == NT_GPU_HEAP_OUT_OF_MEMORY;
}

/* ---- reports -------------------------------------------------------------------------------- */

static void sample(struct nt_gpu_heap_site *site)
{
	nt_gpu_growth_sample(&site->growth, site->peak);
	site->peak = site->live;
}

void nt_gpu_heap_sample(struct nt_gpu_heap *heap)
{
	for (uint32_t i = 0; i < heap->sites; i++)
		sample(&heap->site[i]);
	sample(&heap->others);
}

bool nt_gpu_heap_leaks(const struct nt_gpu_heap *heap, const struct nt_gpu_heap_site *site,
		       double *ret_probability, uint64_t *ret_bytes)
{
	const uint64_t least = nt_gpu_heap_live(heap) / NT_GPU_HEAP_LEAK_PART;

	*ret_probability = nt_gpu_growth_probability(&site->growth, ret_bytes);
	return *ret_probability >= NT_GPU_GROWTH_LIKELY && *ret_bytes >= NT_GPU_HEAP_LEAK_LEAST &&
	       *ret_bytes >= least;
}

bool nt_gpu_heap_most(const struct nt_gpu_heap *heap, uint32_t *ret_index)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i <= NT_GPU_HEAP_OTHER_SITES; i++) {
		const struct nt_gpu_heap_site *site = nt_gpu_heap_site(heap, i);

		if (!site || site->live <= most)
			continue;
		most = site->live;
		*ret_index = i;
	}
	return most > 0;
}

/* Those that leak come before the others, larger ones before smaller ones. */
static bool is_before(const struct nt_gpu_heap *heap, uint32_t left, uint32_t right)
{
	const struct nt_gpu_heap_site *a = nt_gpu_heap_site(heap, left),
				      *b = nt_gpu_heap_site(heap, right);
	double probability;
	uint64_t bytes;
	const bool a_leaks = nt_gpu_heap_leaks(heap, a, &probability, &bytes),
		   b_leaks = nt_gpu_heap_leaks(heap, b, &probability, &bytes);

	return a_leaks != b_leaks ? a_leaks : a->live > b->live;
}

size_t nt_gpu_heap_largest(const struct nt_gpu_heap *heap, uint32_t *ret_index, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i <= NT_GPU_HEAP_OTHER_SITES; i++) {
		const struct nt_gpu_heap_site *site = nt_gpu_heap_site(heap, i);
		size_t at = n;

		if (!site || !site->live)
			continue;
		while (at && is_before(heap, i, ret_index[at - 1]))
			at--;
		if (at == max)
			continue;
		if (n < max)
			n++;
		memmove(&ret_index[at + 1], &ret_index[at], (n - 1 - at) * sizeof(*ret_index));
		ret_index[at] = i;
	}
	return n;
}
