/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/port_rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/host/port_address.h"
#include "tests/unit/agent/node/node_tree.h"
#include "tests/unit/scratch.h"

enum {
	PATH_BYTES = 512,
};

#define SECOND_NS 1000000000ULL

static const struct nt_metric_value *rate_of(const struct nt_rdma_port *port, const char *name)
{
	for (size_t i = 0; i < port->rates; i++)
		if (strcmp(port->rate[i].name, name) == 0)
			return &port->rate[i];
	return NULL;
}

static void rates_are_differences_by_time_and_data_counts_words(void **state)
{
	static struct nt_port_rates rates;
	char dir[SCRATCH_BYTES];

	(void)state;
	scratch_make(dir);
	tree_put(dir, "mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
	tree_put(dir, "mlx5_0/ports/1/hw_counters/packet_seq_err", "5\n");
	tree_put(dir, "mlx5_0/ports/1/hw_counters/np_cnp_sent", "9\n");
	nt_port_rates_read(dir, SECOND_NS, &rates);
	assert_int_equal(rates.ports, 0); /* nothing to compare with */
	tree_put(dir, "mlx5_0/ports/1/counters/port_xmit_data", "2000\n");
	tree_put(dir, "mlx5_0/ports/1/hw_counters/packet_seq_err", "15\n");
	tree_put(dir, "mlx5_0/ports/1/hw_counters/np_cnp_sent", "1\n"); /* reset */
	nt_port_rates_read(dir, 6 * SECOND_NS, &rates);
	assert_int_equal(rates.ports, 1);
	assert_string_equal(rates.port[0].device, "mlx5_0");
	assert_int_equal(rates.port[0].port, 1);
	assert_int_equal(rates.port[0].rates, 2);
	assert_true(rate_of(&rates.port[0], "xmit_bytes")->value == 800);
	assert_true(rate_of(&rates.port[0], "packet_seq_err")->value == 2);
	assert_null(rate_of(&rates.port[0], "np_cnp_sent"));
	scratch_remove(dir);
}

static void traffic_is_summed_over_ports_that_count_both_directions(void **state)
{
	static struct nt_port_rates rates;
	char dir[SCRATCH_BYTES];

	(void)state;
	scratch_make(dir);
	tree_put(dir, "mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
	tree_put(dir, "mlx5_0/ports/1/counters/port_rcv_data", "10\n");
	tree_put(dir, "mlx5_0/ports/2/counters/port_rcv_data", "7777\n");
	nt_port_rates_read(dir, SECOND_NS, &rates);
	tree_put(dir, "mlx5_0/ports/1/counters/port_xmit_data", "1500\n");
	tree_put(dir, "mlx5_1/ports/1/counters/port_xmit_data", "900000\n"); /* has a past */
	tree_put(dir, "mlx5_1/ports/1/counters/port_rcv_data", "900000\n");
	nt_port_rates_read(dir, 2 * SECOND_NS, &rates);
	tree_put(dir, "mlx5_1/ports/1/counters/port_rcv_data", "900001\n");
	nt_port_rates_read(dir, 3 * SECOND_NS, &rates);
	assert_true(rates.has_bytes);
	assert_false(rates.has_naks);
	assert_int_equal(rates.sum.total[NT_PORT_SENT_BYTES], 1500 * 4);
	assert_int_equal(rates.sum.total[NT_PORT_RECEIVED_BYTES], 11 * 4);
	scratch_remove(dir);
}

static void a_counter_that_cannot_be_read_for_a_while_adds_nothing(void **state)
{
	static struct nt_port_rates rates;
	char dir[SCRATCH_BYTES];

	(void)state;
	scratch_make(dir);
	tree_put(dir, "mlx5_0/ports/1/hw_counters/out_of_sequence", "100\n");
	tree_put(dir, "mlx5_0/ports/1/hw_counters/duplicate_request", "1000\n");
	tree_put(dir, "mlx5_0/ports/1/hw_counters/packet_seq_err", "7\n"); /* of the sender */
	nt_port_rates_read(dir, SECOND_NS, &rates);
	assert_int_equal(rates.sum.total[NT_PORT_NAKS], 1100);
	tree_put(dir, "mlx5_0/ports/1/hw_counters/duplicate_request", "busy\n");
	nt_port_rates_read(dir, 2 * SECOND_NS, &rates);
	tree_put(dir, "mlx5_0/ports/1/hw_counters/duplicate_request", "1000\n");
	nt_port_rates_read(dir, 3 * SECOND_NS, &rates);
	assert_int_equal(rates.sum.total[NT_PORT_NAKS], 1100);
	tree_put(dir, "mlx5_0/ports/1/hw_counters/out_of_sequence", "103\n");
	nt_port_rates_read(dir, 4 * SECOND_NS, &rates);
	assert_int_equal(rates.sum.total[NT_PORT_NAKS], 1103);
	assert_true(rates.has_naks);
	assert_false(rates.has_bytes);
	scratch_remove(dir);
	nt_port_rates_read(dir, 5 * SECOND_NS, &rates);
	assert_false(rates.has_naks);
}

static void ports_are_capped_and_counted(void **state)
{
	static struct nt_port_rates rates;
	char dir[SCRATCH_BYTES], name[PATH_BYTES];

	(void)state;
	scratch_make(dir);
	for (int i = 0; i < NT_PORT_RATES_PORTS + 2; i++) {
		(void)snprintf(name, sizeof(name), "d%d/ports/1/counters/port_rcv_data", i);
		tree_put(dir, name, "7\n");
	}
	nt_port_rates_read(dir, SECOND_NS, &rates);
	nt_port_rates_read(dir, 2 * SECOND_NS, &rates);
	assert_true(rates.ports <= NT_PORT_RATES_PORTS);
	assert_int_equal(rates.ports_over_cap, 4);
	scratch_remove(dir);
	nt_port_rates_read("/no/such/directory", 3 * SECOND_NS, &rates);
	assert_int_equal(rates.ports, 0);
}

static void an_address_is_read_only_below_the_device(void **state)
{
	uint8_t gid[NT_PORT_GID_BYTES] = {0};
	char dir[SCRATCH_BYTES];
	uint32_t lid;

	(void)state;
	scratch_make(dir);
	tree_put(dir, "mlx5_0/ports/1/gids/3", "fe80:0000:0000:0000:0202:c9ff:fe12:3456\n");
	tree_put(dir, "mlx5_0/ports/1/lid", "0x1f\n");
	assert_true(nt_port_address_read(dir, "mlx5_0", 1, 3, gid, &lid));
	assert_int_equal(lid, 0x1f);
	assert_int_equal(gid[0], 0xfe);
	assert_int_equal(gid[15], 0x56);
	assert_false(nt_port_address_read(dir, "mlx5_0", 1, 4, gid, &lid));
	assert_int_equal(lid, 0x1f);
	/* Names that a process made up. */
	assert_false(nt_port_address_read(dir, "../mlx5_0", 1, 3, gid, &lid));
	assert_false(nt_port_address_read(dir, "mlx5_0/../mlx5_0", 1, 3, gid, &lid));
	assert_false(nt_port_address_read(dir, "", 1, 3, gid, &lid));
	assert_int_equal(lid, 0);
	scratch_remove(dir);
}

static void a_gid_is_eight_groups_of_four_digits(void **state)
{
	static const char good[] = "fe80:0000:0000:0000:0202:c9ff:fe12:3456";
	uint8_t gid[NT_PORT_GID_BYTES];
	char bad[sizeof(good)];

	(void)state;
	assert_true(nt_port_address_parse(good, sizeof(good) - 1, gid));
	for (size_t i = 0; i < sizeof(good) - 1; i++)
		assert_false(nt_port_address_parse(good, i, gid));
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		memcpy(bad, good, sizeof(good));
		bad[i] = 'x';
		assert_false(nt_port_address_parse(bad, sizeof(good) - 1, gid));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_differences_by_time_and_data_counts_words),
		cmocka_unit_test(traffic_is_summed_over_ports_that_count_both_directions),
		cmocka_unit_test(a_counter_that_cannot_be_read_for_a_while_adds_nothing),
		cmocka_unit_test(ports_are_capped_and_counted),
		cmocka_unit_test(an_address_is_read_only_below_the_device),
		cmocka_unit_test(a_gid_is_eight_groups_of_four_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
