/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open incidents that a receiver knows, several messages at a time, and routes. */
#include "tests/unit/aggregator/store_pair.h"

static size_t list(struct nt_store *of, uint64_t after, size_t max, struct nt_store_firing *firing)
{
	int listed = nt_store_list_firing(of, "webhook", after, max, firing);

	assert_true(listed >= 0);
	return (size_t)listed;
}

static size_t count_firing(struct nt_store *of)
{
	struct nt_store_firing firing[8];
	size_t count = list(of, 0, 8, firing);

	nt_store_firing_release(firing, count);
	return count;
}

static void an_incident_is_firing_for_who_has_its_message(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(count_firing(store), 0);
	assert_string_equal(send_next(NT_MINUTE, NT_OUTBOX_SENT), "msg_a1_firing_critical");
	assert_int_equal(count_firing(store), 1);
	assert_int_equal(put_as("a1", "resolved", "critical", 2), 0);
	assert_int_equal(count_firing(store), 0);
}

static void who_refused_it_is_not_reminded_and_who_may_have_it_is(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_string_equal(send_next(NT_MINUTE, NT_OUTBOX_FAILED), "msg_a1_firing_critical");
	assert_int_equal(count_firing(store), 0);
	assert_int_equal(put_as("a2", "firing", "critical", 1), 0);
	assert_string_equal(send_next(NT_MINUTE, NT_OUTBOX_EXPIRED), "msg_a2_firing_critical");
	assert_int_equal(count_firing(store), 1);
}

static void a_reminder_has_the_incident_as_it_is_now(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &nt_test_rank_5, 1);
	struct nt_store_firing firing;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "warning", 1), 0);
	(void)send_next(NT_MINUTE, NT_OUTBOX_SENT);
	incident.version = 2;
	incident.summary = "it is worse now";
	assert_int_equal(put(&incident), 0);
	(void)send_next(2 * NT_MINUTE, NT_OUTBOX_SENT);
	assert_int_equal(list(store, 0, 1, &firing), 1);
	assert_non_null(strstr(firing.body, "it is worse now"));
	assert_int_equal(firing.severities, 1 << 1 | 1 << 2);
	assert_int_equal(firing.sent_real_ns, NT_MINUTE);
	nt_store_firing_release(&firing, 1);
}

static void pages_follow_each_other(void **state)
{
	struct nt_store_firing firing[2];
	size_t count = 0, listed;
	uint64_t after = 0;

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		char id[8];

		(void)snprintf(id, sizeof(id), "a%u", i);
		assert_int_equal(put_as(id, "firing", "critical", 1), 0);
		(void)send_next(NT_MINUTE, NT_OUTBOX_SENT);
	}
	while ((listed = list(store, after, 2, firing)) > 0) {
		after = firing[listed - 1].number;
		count += listed;
		nt_store_firing_release(firing, listed);
	}
	assert_int_equal(count, 5);
}

/* Two aggregators know the incident; its owner alone reminds. */
static void on_a_shared_bus_the_owner_reminds(void **state)
{
	const struct nt_sink sink = nt_store_sink(store);
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &nt_test_rank_5, 1);

	(void)state;
	incident.shard = SHARD;
	assert_int_equal(sink.adopt(sink.data, SHARD, NT_MINUTE), 0);
	assert_int_equal(put(&incident), 0);
	(void)send_next(NT_MINUTE, NT_OUTBOX_SENT);
	assert_int_equal(count_firing(store), 1);
	assert_int_equal(sink.release(sink.data, SHARD), 0);
	assert_int_equal(count_firing(store), 0);
	assert_int_equal(sink.adopt(sink.data, SHARD + 1, NT_MINUTE), 0);
	assert_int_equal(count_firing(store), 0);
	assert_int_equal(sink.adopt(sink.data, SHARD, NT_MINUTE), 0);
	assert_int_equal(count_firing(store), 1);
}

/* ---- several at a time ----------------------------------------------------------------------- */

static void several_are_in_flight_and_none_twice(void **state)
{
	struct nt_outbox_message first, more[NT_STORE_MAX_BATCH];
	uint64_t next_ns;
	size_t count;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		char id[8];

		(void)snprintf(id, sizeof(id), "a%u", i);
		assert_int_equal(put_as(id, "firing", "critical", 1), 0);
	}
	assert_int_equal(nt_store_outbox_next(store, "webhook", NT_MINUTE, &first, &next_ns), 1);
	assert_int_equal(nt_store_outbox_more(store, "webhook", NT_MINUTE, 2, more, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(first.incident, "a0");
	assert_string_equal(more[0].incident, "a1");
	assert_string_equal(more[1].incident, "a2");
	assert_int_equal(more[1].attempts, 1);
	for (size_t i = 0; i < count; i++)
		nt_outbox_message_release(&more[i]);
	assert_int_equal(nt_store_outbox_more(store, "webhook", NT_MINUTE, 8, more, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(more[0].incident, "a3");
	nt_outbox_message_release(&more[0]);
	nt_outbox_message_release(&first);
}

static void a_message_that_is_not_due_is_not_handed_out(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns;
	size_t count;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	/* The retry is due a minute later. */
	(void)send_next(NT_MINUTE, NT_OUTBOX_RETRY);
	assert_int_equal(nt_store_outbox_more(store, "webhook", NT_MINUTE, 1, &message, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(nt_store_outbox_next(store, "webhook", NT_MINUTE, &message, &next_ns), 0);
	assert_int_equal(next_ns, 2 * NT_MINUTE);
}

static void a_resolved_message_knows_what_was_sent(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "warning", 1), 0);
	(void)send_next(NT_MINUTE, NT_OUTBOX_SENT);
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	(void)send_next(NT_MINUTE, NT_OUTBOX_FAILED);
	assert_int_equal(put_as("a1", "resolved", "warning", 3), 0);
	assert_int_equal(nt_store_outbox_next(store, "webhook", NT_MINUTE, &message, &next_ns), 1);
	assert_true(message.resolved);
	assert_int_equal(message.severities, 1 << 1);
	nt_outbox_message_release(&message);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static bool accept_hangs(void *data, const char *receiver, const struct nt_wire_incident *incident)
{
	unsigned int *calls = data;

	*calls += 1;
	assert_string_equal(receiver, "webhook");
	return !strcmp(incident->class, "hang");
}

static void what_no_route_takes_is_not_queued(void **state)
{
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &nt_test_rank_5, 1);
	unsigned int calls = 0;

	(void)state;
	assert_int_equal(open_with(&(struct nt_store_options){.path = path,
							      .receiver = receivers,
							      .receivers = 1,
							      .accepts = accept_hangs,
							      .accepts_data = &calls}),
			 0);
	incident.version = 1;
	assert_int_equal(put(&incident), 0);
	assert_string_equal(send_next(NT_MINUTE, NT_OUTBOX_SENT), "");
	assert_int_equal(calls, 1);
	/* Once it is a hang it is sent, and so is its end, whatever it is then. */
	incident.version = 2;
	incident.class = "hang";
	incident.severity = "info";
	assert_int_equal(put(&incident), 0);
	assert_string_equal(send_next(NT_MINUTE, NT_OUTBOX_SENT), "msg_a1_firing_info");
	assert_int_equal(put_as("a1", "resolved", "info", 3), 0);
	assert_string_equal(send_next(NT_MINUTE, NT_OUTBOX_SENT), "msg_a1_resolved");
	assert_int_equal(calls, 2);
}

static int set_up_one_shared(void **state)
{
	return set_up_files(state) || open_shared();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_incident_is_firing_for_who_has_its_message),
		TEST(who_refused_it_is_not_reminded_and_who_may_have_it_is),
		TEST(a_reminder_has_the_incident_as_it_is_now),
		TEST(pages_follow_each_other),
		cmocka_unit_test_setup_teardown(on_a_shared_bus_the_owner_reminds,
						set_up_one_shared, tear_down),
		TEST(several_are_in_flight_and_none_twice),
		TEST(a_message_that_is_not_due_is_not_handed_out),
		TEST(a_resolved_message_knows_what_was_sent),
		TEST_FILE(what_no_route_takes_is_not_queued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
