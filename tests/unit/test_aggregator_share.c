/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several aggregators on one bus, whose partitions go from one to another: handed over in good order,
 * lost, or left behind by a crash. The bus is a spool; who owns what the test decides.
 */
#include "aggregator/service.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/store.h"
#include "common/bus_impl.h"
#include "common/clock.h"
#include "tests/unit/feed.h"
#include "tests/unit/scratch.h"

enum {
	JOBS = 3, /* each on a partition of its own */
	MEMBERS = 2,
	RANKS = 8,
	SLOW = 5,
	MAX_SENT = 64,
};

/* ---- a group --------------------------------------------------------------------------------------- */

/* A reader that owns what it is told to own. */
struct fake {
	struct nt_bus_reader bus;
	struct nt_bus_reader *spool;
	struct nt_bus_group group;
	bool owned[JOBS], wanted[JOBS], lost;
};

static void change(struct fake *fake, uint32_t partition)
{
	struct nt_bus_position position = {NT_TOPIC_WINDOW, partition, NT_BUS_OLDEST};

	if (fake->owned[partition]) {
		fake->owned[partition] = false;
		fake->group.revoked(fake->group.data, &position, fake->lost);
		return;
	}
	fake->owned[partition] = true;
	fake->group.assigned(fake->group.data, &position);
	if (position.offset == NT_BUS_OLDEST)
		position.offset = 0;
	assert_int_equal(nt_bus_reader_seek(fake->spool, &position), 0);
}

static bool is_taken(const struct fake *but, uint32_t partition);

static int fake_next(struct nt_bus_reader *bus, int timeout_ms, struct nt_bus_record *ret_record)
{
	struct fake *fake = (struct fake *)bus;
	int r;

	for (uint32_t i = 0; i < JOBS; i++)
		if (fake->owned[i] && !fake->wanted[i])
			change(fake, i);
	for (uint32_t i = 0; i < JOBS; i++)
		if (!fake->owned[i] && fake->wanted[i] && !is_taken(fake, i))
			change(fake, i);
	do
		r = nt_bus_reader_next(fake->spool, timeout_ms, ret_record);
	while (r > 0 && !fake->owned[ret_record->partition]);
	return r;
}

static void fake_close(struct nt_bus_reader *bus)
{
	struct fake *fake = (struct fake *)bus;

	for (uint32_t i = 0; i < JOBS; i++)
		if (fake->owned[i])
			change(fake, i);
	nt_bus_reader_close(fake->spool);
	free(fake);
}

static struct fake *newest;

static int fake_join(const char *url, uint32_t topics, const struct nt_bus_options *options,
		     const struct nt_bus_group *group, struct nt_bus_reader **ret_reader)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	(void)options;
	assert_non_null(fake);
	assert_int_equal(topics, 1U << NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_open(url, topics, &fake->spool), 0);
	fake->bus.next = fake_next;
	fake->bus.close = fake_close;
	fake->group = *group;
	newest = fake;
	*ret_reader = &fake->bus;
	return 0;
}

/* ---- members and the world ------------------------------------------------------------------------- */

static struct member {
	struct nt_board *board;
	struct nt_store *store;
	struct nt_sink sink;
	struct nt_state_store states;
	struct nt_service *service;
	struct fake *fake;
	char address[32];
	bool mute; /* sends nothing */
} members[MEMBERS];

/* Nobody gets a partition before its owner has given it back, or is given up. */
static bool is_taken(const struct fake *but, uint32_t partition)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		const struct fake *fake = members[i].fake;

		if (fake && fake != but && fake->owned[partition] && !fake->lost)
			return true;
	}
	return false;
}

static char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 16];
static struct nt_bus *bus[JOBS];
static struct feed_agent agent[JOBS];
static char *sent[MAX_SENT]; /* ids of messages, in the order of sending */
static size_t sents;

static void start_member(size_t i)
{
	static const char *const receivers[] = {"webhook"};
	struct member *member = &members[i];
	char path[SCRATCH_BYTES + 16];
	struct nt_store_error error;

	(void)snprintf(path, sizeof(path), "%s/store-%zu.db", dir, i);
	(void)snprintf(member->address, sizeof(member->address), "http://member-%zu", i);
	assert_int_equal(nt_board_new(&member->board), 0);
	assert_int_equal(nt_store_open(&(struct nt_store_options){.path = path,
								  .receiver = receivers,
								  .receivers = 1,
								  .shared = true},
				       &member->store, &error),
			 0);
	member->sink = nt_store_sink(member->store);
	member->states = nt_store_states(member->store);
	assert_int_equal(nt_service_new(
				 &(struct nt_service_options){
					 .bus_url = url,
					 .join = fake_join,
					 .shared = true,
					 .address = member->address,
					 .engine = nt_engine_options_default(),
					 .sink = &member->sink,
					 .states = &member->states,
					 .save_every_ns = NT_HOUR,
					 .heads_every_ns = 1,
					 .picture_every_ns = 1,
					 .retry_after_ns = 1,
				 },
				 member->board, &member->service),
			 0);
	member->fake = newest;
}

/* As by kill -9. The machine may be gone too, with its store. */
static void kill_member(size_t i)
{
	struct member *member = &members[i];

	nt_service_free(member->service);
	nt_store_close(member->store);
	nt_board_free(member->board);
	*member = (struct member){0};
}

static void stop_member(size_t i)
{
	nt_service_stop(members[i].service);
	assert_int_equal(nt_service_run(members[i].service), 0);
	kill_member(i);
}

static void send_all(struct member *member)
{
	for (;;) {
		struct nt_outbox_message message = {0};
		uint64_t next_ns;

		if (nt_store_outbox_next(member->store, "webhook", nt_clock_real_ns(), &message,
					 &next_ns) <= 0)
			return;
		assert_true(sents < MAX_SENT);
		sent[sents++] = strdup(message.id);
		assert_int_equal(nt_store_outbox_done(member->store, message.number, NT_OUTBOX_SENT,
						      nt_clock_real_ns(), 0),
				 0);
		nt_outbox_message_release(&message);
	}
}

/* One that took long is not drawn again at once: on a busy machine it shows what was. */
static void await_picture(struct member *member)
{
	const struct nt_snapshot *before = nt_snapshot_acquire(member->board);

	/* It is held, so that another cannot have its address. */
	for (bool fresh = false; !fresh;) {
		const struct nt_snapshot *now;

		assert_int_equal(nt_service_turn(member->service, 1), 0);
		now = nt_snapshot_acquire(member->board);
		fresh = now != before;
		nt_snapshot_release(now);
	}
	nt_snapshot_release(before);
}

/* Until everybody has read all there is and said all there is to say. */
static void turn_all(void)
{
	for (int round = 0; round < 12; round++)
		for (size_t i = 0; i < MEMBERS; i++) {
			if (!members[i].service)
				continue;
			assert_int_equal(nt_service_turn(members[i].service, 0), 0);
			if (!members[i].mute)
				send_all(&members[i]);
		}
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].service)
			await_picture(&members[i]);
}

static void give(size_t member, uint32_t partition)
{
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].fake)
			members[i].fake->wanted[partition] = i == member;
}

static void give_all(size_t member)
{
	for (uint32_t i = 0; i < JOBS; i++)
		give(member, i);
}

/* Jobs of eight ranks, each on a node of its own; from slow_ms to well_ms one rank of each is slow. */
static void publish_run(uint64_t from_ms, uint64_t to_ms, uint64_t slow_ms, uint64_t well_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 520)
		for (size_t job = 0; job < JOBS; job++)
			for (uint32_t rank = 0; rank < RANKS; rank++) {
				const bool is_slow = at >= slow_ms && at < well_ms;
				const bool slow = rank == SLOW && is_slow;
				const double noise =
					(double)((at / 520 * 7 + rank * 13 + job) % 17) * 0.01;
				const struct feed_window window = {
					.rank = rank,
					.size = RANKS,
					.from_ms = at,
					.to_ms = at + 520,
					.steps = 10,
					.own_ms = (slow ? 30 : 20) + noise,
					.step_ms = is_slow ? 31 : 21,
					.comm = 0xabc + job,
					.last = at / 52 + 10,
				};
				nt_autobuf struct nt_buf buf = {0};
				struct nt_message *message = feed_window(&agent[job], &window);
				const struct nt_bus_record record = feed_record(message, &buf);

				assert_int_equal(nt_bus_publish(bus[job], &record), 0);
				nt_message_free(message);
			}
	for (size_t job = 0; job < JOBS; job++)
		assert_int_equal(nt_bus_flush(bus[job]), 0);
}

static int set_up(void **state)
{
	static const char *const nodes[JOBS] = {"gpu-01", "gpu-02", "gpu-03"};
	static const char *const keys[JOBS] = {"job-a", "job-b", "job-c"};

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	for (size_t i = 0; i < JOBS; i++) {
		assert_int_equal(nt_bus_open(url, NULL, &bus[i]), 0);
		agent[i] = feed_agent(nodes[i], keys[i]);
	}
	/* So that each has its partition, and in this order. */
	publish_run(0, 520, UINT64_MAX, UINT64_MAX);
	for (size_t i = 0; i < MEMBERS; i++)
		start_member(i);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < MEMBERS; i++)
		kill_member(i);
	for (size_t i = 0; i < JOBS; i++) {
		nt_bus_close(bus[i]);
		bus[i] = NULL;
	}
	while (sents)
		free(sent[--sents]);
	scratch_remove(dir);
	return 0;
}

/* Incidents as a member shows them, one a line, by id. */
static char *show(size_t member)
{
	nt_autopage struct nt_store_page page = {0};
	nt_autobuf struct nt_buf buf = {0};
	char *line[NT_STORE_MAX_PAGE];
	size_t lines = 0;

	assert_int_equal(nt_store_list(members[member].store,
				       &(struct nt_store_filter){.limit = 100}, &page),
			 0);
	for (size_t i = 0; i < page.count; i++) {
		const struct nt_incident *incident = &page.incident[i]->incident;
		size_t at = lines;

		assert_true(asprintf(&line[lines], "%s %llu %s %s", incident->id,
				     (unsigned long long)incident->version, incident->state,
				     incident->summary) > 0);
		for (; at && strcmp(line[at - 1], line[at]) > 0; at--) {
			char *swap = line[at];

			line[at] = line[at - 1];
			line[at - 1] = swap;
		}
		lines++;
	}
	for (size_t i = 0; i < lines; i++) {
		assert_int_equal(nt_buf_printf(&buf, "%s\n", line[i]), 0);
		free(line[i]);
	}
	assert_int_equal(nt_buf_append(&buf, "", 1), 0);
	return (char *)nt_take(buf.data);
}

static size_t count_sent(const char *what)
{
	size_t count = 0;

	for (size_t i = 0; i < sents; i++)
		count += strstr(sent[i], what) != NULL;
	return count;
}

static void no_message_was_sent_twice(void)
{
	for (size_t i = 0; i < sents; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(sent[i], sent[j]);
}

static double metric(size_t member, const char *name)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(members[member].board);
	double value = -1;

	for (size_t i = 0; i < snapshot->metrics; i++)
		if (strcmp(snapshot->metric[i].name, name) == 0)
			value = snapshot->metric[i].value;
	nt_snapshot_release(snapshot);
	return value;
}

/* What one member shows that has done it all, in one go. */
static char *reference(uint64_t to_ms, uint64_t well_ms)
{
	char *shown;

	give_all(0);
	publish_run(520, to_ms, 30000, well_ms);
	turn_all();
	shown = show(0);
	assert_int_equal(count_sent("_firing_"), JOBS);
	tear_down(NULL);
	set_up(NULL);
	return shown;
}

/* ---- tests ------------------------------------------------------------------------------------------ */

static void every_member_shows_what_one_has_decided_and_one_alone_tells(void **state)
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

static int take_on_full_disk(void *data, const struct nt_incident *incident, bool is_ours)
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
	members[1].sink.take = take_on_full_disk;
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
	members[1].sink.adopt = adopt_on_full_disk;
	members[0].mute = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	assert_int_equal(sents, 0);
	disk_is_full = true;
	kill_member(0);
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
			give((round + i) % MEMBERS, i);
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
	kill_member(0);
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
	members[0].mute = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	assert_int_equal(sents, 0);
	kill_member(0);
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
	members[0].mute = true;
	give_all(0);
	publish_run(520, 60000, 30000, UINT64_MAX);
	turn_all();
	send_all(&members[0]);
	kill_member(0);
	give_all(1);
	turn_all();
	assert_int_equal(sents, 2 * JOBS);
	nt_store_stats(members[1].store, &stats);
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
	kill_member(0);
	start_member(0);
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
	stop_member(0);
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
	const struct nt_state_store *states = &members[0].states;

	(void)state;
	want = reference(60000, UINT64_MAX);
	give_all(0);
	publish_run(520, 45760, 30000, UINT64_MAX);
	turn_all();
	for (uint32_t i = 0; i < JOBS; i++)
		assert_int_equal(states->load(states->data, i + 1, note_set, &(uint64_t){0}),
				 -ENOENT);
	members[0].fake->lost = true;
	give_all(MEMBERS); /* nobody */
	turn_all();
	assert_true(metric(0, "neutracer_aggregator_shards_lost") == JOBS);
	for (uint32_t i = 0; i < JOBS; i++) {
		uint64_t saved_ns = 0;

		assert_int_equal(states->load(states->data, i + 1, note_set, &saved_ns), 0);
		assert_true(saved_ns > 0);
	}
	members[0].fake->lost = false;
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
	members[0].fake->lost = true;
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

static void a_job_of_another_member_is_shown_with_its_owner(void **state)
{
	const struct nt_snapshot *snapshot;
	const struct nt_snapshot_job *job;

	(void)state;
	give(0, 0);
	give(1, 1);
	publish_run(520, 20800, UINT64_MAX, UINT64_MAX);
	turn_all();
	turn_all();
	snapshot = nt_snapshot_acquire(members[1].board);
	assert_int_equal(snapshot->jobs, 2);
	job = find_key(snapshot, "job-a");
	assert_true(job->is_head);
	assert_string_equal(job->owner, "http://member-0");
	assert_string_equal(job->name, "llm");
	assert_int_equal(job->size, RANKS);
	assert_int_equal(job->live, RANKS);
	assert_int_equal(job->state, NT_JOB_RUNNING);
	assert_int_equal(job->ranks, 0);
	assert_false(find_key(snapshot, "job-b")->is_head);
	nt_snapshot_release(snapshot);
	/* Whoever takes it over shows it as its own. */
	give(1, 0);
	turn_all();
	turn_all();
	snapshot = nt_snapshot_acquire(members[1].board);
	assert_int_equal(snapshot->jobs, 2);
	assert_false(find_key(snapshot, "job-a")->is_head);
	assert_int_equal(find_key(snapshot, "job-a")->ranks, RANKS);
	nt_snapshot_release(snapshot);
	snapshot = nt_snapshot_acquire(members[0].board);
	assert_int_equal(snapshot->jobs, 2);
	assert_string_equal(find_key(snapshot, "job-a")->owner, "http://member-1");
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
static long left_out(size_t member, const char *node)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(members[member].board);
	long found = -1;

	for (size_t i = 0; i < snapshot->nodes; i++)
		if (strcmp(snapshot->node[i].name, node) == 0)
			found = snapshot->node[i].limits ? (long)snapshot->node[i].limit[0].left_out
							 : 0;
	nt_snapshot_release(snapshot);
	return found;
}

static void every_member_shows_what_any_node_leaves_out(void **state)
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
	assert_int_equal(left_out(1, "gpu-02"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_member_shows_what_one_has_decided_and_one_alone_tells),
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
		TEST(a_job_of_another_member_is_shown_with_its_owner),
		TEST(sums_do_not_fall_when_a_shard_goes),
		TEST(what_makes_no_sense_on_the_shared_topics_is_counted_and_stops_nothing),
		TEST(every_member_shows_what_any_node_leaves_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
