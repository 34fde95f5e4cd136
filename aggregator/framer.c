/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/framer.h"

#include <errno.h>
#include <string.h>

#include "aggregator/samples.h"
#include "common/hash.h"
#include "proto/arena.h"

/* A member whose living agent no longer reports it has ended unseen. */
#define UNREPORTED_NS    (10ULL * 1000000000)
#define UNREPORTED_CELLS 4

struct nt_framer {
	uint64_t cell_min_ns;
	struct nt_framer_counters counters;
	struct nt_arena arena; /* of the frame that was handed out last */
	struct nt_frame frame;
};

int nt_framer_new(uint64_t cell_min_ns, struct nt_framer **ret_framer)
{
	struct nt_framer *framer = calloc(1, sizeof(*framer));

	if (!framer)
		return -ENOMEM;
	framer->cell_min_ns = cell_min_ns ? cell_min_ns : NT_FRAMER_CELL_MIN_NS;
	*ret_framer = framer;
	return 0;
}

void nt_framer_free(struct nt_framer *framer)
{
	if (!framer)
		return;
	nt_arena_release(&framer->arena);
	free(framer);
}

const struct nt_framer_counters *nt_framer_counters(const struct nt_framer *framer)
{
	return &framer->counters;
}

enum nt_frame_kind nt_framer_kind(enum nt_op op)
{
	switch (op) {
	case NT_OP_ALL_REDUCE:
	case NT_OP_ALL_GATHER:
	case NT_OP_REDUCE_SCATTER:
	case NT_OP_BARRIER:
		return NT_FRAME_SYNCHRONISING;
	case NT_OP_ALL_TO_ALL:
		return NT_FRAME_ALL_TO_ALL;
	case NT_OP_BROADCAST:
	case NT_OP_REDUCE:
	case NT_OP_GATHER:
	case NT_OP_SCATTER:
		return NT_FRAME_ROOTED;
	case NT_OP_SEND:
	case NT_OP_RECV:
	case NT_OP_SEND_RECV:
	case NT_OP_PUT:
	case NT_OP_SIGNAL:
	case NT_OP_WAIT_SIGNAL:
		return NT_FRAME_POINT_TO_POINT;
	default:
		return NT_FRAME_OTHER;
	}
}

static void *alloc(struct nt_framer *framer, size_t count, size_t size)
{
	return nt_arena_alloc(&framer->arena, count ? count * size : 1);
}

/* The windows of a member that end in the cell: the first of its queue. */
static size_t count_windows(const struct nt_member *member, uint64_t end_ns)
{
	size_t count = 0;

	while (count < member->waitings && member->waiting[count].end_ns < end_ns)
		count++;
	return count;
}

/* ---- communicators ------------------------------------------------------------------------------ */

static void add_duration(struct nt_frame_op *sum, const struct nt_sketch_wire *sketch, bool by_gpu)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < sketch->buckets; i++)
		calls += sketch->count[i];
	/* Times of a host and times of a device are not one sum: those of the device tell more. */
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

static void add_op(struct nt_frame_op *op, size_t *ops, const struct nt_comm_op *more,
		   uint64_t shift)
{
	struct nt_frame_op *sum = NULL;

	for (size_t i = 0; i < *ops && !sum; i++)
		if (op[i].op == more->op)
			sum = &op[i];
	if (!sum) {
		sum = &op[(*ops)++];
		sum->op = (uint8_t)more->op;
		sum->kind = (uint8_t)nt_framer_kind(more->op);
		sum->first = more->first + shift;
	}
	sum->calls += more->calls;
	sum->bytes += more->bytes;
	sum->last = more->last + shift;
	add_duration(sum, &more->gpu_duration, true);
	add_duration(sum, &more->duration, false);
}

static int add_recent(struct nt_framer *framer, const struct nt_message *message,
		      const struct nt_comm_window *comm, uint64_t shift, struct nt_frame_comm *sum)
{
	size_t count = comm->recents < NT_FRAME_RECENT ? comm->recents : NT_FRAME_RECENT;
	const struct nt_signature *from;
	struct nt_frame_signature *to;

	if (!count)
		return 0;
	from = comm->recent + (comm->recents - count);
	to = alloc(framer, count, sizeof(*to));
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
 * The rolling hash is over all calls since counting began. Where members of a job began at different
 * times it says nothing; the last call can still be compared.
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

/* The operations of a communicator in these windows, at the most. */
static size_t count_ops(const struct nt_member *member, size_t windows, uint64_t id)
{
	size_t count = 0;

	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &member->waiting[i].message->window;

		for (size_t j = 0; j < window->comms; j++)
			if (window->comm[j].id == id)
				count += window->comm[j].ops;
	}
	return count < NT_OP_END ? count : NT_OP_END;
}

static int add_comm(struct nt_framer *framer, const struct nt_member *member, size_t windows,
		    const struct nt_message *message, const struct nt_comm_window *comm,
		    struct nt_frame_comm *sum)
{
	const struct nt_align_reading reading = nt_align_read(member, comm);
	struct nt_frame_op *op = (struct nt_frame_op *)sum->op;
	int r;

	/* Numbers of two epochs do not add up: the newer one goes on alone. */
	if (sum->epoch != reading.group)
		sum->ops = 0;
	if (!op || sum->ops == 0) {
		op = alloc(framer, count_ops(member, windows, comm->id), sizeof(*op));
		if (!op)
			return -ENOMEM;
		sum->op = op;
	}
	for (size_t i = 0; i < comm->ops; i++)
		if ((unsigned int)comm->op[i].op < NT_OP_END)
			add_op(op, &sum->ops, &comm->op[i], reading.shift);
	sum->id = comm->id;
	sum->rank = comm->rank;
	sum->size = comm->size;
	sum->epoch = reading.group;
	sum->last = comm->last + reading.shift;
	sum->rolling_hash = comm->rolling_hash;
	r = add_recent(framer, message, comm, reading.shift, sum);
	if (r >= 0 && member->job->is_shifted)
		sum->rolling_hash = hash_last(sum);
	return r;
}

static int add_comms(struct nt_framer *framer, const struct nt_member *member, size_t windows,
		     struct nt_frame_rank *rank)
{
	struct nt_frame_comm *comm;
	size_t most = 0;
	int r;

	for (size_t i = 0; i < windows; i++)
		most += member->waiting[i].message->window.comms;
	if (most > NT_FRAME_MAX_COMMS)
		most = NT_FRAME_MAX_COMMS;
	comm = alloc(framer, most, sizeof(*comm));
	if (!comm)
		return -ENOMEM;
	for (size_t i = 0; i < windows; i++) {
		const struct nt_message *message = member->waiting[i].message;

		for (size_t j = 0; j < message->window.comms; j++) {
			const struct nt_comm_window *from = &message->window.comm[j];
			size_t at = 0;

			while (at < rank->comms && comm[at].id != from->id)
				at++;
			if (at == NT_FRAME_MAX_COMMS) {
				framer->counters.dropped_comms++;
				continue;
			}
			if (at == rank->comms)
				rank->comms++;
			r = add_comm(framer, member, windows, message, from, &comm[at]);
			if (r < 0)
				return r;
		}
	}
	rank->comm = comm;
	return 0;
}

/* ---- transfers ---------------------------------------------------------------------------------- */

static int add_transfers(struct nt_framer *framer, const struct nt_member *member, size_t windows,
			 struct nt_frame_rank *rank)
{
	struct nt_frame_transfer *to;
	size_t most = 0;

	for (size_t i = 0; i < windows; i++)
		most += member->waiting[i].message->window.transfers;
	if (!most)
		return 0;
	to = alloc(framer, most < NT_FRAME_MAX_TRANSFERS ? most : NT_FRAME_MAX_TRANSFERS,
		   sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &member->waiting[i].message->window;

		for (size_t j = 0; j < window->transfers; j++) {
			const struct nt_transfer *from = &window->transfer[j];

			if (from->op != NT_OP_SEND && from->op != NT_OP_RECV)
				continue;
			if (rank->transfers == NT_FRAME_MAX_TRANSFERS) {
				framer->counters.dropped_transfers++;
				continue;
			}
			to[rank->transfers++] = (struct nt_frame_transfer){
				.comm = from->comm,
				.calls = from->calls,
				.bytes = from->bytes,
				.min_ns = from->min_ns,
				.peer = from->peer,
				.sends = from->op == NT_OP_SEND,
			};
		}
	}
	rank->transfer = to;
	return 0;
}

/* ---- ranks -------------------------------------------------------------------------------------- */

static void add_steps(struct nt_member *member, struct nt_frame_rank *rank,
		      const struct nt_window *window)
{
	uint8_t tier = (uint8_t)window->own_tier;

	/* Own work of different tiers is not one sum. */
	if (rank->steps && rank->own_tier != tier)
		tier = NT_FRAME_T1;
	rank->own_tier = tier;
	member->gpu_lag_ns = (rank->steps ? member->gpu_lag_ns : 0) + window->gpu_lag_ns;
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
	rank->nic_retransmits += host->nic_retransmits;
	rank->nic_errors += host->nic_errors;
	rank->nic_congestion += host->nic_congestion;
	if (host->state[0])
		rank->state = host->state[0];
}

static void note_inside(struct nt_member *member, const struct nt_message *message)
{
	member->inside = message->window.inside;
	if (nt_framer_kind(member->inside.op) != NT_FRAME_POINT_TO_POINT)
		member->inside.number += nt_align_shift(member, &message->window);
	member->inside_since_ns = nt_message_real_ns(message, member->inside.since_boot_ns);
}

static void show_inside(const struct nt_member *member, struct nt_frame_rank *rank)
{
	const struct nt_inside_wire *inside = &member->inside;

	rank->inside = (struct nt_frame_inside){
		.in_call = inside->in_call,
		.synchronising = inside->synchronising,
		.comm = inside->comm,
		.number = inside->number,
		.since_ns = member->inside_since_ns,
		.count = inside->count,
		.type = inside->type,
		.op = (uint8_t)inside->op,
		.kind = (uint8_t)nt_framer_kind(inside->op),
	};
}

/*
 * A job that this member has named changes its name with it: the name of a pod, and so of its job, may
 * be learned after the first window.
 */
static int rename_member(struct nt_member *member, const struct nt_rank_id *id)
{
	struct nt_job *job = member->job;
	bool is_named_by =
		job && job->name && member->job_name && strcmp(job->name, member->job_name) == 0;
	int r = nt_member_rename(member, id);

	if (r < 0 || !is_named_by || strcmp(job->name, member->job_name) == 0)
		return r;
	free(job->name);
	job->name = NULL; /* nt_jobs_describe() follows */
	job->changed = true;
	return 0;
}

/* What the windows say of the member itself, before the frame is drawn up. */
static int update_member(struct nt_member *member, size_t windows)
{
	const struct nt_rank_id *id = NULL;
	const struct nt_waiting *last;
	int r;

	if (!windows)
		return 0;
	last = &member->waiting[windows - 1];
	id = &last->message->window.rank;
	r = rename_member(member, id);
	if (r < 0)
		return r;
	if (id->rank_known && !member->rank_known && member->rank != id->rank) {
		member->rank = id->rank;
		member->rank_known = true;
	}
	for (size_t i = 0; i < windows; i++) {
		const struct nt_waiting *waiting = &member->waiting[i];

		if (!waiting->message->window.steps || waiting->end_ns <= waiting->start_ns)
			continue;
		/* A long step is reported in several windows, the last of which has it. */
		member->step_window_ns[1] = member->step_window_ns[0];
		member->step_window_ns[0] =
			waiting->end_ns -
			(member->step_end_ns ? member->step_end_ns : waiting->start_ns);
		member->step_end_ns = waiting->end_ns;
	}
	note_inside(member, last->message);
	if (last->end_ns > member->job->last_seen_ns)
		member->job->last_seen_ns = last->end_ns;
	return 0;
}

/* Ranks may become known, and then take another place in the order while we go through it. */
static int update_members(struct nt_framer *framer, struct nt_jobs *jobs, struct nt_job *job,
			  uint64_t end_ns)
{
	const size_t members = job->members - job->retired;
	struct nt_member **member = alloc(framer, members, sizeof(struct nt_member *));
	int r;

	if (!member)
		return -ENOMEM;
	if (members)
		memcpy(member, job->member, members * sizeof(struct nt_member *));
	for (size_t i = 0; i < members; i++) {
		if (member[i]->retired)
			continue;
		r = update_member(member[i], count_windows(member[i], end_ns));
		if (r < 0)
			return r;
		r = nt_jobs_describe(jobs, member[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Nobody has spoken of this time yet, and it is judged because the wait is over; or what its agent said
 * of it, or what all did, was missing when they were heard again.
 */
static bool is_unheard(const struct nt_member *member, uint64_t start_ns, uint64_t end_ns)
{
	const struct nt_source *source = member->source;
	const struct nt_job_key *key = member->job->owner;

	return key->lead_ns < end_ns ||
	       (start_ns < source->heard_ns && source->unheard_ns < end_ns) ||
	       (start_ns < key->heard_ns && key->unheard_ns < end_ns);
}

static int fill_rank(struct nt_framer *framer, struct nt_member *member, size_t windows,
		     uint64_t end_ns, struct nt_frame_rank *rank)
{
	int r;

	rank->rank = member->number;
	rank->node = member->job_node;
	rank->rank_known = member->rank_known;
	rank->observed = windows > 0;
	/* An agent is silent 10 s behind the most advanced one, which is 3 s past the cell. */
	rank->silent = member->source->watermark_ns + (NT_JOBS_SILENCE_NS - NT_JOBS_LATENESS_NS) <
			       end_ns ||
		       (!windows && is_unheard(member, framer->frame.start_ns, end_ns));
	rank->ended = member->ended;
	rank->finalized = member->finalized;
	rank->ended_ns = member->ended_ns;
	rank->stage = rank->replica = -1;
	rank->uses_gpu = member->uses_gpu;
	show_inside(member, rank);
	for (size_t i = 0; i < windows; i++) {
		const struct nt_waiting *waiting = &member->waiting[i];
		const struct nt_window *window = &waiting->message->window;

		if (window->steps)
			add_steps(member, rank, window);
		add_host(rank, &window->host);
		rank->launches += window->launches;
		rank->lost += window->lost;
		rank->window_ns += waiting->end_ns - waiting->start_ns;
	}
	if (!rank->own_tier)
		rank->own_tier = NT_FRAME_T1;
	member->observed = rank->observed;
	member->silent = rank->silent;
	if (rank->steps) {
		member->tier = (enum nt_tier)rank->own_tier;
		member->frame_steps = rank->steps;
		member->own_ns = rank->own_ns;
		member->host_ns = rank->host_ns;
		member->blocked_ns = rank->blocked_ns;
		member->comm_ns = rank->comm_ns;
		member->step_ns = rank->step_ns;
	}
	r = add_comms(framer, member, windows, rank);
	return r < 0 ? r : add_transfers(framer, member, windows, rank);
}

/* Ends that the windows of the cell tell, and those that nobody told. */
static void end_members(struct nt_job *job, const size_t *windows, uint64_t end_ns)
{
	uint64_t unreported = UNREPORTED_CELLS * job->grid.length_ns;

	if (unreported < UNREPORTED_NS)
		unreported = UNREPORTED_NS;
	for (size_t i = 0; i < job->members - job->retired; i++) {
		struct nt_member *member = job->member[i];

		for (size_t j = 0; j < windows[i]; j++) {
			const struct nt_window *window = &member->waiting[j].message->window;

			if (window->ended)
				nt_jobs_end_member(member, member->waiting[j].end_ns,
						   window->finalized);
		}
		/* Its agent must have been heard of for as long. */
		if (!member->ended && member->source->watermark_ns >= end_ns &&
		    member->last_seen_ns + unreported < end_ns &&
		    member->source->heard_ns + unreported < end_ns)
			nt_jobs_end_member(member, member->last_seen_ns, false);
	}
}

/* ---- samples ------------------------------------------------------------------------------------ */

static const struct nt_comm_window *find_comm(const struct nt_window *window, uint64_t id,
					      uint64_t epoch)
{
	for (size_t i = 0; i < window->comms; i++)
		if (window->comm[i].id == id && window->comm[i].epoch == epoch)
			return &window->comm[i];
	return NULL;
}

static void add_samples(struct nt_framer *framer, const struct nt_member *member,
			const struct nt_message *message, struct nt_frame_sample *sample,
			size_t *samples)
{
	for (size_t i = 0; i < message->window.samples; i++) {
		const struct nt_sample *from = &message->window.sample[i];
		const struct nt_comm_window *comm =
			find_comm(&message->window, from->comm, from->epoch);
		struct nt_frame_sample *to = &sample[*samples];
		bool by_gpu = from->gpu_start_boot_ns && from->gpu_end_boot_ns;
		struct nt_align_reading reading;

		if (!comm) {
			framer->counters.unaligned_samples++;
			continue;
		}
		reading = nt_align_read(member, comm);
		*to = (struct nt_frame_sample){
			.comm = from->comm,
			.epoch = reading.group,
			.number = from->number + reading.shift,
			.bytes = from->bytes,
			.op = (uint8_t)from->op,
			.kind = (uint8_t)nt_framer_kind(from->op),
			.rank = member->number,
			.by_gpu = by_gpu,
			.arrive_ns = nt_message_real_ns(message, by_gpu ? from->gpu_start_boot_ns
									: from->arrive_boot_ns),
		};
		if (by_gpu || from->release_boot_ns)
			to->release_ns = nt_message_real_ns(
				message, by_gpu ? from->gpu_end_boot_ns : from->release_boot_ns);
		(*samples)++;
	}
}

static int collect_samples(struct nt_framer *framer, const struct nt_job *job,
			   const size_t *windows)
{
	struct nt_frame_sample *sample;
	size_t most = 0, samples = 0;
	int r;

	for (size_t i = 0; i < job->members - job->retired; i++)
		for (size_t j = 0; j < windows[i]; j++)
			most += job->member[i]->waiting[j].message->window.samples;
	sample = alloc(framer, most, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	for (size_t i = 0; i < job->members - job->retired; i++)
		for (size_t j = 0; j < windows[i]; j++)
			add_samples(framer, job->member[i], job->member[i]->waiting[j].message,
				    sample, &samples);
	r = nt_samples_sort(&framer->arena, sample, samples, &sample);
	if (r < 0)
		return r;
	framer->frame.sample = sample;
	framer->frame.samples = samples;
	return 0;
}

/* ---- the grid ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/*
 * A quarter longer than the windows of the middle rank. Of its last two the shorter counts, so that
 * one long pause does not make the job's frames long; they grow at once and shrink slowly.
 */
static int next_length(struct nt_framer *framer, struct nt_job *job)
{
	size_t members = job->members - job->retired, known = 0;
	uint64_t *length = alloc(framer, members, sizeof(*length));
	uint64_t wanted, least = job->grid.length_ns - job->grid.length_ns / 4;

	if (!length)
		return -ENOMEM;
	for (size_t i = 0; i < members; i++) {
		const struct nt_member *member = job->member[i];
		const uint64_t *last = member->step_window_ns;

		if (member->ended || !last[1])
			continue;
		length[known++] = last[0] < last[1] ? last[0] : last[1];
	}
	if (!known)
		return 0;
	qsort(length, known, sizeof(*length), by_size);
	wanted = length[known / 2];
	wanted = wanted < NT_FRAMER_CELL_MAX_NS ? wanted + wanted / 4 : NT_FRAMER_CELL_MAX_NS;
	if (wanted < least)
		wanted = least;
	if (wanted < framer->cell_min_ns)
		wanted = framer->cell_min_ns;
	if (wanted > NT_FRAMER_CELL_MAX_NS)
		wanted = NT_FRAMER_CELL_MAX_NS;
	job->grid.length_ns = wanted;
	return 0;
}

uint64_t nt_framer_due_ns(struct nt_framer *framer, struct nt_job *job)
{
	if (job->closed)
		return UINT64_MAX;
	if (!job->grid.length_ns)
		job->grid.length_ns = framer->cell_min_ns;
	return job->grid.start_ns + job->grid.length_ns;
}

void nt_framer_skip(struct nt_framer *framer, struct nt_job *job, uint64_t closable_ns)
{
	uint64_t next = closable_ns, cells;
	const uint64_t due = nt_framer_due_ns(framer, job);

	if (closable_ns < due + NT_FRAMER_SKIP_NS)
		return;
	for (size_t i = 0; i < job->members - job->retired; i++)
		if (job->member[i]->waitings && job->member[i]->waiting[0].end_ns < next)
			next = job->member[i]->waiting[0].end_ns;
	if (next < due + NT_FRAMER_SKIP_NS || next == UINT64_MAX)
		return;
	cells = (next - job->grid.start_ns) / job->grid.length_ns;
	job->grid.start_ns += cells * job->grid.length_ns;
	framer->counters.skipped_gaps++;
}

/* One that ends in a later cell began before this one ended. */
static bool is_covered_later(const struct nt_member *member, uint64_t end_ns)
{
	const struct nt_waiting *next = member->waiting;

	/* What its agent does not vouch for may be here by chance. */
	if (!member->waitings || member->source->watermark_ns < end_ns)
		return false;
	if (!member->covered_boot_ns)
		return next->start_ns < end_ns;
	return next->message->window.start_boot_ns <= member->covered_boot_ns;
}

/*
 * For how much of the member's time no window came, as far as this cell tells; negative: a window came
 * after all for what was held for missing. Its windows follow each other without a gap on the clock
 * of its node, whatever becomes of the real one.
 */
static double find_missing(struct nt_member *member, size_t windows, uint64_t end_ns,
			   uint64_t length_ns)
{
	const struct nt_waiting *waiting = member->waiting;
	double gaps_ns = 0;

	if (!windows && is_covered_later(member, end_ns))
		return 0;
	if (!windows) {
		if (member->covered_boot_ns)
			member->absent_ns += length_ns;
		return (double)length_ns;
	}
	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &waiting[i].message->window;

		if (member->covered_boot_ns && window->start_boot_ns > member->covered_boot_ns)
			gaps_ns += (double)(window->start_boot_ns - member->covered_boot_ns);
		if (window->end_boot_ns > member->covered_boot_ns)
			member->covered_boot_ns = window->end_boot_ns;
	}
	gaps_ns -= (double)member->absent_ns;
	member->absent_ns = 0;
	return gaps_ns;
}

/* Where the job is larger than what was seen of it, the rest is missing. */
static void weigh_completeness(struct nt_framer *framer, struct nt_job *job, const size_t *windows)
{
	const size_t members = job->members - job->retired;
	const size_t size = job->size > members ? job->size : members;
	const uint64_t end_ns = framer->frame.end_ns, length_ns = end_ns - framer->frame.start_ns;
	const double length = (double)length_ns;
	double missing_ns = (double)(size - members) * length, missed_ns = 0, expected = 0;

	for (size_t i = 0; i < members; i++) {
		const struct nt_frame_rank *rank = &framer->frame.rank[i];
		double ns, now;

		/* Nobody expects a window of the dead. */
		if (rank->ended && !rank->observed)
			continue;
		ns = find_missing(job->member[i], windows[i], end_ns, length_ns);
		now = ns < 0 ? 0 : ns < length ? ns : length;
		missing_ns += now;
		missed_ns += ns - now;
		expected++;
	}
	expected += (double)(size - members);
	framer->frame.expected_ranks = (uint32_t)size;
	framer->frame.completeness = expected > 0 ? 1 - missing_ns / (expected * length) : 1;
	framer->frame.missed_ns = expected > 0 ? missed_ns / expected : 0;
}

static int draw_up(struct nt_framer *framer, struct nt_job *job, uint64_t end_ns)
{
	const size_t members = job->members - job->retired;
	struct nt_frame_rank *rank = alloc(framer, members, sizeof(*rank));
	size_t *windows = alloc(framer, members, sizeof(*windows));
	int r;

	if (!rank || !windows)
		return -ENOMEM;
	for (size_t i = 0; i < members; i++)
		windows[i] = count_windows(job->member[i], end_ns);
	end_members(job, windows, end_ns);
	r = nt_align_cell(job, windows, &framer->arena, &framer->counters.align);
	if (r < 0)
		return r;
	for (size_t i = 0; i < members; i++) {
		r = fill_rank(framer, job->member[i], windows[i], end_ns, &rank[i]);
		if (r < 0)
			return r;
	}
	r = collect_samples(framer, job, windows);
	if (r < 0)
		return r;
	framer->frame.rank = rank;
	framer->frame.ranks = members;
	weigh_completeness(framer, job, windows);
	for (size_t i = 0; i < members; i++)
		(void)nt_member_drop(job->member[i], end_ns);
	return 0;
}

int nt_framer_close(struct nt_framer *framer, struct nt_jobs *jobs, struct nt_job *job,
		    const struct nt_frame **ret_frame)
{
	const uint64_t end_ns = nt_framer_due_ns(framer, job);
	int r;

	nt_arena_release(&framer->arena);
	framer->frame = (struct nt_frame){.start_ns = job->grid.start_ns, .end_ns = end_ns};

	r = update_members(framer, jobs, job, end_ns);
	if (r < 0)
		return r;
	r = draw_up(framer, job, end_ns);
	if (r < 0)
		return r;
	job->grid.start_ns = end_ns;
	job->grid.frames++;
	job->grid.completeness = framer->frame.completeness;
	job->changed = true;
	r = next_length(framer, job);
	if (r < 0)
		return r;
	framer->counters.frames++;
	framer->counters.incomplete_frames += framer->frame.completeness < 1;
	*ret_frame = &framer->frame;
	return 0;
}
