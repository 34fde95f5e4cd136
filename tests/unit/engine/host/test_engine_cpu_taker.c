/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who had the CPU while a rank was runnable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/host/cpu_taker.h"

static struct nt_cpu_takers takers;

static int clear(void **state)
{
	(void)state;
	takers = (struct nt_cpu_takers){0};
	return 0;
}

static void add(uint32_t pid, const char *name, uint64_t ns, uint64_t all_ns)
{
	const struct nt_host_evidence host = {
		.taker_pid = pid, .taker = name, .taker_ns = ns, .taken_ns = all_ns};

	nt_cpu_takers_add(&takers, &host);
}

static void who_took_half_is_named(void **state)
{
	double part = 0.0;

	(void)state;
	assert_null(nt_cpu_takers_main(&takers, &part));
	add(7, "stress", 49, 100);
	assert_null(nt_cpu_takers_main(&takers, &part));
	add(7, "stress", 60, 100);
	assert_non_null(nt_cpu_takers_main(&takers, &part));
	assert_int_equal(nt_cpu_takers_main(&takers, &part)->pid, 7);
	assert_string_equal(nt_cpu_takers_main(&takers, &part)->name, "stress");
	assert_true(part > 0.5 && part < 0.6);
}

static void what_was_long_ago_counts_less(void **state)
{
	double part;

	(void)state;
	add(7, "old", 1000, 1000);
	for (int i = 0; i < 12; i++)
		add(8, "new", 100, 100);
	assert_int_equal(nt_cpu_takers_main(&takers, &part)->pid, 8);
	for (int i = 0; i < 200; i++)
		add(0, NULL, 0, 0);
	assert_true(takers.taken_ns < 1e-9);
}

static void more_processes_than_places_evict_the_least(void **state)
{
	double part;

	(void)state;
	add(99, "most", 100000, 100000);
	for (uint32_t i = 1; i <= 3 * NT_CPU_TAKERS; i++)
		add(i, "few", 10, 10);
	assert_int_equal(nt_cpu_takers_main(&takers, &part)->pid, 99);
}

static void a_name_of_any_length_is_cut(void **state)
{
	double part;

	(void)state;
	add(7, "a name that is longer than the name of any task", 100, 100);
	assert_string_equal(nt_cpu_takers_main(&takers, &part)->name, "a name that is ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_took_half_is_named, clear),
		cmocka_unit_test_setup(what_was_long_ago_counts_less, clear),
		cmocka_unit_test_setup(more_processes_than_places_evict_the_least, clear),
		cmocka_unit_test_setup(a_name_of_any_length_is_cut, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
