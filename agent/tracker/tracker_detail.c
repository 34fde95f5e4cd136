/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single calls of processes at level L1 or above, as records with the tags of their rank. */
#include <errno.h>

#include "agent/steps/window.h"
#include "agent/tracker/detail_log.h"
#include "agent/tracker/tracker_impl.h"

#define SEND_NS NT_SECOND /* between two messages of a rank, if they are not full */

/* ---- levels --------------------------------------------------------------------------------- */

static void drop_log(struct nt_tracker *tracker, struct nt_rank *rank)
{
	if (rank->detail)
		tracker->detail_logs--;
	nt_detail_log_free(rank->detail);
	rank->detail = NULL;
}

static void send_log(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t now_ns)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;
	const struct nt_process *process = rank->process;
	struct nt_detail detail = {
		.call = "", .level = process->level, .granted = process->detail_granted};

	if (!nt_detail_log_has_news(rank->detail))
		return;
	nt_window_rank(rank, tracker->options.node, &detail.rank);
	nt_detail_log_fill(rank->detail, now_ns, &detail);
	sink->detail(sink->data, rank->key, &detail);
	tracker->stats.detail.messages++;
	tracker->stats.detail.records += detail.records;
	for (size_t i = 0; i < detail.counts; i++)
		tracker->stats.detail.lost += detail.count[i].lost;
	nt_detail_log_clear(rank->detail, now_ns);
}

/* The last records of the rank. It has a key, unless it changes jobs. */
static void end_log(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t now_ns)
{
	struct nt_detail rest = {0};

	if (!rank->detail)
		return;
	if (rank->key[0]) {
		send_log(tracker, rank, now_ns);
	} else {
		nt_detail_log_fill(rank->detail, now_ns, &rest);
		tracker->stats.detail.unowned += rest.records;
	}
	drop_log(tracker, rank);
}

void nt_tracker_drop_details(struct nt_tracker *tracker, struct nt_process *process)
{
	for (uint32_t i = 0; i < process->ranks; i++)
		drop_log(tracker, process->rank[i]);
}

int nt_tracker_set_level(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns,
			 uint32_t level)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process || process->start_ns != start_boot_ns)
		return -ESRCH;
	process->level = level;
	if (!level)
		nt_tracker_end_details(tracker, process, tracker->now_ns);
	return 0;
}

void nt_tracker_set_detail_rate(struct nt_tracker *tracker, uint32_t pid, uint32_t rate,
				double granted)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process)
		return;
	process->detail_rate = process->ranks > 1 ? rate / process->ranks : rate;
	if (rate && !process->detail_rate)
		process->detail_rate = 1;
	process->detail_granted = granted;
}

/* ---- records -------------------------------------------------------------------------------- */

static struct nt_detail_log *log_of(struct nt_tracker *tracker, struct nt_rank *rank,
				    uint64_t now_ns)
{
	if (rank->detail)
		return rank->detail;
	if ((tracker->detail_logs + 1) * nt_detail_log_bytes() > NT_TRACKER_DETAIL_BYTES) {
		tracker->stats.detail.over_cap++;
		return NULL;
	}
	rank->detail = nt_detail_log_new(now_ns);
	if (rank->detail)
		tracker->detail_logs++;
	else
		tracker->stats.no_memory++;
	return rank->detail;
}

/* Before its first window a rank has no key: it is not known whose records these are. */
static struct nt_detail_log *room_of(struct nt_tracker *tracker, struct nt_rank *rank,
				     uint64_t now_ns)
{
	struct nt_detail_log *log = rank->key[0] ? log_of(tracker, rank, now_ns) : NULL;

	tracker->stats.detail.unowned += !rank->key[0];
	if (log && nt_detail_log_is_full(log))
		send_log(tracker, rank, now_ns);
	return log;
}

/* SplitMix64: nothing depends on its being secret. */
static uint32_t draw(struct nt_tracker *tracker)
{
	uint64_t z = tracker->details_drawn += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (uint32_t)((z ^ z >> 31) >> 32);
}

static void take(struct nt_tracker *tracker, struct nt_rank *rank,
		 const struct nt_detail_call *call, uint64_t now_ns)
{
	struct nt_detail_log *log = room_of(tracker, rank, now_ns);

	if (!log)
		return;
	(void)nt_detail_log_draw(log, rank->process->detail_rate, call, now_ns, draw(tracker));
}

/* The rank of a thread that need not have communicated. NULL: unknown. */
static struct nt_rank *rank_at(const struct nt_process *process, uint32_t tid)
{
	if (process->ranks == 1)
		return process->rank[0];
	for (uint32_t i = 0; i < process->threads; i++)
		if (process->thread[i].tid == tid)
			return process->thread[i].rank;
	return NULL;
}

int nt_tracker_detail(struct nt_tracker *tracker, uint32_t pid, const struct nt_detail_call *call,
		      uint64_t now_ns)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);
	struct nt_rank *rank;

	if (!process || !process->level)
		return -ESRCH;
	rank = rank_at(process, call->thread);
	if (!rank) {
		tracker->stats.detail.unowned++;
		return -ENOENT;
	}
	take(tracker, rank, call, now_ns);
	return 0;
}

/* ---- calls of the probe table ---------------------------------------------------------------- */

static enum nt_detail_kind kind_of(const struct nt_probe *probe)
{
	switch (probe->role) {
	case NT_ROLE_SYNC_STREAM:
	case NT_ROLE_SYNC_EVENT:
	case NT_ROLE_SYNC_DEVICE:
		if (probe->counter == NT_COUNTER_COPY || probe->counter == NT_COUNTER_DRIVER_COPY)
			return NT_DETAIL_KIND_COPY;
		return probe->counter == NT_COUNTER_FREE ? NT_DETAIL_KIND_ALLOC
							 : NT_DETAIL_KIND_SYNC;
	case NT_ROLE_LAUNCH:
	case NT_ROLE_GRAPH_LAUNCH:
		return NT_DETAIL_KIND_LAUNCH;
	case NT_ROLE_COPY:
		return NT_DETAIL_KIND_COPY;
	case NT_ROLE_ALLOC:
	case NT_ROLE_FREE:
		return NT_DETAIL_KIND_ALLOC;
	case NT_ROLE_WAIT:
	case NT_ROLE_GROUP_START:
	case NT_ROLE_GROUP_END:
	case NT_ROLE_INIT:
	case NT_ROLE_INIT_ALL:
	case NT_ROLE_SPLIT:
	case NT_ROLE_SHRINK:
	case NT_ROLE_GROW:
	case NT_ROLE_DESTROY:
	case NT_ROLE_LIBRARY_INIT:
	case NT_ROLE_LIBRARY_END:
		return NT_DETAIL_KIND_COMM;
	default: /* collectives: by nt_tracker_detail_comm() */
		return NT_DETAIL_KIND_UNKNOWN;
	}
}

static struct nt_detail_call record_of(const struct nt_probe *probe,
				       const struct nt_event_call *call, enum nt_detail_kind kind)
{
	const bool returned = call->h.flags & NT_CALL_RETURNED;

	return (struct nt_detail_call){
		.kind = kind,
		.call = probe->symbol,
		.thread = call->h.tid,
		.entry_boot_ns = call->h.entry_ns,
		.return_boot_ns = returned ? call->ret_ns : 0,
		/* An int or an enum, but Gloo's functions return nothing. */
		.result = returned && probe->library != NT_LIBRARY_GLOO ? (int32_t)call->ret : 0,
		.op = probe->op,
		.probability = 1,
	};
}

void nt_tracker_detail_call(struct nt_tracker *tracker, struct nt_process *process,
			    const struct nt_probe *probe, const struct nt_event_call *call)
{
	const enum nt_detail_kind kind = kind_of(probe);
	struct nt_detail_call record;
	struct nt_rank *rank;

	if (!process->level || kind == NT_DETAIL_KIND_UNKNOWN)
		return;
	/* Of two events of one call, one is its record. */
	if (probe->memory != NT_MEMORY_NONE && !(call->h.flags & NT_CALL_MEMORY))
		return;
	if (probe->returns && !(call->h.flags & NT_CALL_RETURNED))
		return;
	/* The runtime's calls end in the driver's. */
	if (probe->library == NT_LIBRARY_CUDA && process->runtime)
		return;
	rank = rank_at(process, call->h.tid);
	if (!rank) {
		tracker->stats.detail.unowned++;
		return;
	}
	record = record_of(probe, call, kind);
	record.bytes = nt_probe_word(call, probe->bytes);
	take(tracker, rank, &record, tracker->registry.now_ns);
}

void nt_tracker_detail_comm(struct nt_tracker *tracker, struct nt_rank *rank,
			    const struct nt_probe *probe, const struct nt_event_call *call,
			    const struct nt_communicator *comm,
			    const struct nt_communicator_call *made, uint64_t number)
{
	struct nt_detail_call record;

	if (!rank->process->level)
		return;
	record = record_of(probe, call, NT_DETAIL_KIND_COMM);
	record.bytes = made->bytes;
	record.comm = comm->id;
	record.number = number;
	if (made->to != NT_COMMUNICATOR_NOBODY)
		record.peer = made->to + 1;
	else if (made->from != NT_COMMUNICATOR_NOBODY)
		record.peer = made->from + 1;
	take(tracker, rank, &record, tracker->registry.now_ns);
}

/* ---- calls that the kernel side has sampled --------------------------------------------------- */

enum {
	POST_WORDS = 3,
};

static void set_words(const struct nt_event_detail *event, uint64_t word[POST_WORDS],
		      struct nt_detail_call *record)
{
	word[0] = event->value;
	if (record->kind == NT_DETAIL_KIND_LAUNCH)
		record->words = 1;
	if (record->kind == NT_DETAIL_KIND_RDMA) {
		/* The row has the name that a provider gives the function. */
		record->call = "ibv_post_send";
		word[0] = NT_DETAIL_POST_QPN(event->value);
		word[1] = NT_DETAIL_POST_OPCODE(event->value);
		word[2] = NT_DETAIL_POST_REQUESTS(event->value);
		record->words = POST_WORDS;
	}
	record->word = record->words ? word : NULL;
}

void nt_tracker_detail_event(struct nt_tracker *tracker, const struct nt_event_detail *event)
{
	const struct nt_probe *probe = nt_probe_row(event->h.row);
	struct nt_process *process = nt_tracker_process(tracker, event->h.pid);
	uint64_t word[POST_WORDS];
	struct nt_detail_call record;
	struct nt_detail_log *log;
	struct nt_rank *rank;

	if (!probe) {
		tracker->stats.malformed_events++;
		return;
	}
	rank = process && process->level ? rank_at(process, event->h.tid) : NULL;
	if (!rank) {
		tracker->stats.detail.unowned++;
		return;
	}
	record = (struct nt_detail_call){
		.kind = nt_detail_log_kind(event->class),
		.call = probe->symbol,
		.thread = event->h.tid,
		.entry_boot_ns = event->h.entry_ns,
		.return_boot_ns = event->ret_ns,
		.bytes = event->bytes,
		.probability = ((double)event->threshold + 1) / 4294967296.0,
	};
	if (event->h.flags & NT_CALL_RETURNED)
		record.result = (int32_t)event->value;
	set_words(event, word, &record);
	log = room_of(tracker, rank, event->h.entry_ns);
	if (log)
		(void)nt_detail_log_take(log, &record);
}

/* Counts of the process: its first rank reports them. */
static struct nt_detail_log *counts_of(struct nt_tracker *tracker, const struct nt_process *process)
{
	if (!process || !process->level || !process->ranks || !process->rank[0]->key[0])
		return NULL;
	return log_of(tracker, process->rank[0], tracker->now_ns);
}

void nt_tracker_detail_lost(struct nt_tracker *tracker, uint32_t pid, enum nt_detail_kind kind,
			    double calls)
{
	struct nt_detail_log *log = counts_of(tracker, nt_tracker_process(tracker, pid));

	if (log)
		nt_detail_log_lose(log, kind, calls);
}

void nt_tracker_detail_rates(struct nt_tracker *tracker, uint32_t pid,
			     const struct nt_detail_rates *rates)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);
	struct nt_detail_rates *before;
	struct nt_detail_log *log;

	if (!process || !process->level || !process->ranks)
		return;
	log = counts_of(tracker, process);
	before = &process->detail_rates;
	for (int class = 0; log && class < NT_DETAIL_CLASSES; class ++) {
		const struct nt_detail_rate *now = &rates->of[class], *was = &before->of[class];

		/* Another program of the same process begins with none. */
		if (now->seen >= was->seen && now->lost >= was->lost)
			nt_detail_log_count(log, class, now->seen - was->seen,
					    now->lost - was->lost);
	}
	*before = *rates;
}

/* ---- time ----------------------------------------------------------------------------------- */

void nt_tracker_tick_details(struct nt_tracker *tracker, struct nt_process *process,
			     uint64_t now_ns)
{
	for (uint32_t i = 0; i < process->ranks; i++) {
		struct nt_rank *rank = process->rank[i];

		if (rank->detail && rank->key[0] &&
		    now_ns >= nt_detail_log_start_ns(rank->detail) + SEND_NS)
			send_log(tracker, rank, now_ns);
	}
}

void nt_tracker_end_details(struct nt_tracker *tracker, struct nt_process *process, uint64_t now_ns)
{
	for (uint32_t i = 0; i < process->ranks; i++)
		end_log(tracker, process->rank[i], now_ns);
}
