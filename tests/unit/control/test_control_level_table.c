/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/level_table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW (1700000000 * NT_SECOND)

static struct nt_level_table *table;

static int set_up(void **state)
{
	(void)state;
	return nt_level_table_new(&table);
}

static int tear_down(void **state)
{
	(void)state;
	nt_level_table_free(table);
	return 0;
}

/* Set `age` before NOW, for `ttl`. */
static int take(enum nt_request request, const char *target, uint32_t level, uint64_t age_ns,
		uint64_t ttl_ns)
{
	const struct nt_control control = {
		.target = target,
		.level = level,
		.set_real_ns = NOW - age_ns,
		.expires_real_ns = NOW - age_ns + ttl_ns,
		.request = request,
		.id = 7,
		.reason = "operator",
	};

	return nt_level_table_take(table, &control, NOW);
}

static uint32_t level_of(const char *node, const char *key, uint32_t rank)
{
	return nt_level_table_of(table, node, key, rank, true, NOW);
}

static void a_level_concerns_its_target_only(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_LEVEL, "rank:job-a/3", 1, 0, NT_MINUTE), 1);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:job-b", 2, 0, NT_MINUTE), 1);
	assert_int_equal(take(NT_REQUEST_LEVEL, "node:n1", 3, 0, NT_MINUTE), 1);
	assert_int_equal(level_of("n0", "job-a", 3), 1);
	assert_int_equal(level_of("n0", "job-a", 2), 0);
	assert_int_equal(level_of("n0", "job-b", 3), 2);
	assert_int_equal(level_of("n1", "job-b", 3), 3);
	assert_int_equal(level_of("n1", "other", 0), 3);
	/* A rank whose number is guessed by order only has the levels of its job and node. */
	assert_int_equal(nt_level_table_of(table, "n0", "job-a", 3, false, NOW), 0);
	assert_int_equal(nt_level_table_of(table, "n0", "job-b", 3, false, NOW), 2);
}

static void the_highest_request_counts(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_LEVEL, "rank:job-a/3", 1, 0, NT_MINUTE), 1);
	assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, "rank:job-a/3", 2, 0, NT_MINUTE), 1);
	assert_int_equal(level_of("n0", "job-a", 3), 2);
	/* An operator's level 0 ends the operator's level, not the incident's. */
	assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, "rank:job-a/4", 1, 0, NT_MINUTE), 1);
	assert_int_equal(take(NT_REQUEST_LEVEL, "rank:job-a/4", 0, 0, NT_MINUTE), 1);
	assert_int_equal(level_of("n0", "job-a", 4), 1);
}

static void a_level_expires(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 1, NT_MINUTE, NT_MINUTE + 1), 1);
	assert_int_equal(level_of("n", "a", 0), 1);
	assert_int_equal(nt_level_table_of(table, "n", "a", 0, true, NOW + 1), 0);
}

/* Records come in any order, and again after a restart. */
static void the_one_set_last_counts_even_once_expired(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 3, NT_HOUR, 10 * NT_HOUR), 1);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 1, NT_MINUTE, NT_SECOND), 1);
	assert_int_equal(level_of("n", "a", 0), 0);
	nt_level_table_sweep(table, NOW, NULL, NULL);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 3, NT_HOUR, 10 * NT_HOUR), 0);
	assert_int_equal(level_of("n", "a", 0), 0);
	assert_int_equal(nt_level_table_stats(table)->outdated, 1);
}

/* Another aggregator, or one that restarts with another option, requests it for a shorter time. */
static void what_was_set_last_replaces_what_lasts_longer(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, "rank:a/1", 2, NT_MINUTE, NT_HOUR), 1);
	assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, "rank:a/1", 1, 2 * NT_SECOND, NT_SECOND), 1);
	assert_int_equal(level_of("n", "a", 1), 0);
	assert_int_equal(nt_level_table_stats(table)->taken, 2);
	assert_int_equal(take(NT_REQUEST_STACK, "rank:a/1", 0, NT_MINUTE, 2 * NT_MINUTE), 1);
	assert_int_equal(take(NT_REQUEST_STACK, "rank:a/1", 0, NT_SECOND, NT_SECOND), 1);
	assert_int_equal(nt_level_table_stack(table, "a", 1, NOW), 0);
	/* While no earlier one is known, it takes no row. */
	assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, "rank:a/2", 1, NT_MINUTE, NT_SECOND), 0);
	assert_int_equal(nt_level_table_stats(table)->outdated, 1);
}

static void count_removed(void *data, const struct nt_level_entry *entry)
{
	assert_string_equal(entry->target.name, "a");
	++*(int *)data;
}

static void what_cannot_matter_is_swept(void **state)
{
	const struct nt_level_entry *entry[2];
	int removed = 0;

	(void)state;
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 3, 0, NT_HOUR), 1);
	assert_int_equal(nt_level_table_list(table, NOW, entry, 2), 1);
	assert_string_equal(entry[0]->reason, "operator");
	assert_int_equal(nt_level_table_list(table, NOW + NT_HOUR, entry, 2), 0);
	nt_level_table_sweep(table, NOW + NT_LEVEL_MAX_TTL - 1, count_removed, &removed);
	assert_int_equal(removed, 0);
	nt_level_table_sweep(table, NOW + NT_LEVEL_MAX_TTL, count_removed, &removed);
	assert_int_equal(removed, 1);
	/* What is read only when its time is over changes nothing. */
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 3, NT_LEVEL_MAX_TTL, NT_HOUR), 0);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 2, NT_LEVEL_MAX_TTL - 1, NT_HOUR), 1);
}

static void malformed_requests_are_counted(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:", 1, 0, NT_HOUR), -EBADMSG);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 4, 0, NT_HOUR), -EBADMSG);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 1, 0, NT_LEVEL_MAX_TTL + 1), -EBADMSG);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 1, -NT_LEVEL_MAX_AHEAD - 1, 1), -EBADMSG);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 1, 1, -(uint64_t)1), -EBADMSG);
	assert_int_equal(take(NT_REQUEST_STACK, "job:a", 0, 0, NT_MINUTE), -EBADMSG);
	assert_int_equal(take(NT_REQUEST_STACK, "rank:a/1", 0, 0, NT_LEVEL_MAX_ANSWER + 1),
			 -EBADMSG);
	assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, "rank:a/1", 1, 0, NT_LEVEL_MAX_AUTO + 1),
			 -EBADMSG);
	assert_int_equal(nt_level_table_stats(table)->malformed, 8);
	assert_int_equal(take(NT_REQUEST_UNKNOWN, "job:a", 1, 0, NT_HOUR), 0);
	assert_int_equal(nt_level_table_stats(table)->taken, 0);
}

static void a_stack_is_requested_once_for_a_rank(void **state)
{
	(void)state;
	assert_int_equal(take(NT_REQUEST_STACK, "rank:a/1", 0, 0, NT_MINUTE), 1);
	assert_int_equal(nt_level_table_stack(table, "a", 1, NOW), 7);
	assert_int_equal(nt_level_table_stack(table, "a", 0, NOW), 0);
	assert_int_equal(nt_level_table_stack(table, "a", 1, NOW + NT_MINUTE), 0);
	assert_int_equal(level_of("n", "a", 1), 0);
}

static void the_cap_holds(void **state)
{
	char target[32];

	(void)state;
	for (int i = 0; i < NT_LEVEL_TABLE_ENTRIES; i++) {
		(void)snprintf(target, sizeof(target), "rank:a/%d", i);
		assert_int_equal(take(NT_REQUEST_LEVEL, target, 1, 0, NT_HOUR), 1);
	}
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:a", 1, 0, NT_HOUR), -ENOSPC);
	assert_int_equal(nt_level_table_stats(table)->over_cap, 1);
	assert_int_equal(take(NT_REQUEST_LEVEL, "rank:a/5", 0, 0, NT_HOUR), 0); /* as old */
	assert_int_equal(level_of("n", "a", 5), 1);
}

/* A day of incidents, each with requests of its own: none takes a row for longer than it is in force. */
static void requests_of_incidents_leave_room(void **state)
{
	char target[32];

	(void)state;
	for (int i = 0; i < NT_LEVEL_TABLE_ENTRIES; i++) {
		(void)snprintf(target, sizeof(target), "rank:a/%d", i);
		assert_int_equal(take(NT_REQUEST_STACK, target, 0, NT_MINUTE, NT_MINUTE), 0);
		assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, target, 1, NT_MINUTE, NT_MINUTE), 0);
	}
	for (int i = 0; i < NT_LEVEL_TABLE_ENTRIES - NT_LEVEL_TABLE_OPERATORS; i++) {
		(void)snprintf(target, sizeof(target), "rank:a/%d", i);
		assert_int_equal(take(NT_REQUEST_AUTO_LEVEL, target, 1, 0, NT_MINUTE), 1);
	}
	assert_int_equal(take(NT_REQUEST_STACK, "rank:b/0", 0, 0, NT_MINUTE), -ENOSPC);
	for (int i = 0; i < NT_LEVEL_TABLE_OPERATORS; i++) {
		(void)snprintf(target, sizeof(target), "rank:b/%d", i);
		assert_int_equal(take(NT_REQUEST_LEVEL, target, 1, 0, NT_HOUR), 1);
	}
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:c", 1, 0, NT_HOUR), -ENOSPC);
	nt_level_table_sweep(table, NOW + NT_MINUTE, NULL, NULL);
	assert_int_equal(take(NT_REQUEST_LEVEL, "job:c", 1, 0, NT_HOUR), 1);
}

static int take_profile(uint32_t seconds, uint32_t hz, uint32_t kind, uint64_t id,
			const char *target)
{
	const struct nt_control control = {
		.target = target,
		.set_real_ns = NOW,
		.expires_real_ns = NOW + NT_MINUTE,
		.request = NT_REQUEST_PROFILE,
		.id = id,
		.reason = "operator",
		.seconds = seconds,
		.hz = hz,
		.kind = kind,
	};

	return nt_level_table_take(table, &control, NOW);
}

static void a_profile_is_of_a_rank_and_within_its_caps(void **state)
{
	const struct nt_level_entry *entry;

	(void)state;
	assert_int_equal(take_profile(0, 49, 0, 7, "rank:a/3"), -EBADMSG);
	assert_int_equal(take_profile(NT_PROFILE_SECONDS + 1, 49, 0, 7, "rank:a/3"), -EBADMSG);
	assert_int_equal(take_profile(10, 0, 0, 7, "rank:a/3"), -EBADMSG);
	assert_int_equal(take_profile(10, NT_PROFILE_HZ + 1, 0, 7, "rank:a/3"), -EBADMSG);
	assert_int_equal(take_profile(10, 49, NT_PROFILE_KINDS, 7, "rank:a/3"), -EBADMSG);
	assert_int_equal(take_profile(10, 49, 0, 0, "rank:a/3"), -EBADMSG);
	assert_int_equal(take_profile(10, 49, 0, 7, "job:a"), -EBADMSG);
	assert_null(nt_level_table_profile(table, "a", 3, NOW));
	assert_int_equal(
		take_profile(NT_PROFILE_SECONDS, NT_PROFILE_HZ, NT_PROFILE_OFF_CPU, 7, "rank:a/3"),
		1);
	entry = nt_level_table_profile(table, "a", 3, NOW);
	assert_non_null(entry);
	assert_int_equal(entry->id, 7);
	assert_int_equal(entry->profile.kind, NT_PROFILE_OFF_CPU);
	assert_null(nt_level_table_profile(table, "a", 2, NOW));
	assert_null(nt_level_table_profile(table, "a", 3, NOW + NT_MINUTE));
	assert_int_equal(nt_level_table_stack(table, "a", 3, NOW), 0);
	assert_int_equal(level_of("n", "a", 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_level_concerns_its_target_only, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_highest_request_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_level_expires, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_one_set_last_counts_even_once_expired, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_was_set_last_replaces_what_lasts_longer,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_matter_is_swept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(malformed_requests_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stack_is_requested_once_for_a_rank, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_cap_holds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(requests_of_incidents_leave_room, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_profile_is_of_a_rank_and_within_its_caps, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
