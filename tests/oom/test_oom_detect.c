/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/detect/detect_frames.h"

#include <errno.h>

#include "tests/oom/oom.h"

/* A slow rank, then a mismatch, saved and loaded in between. */
static int live(void *data)
{
	const struct nt_rules rules = nt_rules_default();
	struct sim sim = *(const struct sim *)data;
	struct nt_detect *detect = NULL;
	const struct nt_finding *finding = NULL;
	size_t findings = 0, size = 0;
	uint8_t *saved = NULL;
	int r;

	sim_unstick(&sim);
	sim.rank[3].inside_count = 0;
	r = nt_detect_new(&rules, 1, 1, &detect);
	for (int i = 0; i < 22 && r == 0; i++) {
		if (i == 12) {
			sim_stick(&sim, sim.comm[sim.comms - 1].id, UINT32_MAX);
			sim.rank[3].inside_count = 1;
		}
		r = nt_detect_step(detect, sim_next(&sim), &finding, &findings);
	}
	if (r == 0 && !findings && !sim_firing(detect, 1))
		r = -1;
	if (r == 0)
		r = nt_detect_save(detect, &saved, &size);
	nt_detect_free(detect);
	detect = NULL;
	if (r == 0)
		r = nt_detect_load(&rules, saved, size, &detect);
	free(saved);
	nt_detect_free(detect);
	return r;
}

/* A call that differs and is done with: only its hash tells. */
static int live_on(void *data)
{
	struct sim sim = *(const struct sim *)data;
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect = NULL;
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	int r = nt_detect_new(&rules, 1, 1, &detect);

	for (int i = 0; i < 16 && r == 0; i++) {
		sim.rank[2].salt = i < 12 ? 0 : 9;
		sim.rank[2].odd_count = i == 12 ? 77 : 0;
		r = nt_detect_step(detect, sim_next(&sim), &finding, &findings);
	}
	if (r == 0 && !sim_firing(detect, 0))
		r = -EPROTO;
	nt_detect_free(detect);
	return r;
}

static void a_life_survives_failed_allocations(void **state)
{
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 2, 1, 4, 1);
	sim.rank[5].device *= 2.0;
	assert_true(nt_oom_sweep(live, &sim) >= 50);
	sim_free(&sim);
}

static void a_mismatch_that_is_over_survives_them_too(void **state)
{
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 1);
	sim.blocking = true;
	assert_true(nt_oom_sweep(live_on, &sim) >= 20);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life_survives_failed_allocations),
		cmocka_unit_test(a_mismatch_that_is_over_survives_them_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
