/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device memory of processes: calls that allocate and free it, and who held it when it ran out. */
#include "agent/tracker/tracker_impl.h"

#include <string.h>

#include "common/base/hash.h"
#include "common/system/clock.h"

#define SITES_NS (10 * NT_SECOND) /* from one report of call sites to the next */
#define SEARCHES 8 /* for a holder, of a process in a second; the last one waits for the window */

/* Without any of these the heap is not known: the runtime's cudaFree is a synchronising call. */
#define HEAP_SHED (NT_WIRE_SHED_ALLOCATIONS | NT_WIRE_SHED_SYNCS)

enum {
	LOCATION_DEVICE = 1, /* CU_MEM_LOCATION_TYPE_DEVICE */
};

/* ---- losses --------------------------------------------------------------------------------- */

void nt_tracker_lose_heap(const struct nt_tracker *tracker, struct nt_process *process)
{
	process->heap_is_partial = true;
	if (process->heap)
		nt_gpu_heap_lose(process->heap, tracker->now_ns);
	for (uint32_t i = 0; i < process->threads; i++)
		process->thread[i].has_device = false;
}

void nt_tracker_shed_heap(const struct nt_tracker *tracker, struct nt_process *process,
			  uint32_t shed)
{
	if ((process->shed ^ shed) & HEAP_SHED)
		nt_tracker_lose_heap(tracker, process);
}

/* ---- calls ---------------------------------------------------------------------------------- */

void nt_tracker_set_device(struct nt_process *process, const struct nt_event_call *call)
{
	struct nt_thread *thread = nt_process_thread(process, call->h.tid);

	if (!thread)
		return;
	thread->device = (uint32_t)call->word[0];
	thread->has_device = true;
}

/*
 * A thread begins with device 0. Contexts that are made current through the driver are not followed.
 * Physical memory states where it is.
 */
static uint32_t device_of(struct nt_process *process, const struct nt_probe *probe,
			  const struct nt_event_call *call)
{
	const struct nt_thread *thread;

	if (probe->memory == NT_MEMORY_CREATE)
		return (uint32_t)call->word[2] == LOCATION_DEVICE ? (uint32_t)(call->word[2] >> 32)
								  : NT_GPU_HEAP_ANY_DEVICE;
	thread = nt_process_thread(process, call->h.tid);
	if (!thread || process->shed & NT_WIRE_SHED_ORDER)
		return NT_GPU_HEAP_ANY_DEVICE;
	if (thread->has_device)
		return thread->device;
	return process->runtime && !process->late && !process->heap_is_partial
		       ? 0
		       : NT_GPU_HEAP_ANY_DEVICE;
}

static uint64_t bytes_of(const struct nt_probe *probe, const struct nt_event_call *call)
{
	uint64_t bytes;

	if (probe->memory != NT_MEMORY_ALLOC_PITCHED)
		return nt_probe_word(call, probe->bytes);
	/* A product that overflows is refused as too large. */
	return __builtin_mul_overflow(call->word[1], call->word[3], &bytes) ? UINT64_MAX : bytes;
}

static struct nt_gpu_heap *heap_of(struct nt_tracker *tracker, struct nt_process *process,
				   uint64_t entry_ns)
{
	const bool is_whole = !process->late && !process->heap_is_partial &&
			      !process->lost_events && !process->candidate->is_probed_late;
	const uint64_t seed = nt_hash_u64(tracker->options.seed, process->pid);

	if (!process->heap && nt_gpu_heap_new(is_whole ? 0 : entry_ns, seed, &process->heap) < 0)
		tracker->stats.no_memory++;
	return process->heap;
}

/* ---- who holds the memory -------------------------------------------------------------------- */

/* True if both use the same card, as far as that is known: by the driver, else by what they state. */
static bool shares_card(const struct nt_tracker *tracker, const struct nt_process *process,
			const struct nt_process *other)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	enum nt_gpu_shared shared = NT_GPU_SHARED_UNKNOWN;

	if (process == other)
		return true;
	if (source->shared_card)
		shared = source->shared_card(source->data, process->pid, other->pid);
	if (shared != NT_GPU_SHARED_UNKNOWN)
		return shared == NT_GPU_SHARED_YES;
	return nt_placement_states_one_gpu(&process->placement, &other->placement);
}

static void name_holder(const struct nt_process *process, uint64_t bytes,
			struct nt_window_holder *ret_holder)
{
	const struct nt_gpu_heap *heap = process->heap;
	uint32_t index;

	*ret_holder = (struct nt_window_holder){
		.pid = process->pid,
		.start_ns = process->start_ns,
		.bytes = bytes,
		.is_whole = heap->is_whole,
	};
	if (nt_gpu_heap_most(heap, &index)) {
		const struct nt_gpu_heap_site *site = nt_gpu_heap_site(heap, index);

		ret_holder->site = site->address;
		ret_holder->site_bytes = site->live;
		ret_holder->offset = site->offset;
		memcpy(ret_holder->file, site->file, sizeof(ret_holder->file));
	}
}

/*
 * Of the processes on the same card. Of the failed one only what it holds on that device counts; of
 * another one that uses several devices it is not known which of them is the card.
 */
static void find_holder(const struct nt_tracker *tracker, struct nt_process *failed)
{
	const struct nt_process *most = failed;
	uint64_t bytes = failed->heap->last.live;

	for (const struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		if (p == failed || !p->heap || nt_gpu_heap_single(p->heap) <= bytes ||
		    !shares_card(tracker, failed, p))
			continue;
		most = p;
		bytes = nt_gpu_heap_single(p->heap);
	}
	name_holder(most, bytes, &failed->heap_holder);
}

void nt_tracker_memory(struct nt_tracker *tracker, struct nt_process *process,
		       const struct nt_probe *probe, const struct nt_event_call *call)
{
	struct nt_gpu_heap *heap = heap_of(tracker, process, call->h.entry_ns);
	const bool gives_handle = probe->deref != NT_NO_WORD;
	const struct nt_gpu_heap_call made = {
		.op = probe->memory,
		.symbol = probe->symbol,
		.address = gives_handle ? call->deref : call->word[0],
		.handle = call->word[3],
		.bytes = bytes_of(probe, call),
		.site = call->launches,
		.device = device_of(process, probe, call),
		.result = (uint32_t)call->ret,
		.entry_ns = call->h.entry_ns,
		.ret_ns = call->ret_ns,
	};

	if (!heap || process->paused || process->shed & HEAP_SHED)
		return;
	if (!nt_gpu_heap_take(heap, &made))
		return;
	tracker->stats.heap_out_of_memory++;
	process->heap_sent_ns = 0;
	/*
	 * All processes are looked at: one that fails again and again must not choose how often. An
	 * allocator that tries again frees what it keeps first: its holder may be another then.
	 */
	if (call->ret_ns >= process->heap_searches_ns + NT_SECOND) {
		process->heap_searches_ns = call->ret_ns;
		process->heap_searches = 0;
	}
	process->heap_holder_is_due = ++process->heap_searches > SEARCHES;
	if (!process->heap_holder_is_due)
		find_holder(tracker, process);
}

/* ---- reports -------------------------------------------------------------------------------- */

static uint32_t leaks_of(const struct nt_gpu_heap *heap)
{
	uint32_t leaks = 0;
	double probability;
	uint64_t bytes;

	for (uint32_t i = 0; i < heap->sites; i++)
		leaks |= (uint32_t)nt_gpu_heap_leaks(heap, &heap->site[i], &probability, &bytes)
			 << i;
	return leaks;
}

/* Sites are looked up when they are first reported, while the process runs. */
static void ask_sites(const struct nt_tracker *tracker, struct nt_process *process)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;
	uint32_t index[NT_WINDOW_HEAP_SITES];
	const size_t n = nt_gpu_heap_largest(process->heap, index, NT_WINDOW_HEAP_SITES);

	for (size_t i = 0; i < n && sink->site_wanted; i++) {
		if (index[i] >= process->heap->sites || process->heap->site[index[i]].is_asked)
			continue;
		process->heap->site[index[i]].is_asked = true;
		sink->site_wanted(sink->data, process->pid, process->start_ns,
				  process->heap->site[index[i]].address);
	}
}

/* A process may become a rank only after its memory ran out. */
static void name_rank(const struct nt_tracker *tracker, struct nt_window_holder *holder)
{
	const struct nt_process *process =
		holder->pid ? nt_tracker_process(tracker, holder->pid) : NULL;

	if (!process || process->start_ns != holder->start_ns || !process->ranks)
		return;
	holder->rank = process->rank[0]->rank;
	holder->rank_known = process->rank[0]->known;
}

void nt_tracker_report_heap(const struct nt_tracker *tracker, struct nt_rank *rank,
			    struct nt_window_context *context)
{
	struct nt_process *process = rank->process;
	uint32_t leaks;

	/* The memory is the process's: with several ranks, the first one sends it. */
	if (rank != process->rank[0] || !process->heap)
		return;
	if (process->heap_holder_is_due) {
		find_holder(tracker, process);
		process->heap_holder_is_due = false;
	}
	if (rank->sums.steps && !context->unobserved_ns)
		nt_gpu_heap_sample(process->heap);
	leaks = leaks_of(process->heap);
	context->heap = process->heap;
	context->holder = &process->heap_holder;
	context->with_heap_sites = context->ended || !process->heap_sent_ns ||
				   leaks != process->heap_leaks ||
				   context->end_ns >= process->heap_sent_ns + SITES_NS;
	if (!context->with_heap_sites)
		return;
	name_rank(tracker, &process->heap_holder);
	process->heap_leaks = leaks;
	process->heap_sent_ns = context->end_ns;
	if (!context->ended)
		ask_sites(tracker, process);
}

static void locate_holder(struct nt_window_holder *holder, uint32_t pid, uint64_t start_ns,
			  uint64_t address, const struct nt_gpu_heap *heap)
{
	if (holder->pid != pid || holder->start_ns != start_ns || holder->site != address)
		return;
	for (uint32_t i = 0; i < heap->sites; i++) {
		if (heap->site[i].address != address)
			continue;
		memcpy(holder->file, heap->site[i].file, sizeof(holder->file));
		holder->offset = heap->site[i].offset;
	}
}

void nt_tracker_site_found(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			   uint64_t address, const char *file, uint64_t offset)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process || process->start_ns != start_ns || !process->heap)
		return;
	nt_gpu_heap_locate(process->heap, address, file, offset);
	process->heap_sent_ns = 0;
	for (struct nt_process *p = tracker->processes; p; p = p->hh.next)
		locate_holder(&p->heap_holder, pid, start_ns, address, process->heap);
}

void nt_tracker_add_heap(struct nt_tracker_stats *sum, const struct nt_gpu_heap *heap)
{
	sum->heap_failures += heap->failures;
	sum->heap_blocks_over_cap += heap->blocks_over_cap;
	sum->heap_sites_over_cap += heap->sites_over_cap;
	sum->heap_malformed += heap->malformed;
	sum->heap_unmatched += heap->unmatched;
}
