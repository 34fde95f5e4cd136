/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/level_desk.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "tests/api/snapshot_scene.h"
#include "tests/unit/aggregator/level_desk.h"
#include "tests/unit/common/kafka_threads.h"

static const struct nt_level_target rank_3 = {NT_LEVEL_RANK, "10.0.0.1:29500/run", 3};

static char dir[SCRATCH_BYTES];
static struct desk_scene scene;

static int set_up(void **state)
{
	(void)state;
	return scratch_make_in_memory(dir) || desk_scene_open(&scene, dir);
}

static int tear_down(void **state)
{
	(void)state;
	desk_scene_close(&scene);
	scratch_remove(dir);
	return 0;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 10 * NT_MILLISECOND};

	(void)nanosleep(&pause, NULL);
}

static void turn_desk(void)
{
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	assert_int_equal(nt_bus_producer_flush(scene.bus_producer), 0);
}

/* What is in force, as "KIND/RANK:LEVEL" in order. */
static const char *in_force(void)
{
	static const char *const kinds[NT_REQUEST_END] = {
		[NT_REQUEST_LEVEL] = "level",
		[NT_REQUEST_AUTO_LEVEL] = "auto",
		[NT_REQUEST_STACK] = "stack",
	};
	static char all[1024];
	nt_autofree struct nt_level_entry *entry = NULL;
	size_t count, used = 0;

	assert_int_equal(nt_level_desk_list(scene.desk, &entry, &count), 0);
	all[0] = '\0';
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s/%u:%u ",
					 kinds[entry[i].request], entry[i].target.rank,
					 entry[i].level);
	return all;
}

static void a_level_is_published_and_found_again_by_another_desk(void **state)
{
	struct nt_level_entry entry;

	(void)state;
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 2, NT_MINUTE, &entry), -EROFS);
	turn_desk();
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 2, NT_MINUTE, &entry), 0);
	assert_int_equal(entry.expires_real_ns - entry.set_real_ns, NT_MINUTE);
	assert_string_equal(entry.reason, "operator");
	turn_desk();
	assert_string_equal(in_force(), "level/3:2 ");
	desk_scene_close(&scene);
	assert_int_equal(desk_scene_open(&scene, dir), 0);
	for (int i = 0; i < 1000 && !*in_force(); i++) {
		nap();
		turn_desk();
	}
	assert_string_equal(in_force(), "level/3:2 ");
}

static void wrong_requests_are_refused(void **state)
{
	struct nt_level_target longest = {.kind = NT_LEVEL_NODE};
	struct nt_level_entry entry;

	(void)state;
	turn_desk();
	memset(longest.name, 'x', sizeof(longest.name) - 1);
	assert_int_equal(nt_level_desk_set(scene.desk, &longest, 1, NT_MINUTE, &entry), -EINVAL);
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 4, NT_MINUTE, &entry), -EINVAL);
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 1, 0, &entry), -EINVAL);
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 1, NT_LEVEL_MAX_TTL + 1, &entry),
			 -EINVAL);
}

/* A turn with a bus whose brokers are away. */
struct slow_turn {
	struct nt_bus_producer *bus_producer;
	atomic_bool is_over;
};

static void *take_slow_turn(void *data)
{
	struct slow_turn *turn = data;

	nt_level_desk_turn(scene.desk, turn->bus_producer);
	atomic_store(&turn->is_over, true);
	return NULL;
}

static void nobody_waits_while_brokers_are_waited_for(void **state)
{
	const struct nt_bus_options options = {
		.queue_records = 1, .flush_ns = 3 * NT_SECOND, .close_ns = 1};
	const struct timespec pause = {.tv_nsec = 50 * NT_MILLISECOND};
	struct nt_level_target rank_4 = rank_3;
	struct slow_turn turn = {0};
	struct nt_level_entry entry;
	pthread_t thread;
	int done = 0;

	(void)state;
	rank_4.rank = 4;
	turn_desk();
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 1, NT_MINUTE, &entry), 0);
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_4, 1, NT_MINUTE, &entry), 0);
	assert_int_equal(
		nt_bus_producer_open("kafka://127.0.0.1:1", &options, 1, &turn.bus_producer), 0);
	assert_int_equal(pthread_create(&thread, NULL, take_slow_turn, &turn), 0);
	while (!atomic_load(&turn.is_over)) {
		(void)nanosleep(&pause, NULL);
		if (nt_level_desk_set(scene.desk, &rank_4, 3, NT_MINUTE, &entry) == 0)
			done += !atomic_load(&turn.is_over);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	nt_bus_producer_close(turn.bus_producer);
	assert_true(done >= 4); /* with the lock held: one, if it came before the turn */
	/* What took the place of an entry that was being published is not lost. */
	for (int i = 0; i < 1000 && strcmp(in_force(), "level/3:1 level/4:3 "); i++) {
		nap();
		turn_desk();
	}
	assert_string_equal(in_force(), "level/3:1 level/4:3 ");
}

static void the_queue_has_a_cap_and_repeats_take_no_room(void **state)
{
	struct nt_level_target target = rank_3;
	struct nt_level_entry entry;

	(void)state;
	turn_desk();
	for (uint32_t i = 0; i < NT_LEVEL_DESK_WAITING; i++) {
		target.rank = i;
		assert_int_equal(nt_level_desk_set(scene.desk, &target, 1, NT_MINUTE, &entry), 0);
	}
	assert_int_equal(nt_level_desk_set(scene.desk, &target, 2, NT_MINUTE, &entry), 0);
	target.rank++;
	assert_int_equal(nt_level_desk_set(scene.desk, &target, 1, NT_MINUTE, &entry), -EBUSY);
	turn_desk();
	assert_int_equal(nt_level_desk_set(scene.desk, &target, 1, NT_MINUTE, &entry), 0);
}

/* A job with an incident of rank 5 that fires now, and began `age_ns` ago. */
static struct nt_snapshot *make_snapshot(const char *id, uint64_t age_ns, bool is_summary)
{
	const uint64_t now_ns = nt_clock_real_ns();
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **list = nt_snapshot_alloc(snapshot, 1, sizeof(*list));
	struct nt_snapshot_job *job =
		nt_test_job("00000000000000a1", "llm", rank_3.name, NT_JOB_RUNNING);
	struct nt_wire_incident incident = nt_test_incident(id, "firing", &nt_test_rank_5, 1);

	incident.id = nt_snapshot_job_text(job, id);
	incident.since_real_ns = now_ns - age_ns;
	incident.seen_real_ns = now_ns;
	nt_test_set_ranks(job, NT_TEST_RANKS);
	nt_test_set_incidents(job, &incident, 1);
	job->is_summary = is_summary;
	list[0] = job;
	snapshot->job = list;
	snapshot->jobs = 1;
	return snapshot;
}

static void look(uint64_t age_ns, bool is_summary)
{
	struct nt_snapshot *snapshot = make_snapshot("00000000000000f1", age_ns, is_summary);

	nt_level_desk_look(scene.desk, snapshot);
	nt_snapshot_release(snapshot);
	turn_desk();
}

static void an_incident_raises_its_rank_and_one_peer_once(void **state)
{
	nt_autofree struct nt_level_entry *entry = NULL, *later = NULL;
	char first[256];
	size_t count;

	(void)state;
	turn_desk();
	look(NT_MINUTE, false);
	(void)snprintf(first, sizeof(first), "stack/5:0 auto/5:1 stack/%u:0 auto/%u:1 ",
		       nt_test_peers[0], nt_test_peers[0]);
	assert_string_equal(in_force(), first);
	assert_int_equal(nt_level_desk_list(scene.desk, &entry, &count), 0);
	assert_string_equal(entry[0].reason, "00000000000000f1");
	assert_int_not_equal(entry[0].id, 0);
	assert_int_not_equal(entry[0].id, entry[2].id);
	look(NT_MINUTE, false);
	assert_int_equal(nt_level_desk_list(scene.desk, &later, &count), 0);
	assert_int_equal(later[0].set_real_ns, entry[0].set_real_ns);
}

static void incidents_of_others_and_old_ones_raise_nobody(void **state)
{
	(void)state;
	turn_desk();
	look(2 * NT_HOUR, false);
	look(NT_MINUTE, true);
	assert_string_equal(in_force(), "");
}

/* Each is new, as if there were more than are remembered. */
static void a_flood_of_incidents_is_bounded(void **state)
{
	struct nt_level_desk_stats stats;

	(void)state;
	turn_desk();
	for (int i = 0; i < NT_LEVEL_DESK_A_MINUTE + 5; i++) {
		struct nt_snapshot *snapshot;
		char id[32];

		(void)snprintf(id, sizeof(id), "%016x", i + 1);
		snapshot = make_snapshot(id, NT_MINUTE, false);
		nt_level_desk_look(scene.desk, snapshot);
		nt_snapshot_release(snapshot);
	}
	nt_level_desk_stats(scene.desk, &stats);
	assert_int_equal(stats.over_cap, 5);
}

/* ---- retries --------------------------------------------------------------------------------- */

/* While `fails` no file can be opened, so the topic has no place for its first record. */
static void set_failing(bool fails)
{
	static struct rlimit before;
	struct rlimit limit;

	if (fails)
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){.rlim_cur = fails ? 0 : before.rlim_cur,
				.rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void requests_that_the_bus_does_not_take_are_made_again(void **state)
{
	struct nt_snapshot *snapshot = make_snapshot("00000000000000f1", NT_MINUTE, false);
	const uint64_t begin_ns = nt_clock_mono_ns();
	struct nt_level_desk_stats stats;
	struct nt_level_entry entry;
	char all[256];

	(void)state;
	turn_desk();
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 2, NT_MINUTE, &entry), 0);
	set_failing(true);
	nt_level_desk_look(scene.desk, snapshot); /* stacks of rank 5 and of a peer */
	nt_level_desk_turn(scene.desk, scene.bus_producer);
	set_failing(false);
	nt_snapshot_release(snapshot);
	assert_string_equal(in_force(), "");
	/* Not at once: each try may wait for brokers. */
	turn_desk();
	if (nt_clock_mono_ns() - begin_ns < DESK_RETRY_NS)
		assert_string_equal(in_force(), "");
	while (nt_clock_mono_ns() - begin_ns < 2 * DESK_RETRY_NS)
		nap();
	turn_desk();
	(void)snprintf(all, sizeof(all), "level/3:2 stack/5:0 auto/5:1 stack/%u:0 auto/%u:1 ",
		       nt_test_peers[0], nt_test_peers[0]);
	assert_string_equal(in_force(), all);
	nt_level_desk_stats(scene.desk, &stats);
	assert_int_equal(stats.expired + stats.over_cap, 0);
}

/* Such as on Kafka, until the producer has been opened. */
static void without_a_producer_requests_wait(void **state)
{
	struct nt_level_entry entry;

	(void)state;
	turn_desk();
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 1, NT_MINUTE, &entry), 0);
	nt_level_desk_turn(scene.desk, NULL);
	assert_string_equal(in_force(), "");
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 2, NT_MINUTE, &entry), -EROFS);
	turn_desk();
	assert_string_equal(in_force(), "level/3:1 ");
}

static void a_request_that_expires_before_it_is_published_is_counted(void **state)
{
	struct nt_level_desk_stats stats;
	struct nt_level_entry entry;

	(void)state;
	turn_desk();
	assert_int_equal(nt_level_desk_set(scene.desk, &rank_3, 1, NT_MILLISECOND, &entry), 0);
	nap();
	turn_desk();
	nt_level_desk_stats(scene.desk, &stats);
	assert_int_equal(stats.expired, 1);
	turn_desk();
	nt_level_desk_stats(scene.desk, &stats);
	assert_int_equal(stats.expired, 1);
	assert_string_equal(in_force(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_level_is_published_and_found_again_by_another_desk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_requests_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_waits_while_brokers_are_waited_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_queue_has_a_cap_and_repeats_take_no_room,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_incident_raises_its_rank_and_one_peer_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(incidents_of_others_and_old_ones_raise_nobody,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flood_of_incidents_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(requests_that_the_bus_does_not_take_are_made_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_producer_requests_wait, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_request_that_expires_before_it_is_published_is_counted, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
