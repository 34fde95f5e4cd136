/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of which node all ranks are to blame, however they are numbered and whoever holds them. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/incidents/node.h"
#include "detect/model/detector_state.h"

enum {
	NODES = 4,
	A_NODE = 4, /* ranks of one */
	RANKS = NODES * A_NODE,
};

static struct nt_detect *detect;

static int begin(void **state)
{
	struct sim sim;

	(void)state;
	detect = sim_detect();
	sim_init(&sim, RANKS, 1);
	for (uint32_t i = 0; i < RANKS; i++)
		sim.rank[i].node = 10 * (i / A_NODE);
	sim_pass(&sim, detect, 3);
	sim_free(&sim);
	assert_int_equal(detect->roles.groups, 1);
	assert_true(detect->roles.group[0].spans_nodes);
	return 0;
}

static int end(void **state)
{
	(void)state;
	nt_detect_free(detect);
	return 0;
}

/* One more open incident, in which those ranks are to blame. */
static struct nt_detect_incident *hold(enum nt_family family, uint32_t first, uint32_t n)
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_detect_incident *incident = calloc(1, sizeof(*incident));

	assert_non_null(incident);
	incident->family = (uint8_t)family;
	incident->blame = calloc(n + 1, sizeof(*incident->blame));
	assert_non_null(incident->blame);
	incident->blames = incident->blame_cap = n;
	for (uint32_t i = 0; i < n; i++)
		incident->blame[i].rank = first + i;
	incidents->open = realloc(incidents->open, (incidents->opens + 1) * sizeof(incident));
	assert_non_null(incidents->open);
	incidents->open_cap = incidents->opens + 1;
	incidents->open[incidents->opens++] = incident;
	return incident;
}

static void assert_divided(uint32_t node)
{
	uint32_t divided = UINT32_MAX;

	assert_true(nt_node_divided(detect, &divided));
	assert_int_equal(divided, node);
}

static void set_of_node(bool of_node)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++)
		for (uint32_t j = 0; j < detect->incidents.open[i]->blames; j++)
			detect->incidents.open[i]->blame[j].of_node = of_node;
}

static void assert_whole(void)
{
	uint32_t divided = 42;

	assert_false(nt_node_divided(detect, &divided));
	assert_int_equal(divided, 42);
}

static void a_node_is_divided_where_two_incidents_hold_all_its_ranks(void **state)
{
	(void)state;
	assert_whole();
	(void)hold(NT_FAMILY_SLOW, 4, 2);
	assert_whole();
	(void)hold(NT_FAMILY_SLOW, 6, 2);
	assert_divided(10);
}

static void not_all_of_its_ranks_are_not_the_node(void **state)
{
	(void)state;
	(void)hold(NT_FAMILY_SLOW, 4, 2);
	(void)hold(NT_FAMILY_SLOW, 6, 1);
	assert_whole();
	/* Who is gone is not asked for. */
	detect->rank[7].ended = true;
	assert_divided(10);
}

/* The nodes before it are looked at too: one is held by one incident, of one a rank is missing. */
static void a_divided_node_is_found_behind_others(void **state)
{
	(void)state;
	(void)hold(NT_FAMILY_SLOW, 0, 6);
	(void)hold(NT_FAMILY_SLOW, 8, 2);
	assert_whole();
	(void)hold(NT_FAMILY_SLOW, 10, 2);
	assert_divided(20);
	(void)hold(NT_FAMILY_SLOW, 6, 2);
	assert_divided(10);
}

static void two_ranks_are_a_node_and_one_is_none(void **state)
{
	(void)state;
	detect->rank[4].ended = detect->rank[5].ended = true;
	(void)hold(NT_FAMILY_SLOW, 6, 1);
	(void)hold(NT_FAMILY_SLOW, 7, 1);
	assert_divided(10);
	detect->rank[6].ended = true;
	assert_whole();
}

static void other_families_and_other_company_do_not_count(void **state)
{
	struct nt_detect_incident *second;

	(void)state;
	(void)hold(NT_FAMILY_SLOW, 4, 2);
	second = hold(NT_FAMILY_STALL, 6, 2);
	assert_whole();
	second->family = NT_FAMILY_SLOW;
	assert_divided(10);
	/* Held against ranks of its own node alone it says nothing of the node. */
	detect->roles.group[0].spans_nodes = false;
	assert_whole();
	/* Unless all roles of the node became slower together. */
	set_of_node(true);
	assert_divided(10);
	set_of_node(false);
	detect->roles.group[0].spans_nodes = true;
	detect->rank[5].group = NT_NO_INDEX;
	assert_whole();
	detect->rank[5].group = 1;
	assert_whole();
	detect->rank[5].group = 0;
	assert_divided(10);
	for (uint32_t i = 4; i < 8; i++)
		detect->rank[i].node = NT_FRAME_NO_NODE;
	assert_whole();
}

static void blames_are_counted_by_the_node_of_the_rank(void **state)
{
	const struct nt_detect_incident *incident = hold(NT_FAMILY_SLOW, 2, 5);

	(void)state;
	assert_int_equal(nt_node_blames(detect, incident, 0), 2);
	assert_int_equal(nt_node_blames(detect, incident, 10), 3);
	assert_int_equal(nt_node_blames(detect, incident, 20), 0);
	incident->blame[0].rank = 1000;
	assert_int_equal(nt_node_blames(detect, incident, 0), 1);
}

/* Ranks are dealt out to the nodes in turn: those of one are not one behind the other. */
static void a_node_is_named_wherever_its_ranks_are(void **state)
{
	struct nt_detect *dealt = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	sim_init(&sim, 32, 41);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < 32; i++)
		sim.rank[i].node = i % NODES;
	sim_pass(&sim, dealt, 10);
	for (uint32_t i = 0; i < 32; i++)
		if (i % NODES == 1 || i == 8)
			sim.rank[i].device *= 1.5;
	sim_pass(&sim, dealt, 30);
	finding = sim_firing(dealt, 0);
	assert_non_null(finding);
	assert_null(sim_firing(dealt, 1));
	assert_int_equal(finding->culprits, 2);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_RANK);
	assert_int_equal(finding->culprit[0].rank, 8);
	assert_int_equal(finding->culprit[0].node, 0);
	assert_int_equal(finding->culprit[1].kind, NT_CULPRIT_NODE);
	assert_int_equal(finding->culprit[1].node, 1);
	assert_int_equal(finding->culprit[1].rank_count, 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(finding->culprit[1].ranks[i], i * NODES + 1);
	nt_detect_free(dealt);
	sim_free(&sim);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_node_is_divided_where_two_incidents_hold_all_its_ranks),
		CASE(not_all_of_its_ranks_are_not_the_node),
		CASE(a_divided_node_is_found_behind_others),
		CASE(two_ranks_are_a_node_and_one_is_none),
		CASE(other_families_and_other_company_do_not_count),
		CASE(blames_are_counted_by_the_node_of_the_rank),
		cmocka_unit_test(a_node_is_named_wherever_its_ranks_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
