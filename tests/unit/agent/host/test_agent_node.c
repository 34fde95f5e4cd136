/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
	struct nt_node node = {0};

	(void)state;
	TAKE(nt_node_take_stat, &node, "cpu  100 0 100 700 100 0 0 0 50 50\nprocs_running 3\n");
	assert_null(find(&node, "cpu_busy"));
	value_is(&node, "processes_running", 3);
	node.metrics = 0;
	TAKE(nt_node_take_stat, &node, "cpu  160 0 140 780 120 0 0 0 60 60\nprocs_blocked 1\n");
	value_is(&node, "cpu_busy", 0.5);
	value_is(&node, "processes_blocked", 1);
}

static void memory_is_in_bytes(void **state)
{
	struct nt_node node = {0};

	(void)state;
	TAKE(nt_node_take_memory, &node,
	     "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n"
	     "SwapTotal:  100 kB\nSwapFree:   30 kB\n");
	value_is(&node, "memory_total_bytes", 1000 * 1024);
	value_is(&node, "memory_available_bytes", 600 * 1024);
	value_is(&node, "swap_used_bytes", 70 * 1024);
}

static void pressure_is_a_part_of_time(void **state)
{
	struct nt_node node = {0};
	static const char text[] = "some avg10=12.50 avg60=1.00 avg300=0.00 total=7\n"
				   "full avg10=3.00 avg60=0.00 avg300=0.00 total=0\n";

	(void)state;
	nt_node_take_pressure(&node, "some", "full", text, sizeof(text) - 1);
	value_is(&node, "some", 0.125);
	value_is(&node, "full", 0.03);
	TAKE(nt_node_take_load, &node, "0.50 0.40 0.30 1/100 4242\n");
	value_is(&node, "load_1m", 0.5);
}

static void what_makes_no_sense_is_left_out(void **state)
{
	struct nt_node node = {0};

	(void)state;
	TAKE(nt_node_take_stat, &node, "cpu x\nprocs_running -1\n");
	TAKE(nt_node_take_memory, &node, "MemTotal: lots\nSwapTotal: 1 kB\nSwapFree: 2 kB\n");
	TAKE(nt_node_take_load, &node, "nan");
	TAKE(nt_node_take_load, &node, "");
	nt_node_take_pressure(&node, "some", "full", "some avg10=200\n", 15);
	assert_int_equal(node.metrics, 0);
}

static void metrics_over_the_cap_are_left_out(void **state)
{
	struct nt_node node = {0};

	(void)state;
	for (int i = 0; i < NT_NODE_METRICS + 5; i++)
		TAKE(nt_node_take_load, &node, "1.0 1");
	assert_int_equal(node.metrics, NT_NODE_METRICS);
}

static void this_machine_can_be_read(void **state)
{
	struct nt_node node = {0};

	(void)state;
	nt_node_read(&node);
	assert_non_null(find(&node, "memory_total_bytes"));
	assert_non_null(find(&node, "load_1m"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processors_are_busy_between_two_readings),
		cmocka_unit_test(memory_is_in_bytes),
		cmocka_unit_test(pressure_is_a_part_of_time),
		cmocka_unit_test(what_makes_no_sense_is_left_out),
		cmocka_unit_test(metrics_over_the_cap_are_left_out),
		cmocka_unit_test(this_machine_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
