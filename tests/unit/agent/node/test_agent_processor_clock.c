/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/processor_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/node/node_tree.h"
#include "tests/unit/scratch.h"

static void put_processor(const char *dir, int processor, const char *file, const char *text)
{
	char name[TREE_PATH_BYTES];

	(void)snprintf(name, sizeof(name), "cpu%d/%s", processor, file);
	tree_put(dir, name, text);
}

#define FREQUENCY "cpufreq/scaling_cur_freq"
#define PACKAGE   "topology/physical_package_id"
#define THROTTLED "thermal_throttle/package_throttle_total_time_ms"

static void sixteen_processors_are_spread_over_the_node(void **state)
{
	static struct nt_processor_clock clock;
	char dir[SCRATCH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	for (int i = 0; i < 64; i++)
		put_processor(dir, i, FREQUENCY, i < 32 ? "1000000\n" : "3000000\n");
	nt_processor_clock_read(dir, &clock);
	assert_int_equal(clock.samples, NT_PROCESSOR_CLOCK_SAMPLES);
	assert_int_equal(clock.sample[15], 60);
	assert_true(clock.has_frequency);
	assert_true(clock.frequency_hertz == 2e9);
	/* What cannot be read now is left out. */
	put_processor(dir, 0, FREQUENCY, "<unknown>\n");
	nt_processor_clock_read(dir, &clock);
	assert_float_equal(clock.frequency_hertz, 31e9 / 15, 1);
	scratch_remove(dir);
	nt_processor_clock_read(dir, &clock);
	assert_false(clock.has_frequency);
}

static void throttled_time_counts_once_for_each_package(void **state)
{
	static struct nt_processor_clock clock;
	char dir[SCRATCH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	for (int i = 0; i < 4; i++) {
		put_processor(dir, i, PACKAGE, i < 2 ? "0\n" : "1\n");
		put_processor(dir, i, THROTTLED, i < 2 ? "100\n" : "20\n");
	}
	nt_processor_clock_read(dir, &clock);
	assert_int_equal(clock.packages, 2);
	assert_true(clock.has_throttled);
	assert_int_equal(clock.throttled.total[0], 120);
	assert_false(clock.has_frequency);
	put_processor(dir, 2, THROTTLED, "1520\n");
	nt_processor_clock_read(dir, &clock);
	assert_int_equal(clock.throttled.total[0], 1620);
	scratch_remove(dir);
}

static void packages_over_the_cap_are_left_out_and_counted(void **state)
{
	static struct nt_processor_clock clock;
	char dir[SCRATCH_BYTES], package[16];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	for (int i = 0; i < NT_PROCESSOR_CLOCK_PACKAGES + 2; i++) {
		(void)snprintf(package, sizeof(package), "%d\n", i);
		put_processor(dir, i, PACKAGE, package);
		put_processor(dir, i, THROTTLED, "1\n");
	}
	nt_processor_clock_read(dir, &clock);
	assert_int_equal(clock.packages, NT_PROCESSOR_CLOCK_PACKAGES);
	assert_int_equal(clock.packages_over_cap, 2);
	assert_int_equal(clock.throttled.total[0], NT_PROCESSOR_CLOCK_PACKAGES);
	scratch_remove(dir);
}

static void a_machine_that_states_neither_has_neither(void **state)
{
	static struct nt_processor_clock clock;
	char dir[SCRATCH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	put_processor(dir, 0, PACKAGE, "0\n");
	nt_processor_clock_read(dir, &clock);
	assert_false(clock.has_frequency);
	assert_false(clock.has_throttled);
	assert_int_equal(clock.packages, 0);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_processors_are_spread_over_the_node),
		cmocka_unit_test(throttled_time_counts_once_for_each_package),
		cmocka_unit_test(packages_over_the_cap_are_left_out_and_counted),
		cmocka_unit_test(a_machine_that_states_neither_has_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
