/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Histories of jobs: the changes made before each frame. */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_LIVES_H
#define NT_TESTS_UNIT_DETECT_DETECT_LIVES_H

#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

struct life {
	const char *name;
	uint32_t frames;
	void (*begin)(struct sim *sim);
	/* Before each frame. */
	void (*turn)(struct sim *sim, struct nt_detect *detect, uint32_t frame);
};

static inline void slow(struct sim *sim, uint32_t rank, double factor)
{
	sim->rank[rank].device *= factor;
}

static inline void begin_data(struct sim *sim)
{
	sim_init(sim, 8, 201);
	sim->jitter = 0.02;
}

/* Two healthy ranks differ inherently; one slows down and recovers; another's host stalls. */
static inline void turn_data(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 0) {
		slow(sim, 0, 1.06);
		slow(sim, 1, 0.95);
	}
	if (frame == 30)
		slow(sim, 4, 1.4);
	if (frame == 50)
		slow(sim, 0, 1.15);
	if (frame == 65)
		slow(sim, 4, 1.0 / 1.4);
	if (frame == 90) {
		sim->rank[6].host += 35.0 * SIM_MS;
		sim->rank[6].io = 30.0 * SIM_MS;
		sim->rank[6].read = 5 << 20;
	}
	if (frame == 110)
		sim->rank[6].host -= 35.0 * SIM_MS;
}

/* Culprits of two classes in one incident; the class follows the worst. */
static inline void turn_classes(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30) {
		slow(sim, 2, 1.5);
		sim->rank[5].host += 30.0 * SIM_MS;
		sim->rank[5].gc = 25.0 * SIM_MS;
	}
	if (frame == 45)
		sim->rank[5].host += 40.0 * SIM_MS;
	if (frame == 60)
		slow(sim, 2, 2.0);
	if (frame == 75)
		sim->rank[5].host -= 70.0 * SIM_MS;
	if (frame == 100)
		slow(sim, 2, 1.0 / 3.0);
}

static inline void begin_t1(struct sim *sim)
{
	begin_data(sim);
	for (uint32_t i = 0; i < 8; i++)
		sim->rank[i].tier = NT_FRAME_T1;
}

static inline void turn_t1(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30)
		slow(sim, 1, 2.0);
	if (frame == 45)
		slow(sim, 1, 0.5);
	if (frame == 55) {
		sim->rank[3].host += 30.0 * SIM_MS;
		sim->rank[3].run_queue = 28.0 * SIM_MS;
	}
	if (frame == 75)
		sim->rank[3].host -= 30.0 * SIM_MS;
	/* A device that is hardly ever awaited. */
	if (frame == 110)
		for (uint32_t i = 0; i < 8; i++)
			sim->rank[i].device = 0.5 * SIM_MS;
	if (frame == 130)
		sim->rank[2].host += 8.0 * SIM_MS;
}

static inline void begin_layout(struct sim *sim)
{
	sim_init_layout(sim, 2, 2, 4, 202);
	sim->jitter = 0.015;
	for (uint32_t i = 0; i < 16; i++)
		sim->rank[i].node = i / 4;
}

/* A rank, then the rest of its node; the last stage becomes longer; ranks change their tier. */
static inline void turn_layout(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 25)
		slow(sim, 5, 1.5);
	if (frame == 40)
		for (uint32_t i = 4; i < 8; i++)
			slow(sim, i, i == 5 ? 1.0 : 1.5);
	if (frame == 70)
		for (uint32_t i = 4; i < 8; i++)
			slow(sim, i, 1.0 / 1.5);
	if (frame == 80)
		for (uint32_t i = 8; i < 16; i++)
			slow(sim, i, 1.4);
	if (frame == 115)
		for (uint32_t i = 0; i < 16; i++)
			sim->rank[i].tier = NT_FRAME_T3;
	if (frame == 140)
		slow(sim, 9, 1.3);
}

static inline void begin_network(struct sim *sim)
{
	sim_init(sim, 8, 203);
	sim->jitter = 0.02;
	sim->blocking = true;
	sim->comm[0].timed = true;
	sim->lateness = 0.3 * SIM_MS;
}

static inline void turn_network(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30)
		sim->comm[0].transfer *= 2.5;
	if (frame == 50)
		sim->comm[0].transfer /= 2.5;
	if (frame == 70)
		sim->comm[0].timed = sim->blocking = false;
	if (frame == 100)
		sim->comm[0].transfer *= 3.0;
	if (frame == 120)
		sim->comm[0].transfer /= 3.0;
}

static inline void begin_stall(struct sim *sim)
{
	sim_init_layout(sim, 2, 1, 4, 204);
	sim->jitter = 0.02;
	sim->blocking = true;
}

/* A checkpoint on rank 0 that turns into a hang; a mismatch; a lost rank; the end. */
static inline void turn_stall(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	const uint64_t data = sim->comm[4].id;

	(void)detect;
	if (frame == 25) {
		sim_stick(sim, data, 0);
		for (uint32_t i = 1; i < 8; i += 2) {
			/* The other half uses the second group; its rank 1 waits for rank 0. */
			sim->rank[i].inside_comm = i == 1 ? sim->comm[0].id : sim->comm[5].id;
			sim->rank[i].inside_number =
				i == 1 ? sim->comm[0].last + 1 : sim->comm[5].last + 1;
		}
		sim->rank[0].behind = 1;
		sim->rank[0].write = 64 << 20;
	}
	if (frame == 120) {
		sim_unstick(sim);
		sim->rank[0].write = 0;
	}
	if (frame == 140) {
		sim_stick(sim, data, UINT32_MAX);
		for (uint32_t i = 1; i < 8; i += 2) {
			sim->rank[i].inside_comm = sim->comm[5].id;
			sim->rank[i].inside_number = sim->comm[5].last;
		}
		sim->rank[4].inside_op = 5;
		sim->rank[4].inside_count = 12;
		sim->rank[4].inside_type = 3;
	}
	if (frame == 155)
		sim_unstick(sim);
	if (frame == 165) {
		sim_stick(sim, data, 2);
		sim->rank[2].ended = true;
		sim->rank[2].ended_ns = sim->now_ns;
	}
	if (frame == 190)
		for (uint32_t i = 0; i < 8; i++)
			sim->rank[i].ended = true;
}

/* T1: a rank that blocks in a synchronising call is inside the call it enqueued last. */
static inline void turn_stall_t1(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 0)
		for (uint32_t i = 0; i < 8; i++)
			sim->rank[i].tier = NT_FRAME_T1;
	if (frame != 25 && frame != 90 && frame != 120)
		return;
	sim_unstick(sim);
	if (frame == 90)
		return;
	sim_stick(sim, 0xa11, frame == 25 ? 6 : UINT32_MAX);
	for (uint32_t i = 0; i < 8; i++) {
		sim->rank[i].synchronising = sim->rank[i].in_call;
		sim->rank[i].in_call = false;
	}
	if (frame == 25)
		sim->rank[6].behind = 2;
}

/* All ranks change: garbage collection, then twice the work, which becomes normal; then a pause. */
static inline void turn_wide(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	for (uint32_t i = 0; i < 8; i++) {
		struct sim_rank *rank = &sim->rank[i];

		if (frame == 50) {
			rank->host += 25.0 * SIM_MS;
			rank->gc = 20.0 * SIM_MS;
		}
		if (frame == 75) {
			rank->host -= 25.0 * SIM_MS;
			rank->gc = 0.0;
		}
		if (frame == 100) {
			rank->host *= 2.0;
			rank->device *= 2.0;
		}
		if (frame == 230)
			rank->stuck = true;
		if (frame == 380)
			rank->stuck = false;
	}
	if (frame == 200)
		slow(sim, 3, 1.4);
	if (frame == 215)
		nt_detect_rebaseline(detect);
}

static inline void begin_halves(struct sim *sim)
{
	sim_init(sim, 6, 205);
	sim->jitter = 0.01;
	for (uint32_t i = 0; i < 3; i++)
		slow(sim, i, 1.3);
}

static inline void turn_halves(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 45)
		for (uint32_t i = 0; i < 3; i++)
			slow(sim, i, 1.0 / 1.3);
	if (frame == 90)
		for (uint32_t i = 2; i < 5; i++)
			slow(sim, i, 1.4);
	if (frame == 110)
		for (uint32_t i = 2; i < 5; i++)
			slow(sim, i, 1.0 / 1.4);
}

static inline void begin_pair(struct sim *sim)
{
	sim_init(sim, 2, 206);
	sim->jitter = 0.01;
	slow(sim, 1, 1.25);
}

static inline void turn_pair(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 50)
		slow(sim, 0, 1.3);
	if (frame == 70)
		slow(sim, 0, 1.0 / 1.3);
}

static inline void begin_four(struct sim *sim)
{
	sim_init(sim, 4, 207);
	sim->jitter = 0.01;
	slow(sim, 2, 1.2);
}

static inline void turn_four(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30)
		slow(sim, 2, 1.0 / 1.2);
	if (frame == 70)
		slow(sim, 1, 1.15);
	if (frame == 90)
		slow(sim, 1, 1.0 / 1.15);
}

static inline void begin_uneven(struct sim *sim)
{
	sim_init(sim, 8, 208);
	sim->jitter = 0.01;
}

static inline void turn_uneven(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	static const uint8_t order[] = {3, 1, 6, 0, 5, 2, 7, 4, 1, 5};

	(void)detect;
	for (uint32_t i = 0; i < 8; i++)
		sim->rank[i].device = 70.0 * SIM_MS;
	if (frame < 70)
		slow(sim, order[frame % 10], 1.5);
}

/* Lost messages, a late rank, a silent agent, a guessed rank number. */
static inline void turn_lossy(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	for (uint32_t i = 0; i < 8; i++) {
		sim->rank[i].absent = sim_uniform(sim) < 0.05;
		sim->rank[i].known = i != 6;
	}
	sim->rank[7].absent = frame < 10;
	sim->rank[1].silent = frame >= 70 && frame < 90;
	sim->completeness = 0.95;
	if (frame == 40)
		slow(sim, 3, 1.4);
	if (frame == 60)
		slow(sim, 6, 1.6);
	if (frame == 100)
		slow(sim, 3, 1.0 / 1.4);
}

/* No GPU: the thread's time is own work; the library spins while waiting. */
static inline void begin_cpu(struct sim *sim)
{
	sim_init(sim, 6, 209);
	sim->jitter = 0.02;
	sim->blocking = true;
	for (uint32_t i = 0; i < 6; i++) {
		sim->rank[i].no_gpu = true;
		sim->rank[i].host = 80.0 * SIM_MS;
		sim->rank[i].device = 0.0;
		sim->rank[i].on_cpu = 78.0 * SIM_MS;
	}
}

static inline void turn_cpu(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30) {
		sim->rank[1].host *= 1.3;
		sim->rank[1].on_cpu *= 1.3;
	}
	if (frame == 45) {
		sim->rank[1].host /= 1.3;
		sim->rank[1].on_cpu /= 1.3;
	}
	if (frame == 70)
		sim->rank[4].host *= 1.4;
	if (frame == 90)
		sim->rank[4].faults = 1000;
}

/* Three ranks of a pipeline: each is compared with its own history only. */
static inline void begin_pipeline(struct sim *sim)
{
	sim_init_layout(sim, 1, 3, 1, 210);
	sim->jitter = 0.02;
	slow(sim, 2, 1.3);
}

static inline void turn_pipeline(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 40)
		slow(sim, 1, 1.25);
	if (frame == 60)
		slow(sim, 1, 0.8);
	if (frame == 90)
		for (uint32_t i = 0; i < 3; i++)
			slow(sim, i, 1.5);
}

/* Hashes diverge permanently; another rank diverges too and recovers. */
static inline void turn_hashes(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 20) {
		sim->rank[2].salt = 9;
		sim->rank[2].odd_count = 77;
	}
	if (frame == 22)
		sim->rank[2].odd_count = 0;
	if (frame == 35)
		sim->rank[2].salt = 0;
	if (frame == 40) {
		sim->rank[5].salt = sim->rank[6].salt = 4;
		sim->rank[5].odd_op = sim->rank[6].odd_op = 2;
	}
	if (frame == 50)
		sim->rank[5].salt = sim->rank[6].salt = 0;
}

static const struct life lives[] = {
	{"data", 150, begin_data, turn_data},
	{"classes", 150, begin_data, turn_classes},
	{"t1", 160, begin_t1, turn_t1},
	{"layout", 180, begin_layout, turn_layout},
	{"network", 160, begin_network, turn_network},
	{"stall", 195, begin_stall, turn_stall},
	{"stall-t1", 180, begin_stall, turn_stall_t1},
	{"wide", 400, begin_data, turn_wide},
	{"halves", 160, begin_halves, turn_halves},
	{"pair", 110, begin_pair, turn_pair},
	{"four", 130, begin_four, turn_four},
	{"uneven", 120, begin_uneven, turn_uneven},
	{"lossy", 160, begin_data, turn_lossy},
	{"cpu", 110, begin_cpu, turn_cpu},
	{"pipeline", 130, begin_pipeline, turn_pipeline},
	{"hashes", 70, begin_data, turn_hashes},
};

static inline struct nt_rules hasty_rules(void)
{
	struct nt_rules rules = nt_rules_default();

	rules.resolve_min_ns = 6ull * SIM_SECOND;
	rules.new_normal_ns = 40ull * SIM_SECOND;
	rules.silence_floor_ns = 50ull * SIM_SECOND;
	rules.slow_host_ns = 30ull * SIM_SECOND;
	rules.young_ns = rules.slow_host_ns;
	return rules;
}

static inline struct nt_detect *reload(const struct nt_rules *rules, struct nt_detect *detect)
{
	struct nt_detect *loaded = NULL;
	uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(nt_detect_load(rules, data, size, &loaded), 0);
	free(data);
	nt_detect_free(detect);
	return loaded;
}

#endif
