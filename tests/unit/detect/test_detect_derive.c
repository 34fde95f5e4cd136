/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When roles are derived anew, and what is forgotten with them. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/baseline/communicator_learn.h"
#include "detect/baseline/peer_group.h"
#include "detect/model/detector_state.h"

enum {
	RANKS = 4,
	DATA = 0xda7a,
};

static struct nt_detect *detect;
static struct sim sim;

static int begin(void **state)
{
	(void)state;
	detect = sim_detect();
	sim_init(&sim, RANKS, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	nt_detect_free(detect);
	sim_free(&sim);
	return 0;
}

static bool is_alone(void)
{
	assert_int_equal(detect->roles.groups, detect->roles.groups == 1 ? 1 : RANKS);
	return detect->roles.groups == RANKS;
}

/* A communicator without calls makes no role: at frame `from` they begin, at `seen` they count. */
static void check_begins(uint32_t from, uint32_t seen)
{
	void *state = NULL;

	assert_int_equal(begin(&state), 0);
	sim.comm[0].calls = 0;
	sim_pass(&sim, detect, from - 1);
	assert_true(is_alone());
	sim.comm[0].calls = 2;
	sim_pass(&sim, detect, seen - from);
	assert_true(is_alone());
	sim_pass(&sim, detect, 1);
	assert_false(is_alone());
	assert_int_equal(end(&state), 0);
}

static void what_operations_are_made_is_looked_at_ever_more_seldom(void **state)
{
	(void)state;
	check_begins(2, 2);
	check_begins(3, 4);
	check_begins(5, 8);
	check_begins(9, 16);
	check_begins(33, 64);
	check_begins(65, 128);
	check_begins(129, 192);
	check_begins(193, 256);
}

static void a_stage_that_all_change_counts_at_once(void **state)
{
	(void)state;
	sim_pass(&sim, detect, 21);
	assert_false(detect->roles.dirty);
	assert_int_equal(detect->roles.groups, 1);
	for (uint32_t i = 0; i < RANKS; i++)
		sim.rank[i].stage = (int32_t)i / 2;
	sim_pass(&sim, detect, 1);
	assert_int_equal(detect->roles.groups, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(detect->roles.group[i].kind, NT_GROUP_STAGE);
		assert_int_equal(detect->roles.group[i].id, i);
		assert_int_equal(detect->roles.group[i].first, 2 * i);
		assert_int_equal(detect->roles.group[i].members, 2);
	}
}

static void a_node_that_is_another_counts_at_once(void **state)
{
	(void)state;
	sim_pass(&sim, detect, 21);
	assert_false(detect->roles.group[0].spans_nodes);
	for (uint32_t i = 1; i < RANKS; i++)
		sim.rank[i].node = 7;
	sim_pass(&sim, detect, 1);
	assert_true(detect->roles.group[0].spans_nodes);
	for (uint32_t i = 1; i < RANKS; i++)
		sim.rank[i].node = 0;
	sim_pass(&sim, detect, 1);
	assert_false(detect->roles.group[0].spans_nodes);
}

static void assert_forgotten(const struct nt_detect_rank *rank, bool forgotten)
{
	assert_int_equal(rank->rounds, forgotten ? 0 : 5);
	assert_true(rank->evidence.weight == (forgotten ? 0.0 : 2.5));
	for (int i = 0; i < NT_SERIES_END; i++)
		assert_true(rank->track[i].value == (forgotten ? 0.0 : 7.5));
	assert_int_equal(rank->group, 0);
	assert_int_equal(rank->group_kind, NT_GROUP_COMM);
	assert_int_equal(rank->group_id, DATA);
}

/* The kind, the number, or both. */
static void who_comes_from_another_role_begins_anew(void **state)
{
	(void)state;
	sim_pass(&sim, detect, 5);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct nt_detect_rank *rank = &detect->rank[i];

		rank->rounds = 5;
		rank->evidence.weight = 2.5;
		for (int j = 0; j < NT_SERIES_END; j++)
			rank->track[j].value = 7.5;
		rank->group_kind = i & 1 ? NT_GROUP_STAGE : NT_GROUP_COMM;
		rank->group_id = i & 2 ? 1 : DATA;
	}
	assert_int_equal(nt_peer_groups_derive(detect), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_forgotten(&detect->rank[i], i != 0);
	assert_int_equal(nt_peer_groups_derive(detect), 0);
	assert_forgotten(&detect->rank[0], false);
}

static void the_peers_of_a_rank_are_all_others_from_the_next_on(void **state)
{
	(void)state;
	sim_pass(&sim, detect, 2);
	for (uint32_t i = 0; i < RANKS; i++) {
		size_t n = 0;
		const uint32_t *peer = nt_peer_group_peers(detect, &detect->rank[i], &n);

		assert_int_equal(n, RANKS - 1);
		for (uint32_t j = 0; j < n; j++)
			assert_int_equal(peer[j], (i + 1 + j) % RANKS);
	}
}

static void one_who_is_alone_has_no_peers(void **state)
{
	size_t n = 42;

	(void)state;
	sim.comm[0].calls = 0;
	sim_pass(&sim, detect, 2);
	assert_true(is_alone());
	assert_null(nt_peer_group_peers(detect, &detect->rank[1], &n));
	assert_int_equal(n, 0);
	detect->rank[1].group = NT_NO_INDEX;
	n = 42;
	assert_null(nt_peer_group_peers(detect, &detect->rank[1], &n));
	assert_int_equal(n, 0);
	detect->rank[1].group = detect->roles.groups;
	assert_null(nt_peer_group_peers(detect, &detect->rank[1], &n));
}

/* In whatever order it tells of its communicators: they are those that it told of before. */
static void what_is_told_in_another_order_is_known_again(void **state)
{
	static const uint32_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}};
	struct nt_detect_rank *rank;

	(void)state;
	sim_pass(&sim, detect, 2);
	rank = &detect->rank[1];
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct nt_frame_comm said[3] = {0};
		const struct nt_frame_rank seen = {.rank = 1, .comm = said, .comms = 3};

		for (uint32_t j = 0; j < 3; j++)
			said[j] = (struct nt_frame_comm){.id = orders[i][j] ? orders[i][j] : DATA,
							 .size = RANKS,
							 .last = 10 * i + orders[i][j]};
		assert_int_equal(nt_detect_comm_learn(detect, rank, &seen), 0);
		assert_int_equal(rank->links, 3);
		for (uint32_t j = 0; j < 3; j++) {
			assert_int_equal(rank->link[j].comm->id, j ? j : DATA);
			assert_int_equal(rank->link[j].last, 10 * i + j);
		}
	}
	assert_int_equal(HASH_COUNT(detect->comms), 3);
}

static void what_is_freed_twice_is_freed_once(void **state)
{
	(void)state;
	sim_pass(&sim, detect, 2);
	nt_peer_groups_free(&detect->roles);
	assert_int_equal(detect->roles.groups, 0);
	assert_null(detect->roles.group);
	assert_null(detect->roles.member);
	assert_null(detect->roles.peer);
	nt_peer_groups_free(&detect->roles);
	for (uint32_t i = 0; i < RANKS; i++)
		detect->rank[i].group = NT_NO_INDEX;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_operations_are_made_is_looked_at_ever_more_seldom),
		CASE(a_stage_that_all_change_counts_at_once),
		CASE(a_node_that_is_another_counts_at_once),
		CASE(who_comes_from_another_role_begins_anew),
		CASE(the_peers_of_a_rank_are_all_others_from_the_next_on),
		CASE(one_who_is_alone_has_no_peers),
		CASE(what_is_told_in_another_order_is_known_again),
		CASE(what_is_freed_twice_is_freed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
