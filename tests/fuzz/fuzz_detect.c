/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frames of any kind, and states of any kind: whatever comes, the detection keeps its rules and
 * what it saves it can load again.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "detect/detect.h"
#include "tests/fuzz/lib/cost.h"

enum {
	MAX_FRAMES = 200,
	MAX_RANKS = 12,
	MAX_COMMS = 3,
	MAX_OPS = 2,
	MAX_CALLS = 3,
	MAX_SAMPLES = 8,
	MAX_TRANSFERS = 4,
	SUM_BYTES = 8,
};

struct input {
	const uint8_t *data;
	size_t size;
};

/* One byte of input becomes a number of any size, more often a likely one. */
static uint8_t byte(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

static uint64_t number(struct input *input)
{
	const uint8_t b = byte(input);

	if (b < 0xc0)
		return (uint64_t)b * 1000000;
	return (uint64_t)1 << (b & 63);
}

struct room {
	struct nt_frame_rank rank[MAX_RANKS];
	struct nt_frame_comm comm[MAX_RANKS][MAX_COMMS];
	struct nt_frame_op op[MAX_RANKS][MAX_COMMS][MAX_OPS];
	struct nt_frame_signature call[MAX_RANKS][MAX_COMMS][MAX_CALLS];
	struct nt_frame_sample sample[MAX_SAMPLES];
	struct nt_frame_transfer transfer[MAX_RANKS][MAX_TRANSFERS];
};

static void make_comm(struct input *input, struct room *room, size_t i, size_t j)
{
	struct nt_frame_comm *comm = &room->comm[i][j];
	const uint8_t b = byte(input);

	*comm = (struct nt_frame_comm){
		.id = b & 7,
		.rank = (uint32_t)i,
		.size = (b >> 3) & 15,
		.epoch = b >> 7,
		.last = byte(input) & 15,
		.rolling_hash = byte(input) & 3,
		.op = room->op[i][j],
		.ops = byte(input) % (MAX_OPS + 1),
		.recent = room->call[i][j],
		.recents = byte(input) % (MAX_CALLS + 1),
	};
	for (size_t k = 0; k < comm->ops; k++)
		room->op[i][j][k] = (struct nt_frame_op){
			.op = byte(input),
			.kind = byte(input) % 6,
			.calls = number(input),
			.bytes = number(input),
			.timed_calls = byte(input),
			.sum_ns = number(input),
			.min_ns = number(input),
		};
	for (size_t k = 0; k < comm->recents; k++)
		room->call[i][j][k] = (struct nt_frame_signature){
			.number = comm->last - k,
			.count = byte(input) & 3,
			.type = byte(input) & 1,
			.op = byte(input) & 3,
		};
}

static void make_rank(struct input *input, struct room *room, size_t i, uint32_t *next,
		      uint64_t end_ns)
{
	struct nt_frame_rank *rank = &room->rank[i];
	const uint8_t flags = byte(input), inside = byte(input);

	*rank = (struct nt_frame_rank){
		.rank = *next,
		.node = byte(input) & 3 ? (uint32_t)i / 4 : NT_FRAME_NO_NODE,
		.steps = byte(input) & 3,
		.own_tier = byte(input) % (NT_FRAME_T3 + 1),
		.rank_known = !(flags & 1),
		.observed = !(flags & 2),
		.silent = (flags & 12) == 12,
		.ended = (flags & 48) == 48,
		.finalized = (flags & 56) == 56,
		.uses_gpu = flags & 64,
		.own_ns = number(input),
		.own_blocked_ns = number(input),
		.host_ns = number(input),
		.blocked_ns = number(input),
		.comm_ns = number(input),
		.step_ns = number(input),
		.ended_ns = end_ns - number(input),
		.window_ns = number(input),
		.on_cpu_ns = number(input),
		.run_queue_ns = number(input),
		.io_ns = number(input),
		.gc_ns = number(input),
		.read_bytes = number(input),
		.state = (char)byte(input),
		.comm = room->comm[i],
		.comms = byte(input) % (MAX_COMMS + 1),
		.stage = flags & 128 ? (int32_t)(i & 1) : -1,
		.replica = -1,
	};
	rank->inside = (struct nt_frame_inside){
		.in_call = inside & 1,
		.synchronising = inside & 2,
		.kind = (inside >> 2) & 7,
		.comm = inside >> 5,
		.number = byte(input) & 15,
		.since_ns = end_ns - number(input) * 100,
		.count = byte(input) & 3,
	};
	for (size_t j = 0; j < rank->comms; j++)
		make_comm(input, room, i, j);
	*next += 1 + (byte(input) == 255);
}

static void make_transfers(struct input *input, struct room *room, size_t i)
{
	struct nt_frame_rank *rank = &room->rank[i];

	rank->nic_retransmits = number(input);
	rank->nic_errors = number(input);
	rank->nic_congestion = number(input);
	rank->transfer = room->transfer[i];
	rank->transfers = byte(input) % (MAX_TRANSFERS + 1);
	for (size_t j = 0; j < rank->transfers; j++) {
		const uint8_t b = byte(input);

		room->transfer[i][j] = (struct nt_frame_transfer){
			.comm = b & 7,
			.peer = (b >> 3) & 15,
			.sends = b >> 7,
			.in_network = b & 4,
			.calls = byte(input),
			.bytes = number(input),
			.min_ns = number(input),
		};
	}
}

static void check_finding(const struct nt_finding *finding, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(finding[i].class < NT_CLASS_END);
		assert(finding[i].state <= NT_INCIDENT_RESOLVED);
		assert(finding[i].severity <= NT_SEVERITY_CRITICAL);
		assert(isfinite(finding[i].slowdown) && finding[i].slowdown >= 0.0);
		assert(isfinite(finding[i].gpu_hours));
		assert(finding[i].confidence >= 0.0 && finding[i].confidence <= 1.0);
		assert(finding[i].evidences <= NT_FINDING_MAX_EVIDENCE);
		for (size_t j = 0; j < finding[i].evidences; j++)
			assert(finding[i].evidence[j].what && finding[i].evidence[j].unit);
		for (size_t j = 0; j < finding[i].culprits; j++) {
			const struct nt_finding_culprit *culprit = &finding[i].culprit[j];

			for (size_t k = 0; k < culprit->peer_count; k++)
				assert(culprit->peers[k] != culprit->rank);
			/* The sanitizer looks whether they are there. */
			for (size_t k = 1; k < culprit->rank_count; k++)
				assert(culprit->ranks[k] != culprit->ranks[k - 1]);
		}
	}
}

/* What was saved loads, and is the same when it is saved again. */
static struct nt_detect *reload(const struct nt_rules *rules, struct nt_detect *detect)
{
	struct nt_detect *loaded = NULL;
	uint8_t *before = NULL, *after = NULL;
	size_t sizes[2] = {0};
	int r;

	r = nt_detect_save(detect, &before, &sizes[0]);
	assert(r == 0);
	r = nt_detect_load(rules, before, sizes[0], &loaded);
	assert(r == 0);
	r = nt_detect_save(loaded, &after, &sizes[1]);
	assert(r == 0 && sizes[0] == sizes[1] && memcmp(before, after, sizes[0]) == 0);
	free(before);
	free(after);
	nt_detect_free(detect);
	return loaded;
}

static struct nt_detect *run_frames(struct input *input, const struct nt_rules *rules,
				    struct nt_detect *detect, uint64_t end_ns)
{
	static struct room room;

	for (int i = 0; i < MAX_FRAMES && input->size; i++) {
		struct nt_frame frame = {.rank = room.rank, .sample = room.sample};
		const struct nt_finding *finding = NULL;
		const uint8_t what = byte(input);
		size_t findings = 0;
		uint32_t next = 0;

		/* Most frames are repeated, so that evidence adds up. */
		const int times = 1 + (what & 31);

		frame.ranks = byte(input) % (MAX_RANKS + 1);
		frame.samples = byte(input) % (MAX_SAMPLES + 1);
		frame.completeness = byte(input) / 200.0;
		for (size_t j = 0; j < frame.ranks; j++)
			make_rank(input, &room, j, &next, end_ns);
		for (size_t j = 0; j < frame.ranks && (what & 3) == 3; j++)
			make_transfers(input, &room, j);
		for (size_t j = 0; j < frame.samples; j++)
			room.sample[j] = (struct nt_frame_sample){
				.comm = j / 4,
				.epoch = 0,
				.number = j / 2,
				.bytes = number(input),
				.op = byte(input),
				.rank = byte(input),
				.arrive_ns = number(input),
				.release_ns = number(input),
			};
		for (int j = 0; j < times; j++) {
			int r;

			frame.start_ns = end_ns;
			frame.end_ns = end_ns += (uint64_t)(1 + (what >> 5)) * 500000000;
			r = nt_detect_step(detect, &frame, &finding, &findings);
			if (r < 0)
				break;
			check_finding(finding, findings);
			nt_detect_open(detect, &finding, &findings);
			check_finding(finding, findings);
		}
		if ((what & 7) == 7)
			nt_detect_rebaseline(detect);
		if ((what & 24) == 24)
			detect = reload(rules, detect);
	}
	return detect;
}

static int run(const uint8_t *data, size_t size)
{
	const struct nt_rules rules = nt_rules_default();
	struct input input = {.data = data, .size = size};
	struct nt_detect *detect = NULL;
	uint64_t end_ns = 1700000000000000000ull;

	if (byte(&input) & 1) {
		/* A state from anywhere, with the sum that a forger would put under it. */
		uint8_t *forged = malloc(input.size + SUM_BYTES);
		uint64_t sum = nt_hash_bytes(NT_HASH_SEED, input.data, input.size);
		int r;

		assert(forged);
		memcpy(forged, input.data, input.size);
		for (size_t i = 0; i < SUM_BYTES; i++)
			forged[input.size + i] = (uint8_t)(sum >> (8 * i));
		r = nt_detect_load(&rules, forged, input.size + SUM_BYTES, &detect);
		free(forged);
		if (r < 0)
			return 0;
		end_ns = UINT64_MAX / 2;
	} else if (nt_detect_new(&rules, 1, 1, &detect) < 0) {
		return 0;
	}
	detect = run_frames(&input, &rules, detect, end_ns);
	nt_detect_free(detect);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 64}, .total = {4 << 20, 1024}, .steps = {2000000, 3000},
	    .cpu_ns = {200000000, 50000})
