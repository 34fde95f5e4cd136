/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/tracker/tracker_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/system/clock.h"

/* Tolerance of device times: clock error plus the age of the last tick. */

int nt_tracker_new(const struct nt_tracker_options *options, struct nt_tracker **ret_tracker)
{
	nt_auto(nt_tracker) struct nt_tracker *tracker = calloc(1, sizeof(*tracker));

	if (!tracker)
		return -ENOMEM;
	tracker->options = *options;
	tracker->registry.memory = options->source.memory;
	tracker->registry.boot = options->boot;
	tracker->registry.epochs = options->seed;
	tracker->details_drawn = options->seed;
	nt_share_init(&tracker->share, NT_TRACKER_PROCESSES);
	nt_share_init(&tracker->key_share, NT_TRACKER_KEYS);
	nt_share_init(&tracker->registry.share, NT_REGISTRY_COMMS);
	if (nt_tracker_open_orphans(&tracker->orphans) < 0)
		return -ENOMEM;
	*ret_tracker = nt_take(tracker);
	return 0;
}

static void free_candidate(struct nt_tracker *tracker, struct nt_tracker_candidate *candidate)
{
	if (candidate->process)
		nt_tracker_free_process(tracker, candidate->process);
	nt_share_leave(&tracker->share, &candidate->place);
	HASH_DEL(tracker->candidates, candidate);
	free(candidate);
}

void nt_tracker_free(struct nt_tracker *tracker)
{
	struct nt_tracker_candidate *candidate, *next;

	if (!tracker)
		return;
	HASH_ITER(hh, tracker->candidates, candidate, next)
	free_candidate(tracker, candidate);
	nt_tracker_free_keys(tracker);
	nt_tracker_free_orphans(&tracker->orphans);
	nt_share_release(&tracker->share);
	nt_share_release(&tracker->key_share);
	nt_share_release(&tracker->registry.share);
	free(tracker);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void end_candidate(struct nt_tracker *tracker, struct nt_tracker_candidate *candidate,
			  uint64_t boot_ns, bool ended)
{
	if (candidate->process && candidate->process->is_awaited)
		nt_tracker_claim(tracker, candidate->process);
	if (candidate->process) {
		candidate->process->ended_ns = ended ? boot_ns : 0;
		nt_tracker_send_rest(tracker, candidate->process, boot_ns, ended);
	}
	free_candidate(tracker, candidate);
}

void nt_tracker_exited(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t boot_ns)
{
	struct nt_tracker_candidate *candidate = nt_tracker_find_candidate(tracker, pid);

	if (candidate && candidate->start_ns == start_boot_ns)
		end_candidate(tracker, candidate, boot_ns, true);
}

void nt_tracker_evicted(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_tracker_candidate *candidate = nt_tracker_find_candidate(tracker, pid);

	if (candidate && candidate->start_ns == start_boot_ns)
		end_candidate(tracker, candidate, tracker->now_ns, false);
}

static struct nt_tracker_candidate *add_candidate(struct nt_tracker *tracker,
						  const struct nt_mapped_file *file)
{
	struct nt_tracker_candidate *candidate;

	if (HASH_COUNT(tracker->candidates) >= NT_TRACKER_CANDIDATES) {
		tracker->stats.processes_over_cap++;
		return NULL;
	}
	candidate = calloc(1, sizeof(*candidate));
	if (!candidate) {
		tracker->stats.no_memory++;
		return NULL;
	}
	candidate->pid = file->pid;
	candidate->start_ns = file->start_boot_ns;
	candidate->late = file->late;
	if (file->owner)
		candidate->owner = *file->owner;
	HASH_ADD(hh, tracker->candidates, pid, sizeof(candidate->pid), candidate);
	nt_tracker_watch(tracker, candidate, nt_tracker_keeps(tracker, file->pid));
	if (candidate->process)
		candidate->process->is_awaited = nt_tracker_keeps(tracker, file->pid);
	return candidate;
}

static bool has_text(const char *text, const char *part)
{
	return text && strstr(text, part);
}

void nt_tracker_mapped(struct nt_tracker *tracker, const struct nt_mapped_file *file)
{
	struct nt_tracker_candidate *candidate = nt_tracker_find_candidate(tracker, file->pid);

	/* A reused pid: the end of the old process was not reported. */
	if (candidate && candidate->start_ns != file->start_boot_ns) {
		end_candidate(tracker, candidate, file->start_boot_ns, true);
		candidate = NULL;
	}
	if (!candidate)
		candidate = add_candidate(tracker, file);
	if (!candidate)
		return;
	candidate->libraries |= 1U << file->library;
	if (file->library == NT_LIBRARY_CUDART || file->library == NT_LIBRARY_CUDA)
		candidate->is_probed_late |=
			!file->probed_ns || file->probed_ns > file->start_boot_ns;
	if (file->library == NT_LIBRARY_NCCL || file->library == NT_LIBRARY_RCCL)
		candidate->nccl_file = nt_hash_u64(nt_hash_u64(NT_HASH_SEED, file->dev), file->ino);
	if (file->library == NT_LIBRARY_MPI && has_text(file->name, "libmpich"))
		candidate->mpich = true;
	if (candidate->process)
		nt_tracker_set_libraries(candidate);
}

/* ---- events --------------------------------------------------------------------------------- */

void nt_tracker_event(struct nt_tracker *tracker, const struct nt_event_call *call,
		      const uint8_t *id)
{
	const struct nt_probe *probe = nt_probe_row(call->h.row);
	struct nt_process *process;
	bool is_known;

	tracker->stats.events++;
	if (!probe || ((call->h.flags & NT_CALL_RETURNED) && call->ret_ns < call->h.entry_ns)) {
		tracker->stats.malformed_events++;
		return;
	}
	process = nt_tracker_caller(tracker, call->h.pid, call->h.entry_ns, &is_known);
	if (!process) {
		if (is_known)
			tracker->stats.foreign_events++;
		else
			nt_tracker_keep(tracker, call, id);
		return;
	}
	if (process->is_awaited)
		nt_tracker_claim(tracker, process);
	nt_tracker_give(tracker, process, call, id);
}

void nt_tracker_lost_of(struct nt_tracker *tracker, uint32_t pid, uint64_t events)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (process)
		nt_tracker_lose(tracker, process, events);
	else
		tracker->stats.lost_events += events;
}

void nt_tracker_take_losses(struct nt_tracker *tracker)
{
	const struct nt_tracker_source *source = &tracker->options.source;

	for (struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		struct nt_process_counters now;

		if (!source->counters(source->data, p->pid, &now) || now.lost <= p->lost_counted)
			continue;
		nt_tracker_lose(tracker, p, now.lost - p->lost_counted);
		p->lost_counted = now.lost;
	}
}

/* ---- pauses --------------------------------------------------------------------------------- */

void nt_tracker_paused(struct nt_tracker *tracker, uint32_t pid, uint64_t boot_ns)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process || process->paused)
		return;
	process->paused = true;
	process->paused_ns = boot_ns;
	nt_tracker_lose_heap(tracker, process);
	for (uint32_t i = 0; i < process->ranks; i++) {
		struct nt_rank *rank = process->rank[i];

		if (!rank->window_ns || boot_ns <= rank->window_ns)
			continue;
		(void)nt_rank_settle(rank, UINT64_MAX);
		if (rank->sums.steps)
			nt_tracker_send(tracker, rank, boot_ns, false);
	}
}

void nt_tracker_resumed(struct nt_tracker *tracker, uint32_t pid, uint64_t boot_ns)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process || !process->paused)
		return;
	process->paused = false;
	if (boot_ns > process->paused_ns)
		process->unobserved_ns += boot_ns - process->paused_ns;
	process->resumed_ns = boot_ns;
	if (process->gemm_spans)
		nt_gemm_spans_resume(process->gemm_spans, boot_ns);
	nt_tracker_lose_numbers(tracker, process);
	for (uint32_t i = 0; i < process->ranks; i++)
		nt_rank_gap(process->rank[i]);
}

/*
 * Half a step may be cut off at either end. After a pause, a step with an unknown phase is searched
 * anew, which takes some more steps.
 */
static uint64_t whole_of(const struct nt_rank *rank)
{
	struct nt_step_info info;

	nt_step_info(rank->step, &info);
	if (!info.found)
		return 0;
	if (info.is_unsure || (info.anchors > 1 && !info.by_anchor))
		return 5 * info.step_ns;
	return 2 * info.step_ns + info.step_ns / 2;
}

bool nt_tracker_traits(const struct nt_tracker *tracker, uint32_t pid,
		       struct nt_tracker_traits *ret_traits)
{
	const struct nt_tracker_candidate *candidate = nt_tracker_find_candidate(tracker, pid);
	const struct nt_process *process = candidate ? candidate->process : NULL;
	struct nt_tracker_traits traits = {0};

	if (!candidate)
		return false;
	traits.owner = candidate->owner.id;
	for (uint32_t i = 0; process && i < process->ranks; i++) {
		uint64_t whole_ns = whole_of(process->rank[i]);

		traits.is_rank = true;
		traits.measured += process->rank[i]->measured;
		if (whole_ns > traits.whole_ns)
			traits.whole_ns = whole_ns;
	}
	*ret_traits = traits;
	return true;
}

void nt_tracker_shed(struct nt_tracker *tracker, uint32_t pid, uint32_t shed)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process)
		return;
	/* A call of an unobserved function may be in progress. */
	if (process->shed & ~shed & NT_WIRE_SHED_COMMUNICATION)
		process->resumed_ns = tracker->now_ns;
	if (process->shed & ~shed & NT_WIRE_SHED_GEMMS && process->gemm_spans)
		nt_gemm_spans_resume(process->gemm_spans, tracker->now_ns);
	nt_tracker_shed_heap(tracker, process, shed);
	process->shed = shed;
	for (uint32_t i = 0; i < process->ranks; i++)
		process->rank[i]->shed |= shed;
}

/* ---- figures -------------------------------------------------------------------------------- */

static void add_gpu(struct nt_gpu_stats *sum, const struct nt_gpu_stats *more)
{
	sum->steps_over_cap += more->steps_over_cap;
	sum->streams_over_cap += more->streams_over_cap;
	sum->steps_unknown += more->steps_unknown;
	sum->late += more->late;
	sum->overlap_ns += more->overlap_ns;
}

const struct nt_share *nt_tracker_share(const struct nt_tracker *tracker)
{
	return &tracker->share;
}

const struct nt_share *nt_tracker_key_share(const struct nt_tracker *tracker)
{
	return &tracker->key_share;
}

const struct nt_share *nt_tracker_comm_share(const struct nt_tracker *tracker)
{
	return &tracker->registry.share;
}

const struct nt_share *nt_tracker_orphan_share(const struct nt_tracker *tracker)
{
	return &tracker->orphans.share;
}

void nt_tracker_stats(const struct nt_tracker *tracker, struct nt_tracker_stats *ret_stats)
{
	struct nt_tracker_stats stats = tracker->stats;

	stats.comms_over_cap = tracker->registry.comms_over_cap;
	stats.pending_over_cap = tracker->registry.pending_over_cap;
	stats.unresolved_comms = tracker->registry.unresolved;
	stats.no_memory += tracker->registry.no_memory + stats.graphs.no_memory;
	stats.processes = HASH_COUNT(tracker->processes);
	for (const struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		if (p->gpu_records)
			nt_tracker_add_gpu_records(&stats, p->gpu_records);
		if (p->heap)
			nt_tracker_add_heap(&stats, p->heap);
		stats.paused += p->paused;
		stats.ranks += p->ranks;
		stats.comms += p->comm_count;
		for (uint32_t i = 0; i < p->ranks; i++) {
			const struct nt_rank *rank = p->rank[i];
			struct nt_step_info info;

			nt_step_info(rank->step, &info);
			stats.late_ns += rank->work.late_ns;
			stats.step_overruns += rank->work.overrun;
			if (rank->gpu)
				add_gpu(&stats.gpu, nt_gpu_stats(rank->gpu));
			nt_tracker_add_completion(&stats, rank);
			stats.unknown_kinds += info.unknown_kinds;
			if (rank->order)
				stats.order_overflows += nt_stream_order_overflows(rank->order);
		}
	}
	*ret_stats = stats;
}
