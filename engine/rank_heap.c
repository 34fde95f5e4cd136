/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/rank_session.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/ascii.h"

/* A time of the node's boot clock on the real one; 0 stays 0. */
static uint64_t real_ns(const struct nt_window *window, uint64_t boot_ns, uint64_t end_ns)
{
	const uint64_t ago_ns = window->end_boot_ns > boot_ns ? window->end_boot_ns - boot_ns : 0;

	return boot_ns ? (end_ns > ago_ns ? end_ns - ago_ns : 1) : 0;
}

static void take_place(struct nt_rank_heap_place *place, const char *file, uint64_t offset)
{
	nt_ascii_copy_text(place->file, sizeof(place->file), file);
	place->offset = offset;
}

static void take_failure(struct nt_rank_heap_failure *failure, const struct nt_window *window,
			 uint64_t end_ns)
{
	const struct nt_heap_failure *sent = &window->heap.failure;

	*failure = (struct nt_rank_heap_failure){
		.bytes = sent->bytes,
		.at_ns = real_ns(window, sent->boot_ns, end_ns),
		.live_bytes = sent->live_bytes,
		.device = sent->device,
		.device_known = !sent->device_unknown,
		.holder_pid = sent->holder_pid,
		.holder_rank = sent->holder_rank,
		.holder_rank_known = sent->holder_rank_known,
		.holder_is_whole = sent->holder_is_whole,
		.holder_bytes = sent->holder_bytes,
		.holder_site_bytes = sent->holder_site_bytes,
	};
	nt_ascii_copy_text(failure->call, sizeof(failure->call), sent->call);
	take_place(&failure->place, sent->file, sent->offset);
	take_place(&failure->holder_place, sent->holder_file, sent->holder_offset);
}

static void take_sites(struct nt_rank_heap *heap, const struct nt_heap_window *sent)
{
	heap->sites = 0;
	for (size_t i = 0; i < sent->sites && i < NT_RANK_HEAP_SITES; i++) {
		struct nt_rank_heap_site *site = &heap->site[heap->sites++];

		*site = (struct nt_rank_heap_site){
			.live_bytes = sent->site[i].live_bytes,
			.blocks = sent->site[i].blocks,
			.growth_bytes = sent->site[i].growth_bytes,
			.growth_probability = sent->site[i].growth_probability,
			.leaks = sent->site[i].leaks,
		};
		take_place(&site->place, sent->site[i].file, sent->site[i].offset);
	}
}

int nt_rank_heap_take(struct nt_rank_heap **heap, const struct nt_window *window, uint64_t end_ns)
{
	const struct nt_heap_window *sent = &window->heap;

	if (!*heap && !sent->devices && !sent->failures && !sent->has_sites)
		return 0;
	if (!*heap)
		*heap = calloc(1, sizeof(**heap));
	if (!*heap)
		return -ENOMEM;
	(*heap)->is_whole = sent->is_whole;
	(*heap)->since_ns = real_ns(window, sent->since_boot_ns, end_ns);
	(*heap)->failures = sent->failures;
	(*heap)->out_of_memory = sent->out_of_memory;
	(*heap)->devices = 0;
	for (size_t i = 0; i < sent->devices && i < NT_RANK_HEAP_DEVICES; i++)
		(*heap)->device[(*heap)->devices++] = (struct nt_rank_heap_device){
			.number = sent->device[i].number,
			.number_known = !sent->device[i].number_unknown,
			.live_bytes = sent->device[i].live_bytes,
			.high_bytes = sent->device[i].high_bytes,
			.managed_bytes = sent->device[i].managed_bytes,
			.blocks = sent->device[i].blocks,
		};
	if (!sent->has_sites)
		return 0;
	take_sites(*heap, sent);
	take_failure(&(*heap)->failure, window, end_ns);
	return 0;
}
