/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/identity/share.h"

enum {
	CAP = 64,
	ENTRIES = 400,
	OWNERS = 7,
};

struct table {
	struct nt_share share;
	struct nt_share_entry entry[ENTRIES];
	size_t used;
};

static void start(struct table *table)
{
	*table = (struct table){0};
	nt_share_init(&table->share, CAP);
}

static struct nt_owner owner_of(uint32_t uid)
{
	struct nt_owner owner = {.id = uid + 10, .uid = uid};

	(void)snprintf(owner.name, sizeof(owner.name), "user %u", uid);
	return owner;
}

/* Enters one more entry; says whose place it took, if any. */
static int enter(struct table *table, uint32_t uid, bool called, struct nt_share_entry **ret_victim)
{
	struct nt_owner owner = owner_of(uid);

	assert_true(table->used < ENTRIES);
	return nt_share_enter(&table->share, &owner, called, &table->entry[table->used++],
			      ret_victim);
}

static void fill(struct table *table, uint32_t uid, bool called, int count)
{
	struct nt_share_entry *victim;

	for (int i = 0; i < count; i++) {
		assert_int_equal(enter(table, uid, called, &victim), 0);
		assert_null(victim);
	}
}

static void one_owner_alone_has_the_whole_table(void **state)
{
	struct nt_share_report report;
	struct nt_share_entry *victim;
	struct table t;

	(void)state;
	start(&t);
	fill(&t, 1, true, CAP);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 0);
	assert_int_equal(enter(&t, 1, true, &victim), -ENOSPC);
	assert_null(victim);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 1);
	assert_int_equal(report.cap, CAP);
	assert_string_equal(report.owner, "user 1");
	nt_share_release(&t.share);
}

static void idle_entries_make_room_for_another_owner_oldest_first(void **state)
{
	struct nt_share_report report;
	struct nt_share_entry *victim;
	struct table t;

	(void)state;
	start(&t);
	fill(&t, 1, false, CAP);
	for (int i = 0; i < CAP / 2; i++) {
		assert_int_equal(enter(&t, 2, false, &victim), 0);
		assert_ptr_equal(victim, &t.entry[i]);
		assert_int_equal(victim->state, NT_SHARE_LEFT_OUT);
	}
	/* Both have as many by now. */
	assert_int_equal(enter(&t, 2, false, &victim), -ENOSPC);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, CAP / 2 + 1);
	assert_int_equal(report.left_out_most, CAP / 2);
	assert_string_equal(report.owner, "user 1");
	nt_share_release(&t.share);
}

static void idle_entries_of_one_owner_take_nothing_from_each_other(void **state)
{
	struct nt_share_entry *victim;
	struct table t;

	(void)state;
	start(&t);
	fill(&t, 1, false, CAP);
	assert_int_equal(enter(&t, 1, false, &victim), -ENOSPC);
	assert_null(victim);
	/* But one that calls comes before those that do not. */
	assert_int_equal(enter(&t, 1, true, &victim), 0);
	assert_ptr_equal(victim, &t.entry[0]);
	nt_share_release(&t.share);
}

static void what_has_called_is_not_displaced_by_what_has_not(void **state)
{
	struct nt_share_entry *victim;
	struct table t;
	int r = 0, taken = 0;

	(void)state;
	start(&t);
	fill(&t, 1, true, CAP);
	while (r == 0) {
		r = enter(&t, 2, false, &victim);
		taken += r == 0;
	}
	/* Only the first few may: whose first calls would else not be seen. */
	assert_int_equal(taken, CAP / 64 + 1);
	assert_int_equal(r, -ENOSPC);
	nt_share_release(&t.share);
}

static void callers_are_shared_out_evenly_and_then_stay(void **state)
{
	struct nt_share_entry *victim;
	struct table t;
	int taken = 0;

	(void)state;
	start(&t);
	fill(&t, 1, true, CAP);
	nt_share_call(&t.entry[0]); /* no longer the one that called first */
	while (enter(&t, 2, true, &victim) == 0) {
		assert_ptr_equal(victim, &t.entry[taken + 1]);
		taken++;
	}
	assert_int_equal(taken, CAP / 2);
	assert_int_equal(nt_share_enter(&t.share, &(struct nt_owner){.id = 11}, true,
					victim = &t.entry[1], &victim),
			 -ENOSPC);
	nt_share_release(&t.share);
}

static void what_leaves_makes_room_and_is_forgotten(void **state)
{
	struct nt_share_entry *victim;
	struct nt_share_report report;
	struct table t;

	(void)state;
	start(&t);
	fill(&t, 1, false, CAP);
	assert_int_equal(enter(&t, 1, false, &victim), -ENOSPC);
	nt_share_leave(&t.share, &t.entry[0]);
	assert_int_equal(nt_share_enter(&t.share, &(struct nt_owner){.id = 11}, false,
					&t.entry[CAP], &victim),
			 0);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 0);
	for (size_t i = 0; i <= CAP; i++)
		nt_share_leave(&t.share, &t.entry[i]);
	assert_null(t.share.owners);
	assert_int_equal(t.share.count, 0);
	nt_share_leave(&t.share, &t.entry[0]); /* twice is once */
	nt_share_release(&t.share);
}

static void what_is_missed_is_counted_until_it_is_forgiven(void **state)
{
	struct nt_owner owner = owner_of(3);
	struct nt_share_report report;
	struct table t;

	(void)state;
	start(&t);
	nt_share_miss(&t.share, &owner, 4);
	nt_share_miss(&t.share, NULL, 1);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 5);
	assert_int_equal(report.left_out_most, 4);
	assert_string_equal(report.owner, "user 3");
	/* Owners that have only losses have a cap, too. */
	for (uint32_t uid = 0; uid < 10 * CAP; uid++) {
		owner = owner_of(1000 + uid);
		nt_share_miss(&t.share, &owner, 1);
	}
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 5 + 10 * CAP);
	assert_string_equal(report.owner, "unknown");
	nt_share_forgive(&t.share);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 0);
	assert_null(t.share.owners);
	nt_share_release(&t.share);
}

static void room_is_an_eighth_of_the_table(void **state)
{
	struct table t;

	(void)state;
	start(&t);
	fill(&t, 1, true, CAP - CAP / 8);
	assert_true(nt_share_has_room(&t.share));
	fill(&t, 1, true, 1);
	assert_false(nt_share_has_room(&t.share));
	nt_share_release(&t.share);
}

static int enter_for_good(struct table *table, uint32_t uid)
{
	struct nt_owner owner = owner_of(uid);

	return nt_share_enter_for_good(&table->share, &owner, &table->entry[table->used++]);
}

static uint32_t fill_for_good(struct table *table, uint32_t uid)
{
	uint32_t taken = 0;

	while (enter_for_good(table, uid) == 0)
		taken++;
	table->used--;
	return taken;
}

static void places_for_good_are_kept_for_owners_with_few(void **state)
{
	struct nt_share_report report;
	struct table t;

	(void)state;
	start(&t);
	assert_int_equal(fill_for_good(&t, 1), CAP / 2);
	assert_int_equal(fill_for_good(&t, 2), CAP / 8);
	assert_int_equal(fill_for_good(&t, 3), CAP / 8);
	for (uint32_t uid = 4; uid < 12; uid++)
		assert_int_equal(fill_for_good(&t, uid), CAP / 32);
	assert_int_equal(t.share.count, CAP);
	assert_int_equal(fill_for_good(&t, 99), 0);
	nt_share_read(&t.share, &report);
	assert_int_equal(report.left_out, 12);
	nt_share_leave(&t.share, &t.entry[0]);
	assert_int_equal(fill_for_good(&t, 1), 0);
	assert_int_equal(fill_for_good(&t, 99), 1);
	nt_share_release(&t.share);
}

/* ---- whatever owners do ----------------------------------------------------------------------- */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % below;
}

struct counts {
	uint32_t idle[OWNERS], called[OWNERS], all_idle, all, owners;
};

static struct counts count(const struct table *t)
{
	struct counts counts = {0};

	for (size_t i = 0; i < ENTRIES; i++) {
		const struct nt_share_entry *entry = &t->entry[i];
		uint32_t owner = (uint32_t)(i % OWNERS);

		counts.idle[owner] += entry->state == NT_SHARE_IDLE;
		counts.called[owner] += entry->state == NT_SHARE_CALLED;
	}
	for (size_t o = 0; o < OWNERS; o++) {
		counts.all_idle += counts.idle[o];
		counts.all += counts.idle[o] + counts.called[o];
		counts.owners += counts.idle[o] + counts.called[o] > 0;
	}
	return counts;
}

static void check_entered(const struct counts *before, const struct table *t, size_t at,
			  bool called, const struct nt_share_entry *victim, bool was_idle)
{
	size_t mine = at % OWNERS, theirs = (size_t)(victim - t->entry) % OWNERS;

	if (!victim)
		return;
	assert_int_equal(before->all, CAP);
	if (called) {
		/* Callers go only when nothing is idle, and only from who has two more. */
		assert_int_equal(was_idle, before->all_idle > 0);
		if (!was_idle)
			assert_true(before->called[theirs] >= before->called[mine] + 2);
		return;
	}
	if (was_idle)
		assert_true(before->idle[theirs] > before->idle[mine]);
	else
		assert_true(before->called[theirs] >=
				    before->called[mine] + before->idle[mine] + 2 &&
			    before->idle[mine] <= CAP / 64);
}

static void whatever_owners_do_each_keeps_its_share(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct table t;
		uint64_t refused = 0, evicted = 0;

		start(&t);
		for (int step = 0; step < 5000; step++) {
			/* Some owners are greedier than others. */
			size_t at = draw(&seed, ENTRIES);
			struct nt_share_entry *entry = &t.entry[at], *victim;
			struct nt_owner owner = owner_of((uint32_t)(at % OWNERS));
			struct counts before = count(&t);
			bool called = draw(&seed, 3) == 0, was_idle[ENTRIES];
			int r;

			for (size_t i = 0; i < ENTRIES; i++)
				was_idle[i] = t.entry[i].state == NT_SHARE_IDLE;
			if (nt_share_has_place(entry)) {
				if (draw(&seed, 4) == 0)
					nt_share_leave(&t.share, entry);
				else if (called)
					nt_share_call(entry);
				continue;
			}
			r = nt_share_enter(&t.share, &owner, called, entry, &victim);
			if (r == 0) {
				evicted += victim != NULL;
				check_entered(&before, &t, at, called, victim,
					      victim && was_idle[victim - t.entry]);
			} else {
				assert_int_equal(r, -ENOSPC);
				refused++;
				assert_int_equal(before.all, CAP);
				/* An owner under its part of the places is not refused a caller. */
				if (called)
					assert_true(before.called[at % OWNERS] >= CAP / OWNERS);
			}
			before = count(&t);
			assert_true(before.all <= CAP);
			assert_int_equal(before.all, t.share.count);
		}
		assert_true(refused && evicted);
		nt_share_release(&t.share);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_owner_alone_has_the_whole_table),
		cmocka_unit_test(idle_entries_make_room_for_another_owner_oldest_first),
		cmocka_unit_test(idle_entries_of_one_owner_take_nothing_from_each_other),
		cmocka_unit_test(what_has_called_is_not_displaced_by_what_has_not),
		cmocka_unit_test(callers_are_shared_out_evenly_and_then_stay),
		cmocka_unit_test(what_leaves_makes_room_and_is_forgotten),
		cmocka_unit_test(what_is_missed_is_counted_until_it_is_forgiven),
		cmocka_unit_test(room_is_an_eighth_of_the_table),
		cmocka_unit_test(places_for_good_are_kept_for_owners_with_few),
		cmocka_unit_test(whatever_owners_do_each_keeps_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
