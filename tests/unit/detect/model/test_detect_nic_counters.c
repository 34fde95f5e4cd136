/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counters of ports that turn as a job slows down, and those that turn for nothing. */
#include "tests/unit/detect/detect_net.h"

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
	assert_true(has_evidence(&net, "what its ports had to send again"));
	net_free(&net);
}

/* What firing incidents say of ports, or NULL. */
static const struct nt_finding_evidence *port_evidence(const struct net *net)
{
	const struct nt_finding *finding = sim_firing(net->detect, 0);

	for (size_t i = 0; finding && i < finding->evidences; i++)
		if (strcmp(finding->evidence[i].unit, "events/s") == 0)
			return &finding->evidence[i];
	return NULL;
}

/* Counters are read once a second, so that every other frame has none of what they count. */
static void evidence_of_ports_is_a_mean_and_never_nothing(void **state)
{
	static const char *const what[] = {"what its ports had to send again",
					   "errors and discards of its ports",
					   "congestion marks at its ports"};

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		double expected = 0.0, seen = 0.0;
		struct net net;

		net_init(&net, 4, 86);
		make_asynchronous(&net);
		net_pass(&net, 40);
		net.sim.comm[0].transfer *= 4.0;
		for (int i = 0; i < 30; i++) {
			const struct nt_finding *finding = NULL;
			const struct nt_finding_evidence *row;
			size_t findings = 0;

			(void)net_next(&net);
			for (uint32_t j = 0; j < net.sim.ranks && i % 2 == 0; j++) {
				struct nt_frame_rank *rank = &net.sim.out[j];

				if (rank->node != 1)
					continue;
				rank->nic_retransmits = kind == 0 ? 4000 : 30;
				rank->nic_errors = kind == 1 ? 4000 : 30;
				rank->nic_congestion = kind == 2 ? 4000 : 30;
				expected = 4000 * 1e9 / (double)rank->window_ns;
			}
			assert_int_equal(
				nt_detect_step(net.detect, &net.sim.frame, &finding, &findings), 0);
			row = port_evidence(&net);
			if (!row)
				continue;
			assert_string_equal(row->what, what[kind]);
			assert_true(row->value > 0.45 * expected && row->value < 0.8 * expected);
			assert_true(row->peers == 0.0);
			seen++;
		}
		assert_true(seen > 10);
		/* They count nothing any more: that is no evidence. */
		net_pass(&net, 60);
		assert_non_null(sim_firing(net.detect, 0));
		assert_null(port_evidence(&net));
		net_free(&net);
	}
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
	assert_names_nobody(&net, 200);
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
		cmocka_unit_test(evidence_of_ports_is_a_mean_and_never_nothing),
		cmocka_unit_test(counters_of_two_nodes_name_the_path),
		cmocka_unit_test(counters_without_a_slow_job_name_nobody),
		cmocka_unit_test(counters_that_turned_at_another_time_name_nobody),
		cmocka_unit_test(a_slow_rank_is_not_the_nic_whose_counters_turn_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
