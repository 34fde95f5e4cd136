/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Captured calls are not executed during capture: the numbers of a communicator advance with each
 * launch of the graph, on all of its ranks alike.
 */
#include "agent/tracker/tracker_impl.h"

#include "agent/gpu/gemm_sums.h"

/* Of runtime and driver. */
enum {
	/* cudaErrorStreamCaptureUnmatched: the capture continues, as … */
	NOT_ITS_ORIGIN = 903,
	WRONG_THREAD = 908, /* … after cudaErrorStreamCaptureWrongThread */
};

bool nt_tracker_captured(struct nt_process *process, const struct nt_probe *probe,
			 const struct nt_event_call *call, const struct nt_communicator *comm,
			 const struct nt_communicator_call *made)
{
	uint64_t stream = nt_probe_word(call, probe->stream);
	struct nt_graph_call captured = {
		.comm = comm->key.handle,
		.library = (uint16_t)comm->key.library,
		.ordinal = comm->ordinal,
		.op = (uint16_t)made->op,
		.count = made->count,
		.bytes = made->bytes,
		.type = made->type,
		.times = 1,
	};

	if (!process->graph || probe->stream == NT_NO_WORD ||
	    !nt_graph_captures(process->graph, stream))
		return false;
	nt_graph_call(process->graph, stream, &captured);
	return true;
}

bool nt_tracker_captured_order(struct nt_process *process, const struct nt_probe *probe,
			       const struct nt_event_call *call)
{
	uint64_t event = nt_probe_word(call, probe->event);
	uint64_t stream = nt_probe_word(call, probe->stream);

	if (!process->graph)
		return false;
	if (probe->role == NT_ROLE_EVENT_RECORD)
		return nt_graph_record(process->graph, event, stream);
	return nt_graph_wait(process->graph, stream, event);
}

/* They count in the totals of the process, although they do not run. */
void nt_tracker_capture(struct nt_tracker *tracker, const struct nt_event_capture *capture)
{
	struct nt_process *process = nt_tracker_process(tracker, capture->h.pid);

	if (!process)
		return;
	process->capture = *capture;
	/* The totals are the process's: of several ranks one may capture, and the others multiply. */
	if (process->ranks > 1 || capture->h.flags & NT_CAPTURE_MIXED || capture->unread ||
	    !nt_gemm_sums_add(process->captured, capture->sum))
		process->capture.h.pid = 0;
}

/* What the capture that the call ended multiplied; NULL: unknown. */
static const struct nt_gemm_sum *take_capture(struct nt_process *process,
					      const struct nt_event_call *call)
{
	const struct nt_event_header *h = &process->capture.h;

	if (!h->pid || h->tid != call->h.tid || h->entry_ns != call->h.entry_ns)
		return NULL;
	process->capture.h.pid = 0;
	process->captures_read++;
	return process->capture.sum;
}

void nt_tracker_graph(struct nt_tracker *tracker, struct nt_process *process,
		      const struct nt_probe *probe, const struct nt_event_call *call)
{
	uint64_t handle = nt_probe_word(call, probe->graph);
	uint64_t from = nt_probe_word(call, probe->from);
	uint64_t stream = nt_probe_word(call, probe->stream);
	uint32_t result = (uint32_t)call->ret;

	process->captures += probe->role == NT_ROLE_CAPTURE_BEGIN;
	if (!(call->h.flags & NT_CALL_RETURNED))
		return;
	if (!process->graph) {
		/* Graphs created before the first capture hold no captured call. */
		if (probe->role != NT_ROLE_CAPTURE_BEGIN || result)
			return;
		if (nt_graph_new(&tracker->stats.graphs, &process->graph) < 0) {
			tracker->stats.no_memory++;
			return;
		}
	}
	if (probe->role == NT_ROLE_CAPTURE_END) {
		if (result == NOT_ITS_ORIGIN || result == WRONG_THREAD)
			return;
		nt_graph_end(process->graph, stream, result ? 0 : handle);
		nt_graph_multiply(process->graph, result ? 0 : handle, take_capture(process, call));
		return;
	}
	if (result)
		return;
	if (probe->role == NT_ROLE_CAPTURE_BEGIN)
		nt_graph_begin(process->graph, stream, handle);
	else if (!handle)
		tracker->stats.malformed_events++;
	else if (probe->role == NT_ROLE_GRAPH_COPY)
		nt_graph_copy(process->graph, handle, from);
	else if (probe->role == NT_ROLE_GRAPH_ADD)
		nt_graph_add(process->graph, handle, from);
	else
		nt_graph_drop(process->graph, handle);
}

/* ---- launches ------------------------------------------------------------------------------- */

struct launch {
	struct nt_tracker *tracker;
	struct nt_process *process;
	struct nt_thread *thread;
	uint64_t stream, entry_ns, launches;
};

static void make_call(const struct launch *launch, const struct nt_graph_call *captured)
{
	struct nt_tracker *tracker = launch->tracker;
	struct nt_communicator *comm = nt_registry_known(
		launch->process, (enum nt_library)captured->library, captured->comm);
	struct nt_communicator_call call = {
		.op = (enum nt_op)captured->op,
		.count = captured->count,
		.bytes = captured->bytes,
		.type = captured->type,
		.entry_ns = launch->entry_ns,
	};

	if (!comm || comm->ordinal != captured->ordinal || !comm->rank_of) {
		tracker->stats.graphs.gone += captured->times;
		return;
	}
	if (launch->thread) {
		launch->thread->rank = comm->rank_of;
		launch->thread->comm_calls += captured->times;
	}
	for (uint32_t i = 0; i < captured->times; i++) {
		if (nt_rank_comm(comm->rank_of, comm, &call, launch->stream, launch->launches))
			nt_tracker_stepped(tracker, comm->rank_of);
	}
}

static void multiply(struct nt_process *process, uint64_t handle)
{
	struct nt_gemm_sum sum[NT_GEMM_SUMS];

	if (!nt_graph_multiplies(process->graph, handle, sum))
		return;
	process->graph_launches_read += nt_gemm_sums_add(process->replayed, sum);
	process->has_replayed |= sum[0].calls > 0;
}

bool nt_tracker_graph_launch(struct nt_tracker *tracker, struct nt_process *process,
			     struct nt_thread *thread, const struct nt_probe *probe,
			     const struct nt_event_call *call)
{
	uint64_t handle = nt_probe_word(call, probe->graph);
	struct launch launch = {
		.tracker = tracker,
		.process = process,
		.thread = thread,
		.stream = nt_probe_word(call, probe->stream),
		.entry_ns = call->h.entry_ns,
		/* The graph's kernels are still running when its calls are made. */
		.launches = call->launches ? call->launches - 1 : 0,
	};
	const struct nt_graph_call *captured;
	size_t count;

	if (process->graph && nt_graph_captures(process->graph, launch.stream)) {
		nt_graph_nest(process->graph, launch.stream, handle);
		return true;
	}
	if (!process->graph || !nt_graph_find(process->graph, handle, &captured, &count)) {
		tracker->stats.graphs.unknown++;
		return false;
	}
	tracker->stats.graphs.launches += count > 0;
	multiply(process, handle);
	for (size_t i = 0; i < count; i++)
		make_call(&launch, &captured[i]);
	return true;
}
