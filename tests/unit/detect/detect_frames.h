/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Simulated jobs for the tests of detect/: ranks that alternately compute and call collectives. A
 * test changes the parameters of a rank, and the frames follow.
 */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_FRAMES_H
#define NT_TESTS_UNIT_DETECT_DETECT_FRAMES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detect/detect.h"

enum {
	SIM_COMMS = 6, /* of one rank at most */
	SIM_SECOND = 1000000000,
	SIM_MS = 1000000,
};

/* The work of one rank, in nanoseconds of one step. */
struct sim_rank {
	uint32_t rank, node;
	double device; /* busy time of its GPU, awaited */
	double host; /* work of its thread outside all calls */
	double noise; /* relative, on top of the job's */
	double longest; /* the longest piece of its own work, of one step; 0: not observed */
	double collective; /* in collectives, of one step; 0: as its communicators say */
	double parts; /* steps that it reports per step of the job; 0: 1 */
	double on_cpu, run_queue, io, gc; /* of one step */
	uint64_t read, write, faults; /* of one frame */
	bool traced; /* by tracepoints, which show the next, of one step */
	double quota, file, fault_wait, reclaim, process_io, retransmits;
	double thermal, power, hardware; /* parts of the time that its GPU's clock is held down */
	uint64_t gpu_errors; /* of one frame */
	/*
	 * Shares of its GPU's multiprocessors that are active while it computes, and while it waits for
	 * others in a kernel; 0: not known. Time in which its tensor cores compute, of one step.
	 */
	double sm, waiting_sm, tensor;
	uint32_t xid; /* reported in this frame; 0: none */
	uint8_t exit_signal;
	uint8_t tier;
	int32_t stage, replica;
	bool absent, silent, ended, finalized, known, no_gpu;
	bool sampled, lost_sight, no_host;
	uint64_t ended_ns;
	/* Hung: no step ends any more, and this is the current state. */
	bool stuck, in_call, synchronising;
	uint8_t inside_kind, inside_op;
	uint64_t inside_comm, inside_number, inside_since, inside_count;
	uint32_t inside_type;
	uint64_t behind; /* calls that it has not entered, of every communicator */
	uint64_t salt; /* on its rolling hash */
	uint64_t odd_count; /* elements of its last call; 0: as the others */
	uint8_t odd_op;
	uint64_t epoch; /* added to the communicators' */
	char state;
	double busy; /* of the frame on the CPU, while stuck */
};

struct sim_comm {
	uint64_t id;
	uint32_t member[64], members; /* of at most 64: larger ones are `world` */
	bool world;
	uint8_t kind;
	double calls, bytes; /* per step and member; per call */
	double transfer; /* ns per call */
	bool timed;
	uint32_t by_gpu; /* so many members report device times instead of host times */
	uint64_t last, epoch;
};

struct sim {
	struct sim_rank *rank;
	uint32_t ranks;
	struct sim_comm comm[128];
	uint32_t comms;
	double jitter; /* relative sigma of device and host work of a step */
	double outliers; /* fraction of the rank-windows that take three times as long */
	uint32_t steps; /* per frame */
	uint64_t now_ns, seed;
	uint64_t extra_ns; /* a pause of all ranks in this frame, applied once */
	bool blocking; /* the library blocks, as MPI; else calls are queued on the device */
	bool recorded; /* T2, T3: the times of devices alone, which no host waits for */
	bool samples;
	double completeness;
	double lateness; /* spread of arrivals at a call by other causes than work, ns */
	/* The frame and the data it points to. */
	struct nt_frame frame;
	struct nt_frame_rank *out;
	struct nt_frame_comm *out_comm;
	struct nt_frame_op *out_op;
	struct nt_frame_signature *out_call;
	struct nt_frame_sample *out_sample;
	double *own;
};

static inline double sim_uniform(struct sim *sim)
{
	/* splitmix64 */
	uint64_t z = (sim->seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static inline double sim_gauss(struct sim *sim)
{
	const double a = 1.0 - sim_uniform(sim), b = sim_uniform(sim);

	return sqrt(-2.0 * log(a)) * cos(6.283185307179586 * b);
}

static inline struct sim_comm *sim_comm_add(struct sim *sim, uint64_t id, uint8_t kind,
					    double calls, double bytes, double transfer)
{
	struct sim_comm *comm = &sim->comm[sim->comms++];

	*comm = (struct sim_comm){.id = id,
				  .kind = kind,
				  .calls = calls,
				  .bytes = bytes,
				  .transfer = transfer,
				  .epoch = 1};
	return comm;
}

/*
 * Eight GPUs per node, 10 ms of host work and 70 ms of device work a step, T2; no communicator yet.
 */
static inline void sim_init_ranks(struct sim *sim, uint32_t ranks, uint64_t seed)
{
	*sim = (struct sim){.ranks = ranks, .seed = seed, .steps = 6, .completeness = 1.0};
	sim->now_ns = 1700000000ull * SIM_SECOND;
	sim->rank = calloc(ranks, sizeof(*sim->rank));
	sim->out = calloc(ranks, sizeof(*sim->out));
	sim->out_comm = calloc((size_t)ranks * SIM_COMMS, sizeof(*sim->out_comm));
	sim->out_op = calloc((size_t)ranks * SIM_COMMS, sizeof(*sim->out_op));
	sim->out_call = calloc((size_t)ranks * SIM_COMMS, sizeof(*sim->out_call));
	sim->out_sample = calloc((size_t)ranks * 4, sizeof(*sim->out_sample));
	sim->own = calloc(ranks, sizeof(*sim->own));
	for (uint32_t i = 0; i < ranks; i++)
		sim->rank[i] = (struct sim_rank){.rank = i,
						 .node = i / 8,
						 .device = 70.0 * SIM_MS,
						 .host = 10.0 * SIM_MS,
						 .tier = NT_FRAME_T2,
						 .stage = -1,
						 .replica = -1,
						 .known = true};
}

/* One data-parallel communicator of all. */
static inline void sim_init(struct sim *sim, uint32_t ranks, uint64_t seed)
{
	sim_init_ranks(sim, ranks, seed);
	sim_comm_add(sim, 0xda7a, NT_FRAME_SYNCHRONISING, 2, 25e6, 5.0 * SIM_MS)->world = true;
}

/*
 * Megatron's order: tensor index first, then replica, then stage. Tensor groups make many medium
 * reductions a step, pipelines sends and receives, replicas a few large reductions. The embeddings
 * of the first and the last stage share one reduction, and a flag is reduced over all.
 */
static inline void sim_init_layout(struct sim *sim, uint32_t tp, uint32_t pp, uint32_t dp,
				   uint64_t seed)
{
	sim_init_ranks(sim, tp * pp * dp, seed);
	for (uint32_t i = 0; tp > 1 && i < pp * dp; i++) {
		struct sim_comm *comm = sim_comm_add(sim, 0x7000 + i, NT_FRAME_SYNCHRONISING, 64,
						     8e6, 0.01 * SIM_MS);

		for (uint32_t t = 0; t < tp; t++)
			comm->member[comm->members++] = i * tp + t;
	}
	for (uint32_t i = 0; pp > 1 && i < tp * dp; i++) {
		struct sim_comm *comm =
			sim_comm_add(sim, 0x9000 + i, NT_FRAME_POINT_TO_POINT, 16, 8e6, 0.0);

		for (uint32_t p = 0; p < pp; p++)
			comm->member[comm->members++] = i + p * tp * dp;
		comm = sim_comm_add(sim, 0xe000 + i, NT_FRAME_SYNCHRONISING, 1, 4e8, 0.0);
		comm->member[comm->members++] = i;
		comm->member[comm->members++] = i + (pp - 1) * tp * dp;
	}
	for (uint32_t i = 0; dp > 1 && i < tp * pp; i++) {
		struct sim_comm *comm =
			sim_comm_add(sim, 0xd000 + i, NT_FRAME_SYNCHRONISING, 4, 1e8, 0.5 * SIM_MS);

		for (uint32_t d = 0; d < dp; d++)
			comm->member[comm->members++] = i % tp + tp * (d + dp * (i / tp));
	}
	sim_comm_add(sim, 0xa11, NT_FRAME_SYNCHRONISING, 1, 4, 0.0)->world = true;
}

static inline void sim_free(struct sim *sim)
{
	free(sim->rank);
	free(sim->out);
	free(sim->out_comm);
	free(sim->out_op);
	free(sim->out_call);
	free(sim->out_sample);
	free(sim->own);
}

static inline bool sim_is_member(const struct sim *sim, const struct sim_comm *comm, uint32_t index,
				 uint32_t *ret_place)
{
	if (comm->world) {
		*ret_place = index;
		return true;
	}
	for (uint32_t i = 0; i < comm->members; i++) {
		*ret_place = i;
		if (comm->member[i] == index)
			return true;
	}
	(void)sim;
	return false;
}

static inline uint32_t sim_comm_size(const struct sim *sim, const struct sim_comm *comm)
{
	return comm->world ? sim->ranks : comm->members;
}

static inline int sim_compare(const void *a, const void *b)
{
	const struct nt_frame_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* One frame, in nanoseconds: a step of the whole job, and the activities of its ranks. */
struct sim_times {
	double step, transfer;
	uint64_t length;
	bool all_stuck;
};

/* The steps of a rank in the frame, and the parts of one. */
struct sim_share {
	double steps, device, host, wait;
};

/* All ranks work; the slowest delays the others. */
static inline struct sim_times sim_work(struct sim *sim)
{
	struct sim_times times = {.all_stuck = true};
	double longest = 0.0;

	for (uint32_t i = 0; i < sim->comms; i++)
		times.transfer += sim->comm[i].calls * sim->comm[i].transfer;
	for (uint32_t i = 0; i < sim->ranks; i++) {
		const struct sim_rank *rank = &sim->rank[i];
		const double spread = sim->jitter + rank->noise;
		double factor = 1.0 + spread * sim_gauss(sim);

		if (sim_uniform(sim) < sim->outliers)
			factor *= 3.0;
		sim->own[i] = fmax(0.1, factor);
		times.all_stuck = times.all_stuck && (rank->stuck || rank->ended || rank->absent);
		if (!rank->stuck && !rank->ended)
			longest = fmax(longest,
				       rank->device * sim->own[i] + rank->host * sim->own[i]);
	}
	times.step =
		longest + times.transfer + (double)sim->extra_ns / (sim->steps ? sim->steps : 1);
	times.length = times.all_stuck ? SIM_SECOND / 2 : (uint64_t)(times.step * sim->steps);
	return times;
}

static inline void sim_put_work(const struct sim *sim, const struct sim_rank *rank,
				const struct sim_share *share, struct nt_frame_rank *out)
{
	const double steps = share->steps, device = share->device, wait = share->wait;

	out->collective_ns = (uint64_t)(rank->collective * steps);
	if (rank->tier == NT_FRAME_T2) {
		out->own_ns = (uint64_t)((device + share->host) * steps);
		out->own_blocked_ns = (uint64_t)(device * steps);
		out->own_longest_ns = (uint64_t)(rank->longest * steps);
		out->blocked_ns = sim->recorded ? 0 : out->own_blocked_ns;
		if (sim->blocking || sim->recorded)
			out->comm_ns = (uint64_t)(wait * steps);
		else
			out->blocked_ns += (uint64_t)(wait * steps);
	} else if (rank->tier == NT_FRAME_T3) {
		out->own_ns = (uint64_t)(device * steps);
		if (sim->recorded)
			out->comm_ns = (uint64_t)(wait * steps);
		else
			out->blocked_ns = (uint64_t)((device + wait) * steps);
	} else {
		out->blocked_ns = (uint64_t)((device + wait) * steps);
	}
}

static inline void sim_put_rank(const struct sim *sim, const struct sim_rank *rank,
				const struct sim_times *times, const struct sim_share *share,
				struct nt_frame_rank *out)
{
	const double steps = share->steps;

	*out = (struct nt_frame_rank){
		.rank = rank->rank,
		.node = rank->node,
		.steps = (uint32_t)(steps * (rank->parts > 0.0 ? rank->parts : 1.0)),
		.own_tier = rank->tier,
		.rank_known = rank->known,
		.observed = !rank->silent && !rank->ended,
		.silent = rank->silent,
		.ended = rank->ended,
		.finalized = rank->finalized,
		.ended_ns = rank->ended_ns,
		.uses_gpu = !rank->no_gpu,
		.sampled = rank->sampled,
		.lost_sight = rank->lost_sight,
		.no_host = rank->no_host,
		.host_ns = (uint64_t)(share->host * steps),
		.step_ns = (uint64_t)(times->step * steps),
		.window_ns = times->length,
		.on_cpu_ns = (uint64_t)(rank->on_cpu * steps + rank->busy * (double)times->length),
		.run_queue_ns = (uint64_t)(rank->run_queue * steps),
		.io_ns = (uint64_t)(rank->io * steps),
		.gc_ns = (uint64_t)(rank->gc * steps),
		.read_bytes = rank->read,
		.write_bytes = rank->write,
		.major_faults = rank->faults,
		.system_ns = rank->traced ? times->length : 0,
		.quota_ns = (uint64_t)(rank->quota * steps),
		.file_ns = (uint64_t)(rank->file * steps),
		.fault_ns = (uint64_t)(rank->fault_wait * steps),
		.reclaim_ns = (uint64_t)(rank->reclaim * steps),
		.process_io_ns = (uint64_t)(rank->process_io * steps),
		.tcp_retransmits = (uint64_t)(rank->retransmits * steps),
		.gpu_thermal_ns = (uint64_t)(rank->thermal * (double)times->length),
		.gpu_power_ns = (uint64_t)(rank->power * (double)times->length),
		.gpu_hardware_ns = (uint64_t)(rank->hardware * (double)times->length),
		.gpu_uncorrected = rank->gpu_errors,
		.gpu_xids = rank->xid > 0,
		.gpu_last_xid = rank->xid,
		.gpu_activity_ns = rank->sm > 0.0 ? times->length : 0,
		.gpu_sm_ns =
			(uint64_t)((rank->sm * share->device + rank->waiting_sm * share->wait) *
				   steps),
		.gpu_tensor_ns = (uint64_t)(rank->tensor * steps),
		.exit_signal = rank->exit_signal,
		.state = rank->state,
		.stage = rank->stage,
		.replica = rank->replica,
		.inside =
			{
				.in_call = rank->in_call || rank->synchronising,
				.synchronising = rank->synchronising,
				.comm = rank->inside_comm,
				.number = rank->inside_number,
				.since_ns = rank->inside_since,
				.count = rank->inside_count,
				.type = rank->inside_type,
				.op = rank->inside_op,
				.kind = rank->inside_kind,
			},
	};
	sim_put_work(sim, rank, share, out);
}

/* The calls of a rank in one communicator, as the n-th of the frame. */
static inline void sim_put_comm(struct sim *sim, const struct sim_rank *rank,
				const struct sim_comm *comm, uint32_t place,
				const struct sim_times *times, const struct sim_share *share,
				size_t n)
{
	struct nt_frame_op *op = &sim->out_op[n];
	const double steps = share->steps;

	*op = (struct nt_frame_op){
		.op = comm->kind == NT_FRAME_POINT_TO_POINT ? 10 : 1,
		.kind = comm->kind,
		.calls = (uint64_t)(comm->calls * steps),
		.bytes = (uint64_t)(comm->calls * steps * comm->bytes),
		.last = comm->last,
	};
	if (comm->timed && steps > 0.0) {
		const double waited = fmax(0.0, share->wait - times->transfer);

		op->timed_calls = op->calls;
		op->by_gpu = place < comm->by_gpu;
		op->min_ns = (uint64_t)(comm->transfer + sim->lateness * sim_uniform(sim));
		op->sum_ns = (uint64_t)(comm->transfer * (double)op->calls + waited * steps);
	}
	sim->out_call[n] = (struct nt_frame_signature){
		.number = comm->last - rank->behind,
		.count = rank->odd_count ? rank->odd_count : 1000,
		.type = 7,
		.op = rank->odd_op ? rank->odd_op : op->op,
	};
	sim->out_comm[n] = (struct nt_frame_comm){
		.id = comm->id,
		.rank = place,
		.size = sim_comm_size(sim, comm),
		.epoch = comm->epoch + rank->epoch,
		.last = comm->last - rank->behind,
		.rolling_hash = (comm->last - rank->behind) * 77 + rank->salt,
		.op = op,
		.ops = 1,
		.recent = &sim->out_call[n],
		.recents = 1,
	};
}

/* The next frame. */
static inline const struct nt_frame *sim_next(struct sim *sim)
{
	const struct sim_times times = sim_work(sim);
	const double pause = (double)sim->extra_ns / (sim->steps ? sim->steps : 1);
	size_t n = 0, comms = 0;

	sim->frame.start_ns = sim->now_ns;
	sim->now_ns += times.length;
	sim->frame.end_ns = sim->now_ns;
	for (uint32_t i = 0; i < sim->comms && !times.all_stuck; i++)
		sim->comm[i].last += (uint64_t)(sim->comm[i].calls * sim->steps);
	for (uint32_t i = 0; i < sim->ranks; i++) {
		const struct sim_rank *rank = &sim->rank[i];
		const bool still = times.all_stuck || rank->stuck || rank->ended;
		struct sim_share share = {
			.steps = still ? 0.0 : sim->steps,
			.device = rank->device * sim->own[i],
			.host = rank->host * sim->own[i] + pause,
		};
		struct nt_frame_rank *out = &sim->out[n];
		uint32_t place;

		if (rank->absent)
			continue;
		n++;
		share.wait = times.step - share.device - share.host;
		sim_put_rank(sim, rank, &times, &share, out);
		out->comm = &sim->out_comm[comms];
		for (uint32_t j = 0; j < sim->comms; j++) {
			if (!sim_is_member(sim, &sim->comm[j], i, &place))
				continue;
			sim_put_comm(sim, rank, &sim->comm[j], place, &times, &share, comms);
			comms++;
			out->comms++;
		}
	}
	qsort(sim->out, n, sizeof(*sim->out), sim_compare);
	sim->extra_ns = 0;
	sim->frame.rank = sim->out;
	sim->frame.ranks = n;
	sim->frame.sample = sim->out_sample;
	sim->frame.samples = 0;
	sim->frame.expected_ranks = sim->ranks;
	sim->frame.completeness = sim->completeness;
	return &sim->frame;
}

static inline struct nt_detect *sim_detect(void)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect = NULL;

	assert_int_equal(nt_detect_new(&rules, 1, 1, &detect), 0);
	return detect;
}

/* Runs frames; returns the number until the first incident fires, or `frames` + 1. */
static inline uint32_t sim_run(struct sim *sim, struct nt_detect *detect, uint32_t frames)
{
	for (uint32_t i = 1; i <= frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			if (finding[j].state == NT_INCIDENT_FIRING)
				return i;
	}
	return frames + 1;
}

/* Runs all the frames regardless of findings. */
static inline void sim_pass(struct sim *sim, struct nt_detect *detect, uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(sim), &finding, &findings), 0);
	}
}

/* All ranks but those hang in the last call of the communicator from now on; no rank progresses. */
static inline void sim_stick(struct sim *sim, uint64_t comm, uint32_t except)
{
	for (uint32_t i = 0; i < sim->ranks; i++) {
		struct sim_rank *rank = &sim->rank[i];

		rank->stuck = true;
		if (i == except)
			continue;
		rank->in_call = true;
		rank->inside_comm = comm;
		rank->inside_kind = NT_FRAME_SYNCHRONISING;
		rank->inside_op = 1;
		rank->inside_count = 1000;
		rank->inside_type = 7;
		rank->inside_since = sim->now_ns;
		for (uint32_t j = 0; j < sim->comms; j++)
			if (sim->comm[j].id == comm)
				rank->inside_number = sim->comm[j].last;
	}
}

/* Resumes all ranks. */
static inline void sim_unstick(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ranks; i++) {
		sim->rank[i].stuck = false;
		sim->rank[i].in_call = false;
		sim->rank[i].synchronising = false;
		sim->rank[i].behind = 0;
	}
}

/* The n-th firing incident, NULL if there are fewer. */
static inline const struct nt_finding *sim_firing(const struct nt_detect *detect, size_t nth)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	nt_detect_open(detect, &finding, &findings);
	for (size_t i = 0; i < findings; i++)
		if (finding[i].state == NT_INCIDENT_FIRING && nth-- == 0)
			return &finding[i];
	return NULL;
}

static inline size_t sim_open(const struct nt_detect *detect)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	nt_detect_open(detect, &finding, &findings);
	return findings;
}

/* Allows only the finding that the job as a whole is slower. */
static inline void assert_accuses_nobody(const struct nt_detect *detect)
{
	for (size_t i = 0; sim_firing(detect, i); i++) {
		assert_int_equal(sim_firing(detect, i)->class, NT_CLASS_JOB_WIDE);
		assert_int_equal(sim_firing(detect, i)->culprits, 0);
	}
}

/* One culprit, of kind rank, with that number. */
static inline void assert_names_rank(const struct nt_finding *finding, uint32_t rank)
{
	assert_non_null(finding);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_RANK);
	assert_int_equal(finding->culprit[0].rank, rank);
}

#endif
