/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Agents that say whatever they like, as long as it can be decoded: every six bytes are a message.
 * Frames must be such as the detection takes, and what is saved must load and be the same.
 */
#include <assert.h>
#include <string.h>

#include "aggregator/snapshot_builder.h"
#include "engine/engine.h"
#include "engine/ingest.h"
#include "engine/job_state.h"
#include "tests/fuzz/lib/cost.h"

#define SECOND 1000000000ULL
#define REAL_0 (1700000000ULL * SECOND)

enum {
	MESSAGE_BYTES = 6,
	MAX_MESSAGES = 256,
};

struct world {
	struct nt_engine *engine;
	struct nt_ingest *ingest;
	uint64_t now_ns, seq[4];
};

static void check_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	(void)data;
	(void)job;
	assert(frame->end_ns > frame->start_ns);
	assert(frame->completeness >= 0 && frame->completeness <= 1);
	for (size_t i = 1; i < frame->ranks; i++)
		assert(frame->rank[i - 1].rank < frame->rank[i].rank);
	for (size_t i = 1; i < frame->samples; i++)
		assert(frame->sample[i - 1].comm <= frame->sample[i].comm);
}

/* Small numbers, so that they meet again. */
static void make_window(const uint8_t *byte, uint64_t end_ns, struct nt_window *window,
			struct nt_comm_window *comm, struct nt_sample *sample)
{
	const uint64_t length = (uint64_t)(byte[3] & 15) * SECOND / 8;

	*sample = (struct nt_sample){
		.comm = byte[4] & 3,
		.number = byte[4] >> 4,
		.op = NT_OP_ALL_REDUCE,
		.epoch = byte[4] & 4 ? 1 : byte[2],
		.arrive_boot_ns = end_ns - byte[5] * 1000,
		.release_boot_ns = end_ns,
	};
	*comm = (struct nt_comm_window){
		.id = byte[4] & 3,
		.size = (byte[4] >> 2) & 3,
		.epoch = sample->epoch,
		.last = byte[4] >> 4,
		.id_is_local = byte[5] & 1,
		.numbered_by_library = byte[5] & 2,
		.name = "",
	};
	*window = (struct nt_window){
		.rank =
			{
				.rank = byte[1] & 7,
				.size = byte[1] >> 4,
				.pid = byte[2] & 15,
				.start_boot_ns = end_ns - length - (byte[2] >> 4) * SECOND,
				.node = byte[1] & 8 ? "a" : "b",
				.rank_known = !(byte[5] & 4),
			},
		.start_boot_ns = end_ns - length,
		.end_boot_ns = end_ns,
		.steps = byte[3] >> 4,
		.own_tier = byte[5] & 8 ? NT_TIER_T1 : NT_TIER_T2,
		.own_ns = byte[3] * (SECOND / 256),
		.step_ns = SECOND,
		.comm = comm,
		.comms = byte[5] & 16 ? 1 : 0,
		.sample = sample,
		.samples = byte[5] & 32 ? 1 : 0,
		.ended = byte[5] & 64,
		.uses_gpu = byte[5] & 128,
	};
}

static void push(struct world *world, const uint8_t *byte)
{
	static const char *const key[] = {"one", "two"};
	const size_t stream = byte[0] & 3;
	struct nt_message message = {
		.agent = stream & 1 ? "a" : "b",
		.key = key[stream >> 1],
		.boot = 1,
		.seq = ++world->seq[stream],
		.body = NT_BODY_WINDOW,
	};
	struct nt_message *taken = NULL;
	struct nt_comm_window comm;
	struct nt_sample sample;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = {.topic = NT_TOPIC_WINDOW};

	/* Mostly forward by little, at times by much, or back. */
	world->now_ns += (uint64_t)(byte[0] >> 4) * SECOND / 16;
	if ((byte[0] & 12) == 12)
		world->now_ns += (uint64_t)byte[3] * SECOND;
	if ((byte[0] & 12) == 8)
		message.seq += byte[3] & 3;
	message.boot_ns = 1000000 * SECOND + world->now_ns;
	message.real_ns = REAL_0 + world->now_ns - ((byte[0] & 12) == 4 ? byte[3] * SECOND : 0);
	message.watermark_boot_ns = message.boot_ns;
	if (byte[1] == 255)
		message.body = NT_BODY_HEARTBEAT;
	else
		make_window(byte, message.boot_ns, &message.window, &comm, &sample);
	assert(nt_message_encode(&message, &buf) == 0);
	record.value = buf.data;
	record.value_len = buf.len;
	if (nt_ingest_take(world->ingest, &record, 0, false, &taken) == 1)
		assert(nt_engine_push(world->engine, taken, false) == 0);
}

static void check_saved(struct world *world)
{
	const struct nt_engine_options options = nt_engine_options_default();
	nt_auto(nt_engine) struct nt_engine *loaded = NULL;
	nt_autobuf struct nt_buf before = {0}, after = {0};

	assert(nt_jobs_save(nt_engine_jobs(world->engine), &before) == 0);
	assert(nt_engine_new(&options, NULL, &loaded) == 0);
	assert(nt_jobs_load(nt_engine_jobs(loaded), before.data, before.len) == 0);
	assert(nt_jobs_save(nt_engine_jobs(loaded), &after) == 0);
	assert(before.len == after.len && memcmp(before.data, after.data, before.len) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {.frame = check_frame};
	nt_auto(nt_engine) struct nt_engine *engine = NULL;
	nt_auto(nt_ingest) struct nt_ingest *ingest = NULL;
	struct nt_snapshot *snapshot = NULL;
	struct world world = {0};

	assert(nt_engine_new(&options, &handler, &engine) == 0);
	assert(nt_ingest_new(NULL, NULL, &ingest) == 0);
	world.engine = engine;
	world.ingest = ingest;
	for (size_t i = 0; (i + 1) * MESSAGE_BYTES <= size && i < MAX_MESSAGES; i++)
		push(&world, data + i * MESSAGE_BYTES);
	check_saved(&world);
	assert(nt_engine_sweep(engine, 3600ULL * 1000000000) == 0);
	assert(nt_snapshot_builder_build(
		       &(struct nt_snapshot_builder){.engine = &engine, .engines = 1}, &snapshot) ==
	       0);
	nt_snapshot_release(snapshot);
	assert(nt_engine_finish(engine) == 0);
	assert(nt_engine_counters(engine)->refused_frames == 0);
	return 0;
}

/*
 * Each message may move the clock by minutes, which ends hundreds of frames, and a frame has all ranks so
 * far: bytes times bytes, up to the cap.
 */
FUZZ_TARGET(run, .peak = {1 << 20, 8192}, .total = {64 << 20, 4 << 20},
	    .steps = {20000000, 1000000}, .cpu_ns = {1000000000, 10000000})
