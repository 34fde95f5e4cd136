/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is reported of GPUs from inside the ranks' processes. */
#include "agent/tracker/tracker_impl.h"

#include "common/base/cleanup.h"
#include "common/system/clock.h"
#include "common/system/log.h"

#define GPU_AHEAD_NS NT_SECOND
#define SILENT_NS    (2 * NT_SECOND) /* of a measurement without a kernel */

enum {
	SILENT_LAUNCHES = 10,
	/* A second: 32,000 kernels with their calls, and those of eight such processes. */
	PROCESS_BATCHES = 1000,
	NODE_BATCHES = 8000,
	FLOODS = 3, /* seconds with more, after which a process is not measured any more */
	LINES = 8, /* of the log, a minute: processes are many, and may be hostile */
};

static bool makes_sense(const struct nt_tracker *tracker, const struct nt_gpu_interval *interval)
{
	return interval->start_ns <= interval->end_ns && interval->entry_ns <= interval->start_ns &&
	       interval->start_ns && interval->end_ns <= tracker->now_ns + GPU_AHEAD_NS;
}

static bool is_by_communication(const struct nt_process *process)
{
	return process->gpu_records && nt_gpu_records_by_communication(process->gpu_records);
}

/* Skipped numbers of a process are losses. A number that goes back restarts the count. */
static void count_interval(struct nt_tracker *tracker, struct nt_process *process,
			   const struct nt_gpu_interval *interval)
{
	uint64_t *last = &process->gpu_number[interval->communicates], lost = 0;

	if (*last && interval->number > *last)
		lost = interval->number - *last - 1;
	*last = interval->number;
	if (!lost)
		return;
	tracker->stats.gpu_lost += lost;
	process->gpu_lost += lost;
	if (interval->communicates && !is_by_communication(process))
		return;
	process->gemm_time.is_partial |= process->gemm_spans && !interval->communicates;
	for (uint32_t i = 0; i < process->ranks; i++)
		nt_rank_gpu_lost(process->rank[i]);
}

/* While it is paused, its multiplications are not observed. */
static void add_gemm_time(struct nt_tracker *tracker, struct nt_process *process,
			  const struct nt_gpu_interval *interval)
{
	if (!process->gemm_spans || interval->communicates ||
	    (process->paused && interval->entry_ns >= process->paused_ns))
		return;
	/* Which of its kernels are multiplications is not known. */
	if (interval->is_of_graph && process->has_replayed) {
		process->gemm_time.is_partial = true;
		return;
	}
	if (!nt_gemm_spans_kernel(process->gemm_spans, interval->thread, interval->entry_ns,
				  interval->end_ns - interval->start_ns, &process->gemm_time))
		tracker->stats.gemm_spans_over_cap++;
}

void nt_tracker_gemm(struct nt_tracker *tracker, const struct nt_event_gemm *gemm)
{
	struct nt_process *process = nt_tracker_process(tracker, gemm->h.pid);

	if (process && process->gemm_spans)
		nt_gemm_spans_add(process->gemm_spans, gemm);
}

struct nt_communicator *nt_tracker_comm(const struct nt_process *process, uint64_t id,
					uint32_t comm_rank)
{
	for (struct nt_communicator *comm = process->comms; comm && id; comm = comm->hh.next) {
		if (comm->id == id && comm->rank == comm_rank && comm->rank_of)
			return comm;
	}
	return NULL;
}

void nt_tracker_gpu(struct nt_tracker *tracker, const struct nt_gpu_interval *interval)
{
	struct nt_process *process = nt_tracker_process(tracker, interval->pid);
	struct nt_communicator *comm = NULL;
	struct nt_rank *rank = NULL;

	tracker->stats.gpu_intervals++;
	if (!process) {
		tracker->stats.gpu_unowned++;
		return;
	}
	count_interval(tracker, process, interval);
	if (!makes_sense(tracker, interval)) {
		tracker->stats.gpu_malformed++;
		process->gpu_lost++;
		return;
	}
	add_gemm_time(tracker, process, interval);
	if (interval->communicates)
		comm = nt_tracker_comm(process, interval->comm, interval->comm_rank);
	/* With several ranks in one process, kernels cannot be attributed. */
	if (comm)
		rank = comm->rank_of;
	else if (process->ranks == 1 && (!interval->communicates || is_by_communication(process)))
		rank = process->rank[0];
	if (!rank && interval->communicates && !interval->comm)
		return; /* whose call is not known */
	if (!rank)
		tracker->stats.gpu_unowned++;
	else if (nt_rank_gpu(rank, comm, interval, tracker->now_ns))
		process->gpu_taken++;
	else
		process->gpu_lost++;
}

/* ---- figures -------------------------------------------------------------------------------- */

void nt_tracker_add_gpu_records(struct nt_tracker_stats *sum, const struct nt_gpu_records *records)
{
	const struct nt_gpu_records_stats *more = nt_gpu_records_stats(records);

	sum->gpu_records.records += more->records;
	sum->gpu_records.kernels += more->kernels;
	sum->gpu_records.lost += more->lost;
	sum->gpu_records.malformed += more->malformed;
	sum->gpu_records.unmatched += more->unmatched;
	sum->gpu_records.earlier += more->earlier;
}

/* ---- records -------------------------------------------------------------------------------- */

static void take_interval(void *data, const struct nt_gpu_interval *interval)
{
	struct nt_process *process;

	if (interval->kernels) {
		nt_tracker_gpu(data, interval);
		return;
	}
	process = nt_tracker_process(data, interval->pid);
	if (process && process->ranks == 1)
		(void)nt_rank_gpu(process->rank[0], NULL, interval,
				  ((const struct nt_tracker *)data)->now_ns);
}

/* As of its last window. */
static uint64_t launches_of(const struct nt_process *process)
{
	return process->counters.calls[NT_COUNTER_LAUNCH] +
	       process->counters.calls[NT_COUNTER_DRIVER_LAUNCH];
}

/* Kernels of several ranks in one process cannot be told apart. */
static void open_ranks(struct nt_process *process, uint64_t from_ns)
{
	for (uint32_t i = 0; i < process->ranks && process->ranks == 1; i++)
		nt_rank_gpu_open(process->rank[i], from_ns, is_by_communication(process));
	process->gpu_open_ns = from_ns;
	process->gpu_open_launches = launches_of(process);
	process->gpu_number[0] = process->gpu_number[1] = 0;
}

static bool may_log(struct nt_tracker *tracker)
{
	if (!tracker->gpu_lines_ns || tracker->now_ns - tracker->gpu_lines_ns >= NT_MINUTE) {
		tracker->gpu_lines_ns = tracker->now_ns;
		tracker->gpu_lines = 0;
	}
	return tracker->gpu_lines++ < LINES;
}

static void note_given_up(struct nt_tracker *tracker, struct nt_process *process)
{
	bool *is_refused = &process->gpu_is_refused[is_by_communication(process)];
	int32_t result;

	/* Once for each library: both may repeat it. */
	if (*is_refused || !nt_gpu_records_given_up(process->gpu_records, &result))
		return;
	*is_refused = true;
	tracker->stats.gpu_refused++;
	if (!may_log(tracker))
		return;
	if (is_by_communication(process) && result == NT_GPU_RESULT_ON_REQUEST)
		(void)nt_warn(0,
			      "process %u: this release of NCCL reports times of kernels only with "
			      "NEUTRACER_NCCL_KERNELS=always in the job's environment",
			      process->pid);
	else if (is_by_communication(process))
		(void)nt_warn(0,
			      "process %u: times of NCCL's kernels contradict each other, so they "
			      "are not used (result %d); with NCCL 2.29 and 2.30, "
			      "NCCL_ALLGATHERV_ENABLE=0 in the job's environment may avoid that",
			      process->pid, result);
	else if (result == 0)
		(void)nt_warn(
			0,
			"process %u: another profiler uses CUPTI, so its GPU time is not measured",
			process->pid);
	else
		(void)nt_warn(0,
			      "process %u: CUPTI %s, so its GPU time is not measured (result %d)",
			      process->pid, result == -1 ? "is not there" : "refuses", result);
}

/* A batch costs the agent some 50 us, so a process that makes them up must not choose their rate. */
static bool is_over_rate(struct nt_tracker *tracker, struct nt_process *process, uint64_t now_ns)
{
	const uint64_t second = now_ns / NT_SECOND;

	if (process->gpu_second != second)
		process->gpu_batches = 0;
	if (tracker->gpu_second != second)
		tracker->gpu_batches = 0;
	process->gpu_second = tracker->gpu_second = second;
	process->gpu_floods += ++process->gpu_batches == PROCESS_BATCHES + 1;
	return process->gpu_batches > PROCESS_BATCHES || ++tracker->gpu_batches > NODE_BATCHES;
}

/* As when another client of CUPTI ended all tracing of the process: nothing else shows that. */
static void note_silence(struct nt_tracker *tracker, struct nt_process *process)
{
	const uint64_t launches = launches_of(process) - process->gpu_open_launches;

	/* A program may launch kernels and never communicate. */
	if (process->gpu_is_silent || !process->gpu_open_ns || is_by_communication(process) ||
	    tracker->now_ns < process->gpu_open_ns + SILENT_NS || launches < SILENT_LAUNCHES ||
	    nt_gpu_records_stats(process->gpu_records)->kernels || process->gpu_number[0] ||
	    process->gpu_number[1])
		return;
	process->gpu_is_silent = true;
	tracker->stats.gpu_silent++;
	if (!may_log(tracker))
		return;
	(void)nt_warn(0,
		      "process %u launched %llu kernels and CUPTI reported none of them: another "
		      "profiler may have ended its tracing",
		      process->pid, (unsigned long long)launches);
}

static void close_process(struct nt_tracker *tracker, struct nt_process *process)
{
	if (!process->gpu_records)
		return;
	note_silence(tracker, process);
	nt_tracker_add_gpu_records(&tracker->stats, process->gpu_records);
	nt_gpu_records_free(nt_take(process->gpu_records));
	nt_gemm_spans_free(nt_take(process->gemm_spans));
	process->gpu_open_ns = 0;
	for (uint32_t i = 0; i < process->ranks; i++)
		nt_rank_gpu_close(process->rank[i]);
}

/* Multiplications are sent from its first batch on. */
static void watch_gemms(struct nt_tracker *tracker, struct nt_process *process,
			const struct nt_event_gpu *batch)
{
	if (is_by_communication(process))
		return;
	if (!process->gemm_spans && nt_gemm_spans_new(&process->gemm_spans) < 0) {
		tracker->stats.no_memory++;
		return;
	}
	if (!nt_gemm_spans_batch(process->gemm_spans, batch->h.entry_ns, batch->spans_lost))
		process->gemm_time.is_partial = true;
}

/*
 * The records that the batch belongs to. NULL: none. A process may have two libraries: the second is
 * attached when the first has given up.
 */
static struct nt_gpu_records *records_of(struct nt_tracker *tracker, struct nt_process *process,
					 const struct nt_event_gpu *batch)
{
	const struct nt_probe *row = nt_probe_row(NT_ROW_OF(batch->h.row));
	const bool by_communication =
		row && row->library == (enum nt_library)NT_LIBRARY_NCCL_PROFILER;
	int32_t result;

	if (process->gpu_records && is_by_communication(process) != by_communication) {
		if (!nt_gpu_records_given_up(process->gpu_records, &result))
			return NULL;
		close_process(tracker, process);
	}
	if (!process->gpu_records &&
	    nt_gpu_records_new(process->pid, by_communication, &process->gpu_records) < 0) {
		tracker->stats.no_memory++;
		return NULL;
	}
	return process->gpu_records;
}

enum nt_gpu_batch_result nt_tracker_gpu_batch(struct nt_tracker *tracker,
					      const struct nt_event_gpu *batch)
{
	struct nt_process *process = nt_tracker_process(tracker, batch->h.pid);
	struct nt_gpu_records *records;
	int32_t result;

	if (!process || !process->ranks) {
		tracker->stats.gpu_unowned += batch->records;
		return NT_GPU_BATCH_TAKEN;
	}
	/* The gap in the numbers makes the steps invalid. */
	if (is_over_rate(tracker, process, batch->h.entry_ns)) {
		tracker->stats.gpu_over_rate++;
		return process->gpu_floods < FLOODS ? NT_GPU_BATCH_TAKEN : NT_GPU_BATCH_FLOOD;
	}
	if (nt_tracker_take_transfers(tracker, process, batch))
		return NT_GPU_BATCH_TAKEN;
	records = records_of(tracker, process, batch);
	if (!records)
		return NT_GPU_BATCH_TAKEN;
	watch_gemms(tracker, process, batch);
	nt_gpu_records_add(records, batch, take_interval, tracker);
	if (nt_gpu_records_open_ns(records) != process->gpu_open_ns)
		open_ranks(process, nt_gpu_records_open_ns(records));
	/* A second rank came meanwhile: no step is known by its device, and none waits for it. */
	for (uint32_t i = 0; i < process->ranks && process->ranks > 1; i++)
		nt_rank_gpu_close(process->rank[i]);
	note_given_up(tracker, process);
	return nt_gpu_records_given_up(records, &result) ? NT_GPU_BATCH_GIVEN_UP
							 : NT_GPU_BATCH_TAKEN;
}

void nt_tracker_gpu_closed_all(struct nt_tracker *tracker)
{
	for (struct nt_process *process = tracker->processes; process; process = process->hh.next)
		close_process(tracker, process);
}
