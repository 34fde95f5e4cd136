/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which NIC and which path, by what slow communicators share. */
#include "tests/unit/detect/detect_net.h"

static void the_nic_takes_over_what_is_said_of_its_communicators(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 78);
	net.sim.comm[0].timed = true;
	sim_comm_add(&net.sim, DATA + 1, NT_FRAME_SYNCHRONISING, 2, 25e6, 5.0 * SIM_MS)->world =
		true;
	net.sim.comm[2].timed = true;
	net_pass(&net, 40);
	/* First only the communicators show it … */
	net.sim.comm[0].transfer *= 3.0;
	net_pass(&net, 20);
	net.sim.comm[2].transfer *= 3.0;
	net_pass(&net, 20);
	assert_int_equal(sim_firing(net.detect, 0)->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_non_null(sim_firing(net.detect, 1));
	/* … then the transfers as well. */
	for (uint32_t i = 1; i < 4; i++)
		net.factor[0][i] = net.factor[i][0] = 3.0;
	net_pass(&net, 20);
	assert_names_nic(&net, 0);
	net_free(&net);
}

static bool says_together(const struct nt_finding *finding, double parts)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (!strcmp(finding->evidence[i].what,
			    "communicators that turned slow together, and all of the job"))
			return finding->evidence[i].value == parts;
	return false;
}

static void communicators_that_turn_slow_together_are_one_incident(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 78);
	unlink_all(&net);
	net.sim.comm[0].timed = true;
	sim_comm_add(&net.sim, DATA + 1, NT_FRAME_SYNCHRONISING, 2, 25e6, 5.0 * SIM_MS)->world =
		true;
	net.sim.comm[2].timed = true;
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[2].transfer *= 3.0;
	net_pass(&net, 20);
	assert_non_null(sim_firing(net.detect, 0));
	assert_int_equal(sim_firing(net.detect, 0)->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_true(says_together(sim_firing(net.detect, 0), 2.0));
	assert_null(sim_firing(net.detect, 1));
	/* Both heal: what is over opens nothing again. */
	net.sim.comm[0].transfer /= 3.0;
	net.sim.comm[2].transfer /= 3.0;
	net_pass(&net, 300);
	assert_int_equal(sim_open(net.detect), 0);
	net_free(&net);
}

/* Nodes 0 and 1, 0 and 2, 1 and 3, 2 and 3: whose communicators are slow? */
static void add_square(struct net *net)
{
	static const uint32_t side[4][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};

	unlink_all(net);
	net->sim.comms = 0;
	for (uint32_t i = 0; i < 4; i++) {
		struct sim_comm *comm = sim_comm_add(&net->sim, DATA + i, NT_FRAME_SYNCHRONISING, 2,
						     25e6, 5.0 * SIM_MS);

		comm->timed = true;
		for (uint32_t j = 0; j < 2; j++)
			comm->member[comm->members++] = side[i][j] * NODE_RANKS;
	}
}

static void the_nic_that_slow_communicators_share_is_named(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 79);
	add_square(&net);
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	net_pass(&net, 20);
	assert_names_nic(&net, 0);
	net_free(&net);
}

/* Ranks of two nodes each, at so many places on them. */
static void add_pairs(struct net *net, const uint32_t pair[][2], uint32_t pairs)
{
	unlink_all(net);
	net->sim.comms = 0;
	for (uint32_t i = 0; i < pairs; i++) {
		struct sim_comm *comm = sim_comm_add(&net->sim, DATA + i, NT_FRAME_SYNCHRONISING, 2,
						     25e6, 5.0 * SIM_MS);

		comm->timed = true;
		for (uint32_t j = 0; j < 2; j++)
			comm->member[comm->members++] = pair[i][j] * NODE_RANKS + i % NODE_RANKS;
	}
}

static void who_is_also_on_a_communicator_that_is_as_ever_is_not_named(void **state)
{
	static const uint32_t pair[][2] = {{0, 1}, {0, 1}, {1, 2}, {2, 3}};
	struct net net;

	(void)state;
	net_init(&net, 4, 88);
	add_pairs(&net, pair, 4);
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	net_pass(&net, 20);
	assert_names_nic(&net, 0);
	net_free(&net);
}

/* The first two are never heard in one frame. */
static void pass_in_turn(struct net *net, uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		(void)net_next(net);
		for (uint32_t j = 0; j < 2; j++) {
			const struct sim_comm *comm = &net->sim.comm[i % 2];
			struct nt_frame_rank *rank = &net->sim.out[comm->member[j]];

			rank->steps = 0;
			rank->own_ns = rank->own_blocked_ns = rank->host_ns = 0;
			rank->blocked_ns = rank->comm_ns = rank->step_ns = 0;
			rank->comms = 0;
		}
		assert_int_equal(nt_detect_step(net->detect, &net->sim.frame, &finding, &findings),
				 0);
	}
}

static void communicators_that_are_heard_in_turn_are_slow_together(void **state)
{
	static const uint32_t pair[][2] = {{0, 1}, {0, 1}, {1, 2}, {2, 3}};
	struct net net;

	(void)state;
	net_init(&net, 4, 88);
	add_pairs(&net, pair, 4);
	pass_in_turn(&net, 60);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	pass_in_turn(&net, 40);
	assert_names_nic(&net, 0);
	net_free(&net);
}

static void where_both_ends_are_as_ever_elsewhere_it_is_their_path(void **state)
{
	static const uint32_t pair[][2] = {{0, 1}, {0, 1}, {1, 2}, {0, 3}};
	struct net net;

	(void)state;
	net_init(&net, 4, 89);
	add_pairs(&net, pair, 4);
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	net_pass(&net, 20);
	assert_names_path(&net, 0, 1);
	net_free(&net);
}

static void one_slow_communicator_alone_shares_nothing(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 80);
	add_square(&net);
	net_pass(&net, 40);
	net.sim.comm[3].transfer *= 3.0;
	net_pass(&net, 30);
	assert_int_equal(sim_firing(net.detect, 0)->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_true(sim_firing(net.detect, 0)->culprit[0].comm == DATA + 3);
	assert_null(sim_firing(net.detect, 1));
	net_free(&net);
}

/* Of few bytes it takes longer, too, but goes by what the hosts do as well: it is no second one. */
static void a_slow_flag_beside_one_slow_communicator_names_no_nic(void **state)
{
	static const uint32_t pair[][2] = {{0, 1}, {0, 1}, {1, 2}, {2, 3}};
	struct net net;

	(void)state;
	net_init(&net, 4, 88);
	add_pairs(&net, pair, 4);
	net.sim.comm[1].bytes = 16;
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	net_pass(&net, 30);
	assert_int_equal(sim_firing(net.detect, 0)->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_true(sim_firing(net.detect, 0)->culprit[0].comm == DATA);
	net_free(&net);
}

/* Their past does not show it, but communicators alike are faster. */
static void the_nic_that_was_always_slow_is_named(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 79);
	add_square(&net);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	net_pass(&net, 60);
	assert_names_nic(&net, 0);
	/* What it costs in all is not known. */
	assert_true(sim_firing(net.detect, 0)->gpu_hours < 0.0);
	/* It is repaired. */
	net.sim.comm[0].transfer /= 3.0;
	net.sim.comm[1].transfer /= 3.0;
	net_pass(&net, 300);
	assert_int_equal(sim_open(net.detect), 0);
	net_free(&net);
}

static void assert_nobody_was_always_slow(const uint32_t pair[][2], uint32_t slow, double times)
{
	struct net net;

	net_init(&net, 4, 88);
	add_pairs(&net, pair, 4);
	for (uint32_t i = 0; i < slow; i++)
		net.sim.comm[i].transfer *= times;
	net_pass(&net, 80);
	assert_int_equal(sim_open(net.detect), 0);
	net_free(&net);
}

/* Ways through a fabric differ, and one communicator alone, or two on the same way, show no NIC. */
static void ways_that_were_always_longer_name_nobody(void **state)
{
	static const uint32_t apart[][2] = {{0, 1}, {2, 3}, {1, 2}, {0, 3}},
			      same[][2] = {{0, 1}, {0, 1}, {1, 2}, {0, 3}},
			      shared[][2] = {{0, 1}, {0, 2}, {1, 2}, {2, 3}};

	(void)state;
	assert_nobody_was_always_slow(apart, 1, 3.0);
	assert_nobody_was_always_slow(apart, 2, 3.0);
	assert_nobody_was_always_slow(same, 2, 3.0);
	assert_nobody_was_always_slow(shared, 2, 1.4);
}

/* Nor does it hide a NIC that becomes slow later. */
static void a_way_that_was_always_longer_hides_no_fault(void **state)
{
	static const uint32_t pair[][2] = {{0, 1}, {0, 1}, {1, 2}, {2, 3}, {3, 0}, {1, 3}};
	struct net net;

	(void)state;
	net_init(&net, 4, 88);
	add_pairs(&net, pair, 6);
	net.sim.comm[5].transfer *= 3.0;
	net_pass(&net, 80);
	assert_int_equal(sim_open(net.detect), 0);
	net.sim.comm[2].transfer *= 3.0;
	net.sim.comm[3].transfer *= 3.0;
	net_pass(&net, 20);
	assert_names_nic(&net, 2);
	net_free(&net);
}

/* Of other sizes nothing is alike. */
static void communicators_of_other_sizes_are_not_compared(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 79);
	add_square(&net);
	net.sim.comm[2].bytes *= 2.0;
	net.sim.comm[3].bytes *= 3.0;
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[1].transfer *= 3.0;
	net_pass(&net, 80);
	assert_int_equal(sim_open(net.detect), 0);
	net_free(&net);
}

static void communicators_that_share_no_node_are_told_each(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 81);
	add_square(&net);
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 3.0;
	net.sim.comm[3].transfer *= 3.0;
	net_pass(&net, 30);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(sim_firing(net.detect, i)->culprit[0].kind,
				 NT_CULPRIT_COMMUNICATOR);
	net_free(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nic_takes_over_what_is_said_of_its_communicators),
		cmocka_unit_test(communicators_that_turn_slow_together_are_one_incident),
		cmocka_unit_test(the_nic_that_slow_communicators_share_is_named),
		cmocka_unit_test(who_is_also_on_a_communicator_that_is_as_ever_is_not_named),
		cmocka_unit_test(communicators_that_are_heard_in_turn_are_slow_together),
		cmocka_unit_test(where_both_ends_are_as_ever_elsewhere_it_is_their_path),
		cmocka_unit_test(one_slow_communicator_alone_shares_nothing),
		cmocka_unit_test(a_slow_flag_beside_one_slow_communicator_names_no_nic),
		cmocka_unit_test(the_nic_that_was_always_slow_is_named),
		cmocka_unit_test(ways_that_were_always_longer_name_nobody),
		cmocka_unit_test(a_way_that_was_always_longer_hides_no_fault),
		cmocka_unit_test(communicators_of_other_sizes_are_not_compared),
		cmocka_unit_test(communicators_that_share_no_node_are_told_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
