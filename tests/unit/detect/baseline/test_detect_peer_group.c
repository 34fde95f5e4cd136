/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who is compared with whom, learned from communicators alone. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/baseline/peer_group.h"
#include "detect/model/detector_state.h"

static void assert_peers(const struct nt_detect *detect, uint32_t rank, const uint32_t *peer,
			 size_t n)
{
	struct nt_detect_rank_view view;

	assert_true(nt_detect_rank(detect, rank, &view));
	assert_int_equal(view.peer_count, n);
	for (size_t i = 0; i < n; i++) {
		size_t same = 0;

		for (size_t j = 0; j < n; j++)
			same += view.peers[j] == peer[i];
		assert_int_equal(same, 1);
	}
}

static struct nt_detect *learn(struct sim *sim)
{
	struct nt_detect *detect = sim_detect();

	sim_pass(sim, detect, 3);
	return detect;
}

static void a_single_communicator_is_data_parallel(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init(&sim, 4, 1);
	detect = learn(&sim);
	assert_peers(detect, 2, (const uint32_t[]){0, 1, 3}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void tensor_partners_are_no_peers_where_there_are_replicas(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 2, 1, 4, 1);
	detect = learn(&sim);
	assert_peers(detect, 3, (const uint32_t[]){1, 5, 7}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_embedding_of_first_and_last_stage_makes_no_role(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 2, 4, 1);
	detect = learn(&sim);
	assert_peers(detect, 1, (const uint32_t[]){0, 2, 3}, 3);
	assert_peers(detect, 5, (const uint32_t[]){4, 6, 7}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void three_dimensions_are_told_apart(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 2, 2, 4, 1);
	detect = learn(&sim);
	assert_peers(detect, 2, (const uint32_t[]){0, 4, 6}, 3);
	assert_peers(detect, 13, (const uint32_t[]){9, 11, 15}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void without_replicas_tensor_partners_are_peers(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 4, 2, 1, 1);
	detect = learn(&sim);
	assert_peers(detect, 5, (const uint32_t[]){4, 6, 7}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_pipeline_alone_has_no_peers(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 4, 1, 1);
	detect = learn(&sim);
	assert_peers(detect, 2, NULL, 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void experts_of_one_replica_are_told_from_replicas(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	/* Eight replicas; experts spread over pairs, each expert on four ranks. */
	sim_init(&sim, 8, 1);
	for (uint32_t i = 0; i < 4; i++) {
		struct sim_comm *comm =
			sim_comm_add(&sim, 50 + i, NT_FRAME_ALL_TO_ALL, 16, 1e6, 0.0);

		comm->members = 2;
		comm->member[0] = 2 * i;
		comm->member[1] = 2 * i + 1;
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct sim_comm *comm =
			sim_comm_add(&sim, 60 + i, NT_FRAME_SYNCHRONISING, 2, 1e7, 0.0);

		for (uint32_t j = 0; j < 4; j++)
			comm->member[comm->members++] = 2 * j + i;
	}
	detect = learn(&sim);
	assert_peers(detect, 3, (const uint32_t[]){1, 5, 7}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void experts_over_all_replicas_leave_them_peers(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init(&sim, 4, 1);
	sim_comm_add(&sim, 50, NT_FRAME_ALL_TO_ALL, 16, 1e6, 0.0)->world = true;
	detect = learn(&sim);
	assert_peers(detect, 0, (const uint32_t[]){1, 2, 3}, 3);
	nt_detect_free(detect);
	sim_free(&sim);

	sim_init_ranks(&sim, 4, 1);
	sim_comm_add(&sim, 50, NT_FRAME_ALL_TO_ALL, 16, 1e6, 0.0)->world = true;
	detect = learn(&sim);
	assert_peers(detect, 0, (const uint32_t[]){1, 2, 3}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_stage_that_a_file_names_wins(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init(&sim, 6, 1);
	for (uint32_t i = 0; i < 6; i++)
		sim.rank[i].stage = (int32_t)i % 2;
	detect = learn(&sim);
	assert_peers(detect, 4, (const uint32_t[]){0, 2}, 2);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void without_communicators_nobody_is_compared(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 4, 1);
	detect = learn(&sim);
	assert_peers(detect, 0, NULL, 0);
	sim.rank[1].device *= 3.0;
	assert_int_equal(sim_run(&sim, detect, 15), 16);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_rank_that_appears_later_joins_its_peers(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	sim_init(&sim, 4, 1);
	sim.rank[1].absent = true;
	detect = learn(&sim);
	assert_peers(detect, 2, (const uint32_t[]){0, 3}, 2);
	sim.rank[1].absent = false;
	sim_pass(&sim, detect, 1);
	assert_peers(detect, 2, (const uint32_t[]){0, 1, 3}, 3);
	assert_peers(detect, 1, (const uint32_t[]){0, 2, 3}, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_slow_rank_is_found_in_every_layout(void **state)
{
	static const uint32_t layout[][3] = {{2, 1, 4}, {1, 2, 4}, {2, 2, 4}, {1, 4, 4},
					     {4, 1, 4}, {4, 2, 1}, {2, 4, 2}, {8, 1, 8}};

	(void)state;
	for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++) {
		const uint32_t ranks = layout[i][0] * layout[i][1] * layout[i][2];
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init_layout(&sim, layout[i][0], layout[i][1], layout[i][2], 70 + i);
		sim.jitter = 0.01;
		assert_int_equal(sim_run(&sim, detect, 50), 51);
		sim.rank[ranks / 2 + 1].device *= 1.3;
		assert_in_range(sim_run(&sim, detect, 20), 5, 9);
		assert_names_rank(sim_firing(detect, 0), ranks / 2 + 1);
		assert_null(sim_firing(detect, 1));
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void communicators_beyond_the_cap_of_a_rank_are_counted(void **state)
{
	struct nt_frame_comm comm[NT_FRAME_MAX_COMMS];
	struct nt_frame_rank rank = {.rank = 3,
				     .observed = true,
				     .stage = -1,
				     .comm = comm,
				     .comms = NT_FRAME_MAX_COMMS};
	struct nt_frame frame = {.end_ns = 1, .rank = &rank, .ranks = 1, .completeness = 1.0};
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	size_t findings;

	(void)state;
	for (int round = 0; round < 2; round++) {
		memset(comm, 0, sizeof(comm));
		for (int i = 0; i < NT_FRAME_MAX_COMMS; i++)
			comm[i].id = (uint64_t)(1000 * round + i);
		frame.start_ns = frame.end_ns++;
		assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
	}
	assert_int_equal(nt_detect_find(detect, 3)->links, NT_FRAME_MAX_COMMS);
	assert_int_equal(detect->dropped_comms, NT_FRAME_MAX_COMMS);
	nt_detect_free(detect);
}

/* Five frames have passed: the sixth derives roles only where there is a reason. */
static void what_changes_roles_does_so_at_once(void **state)
{
	static const uint32_t none[1] = {0};
	struct nt_detect *detect = sim_detect();
	const uint32_t other[] = {1}, later[] = {2};
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 4, 1);
	sim_pass(&sim, detect, 5);
	assert_peers(detect, 0, none, 0);
	sim_comm_add(&sim, 1, NT_FRAME_SYNCHRONISING, 1, 1e6, 0.0);
	sim.comm[0].member[0] = 0;
	sim.comm[0].member[1] = 1;
	sim.comm[0].members = 2;
	sim_pass(&sim, detect, 1);
	assert_peers(detect, 0, other, 1);
	assert_false(detect->roles.group[detect->rank[0].group].spans_nodes);
	/* A container moves. */
	sim_pass(&sim, detect, 3);
	sim.rank[1].node = 7;
	sim_pass(&sim, detect, 1);
	assert_true(detect->roles.group[detect->rank[0].group].spans_nodes);
	/* A file says more. */
	sim.rank[0].stage = 5;
	sim.rank[2].stage = 5;
	sim_pass(&sim, detect, 1);
	assert_peers(detect, 0, later, 1);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_first_stage_is_a_stage(void **state)
{
	struct nt_detect *detect = sim_detect();
	const uint32_t peers[] = {1, 2, 3}, others[] = {5, 6, 7};
	struct sim sim;

	(void)state;
	/* Two communicators in each stage, and the stage counts. */
	sim_init_ranks(&sim, 8, 1);
	for (uint32_t i = 0; i < 4; i++) {
		struct sim_comm *comm =
			sim_comm_add(&sim, i + 1, NT_FRAME_SYNCHRONISING, 1, 1e6, 0.0);

		comm->member[comm->members++] = 2 * i;
		comm->member[comm->members++] = 2 * i + 1;
	}
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].stage = (int32_t)(i / 4);
	sim_pass(&sim, detect, 2);
	assert_peers(detect, 0, peers, 3);
	assert_peers(detect, 4, others, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Rank 0 is with rank 1 in one communicator, with rank 2 in another. Whom is it compared with? */
static uint32_t peer_of_two(const struct sim_comm *first, const struct sim_comm *second)
{
	struct nt_detect *detect = sim_detect();
	const uint32_t *peers;
	struct sim sim;
	uint32_t peer;
	size_t n;

	sim_init_ranks(&sim, 3, 1);
	*sim_comm_add(&sim, 0, 0, 0, 0, 0) = *first;
	*sim_comm_add(&sim, 0, 0, 0, 0, 0) = *second;
	sim_pass(&sim, detect, 2);
	peers = nt_peer_group_peers(detect, nt_detect_find(detect, 0), &n);
	assert_int_equal(n, 1);
	peer = peers[0];
	nt_detect_free(detect);
	sim_free(&sim);
	return peer;
}

static void assert_better(uint64_t id, double calls, double bytes, uint64_t other_id,
			  double other_calls, double other_bytes)
{
	const struct sim_comm better = {.id = id,
					.kind = NT_FRAME_SYNCHRONISING,
					.calls = calls,
					.bytes = bytes,
					.epoch = 1,
					.member = {0, 1},
					.members = 2};
	const struct sim_comm other = {.id = other_id,
				       .kind = NT_FRAME_SYNCHRONISING,
				       .calls = other_calls,
				       .bytes = other_bytes,
				       .epoch = 1,
				       .member = {0, 2},
				       .members = 2};

	assert_int_equal(peer_of_two(&better, &other), 1);
	assert_int_equal(peer_of_two(&other, &better), 1);
}

static void fewer_calls_then_more_bytes_tell_who_is_compared(void **state)
{
	(void)state;
	assert_better(2, 2, 1e6, 1, 4, 1e6);
	/* Up to half as many more are as many: then bytes count. */
	assert_better(2, 3, 1e6, 1, 2, 1e6);
	assert_better(2, 2, 2e6, 1, 3, 1e6);
	/* As many bytes, as many members: the lower number. */
	assert_better(1, 2, 3e6, 2, 3, 2e6);
	/* Small calls carry no gradients, however few there are. */
	assert_better(2, 64, 64e6, 1, 2, 0.99e6);
	assert_better(2, 2, 1e6, 1, 64, 64e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_communicator_is_data_parallel),
		cmocka_unit_test(tensor_partners_are_no_peers_where_there_are_replicas),
		cmocka_unit_test(the_embedding_of_first_and_last_stage_makes_no_role),
		cmocka_unit_test(three_dimensions_are_told_apart),
		cmocka_unit_test(without_replicas_tensor_partners_are_peers),
		cmocka_unit_test(a_pipeline_alone_has_no_peers),
		cmocka_unit_test(experts_of_one_replica_are_told_from_replicas),
		cmocka_unit_test(experts_over_all_replicas_leave_them_peers),
		cmocka_unit_test(a_stage_that_a_file_names_wins),
		cmocka_unit_test(without_communicators_nobody_is_compared),
		cmocka_unit_test(a_rank_that_appears_later_joins_its_peers),
		cmocka_unit_test(a_slow_rank_is_found_in_every_layout),
		cmocka_unit_test(what_changes_roles_does_so_at_once),
		cmocka_unit_test(the_first_stage_is_a_stage),
		cmocka_unit_test(fewer_calls_then_more_bytes_tell_who_is_compared),
		cmocka_unit_test(communicators_beyond_the_cap_of_a_rank_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
