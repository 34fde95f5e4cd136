/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several aggregators on one bus, whose partitions go from one to another: handed over in good order,
 * lost, or left behind by a crash.
 */
#include "tests/unit/aggregator/aggregators.h"

#include <errno.h>

#include "aggregator/group/node_desk.h"
#include "aggregator/service.h"

/* ---- tests ------------------------------------------------------------------------------------------ */

static void every_instance_shows_what_one_has_decided_and_one_alone_tells(void **state)
{
	nt_autofree char *one = NULL, *other = NULL;

	(void)state;
	give(0, 0);
	give(0, 1);
	give(1, 2);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	one = show(0);
	other = show(1);
	assert_string_equal(one, other);
	assert_int_equal(sents, JOBS);
	assert_int_equal(count_sent("_firing_"), JOBS);
	no_message_was_sent_twice();
}

static bool disk_is_full;

static int take_on_full_disk(void *data, const struct nt_wire_incident *incident, bool is_ours)
{
	if (disk_is_full)
		return -ENOSPC;
	return nt_store_sink(data).take(data, incident, is_ours);
}

/* It would not know that people were told of it, nor how it went on, once the job is its own. */
static void what_a_full_disk_does_not_take_from_others_is_taken_later(void **state)
{
	nt_autofree char *one = NULL, *other = NULL;

	(void)state;
	instances[1].sink.take = take_on_full_disk;
	disk_is_full = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	disk_is_full = false;
	turn_all();
	one = show(0);
	other = show(1);
	assert_string_equal(one, other);
	assert_int_equal(sents, JOBS);
	give_all(1);
	publish_run(60000, 150800, 30000, 75000);
	turn_all();
	assert_int_equal(count_sent("_firing_"), JOBS);
	assert_int_equal(count_sent("_resolved"), JOBS);
	no_message_was_sent_twice();
}

static unsigned int adoptions_refused;

static int adopt_on_full_disk(void *data, uint32_t shard, uint64_t real_ns)
{
	if (disk_is_full) {
		adoptions_refused++;
		return -ENOSPC;
	}
	return nt_store_sink(data).adopt(data, shard, real_ns);
}

static void what_a_full_disk_does_not_take_over_is_told_later(void **state)
{
	(void)state;
	instances[1].sink.adopt = adopt_on_full_disk;
	instances[0].mute = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	assert_int_equal(sents, 0);
	disk_is_full = true;
	kill_instance(0);
	give_all(1);
	turn_all();
	disk_is_full = false;
	assert_true(adoptions_refused >= JOBS);
	turn_all();
	assert_int_equal(count_sent("_firing_"), JOBS);
	no_message_was_sent_twice();
}

static void partitions_that_move_all_the_time_change_nothing(void **state)
{
	nt_autofree char *want = NULL, *got = NULL, *other = NULL;

	(void)state;
	want = reference(150800, 75000);
	for (uint64_t at = 520, round = 0; at < 150800; at += 5200, round++) {
		const uint64_t to = at + 5200 < 150800 ? at + 5200 : 150800;

		for (uint32_t i = 0; i < JOBS; i++)
			give((round + i) % INSTANCES, i);
		publish_run(at, to, 30000, 75000);
		turn_all();
	}
	got = show(0);
	other = show(1);
	assert_string_equal(want, got);
	assert_string_equal(want, other);
	assert_non_null(strstr(got, " resolved "));
	no_message_was_sent_twice();
	assert_int_equal(count_sent("_firing_"), JOBS);
	assert_int_equal(count_sent("_resolved"), JOBS);
}

static void who_is_killed_is_followed_by_one_that_learns_nothing_anew(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;

	(void)state;
	want = reference(150800, 75000);
	give_all(0);
	publish_run(520, 20800, 30000, 75000);
	turn_all();
	/* A state is on the bus … */
	give_all(1);
	turn_all();
	give_all(0);
	turn_all();
	/* … after which more is decided and told. */
	publish_run(20800, 60320, 30000, 75000);
	turn_all();
	assert_int_equal(count_sent("_firing_"), JOBS);
	kill_instance(0);
	give_all(1);
	publish_run(60320, 150800, 30000, 75000);
	turn_all();
	got = show(1);
	assert_string_equal(want, got);
	no_message_was_sent_twice();
	assert_int_equal(count_sent("_firing_"), JOBS);
	assert_int_equal(count_sent("_resolved"), JOBS);
}

static void what_the_dead_one_had_not_sent_is_sent_once(void **state)
{
	(void)state;
	instances[0].mute = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	assert_int_equal(sents, 0);
	kill_instance(0);
	give_all(1);
	turn_all();
	assert_int_equal(count_sent("_firing_"), JOBS);
	no_message_was_sent_twice();
}

/* It is the one repeat that the promise allows: nobody but the receiver knows of the first. */
static void what_the_dead_one_had_no_time_to_publish_is_sent_again_and_counted(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	instances[0].mute = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	send_all(&instances[0]);
	kill_instance(0);
	give_all(1);
	turn_all();
	assert_int_equal(sents, 2 * JOBS);
	nt_store_stats(instances[1].store, &stats);
	assert_int_equal(stats.adopted, JOBS);
	for (size_t i = 0; i < JOBS; i++)
		assert_int_equal(count_sent(sent[i]), 2); /* by the same id */
}

static void who_comes_back_after_a_crash_repeats_nothing(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;

	(void)state;
	want = reference(60000, UINT64_MAX);
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	kill_instance(0);
	start_instance(0);
	give_all(0);
	turn_all();
	got = show(0);
	assert_string_equal(want, got);
	no_message_was_sent_twice();
	assert_int_equal(sents, JOBS);
}

static void who_leaves_in_good_order_hands_over_at_once(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;

	(void)state;
	want = reference(60000, UINT64_MAX);
	give_all(0);
	publish_run(520, 45760, 30000, UINT64_MAX);
	turn_all();
	stop_instance(0);
	give_all(1);
	publish_run(45760, 60000, 30000, UINT64_MAX);
	turn_all();
	got = show(1);
	assert_string_equal(want, got);
	no_message_was_sent_twice();
	assert_int_equal(sents, JOBS);
}

static int note_set(void *loader, const struct nt_state_set *set)
{
	*(uint64_t *)loader = set->real_ns;
	return 0;
}

/* The brokers are away, and the group with them; nobody else has the shard meanwhile. */
static void who_has_lost_a_shard_keeps_its_state_for_the_return(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;
	const struct nt_state_store *states = &instances[0].states;

	(void)state;
	want = reference(60000, UINT64_MAX);
	give_all(0);
	publish_run(520, 45760, 30000, UINT64_MAX);
	turn_all();
	for (uint32_t i = 0; i < JOBS; i++)
		assert_int_equal(states->load(states->data, i + 1, note_set, &(uint64_t){0}),
				 -ENOENT);
	instances[0].fake->lost = true;
	give_all(INSTANCES); /* nobody */
	turn_all();
	assert_true(metric(0, "neutracer_aggregator_shards_lost") == JOBS);
	for (uint32_t i = 0; i < JOBS; i++) {
		uint64_t saved_ns = 0;

		assert_int_equal(states->load(states->data, i + 1, note_set, &saved_ns), 0);
		assert_true(saved_ns > 0);
	}
	instances[0].fake->lost = false;
	give_all(0);
	publish_run(45760, 60000, 30000, UINT64_MAX);
	turn_all();
	got = show(0);
	assert_string_equal(want, got);
	no_message_was_sent_twice();
}

static void who_has_lost_a_shard_tells_nobody_of_it(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;

	(void)state;
	want = reference(60000, UINT64_MAX);
	give_all(0);
	publish_run(520, 45760, 30000, UINT64_MAX);
	turn_all();
	instances[0].fake->lost = true;
	give_all(1);
	publish_run(45760, 60000, 30000, UINT64_MAX);
	turn_all();
	assert_true(metric(0, "neutracer_aggregator_shards_lost") == JOBS);
	assert_true(metric(0, "neutracer_aggregator_shards") == 0);
	assert_true(metric(1, "neutracer_aggregator_shards") == JOBS);
	got = show(1);
	assert_string_equal(want, got);
	no_message_was_sent_twice();
}

static const struct nt_snapshot_job *find_key(const struct nt_snapshot *snapshot, const char *key)
{
	for (size_t i = 0; i < snapshot->jobs; i++)
		if (!strcmp(snapshot->job[i]->key, key))
			return snapshot->job[i];
	fail_msg("no job %s", key);
	return NULL;
}

static void a_job_of_another_instance_is_shown_with_its_owner(void **state)
{
	const struct nt_snapshot *snapshot;
	const struct nt_snapshot_job *job;

	(void)state;
	give(0, 0);
	give(1, 1);
	publish_run(520, 20800, UINT64_MAX, UINT64_MAX);
	turn_all();
	turn_all();
	snapshot = nt_snapshot_acquire(instances[1].board);
	assert_int_equal(snapshot->jobs, 2);
	job = find_key(snapshot, "job-a");
	assert_true(job->is_summary);
	assert_string_equal(job->owner, "http://instance-0");
	assert_string_equal(job->name, "llm");
	assert_int_equal(job->size, RANKS);
	assert_int_equal(job->live, RANKS);
	assert_int_equal(job->state, NT_JOB_RUNNING);
	assert_int_equal(job->ranks, 0);
	assert_false(find_key(snapshot, "job-b")->is_summary);
	nt_snapshot_release(snapshot);
	/* Whoever takes it over shows it as its own. */
	give(1, 0);
	turn_all();
	turn_all();
	snapshot = nt_snapshot_acquire(instances[1].board);
	assert_int_equal(snapshot->jobs, 2);
	assert_false(find_key(snapshot, "job-a")->is_summary);
	assert_int_equal(find_key(snapshot, "job-a")->ranks, RANKS);
	nt_snapshot_release(snapshot);
	snapshot = nt_snapshot_acquire(instances[0].board);
	assert_int_equal(snapshot->jobs, 2);
	assert_string_equal(find_key(snapshot, "job-a")->owner, "http://instance-1");
	nt_snapshot_release(snapshot);
}

/* A machine that was suspended has read nothing, but its agents were not silent. */
static void time_in_which_it_does_not_run_makes_no_agent_silent(void **state)
{
	const struct nt_snapshot *snapshot;

	(void)state;
	give_all(0);
	publish_run(520, 10000, UINT64_MAX, UINT64_MAX);
	turn_all();
	instances[0].fake->stall = 11;
	turn_all();
	snapshot = nt_snapshot_acquire(instances[0].board);
	assert_int_equal(snapshot->jobs, JOBS);
	for (size_t i = 0; i < snapshot->jobs; i++)
		for (size_t j = 0; j < snapshot->job[i]->ranks; j++)
			assert_false(snapshot->job[i]->rank[j].silent);
	nt_snapshot_release(snapshot);
}

static void sums_do_not_fall_when_a_shard_goes(void **state)
{
	double windows;

	(void)state;
	give_all(0);
	publish_run(520, 20800, UINT64_MAX, UINT64_MAX);
	turn_all();
	windows = metric(0, "neutracer_aggregator_windows");
	assert_true(windows > 0);
	give_all(1);
	turn_all();
	turn_all();
	assert_true(metric(0, "neutracer_aggregator_windows") == windows);
	assert_true(metric(0, "neutracer_aggregator_shards_revoked") == JOBS);
}

static void what_makes_no_sense_on_the_shared_topics_is_counted_and_stops_nothing(void **state)
{
	static const struct nt_bus_record junk[] = {
		{.topic = NT_TOPIC_INCIDENT,
		 .key = "i1",
		 .key_len = 2,
		 .value = "\xff",
		 .value_len = 1},
		{.topic = NT_TOPIC_INCIDENT, .key = "", .key_len = 0, .value = "", .value_len = 0},
		{.topic = NT_TOPIC_STATE,
		 .key = "job/0123456789abcdef",
		 .key_len = 20,
		 .value = "\xff",
		 .value_len = 1},
		{.topic = NT_TOPIC_STATE,
		 .key = "state/1/0/manifest",
		 .key_len = 18,
		 .value = "\xff",
		 .value_len = 1},
		{.topic = NT_TOPIC_STATE,
		 .key = "state/1/0/0",
		 .key_len = 11,
		 .value = "\xff",
		 .value_len = 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
		assert_int_equal(nt_bus_publish(bus[0], &junk[i]), 0);
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	assert_int_equal(count_sent("_firing_"), JOBS);
	/* An incident that is none, and a head that is none. */
	assert_true(metric(0, "neutracer_aggregator_replica_refused") == 2);
	assert_true(metric(1, "neutracer_aggregator_replica_refused") == 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* What the agent of a node leaves out, now or so many milliseconds ago. */
static void publish_limit(struct feed_agent *from, uint64_t left_out, uint64_t ago_ms)
{
	struct nt_node_limit limit = {
		.what = "processes",
		.unit = "processes",
		.owner = "user 65534",
		.left_out = left_out,
		.owner_left_out = left_out,
		.cap = 1024,
	};
	struct nt_message message = feed_envelope(from, 0);
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record;

	message.body = NT_BODY_NODE;
	message.key = from->name;
	message.real_ns = nt_clock_real_ns() - ago_ms * MS;
	message.node.node = from->name;
	message.node.limit = &limit;
	message.node.limits = left_out ? 1 : 0;
	record = feed_record(&message, &buf);
	record.topic = NT_TOPIC_NODE;
	assert_int_equal(nt_bus_publish(bus[0], &record), 0);
	assert_int_equal(nt_bus_flush(bus[0]), 0);
}

/* -1: there is no such node. */
static long left_out(size_t instance, const char *node)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(instances[instance].board);
	long found = -1;

	for (size_t i = 0; i < snapshot->nodes; i++)
		if (strcmp(snapshot->node[i].name, node) == 0)
			found = snapshot->node[i].limits ? (long)snapshot->node[i].limit[0].left_out
							 : 0;
	nt_snapshot_release(snapshot);
	return found;
}

static void every_instance_shows_what_any_node_leaves_out(void **state)
{
	struct feed_agent full = feed_agent("gpu-02", "gpu-02");

	(void)state;
	give_all(0);
	publish_run(520, 5200, UINT64_MAX, UINT64_MAX);
	turn_all();
	assert_int_equal(left_out(0, "gpu-02"), 0);
	publish_limit(&full, 12, 0);
	publish_limit(&full, 412, 0);
	turn_all();
	assert_int_equal(left_out(0, "gpu-02"), 412);
	assert_int_equal(left_out(1, "gpu-02"), 412);
	publish_limit(&full, 0, 0);
	turn_all();
	assert_int_equal(left_out(0, "gpu-02"), 0);
	assert_int_equal(left_out(1, "gpu-02"), 0); /* known by its vectors */
}

static void publish_vector(struct feed_agent *from, uint64_t real_ns, uint64_t boot_ns)
{
	struct nt_metric_value metric = {"cpu_busy", 0.5};
	struct nt_message message = feed_envelope(from, 0);
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record;

	message.body = NT_BODY_NODE;
	message.key = from->name;
	message.real_ns = real_ns;
	message.boot_ns = message.watermark_boot_ns = boot_ns;
	message.node.node = from->name;
	message.node.metric = &metric;
	message.node.metrics = 1;
	record = feed_record(&message, &buf);
	record.topic = NT_TOPIC_NODE;
	record.real_ns = nt_clock_real_ns(); /* reading begins in the present */
	assert_int_equal(nt_bus_publish(bus[0], &record), 0);
	assert_int_equal(nt_bus_flush(bus[0]), 0);
}

static struct nt_node_desk_score score_at(size_t instance, const char *node)
{
	struct nt_node_desk_score score;

	assert_true(
		nt_node_desk_find(nt_service_node_desk(instances[instance].service), node, &score));
	return score;
}

static void the_score_of_a_node_moves_with_the_shard_of_its_partition(void **state)
{
	const uint64_t first_ns = nt_clock_real_ns() - 9 * NT_MINUTE;
	struct feed_agent node = feed_agent("gpu-02", "gpu-02");

	(void)state;
	give_all(0);
	turn_all();
	for (uint64_t i = 0; i < 8; i++)
		publish_vector(&node, first_ns + i * NT_MINUTE, NT_HOUR + i * NT_MINUTE);
	turn_all();
	assert_true(score_at(0, "gpu-02").is_scored);
	assert_int_equal(score_at(0, "gpu-02").learning_since_ns, first_ns);
	/* The other one reads its vectors too, for the comparison with peers. */
	assert_false(score_at(1, "gpu-02").is_scored);
	give_all(1);
	turn_all();
	assert_false(score_at(0, "gpu-02").is_scored);
	assert_true(score_at(1, "gpu-02").is_scored);
	assert_int_equal(score_at(1, "gpu-02").learning_since_ns, first_ns);
	publish_vector(&node, first_ns + 8 * NT_MINUTE, NT_HOUR + 8 * NT_MINUTE);
	publish_vector(&node, first_ns + 9 * NT_MINUTE, NT_HOUR + 9 * NT_MINUTE);
	turn_all();
	assert_int_equal(score_at(1, "gpu-02").learning_since_ns, first_ns);
	assert_true(score_at(1, "gpu-02").scored_ns > score_at(0, "gpu-02").scored_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_instance_shows_what_one_has_decided_and_one_alone_tells),
		TEST(what_a_full_disk_does_not_take_from_others_is_taken_later),
		TEST(what_a_full_disk_does_not_take_over_is_told_later),
		TEST(partitions_that_move_all_the_time_change_nothing),
		TEST(who_is_killed_is_followed_by_one_that_learns_nothing_anew),
		TEST(what_the_dead_one_had_not_sent_is_sent_once),
		TEST(what_the_dead_one_had_no_time_to_publish_is_sent_again_and_counted),
		TEST(who_comes_back_after_a_crash_repeats_nothing),
		TEST(who_leaves_in_good_order_hands_over_at_once),
		TEST(who_has_lost_a_shard_keeps_its_state_for_the_return),
		TEST(who_has_lost_a_shard_tells_nobody_of_it),
		TEST(a_job_of_another_instance_is_shown_with_its_owner),
		TEST(time_in_which_it_does_not_run_makes_no_agent_silent),
		TEST(sums_do_not_fall_when_a_shard_goes),
		TEST(what_makes_no_sense_on_the_shared_topics_is_counted_and_stops_nothing),
		TEST(every_instance_shows_what_any_node_leaves_out),
		TEST(the_score_of_a_node_moves_with_the_shard_of_its_partition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
