/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two stores that share their work by what they publish: who is told of what, and how often. */
#include <sqlite3.h>

#include "tests/unit/aggregator/store_pair.h"

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

/* ---- silences and held ends ------------------------------------------------------------------- */

static void act(struct nt_store *by, enum nt_store_act what)
{
	const struct nt_store_action action = {
		.act = what,
		.real_ns = nt_clock_real_ns(),
		.by = "anna",
		.until_real_ns = nt_clock_real_ns() + NT_HOUR,
	};

	assert_int_equal(nt_store_act(by, "i1", &action), 0);
}

static struct nt_store_handling handling_of(struct nt_store *of)
{
	struct nt_store_handling handling;

	assert_int_equal(nt_store_get_handling(of, "i1", &handling), 0);
	return handling;
}

/* When the message that waits is due: 0 for none. */
static uint64_t due_of(struct nt_store *of)
{
	struct nt_outbox_message message = {0};
	uint64_t next_ns = 0;

	assert_int_equal(nt_store_outbox_next(of, "webhook", 0, &message, &next_ns), 0);
	return next_ns == UINT64_MAX ? 0 : next_ns;
}

static void a_silence_goes_on_at_the_next_owner(void **state)
{
	uint64_t until_ns;

	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	act(store, NT_STORE_ACKNOWLEDGE);
	act(store, NT_STORE_SILENCE);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_string_equal(handling_of(other).acknowledged_by, "anna");
	assert_int_equal(handling_of(other).revision, 2);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	until_ns = handling_of(store).silenced_until_real_ns;
	assert_int_equal(due_of(other), until_ns);
	/* What comes later waits too, and an end in the silence is for nobody. */
	decide(other, "i1", "resolved", 3);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	assert_int_equal(due_of(other), 0);
}

static void a_silence_that_is_taken_back_ends_at_the_next_owner_too(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	act(store, NT_STORE_SILENCE);
	assert_int_equal(publish(store), 1);
	take(other, false);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	/* The former owner accepted it just before. */
	act(store, NT_STORE_UNSILENCE);
	assert_int_equal(publish(store), 1);
	take(other, true);
	assert_int_equal(handling_of(other).silenced_until_real_ns, 0);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
}

static void a_silence_survives_a_restart_on_a_shared_bus(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	act(store, NT_STORE_SILENCE);
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_shared(), 0);
	adopt(store);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
	assert_int_equal(due_of(store), handling_of(store).silenced_until_real_ns);
}

/* The receiver may know it, so its end must follow. */
static void what_was_attempted_before_a_silence_goes_on_at_the_next_owner(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_string_equal(send_from(store, NT_OUTBOX_RETRY), "msg_i1_firing_critical");
	act(store, NT_STORE_SILENCE);
	assert_int_equal(publish(store), 1);
	take(other, false);
	adopt(other);
	decide(other, "i1", "resolved", 3);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i1_resolved");
}

static void an_older_handling_is_corrected_and_a_senseless_one_refused(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	act(store, NT_STORE_SILENCE);
	assert_int_equal(publish(store), 1);
	assert_int_equal(seen.handling.revision, 1);
	act(store, NT_STORE_ACKNOWLEDGE);
	assert_int_equal(publish(store), 1);
	assert_int_equal(publish(store), 0);
	/* A former owner publishes once more. */
	seen.handling.revision = 1;
	take(store, true);
	assert_int_equal(handling_of(store).revision, 2);
	assert_int_equal(publish(store), 1);
	assert_int_equal(seen.handling.revision, 2);
	seen.handling.revision = UINT64_MAX;
	take(store, true);
	assert_int_equal(stats_of(store).deliveries_refused, 1);
	assert_int_equal(handling_of(store).revision, 2);
	seen.handling.revision = 3;
	seen.handling.silenced_until_real_ns = UINT64_MAX;
	take(store, true);
	assert_true(handling_of(store).silenced_until_real_ns <=
		    nt_clock_real_ns() + NT_STORE_MAX_SILENCE_NS);
}

static int set_up_flapping(void **state)
{
	const struct nt_store_options options = {
		.path = path,
		.receiver = receivers,
		.receivers = 1,
		.shared = true,
		.flap = {.changes = 1, .window_ns = NT_DAY, .quiet_ns = NT_DAY},
	};

	published = flushed = 0;
	flush_result = 0;
	return set_up_files(state) || open_with(&options) || open_other();
}

static void change_at(const char *id, const char *incident_state, uint64_t version,
		      uint64_t before_ns)
{
	struct nt_wire_incident incident = make(id, incident_state, version);
	const struct nt_sink sink = nt_store_sink(store);

	incident.since_real_ns -= before_ns;
	incident.seen_real_ns -= before_ns;
	incident.until_real_ns -= incident.until_real_ns ? before_ns : 0;
	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

/* It flaps for hours, and its shard moves meanwhile. */
static void an_end_that_is_held_for_long_is_told_by_the_next_owner(void **state)
{
	(void)state;
	change_at("i1", "firing", 2, 5 * NT_HOUR);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_firing_critical");
	change_at("i1", "resolved", 3, 5 * NT_HOUR - NT_MINUTE);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i1_resolved");
	change_at("i2", "firing", 2, 4 * NT_HOUR);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i2_firing_critical");
	assert_int_equal(publish(store), 2);
	change_at("i2", "resolved", 3, 4 * NT_HOUR - NT_MINUTE);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
	assert_int_equal(publish(store), 1);
	assert_string_equal(seen.id, "i2");
	take(other, false);
	adopt(other);
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "msg_i2_resolved");
	assert_string_equal(send_from(other, NT_OUTBOX_SENT), "");
	/* The former owner gets the shard back, and does not say it again. */
	assert_int_equal(publish(other), 1);
	take(store, false);
	adopt(store);
	nt_store_tick(store, nt_clock_real_ns() + 2 * NT_DAY);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
}

static void an_end_that_is_held_for_long_stays_held_after_a_restart(void **state)
{
	const struct nt_sink sink = nt_store_sink(store);

	(void)state;
	change_at("i1", "firing", 2, 5 * NT_HOUR);
	change_at("i1", "resolved", 3, 5 * NT_HOUR - NT_MINUTE);
	change_at("i2", "firing", 2, 4 * NT_HOUR);
	while (*send_from(store, NT_OUTBOX_SENT))
		;
	change_at("i2", "resolved", 3, 4 * NT_HOUR - NT_MINUTE);
	assert_int_equal(sink.release(sink.data, SHARD), 0);
	adopt(store);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "");
	nt_store_tick(store, nt_clock_real_ns() + 2 * NT_DAY);
	assert_string_equal(send_from(store, NT_OUTBOX_SENT), "msg_i2_resolved");
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

#define TEST_FLAPPING(fn) cmocka_unit_test_setup_teardown(fn, set_up_flapping, tear_down_two)

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
		TEST_TWO(who_spoke_too_late_is_corrected_by_the_owner),
		TEST_TWO(the_owner_does_not_take_a_version_that_it_has_not_decided),
		TEST_TWO(what_the_bus_did_not_take_is_published_again),
		TEST_TWO(many_changes_are_published_batch_by_batch_and_each_once),
		TEST_TWO(deliveries_that_make_no_sense_are_passed_over_and_counted),
		TEST_TWO(a_silence_goes_on_at_the_next_owner),
		TEST_TWO(a_silence_that_is_taken_back_ends_at_the_next_owner_too),
		TEST_TWO(a_silence_survives_a_restart_on_a_shared_bus),
		TEST_TWO(what_was_attempted_before_a_silence_goes_on_at_the_next_owner),
		TEST_TWO(an_older_handling_is_corrected_and_a_senseless_one_refused),
		TEST_FLAPPING(an_end_that_is_held_for_long_is_told_by_the_next_owner),
		TEST_FLAPPING(an_end_that_is_held_for_long_stays_held_after_a_restart),
		TEST_TWO(states_of_shards_do_not_touch_each_other),
		TEST_FILE(a_store_of_the_first_version_is_taken_over_with_its_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
