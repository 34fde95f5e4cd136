/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/gpu/gpu_metrics.h"
#include "agent/node/rank_times.h"
#include "proto/node_metric.h"
#include "tests/unit/agent/node/node_tree.h"
#include "tests/unit/scratch.h"

#define SECOND_NS UINT64_C(1000000000)

static const double *find(const struct nt_node *node, const char *name)
{
	for (size_t i = 0; i < node->metrics; i++) {
		if (strcmp(node->metric[i].name, name) == 0)
			return &node->metric[i].value;
	}
	return NULL;
}

static void value_is(const struct nt_node *node, const char *name, double want)
{
	const double *value = find(node, name);

	assert_non_null(value);
	assert_float_equal(*value, want, 1e-9);
}

#define TAKE(take, node, text) take(node, text, sizeof(text) - 1)

static void processors_are_busy_between_two_readings(void **state)
{
	static struct nt_node node;

	(void)state;
	TAKE(nt_node_take_stat, &node, "cpu  100 0 100 700 100 0 0 0 50 50\nprocs_running 3\n");
	assert_null(find(&node, "cpu_busy"));
	value_is(&node, "processes_running", 3);
	node.metrics = 0;
	TAKE(nt_node_take_stat, &node,
	     "cpu  130 10 120 780 120 10 20 10 60 60\nintr 77 1 2 3\nctxt 88\nprocesses 99\n"
	     "procs_blocked 1\n");
	value_is(&node, "cpu_busy", 0.5);
	value_is(&node, "cpu_user", 0.2);
	value_is(&node, "cpu_system", 0.25);
	value_is(&node, "cpu_iowait", 0.1);
	value_is(&node, "cpu_steal", 0.05);
	value_is(&node, "interrupts", 77);
	value_is(&node, "context_switches", 88);
	value_is(&node, "processes_started", 99);
	value_is(&node, "processes_blocked", 1);
}

/* The kernel says that the time of waiting for I/O may decrease. */
static void parts_of_time_stay_between_nothing_and_all(void **state)
{
	static struct nt_node node;

	(void)state;
	TAKE(nt_node_take_stat, &node, "cpu  100 0 0 100 100 0 0 0\n");
	TAKE(nt_node_take_stat, &node, "cpu  110 0 0 100 95 0 0 0\n");
	value_is(&node, "cpu_iowait", 0.0);
	value_is(&node, "cpu_busy", 1.0);
	value_is(&node, "cpu_user", 1.0);
	/* No time has passed, or the processors began anew. */
	node.metrics = 0;
	TAKE(nt_node_take_stat, &node, "cpu  110 0 0 100 95 0 0 0\n");
	TAKE(nt_node_take_stat, &node, "cpu  1 0 0 1 1 0 0 0\n");
	assert_int_equal(node.metrics, 0);
	TAKE(nt_node_take_stat, &node, "cpu  2 0 0 2 1 0 0 0\n");
	value_is(&node, "cpu_busy", 0.5);
}

static void memory_is_in_bytes_and_its_events_are_counted(void **state)
{
	static struct nt_node node;

	(void)state;
	TAKE(nt_node_take_memory, &node,
	     "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n"
	     "SwapTotal:  100 kB\nSwapFree:   30 kB\nDirty: 5 kB\nWriteback: 6 kB\n"
	     "WritebackTmp: 7 kB\n");
	value_is(&node, "memory_total_bytes", 1000 * 1024);
	value_is(&node, "memory_available_bytes", 600 * 1024);
	value_is(&node, "memory_dirty_bytes", 5 * 1024);
	value_is(&node, "memory_writeback_bytes", 6 * 1024);
	value_is(&node, "swap_used_bytes", 70 * 1024);
	TAKE(nt_node_take_vmstat, &node,
	     "pgmajfault 1\npswpin 2\npswpout 3\npgscan_direct_throttle 9\npgscan_direct 4\n"
	     "compact_stall 5\noom_kill 6\n");
	value_is(&node, "page_faults_major", 1);
	value_is(&node, "swap_in_pages", 2);
	value_is(&node, "swap_out_pages", 3);
	value_is(&node, "reclaim_direct_pages", 4);
	value_is(&node, "compaction_stalls", 5);
	value_is(&node, "oom_kills", 6);
}

static void pressure_is_the_exact_time(void **state)
{
	static struct nt_node node;
	static const char text[] = "some avg10=12.50 avg60=1.00 avg300=0.00 total=7000001\n"
				   "full avg10=3.00 avg60=0.00 avg300=0.00 total=500000\n";

	(void)state;
	nt_node_take_pressure(&node, "some", "full", text, sizeof(text) - 1);
	value_is(&node, "some", 7.000001);
	value_is(&node, "full", 0.5);
	node.metrics = 0;
	nt_node_take_pressure(&node, "some", NULL, text, sizeof(text) - 1);
	assert_int_equal(node.metrics, 1);
}

static void load_files_and_drops_are_read(void **state)
{
	static struct nt_node node;

	(void)state;
	TAKE(nt_node_take_load, &node, "0.50 0.40 0.30 1/100 4242\n");
	value_is(&node, "load_1m", 0.5);
	value_is(&node, "threads", 100);
	TAKE(nt_node_take_files, &node, "784\t0\t2466193\n");
	value_is(&node, "files_open", 784);
	TAKE(nt_node_take_softnet, &node, "0011 0000000a 01\n0011 00000010 01\n");
	value_is(&node, "softnet_drops", 26);
}

static void what_makes_no_sense_is_left_out(void **state)
{
	static struct nt_node node;

	(void)state;
	TAKE(nt_node_take_stat, &node, "cpu x\nprocs_running -1\n");
	TAKE(nt_node_take_stat, &node, "cpu 1 2 3 4 5 6 7\n"); /* a column is missing */
	TAKE(nt_node_take_stat, &node, "cpu 2 3 4 5 6 7 8\n");
	TAKE(nt_node_take_stat, &node, "cpu \n");
	TAKE(nt_node_take_memory, &node, "MemTotal: lots\nSwapTotal: 1 kB\nSwapFree: 2 kB\n");
	TAKE(nt_node_take_vmstat, &node, "oom_kill\noom_kill x\n");
	TAKE(nt_node_take_load, &node, "nan 0 0 1/");
	TAKE(nt_node_take_load, &node, "");
	TAKE(nt_node_take_files, &node, "784");
	TAKE(nt_node_take_files, &node, "\t");
	TAKE(nt_node_take_softnet, &node, "0011\nx y\n0011 100000000\n");
	nt_node_take_pressure(&node, "some", "full", "some total=-1\nfull total=\nfull\n", 31);
	assert_int_equal(node.metrics, 0);
}

static void metrics_over_the_cap_are_left_out(void **state)
{
	static struct nt_node node;

	(void)state;
	for (int i = 0; i < NT_NODE_METRICS + 5; i++)
		TAKE(nt_node_take_load, &node, "1.0 1");
	assert_int_equal(node.metrics, NT_NODE_METRICS);
}

static void only_what_there_is_has_counters(void **state)
{
	static struct nt_node node;
	static struct nt_nic nic;
	static struct nt_port_rates rates;

	(void)state;
	nt_node_take_nic(&node, &nic);
	nt_node_take_ports(&node, &rates);
	assert_int_equal(node.metrics, 0);
	nic.has_tcp = true;
	nic.tcp = (struct nt_nic_tcp){5, 6};
	nt_node_take_nic(&node, &nic);
	assert_int_equal(node.metrics, 2);
	value_is(&node, "tcp_retransmits", 5);
	value_is(&node, "tcp_resets", 6);
}

static void this_machine_can_be_read(void **state)
{
	static struct nt_node node;

	(void)state;
	nt_node_read(&node, "/proc", "/sys", SECOND_NS);
	assert_non_null(find(&node, "memory_total_bytes"));
	assert_non_null(find(&node, "load_1m"));
	assert_non_null(find(&node, "oom_kills"));
	assert_true(node.bytes_read > 1000);
	for (size_t i = 0; i < node.metrics; i++)
		assert_non_null(nt_node_metric_find(node.metric[i].name));
}

static void a_machine_without_disks_and_pressure_has_no_such_metrics(void **state)
{
	static struct nt_node node;
	char dir[SCRATCH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	tree_put(dir, "loadavg", "0.50 0.40 0.30 1/100 4242\n");
	tree_put(dir, "diskstats", "7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n");
	tree_put(dir, "1/net/dev", "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
	nt_node_read(&node, dir, "/no/such/directory", SECOND_NS);
	nt_node_read(&node, dir, "/no/such/directory", 2 * SECOND_NS);
	assert_int_equal(node.metrics, 2);
	value_is(&node, "load_1m", 0.5);
	value_is(&node, "threads", 100);
	scratch_remove(dir);
}

/* ---- all metrics ----------------------------------------------------------------------------- */

static void put_machine(const char *dir, const char *stat)
{
	tree_put(dir, "proc/stat", stat);
	tree_put(dir, "proc/loadavg", "0.50 0.40 0.30 1/100 4242\n");
	tree_put(dir, "proc/meminfo",
		 "MemTotal: 9 kB\nMemAvailable: 8 kB\nDirty: 1 kB\nWriteback: 1 kB\n"
		 "SwapTotal: 2 kB\nSwapFree: 1 kB\n");
	tree_put(dir, "proc/vmstat",
		 "pgmajfault 1\npswpin 2\npswpout 3\npgscan_direct 4\ncompact_stall 5\n"
		 "oom_kill 6\n");
	tree_put(dir, "proc/net/softnet_stat", "0011 0000000a 01\n");
	tree_put(dir, "proc/sys/fs/file-nr", "784\t0\t2466193\n");
	tree_put(dir, "proc/pressure/cpu", "some total=1\nfull total=0\n");
	tree_put(dir, "proc/pressure/memory", "some total=1\nfull total=0\n");
	tree_put(dir, "proc/pressure/io", "some total=1\nfull total=0\n");
	tree_put(dir, "proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
	tree_put(dir, "proc/1/net/dev", "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
	tree_put(dir, "proc/1/net/snmp", "Tcp: EstabResets RetransSegs\nTcp: 1 2\n");
	tree_put(dir, "sys/block/sda/device", "");
	tree_put(dir, "sys/class/net/eth0/device", "");
	tree_put(dir, "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1\n");
	tree_put(dir, "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "1\n");
	tree_put(dir, "sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "1\n");
	tree_put(dir, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1\n");
	tree_put(dir, "sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
	tree_put(dir,
		 "sys/devices/system/cpu/cpu0/thermal_throttle/"
		 "package_throttle_total_time_ms",
		 "1\n");
}

static void add_others(struct nt_node *node, const char *dir)
{
	static struct nt_gpu_cards cards = {.count = 1};
	static struct nt_port_rates rates;
	static struct nt_nic nic;
	struct nt_metric_value metric[NT_GPU_METRICS];
	struct nt_rank_times times = {1.0, 1.0, 1, 1};
	char sys[TREE_PATH_BYTES], snmp[TREE_PATH_BYTES];

	for (int i = 0; i < NT_GPU_CARD_END; i++)
		nt_gpu_card_set(&cards.card[0], (enum nt_gpu_card_value)i, 1);
	nt_node_add(node, metric, nt_gpu_metrics(&cards, metric));
	nt_node_add(node, metric, nt_rank_times_take(&times, metric));
	(void)snprintf(sys, sizeof(sys), "%s/sys/class/infiniband", dir);
	(void)snprintf(snmp, sizeof(snmp), "%s/proc/1/net/snmp", dir);
	nt_port_rates_read(sys, SECOND_NS, &rates);
	nt_nic_read(sys, snmp, &nic);
	nt_node_take_ports(node, &rates);
	nt_node_take_nic(node, &nic);
}

/* Those of agent/agent_node.c are compared by tests/check/node_metrics.sh. */
static bool is_of_agent(const char *name)
{
	return strncmp(name, "agent_", strlen("agent_")) == 0;
}

static void a_machine_that_has_everything_sends_each_row_of_the_table_once(void **state)
{
	static struct nt_node node;
	char dir[SCRATCH_BYTES], proc[TREE_PATH_BYTES], sys[TREE_PATH_BYTES];
	static const char *const name[] = {
#define NT_NODE_METRIC(name, kind, unit, scored, about) #name,
#include "proto/node_metric.def"
	};
	const size_t rows = sizeof(name) / sizeof(name[0]);
	size_t agent_rows = 0;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(proc, sizeof(proc), "%s/proc", dir);
	(void)snprintf(sys, sizeof(sys), "%s/sys", dir);
	put_machine(dir, "cpu  1 0 0 1 1 0 0 0\n");
	nt_node_read(&node, proc, sys, SECOND_NS);
	put_machine(dir, "cpu  2 0 0 2 2 0 0 0\nintr 1\nctxt 1\nprocesses 1\nprocs_running 1\n"
			 "procs_blocked 1\n");
	nt_node_read(&node, proc, sys, 2 * SECOND_NS);
	assert_int_equal(nt_node_over_cap(&node), 0);
	add_others(&node, dir);
	for (size_t i = 0; i < rows; i++) {
		agent_rows += is_of_agent(name[i]);
		if (!is_of_agent(name[i]) && !find(&node, name[i]))
			fail_msg("%s is not sent", name[i]);
	}
	for (size_t i = 0; i < node.metrics; i++)
		if (!nt_node_metric_find(node.metric[i].name))
			fail_msg("%s is not in the table", node.metric[i].name);
	/* So none is sent twice. */
	assert_int_equal(node.metrics + agent_rows, rows);
	assert_true(rows <= NT_NODE_METRICS);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processors_are_busy_between_two_readings),
		cmocka_unit_test(parts_of_time_stay_between_nothing_and_all),
		cmocka_unit_test(memory_is_in_bytes_and_its_events_are_counted),
		cmocka_unit_test(pressure_is_the_exact_time),
		cmocka_unit_test(load_files_and_drops_are_read),
		cmocka_unit_test(what_makes_no_sense_is_left_out),
		cmocka_unit_test(metrics_over_the_cap_are_left_out),
		cmocka_unit_test(only_what_there_is_has_counters),
		cmocka_unit_test(this_machine_can_be_read),
		cmocka_unit_test(a_machine_without_disks_and_pressure_has_no_such_metrics),
		cmocka_unit_test(a_machine_that_has_everything_sends_each_row_of_the_table_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
