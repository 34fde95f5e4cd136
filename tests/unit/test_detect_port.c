/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counters of ports that turn as a job slows down, and those that turn for nothing. */
#include "detect_net.h"

static void make_asynchronous(struct net *net)
{
	unlink_all(net);
	for (uint32_t i = 0; i < net->sim.ranks; i++)
		net->sim.rank[i].tier = NT_FRAME_T1;
}

static void counters_that_turn_as_the_job_slows_down_name_the_nic(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 82);
	make_asynchronous(&net);
	net.retransmits[0] = net.retransmits[1] = net.retransmits[2] = net.retransmits[3] = 5;
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 4.0;
	net.retransmits[1] = 4000;
	net.retransmits[2] = 600; /* who sends to it has some, too */
	net_pass(&net, 25);
	assert_names_nic(&net, 1);
	assert_true(has_evidence(&net, "retransmits, errors or congestion of its ports"));
	net_free(&net);
}

static void counters_of_two_nodes_name_the_path(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 83);
	make_asynchronous(&net);
	net_pass(&net, 40);
	net.sim.comm[0].transfer *= 4.0;
	net.retransmits[1] = 4000;
	net.retransmits[3] = 3000;
	net_pass(&net, 25);
	assert_names_path(&net, 1, 3);
	net_free(&net);
}

static void counters_without_a_slow_job_name_nobody(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 84);
	make_asynchronous(&net);
	net_pass(&net, 40);
	net.retransmits[1] = 100000;
	net_pass(&net, 200);
	assert_null(sim_firing(net.detect, 0));
	net_free(&net);
}

static void counters_that_turned_at_another_time_name_nobody(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 85);
	make_asynchronous(&net);
	net_pass(&net, 40);
	net.retransmits[1] = 100000;
	net_pass(&net, 30);
	net.sim.comm[0].transfer *= 4.0;
	net_pass(&net, 100);
	assert_accuses_nobody(net.detect);
	net_free(&net);
}

static void a_slow_rank_is_not_the_nic_whose_counters_turn_with_it(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 86);
	unlink_all(&net);
	net_pass(&net, 40);
	net.sim.rank[5].device *= 2.0;
	net.retransmits[2] = 100000;
	net_pass(&net, 60);
	assert_names_rank(sim_firing(net.detect, 0), 5);
	assert_null(sim_firing(net.detect, 1));
	net_free(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_that_turn_as_the_job_slows_down_name_the_nic),
		cmocka_unit_test(counters_of_two_nodes_name_the_path),
		cmocka_unit_test(counters_without_a_slow_job_name_nobody),
		cmocka_unit_test(counters_that_turned_at_another_time_name_nobody),
		cmocka_unit_test(a_slow_rank_is_not_the_nic_whose_counters_turn_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
