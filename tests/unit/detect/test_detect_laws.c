/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What must hold of whole jobs of any layout: other numbers for the ranks, another scale of time, more
 * healthy company and nonsense from one of them name nobody else.
 */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

enum {
	TP = 2,
	PP = 2,
	MOST_RANKS = 64,
	HEALTHY_FRAMES = 40,
	FAULTY_FRAMES = 40,
	MOST_NAMED = 16,
};

/* Everybody that an incident which fired ever named, and how often. */
struct named {
	uint32_t rank[MOST_NAMED], class[MOST_NAMED], n;
};

static void note(struct named *named, const struct nt_finding *finding)
{
	if (finding->state != NT_INCIDENT_FIRING)
		return;
	for (size_t i = 0; i < finding->culprits; i++) {
		const uint32_t rank = finding->culprit[i].rank;
		uint32_t at = 0;

		assert_int_equal(finding->culprit[i].kind, NT_CULPRIT_RANK);
		while (at < named->n && named->rank[at] != rank)
			at++;
		assert_true(at < MOST_NAMED);
		named->rank[at] = rank;
		named->class[at] = finding->class;
		named->n += at == named->n;
	}
}

/* One frame of the job, as somebody else would see it. */
typedef void (*alter_fn)(struct sim *sim, const void *how);

static struct named live(struct sim *sim, const uint32_t *slow, uint32_t slows, alter_fn alter,
			 const void *how)
{
	struct nt_detect *detect = sim_detect();
	struct named named = {.n = 0};

	for (uint32_t i = 0; i < HEALTHY_FRAMES + FAULTY_FRAMES; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		for (uint32_t j = 0; i == HEALTHY_FRAMES && j < slows; j++) {
			sim->rank[slow[j]].device *= 1.4;
			sim->rank[slow[j]].host *= 1.4;
		}
		(void)sim_next(sim);
		if (alter)
			alter(sim, how);
		assert_int_equal(nt_detect_step(detect, &sim->frame, &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			note(&named, &finding[j]);
	}
	nt_detect_free(detect);
	return named;
}

static bool names(const struct named *named, uint32_t rank)
{
	for (uint32_t i = 0; i < named->n; i++)
		if (named->rank[i] == rank && named->class[i] == NT_CLASS_COMPUTE)
			return true;
	return false;
}

/* ---- other numbers ---------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct nt_frame_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void renumber(struct sim *sim, const void *how)
{
	const uint32_t *number = how;

	for (size_t i = 0; i < sim->frame.ranks; i++)
		sim->out[i].rank = number[sim->out[i].rank];
	qsort(sim->out, sim->frame.ranks, sizeof(*sim->out), by_rank);
}

static void other_numbers_for_the_ranks_name_the_same_ranks_by_their_numbers(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		const uint32_t dp = 4 + (uint32_t)seed, ranks = TP * PP * dp;
		const uint32_t slow[] = {3 % ranks, (uint32_t)(ranks - 1 - seed)};
		uint32_t number[MOST_RANKS];
		struct named was, now;
		struct sim sim, draws = {.seed = 900 + seed};

		for (uint32_t i = 0; i < ranks; i++)
			number[i] = i;
		for (uint32_t i = ranks - 1; i > 0; i--) {
			const uint32_t j = (uint32_t)(sim_uniform(&draws) * (i + 1));
			const uint32_t swap = number[i];

			number[i] = number[j];
			number[j] = swap;
		}
		sim_init_layout(&sim, TP, PP, dp, seed);
		sim.jitter = 0.02;
		was = live(&sim, slow, 2, NULL, NULL);
		sim_free(&sim);
		sim_init_layout(&sim, TP, PP, dp, seed);
		sim.jitter = 0.02;
		now = live(&sim, slow, 2, renumber, number);
		sim_free(&sim);

		assert_int_equal(was.n, 2);
		assert_int_equal(now.n, 2);
		for (uint32_t i = 0; i < 2; i++) {
			assert_true(names(&was, slow[i]));
			assert_true(names(&now, number[slow[i]]));
		}
	}
}

/* ---- another scale ---------------------------------------------------------------------------------- */

static void scale_up(uint64_t *value, double scale)
{
	*value = (uint64_t)((double)*value * scale);
}

/* All durations of what happened; the job then takes so much longer, or less long. */
static void stretch(struct sim *sim, const void *how)
{
	const double scale = *(const double *)how;
	const uint64_t first_ns = 1700000000ull * SIM_SECOND;

	for (size_t i = 0; i < sim->frame.ranks; i++) {
		struct nt_frame_rank *rank = &sim->out[i];
		uint64_t *const value[] = {
			&rank->own_ns,     &rank->own_blocked_ns, &rank->host_ns,
			&rank->blocked_ns, &rank->comm_ns,        &rank->step_ns,
			&rank->window_ns,  &rank->on_cpu_ns,      &rank->run_queue_ns};

		for (size_t j = 0; j < sizeof(value) / sizeof(value[0]); j++)
			scale_up(value[j], scale);
	}
	sim->frame.start_ns =
		first_ns + (uint64_t)((double)(sim->frame.start_ns - first_ns) * scale);
	sim->frame.end_ns = first_ns + (uint64_t)((double)(sim->frame.end_ns - first_ns) * scale);
}

static void another_scale_of_time_changes_no_culprit(void **state)
{
	static const double scales[] = {0.5, 0.6, 0.8, 1.0, 1.3, 1.7, 2.0};

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
			const uint32_t slow[] = {6, 17};
			struct named named;
			struct sim sim;

			sim_init_layout(&sim, TP, PP, 6, 20 + seed);
			sim.jitter = 0.02;
			named = live(&sim, slow, 2, stretch, &scales[i]);
			assert_int_equal(named.n, 2);
			assert_true(names(&named, 6) && names(&named, 17));
			sim_free(&sim);
		}
}

/* ---- more company ----------------------------------------------------------------------------------- */

static void more_healthy_ranks_change_no_culprit(void **state)
{
	static const uint32_t replicas[] = {5, 6, 8, 12, 16, 20};

	(void)state;
	for (size_t i = 0; i < sizeof(replicas) / sizeof(replicas[0]); i++) {
		/* Rank 6: the same tensor place and stage whatever the number of replicas. */
		const uint32_t slow[] = {6};
		struct named named;
		struct sim sim;

		sim_init_layout(&sim, TP, PP, replicas[i], 40);
		sim.jitter = 0.02;
		named = live(&sim, slow, 1, NULL, NULL);
		assert_int_equal(named.n, 1);
		assert_true(names(&named, 6));
		sim_free(&sim);
	}
}

/* ---- nonsense --------------------------------------------------------------------------------------- */

enum {
	NONSENSE = 6,
};

static const uint64_t nonsense[NONSENSE] = {
	0, 1, 1000000000000000000ull, (uint64_t)-1000000, UINT64_MAX / 2, UINT64_MAX};

struct liar {
	struct sim *draws;
	uint32_t rank;
	bool times; /* of the frame's samples and ends, too */
};

static uint64_t draw_nonsense(struct sim *draws)
{
	return nonsense[(size_t)(sim_uniform(draws) * NONSENSE)];
}

/* One rank says whatever it likes, all the time; the others go on. */
static void lie(struct sim *sim, const void *how)
{
	const struct liar *liar = how;
	struct nt_frame_rank *rank = &sim->out[liar->rank];
	uint64_t *const value[] = {&rank->own_ns,          &rank->own_blocked_ns,
				   &rank->host_ns,         &rank->blocked_ns,
				   &rank->comm_ns,         &rank->step_ns,
				   &rank->window_ns,       &rank->on_cpu_ns,
				   &rank->run_queue_ns,    &rank->io_ns,
				   &rank->gc_ns,           &rank->read_bytes,
				   &rank->write_bytes,     &rank->major_faults,
				   &rank->launches,        &rank->lost,
				   &rank->process_cpu_ns,  &rank->gpu_thermal_ns,
				   &rank->gpu_power_ns,    &rank->gpu_hardware_ns,
				   &rank->gpu_uncorrected, &rank->gpu_activity_ns,
				   &rank->gpu_sm_ns,       &rank->gpu_tensor_ns};

	for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++)
		if (sim_uniform(liar->draws) < 0.5)
			*value[i] = draw_nonsense(liar->draws);
	/* What it says of its work is nonsense every time. */
	rank->own_ns = nonsense[2 + (size_t)(sim_uniform(liar->draws) * (NONSENSE - 2))];
	if (sim_uniform(liar->draws) < 0.1)
		sim->frame.completeness = sim_uniform(liar->draws) < 0.5 ? NAN : -1e18;
	if (sim_uniform(liar->draws) < 0.1)
		sim->frame.missed_ns = sim_uniform(liar->draws) < 0.5 ? INFINITY : NAN;
}

static void nonsense_from_one_rank_accuses_nobody_and_hides_nobody(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim draws = {.seed = 60 + seed};
		const struct liar liar = {.draws = &draws, .rank = (uint32_t)(seed * 5) % 24};
		const uint32_t slow[] = {(liar.rank + 7) % 24};
		struct named named;
		struct sim sim;

		sim_init_layout(&sim, TP, PP, 6, 50 + seed);
		sim.jitter = 0.02;
		named = live(&sim, NULL, 0, lie, &liar);
		assert_int_equal(named.n, 0);
		sim_free(&sim);

		sim_init_layout(&sim, TP, PP, 6, 50 + seed);
		sim.jitter = 0.02;
		named = live(&sim, slow, 1, lie, &liar);
		assert_int_equal(named.n, 1);
		assert_true(names(&named, slow[0]));
		sim_free(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_numbers_for_the_ranks_name_the_same_ranks_by_their_numbers),
		cmocka_unit_test(another_scale_of_time_changes_no_culprit),
		cmocka_unit_test(more_healthy_ranks_change_no_culprit),
		cmocka_unit_test(nonsense_from_one_rank_accuses_nobody_and_hides_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
