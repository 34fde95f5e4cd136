/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/roster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct nt_owner crowd = {.id = 5, .name = "user 65534"};
static const struct nt_owner other = {.id = 6, .name = "user 1000"};

static uint64_t left_out(const struct nt_roster *roster)
{
	struct nt_share_report report;

	nt_share_read(&roster->share, &report);
	return report.left_out;
}

static void fill(struct nt_roster *roster)
{
	struct nt_roster_process *evicted;

	nt_roster_init(roster);
	for (uint32_t pid = 1; pid <= NT_ROSTER_PROCESSES; pid++) {
		assert_non_null(nt_roster_add(roster, pid, 1, &crowd, false, &evicted));
		assert_null(evicted);
	}
}

static void a_process_of_another_owner_takes_the_place_of_one_that_never_called(void **state)
{
	struct nt_roster_process *evicted, *process;
	static struct nt_roster roster;

	(void)state;
	fill(&roster);
	nt_share_call(&nt_roster_find(&roster, 1)->place);
	process = nt_roster_add(&roster, 10001, 1, &other, false, &evicted);
	assert_non_null(process);
	assert_int_equal(evicted->pid, 2); /* the first has called */
	nt_roster_remove(&roster, evicted);
	assert_int_equal(nt_roster_count(&roster), NT_ROSTER_PROCESSES);
	assert_int_equal(left_out(&roster), 1);
	nt_roster_release(&roster);
}

static void one_that_is_refused_is_counted_once_however_often_it_is_seen(void **state)
{
	struct nt_roster_process *evicted;
	static struct nt_roster roster;

	(void)state;
	fill(&roster);
	for (int i = 0; i < 5; i++)
		assert_null(nt_roster_add(&roster, 10001, 1, &crowd, false, &evicted));
	assert_null(nt_roster_add(&roster, 10002, 1, &crowd, false, &evicted));
	assert_int_equal(left_out(&roster), 2);
	nt_roster_recount(&roster);
	assert_int_equal(left_out(&roster), 0);
	assert_null(nt_roster_add(&roster, 10001, 1, &crowd, false, &evicted));
	assert_int_equal(left_out(&roster), 1);
	/* But it comes in when it calls. */
	assert_non_null(nt_roster_add(&roster, 10001, 1, &crowd, true, &evicted));
	assert_int_equal(evicted->pid, 1);
	nt_roster_release(&roster);
}

static void turns_go_round_whoever_leaves(void **state)
{
	struct nt_roster_process *evicted;
	static struct nt_roster roster;

	(void)state;
	nt_roster_init(&roster);
	assert_null(nt_roster_turn(&roster));
	for (uint32_t pid = 1; pid <= 3; pid++)
		assert_non_null(nt_roster_add(&roster, pid, 1, &crowd, false, &evicted));
	assert_int_equal(nt_roster_turn(&roster)->pid, 1);
	nt_roster_remove(&roster, nt_roster_find(&roster, 2)); /* whose turn it was */
	assert_int_equal(nt_roster_turn(&roster)->pid, 3);
	assert_int_equal(nt_roster_turn(&roster)->pid, 1);
	nt_roster_remove(&roster, nt_roster_find(&roster, 3));
	assert_int_equal(nt_roster_turn(&roster)->pid, 1);
	nt_roster_release(&roster);
}

static void files_of_a_process_have_a_cap(void **state)
{
	struct nt_roster_process *evicted, *process;
	const struct nt_roster_file file = {.dev = 1, .ino = 2};
	static struct nt_roster roster;

	(void)state;
	nt_roster_init(&roster);
	process = nt_roster_add(&roster, 1, 1, &crowd, false, &evicted);
	assert_non_null(process);
	for (int i = 0; i < NT_ROSTER_FILES; i++) {
		const struct nt_roster_file *added = nt_roster_add_file(process, &file, "/x");

		assert_non_null(added);
		assert_string_equal(added->name, "/x");
	}
	assert_null(nt_roster_add_file(process, &file, "/x"));
	nt_roster_release(&roster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_of_another_owner_takes_the_place_of_one_that_never_called),
		cmocka_unit_test(one_that_is_refused_is_counted_once_however_often_it_is_seen),
		cmocka_unit_test(turns_go_round_whoever_leaves),
		cmocka_unit_test(files_of_a_process_have_a_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
