/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which NIC and which path: the delay matrix, and what communicators share. */
#include "tests/unit/detect/detect_net.h"

static void a_hot_row_is_the_node_that_sends(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 4, 61);
	slow_row(&net, 2, 3.0);
	net_pass(&net, 20);
	assert_names_nic(&net, 2);
	assert_true(has_evidence(&net, "shortest transfer from the node"));
	assert_false(has_evidence(&net, "shortest transfer to the node"));
	assert_true(sim_firing(net.detect, 0)->slowdown > 1.2);
	net_free(&net);
}

/* Threads wait for a processor for a part of the whole time, however little of it is seen. */
static void a_nic_of_a_sampled_job_is_named_unless_its_threads_are_starved(void **state)
{
	(void)state;
	for (int starved = 0; starved < 2; starved++) {
		struct net net;

		net_init(&net, 4, 61);
		net.slices = 20;
		net.starved = starved ? 0.11 : 0.05;
		net_pass(&net, 40);
		slow_row(&net, 2, 3.0);
		net_pass(&net, 20);
		if (!starved)
			assert_names_nic(&net, 2);
		else if (sim_firing(net.detect, 0))
			assert_false(has_evidence(&net, "shortest transfer from the node"));
		net_free(&net);
	}
}

static void a_hot_column_is_the_node_that_receives(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 4, 62);
	slow_column(&net, 1, 3.0);
	net_pass(&net, 20);
	assert_names_nic(&net, 1);
	assert_true(has_evidence(&net, "shortest transfer to the node"));
	assert_false(has_evidence(&net, "shortest transfer from the node"));
	net_free(&net);
}

static void a_hot_row_and_column_are_one_nic(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 5, 63);
	slow_row(&net, 3, 4.0);
	slow_column(&net, 3, 4.0);
	net_pass(&net, 20);
	assert_names_nic(&net, 3);
	net_free(&net);
}

static void one_hot_cell_is_the_path(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 4, 64);
	slow_down(&net, 3, 1, 3.0);
	net_pass(&net, 20);
	assert_names_path(&net, 3, 1);
	net_free(&net);
}

static void both_ways_between_two_nodes_are_one_path(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 4, 65);
	slow_down(&net, 3, 1, 3.0);
	slow_down(&net, 1, 3, 3.0);
	net_pass(&net, 20);
	assert_names_path(&net, 1, 3);
	net_free(&net);
}

/* A ring has one cell in each row and column. */
static void in_a_ring_the_node_between_two_hot_cells_is_named(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 6, 66);
	unlink_all(&net);
	for (uint32_t i = 0; i < 6; i++)
		link_only(&net, i, (i + 1) % 6);
	net_pass(&net, 40);
	slow_down(&net, 4, 5, 3.0);
	slow_down(&net, 5, 0, 3.0);
	net_pass(&net, 20);
	assert_names_nic(&net, 5);
	net_free(&net);
}

static void cells_that_nothing_joins_name_nobody(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 5, 67);
	slow_down(&net, 0, 1, 3.0);
	slow_down(&net, 2, 3, 3.0);
	assert_names_nobody(&net, 60);
	net_free(&net);
}

/* Half of a row: neither a NIC nor one path. */
static void half_a_row_names_nobody(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 5, 68);
	slow_down(&net, 0, 1, 3.0);
	slow_down(&net, 0, 2, 3.0);
	assert_names_nobody(&net, 60);
	net_free(&net);
}

/* One cell of it is as it was: whatever is slow, it is not that NIC. */
static void a_row_with_one_cool_cell_names_nobody(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 6, 68);
	for (uint32_t i = 1; i < 5; i++)
		slow_down(&net, 0, i, 3.0);
	assert_names_nobody(&net, 60);
	net_free(&net);
}

static void noise_names_nobody(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 6, 69);
	net.noise = 0.3;
	assert_names_nobody(&net, 600);
	net_free(&net);
}

static void cells_that_are_not_heard_do_not_hide_the_row(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 5, 70);
	slow_row(&net, 0, 3.0);
	net.linked[0][3] = false;
	net.linked[2][4] = false;
	net_pass(&net, 20);
	assert_names_nic(&net, 0);
	net_free(&net);
}

static void of_two_nodes_the_path_is_named(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 2, 71);
	slow_down(&net, 0, 1, 3.0);
	slow_down(&net, 1, 0, 3.0);
	net_pass(&net, 20);
	assert_names_path(&net, 0, 1);
	net_free(&net);
}

static void one_node_has_no_network(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 1, 72);
	/* To itself. */
	net.linked[0][0] = true;
	net.factor[0][0] = 50.0;
	net.step_more_ns = 20.0 * SIM_MS;
	net_pass(&net, 60);
	for (size_t i = 0; sim_firing(net.detect, i); i++)
		assert_int_not_equal(sim_firing(net.detect, i)->class, NT_CLASS_NETWORK);
	net_free(&net);
}

/* The other side may come late each time: that is no transfer. */
static void one_side_alone_proves_nothing(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 73);
	net.one_sided = true;
	net_pass(&net, 40);
	slow_row(&net, 2, 5.0);
	net_pass(&net, 60);
	assert_accuses_nobody(net.detect);
	net_free(&net);
}

/* What a library measured in the network alone waits for nobody. */
static void one_side_is_enough_in_the_network_alone(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 73);
	net.one_sided = net.in_network = true;
	net_pass(&net, 40);
	slow_row(&net, 2, 5.0);
	net_pass(&net, 60);
	assert_names_nic(&net, 2);
	net_free(&net);
}

/* As behind checkpoints: all ranks pause, and the network is busy with what they wrote. */
static void sends_that_explain_a_part_of_a_longer_step_name_no_link(void **state)
{
	struct net net;

	(void)state;
	for (int part = 0; part < 2; part++) {
		net_init(&net, 4, 73);
		net.one_sided = net.in_network = true;
		net_pass(&net, 40);
		slow_row(&net, 2, 1.3);
		net.step_more_ns = (part ? 100.0 : 10.0) * SIM_MS;
		net_pass(&net, 60);
		if (part)
			assert_accuses_nobody(net.detect);
		else
			assert_names_nic(&net, 2);
		net_free(&net);
	}
}

/* Sends that hide behind work make no call of their communicator longer. */
static void calls_that_devices_time_and_are_not_longer_clear_their_links(void **state)
{
	struct net net;

	(void)state;
	for (int timed = 0; timed < 2; timed++) {
		net_init(&net, 4, 73);
		net.sim.comm[0].timed = timed;
		net.sim.comm[0].by_gpu = net.sim.ranks;
		net.one_sided = net.in_network = true;
		net_pass(&net, 40);
		slow_row(&net, 2, 2.0);
		net.step_more_ns = 40.0 * SIM_MS;
		net_pass(&net, 60);
		if (timed)
			assert_accuses_nobody(net.detect);
		else
			assert_names_nic(&net, 2);
		net_free(&net);
	}
}

/* What was slow for a moment, while the step is longer for another reason. */
static void a_longer_step_keeps_no_link_whose_sends_are_measured(void **state)
{
	uint32_t moments = 0;

	(void)state;
	for (uint32_t frames = 3; frames < 12; frames++) {
		struct net net;

		net_init(&net, 4, 73);
		net.one_sided = net.in_network = true;
		net_pass(&net, 40);
		slow_row(&net, 2, 5.0);
		net.step_more_ns = 100.0 * SIM_MS;
		net_pass(&net, frames);
		if (!sim_firing(net.detect, 0)) {
			slow_row(&net, 2, 1.0);
			net.step_more_ns = 100.0 * SIM_MS;
			net_pass(&net, 40);
			assert_accuses_nobody(net.detect);
			moments++;
		}
		net_free(&net);
	}
	assert_in_range(moments, 3, 8);
}

/* A job that sends by MPI too, and whose proxies are measured at times. */
static void other_sends_are_not_compared_with_those_in_the_network_alone(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 73);
	net.one_sided = net.in_network = true;
	net_pass(&net, 40);
	net.one_sided = net.in_network = false;
	unlink_all(&net);
	for (uint32_t i = 0; i < net.nodes; i++)
		net.linked[2][i] = i != 2;
	net.transfer_ns *= 3.0;
	net.step_more_ns = 32.0 * SIM_MS;
	net_pass(&net, 60);
	assert_accuses_nobody(net.detect);
	net_free(&net);
}

/* Sends that overlap with work hold nobody up, whatever they take. */
static void what_the_step_does_not_feel_is_left_alone(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 4, 74);
	slow_down(&net, 3, 1, 5.0);
	net.step_more_ns = 0.0;
	assert_names_nobody(&net, 100);
	net_free(&net);
}

/* A small message is copied and gone: how long that takes varies, and is nobody's fault. */
static void eager_sends_tell_nothing_of_a_slow_network(void **state)
{
	struct net net;

	(void)state;
	net_init(&net, 4, 74);
	net.transfer_ns = 0.002 * SIM_MS;
	net.sim.comm[0].timed = true;
	net_pass(&net, 40);
	slow_down(&net, 2, 1, 5.0);
	net.step_more_ns = 0.0;
	net.sim.comm[0].transfer *= 3.0;
	net_pass(&net, 60);
	assert_non_null(sim_firing(net.detect, 0));
	assert_int_equal(sim_firing(net.detect, 0)->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_null(sim_firing(net.detect, 1));
	net_free(&net);
}

static void absurd_times_accuse_nobody(void **state)
{
	static const double absurd[] = {0.0, 1.0, 1e18, 1.8e19};

	(void)state;
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		struct net net;

		net_start(&net, 4, 75);
		net.noise = 0.0;
		slow_down(&net, 3, 1, 1.0);
		net.factor[3][1] = absurd[i] / net.transfer_ns;
		net.factor[2][1] = absurd[i] / net.transfer_ns;
		net.step_more_ns = 20.0 * SIM_MS;
		assert_names_nobody(&net, 60);
		net_free(&net);
	}
}

/* Everybody is slow between his calls: the network has not changed. */
static void a_slow_job_with_a_fast_network_is_not_the_network(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 4, 76);
	net.sim.rank[5].device *= 2.0;
	net_pass(&net, 60);
	assert_names_rank(sim_firing(net.detect, 0), 5);
	assert_null(sim_firing(net.detect, 1));
	net_free(&net);
}

static void a_nic_that_recovers_is_told_once_and_resolved(void **state)
{
	struct net net;
	uint64_t id;

	(void)state;
	net_start(&net, 4, 77);
	slow_row(&net, 0, 3.0);
	net_pass(&net, 40);
	assert_names_nic(&net, 0);
	id = sim_firing(net.detect, 0)->id;
	slow_row(&net, 0, 1.0);
	net_pass(&net, 200);
	assert_int_equal(sim_open(net.detect), 0);
	/* The next is another one. */
	slow_row(&net, 0, 3.0);
	net_pass(&net, 40);
	assert_names_nic(&net, 0);
	assert_true(sim_firing(net.detect, 0)->id != id);
	net_free(&net);
}

/* ---- state --------------------------------------------------------------------------------------- */

static struct nt_detect *reload(struct nt_detect *detect)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *loaded = NULL;
	uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(nt_detect_load(&rules, data, size, &loaded), 0);
	free(data);
	nt_detect_free(detect);
	return loaded;
}

static void a_restart_in_between_changes_nothing(void **state)
{
	struct nt_finding told[2];

	(void)state;
	for (int restarts = 0; restarts < 2; restarts++) {
		struct net net;

		net_init(&net, 4, 87);
		net.retransmits[0] = 9;
		for (int i = 0; i < 70; i++) {
			if (i == 40)
				for (uint32_t j = 1; j < 4; j++)
					slow_down(&net, 0, j, 3.0);
			if (i == 40)
				net.retransmits[0] = 5000;
			net_pass(&net, 1);
			if (restarts)
				net.detect = reload(net.detect);
		}
		assert_names_nic(&net, 0);
		told[restarts] = *sim_firing(net.detect, 0);
		net_free(&net);
	}
	assert_true(told[0].id == told[1].id);
	assert_true(told[0].version == told[1].version);
	assert_true(told[0].slowdown == told[1].slowdown);
	assert_true(told[0].since_ns == told[1].since_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hot_row_is_the_node_that_sends),
		cmocka_unit_test(a_nic_of_a_sampled_job_is_named_unless_its_threads_are_starved),
		cmocka_unit_test(a_hot_column_is_the_node_that_receives),
		cmocka_unit_test(a_hot_row_and_column_are_one_nic),
		cmocka_unit_test(one_hot_cell_is_the_path),
		cmocka_unit_test(both_ways_between_two_nodes_are_one_path),
		cmocka_unit_test(in_a_ring_the_node_between_two_hot_cells_is_named),
		cmocka_unit_test(cells_that_nothing_joins_name_nobody),
		cmocka_unit_test(half_a_row_names_nobody),
		cmocka_unit_test(a_row_with_one_cool_cell_names_nobody),
		cmocka_unit_test(noise_names_nobody),
		cmocka_unit_test(cells_that_are_not_heard_do_not_hide_the_row),
		cmocka_unit_test(of_two_nodes_the_path_is_named),
		cmocka_unit_test(one_node_has_no_network),
		cmocka_unit_test(one_side_alone_proves_nothing),
		cmocka_unit_test(one_side_is_enough_in_the_network_alone),
		cmocka_unit_test(sends_that_explain_a_part_of_a_longer_step_name_no_link),
		cmocka_unit_test(calls_that_devices_time_and_are_not_longer_clear_their_links),
		cmocka_unit_test(a_longer_step_keeps_no_link_whose_sends_are_measured),
		cmocka_unit_test(other_sends_are_not_compared_with_those_in_the_network_alone),
		cmocka_unit_test(what_the_step_does_not_feel_is_left_alone),
		cmocka_unit_test(eager_sends_tell_nothing_of_a_slow_network),
		cmocka_unit_test(absurd_times_accuse_nobody),
		cmocka_unit_test(a_slow_job_with_a_fast_network_is_not_the_network),
		cmocka_unit_test(a_nic_that_recovers_is_told_once_and_resolved),
		cmocka_unit_test(a_restart_in_between_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
