/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/nic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"

enum {
	PATH_BYTES = 512,
};

static const char snmp[] = "Ip: Forwarding DefaultTTL\n"
			   "Ip: 1 64\n"
			   "Tcp: RtoAlgorithm InSegs OutSegs RetransSegs InErrs\n"
			   "Tcp: 1 100 200 42 0\n"
			   "Udp: InDatagrams\n"
			   "Udp: 9\n";

static void put(const char *dir, const char *name, const char *text)
{
	char path[PATH_BYTES];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void retransmitted_segments_are_found_by_name(void **state)
{
	static const char other[] = "Tcp: RetransSegs\nTcp: x\n";
	static const char alone[] = "Tcp: RetransSegs\n";

	(void)state;
	assert_int_equal(nt_nic_parse_snmp(snmp, sizeof(snmp) - 1), 42);
	assert_int_equal(nt_nic_parse_snmp(other, sizeof(other) - 1), 0);
	assert_int_equal(nt_nic_parse_snmp(alone, sizeof(alone) - 1), 0);
	assert_int_equal(nt_nic_parse_snmp("", 0), 0);
	/* Cut anywhere it is no number, or none at all. */
	for (size_t i = 0; i < sizeof(snmp) - 1; i++)
		assert_true(nt_nic_parse_snmp(snmp, i) <= 42);
}

static void counters_of_all_ports_are_added_by_class(void **state)
{
	char dir[SCRATCH_BYTES], file[PATH_BYTES];
	struct nt_nic nic;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	put(dir, "mlx5_0/ports/1/hw_counters/packet_seq_err", "3\n");
	put(dir, "mlx5_0/ports/1/counters/port_rcv_errors", "10\n");
	put(dir, "mlx5_0/ports/1/counters/port_xmit_discards", "many\n");
	put(dir, "mlx5_0/ports/1/counters/port_xmit_data", "123456789\n");
	put(dir, "mlx5_1/ports/1/hw_counters/rp_cnp_handled", "500\n");
	put(dir, "mlx5_1/ports/2/counters/symbol_error", "18446744073709551615\n");
	put(dir, "snmp", snmp);
	(void)snprintf(file, sizeof(file), "%s/snmp", dir);
	nt_nic_read(dir, file, &nic);
	assert_int_equal(nic.ports, 3);
	assert_int_equal(nic.ports_over_cap, 0);
	assert_int_equal(nic.retransmits, 3 + 42);
	assert_true(nic.errors == UINT64_MAX); /* not beyond it */
	assert_int_equal(nic.congestion, 500);
	scratch_remove(dir);
}

static void ports_beyond_the_cap_are_left_out_and_counted(void **state)
{
	char dir[SCRATCH_BYTES], name[PATH_BYTES];
	struct nt_nic nic;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	for (int i = 0; i < NT_NIC_PORTS + 2; i++) {
		(void)snprintf(name, sizeof(name), "dev%d/ports/1/counters/symbol_error", i);
		put(dir, name, "1\n");
	}
	nt_nic_read(dir, "/no/such/file", &nic);
	assert_int_equal(nic.ports, NT_NIC_PORTS);
	assert_int_equal(nic.ports_over_cap, 2);
	assert_int_equal(nic.errors, NT_NIC_PORTS);
	scratch_remove(dir);
}

static void a_node_without_any_counts_nothing(void **state)
{
	struct nt_nic nic = {.ports = 7};

	(void)state;
	nt_nic_read("/no/such/directory", "/no/such/file", &nic);
	assert_int_equal(nic.ports, 0);
	assert_int_equal(nic.retransmits + nic.errors + nic.congestion, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retransmitted_segments_are_found_by_name),
		cmocka_unit_test(counters_of_all_ports_are_added_by_class),
		cmocka_unit_test(ports_beyond_the_cap_are_left_out_and_counted),
		cmocka_unit_test(a_node_without_any_counts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
