/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two stores that share their work by what they publish: who is told of what, and how often. */
#include "tests/unit/store.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <time.h>

#include "common/buf.h"

enum {
	SHARD = 3,
};

static struct nt_store *other;
static struct nt_incident seen; /* the last that was published; texts are constants */
static struct nt_message *seen_message;
static unsigned int published, flushed;
static int flush_result;

static int open_other(void)
{
	char name[SCRATCH_BYTES + 16];
	const struct nt_store_options options = {
		.path = name,
		.receiver = receivers,
		.receivers = 1,
		.shared = true,
	};
	struct nt_store_error error;

	(void)snprintf(name, sizeof(name), "%s/other.db", dir);
	return nt_store_open(&options, &other, &error);
}

static int open_shared(void)
{
	return open_with(&(struct nt_store_options){
		.path = path, .receiver = receivers, .receivers = 1, .shared = true});
}

static int set_up_two(void **state)
{
	published = flushed = 0;
	flush_result = 0;
	return set_up_files(state) || open_shared() || open_other();
}

static int tear_down_two(void **state)
{
	nt_store_close(other);
	other = NULL;
	nt_message_free(seen_message);
	seen_message = NULL;
	return tear_down(state);
}

static struct nt_incident make(const char *id, const char *state, uint64_t version)
{
	struct nt_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);

	incident.shard = SHARD;
	incident.version = version;
	incident.since_real_ns = incident.seen_real_ns = nt_clock_real_ns();
	if (incident.until_real_ns)
		incident.until_real_ns = incident.since_real_ns;
	return incident;
}

static void decide(struct nt_store *by, const char *id, const char *state, uint64_t version)
{
	const struct nt_incident incident = make(id, state, version);
	const struct nt_sink sink = nt_store_sink(by);

	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

/* ---- the bus between them ------------------------------------------------------------------------ */

/* As over the wire. */
static int see(void *data, const struct nt_incident *incident)
{
	const struct nt_message message = {
		.agent = "a",
		.key = incident->id,
		.body = NT_BODY_INCIDENT,
		.incident = *incident,
	};
	nt_autobuf struct nt_buf buf = {0};

	(void)data;
	nt_message_free(nt_take(seen_message));
	assert_int_equal(nt_message_encode(&message, &buf), 0);
	assert_int_equal(nt_message_decode(buf.data, buf.len, &seen_message), 0);
	seen = seen_message->incident;
	published++;
	return 0;
}

static int flush(void *data)
{
	(void)data;
	flushed++;
	return flush_result;
}

static const struct nt_sink_outlet outlet = {.incident = see, .flush = flush};

static int publish(struct nt_store *from)
{
	const struct nt_sink sink = nt_store_sink(from);

	return sink.publish(sink.data, &outlet);
}

static void take(struct nt_store *to, bool is_ours)
{
	const struct nt_sink sink = nt_store_sink(to);

	assert_int_equal(sink.take(sink.data, &seen, is_ours), 0);
}

static void adopt(struct nt_store *by)
{
	const struct nt_sink sink = nt_store_sink(by);

	assert_int_equal(sink.adopt(sink.data, SHARD, nt_clock_real_ns()), 0);
}

static void release(struct nt_store *by)
{
	const struct nt_sink sink = nt_store_sink(by);

	assert_int_equal(sink.release(sink.data, SHARD), 0);
}

/* Sends what is due, and says what it was: "" for nothing. */
static const char *send_from(struct nt_store *by, enum nt_outbox_result result)
{
	static char id[160];
	struct nt_outbox_message message = {0};
	uint64_t next_ns;

	id[0] = '\0';
	if (nt_store_outbox_next(by, "webhook", nt_clock_real_ns(), &message, &next_ns) <= 0)
		return id;
	(void)snprintf(id, sizeof(id), "%s", message.id);
	assert_non_null(
		strstr(message.body, message.resolved ? "incident.resolved" : "incident.firing"));
	assert_non_null(strstr(message.body, message.resolved ? "\"state\":\"resolved\""
							      : "\"state\":\"firing\""));
	assert_int_equal(nt_store_outbox_done(by, message.number, result, nt_clock_real_ns(),
					      nt_clock_real_ns()),
			 0);
	nt_outbox_message_release(&message);
	return id;
}

static struct nt_store_stats stats_of(struct nt_store *of)
{
	struct nt_store_stats stats;

	nt_store_stats(of, &stats);
	return stats;
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void what_another_one_decides_is_shown_and_nobody_is_told(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	assert_int_equal(publish(store), 0);
	assert_int_equal(flushed, 1);
	take(other, false);
	assert_int_equal(nt_store_get(other, "i1", &message), 0);
	assert_string_equal(message->incident.state, "firing");
	assert_int_equal(message->incident.shard, SHARD);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	assert_int_equal(stats_of(other).taken, 1);
	assert_int_equal(stats_of(other).incidents_now, 1);
	/* It is not ours to publish. */
	assert_int_equal(publish(other), 0);
}

static void what_is_older_or_pending_is_not_taken(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	seen = make("i1", "resolved", 5);
	take(other, false);
	seen = make("i1", "firing", 4);
	take(other, false);
	seen = make("i2", "pending", 4);
	take(other, false);
	assert_int_equal(nt_store_get(other, "i1", &message), 0);
	assert_string_equal(message->incident.state, "resolved");
	assert_int_equal(stats_of(other).taken, 1);
}

static void what_was_sent_is_not_sent_again_by_the_next_owner(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_int_equal(publish(store), 1);
	assert_int_equal(seen.deliveries, 1);
	assert_string_equal(seen.delivery[0].receiver, "webhook");
	assert_string_equal(seen.delivery[0].event, "firing");
	assert_string_equal(seen.delivery[0].state, "sent");
	assert_string_equal(seen.delivery[0].severity, "critical");
	take(other, false);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	/* The new owner decides the same again, and then goes on. */
	decide(other, "i1", "firing", 2);
	decide(other, "i1", "firing", 3);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	decide(other, "i1", "resolved", 4);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_resolved");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	assert_int_equal(stats_of(other).adopted, 0);
}

static void how_a_message_fared_is_published_as_soon_as_it_is_known(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	assert_string_equal(seen.delivery[0].state, "queued");
	assert_string_equal(send_from(store, NT_OUTBOX_RETRY), "msg_i1_firing_critical");
	assert_int_equal(publish(store), 0);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_int_equal(publish(store), 1);
	assert_string_equal(seen.delivery[0].state, "sent");
	assert_int_equal(seen.delivery[0].attempts, 2);
	assert_int_equal(seen.version, 2);
}

static void what_was_not_sent_is_sent_by_the_next_owner_under_the_same_id(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	adopt(other);
	assert_int_equal(stats_of(other).adopted, 1);
	assert_int_equal(stats_of(other).outbox_now, 1);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	assert_int_equal(publish(other), 1);
	assert_string_equal(seen.delivery[0].state, "sent");
}

/* The owner died between the bus and its own store. */
static void an_incident_without_any_delivery_is_told_by_the_next_owner(void **state)
{
	(void)state;
	seen = make("i1", "firing", 2);
	take(other, false);
	adopt(other);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
}

static void an_end_that_was_not_told_is_told_by_the_next_owner(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	decide(store, "i1", "resolved", 3);
	assert_int_equal(publish(store), 1);
	assert_int_equal(seen.deliveries, 2);
	take(other, false);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_resolved");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
}

static void an_alarm_and_its_end_that_nobody_was_told_of_are_told_in_this_order(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	decide(store, "i1", "resolved", 3);
	assert_int_equal(publish(store), 1);
	take(other, false);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_resolved");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
}

static void other_shards_are_left_alone(void **state)
{
	const struct nt_sink sink = nt_store_sink(other);

	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_int_equal(sink.adopt(sink.data, SHARD + 1, nt_clock_real_ns()), 0);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	adopt(other);
	assert_int_equal(sink.release(sink.data, SHARD + 1), 0);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
}

static void an_end_long_ago_is_told_nobody(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	decide(store, "i1", "resolved", 3);
	assert_int_equal(publish(store), 1);
	seen.until_real_ns -= 2 * NT_HOUR;
	take(other, false);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
}

static void who_releases_a_shard_sends_nothing_more_for_it(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	release(store);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
	assert_int_equal(stats_of(store).outbox_now, 0);
	adopt(store);
	assert_int_equal(stats_of(store).outbox_now, 1);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_firing_critical");
}

static void limit_files(rlim_t bytes)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit limit;

	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* It is on the bus, and the next owner has told it long before our disk has room. */
static void what_waited_for_the_disk_is_not_told_once_its_shard_is_released(void **state)
{
	const struct nt_sink sink = nt_store_sink(store);
	const struct nt_incident one = make("i1", "firing", 2);
	struct nt_incident other_shard = make("i2", "firing", 2);

	(void)state;
	other_shard.shard = SHARD + 1;
	limit_files(4 << 10);
	assert_true(sink.incident(sink.data, &one) < 0);
	assert_true(sink.incident(sink.data, &other_shard) < 0);
	release(store);
	limit_files(RLIM_INFINITY);
	nt_store_tick(store, nt_clock_real_ns());
	assert_int_equal(stats_of(store).unsaved_now, 0);
	assert_int_equal(stats_of(store).incidents_now, 2);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i2_firing_critical");
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
	adopt(store);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_firing_critical");
}

static void *land(void *data)
{
	const struct timespec pause = {.tv_nsec = 50 * NT_MILLISECOND};
	const uint64_t *number = data;

	(void)nanosleep(&pause, NULL);
	assert_int_equal(
		nt_store_outbox_done(store, *number, NT_OUTBOX_SENT, nt_clock_real_ns(), 0), 0);
	return NULL;
}

static void releasing_waits_for_the_message_that_is_under_way(void **state)
{
	struct nt_outbox_message message = {0};
	uint64_t next_ns, number;
	pthread_t thread;

	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(
		nt_store_outbox_next(store, "webhook", nt_clock_real_ns(), &message, &next_ns), 1);
	number = message.number;
	nt_outbox_message_release(&message);
	assert_int_equal(pthread_create(&thread, NULL, land, &number), 0);
	release(store);
	assert_int_equal(publish(store), 1);
	assert_string_equal(seen.delivery[0].state, "sent");
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void releasing_does_not_wait_for_another_shards_message(void **state)
{
	const struct nt_sink sink = nt_store_sink(store);
	const uint64_t start_ns = nt_clock_mono_ns();
	struct nt_outbox_message message = {0};
	uint64_t next_ns;

	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(
		nt_store_outbox_next(store, "webhook", nt_clock_real_ns(), &message, &next_ns), 1);
	nt_outbox_message_release(&message);
	assert_int_equal(sink.release(sink.data, SHARD + 1), 0);
	/* The patience is 20 s. */
	assert_true(nt_clock_mono_ns() - start_ns < 10 * NT_SECOND);
}

static void a_retry_does_not_take_a_released_message_back(void **state)
{
	struct nt_outbox_message message = {0};
	uint64_t next_ns, number;

	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(
		nt_store_outbox_next(store, "webhook", nt_clock_real_ns(), &message, &next_ns), 1);
	number = message.number;
	nt_outbox_message_release(&message);
	/* As if the patience had run out: the flight is forgotten by a second one's landing. */
	assert_int_equal(nt_store_outbox_done(store, number, NT_OUTBOX_RETRY, nt_clock_real_ns(),
					      nt_clock_real_ns()),
			 0);
	release(store);
	assert_int_equal(nt_store_outbox_done(store, number, NT_OUTBOX_RETRY, nt_clock_real_ns(),
					      nt_clock_real_ns()),
			 0);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
}

static void after_a_restart_nothing_is_sent_before_the_shard_is_ours_again(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_shared(), 0);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
	/* Meanwhile another one has sent it. */
	seen = make("i1", "firing", 2);
	seen.delivery = &(struct nt_delivery){
		.receiver = "webhook",
		.event = "firing",
		.severity = "critical",
		.state = "sent",
		.attempts = 1,
	};
	seen.deliveries = 1;
	take(store, false);
	adopt(store);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
}

static void who_spoke_too_late_is_corrected_by_the_owner(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	adopt(other);
	decide(other, "i1", "firing", 3);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_int_equal(publish(other), 1);
	assert_int_equal(publish(other), 0);
	/* The old owner publishes once more, after the new one. */
	seen = make("i1", "firing", 2);
	take(other, true);
	assert_int_equal(publish(other), 1);
	assert_int_equal(seen.version, 3);
	assert_string_equal(seen.delivery[0].state, "sent");
	/* That is the end of it. */
	take(other, true);
	assert_int_equal(publish(other), 0);
	take(store, false);
	assert_int_equal(publish(store), 0);
}

static void the_owner_does_not_take_a_version_that_it_has_not_decided(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	decide(store, "i1", "firing", 2);
	seen = make("i1", "resolved", 9);
	take(store, true);
	assert_int_equal(nt_store_get(store, "i1", &message), 0);
	assert_string_equal(message->incident.state, "firing");
}

static void what_the_bus_did_not_take_is_published_again(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	flush_result = -ETIMEDOUT;
	assert_int_equal(publish(store), -ETIMEDOUT);
	assert_int_equal(publish(store), -ETIMEDOUT);
	nt_store_close(store);
	store = NULL;
	flush_result = 0;
	assert_int_equal(open_shared(), 0);
	assert_int_equal(publish(store), 1);
	assert_int_equal(publish(store), 0);
	assert_int_equal(published, 3);
}

static void many_changes_are_published_batch_by_batch_and_each_once(void **state)
{
	unsigned int batches = 0;

	(void)state;
	for (int i = 0; i < 150; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "id-%d", i);
		decide(store, id, "firing", 1);
	}
	while (publish(store) > 0)
		batches++;
	assert_int_equal(batches, 3);
	assert_int_equal(published, 150);
}

static void deliveries_that_make_no_sense_are_passed_over_and_counted(void **state)
{
	char name[NT_STORE_MAX_NAME + 1];
	struct nt_delivery bad[] = {
		{.receiver = "", .event = "firing", .state = "sent", .severity = "critical"},
		{.receiver = name, .event = "firing", .state = "sent", .severity = "critical"},
		{.receiver = "webhook", .event = "began", .state = "sent", .severity = "critical"},
		{.receiver = "webhook", .event = "firing", .state = "lost", .severity = "critical"},
		{.receiver = "webhook", .event = "firing", .state = "sent", .severity = "dire"},
		{.receiver = "webhook", .event = "firing", .state = "sent", .severity = "critical"},
	};

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	seen = make("i1", "firing", 2);
	seen.delivery = bad;
	seen.deliveries = 6;
	take(other, false);
	assert_int_equal(stats_of(other).deliveries_refused, 5);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
}

static void states_of_shards_do_not_touch_each_other(void **state)
{
	struct nt_state_set one = whole, two = whole;
	const struct nt_state_store states = nt_store_states(store);
	struct want want = {.set = &one};

	(void)state;
	one.shard = 1;
	two.shard = 2;
	two.items = 1;
	two.real_ns++;
	assert_int_equal(states.save(states.data, &one), 0);
	assert_int_equal(states.save(states.data, &two), 0);
	assert_int_equal(states.load(states.data, 1, compare_set, &want), 7);
	want.set = &two;
	assert_int_equal(states.load(states.data, 2, compare_set, &want), 7);
	assert_int_equal(states.load(states.data, 0, compare_set, &want), -ENOENT);
}

/* As the first version made it. */
static const char first_schema[] =
	"PRAGMA application_id = 1314148931; PRAGMA user_version = 1;"
	"CREATE TABLE incident (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
	"  version INTEGER NOT NULL, state TEXT NOT NULL, severity TEXT NOT NULL,"
	"  class TEXT NOT NULL, job TEXT NOT NULL, job_key TEXT NOT NULL,"
	"  attempt INTEGER NOT NULL, since_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL,"
	"  body BLOB NOT NULL);"
	"CREATE INDEX incident_state ON incident (state, number);"
	"CREATE INDEX incident_job ON incident (job, number);"
	"CREATE TABLE message (number INTEGER PRIMARY KEY AUTOINCREMENT, incident TEXT NOT NULL,"
	"  receiver TEXT NOT NULL, event TEXT NOT NULL, severity INTEGER NOT NULL,"
	"  state TEXT NOT NULL, attempts INTEGER NOT NULL, queued_ns INTEGER NOT NULL,"
	"  next_ns INTEGER NOT NULL, body TEXT, UNIQUE (incident, receiver, event, severity));"
	"CREATE INDEX message_waiting ON message (next_ns) WHERE state = 'waiting';"
	"CREATE TABLE state (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE position (topic TEXT NOT NULL, partition INTEGER NOT NULL,"
	"  offset INTEGER NOT NULL, PRIMARY KEY (topic, partition)) WITHOUT ROWID;"
	"CREATE TABLE state_time (one INTEGER PRIMARY KEY CHECK (one = 1), real_ns INTEGER NOT NULL);"
	"INSERT INTO state VALUES ('ingest', X'000102'), ('job-00a1', X'');"
	"INSERT INTO position VALUES ('neutracer.control.v1', 0, 12),"
	"  ('neutracer.window.v1', 3, 1099511627776);"
	"INSERT INTO state_time VALUES (1, 1795230012000000000);";

static void a_store_of_the_first_version_is_taken_over_with_its_state(void **state)
{
	struct want want = {.set = &whole};
	struct nt_state_store states;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, first_schema, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(open_store(), 0);
	states = nt_store_states(store);
	assert_int_equal(states.load(states.data, 0, compare_set, &want), 7);
	assert_int_equal(publish(store), 0);
}

#define TEST_TWO(fn) cmocka_unit_test_setup_teardown(fn, set_up_two, tear_down_two)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_TWO(what_another_one_decides_is_shown_and_nobody_is_told),
		TEST_TWO(what_is_older_or_pending_is_not_taken),
		TEST_TWO(what_was_sent_is_not_sent_again_by_the_next_owner),
		TEST_TWO(how_a_message_fared_is_published_as_soon_as_it_is_known),
		TEST_TWO(what_was_not_sent_is_sent_by_the_next_owner_under_the_same_id),
		TEST_TWO(an_incident_without_any_delivery_is_told_by_the_next_owner),
		TEST_TWO(an_end_that_was_not_told_is_told_by_the_next_owner),
		TEST_TWO(an_alarm_and_its_end_that_nobody_was_told_of_are_told_in_this_order),
		TEST_TWO(other_shards_are_left_alone),
		TEST_TWO(an_end_long_ago_is_told_nobody),
		TEST_TWO(who_releases_a_shard_sends_nothing_more_for_it),
		TEST_TWO(what_waited_for_the_disk_is_not_told_once_its_shard_is_released),
		TEST_TWO(releasing_waits_for_the_message_that_is_under_way),
		TEST_TWO(releasing_does_not_wait_for_another_shards_message),
		TEST_TWO(a_retry_does_not_take_a_released_message_back),
		TEST_TWO(after_a_restart_nothing_is_sent_before_the_shard_is_ours_again),
		TEST_TWO(who_spoke_too_late_is_corrected_by_the_owner),
		TEST_TWO(the_owner_does_not_take_a_version_that_it_has_not_decided),
		TEST_TWO(what_the_bus_did_not_take_is_published_again),
		TEST_TWO(many_changes_are_published_batch_by_batch_and_each_once),
		TEST_TWO(deliveries_that_make_no_sense_are_passed_over_and_counted),
		TEST_TWO(states_of_shards_do_not_touch_each_other),
		TEST_FILE(a_store_of_the_first_version_is_taken_over_with_its_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
