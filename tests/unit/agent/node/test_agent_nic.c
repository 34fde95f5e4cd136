/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/nic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/agent/node/node_tree.h"
#include "tests/unit/scratch.h"

enum {
	PATH_BYTES = 512,
};

static const char snmp[] = "Ip: Forwarding DefaultTTL\n"
			   "Ip: 1 64\n"
			   "Tcp: RtoAlgorithm EstabResets InSegs RetransSegs InErrs\n"
			   "Tcp: 1 17 200 42 0\n"
			   "Udp: InDatagrams\n"
			   "Udp: 9\n";

static void counters_of_tcp_are_found_by_name(void **state)
{
	static const char other[] = "Tcp: EstabResets RetransSegs\nTcp: 1 x\n";
	static const char half[] = "Tcp: RetransSegs\nTcp: 1\n";
	static const char alone[] = "Tcp: EstabResets RetransSegs\n";
	struct nt_nic_tcp tcp = {.retransmits = 7};

	(void)state;
	assert_false(nt_nic_parse_snmp(other, sizeof(other) - 1, &tcp));
	assert_false(nt_nic_parse_snmp(half, sizeof(half) - 1, &tcp));
	assert_false(nt_nic_parse_snmp(alone, sizeof(alone) - 1, &tcp));
	assert_false(nt_nic_parse_snmp("", 0, &tcp));
	assert_int_equal(tcp.retransmits, 7);
	assert_true(nt_nic_parse_snmp(snmp, sizeof(snmp) - 1, &tcp));
	assert_int_equal(tcp.retransmits, 42);
	assert_int_equal(tcp.resets, 17);
	/* Cut anywhere it is no number, or none at all. */
	for (size_t i = 0; i < sizeof(snmp) - 1; i++)
		assert_true(!nt_nic_parse_snmp(snmp, i, &tcp) || tcp.retransmits <= 42);
}

static void counters_of_all_ports_are_added_by_class(void **state)
{
	char dir[SCRATCH_BYTES], file[PATH_BYTES];
	static struct nt_nic nic;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	tree_put(dir, "mlx5_0/ports/1/hw_counters/packet_seq_err", "3\n");
	tree_put(dir, "mlx5_0/ports/1/counters/port_rcv_errors", "10\n");
	tree_put(dir, "mlx5_0/ports/1/counters/port_xmit_discards", "many\n");
	tree_put(dir, "mlx5_0/ports/1/counters/port_xmit_data", "123456789\n");
	tree_put(dir, "mlx5_1/ports/1/hw_counters/rp_cnp_handled", "500\n");
	tree_put(dir, "mlx5_1/ports/2/counters/symbol_error", "18446744073709551615\n");
	tree_put(dir, "snmp", snmp);
	(void)snprintf(file, sizeof(file), "%s/snmp", dir);
	nt_nic_read(dir, file, &nic);
	assert_int_equal(nic.ports, 3);
	assert_int_equal(nic.ports_over_cap, 0);
	assert_int_equal(nic.retransmits, 3 + 42);
	assert_true(nic.errors == UINT64_MAX); /* not beyond it */
	assert_int_equal(nic.congestion, 500);
	assert_true(nic.has_tcp);
	assert_int_equal(nic.port.total[NT_NIC_RETRANSMITS], 3);
	scratch_remove(dir);
}

static void a_port_that_appears_brings_none_of_its_past(void **state)
{
	char dir[SCRATCH_BYTES];
	static struct nt_nic nic;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	tree_put(dir, "mlx5_0/ports/1/counters/symbol_error", "3\n");
	nt_nic_read(dir, "/no/such/file", &nic);
	tree_put(dir, "mlx5_1/ports/1/counters/symbol_error", "1000000\n");
	nt_nic_read(dir, "/no/such/file", &nic);
	tree_put(dir, "mlx5_1/ports/1/counters/symbol_error", "1000004\n");
	tree_put(dir, "mlx5_0/ports/1/counters/symbol_error", "0\n"); /* reset */
	nt_nic_read(dir, "/no/such/file", &nic);
	assert_int_equal(nic.errors, 3 + 4);
	assert_false(nic.has_tcp);
	scratch_remove(dir);
}

static void ports_beyond_the_cap_are_left_out_and_counted(void **state)
{
	char dir[SCRATCH_BYTES], name[PATH_BYTES];
	static struct nt_nic nic;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	for (int i = 0; i < NT_NIC_PORTS + 2; i++) {
		(void)snprintf(name, sizeof(name), "dev%d/ports/1/counters/symbol_error", i);
		tree_put(dir, name, "1\n");
	}
	nt_nic_read(dir, "/no/such/file", &nic);
	assert_int_equal(nic.ports, NT_NIC_PORTS);
	assert_int_equal(nic.ports_over_cap, 2);
	assert_int_equal(nic.errors, NT_NIC_PORTS);
	scratch_remove(dir);
}

static void a_node_without_any_counts_nothing(void **state)
{
	static struct nt_nic nic = {.ports = 7};

	(void)state;
	nt_nic_read("/no/such/directory", "/no/such/file", &nic);
	assert_int_equal(nic.ports, 0);
	assert_int_equal(nic.retransmits + nic.errors + nic.congestion, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_tcp_are_found_by_name),
		cmocka_unit_test(counters_of_all_ports_are_added_by_class),
		cmocka_unit_test(a_port_that_appears_brings_none_of_its_past),
		cmocka_unit_test(ports_beyond_the_cap_are_left_out_and_counted),
		cmocka_unit_test(a_node_without_any_counts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
