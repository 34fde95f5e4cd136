/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decides when windows and heartbeats are due, and fills them. */
#include "agent/tracker/tracker_impl.h"
#include "agent/tracker/window_system.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/gpu/gemm_window.h"
#include "agent/steps/window.h"
#include "common/system/clock.h"

#define FIRST_WINDOW_NS   (300 * NT_MILLISECOND) /* the first communicator is often not the world */
#define WINDOW_LONGEST_NS NT_SECOND
#define WINDOW_GPU_NS     NT_SECOND /* well below the time that aggregators wait for late windows */
#define WINDOW_SAMPLED_NS                                                                          \
	(6 * NT_SECOND) /* longer than from one slice of a sampled process to the next */
#define SLICED_NS     (20 * NT_SECOND) /* longer than the period of slices */
#define HEARTBEAT_NS  NT_SECOND
#define KEY_FORGET_NS NT_MINUTE
#define PERIOD_NS     (10 * NT_SECOND)

enum {
	STEPS_BETWEEN = 8, /* cut by slices, or searched anew, at most */
};

/* ---- windows -------------------------------------------------------------------------------- */

/*
 * Names may be learned late: of a pod from before the agent, or of a new container. While others
 * wait for their tenants, an undecided one waits for the tick that decides them all.
 */
static bool is_settled(struct nt_tracker *tracker, struct nt_process *process, bool ended)
{
	if (!process->tenant.scope[0] && tracker->waiting && !ended)
		return false;
	return nt_tracker_settle(tracker, process, ended);
}

/* A rank whose namespace arrives late continues under another key, and ends under this one. */
static bool moves(const struct nt_rank *rank)
{
	const char *scope = rank->process->tenant.scope;

	return rank->key[0] && strncmp(rank->key, scope, strlen(scope)) != 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void take_gpu(const struct nt_host_sample *before, const struct nt_host_sample *now,
		     struct nt_host_evidence *host)
{
	const struct nt_gpu_total *was = &before->gpu, *is = &now->gpu;

	if (!now->has_gpu)
		return;
	host->gpu_last_xid = is->last_xid;
	host->gpu_clock_mhz = is->clock_mhz;
	host->gpu_most_clock_mhz = is->most_clock_mhz;
	host->gpu_celsius = is->celsius;
	host->gpu_memory_used = is->memory_used;
	host->gpu_memory_total = is->memory_total;
	if (!before->has_gpu)
		return;
	host->gpu_thermal_ns = less(is->thermal_ns, was->thermal_ns);
	host->gpu_power_ns = less(is->power_ns, was->power_ns);
	host->gpu_hardware_ns = less(is->hardware_ns, was->hardware_ns);
	host->gpu_uncorrected = less(is->uncorrected, was->uncorrected);
	host->gpu_xids = less(is->xids, was->xids);
	host->gpu_activity_ns = less(is->activity_ns, was->activity_ns);
	host->gpu_sm_ns = less(is->sm_ns, was->sm_ns);
	host->gpu_occupancy_ns = less(is->occupancy_ns, was->occupancy_ns);
	host->gpu_tensor_ns = less(is->tensor_ns, was->tensor_ns);
	host->gpu_dram_ns = less(is->dram_ns, was->dram_ns);
	host->gpu_nvlink_bytes = less(is->nvlink_bytes, was->nvlink_bytes);
	host->gpu_pcie_bytes = less(is->pcie_bytes, was->pcie_bytes);
}

static struct nt_host_evidence take_host(struct nt_tracker *tracker, struct nt_rank *rank)
{
	static const struct {
		char letter;
		const char *text;
	} states[] = {{'R', "R"}, {'S', "S"}, {'D', "D"}, {'T', "T"}, {'t', "T"}, {'Z', "Z"}};
	const struct nt_tracker_source *source = &tracker->options.source;
	struct nt_host_evidence host = {.state = "", .taker = "", .block_device = ""};
	struct nt_host_sample now, before = rank->host_before;
	uint32_t tid = nt_rank_thread(rank);

	if (rank->host && nt_host_tid(rank->host) != tid) {
		nt_host_close(rank->host);
		rank->host = NULL;
		rank->host_before_holds = false;
	}
	if (source->sample(source->data, rank->process->pid, tid, rank->process->placement.gpu,
			   &rank->host, &now) < 0) {
		rank->host_before_holds = false;
		return host;
	}
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (states[i].letter == now.state)
			host.state = states[i].text;
	}
	rank->host_before = now;
	if (rank->host_before_holds) {
		host.on_cpu_ns = less(now.on_cpu_ns, before.on_cpu_ns);
		host.run_queue_ns = less(now.run_queue_ns, before.run_queue_ns);
		host.off_cpu_io_ns = less(now.io_wait_ns, before.io_wait_ns);
		/* Mapped files count no characters; files in memory or user space, no blocks. */
		host.read_bytes = larger(less(now.read_bytes, before.read_bytes),
					 less(now.read_chars, before.read_chars));
		host.write_bytes = larger(less(now.write_bytes, before.write_bytes),
					  less(now.write_chars, before.write_chars));
		host.major_faults = less(now.major_faults, before.major_faults);
		host.process_cpu_ns = less(now.process_cpu_ns, before.process_cpu_ns);
		host.nic_retransmits = less(now.nic_retransmits, before.nic_retransmits);
		host.nic_errors = less(now.nic_errors, before.nic_errors);
		host.nic_congestion = less(now.nic_congestion, before.nic_congestion);
		take_gpu(&before, &now, &host);
		nt_window_system_fill(&before, &rank->host_before, &host);
	}
	rank->host_before_holds = true;
	return host;
}

/* Counters are the process's: with several ranks, the first one sends them. */
static struct nt_process_counters take_counters(struct nt_tracker *tracker, struct nt_rank *rank)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	struct nt_process *process = rank->process;
	struct nt_process_counters now, since = {0};

	if (rank != process->rank[0] || !source->counters(source->data, process->pid, &now))
		return since;
	for (int i = 0; i < NT_COUNTER_END; i++) {
		since.calls[i] = less(now.calls[i], process->counters.calls[i]);
		since.bytes[i] = less(now.bytes[i], process->counters.bytes[i]);
	}
	/* Events that are known to be lost before the losses of all processes are read again. */
	if (now.lost > process->lost_counted)
		nt_tracker_lose_heap(tracker, process);
	process->counters = now;
	return since;
}

/* The part of the kernels' time that was enqueued inside of them, where it is known. */
static void take_gemm_time(struct nt_tracker *tracker, struct nt_gemm_time time,
			   struct nt_gemms *gemms)
{
	tracker->stats.gemm_windows_partial += time.is_partial;
	if (time.is_partial)
		return;
	gemms->gpu_ns = time.own_ns;
	gemms->gpu_inside_ns = time.inside_ns;
}

/*
 * A capture that goes on at the end of the window makes this one and the next uncertain: what it
 * multiplied so far is in the totals.
 */
static void take_graphs(struct nt_tracker *tracker, struct nt_process *process,
			const struct nt_gpu_total *gpu, struct nt_gemm_window *window)
{
	struct nt_gemms *gemms = &window->gemms;

	gemms->graph_launches = process->graph_launches;
	gemms->graph_launches_read = process->graph_launches_read;
	gemms->captures = process->captures > process->captures_read
				  ? process->captures - process->captures_read
				  : process->captures_read - process->captures;
	if (!nt_gemm_window_replay(process->replayed, process->captured,
				   tracker->options.gpu_peak_flops, gpu, window))
		gemms->graph_launches_read = 0;
	process->graph_launches = process->graph_launches_read = 0;
	process->captures = process->captures_read = 0;
}

/* The same of matrix multiplications. NULL: none. */
static const struct nt_gemms *take_gemms(struct nt_tracker *tracker, struct nt_rank *rank,
					 const struct nt_process_counters *counters,
					 struct nt_gemm_window *window)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	const bool by_runtime =
		counters->calls[NT_COUNTER_LAUNCH] || counters->calls[NT_COUNTER_COPY];
	const struct nt_host_sample *host = &rank->host_before;
	struct nt_process *process = rank->process;
	const struct nt_gemm_time time = process->gemm_time;
	struct nt_gemm_totals now = {0};
	bool is_first;

	if (rank != process->rank[0] || !source->gemms)
		return NULL;
	process->gemm_time = (struct nt_gemm_time){0};
	is_first = !process->has_gemms;
	process->has_gemms = true;
	if (!source->gemms(source->data, process->pid, &now))
		return NULL;
	nt_gemm_window_fill(&process->gemms, &now, by_runtime, tracker->options.gpu_peak_flops,
			    host->has_gpu ? &host->gpu : NULL, window);
	take_graphs(tracker, process, host->has_gpu ? &host->gpu : NULL, window);
	take_gemm_time(tracker, time, &window->gemms);
	process->gemms = now;
	for (size_t i = 0; i < window->gemms.gemms; i++)
		tracker->stats.gemms += window->gemm[i].calls;
	tracker->stats.gemms_unread += window->unread;
	tracker->stats.gemms_over_cap += window->over_cap;
	return is_first ? NULL : &window->gemms;
}

/* NULL: the process uses none, or another rank of it sends it. */
static const struct nt_rdma_window *take_rdma(struct nt_tracker *tracker,
					      const struct nt_rank *rank)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	const struct nt_process *process = rank->process;

	return rank == process->rank[0] && source->rdma ? source->rdma(source->data, process->pid)
							: NULL;
}

static const struct nt_tcp_window *take_tcp(struct nt_tracker *tracker, const struct nt_rank *rank)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	const struct nt_process *process = rank->process;

	return rank == process->rank[0] && source->tcp ? source->tcp(source->data, process->pid)
						       : NULL;
}

/*
 * The kernel's own figures of the sockets need no tracepoint, which may be detached, or may have come
 * later than the socket and not know whose it is.
 */
static uint64_t retransmits_of(const struct nt_tcp_window *tcp, uint64_t of_tracepoints)
{
	uint64_t sum = 0;

	for (size_t i = 0; tcp && i < tcp->socket_count; i++)
		sum += tcp->socket[i].retransmits;
	return sum > of_tracepoints ? sum : of_tracepoints;
}

/*
 * Sets the losses of the window's input, and then also the received counts. With several ranks in a
 * process, lost events count for each. Intervals, like counters, are the process's.
 */
static void fill_lost(const struct nt_rank *rank, struct nt_window_context *context)
{
	const struct nt_process *process = rank->process;

	context->lost = process->lost_events - rank->lost_seen;
	if (context->lost)
		context->taken = process->events - rank->events_seen;
	if (rank != process->rank[0])
		return;
	context->lost += process->gpu_lost;
	if (process->gpu_lost)
		context->taken += process->gpu_taken;
}

static void clear_lost(struct nt_rank *rank)
{
	rank->lost_seen = rank->process->lost_events;
	rank->events_seen = rank->process->events;
	if (rank == rank->process->rank[0])
		rank->process->gpu_lost = rank->process->gpu_taken = 0;
}

/* Of the process until end_ns. */
static uint64_t unobserved_until(const struct nt_process *process, uint64_t end_ns)
{
	return process->unobserved_ns + (process->paused ? less(end_ns, process->paused_ns) : 0);
}

/* Short synchronising calls are sums over all observed time of the window, in steps or not. */
static void add_short_syncs(struct nt_rank *rank, const struct nt_process_counters *counters,
			    uint64_t observed_ns)
{
	struct nt_rank_sums *sums = &rank->sums;
	uint64_t window_ns = observed_ns;
	double ns = (double)counters->bytes[NT_COUNTER_SYNC];

	if (!window_ns || !sums->step_ns)
		return;
	if (sums->step_ns < window_ns)
		ns = ns * (double)sums->step_ns / (double)window_ns;
	if (ns > (double)sums->host_ns)
		ns = (double)sums->host_ns;
	sums->blocked_ns += (uint64_t)ns;
	sums->host_ns -= (uint64_t)ns;
}

static void clear_comms(struct nt_rank *rank)
{
	struct nt_communicator **at = &rank->process->ended;

	for (struct nt_communicator *comm = rank->process->comms; comm; comm = comm->hh.next) {
		if (comm->rank_of == rank)
			nt_communicator_clear(comm);
	}
	while (*at) {
		struct nt_communicator *comm = *at;

		if (comm->rank_of != rank) {
			at = &comm->next_ended;
			continue;
		}
		*at = comm->next_ended;
		rank->process->ended_count--;
		nt_communicator_free(comm);
	}
}

/* The key of a rank whose tenant is decided. ended: its last window under it. */
static struct nt_tracker_key *key_for(struct nt_tracker *tracker, struct nt_rank *rank,
				      uint64_t end_ns, bool ended)
{
	struct nt_tracker_key *key;

	if (rank->key[0]) {
		nt_tracker_name(rank);
		key = nt_tracker_join_key(tracker, rank);
	} else {
		key = nt_tracker_fix_key(tracker, rank);
	}
	if (ended)
		nt_tracker_leave_key(tracker, rank, end_ns);
	return key;
}

static void hand_out(struct nt_tracker *tracker, struct nt_rank *rank, struct nt_tracker_key *key,
		     const struct nt_window *window)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;
	uint64_t end_ns = window->end_boot_ns, start_ns = rank->window_ns;

	rank->window_ns = end_ns; /* its window is sent with it */
	key->watermark_ns = nt_tracker_watermark(key, end_ns);
	rank->window_ns = start_ns;
	key->sent_ns = tracker->now_ns > end_ns ? tracker->now_ns : end_ns;
	sink->window(sink->data, rank->key, window, key->watermark_ns);
}

/*
 * If no slice contains a whole step, recurring calls within one look like steps: a burst of equal
 * reductions. Steps are contiguous. If they cover less than half of the observed time, they are
 * parts of longer ones, unless the rest is a few steps. One window may hold just such a burst.
 */
static void drop_fragments(struct nt_rank *rank, uint64_t end_ns, uint64_t observed_ns)
{
	const struct nt_process *process = rank->process;
	bool is_sliced = process->paused_ns && less(end_ns, process->paused_ns) < SLICED_NS;

	if (is_sliced && (rank->sums.steps || process->events != rank->events_seen)) {
		rank->sliced_steps = rank->sliced_steps / 2 + rank->sums.steps;
		rank->sliced_ns = rank->sliced_ns / 2 + (double)rank->sums.step_ns;
		rank->sliced_rest_ns =
			rank->sliced_rest_ns / 2 + (double)less(observed_ns, rank->sums.step_ns);
	}
	if (is_sliced && rank->sliced_rest_ns > rank->sliced_ns &&
	    rank->sliced_rest_ns * rank->sliced_steps > STEPS_BETWEEN * rank->sliced_ns)
		rank->sums = (struct nt_rank_sums){0};
	rank->measured += rank->sums.steps;
}

void nt_tracker_send(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t end_ns, bool ended)
{
	nt_auto(nt_window_message) struct nt_window_message *message = NULL;
	struct nt_host_evidence host = take_host(tracker, rank);
	struct nt_process_counters counters = take_counters(tracker, rank);
	struct nt_gemm_window gemms;
	struct nt_window_context context = {
		.node = tracker->options.node,
		.end_ns = end_ns,
		.host = &host,
		.counters = &counters,
		.gemms = take_gemms(tracker, rank, &counters, &gemms),
		.rdma = take_rdma(tracker, rank),
		.tcp = take_tcp(tracker, rank),
		.ended = ended,
		.shed = rank->shed | nt_window_system_shed(&rank->host_before),
		.outside_ns = tracker->options.outside_ns,
	};
	struct nt_process *process = rank->process;
	uint64_t unobserved_ns = unobserved_until(process, end_ns);
	uint64_t window_ns = less(end_ns, rank->window_ns);
	struct nt_tracker_key *key = NULL;
	bool settled, moved;

	host.tcp_retransmits = retransmits_of(context.tcp, host.tcp_retransmits);
	context.unobserved_ns = less(unobserved_ns, rank->unobserved_seen);
	if (context.unobserved_ns > window_ns)
		context.unobserved_ns = window_ns;

	host.gc_ns = counters.bytes[NT_COUNTER_GC];
	host.gc_count = counters.calls[NT_COUNTER_GC];
	nt_rank_identify(rank);
	settled = is_settled(tracker, process, ended);
	if (settled && process->held)
		nt_tracker_release_one(tracker, process);
	moved = settled && moves(rank);
	context.ended |= moved;
	if (settled)
		key = key_for(tracker, rank, end_ns, context.ended);
	drop_fragments(rank, end_ns, window_ns - context.unobserved_ns);
	add_short_syncs(rank, &counters, window_ns - context.unobserved_ns);
	fill_lost(rank, &context);
	nt_tracker_report_heap(tracker, rank, &context);
	context.stack = rank == process->rank[0] ? process->stack : NULL;
	context.profile =
		rank == process->rank[0] && process->profiles ? process->profile[0] : NULL;
	if (nt_window_build(rank, &context, &message) < 0) {
		tracker->stats.no_memory++;
		return; /* the sums stay for the next window */
	}
	tracker->stats.windows++;
	tracker->stats.peers_over_cap += nt_window_transfers_over_cap(message);
	tracker->stats.steps += rank->sums.steps;
	if (!settled && !nt_tracker_hold(tracker, rank, nt_window_get(message))) {
		nt_tracker_release_one(tracker, process);
		key = key_for(tracker, rank, end_ns, false);
	}
	if (key)
		hand_out(tracker, rank, key, nt_window_get(message));
	if (context.stack) {
		nt_window_stack_free(process->stack);
		process->stack = NULL;
	}
	if (context.profile)
		nt_tracker_drop_profile(process, 0);
	if (moved)
		rank->key[0] = '\0';
	clear_lost(rank);
	rank->unobserved_seen = unobserved_ns;
	clear_comms(rank); /* frees ended communicators, whose names the message borrows */
	nt_rank_clear(rank, end_ns);
}

/* A step has ended: checks whether the window is long enough. */
void nt_tracker_stepped(struct nt_tracker *tracker, struct nt_rank *rank)
{
	const struct nt_process *process = rank->process;
	uint64_t end_ns = rank->sums.end_ns;
	uint64_t unobserved_ns = less(process->unobserved_ns, rank->unobserved_seen);

	if (end_ns >= rank->window_ns + unobserved_ns + tracker->options.window_min_ns)
		nt_tracker_send(tracker, rank, end_ns, false);
}

/* ---- time ----------------------------------------------------------------------------------- */

static void tick_rank(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t now_ns)
{
	uint64_t longest = 2 * tracker->options.window_min_ns, age;

	if (!rank->window_ns)
		return;
	if (nt_rank_settle(rank, now_ns))
		nt_tracker_stepped(tracker, rank);
	if (longest > WINDOW_LONGEST_NS)
		longest = WINDOW_LONGEST_NS;
	/* A window pending on the device still ends with a step. */
	if (rank->gpu && nt_gpu_waits(rank->gpu))
		longest += WINDOW_GPU_NS;
	/* It ends with a slice, unless one has observed nothing. */
	if (rank->process->paused || rank->process->unobserved_ns > rank->unobserved_seen)
		longest = WINDOW_SAMPLED_NS;
	age = less(now_ns, rank->window_ns);
	if (age >= longest && (rank->key[0] || age >= FIRST_WINDOW_NS))
		nt_tracker_send(tracker, rank, now_ns, false);
}

static void tick_key(struct nt_tracker *tracker, struct nt_tracker_key *key, uint64_t now_ns)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;

	if (!key->ranks && less(now_ns, key->empty_ns) > KEY_FORGET_NS) {
		nt_tracker_free_key(tracker, key);
		return;
	}
	if (less(now_ns, key->sent_ns) < HEARTBEAT_NS)
		return;
	key->watermark_ns = nt_tracker_watermark(key, now_ns);
	key->sent_ns = now_ns;
	sink->heartbeat(sink->data, key->key, key->ranks, key->watermark_ns);
}

/* Ranks without a key, and dropped events, are counted per period. */
static void count_anew(struct nt_tracker *tracker, uint64_t now_ns)
{
	if (less(now_ns, tracker->period_ns) < PERIOD_NS)
		return;
	tracker->period_ns = now_ns;
	tracker->period++;
	nt_share_forgive(&tracker->key_share);
	nt_share_forgive(&tracker->registry.share);
	nt_share_forgive(&tracker->orphans.share);
}

void nt_tracker_tick(struct nt_tracker *tracker, uint64_t now_ns)
{
	struct nt_tracker_key *key, *next;

	tracker->now_ns = now_ns;
	count_anew(tracker, now_ns);
	nt_tracker_release(tracker, now_ns);
	for (struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		for (uint32_t i = 0; i < p->ranks; i++)
			tick_rank(tracker, p->rank[i], now_ns);
		nt_tracker_tick_details(tracker, p, now_ns);
	}
	HASH_ITER(hh, tracker->keys, key, next)
	tick_key(tracker, key, now_ns);
}

void nt_tracker_drain(struct nt_tracker *tracker, uint64_t now_ns)
{
	for (struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		nt_tracker_release_one(tracker, p);
		nt_tracker_end_details(tracker, p, now_ns);
		for (uint32_t i = 0; i < p->ranks; i++) {
			struct nt_rank *rank = p->rank[i];

			if (!rank->window_ns)
				continue;
			(void)nt_rank_settle(rank, UINT64_MAX);
			nt_tracker_send(tracker, rank,
					now_ns > rank->window_ns ? now_ns : rank->window_ns, false);
		}
	}
}

size_t nt_tracker_jobs(const struct nt_tracker *tracker, const char **ret_key, size_t max)
{
	size_t n = 0;

	for (const struct nt_tracker_key *key = tracker->keys; key && n < max; key = key->hh.next) {
		if (key->ranks)
			ret_key[n++] = key->key;
	}
	return n;
}
