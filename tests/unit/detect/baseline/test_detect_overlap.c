/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work that collectives hide, where they overlap with computing and only they are recorded. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

enum {
	RANKS = 8,
	SLOW = 3,
	LAYERS = 100, /* frames */
};

/* The others compute while they wait for the slow rank in a collective: 10 of their 40 ms show. */
static struct nt_detect *run_hidden(double longest, uint32_t onset, double *ret_step)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	sim_init(&sim, RANKS, 71);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < RANKS; i++) {
		sim.rank[i].device = 10.0 * SIM_MS;
		sim.rank[i].host = 0.0;
		sim.rank[i].longest = 8.0 * SIM_MS;
	}
	sim_pass(&sim, detect, onset);
	sim.rank[SLOW].device *= 6.0;
	sim.rank[SLOW].longest *= longest;
	sim_pass(&sim, detect, LAYERS);
	*ret_step = sim_work(&sim).step;
	sim_free(&sim);
	return detect;
}

/* The other pieces of the rank are as much longer as its longest: 1.5 times. */
static void a_slow_rank_costs_as_much_as_its_longest_piece_says(void **state)
{
	double step;
	struct nt_detect *detect = run_hidden(1.5, 0, &step);
	const struct nt_finding *finding = sim_firing(detect, 0);
	const double cost = 60.0 * SIM_MS * (1.0 - 1.0 / 1.5) / step;

	(void)state;
	assert_names_rank(finding, SLOW);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_true(finding->slowdown < 1.02 / (1.0 - cost));
	assert_true(finding->slowdown > 0.95 / (1.0 - cost));
	assert_true(fabs(finding->evidence[0].peers - 40.0) < 1.0);
	nt_detect_free(detect);
}

/* Something else than the speed of its device: what shows is all that is known. */
static void without_a_longer_piece_it_costs_what_shows(void **state)
{
	double step;
	struct nt_detect *detect = run_hidden(1.02, LAYERS, &step);
	const struct nt_finding *finding = sim_firing(detect, 0);

	(void)state;
	assert_names_rank(finding, SLOW);
	assert_true(finding->slowdown > 0.95 / (1.0 - 50.0 * SIM_MS / step));
	assert_true(fabs(finding->evidence[0].peers - 10.0) < 1.0);
	nt_detect_free(detect);
	/* From the start on it may be the card that is slower by nature, and last in each step. */
	detect = run_hidden(1.02, 0, &step);
	assert_true(!sim_firing(detect, 0) || sim_firing(detect, 0)->severity == NT_SEVERITY_INFO);
	nt_detect_free(detect);
}

/* The last rank of a window shows twice the work of the others, in pieces as long as theirs. */
static void the_last_rank_of_a_window_does_not_take_a_turn(void **state)
{
	for (uint32_t longer = 0; longer < 2; longer++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		(void)state;
		sim_init(&sim, RANKS, 64);
		sim.jitter = 0.01;
		for (uint32_t i = 0; i < RANKS; i++)
			sim.rank[i].longest = 8.0 * SIM_MS;
		for (uint32_t i = 0; i < LAYERS; i++) {
			struct sim_rank *last = &sim.rank[(uint32_t)(sim_uniform(&sim) * RANKS)];

			last->device *= 2.0;
			last->longest *= longer ? 2.0 : 1.0;
			sim_pass(&sim, detect, 1);
			last->device /= 2.0;
			last->longest = 8.0 * SIM_MS;
		}
		if (longer) {
			assert_non_null(sim_firing(detect, 0));
			assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_IMBALANCE);
		} else {
			assert_null(sim_firing(detect, 0));
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/*
 * One is a little slower than the others, and is last more often. The last one shows all of
 * its work, and the others a part: so does it on average, but the job has to wait for others as well.
 */
static void who_is_often_last_is_not_slow(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 2 * RANKS, 90 + seed);
		sim.jitter = 0.01;
		for (uint32_t i = 0; i < 2 * LAYERS; i++) {
			const uint32_t last = sim_uniform(&sim) < 0.05
						      ? SLOW
						      : (uint32_t)(sim_uniform(&sim) * 2 * RANKS);

			for (uint32_t j = 0; j < 2 * RANKS; j++) {
				const double more = j == SLOW ? 0.2 : 0.0;
				const double shown =
					j == last ? 1.0 : 0.2 + more + 0.5 * sim_uniform(&sim);

				sim.rank[j].device = shown * 40.0 * SIM_MS;
				sim.rank[j].host = 0.0;
				sim.rank[j].longest = (6.0 + 2.0 * shown) * SIM_MS;
			}
			sim_pass(&sim, detect, 1);
			/* A note is no accusation. */
			for (size_t j = 0; sim_firing(detect, j); j++)
				assert_int_equal(sim_firing(detect, j)->severity, NT_SEVERITY_INFO);
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* The last rank of most windows, which writes a checkpoint in one of fifteen: one long piece. */
static void the_piece_of_a_checkpoint_is_no_longer_work(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 2 * RANKS, 77);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < LAYERS; i++) {
		for (uint32_t j = 0; j < 2 * RANKS; j++) {
			const double shown = j ? 0.4 + 0.2 * sim_uniform(&sim) : 0.8;

			sim.rank[j].device = shown * 40.0 * SIM_MS;
			sim.rank[j].host = 0.0;
			sim.rank[j].longest = 8.0 * SIM_MS;
		}
		if (i % 15 == 14) {
			sim.rank[0].device += 60.0 * SIM_MS;
			sim.rank[0].longest = 60.0 * SIM_MS;
		}
		sim_pass(&sim, detect, 1);
		assert_accuses_nobody(detect);
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Half of the others wait for its group as a whole: they show less work than those in its group. */
static void the_group_of_a_slow_rank_is_not_slow(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 2 * RANKS, 74);
	sim.jitter = 0.05;
	for (uint32_t i = 0; i < LAYERS; i++) {
		for (uint32_t j = 0; j < 2 * RANKS; j++) {
			const double shown = i < LAYERS / 2 ? 11.0
					     : j == SLOW    ? 24.0
					     : j < RANKS    ? 14.0 - 2.0 * sim_uniform(&sim)
							    : 7.0;

			sim.rank[j].device = shown * SIM_MS;
			sim.rank[j].host = 0.0;
			sim.rank[j].longest = (j == SLOW && i >= LAYERS / 2 ? 6.0 : 2.0) * SIM_MS;
		}
		sim_pass(&sim, detect, 1);
	}
	assert_names_rank(sim_firing(detect, 0), SLOW);
	assert_int_equal(sim_firing(detect, 0)->culprits, 1);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* A rank that becomes slower still does not end the incident of the first one. */
static void a_named_rank_stays_named_beside_a_slower_one(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;
	double hours = 0.0;

	(void)state;
	sim_init(&sim, RANKS, 76);
	sim.jitter = 0.02;
	for (uint32_t j = 0; j < RANKS; j++) {
		sim.rank[j].host = 0.0;
		sim.rank[j].longest = 2.0 * SIM_MS;
	}
	sim.rank[SLOW].device *= 1.4;
	sim.rank[SLOW].longest *= 1.4;
	for (uint32_t i = 0; i < 2 * LAYERS; i++) {
		if (i == LAYERS) {
			assert_names_rank(sim_firing(detect, 0), SLOW);
			sim.rank[6].device *= 2.2;
			sim.rank[6].longest *= 2.2;
		}
		sim_pass(&sim, detect, 1);
		if (i < LAYERS)
			continue;
		assert_names_rank(sim_firing(detect, 0), SLOW);
		assert_true(sim_firing(detect, 0)->gpu_hours > 0.98 * hours);
		hours = fmax(hours, sim_firing(detect, 0)->gpu_hours);
	}
	assert_names_rank(sim_firing(detect, 1), 6);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Ranks that are slow as much acquit none of them. */
static void half_a_role_may_be_slow(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 2 * RANKS, 75);
	sim.jitter = 0.02;
	for (uint32_t j = 0; j < 2 * RANKS; j++) {
		sim.rank[j].host = 0.0;
		sim.rank[j].longest = 2.0 * SIM_MS;
	}
	sim_pass(&sim, detect, LAYERS);
	for (uint32_t j = 0; j < RANKS - 2; j++)
		sim.rank[j].device *= 1.5;
	sim_pass(&sim, detect, LAYERS);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->culprits, RANKS - 2);
	nt_detect_free(detect);
	sim_free(&sim);
}

/*
 * Cards differ by some percent. What shows is how late each is in all collectives of a step together, and
 * differs by much more: evenly, so that none of them is slow.
 */
static void ranks_that_wait_beside_their_work_differ_by_more_than_it(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 4 * RANKS, 78);
	sim.jitter = 0.01;
	for (uint32_t j = 0; j < 4 * RANKS; j++) {
		const double place = j / (4.0 * RANKS - 1.0);

		sim.rank[j].host = 0.0;
		sim.rank[j].device = (29.0 + 24.0 * place * place) * SIM_MS;
		sim.rank[j].longest = (6.0 + 2.4 * place * place) * SIM_MS;
	}
	for (uint32_t i = 0; i < LAYERS; i++) {
		sim_pass(&sim, detect, 1);
		assert_accuses_nobody(detect);
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

/* A third of the ranks, as of a node of three: what shows of the others is small, and equal. */
static void a_third_of_the_ranks_may_be_slow_from_the_start(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 3 * RANKS, 79);
	sim.jitter = 0.02;
	for (uint32_t j = 0; j < 3 * RANKS; j++) {
		sim.rank[j].host = 0.0;
		sim.rank[j].device = (j < RANKS ? 60.0 + 3.0 * j : 10.0) * SIM_MS;
		sim.rank[j].longest = (j < RANKS ? 4.3 : 2.4) * SIM_MS;
	}
	sim_pass(&sim, detect, LAYERS / 2);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	assert_int_equal(sim_firing(detect, 0)->culprits, 1);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].kind, NT_CULPRIT_NODE);
	nt_detect_free(detect);
	sim_free(&sim);
}

/*
 * The other ranks of the slow rank's node wait for it in other collectives than those of the other node, and
 * show less work: two populations, of which it is in neither.
 */
static void a_rank_beyond_two_populations_is_slow(void **state)
{
	for (uint32_t longest = 0; longest < 2; longest++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		(void)state;
		sim_init(&sim, 2 * RANKS, 81);
		sim.jitter = 0.02;
		for (uint32_t j = 0; j < 2 * RANKS; j++) {
			sim.rank[j].host = 0.0;
			sim.rank[j].device = (j == SLOW ? 50.0 : j < RANKS ? 10.0 : 16.0) * SIM_MS;
			sim.rank[j].longest = longest * (j == SLOW ? 4.0 : 2.4) * SIM_MS;
		}
		sim_pass(&sim, detect, LAYERS / 2);
		assert_names_rank(sim_firing(detect, 0), SLOW);
		assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* Some ranks are slow at times, and together: they do not acquit each other. */
static void ranks_that_are_slow_at_times_acquit_none_of_them(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	struct sim sim;

	(void)state;
	sim_init(&sim, 4 * RANKS, 80);
	sim.jitter = 0.02;
	for (uint32_t i = 0, next = 20; i < LAYERS && !finding; i++) {
		const bool slow = i == next;

		next += slow ? 2 + (uint32_t)(6.0 * sim_uniform(&sim)) : 0;
		for (uint32_t j = 0; j < 4 * RANKS; j++) {
			sim.rank[j].host = 0.0;
			sim.rank[j].device =
				(j < SLOW && slow ? 20.0 + 20.0 * sim_uniform(&sim) : 10.0) *
				SIM_MS;
			sim.rank[j].longest = (j < SLOW && slow ? 3.6 : 2.4) * SIM_MS;
		}
		sim_pass(&sim, detect, 1);
		finding = sim_firing(detect, 0);
	}
	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_in_range(finding->culprits, 1, SLOW);
	for (uint32_t i = 0; i < finding->culprits; i++)
		assert_true(finding->culprit[i].rank < SLOW);
	nt_detect_free(detect);
	sim_free(&sim);
}

/*
 * In a pipeline a slow rank makes up for its work while others would have waited for other stages. What
 * it costs is how much later than its peers it enters the collectives at the end.
 */
static void in_a_pipeline_a_slow_rank_costs_what_its_peers_wait(void **state)
{
	for (uint32_t pipeline = 0; pipeline < 2; pipeline++) {
		struct nt_detect *detect = sim_detect();
		const struct nt_finding *finding;
		double step, cost;
		struct sim sim;

		(void)state;
		if (pipeline)
			sim_init_layout(&sim, 1, 2, 4, 73);
		else
			sim_init(&sim, RANKS, 73);
		sim.jitter = 0.01;
		for (uint32_t i = 0; i < RANKS; i++)
			sim.rank[i].collective = i == SLOW ? 2.0 * SIM_MS : 10.0 * SIM_MS;
		sim.rank[SLOW].device *= 1.5;
		sim_pass(&sim, detect, LAYERS);
		step = sim_work(&sim).step;
		cost = (pipeline ? 8.0 * SIM_MS : 35.0 * SIM_MS) / step;
		finding = sim_firing(detect, 0);
		assert_names_rank(finding, SLOW);
		assert_true(finding->slowdown < 1.03 / (1.0 - cost));
		assert_true(finding->slowdown > 0.95 / (1.0 - cost));
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/*
 * Experts exchange within a node, so its other ranks wait for the slow one there. Ranks elsewhere wait for
 * the node in gradients, while they compute: less of their work shows, and as much as before of its own.
 * In window 32 all ranks write a checkpoint, of random length.
 */
static void what_others_hide_is_no_fault_of_those_that_come_last_too(void **state)
{
	static const double work[] = {40.0, 42.0, 44.0, 41.0};

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		(void)state;
		sim_init(&sim, 2 * RANKS, seed + 1);
		sim.jitter = 0.01;
		for (uint32_t window = 0; window < 64; window++) {
			/* A ramp, or in some windows. */
			const double ramp = fmin(1.0, (window - 16.0) / 16.0);
			const double some = sim_uniform(&sim) < 0.4;
			const double slow = window < 16 ? 0.0 : seed % 2 ? some : ramp;

			for (uint32_t i = 0; i < 2 * RANKS; i++) {
				struct sim_rank *rank = &sim.rank[i];

				rank->node = i / 4;
				rank->longest = 8.0 * SIM_MS;
				rank->device = (i < 4 ? work[i] : 40.0 - 12.0 * slow) * SIM_MS;
				if (window == 32)
					rank->device +=
						(600.0 + 100.0 * sim_uniform(&sim)) * SIM_MS;
			}
			sim.rank[SLOW].device *= 1.0 + 0.5 * slow;
			sim.rank[SLOW].longest *= 1.0 + 0.5 * slow;
			sim_pass(&sim, detect, 1);
			for (uint32_t i = 0; sim_firing(detect, i); i++)
				if (sim_firing(detect, i)->severity != NT_SEVERITY_INFO)
					assert_names_rank(sim_firing(detect, i), SLOW);
		}
		assert_true(sim_firing(detect, 0) || seed % 2);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_rank_costs_as_much_as_its_longest_piece_says),
		cmocka_unit_test(without_a_longer_piece_it_costs_what_shows),
		cmocka_unit_test(the_last_rank_of_a_window_does_not_take_a_turn),
		cmocka_unit_test(who_is_often_last_is_not_slow),
		cmocka_unit_test(the_piece_of_a_checkpoint_is_no_longer_work),
		cmocka_unit_test(the_group_of_a_slow_rank_is_not_slow),
		cmocka_unit_test(a_named_rank_stays_named_beside_a_slower_one),
		cmocka_unit_test(half_a_role_may_be_slow),
		cmocka_unit_test(ranks_that_wait_beside_their_work_differ_by_more_than_it),
		cmocka_unit_test(a_third_of_the_ranks_may_be_slow_from_the_start),
		cmocka_unit_test(a_rank_beyond_two_populations_is_slow),
		cmocka_unit_test(ranks_that_are_slow_at_times_acquit_none_of_them),
		cmocka_unit_test(in_a_pipeline_a_slow_rank_costs_what_its_peers_wait),
		cmocka_unit_test(what_others_hide_is_no_fault_of_those_that_come_last_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
