/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/process_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct nt_owner crowd = {.id = 5, .name = "user 65534"};
static const struct nt_owner other = {.id = 6, .name = "user 1000"};

static uint64_t left_out(const struct nt_process_table *table)
{
	struct nt_share_report report;

	nt_share_read(&table->share, &report);
	return report.left_out;
}

static void fill(struct nt_process_table *table)
{
	struct nt_mapping_process *evicted;

	nt_process_table_init(table);
	for (uint32_t pid = 1; pid <= NT_PROCESS_TABLE_PROCESSES; pid++) {
		assert_non_null(nt_process_table_add(table, pid, 1, &crowd, false, &evicted));
		assert_null(evicted);
	}
}

static void a_process_of_another_owner_takes_the_place_of_one_that_never_called(void **state)
{
	struct nt_mapping_process *evicted, *process;
	static struct nt_process_table table;

	(void)state;
	fill(&table);
	nt_share_call(&nt_process_table_find(&table, 1)->place);
	process = nt_process_table_add(&table, 10001, 1, &other, false, &evicted);
	assert_non_null(process);
	assert_int_equal(evicted->pid, 2); /* the first has called */
	nt_process_table_remove(&table, evicted);
	assert_int_equal(nt_process_table_count(&table), NT_PROCESS_TABLE_PROCESSES);
	assert_int_equal(left_out(&table), 1);
	nt_process_table_release(&table);
}

static void one_that_is_refused_is_counted_once_however_often_it_is_seen(void **state)
{
	struct nt_mapping_process *evicted;
	static struct nt_process_table table;

	(void)state;
	fill(&table);
	for (int i = 0; i < 5; i++)
		assert_null(nt_process_table_add(&table, 10001, 1, &crowd, false, &evicted));
	assert_null(nt_process_table_add(&table, 10002, 1, &crowd, false, &evicted));
	assert_int_equal(left_out(&table), 2);
	nt_process_table_recount(&table);
	assert_int_equal(left_out(&table), 0);
	assert_null(nt_process_table_add(&table, 10001, 1, &crowd, false, &evicted));
	assert_int_equal(left_out(&table), 1);
	/* But it comes in when it calls. */
	assert_non_null(nt_process_table_add(&table, 10001, 1, &crowd, true, &evicted));
	assert_int_equal(evicted->pid, 1);
	nt_process_table_release(&table);
}

static void turns_go_round_when_processes_leave(void **state)
{
	struct nt_mapping_process *evicted;
	static struct nt_process_table table;

	(void)state;
	nt_process_table_init(&table);
	assert_null(nt_process_table_next(&table));
	for (uint32_t pid = 1; pid <= 3; pid++)
		assert_non_null(nt_process_table_add(&table, pid, 1, &crowd, false, &evicted));
	assert_int_equal(nt_process_table_next(&table)->pid, 1);
	nt_process_table_remove(&table, nt_process_table_find(&table, 2)); /* whose turn it was */
	assert_int_equal(nt_process_table_next(&table)->pid, 3);
	assert_int_equal(nt_process_table_next(&table)->pid, 1);
	nt_process_table_remove(&table, nt_process_table_find(&table, 3));
	assert_int_equal(nt_process_table_next(&table)->pid, 1);
	nt_process_table_release(&table);
}

static void files_of_a_process_have_a_cap(void **state)
{
	struct nt_mapping_process *evicted, *process;
	const struct nt_process_table_file file = {.dev = 1, .ino = 2};
	static struct nt_process_table table;

	(void)state;
	nt_process_table_init(&table);
	process = nt_process_table_add(&table, 1, 1, &crowd, false, &evicted);
	assert_non_null(process);
	for (int i = 0; i < NT_PROCESS_TABLE_FILES; i++) {
		const struct nt_process_table_file *added =
			nt_process_table_add_file(process, &file, "/x");

		assert_non_null(added);
		assert_string_equal(added->name, "/x");
	}
	assert_null(nt_process_table_add_file(process, &file, "/x"));
	nt_process_table_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_of_another_owner_takes_the_place_of_one_that_never_called),
		cmocka_unit_test(one_that_is_refused_is_counted_once_however_often_it_is_seen),
		cmocka_unit_test(turns_go_round_when_processes_leave),
		cmocka_unit_test(files_of_a_process_have_a_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
