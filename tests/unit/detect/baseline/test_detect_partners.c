/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roles of two, whose tensor-parallel partners do the same work on their devices. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/baseline/peer_group.h"
#include "detect/model/detector_state.h"

/* Four tensor-parallel partners, two replicas: ranks 1 and 5 have one role. */
static void begin(struct sim *sim, uint8_t tier)
{
	sim_init_layout(sim, 4, 1, 2, 91);
	sim->jitter = 0.01;
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].tier = tier;
}

/* Passes in which all ranks work for a step's length, which is random. */
static void pass_lengths(struct sim *sim, struct nt_detect *detect, uint32_t passes)
{
	double device[8];

	for (uint32_t i = 0; i < sim->ranks; i++)
		device[i] = sim->rank[i].device;
	for (uint32_t pass = 0; pass < passes; pass++) {
		const double length = 0.6 + 0.8 * sim_uniform(sim);

		for (uint32_t i = 0; i < sim->ranks; i++)
			sim->rank[i].device = device[i] * length;
		sim_pass(sim, detect, 1);
	}
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].device = device[i];
}

/* The finding that names a rank, or NULL. */
static const struct nt_finding *accusation(const struct nt_detect *detect)
{
	for (size_t i = 0; sim_firing(detect, i); i++)
		if (sim_firing(detect, i)->culprits)
			return sim_firing(detect, i);
	return NULL;
}

/* Not the communicator of the whole job, in which a rank's peers are, too. */
static void partners_share_a_replica(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, NT_FRAME_T3);
	sim_pass(&sim, detect, 10);
	for (uint32_t i = 0; i < 8; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, i);
		const struct nt_detect_comm *comm = nt_peer_group_partners(detect, rank);

		assert_non_null(comm);
		assert_int_equal(comm->members, 4);
		for (uint32_t j = 0; j < comm->members; j++) {
			const struct nt_detect_rank *partner =
				nt_peer_group_partner(detect, rank, comm, j);

			assert_int_equal(comm->member[j] / 4, i / 4);
			assert_true((partner == NULL) == (comm->member[j] == i));
		}
	}
	sim_free(&sim);
	nt_detect_free(detect);
}

static void a_device_slow_from_the_start_is_named_among_partners(void **state)
{
	(void)state;
	for (uint32_t slow = 0; slow < 8; slow++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		begin(&sim, NT_FRAME_T3);
		sim.rank[slow].device *= 1.3;
		sim_pass(&sim, detect, 60);
		assert_int_equal(sim_open(detect), 1);
		assert_names_rank(sim_firing(detect, 0), slow);
		assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/* The partners are as many as they are. */
static void a_slow_replica_is_one_of_two_populations(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, NT_FRAME_T3);
	for (uint32_t i = 4; i < 8; i++)
		sim.rank[i].device *= 1.3;
	sim_pass(&sim, detect, 100);
	assert_int_equal(sim_open(detect), 1);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_UNKNOWN);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* In half of the windows the slowest of the one are as fast as the fastest of the other. */
static void populations_that_vary_are_two_nevertheless(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, NT_FRAME_T3);
	sim.jitter = 0.05;
	for (uint32_t i = 4; i < 8; i++)
		sim.rank[i].device *= 1.3;
	sim_pass(&sim, detect, 60);
	assert_int_equal(sim_open(detect), 1);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_UNKNOWN);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	/* They are alike again. */
	for (uint32_t i = 4; i < 8; i++)
		sim.rank[i].device /= 1.3;
	sim_pass(&sim, detect, 200);
	assert_int_equal(sim_open(detect), 0);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* At most a note on uneven work is open. */
static void assert_nobody_is_accused(const struct nt_detect *detect)
{
	for (uint32_t i = 0; sim_firing(detect, i); i++)
		assert_int_equal(sim_firing(detect, i)->severity, NT_SEVERITY_INFO);
}

static void load_data_on_a_partner(uint8_t tier)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	begin(&sim, tier);
	sim.rank[0].host += 30e6;
	sim.rank[4].host += 30e6;
	sim_pass(&sim, detect, 100);
	assert_nobody_is_accused(detect);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Work that is seen from the host holds its own: the partner that loads the data has more of it. */
static void without_device_times_partners_are_no_peers(void **state)
{
	(void)state;
	load_data_on_a_partner(NT_FRAME_T2);
}

static void hosts_of_partners_are_not_compared(void **state)
{
	(void)state;
	load_data_on_a_partner(NT_FRAME_T3);
}

/* A rank without peers, whose past is known earlier, is compared with what the job grew by. */
static void growth_counts_before_a_past_is_complete(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, NT_FRAME_T3);
	sim_pass(&sim, detect, 10);
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].device *= 1.25;
	sim_pass(&sim, detect, 6);
	for (uint32_t i = 0; i < 8; i++) {
		const struct nt_track *own = &nt_detect_find(detect, i)->track[NT_SERIES_OWN];

		assert_false(own->past.ready);
		assert_true(own->slow_cost > 0.1 && own->slow_cost < 0.3);
	}
	sim_free(&sim);
	nt_detect_free(detect);
}

/* The partners' last values are in it: half of the roles are judged before them. */
static void a_loaded_state_goes_on_with_its_partners(void **state)
{
	struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect[2] = {sim_detect(), sim_detect()};
	uint8_t *data[2] = {NULL, NULL};
	size_t size[2];
	struct sim sim[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		begin(&sim[i], NT_FRAME_T3);
	for (uint32_t frame = 0; frame < 60; frame++) {
		for (uint32_t i = 0; i < 2; i++) {
			sim[i].rank[5].device *= frame == 30 ? 1.3 : 1.0;
			sim_pass(&sim[i], detect[i], 1);
		}
		assert_int_equal(nt_detect_save(detect[1], &data[1], &size[1]), 0);
		nt_detect_free(detect[1]);
		assert_int_equal(nt_detect_load(&rules, data[1], size[1], &detect[1]), 0);
		assert_int_equal(nt_detect_save(detect[0], &data[0], &size[0]), 0);
		assert_int_equal(size[0], size[1]);
		assert_memory_equal(data[0], data[1], size[0]);
		free(data[0]);
		free(data[1]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		sim_free(&sim[i]);
		nt_detect_free(detect[i]);
	}
}

/* The roles of a frame are judged one after another: each is compared with the partners of that frame. */
static void partners_are_compared_in_the_same_step(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, NT_FRAME_T3);
	sim.steps = 1;
	pass_lengths(&sim, detect, 150);
	assert_null(accusation(detect));
	sim.rank[6].device *= 1.3;
	pass_lengths(&sim, detect, 15);
	assert_non_null(accusation(detect));
	assert_names_rank(accusation(detect), 6);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Two ranks whose work varies by much, but together. */
static void a_pair_that_varies_together_shows_a_small_change(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 2, 2, 93);
	sim.jitter = 0.01;
	sim.steps = 1;
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].tier = NT_FRAME_T3;
	pass_lengths(&sim, detect, 60);
	assert_null(accusation(detect));
	sim.rank[1].device *= 1.15;
	pass_lengths(&sim, detect, 20);
	assert_non_null(accusation(detect));
	assert_names_rank(accusation(detect), 1);
	sim_free(&sim);
	nt_detect_free(detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partners_share_a_replica),
		cmocka_unit_test(a_device_slow_from_the_start_is_named_among_partners),
		cmocka_unit_test(a_slow_replica_is_one_of_two_populations),
		cmocka_unit_test(populations_that_vary_are_two_nevertheless),
		cmocka_unit_test(partners_are_compared_in_the_same_step),
		cmocka_unit_test(a_pair_that_varies_together_shows_a_small_change),
		cmocka_unit_test(growth_counts_before_a_past_is_complete),
		cmocka_unit_test(without_device_times_partners_are_no_peers),
		cmocka_unit_test(hosts_of_partners_are_not_compared),
		cmocka_unit_test(a_loaded_state_goes_on_with_its_partners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
