/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What must hold for any job: the verdict does not hang on numbering, scale, company or luck. */
#include "tests/unit/detect/detect_frames.h"

#include <errno.h>

#include "detect/model/detector_state.h"

/* A healthy stretch, then a fault on the rank at that place. Answers the delay in frames. */
static uint32_t find_fault(struct sim *sim, uint32_t place, double factor)
{
	struct nt_detect *detect = sim_detect();
	uint32_t delay;

	assert_int_equal(sim_run(sim, detect, 60), 61);
	sim->rank[place].device *= factor;
	sim->rank[place].host *= factor;
	delay = sim_run(sim, detect, 100);
	if (delay <= 100) {
		assert_names_rank(sim_firing(detect, 0), sim->rank[place].rank);
		assert_null(sim_firing(detect, 1));
		assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	}
	nt_detect_free(detect);
	return delay;
}

static void the_numbering_of_ranks_does_not_matter(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct sim sim;
		uint32_t delay;

		sim_init(&sim, 16, 100);
		sim.jitter = 0.02;
		delay = find_fault(&sim, 5, 1.3);
		sim_free(&sim);

		sim_init(&sim, 16, 100);
		sim.jitter = 0.02;
		for (uint32_t i = 0; i < 16; i++)
			sim.rank[i].rank =
				1000 * (uint32_t)seed + (i * (2 * (uint32_t)seed + 1) + 3) % 16;
		assert_int_equal(find_fault(&sim, 5, 1.3), delay);
		sim_free(&sim);
	}
}

static void the_scale_of_time_does_not_matter(void **state)
{
	static const double scales[] = {0.5, 0.7, 1.4, 2.0};

	(void)state;
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		struct sim sim;

		sim_init(&sim, 8, 101);
		sim.jitter = 0.02;
		sim.comm[0].transfer *= scales[i];
		for (uint32_t j = 0; j < 8; j++) {
			sim.rank[j].device *= scales[i];
			sim.rank[j].host *= scales[i];
		}
		assert_in_range(find_fault(&sim, 2, 1.3), 6, 8);
		sim_free(&sim);
	}
}

static void healthy_company_does_not_matter(void **state)
{
	static const uint32_t sizes[] = {5, 6, 7, 8, 12, 24, 96};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sim sim;

		sim_init(&sim, sizes[i], 102);
		sim.jitter = 0.02;
		assert_in_range(find_fault(&sim, 3, 1.3), 6, 8);
		sim_free(&sim);
	}
}

/* Factors that cost more than 3 % of the step, and the windows that they may take to be told. */
static void faults_of_every_size_are_found(void **state)
{
	static const struct {
		double factor;
		uint32_t most;
	} fault[] = {{1.05, 100}, {1.1, 10}, {1.3, 7}, {2.0, 7}, {3.0, 7}};

	(void)state;
	for (size_t i = 0; i < sizeof(fault) / sizeof(fault[0]); i++) {
		uint32_t worst = 0;

		for (uint64_t seed = 0; seed < 5; seed++) {
			struct sim sim;
			uint32_t delay;

			sim_init(&sim, 8, 110 + seed);
			sim.jitter = 0.02;
			delay = find_fault(&sim, (uint32_t)(seed * 3) % 8, fault[i].factor);
			worst = delay > worst ? delay : worst;
			sim_free(&sim);
		}
		print_message("x%.2f: told within %u windows\n", fault[i].factor, worst);
		assert_in_range(worst, 1, fault[i].most);
	}
}

static void single_stalls_and_natural_spread_accuse_nobody(void **state)
{
	static const uint32_t sizes[] = {2, 3, 4, 8, 64};
	static const uint8_t tiers[] = {NT_FRAME_T1, NT_FRAME_T2, NT_FRAME_T3};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			sim_init(&sim, sizes[i], 120 + seed);
			sim.jitter = seed == 1 ? 0.06 : 0.02;
			sim.outliers = seed == 2 ? 0.01 : 0.0;
			for (uint32_t j = 0; j < sizes[i]; j++) {
				if (seed == 3)
					sim.rank[j].device *= 1.0 + 0.02 * sim_gauss(&sim);
				sim.rank[j].tier = tiers[(seed + i) % 3];
			}
			assert_int_equal(sim_run(&sim, detect, 600), 601);
			nt_detect_free(detect);
			sim_free(&sim);
		}
	}
}

/* Windows end at step boundaries: those of some ranks fall into the next frame. */
static void windows_that_fall_into_the_next_frame_change_nothing(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct nt_frame_rank late[8] = {{0}}, shown[8];
	uint32_t fired = 0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 130);
	sim.jitter = 0.02;
	for (uint32_t i = 0; i < 100 && !fired; i++) {
		struct nt_frame frame = *sim_next(&sim);
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		if (i == 60)
			sim.rank[6].device *= 1.5;
		memcpy(shown, frame.rank, sizeof(shown));
		for (uint32_t j = i % 3; j < 8; j += 3) {
			const struct nt_frame_rank held = shown[j];

			/* This frame shows what the last held back, if anything. */
			shown[j] = late[j].comm ? late[j] : held;
			shown[j].comm = held.comm;
			shown[j].comms = held.comms;
			if (!late[j].comm) {
				shown[j].steps = 0;
				shown[j].own_ns = shown[j].own_blocked_ns = shown[j].host_ns = 0;
				shown[j].blocked_ns = shown[j].comm_ns = shown[j].step_ns = 0;
			}
			late[j] = held;
		}
		frame.rank = shown;
		assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			if (finding[j].state == NT_INCIDENT_FIRING)
				fired = i;
	}
	assert_in_range(fired, 64, 90);
	assert_names_rank(sim_firing(detect, 0), 6);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void lost_messages_do_not_change_the_verdict(void **state)
{
	struct nt_detect *detect = sim_detect();
	bool accused = false;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 131);
	sim.jitter = 0.02;
	for (uint32_t i = 0; i < 300; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		if (i == 200)
			sim.rank[6].device *= 1.3;
		(void)sim_next(&sim);
		for (uint32_t j = 0; j < 8; j++)
			if (sim_uniform(&sim) < 0.03)
				sim.out[j].observed = false;
		assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), 0);
		accused |= i < 200 && sim_firing(detect, 0);
	}
	assert_false(accused);
	assert_names_rank(sim_firing(detect, 0), 6);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void wild_numbers_accuse_nobody(void **state)
{
	static const uint64_t wild[] = {0, 1, 1000000000000000000ull, UINT64_MAX / 2, UINT64_MAX};
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 132);
	sim.jitter = 0.02;
	sim.comm[0].timed = true;
	for (uint32_t i = 0; i < 600; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;
		struct nt_frame_rank *rank;
		uint64_t value;

		(void)sim_next(&sim);
		rank = &sim.out[i % 8];
		value = wild[(size_t)(sim_uniform(&sim) * 5.0)];
		rank->own_ns = rank->own_blocked_ns = rank->host_ns = value;
		if (i % 2)
			rank->step_ns = value;
		if (i % 3)
			rank->blocked_ns = rank->comm_ns = rank->window_ns = value;
		if (i % 5 == 0)
			rank->on_cpu_ns = rank->run_queue_ns = rank->io_ns = rank->gc_ns = value;
		if (i % 7 == 0)
			sim.out_op[i % 8].min_ns = sim.out_op[i % 8].calls = value;
		sim.frame.completeness = i % 11 ? 1.0 : NAN;
		assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++) {
			assert_true(finding[j].culprits == 0 ||
				    finding[j].state != NT_INCIDENT_FIRING);
			assert_true(isfinite(finding[j].slowdown) &&
				    isfinite(finding[j].gpu_hours));
			assert_true(finding[j].confidence >= 0.0 && finding[j].confidence <= 1.0);
		}
	}
	assert_true(detect->implausible > 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_rank_with_nonsense_for_ever_is_not_accused(void **state)
{
	static const uint64_t wild[] = {1000000000000000000ull, UINT64_MAX};

	(void)state;
	for (int w = 0; w < 2; w++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 8, 133);
		sim.jitter = 0.02;
		for (uint32_t i = 0; i < 100; i++) {
			const struct nt_finding *finding = NULL;
			size_t findings = 0;

			(void)sim_next(&sim);
			sim.out[3].own_ns = wild[w];
			assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings),
					 0);
			assert_null(sim_firing(detect, 0));
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void frames_that_break_their_rules_are_refused_and_change_nothing(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	uint8_t *before = NULL, *after = NULL;
	size_t findings = 0, sizes[2];
	struct nt_frame bad;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 134);
	sim_pass(&sim, detect, 30);
	assert_int_equal(nt_detect_save(detect, &before, &sizes[0]), 0);
	(void)sim_next(&sim);

	bad = sim.frame;
	bad.end_ns = bad.start_ns - 1;
	assert_int_equal(nt_detect_step(detect, &bad, &finding, &findings), -EINVAL);
	bad = sim.frame;
	bad.start_ns = bad.end_ns = 5;
	assert_int_equal(nt_detect_step(detect, &bad, &finding, &findings), -EINVAL);
	bad = sim.frame;
	bad.ranks = NT_FRAME_MAX_RANKS + 1;
	assert_int_equal(nt_detect_step(detect, &bad, &finding, &findings), -EINVAL);
	sim.out[4].rank = sim.out[3].rank;
	assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), -EINVAL);
	sim.out[4].rank = 4;
	sim.out[4].comms = NT_FRAME_MAX_COMMS + 1;
	assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), -EINVAL);
	sim.out[4].comms = 1;
	sim.out[4].own_tier = 9;
	assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), -EINVAL);
	sim.out[4].own_tier = NT_FRAME_T2;
	sim.out_comm[4].recents = NT_FRAME_RECENT + 1;
	assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), -EINVAL);
	sim.out_comm[4].recents = 1;

	assert_int_equal(nt_detect_save(detect, &after, &sizes[1]), 0);
	assert_int_equal(sizes[0], sizes[1]);
	assert_memory_equal(before, after, sizes[0]);
	assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), 0);
	free(before);
	free(after);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void numbers_that_change_with_every_frame_reach_the_cap_and_are_counted(void **state)
{
	enum {
		PART = NT_FRAME_MAX_RANKS / 2 - 1,
	};
	struct nt_frame_rank *rank = calloc(PART, sizeof(*rank));
	struct nt_frame frame = {.end_ns = 1, .rank = rank, .ranks = PART, .completeness = 1.0};
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	size_t findings;

	(void)state;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < PART; i++)
			rank[i] = (struct nt_frame_rank){
				.rank = round * PART + i, .observed = true, .stage = -1};
		assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
	}
	assert_int_equal(detect->ranks, 2 * PART);
	assert_int_equal(detect->dropped_ranks, PART);
	nt_detect_free(detect);
	free(rank);
}

static void an_empty_frame_is_no_news(void **state)
{
	struct nt_frame frame = {.completeness = 1.0};
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct nt_detect_rank_view view;
	size_t findings;

	(void)state;
	for (int i = 0; i < 10; i++) {
		frame.end_ns += SIM_SECOND;
		assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
		assert_int_equal(findings, 0);
	}
	assert_false(nt_detect_rank(detect, 0, &view));
	nt_detect_free(detect);
}

static void a_rank_is_seen_as_the_rules_saw_it(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct nt_detect_rank_view view;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 135);
	sim_pass(&sim, detect, 30);
	sim.rank[3].device *= 2.0;
	sim_pass(&sim, detect, 3);
	assert_true(nt_detect_rank(detect, 3, &view));
	assert_true(view.own_observable);
	assert_int_equal(view.tier, NT_FRAME_T2);
	assert_int_equal(view.peer_count, 7);
	assert_true(fabs(view.own_ns - 150.0 * SIM_MS) < 1000.0);
	assert_true(fabs(view.own_peers_ns - 80.0 * SIM_MS) < 1000.0);
	assert_true(fabs(view.host_ns - 10.0 * SIM_MS) < 1000.0);
	assert_true(fabs(view.peer_deviation - 0.875) < 1e-3);
	assert_true(view.cusum == 6.0);
	assert_true(view.threshold > 10.0 && view.threshold < 11.5);
	assert_true(view.width == 0.01);
	assert_false(nt_detect_rank(detect, 8, &view));
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_numbering_of_ranks_does_not_matter),
		cmocka_unit_test(the_scale_of_time_does_not_matter),
		cmocka_unit_test(healthy_company_does_not_matter),
		cmocka_unit_test(faults_of_every_size_are_found),
		cmocka_unit_test(single_stalls_and_natural_spread_accuse_nobody),
		cmocka_unit_test(windows_that_fall_into_the_next_frame_change_nothing),
		cmocka_unit_test(lost_messages_do_not_change_the_verdict),
		cmocka_unit_test(wild_numbers_accuse_nobody),
		cmocka_unit_test(a_rank_with_nonsense_for_ever_is_not_accused),
		cmocka_unit_test(frames_that_break_their_rules_are_refused_and_change_nothing),
		cmocka_unit_test(
			numbers_that_change_with_every_frame_reach_the_cap_and_are_counted),
		cmocka_unit_test(an_empty_frame_is_no_news),
		cmocka_unit_test(a_rank_is_seen_as_the_rules_saw_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
