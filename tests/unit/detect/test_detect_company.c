/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What else a rank is part of, and what stays when that changes. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"
#include "detect/rules/mismatch.h"

static void a_rank_that_changes_its_role_begins_anew(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 301);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 30);
	assert_int_equal(detect->rank[3].rounds, 30);
	assert_true(detect->rank[3].track[NT_SERIES_OWN].past.ready);
	sim.rank[3].stage = sim.rank[4].stage = 1;
	sim_pass(&sim, detect, 1);
	assert_int_equal(detect->rank[3].rounds, 1);
	assert_false(detect->rank[3].track[NT_SERIES_OWN].past.ready);
	assert_true(detect->rank[3].evidence.weight == 0.0);
	/* The others are compared as before. */
	assert_int_equal(detect->rank[2].rounds, 31);
	assert_true(detect->rank[2].track[NT_SERIES_OWN].past.ready);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Which transfer a wait was for cannot be told of two communicators; alone nobody waits. */
static void a_communicator_of_one_rank_does_not_hide_a_slow_network(void **state)
{
	static const struct {
		uint32_t members;
		bool found;
	} beside[] = {{1, true}, {2, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 8, 302);
		sim.jitter = 0.02;
		for (uint32_t j = 0; j < 8; j += beside[i].members) {
			struct sim_comm *comm = sim_comm_add(&sim, 0x1000 + j,
							     NT_FRAME_SYNCHRONISING, 2, 25e6, 0.0);

			for (uint32_t k = 0; k < beside[i].members; k++)
				comm->member[comm->members++] = j + k;
		}
		sim_pass(&sim, detect, 40);
		sim.comm[0].transfer *= 4.0;
		sim_pass(&sim, detect, 40);
		assert_int_equal(sim_firing(detect, 0) != NULL, beside[i].found);
		if (beside[i].found)
			assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_NETWORK);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* Rank 0 has not come to the reduction because its tensor partner lets it wait: not its fault. */
static void who_waits_for_another_is_not_named(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 2, 1, 4, 303);
	sim.comms--; /* nothing but tensor partners and replicas */
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 20);
	sim_stick(&sim, 0xd000, 1);
	for (uint32_t i = 3; i < 8; i += 2) {
		sim.rank[i].inside_comm = 0xd001;
		sim.rank[i].inside_number = sim.comm[5].last;
	}
	sim.rank[0].in_call = false;
	sim.rank[0].synchronising = true;
	sim.rank[0].behind = 1;
	sim.rank[1].behind = 2;
	sim_pass(&sim, detect, 60);
	finding = sim_firing(detect, 0);
	assert_names_rank(finding, 1);
	assert_int_equal(finding->class, NT_CLASS_HANG);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Only a collective must be the same everywhere, or an operation that is another altogether. */
static void a_difference_matters_where_all_calls_are_collective(void **state)
{
	static const struct {
		uint8_t op[3];
		bool matters;
	} then[] = {
		{{1, 1, 1}, true},   {{1, 2, 1}, true},     {{2, 1, 1}, true},
		{{10, 1, 1}, false}, {{1, 10, 1}, false},   {{1, 1, 10}, false},
		{{9, 1, 1}, false},  {{1, 1, 9}, false},    {{7, 1, 1}, true},
		{{7, 7, 7}, false},  {{99, 99, 99}, false}, {{1, 1, 99}, true},
	};
	struct nt_detect_comm comm = {.members = 3};

	(void)state;
	comm.kind_of[1] = NT_FRAME_SYNCHRONISING + 1;
	comm.kind_of[2] = NT_FRAME_ALL_TO_ALL + 1;
	comm.kind_of[7] = NT_FRAME_ROOTED + 1;
	comm.kind_of[9] = NT_FRAME_OTHER + 1;
	comm.kind_of[10] = NT_FRAME_POINT_TO_POINT + 1;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_mismatch_call call[3] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};

		for (size_t j = 0; j < 3; j++)
			call[j].op = then[i].op[j];
		assert_int_equal(nt_mismatch_matters(&comm, call, 3), then[i].matters);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_changes_its_role_begins_anew),
		cmocka_unit_test(a_communicator_of_one_rank_does_not_hide_a_slow_network),
		cmocka_unit_test(who_waits_for_another_is_not_named),
		cmocka_unit_test(a_difference_matters_where_all_calls_are_collective),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
