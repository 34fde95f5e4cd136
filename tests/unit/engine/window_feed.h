/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Agents' messages for the tests of the aggregator: an agent on a node, its ranks, and windows with
 * one communicator. Include after cmocka.h.
 */
#ifndef NT_TESTS_UNIT_ENGINE_WINDOW_FEED_H
#define NT_TESTS_UNIT_ENGINE_WINDOW_FEED_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "detect/model/frame.h"
#include "proto/wire.h"

#define MS     1000000ULL
#define SECOND (1000 * MS)
/* Every node has a boot clock of its own, this much behind real time. */
#define REAL_0 (1700000000ULL * SECOND)

struct feed_agent {
	const char *name; /* of the agent and of its node */
	const char *key;
	uint64_t boot, seq;
	uint64_t booted_ms; /* real time of its boot, after REAL_0 - 10^6 s */
};

static inline struct feed_agent feed_agent(const char *name, const char *key)
{
	return (struct feed_agent){.name = name, .key = key, .boot = 7, .booted_ms = 1};
}

/* Times are milliseconds after REAL_0. */
struct feed_window {
	uint32_t rank, size, pid;
	uint64_t from_ms, to_ms;
	uint64_t process_ms; /* start of the process, before the window */
	uint32_t steps;
	double own_ms, step_ms; /* of one step */
	uint64_t comm; /* 0: none */
	uint32_t comm_size; /* 0: size */
	uint64_t epoch; /* 0: counted from the first call on */
	uint64_t last; /* number of the last call */
	enum nt_tier tier; /* 0: T2 */
	enum nt_own_source own_source;
	/* Of each call on host and device; 0: unknown. Otherwise the last is sampled, too. */
	uint64_t call_ns, gpu_call_ns;
	const char *gpu, *pod;
	const char *job; /* NULL: "llm" */
	bool rank_unknown, local_id, ended, finalized, inside;
	uint32_t attempt_hint;
	uint64_t unobserved_ms;
	uint32_t shed, calls; /* calls: 0: as many as steps */
	bool whereabouts_unknown;
	uint64_t gemms; /* calls of 10^9 operations each */
	uint64_t gemm_gpu_ns; /* of all kernels, of which they are a quarter */
};

static inline uint64_t feed_boot_offset(const struct feed_agent *agent)
{
	return REAL_0 - 1000000 * SECOND + agent->booted_ms * MS;
}

static inline uint64_t feed_boot_ns(const struct feed_agent *agent, uint64_t ms)
{
	return REAL_0 + ms * MS - feed_boot_offset(agent);
}

/* The message after encoding and decoding; the caller owns it. */
static inline struct nt_message *feed_copy(const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_message *copy = NULL;

	assert_int_equal(nt_message_encode(message, &buf), 0);
	assert_int_equal(nt_message_decode(buf.data, buf.len, &copy), 0);
	return copy;
}

static inline struct nt_message feed_envelope(struct feed_agent *agent, uint64_t now_ms)
{
	const uint64_t boot_ns = feed_boot_ns(agent, now_ms);

	return (struct nt_message){
		.agent = agent->name,
		.key = agent->key,
		.boot = agent->boot,
		.seq = ++agent->seq,
		.boot_ns = boot_ns,
		.real_ns = REAL_0 + now_ms * MS,
		.watermark_boot_ns = boot_ns,
	};
}

/* The calls of a window in its communicator, and the data they point to. */
struct feed_calls {
	struct nt_signature recent;
	struct nt_comm_op op;
	uint32_t bucket, count; /* of all durations */
	struct nt_sample sample;
	struct nt_comm_window comm;
};

static inline void feed_times(const struct feed_window *from, struct feed_calls *calls)
{
	const struct nt_sketch_wire took = {
		.bucket = &calls->bucket, .count = &calls->count, .buckets = 1};
	struct nt_sample *sample = &calls->sample;
	struct nt_comm_op *op = &calls->op;

	if (from->call_ns) {
		op->duration = took;
		op->duration.min_ns = from->call_ns;
		op->duration.sum_ns = from->call_ns * from->steps;
		sample->release_boot_ns = sample->arrive_boot_ns + from->call_ns;
	}
	if (from->gpu_call_ns) {
		op->gpu_duration = took;
		op->gpu_duration.min_ns = from->gpu_call_ns;
		op->gpu_duration.sum_ns = from->gpu_call_ns * from->steps;
		sample->gpu_start_boot_ns = sample->arrive_boot_ns + 5 * MS;
		sample->gpu_end_boot_ns = sample->gpu_start_boot_ns + from->gpu_call_ns;
	}
}

/* Of a window that ends at boot_ns. */
static inline void feed_calls(const struct feed_window *from, uint64_t boot_ns,
			      struct feed_calls *calls)
{
	const uint32_t count = from->calls ? from->calls : from->steps;

	*calls = (struct feed_calls){
		.recent =
			{
				.number = from->last,
				.op = NT_OP_ALL_REDUCE,
				.count = 1024,
				.type = 4,
				.entry_boot_ns = boot_ns - MS,
			},
		.op =
			{
				.op = NT_OP_ALL_REDUCE,
				.calls = count,
				.bytes = 4096ULL * count,
				.first = from->last + 1 - from->steps,
				.last = from->last,
			},
		.bucket = 99,
		.count = from->steps,
		.sample =
			{
				.comm = from->comm,
				.number = from->last,
				.epoch = from->epoch ? from->epoch : 1,
				.op = NT_OP_ALL_REDUCE,
				.bytes = 4096,
				.arrive_boot_ns = boot_ns - 9 * MS,
			},
		.comm =
			{
				.id = from->comm,
				.rank = from->rank,
				.size = from->comm_size ? from->comm_size : from->size,
				.library = NT_LIBRARY_MPI,
				.id_is_local = from->local_id,
				.epoch = from->epoch ? from->epoch : 1,
				.last = from->last,
				.rolling_hash = from->last,
				.op = &calls->op,
				.ops = 1,
				.recent = &calls->recent,
				.recents = 1,
				.name = "",
			},
	};
	feed_times(from, calls);
}

/* Sent at the end of the window, up to which it is complete. */
static inline struct nt_message *feed_window(struct feed_agent *agent,
					     const struct feed_window *from)
{
	struct nt_message message = feed_envelope(agent, from->to_ms);
	const double steps = from->steps;
	struct feed_calls calls;
	struct nt_gemm gemm;

	feed_calls(from, message.boot_ns, &calls);
	message.body = NT_BODY_WINDOW;
	message.window = (struct nt_window){
		.rank =
			{
				.rank = from->rank,
				.size = from->size,
				.local_rank = from->rank,
				.pid = from->pid ? from->pid : 100 + from->rank,
				.start_boot_ns = feed_boot_ns(agent, from->process_ms),
				.node = agent->name,
				.job = from->job ? from->job : "llm",
				.namespace = "train",
				.pod = from->pod ? from->pod : "",
				.container = "",
				.gpu = from->gpu ? from->gpu : "",
				.cgroup = "",
				.comm = "train",
				.rank_known = !from->rank_unknown,
			},
		.start_boot_ns = feed_boot_ns(agent, from->from_ms),
		.end_boot_ns = message.boot_ns,
		.steps = from->steps,
		.own_tier = from->tier ? from->tier : NT_TIER_T2,
		.own_source = from->own_source,
		.own_ns = (uint64_t)(steps * from->own_ms * (double)MS),
		.host_ns = (uint64_t)(steps * (double)MS),
		.step_ns = (uint64_t)(steps * from->step_ms * (double)MS),
		.comm_ns = (uint64_t)(steps * (from->step_ms - from->own_ms) * (double)MS),
		.uses_gpu = from->gpu != NULL,
		.own_blocked_ns =
			from->gpu ? (uint64_t)(steps * (from->own_ms - 1) * (double)MS) : 0,
		.comm = &calls.comm,
		.comms = from->comm ? 1 : 0,
		.sample = &calls.sample,
		.samples = from->call_ns || from->gpu_call_ns,
		.host = {.on_cpu_ns = 5 * MS, .state = "S"},
		.ended = from->ended,
		.finalized = from->finalized,
		.attempt_hint = from->attempt_hint,
		.unobserved_ns = from->unobserved_ms * MS,
		.shed = from->shed,
		.whereabouts_unknown = from->whereabouts_unknown,
	};
	gemm = (struct nt_gemm){14, 68, from->gemms, from->gemms * 1000000000, 1e14};
	message.window.gemms = (struct nt_gemms){.gemm = &gemm,
						 .gemms = from->gemms > 0,
						 .gpu_ns = from->gemm_gpu_ns,
						 .gpu_inside_ns = from->gemm_gpu_ns / 4};
	if (from->inside)
		message.window.inside = (struct nt_inside_wire){
			.in_call = true,
			.comm = from->comm,
			.op = NT_OP_ALL_REDUCE,
			.number = from->last + 1,
			.since_boot_ns = message.boot_ns - 100 * MS,
		};
	return feed_copy(&message);
}

static inline struct nt_message *feed_heartbeat(struct feed_agent *agent, uint64_t now_ms)
{
	struct nt_message message = feed_envelope(agent, now_ms);

	message.body = NT_BODY_HEARTBEAT;
	message.heartbeat_ranks = 1;
	return feed_copy(&message);
}

/* Encoded as a record of the bus; the caller owns the buffer, which the record borrows. */
static inline struct nt_bus_record feed_record(const struct nt_message *message, struct nt_buf *buf)
{
	nt_buf_clear(buf);
	assert_int_equal(nt_message_encode(message, buf), 0);
	return (struct nt_bus_record){
		.topic = NT_TOPIC_WINDOW,
		.key = message->key,
		.key_len = strlen(message->key),
		.value = buf->data,
		.value_len = buf->len,
		.real_ns = message->real_ns,
	};
}

/* Prints any frame as text, for comparison. */
static inline void feed_print_frame(const struct nt_frame *frame, struct nt_buf *buf)
{
	int r = nt_buf_printf(buf, "frame %llu-%llu complete %.3f of %u\n",
			      (unsigned long long)((frame->start_ns - REAL_0) / 1000),
			      (unsigned long long)((frame->end_ns - REAL_0) / 1000),
			      frame->completeness, frame->expected_ranks);

	for (size_t i = 0; i < frame->ranks && r >= 0; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		r = nt_buf_printf(
			buf,
			" rank %u node %u steps %u tier %u own %llu step %llu window %llu%s%s%s%s",
			rank->rank, rank->node, rank->steps, rank->own_tier,
			(unsigned long long)rank->own_ns, (unsigned long long)rank->step_ns,
			(unsigned long long)rank->window_ns, rank->observed ? " observed" : "",
			rank->silent ? " silent" : "", rank->ended ? " ended" : "",
			rank->inside.in_call ? " inside" : "");
		for (size_t j = 0; j < rank->comms && r >= 0; j++) {
			const struct nt_frame_comm *comm = &rank->comm[j];

			r = nt_buf_printf(buf, " comm %llx/%llx last %llu calls %llu",
					  (unsigned long long)comm->id,
					  (unsigned long long)comm->epoch,
					  (unsigned long long)comm->last,
					  (unsigned long long)(comm->ops ? comm->op[0].calls : 0));
		}
		if (r >= 0)
			r = nt_buf_printf(buf, "\n");
	}
	for (size_t i = 0; i < frame->samples && r >= 0; i++)
		r = nt_buf_printf(buf, " sample %llx/%llx %llu rank %u\n",
				  (unsigned long long)frame->sample[i].comm,
				  (unsigned long long)frame->sample[i].epoch,
				  (unsigned long long)frame->sample[i].number,
				  frame->sample[i].rank);
	assert_true(r >= 0);
}

#endif
