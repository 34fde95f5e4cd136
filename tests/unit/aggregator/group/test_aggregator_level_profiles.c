/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/level_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/api/snapshot_scene.h"
#include "tests/unit/aggregator/level_desk.h"

static const char key[] = "10.0.0.1:29500/run";

struct scene {
	struct desk_scene desk;
	struct nt_profile_desk *profiles;
	struct nt_level_profiles automatic;
	struct nt_snapshot *snapshot;
	struct nt_snapshot_job *job;
	uint64_t now_ns;
};

static char dir[SCRATCH_BYTES];
static struct scene scene;

static int set_up(void **state)
{
	const struct nt_snapshot_job **list;

	(void)state;
	scene = (struct scene){.now_ns = NT_HOUR};
	if (scratch_make_in_memory(dir) || desk_scene_open(&scene.desk, dir) ||
	    nt_profile_desk_new(&scene.profiles))
		return -1;
	scene.snapshot = nt_snapshot_new();
	list = nt_snapshot_alloc(scene.snapshot, 1, sizeof(struct nt_snapshot_job *));
	scene.job = nt_test_job("00000000000000a1", "llm", key, NT_JOB_RUNNING);
	nt_test_set_ranks(scene.job, NT_TEST_RANKS);
	list[0] = scene.job;
	scene.snapshot->job = list;
	scene.snapshot->jobs = 1;
	nt_level_desk_turn(scene.desk.desk, scene.desk.bus_producer);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_snapshot_release(scene.snapshot);
	nt_profile_desk_free(scene.profiles);
	desk_scene_close(&scene.desk);
	scratch_remove(dir);
	return 0;
}

static void set_level(uint32_t rank, uint32_t level)
{
	struct nt_level_target target = {.kind = NT_LEVEL_RANK, .rank = rank};
	struct nt_level_entry entry;

	(void)snprintf(target.name, sizeof(target.name), "%s", key);
	assert_int_equal(nt_level_desk_set(scene.desk.desk, &target, level, NT_MINUTE, &entry), 0);
	nt_level_desk_turn(scene.desk.desk, scene.desk.bus_producer);
}

/* Seconds go by, in which snapshots come. Returns the number of profiles that are kept then. */
static size_t look_for(int seconds)
{
	struct nt_profile_view view[NT_PROFILE_DESK_KEPT];
	size_t count;

	for (int i = 0; i < seconds; i++) {
		scene.now_ns += NT_SECOND;
		assert_int_equal(nt_level_profiles_look(&scene.automatic, scene.desk.desk,
							scene.profiles, scene.snapshot,
							scene.now_ns),
				 0);
		nt_level_desk_turn(scene.desk.desk, scene.desk.bus_producer);
	}
	count = nt_profile_desk_list(scene.profiles, nt_clock_real_ns(), view);
	for (size_t i = 0; i < count; i++)
		nt_profile_view_release(&view[i]);
	return count;
}

static void a_rank_at_level_2_is_profiled_until_the_level_ends(void **state)
{
	uint64_t first, second;

	(void)state;
	set_level(3, 1);
	assert_int_equal(look_for(2), 0);
	set_level(3, 2);
	assert_int_equal(look_for(3), 1);
	first = scene.automatic.rank[0].last;
	assert_int_not_equal(first, 0);
	assert_int_equal(look_for(15), 2);
	second = scene.automatic.rank[0].last;
	assert_int_not_equal(first, second);
	assert_int_equal(scene.automatic.rank[0].before, first);
	/* The last two are kept, however long it lasts. */
	assert_int_equal(look_for(60), 2);
	set_level(3, 0);
	(void)look_for(1);
	assert_int_equal(scene.automatic.rank[0].due_ns, 0);
	assert_int_equal(look_for(60), 2);
}

static void further_ranks_are_left_out_and_counted(void **state)
{
	(void)state;
	for (uint32_t rank = 0; rank < NT_LEVEL_PROFILES_RANKS + 2; rank++)
		set_level(rank, 2 + rank % 2);
	assert_int_equal(look_for(1), NT_LEVEL_PROFILES_RANKS);
	assert_int_equal(scene.automatic.left_out, 2);
	/* One of them ends, and another begins. */
	set_level(0, 1);
	assert_int_equal(look_for(1), NT_LEVEL_PROFILES_RANKS + 1);
	assert_int_equal(scene.automatic.left_out, 1);
}

static void ranks_of_others_and_ended_ones_have_none(void **state)
{
	(void)state;
	scene.job->is_summary = true;
	set_level(3, 2);
	assert_int_equal(look_for(2), 0);
	scene.job->is_summary = false;
	set_level(NT_TEST_RANKS + 7, 2);
	set_level(3, 0);
	assert_int_equal(look_for(2), 0);
	assert_int_equal(scene.automatic.left_out, 0);
}

/* An operator's profile is not replaced by those of a level. */
static void requested_profiles_are_kept_beside(void **state)
{
	static const struct nt_profile_wish wish = {.seconds = 1, .hz = 9};
	struct nt_level_target target = {.kind = NT_LEVEL_RANK, .rank = 1};
	nt_autoprofile struct nt_profile_view view = {0};
	struct nt_level_entry entry;

	(void)state;
	(void)snprintf(target.name, sizeof(target.name), "%s", key);
	assert_int_equal(nt_level_desk_profile(scene.desk.desk, &target, &wish, &entry), 0);
	nt_profile_desk_add(scene.profiles, &entry);
	set_level(3, 2);
	assert_int_equal(look_for(300), 3);
	assert_int_equal(nt_profile_desk_get(scene.profiles, entry.id, nt_clock_real_ns(), &view),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_rank_at_level_2_is_profiled_until_the_level_ends,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(further_ranks_are_left_out_and_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(ranks_of_others_and_ended_ones_have_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(requested_profiles_are_kept_beside, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
