/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Each kind of incident, from its first sign until it is told: every allocation on the way fails
 * once. A job is led to just before it, and saved; a run loads it and goes on.
 */
#include "tests/unit/detect/detect_frames.h"

#include <errno.h>

#include "tests/oom/oom.h"

enum {
	MOST = 120, /* frames until something is told */
	DATA = 0xda7a,
};

struct tale {
	const char *name;
	void (*begin)(struct sim *sim);
	uint32_t healthy; /* frames, before: */
	void (*turn)(struct sim *sim);
	enum nt_class class;
	size_t culprits;
};

/* ---- the tales ------------------------------------------------------------------------------- */

static void begin_data(struct sim *sim)
{
	sim_init(sim, 8, 51);
	sim->jitter = 0.02;
}

static void begin_blocking(struct sim *sim)
{
	begin_data(sim);
	sim->blocking = true;
	sim->comm[0].timed = true;
}

static void begin_nodes(struct sim *sim)
{
	sim_init(sim, 32, 43);
	sim->jitter = 0.02;
	for (uint32_t i = 0; i < 32; i++)
		sim->rank[i].node = i / 8;
}

static void begin_uneven(struct sim *sim)
{
	sim_init_layout(sim, 1, 4, 2, 61);
	sim->jitter = 0.01;
	sim->rank[6].device *= 1.6;
	sim->rank[7].device *= 1.6;
}

/* Its nodes have ranks of all stages. */
static void begin_pipeline(struct sim *sim)
{
	sim_init_layout(sim, 1, 4, 2, 61);
	sim->jitter = 0.01;
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].node = i % 2;
}

static void slow_down_a_stage(struct sim *sim)
{
	sim->rank[6].device *= 1.6;
	sim->rank[7].device *= 1.6;
}

static void begin_halves(struct sim *sim)
{
	sim_init(sim, 8, 65);
	sim->jitter = 0.02;
	for (uint32_t i = 0; i < 4; i++)
		sim->rank[2 * i].device *= 1.3;
}

static void stay(struct sim *sim)
{
	(void)sim;
}

static void slow_down_two(struct sim *sim)
{
	sim->rank[2].device *= 1.5;
	sim->rank[5].device *= 1.5;
}

static void slow_down_a_node(struct sim *sim)
{
	for (uint32_t i = 8; i < 16; i++)
		sim->rank[i].device *= 1.5;
}

static void slow_down_all(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ranks; i++) {
		sim->rank[i].device *= 2.0;
		sim->rank[i].host *= 2.0;
	}
}

static void slow_down_the_network(struct sim *sim)
{
	sim->comm[0].transfer *= 3.0;
}

static void leave_one_behind(struct sim *sim)
{
	sim_stick(sim, DATA, 3);
	sim->rank[3].behind = 1;
}

static void lose_one(struct sim *sim)
{
	leave_one_behind(sim);
	sim->rank[3].ended = true;
	sim->rank[3].ended_ns = sim->now_ns;
}

static void call_another(struct sim *sim)
{
	sim_stick(sim, DATA, UINT32_MAX);
	sim->rank[3].inside_count = 999;
}

/* At T1: all wait for their device, and only the hash tells that one made other calls. */
static void call_another_unseen(struct sim *sim)
{
	sim_stick(sim, DATA, UINT32_MAX);
	for (uint32_t i = 0; i < sim->ranks; i++) {
		sim->rank[i].in_call = false;
		sim->rank[i].synchronising = true;
	}
	sim->rank[3].salt = 9;
}

static void pause_all(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].stuck = true;
	sim->now_ns += 1810ull * SIM_SECOND;
}

static const struct tale tales[] = {
	{"slow ranks", begin_data, 30, slow_down_two, NT_CLASS_COMPUTE, 2},
	{"a slow node", begin_nodes, 12, slow_down_a_node, NT_CLASS_COMPUTE, 1},
	{"an uneven pipeline", begin_uneven, 15, stay, NT_CLASS_IMBALANCE, 1},
	{"a slow stage", begin_pipeline, 60, slow_down_a_stage, NT_CLASS_COMPUTE, 1},
	{"two populations", begin_halves, 15, stay, NT_CLASS_UNKNOWN, 0},
	{"a slower job", begin_data, 60, slow_down_all, NT_CLASS_JOB_WIDE, 0},
	{"a slow network", begin_blocking, 40, slow_down_the_network, NT_CLASS_NETWORK, 1},
	{"a hang", begin_blocking, 30, leave_one_behind, NT_CLASS_HANG, 1},
	{"a rank that is gone", begin_blocking, 30, lose_one, NT_CLASS_MISSING, 1},
	{"another call", begin_blocking, 30, call_another, NT_CLASS_MISMATCH, 1},
	{"another call unseen", begin_blocking, 30, call_another_unseen, NT_CLASS_MISMATCH, 1},
	{"a pause", begin_data, 30, pause_all, NT_CLASS_HANG, 0},
};

/* ---- how they are told ----------------------------------------------------------------------- */

struct load {
	const struct tale *tale;
	struct sim sim;
	uint8_t *data;
	size_t size;
};

static int load_and_find(void *data)
{
	const struct load *load = data;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_finding *finding = NULL;
	struct sim sim = load->sim;
	struct nt_detect *detect = NULL;
	size_t findings = 0;
	int r = nt_detect_load(&rules, load->data, load->size, &detect);

	for (uint32_t i = 0; i < MOST && r == 0 && !finding; i++) {
		r = nt_detect_step(detect, sim_next(&sim), &finding, &findings);
		if (r == 0)
			finding = sim_firing(detect, 0);
	}
	if (r == 0 && (!finding || finding->class != load->tale->class ||
		       finding->culprits != load->tale->culprits))
		r = -EPROTO;
	nt_detect_free(detect);
	return r;
}

static void each_kind_of_incident_survives_failed_allocations(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(tales) / sizeof(tales[0]); i++) {
		struct load load = {.tale = &tales[i]};
		struct nt_detect *detect = sim_detect();
		struct sim ranks;
		size_t swept;

		tales[i].begin(&load.sim);
		sim_pass(&load.sim, detect, tales[i].healthy);
		assert_null(sim_firing(detect, 0));
		assert_int_equal(nt_detect_save(detect, &load.data, &load.size), 0);
		nt_detect_free(detect);
		tales[i].turn(&load.sim);
		ranks = load.sim;
		swept = nt_oom_sweep(load_and_find, &load);
		print_message("%s: %zu allocations\n", tales[i].name, swept);
		assert_true(swept >= 20);
		free(load.data);
		sim_free(&ranks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_incident_survives_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
