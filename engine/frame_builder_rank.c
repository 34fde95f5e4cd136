/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds a rank's entry of the frame from its windows of the cell. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/hash.h"
#include "engine/frame_builder_impl.h"

/* ---- communicators --------------------------------------------------------------------------- */

static void add_duration(struct nt_frame_op *sum, const struct nt_sketch_wire *sketch, bool by_gpu)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < sketch->buckets; i++)
		calls += sketch->count[i];
	/* Host and device times are not added; device times take precedence. */
	if (!calls || (sum->by_gpu && !by_gpu))
		return;
	if (by_gpu && !sum->by_gpu)
		sum->timed_calls = sum->sum_ns = 0;
	sum->by_gpu = by_gpu;
	if (!sum->timed_calls || sketch->min_ns < sum->min_ns)
		sum->min_ns = sketch->min_ns;
	sum->timed_calls += calls;
	sum->sum_ns += sketch->sum_ns;
}

static uint64_t scale(uint64_t value, uint64_t part, uint64_t whole)
{
	return part < whole ? (uint64_t)((double)value * (double)part / (double)whole) : value;
}

/*
 * Calls are counted over the whole window. If it is sampled, some belong to steps cut by a slice,
 * which no window reports. Calls of whole steps are estimated by their share of the observed time,
 * at least one if any was made, as the rank makes progress.
 */
static uint64_t calls_of_steps(const struct nt_window *window, uint64_t calls)
{
	uint64_t unobserved_ns = window->start_boot_ns + window->unobserved_ns, of_steps;

	if (!window->unobserved_ns || !calls || window->end_boot_ns <= unobserved_ns)
		return calls;
	of_steps = scale(calls, window->step_ns, window->end_boot_ns - unobserved_ns);
	return of_steps ? of_steps : 1;
}

static void add_op(struct nt_frame_op *op, size_t *ops, const struct nt_window *window,
		   const struct nt_comm_op *more, uint64_t shift)
{
	uint64_t calls = calls_of_steps(window, more->calls);
	struct nt_frame_op *sum = NULL;

	for (size_t i = 0; i < *ops && !sum; i++)
		if (op[i].op == more->op)
			sum = &op[i];
	if (!sum) {
		sum = &op[(*ops)++];
		sum->op = (uint8_t)more->op;
		sum->kind = (uint8_t)nt_frame_builder_kind(more->op);
		sum->first = more->first + shift;
	}
	sum->calls += calls;
	sum->bytes += scale(more->bytes, calls, more->calls);
	sum->last = more->last + shift;
	add_duration(sum, &more->gpu_duration, true);
	add_duration(sum, &more->duration, false);
}

static int add_recent(struct nt_frame_builder *frame_builder, const struct nt_message *message,
		      const struct nt_comm_window *comm, uint64_t shift, struct nt_frame_comm *sum)
{
	size_t count = comm->recents < NT_FRAME_RECENT ? comm->recents : NT_FRAME_RECENT;
	const struct nt_signature *from;
	struct nt_frame_signature *to;

	if (!count)
		return 0;
	from = comm->recent + (comm->recents - count);
	to = nt_frame_builder_alloc(frame_builder, count, sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		to[i] = (struct nt_frame_signature){
			.number = from[i].number + shift,
			.count = from[i].count,
			.type = from[i].type,
			.op = (uint8_t)from[i].op,
			.entry_ns = from[i].entry_boot_ns
					    ? nt_message_real_ns(message, from[i].entry_boot_ns)
					    : 0,
		};
	sum->recent = to;
	sum->recents = count;
	return 0;
}

/*
 * The rolling hash covers all calls since counting began. If members began at different times it is
 * meaningless, but the last call can still be compared.
 */
static uint64_t hash_last(const struct nt_frame_comm *comm)
{
	const struct nt_frame_signature *last;
	uint64_t hash;

	if (!comm->recents)
		return 0;
	last = &comm->recent[comm->recents - 1];
	hash = nt_hash_u64(nt_hash_u64(NT_HASH_SEED, last->number), last->op);
	return nt_hash_mix(nt_hash_u64(nt_hash_u64(hash, last->count), last->type));
}

/* Upper bound of the communicator's operations in these windows. */
static size_t count_ops(const struct nt_rank_session *session, size_t windows, uint64_t id)
{
	size_t count = 0;

	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;

		for (size_t j = 0; j < window->comms; j++)
			if (window->comm[j].id == id)
				count += window->comm[j].ops;
	}
	return count < NT_OP_END ? count : NT_OP_END;
}

static int add_comm(struct nt_frame_builder *frame_builder, const struct nt_rank_session *session,
		    size_t windows, const struct nt_message *message,
		    const struct nt_comm_window *comm, struct nt_frame_comm *sum)
{
	const struct nt_align_reading reading = nt_align_read(session, comm);
	struct nt_frame_op *op = (struct nt_frame_op *)sum->op;
	int r;

	/* Numbers of two epochs cannot be added: only the newer one is kept. */
	if (sum->epoch != reading.group)
		sum->ops = 0;
	if (!op || sum->ops == 0) {
		op = nt_frame_builder_alloc(frame_builder, count_ops(session, windows, comm->id),
					    sizeof(*op));
		if (!op)
			return -ENOMEM;
		sum->op = op;
	}
	for (size_t i = 0; i < comm->ops; i++)
		if ((unsigned int)comm->op[i].op < NT_OP_END)
			add_op(op, &sum->ops, &message->window, &comm->op[i], reading.shift);
	sum->id = comm->id;
	sum->rank = comm->rank;
	sum->size = comm->size;
	sum->epoch = reading.group;
	sum->last = comm->last + reading.shift;
	sum->rolling_hash = comm->rolling_hash;
	r = add_recent(frame_builder, message, comm, reading.shift, sum);
	if (r >= 0 && session->job->is_shifted)
		sum->rolling_hash = hash_last(sum);
	return r;
}

static int add_comms(struct nt_frame_builder *frame_builder, const struct nt_rank_session *session,
		     size_t windows, struct nt_frame_rank *rank)
{
	struct nt_frame_comm *comm;
	size_t most = 0;
	int r;

	for (size_t i = 0; i < windows; i++)
		most += session->waiting[i].message->window.comms;
	if (most > NT_FRAME_MAX_COMMS)
		most = NT_FRAME_MAX_COMMS;
	comm = nt_frame_builder_alloc(frame_builder, most, sizeof(*comm));
	if (!comm)
		return -ENOMEM;
	for (size_t i = 0; i < windows; i++) {
		const struct nt_message *message = session->waiting[i].message;

		for (size_t j = 0; j < message->window.comms; j++) {
			const struct nt_comm_window *from = &message->window.comm[j];
			size_t at = 0;

			while (at < rank->comms && comm[at].id != from->id)
				at++;
			if (at == NT_FRAME_MAX_COMMS) {
				frame_builder->counters.dropped_comms++;
				continue;
			}
			if (at == rank->comms)
				rank->comms++;
			r = add_comm(frame_builder, session, windows, message, from, &comm[at]);
			if (r < 0)
				return r;
		}
	}
	rank->comm = comm;
	return 0;
}

/* ---- transfers ------------------------------------------------------------------------------- */

static int add_transfers(struct nt_frame_builder *frame_builder,
			 const struct nt_rank_session *session, size_t windows,
			 struct nt_frame_rank *rank)
{
	struct nt_frame_transfer *to;
	size_t most = 0;

	for (size_t i = 0; i < windows; i++)
		most += session->waiting[i].message->window.transfers;
	if (!most)
		return 0;
	to = nt_frame_builder_alloc(frame_builder,
				    most < NT_FRAME_MAX_TRANSFERS ? most : NT_FRAME_MAX_TRANSFERS,
				    sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;

		for (size_t j = 0; j < window->transfers; j++) {
			const struct nt_transfer *from = &window->transfer[j];

			if (from->op != NT_OP_SEND && from->op != NT_OP_RECV &&
			    from->op != NT_OP_PUT)
				continue;
			if (rank->transfers == NT_FRAME_MAX_TRANSFERS) {
				frame_builder->counters.dropped_transfers++;
				continue;
			}
			to[rank->transfers++] = (struct nt_frame_transfer){
				.comm = from->comm,
				.calls = calls_of_steps(window, from->calls),
				.bytes = from->bytes,
				.min_ns = from->min_ns,
				.peer = from->peer,
				.sends = from->op != NT_OP_RECV,
				.in_network = from->op == NT_OP_PUT,
			};
		}
	}
	rank->transfer = to;
	return 0;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void add_steps(struct nt_rank_session *session, struct nt_frame_rank *rank,
		      const struct nt_window *window)
{
	uint8_t tier = (uint8_t)window->own_tier;

	/* Own work of different tiers is not added. Host work must be known of all windows. */
	if (rank->steps && rank->own_tier != tier)
		tier = tier == NT_FRAME_T0 || rank->own_tier == NT_FRAME_T0 ? NT_FRAME_T0
									    : NT_FRAME_T1;
	rank->own_tier = tier;
	if (tier >= NT_FRAME_T2)
		session->own_source = window->own_source;
	rank->own_by_device |= window->own_source == NT_OWN_SOURCE_CUPTI ||
			       window->own_source == NT_OWN_SOURCE_NCCL;
	session->gpu_lag_ns = (rank->steps ? session->gpu_lag_ns : 0) + window->gpu_lag_ns;
	rank->steps += window->steps;
	rank->own_ns += window->own_ns;
	rank->own_blocked_ns += window->own_blocked_ns;
	rank->host_ns += window->host_ns;
	rank->blocked_ns += window->blocked_ns;
	rank->comm_ns += window->comm_ns;
	rank->step_ns += window->step_ns;
}

static void add_host(struct nt_frame_rank *rank, const struct nt_host_evidence *host)
{
	rank->on_cpu_ns += host->on_cpu_ns;
	rank->run_queue_ns += host->run_queue_ns;
	rank->io_ns += host->off_cpu_io_ns;
	rank->gc_ns += host->gc_ns;
	rank->read_bytes += host->read_bytes;
	rank->write_bytes += host->write_bytes;
	rank->major_faults += host->major_faults;
	rank->process_cpu_ns += host->process_cpu_ns;
	rank->system_ns += host->system_ns;
	rank->quota_ns += host->quota_ns;
	rank->file_ns += host->off_cpu_file_ns;
	rank->fault_ns += host->off_cpu_fault_ns;
	rank->reclaim_ns += host->reclaim_ns + host->compaction_ns;
	rank->process_io_ns += host->process_io_ns;
	rank->tcp_retransmits += host->tcp_retransmits;
	rank->nic_retransmits += host->nic_retransmits;
	rank->nic_errors += host->nic_errors;
	rank->nic_congestion += host->nic_congestion;
	rank->gpu_thermal_ns += host->gpu_thermal_ns;
	rank->gpu_power_ns += host->gpu_power_ns;
	rank->gpu_hardware_ns += host->gpu_hardware_ns;
	rank->gpu_uncorrected += host->gpu_uncorrected;
	rank->gpu_xids += host->gpu_xids;
	rank->gpu_activity_ns += host->gpu_activity_ns;
	rank->gpu_sm_ns += host->gpu_sm_ns;
	rank->gpu_tensor_ns += host->gpu_tensor_ns;
	/* The last window of a process that has ended has none. */
	if (host->gpu_last_xid)
		rank->gpu_last_xid = host->gpu_last_xid;
	if (host->state[0])
		rank->state = host->state[0];
}

static void show_inside(const struct nt_rank_session *session, struct nt_frame_rank *rank)
{
	const struct nt_inside_wire *inside = &session->inside;

	rank->inside = (struct nt_frame_inside){
		.in_call = inside->in_call,
		.synchronising = inside->synchronising,
		.comm = inside->comm,
		.number = inside->number,
		.since_ns = session->inside_since_ns,
		.count = inside->count,
		.type = inside->type,
		.op = (uint8_t)inside->op,
		.kind = (uint8_t)nt_frame_builder_kind(inside->op),
	};
}

/*
 * Whether data of this time is still outstanding and the wait has expired, or was still missing
 * when the agent, or all agents, resumed.
 */
static bool was_silent(const struct nt_rank_session *session, uint64_t start_ns, uint64_t end_ns)
{
	const struct nt_source *source = session->source;
	const struct nt_job_key *key = session->job->owner;

	return key->lead_ns < end_ns ||
	       (start_ns < source->silent_until_ns && source->silent_from_ns < end_ns) ||
	       (start_ns < key->silent_until_ns && key->silent_from_ns < end_ns);
}

/* Records the share of the time that the agent observed, and the calls that it shed. */
static void see_sampling(struct nt_rank_session *session, size_t windows,
			 struct nt_frame_rank *rank)
{
	uint64_t length_ns = 0, unobserved_ns = 0;

	if (windows)
		session->shed = 0;
	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;
		uint64_t ns = window->end_boot_ns - window->start_boot_ns;

		length_ns += ns;
		unobserved_ns += window->unobserved_ns < ns ? window->unobserved_ns : ns;
		session->shed |= window->shed;
		session->level = window->level;
		session->lost_sight = window->whereabouts_unknown;
		rank->lost_sight = window->whereabouts_unknown;
		rank->no_host |= (window->shed & NT_WIRE_SHED_COMMUNICATION) != 0;
	}
	if (length_ns)
		session->sampled_permille =
			1000 - (uint32_t)((double)unobserved_ns * 1000 / (double)length_ns);
	rank->sampled = session->sampled_permille < 1000;
}

/* From the first multiplication on. The totals of a process that has ended cannot be read. */
static int see_gemms(struct nt_rank_session *session, size_t windows)
{
	bool any = session->gemm_rate != NULL;

	for (size_t i = 0; i < windows; i++)
		if (session->waiting[i].message->window.ended)
			return 0;
	for (size_t i = 0; i < windows && !any; i++) {
		const struct nt_gemms *gemms = &session->waiting[i].message->window.gemms;

		any = gemms->gemms || gemms->unread;
	}
	if (!any || !windows)
		return 0;
	if (!session->gemm_rate)
		session->gemm_rate = calloc(1, sizeof(*session->gemm_rate));
	if (!session->gemm_rate)
		return -ENOMEM;
	nt_gemm_rate_begin(session->gemm_rate);
	for (size_t i = 0; i < windows; i++)
		nt_gemm_rate_add(session->gemm_rate, &session->waiting[i].message->window,
				 session->waiting[i].end_ns);
	nt_gemm_rate_finish(session->gemm_rate);
	return 0;
}

enum {
	/* Shed calls that change own or host work. */
	SHED_OF_WORK = NT_WIRE_SHED_LAUNCHES | NT_WIRE_SHED_SYNCS | NT_WIRE_SHED_ORDER |
		       NT_WIRE_SHED_COMMUNICATION,
	SAMPLED = 1 << 7, /* distinct from these */
	WAYS = 1 << 8,
};

_Static_assert(SHED_OF_WORK < SAMPLED, "more is shed");

/* Bit set: how the rank's work was observed in the frame. */
static uint32_t way_of(const struct nt_rank_session *session)
{
	return (session->shed & SHED_OF_WORK) | (session->sampled_permille < 1000 ? SAMPLED : 0);
}

/*
 * Own and host work observed in slices, or with calls shed, is not comparable with fully observed
 * work. Of ranks that are observed differently from most, neither is used.
 */
void nt_frame_builder_part(const struct nt_job *job, struct nt_frame_rank *rank, size_t ranks)
{
	size_t of[WAYS] = {0};
	uint32_t most = 0;

	for (size_t i = 0; i < ranks; i++)
		if (rank[i].steps)
			of[way_of(job->session[i])]++;
	for (uint32_t way = 0; way < WAYS; way++)
		if (of[way] > of[most])
			most = way;
	for (size_t i = 0; i < ranks; i++) {
		if (!rank[i].steps || way_of(job->session[i]) == most)
			continue;
		rank[i].own_tier = NT_FRAME_T0;
		rank[i].own_ns = rank[i].own_blocked_ns = 0;
	}
}

int nt_frame_builder_fill(struct nt_frame_builder *frame_builder, struct nt_rank_session *session,
			  size_t windows, uint64_t end_ns, struct nt_frame_rank *rank)
{
	int r;

	rank->rank = session->number;
	rank->node = session->job_node;
	rank->rank_known = session->rank_known;
	rank->observed = windows > 0;
	/* An agent is silent 10 s behind the most advanced one, which is 3 s past the cell. */
	rank->silent = session->source->watermark_ns + (NT_JOBS_SILENCE_NS - NT_JOBS_LATENESS_NS) <
			       end_ns ||
		       (!windows && was_silent(session, frame_builder->frame.start_ns, end_ns));
	rank->ended = session->ended;
	rank->finalized = session->finalized;
	rank->ended_ns = session->ended_ns;
	rank->exit_signal = session->exit_signal;
	rank->exit_status = session->exit_status;
	rank->ended_by_parent = session->ended_by_parent;
	rank->stage = rank->replica = -1;
	rank->uses_gpu = session->uses_gpu;
	show_inside(session, rank);
	see_sampling(session, windows, rank);
	r = see_gemms(session, windows);
	if (r < 0)
		return r;
	for (size_t i = 0; i < windows; i++) {
		const struct nt_waiting *waiting = &session->waiting[i];
		const struct nt_window *window = &waiting->message->window;

		if (window->steps)
			add_steps(session, rank, window);
		add_host(rank, &window->host);
		rank->launches += window->launches;
		rank->lost += window->lost;
		rank->window_ns += waiting->end_ns - waiting->start_ns;
	}
	if (!rank->own_tier)
		rank->own_tier = NT_FRAME_T1;
	session->observed = rank->observed;
	session->silent = rank->silent;
	if (rank->steps) {
		session->tier = (enum nt_tier)rank->own_tier;
		session->frame_steps = rank->steps;
		session->own_ns = rank->own_ns;
		session->host_ns = rank->host_ns;
		session->blocked_ns = rank->blocked_ns;
		session->comm_ns = rank->comm_ns;
		session->step_ns = rank->step_ns;
	}
	r = add_comms(frame_builder, session, windows, rank);
	return r < 0 ? r : add_transfers(frame_builder, session, windows, rank);
}
