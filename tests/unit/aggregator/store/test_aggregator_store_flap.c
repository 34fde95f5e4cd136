/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Flap control: what begins and ends again and again is held, and nothing that matters is lost. */
#include "tests/unit/aggregator/store.h"

enum {
	CHANGES = 6,
};

static const uint64_t begin_ns = NT_TEST_TIME_NS;

static int open_flapping(void)
{
	return open_with(&(struct nt_store_options){
		.path = path,
		.receiver = (const char *const[]){"webhook", "kubernetes"},
		.receivers = 2,
		.flap = {.changes = CHANGES,
			 .window_ns = NT_HOUR,
			 .quiet_ns = 30 * NT_MINUTE,
			 .exempt = "kubernetes"},
	});
}

static int set_up_flapping(void **state)
{
	return set_up_files(state) || open_flapping();
}

static void reopen_flapping(void)
{
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_flapping(), 0);
}

static struct nt_wire_incident incident_at(const char *id, bool resolved, uint64_t minute)
{
	struct nt_wire_incident incident =
		nt_test_incident(id, resolved ? "resolved" : "firing", &nt_test_rank_5, 1);

	incident.since_real_ns = incident.seen_real_ns = begin_ns + minute * NT_MINUTE;
	incident.until_real_ns = resolved ? incident.since_real_ns : 0;
	return incident;
}

static void change(const char *id, bool resolved, uint64_t minute)
{
	const struct nt_wire_incident incident = incident_at(id, resolved, minute);

	assert_int_equal(put(&incident), 0);
}

/* Messages to a receiver that are due; they are sent. "firing a1, resolved a1" */
static const char *sent_to(const char *receiver)
{
	static char text[2048];
	struct nt_outbox_message message = {0};
	uint64_t next_ns;
	size_t len = 0;

	text[0] = '\0';
	while (nt_store_outbox_next(store, receiver, UINT64_MAX / 4, &message, &next_ns) > 0) {
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%s%s %s", len ? ", " : "",
			message.resolved ? "resolved" : "firing",
			strstr(message.body, "\"flapping\":{\"changes\":") ? " flapping" : "",
			message.incident);
		assert_int_equal(
			nt_store_outbox_done(store, message.number, NT_OUTBOX_SENT, begin_ns, 0),
			0);
		nt_outbox_message_release(&message);
	}
	return text;
}

static const char *sent(void)
{
	return sent_to("webhook");
}

/* Rounds of a beginning and an end, a minute each, from `minute` on. */
static void rounds(unsigned int from, unsigned int to, uint64_t minute)
{
	char id[16];

	for (unsigned int i = from; i < to; i++) {
		(void)snprintf(id, sizeof(id), "a%u", i);
		change(id, false, minute++);
		change(id, true, minute++);
	}
}

static struct nt_store_stats stats(void)
{
	struct nt_store_stats now;

	nt_store_stats(store, &now);
	return now;
}

static void what_flaps_is_announced_once_and_ends_when_it_is_quiet(void **state)
{
	(void)state;
	rounds(0, 3, 0);
	assert_string_equal(sent(), "firing a0, resolved a0, firing a1, resolved a1, firing a2, "
				    "resolved a2");
	rounds(3, 20, 6);
	assert_string_equal(sent(), "firing flapping a3");
	assert_int_equal(stats().flaps, 1);
	assert_int_equal(stats().flap_held, 16);
	/* The last change was in minute 39. */
	nt_store_tick(store, begin_ns + 69 * NT_MINUTE - 1);
	assert_string_equal(sent(), "");
	nt_store_tick(store, begin_ns + 69 * NT_MINUTE);
	assert_string_equal(sent(), "resolved a3");
	nt_store_tick(store, begin_ns + 70 * NT_MINUTE);
	assert_int_equal(stats().flaps_now, 0);
	assert_int_equal(stats().outbox_now, 40); /* those to Kubernetes */
}

static void fewer_changes_or_a_longer_time_are_no_flapping(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		rounds(i, i + 1, 25 * (uint64_t)i);
	assert_null(strstr(sent(), "flapping"));
	assert_int_equal(stats().flaps, 0);
}

static void another_class_job_or_culprit_is_another_one(void **state)
{
	static const struct nt_culprit other = {.kind = "rank", .rank = 6, .has_rank = true};
	struct nt_wire_incident incident;

	(void)state;
	rounds(0, 4, 0);
	(void)sent();
	incident = incident_at("b1", false, 9);
	incident.class = "network";
	assert_int_equal(put(&incident), 0);
	incident = incident_at("b2", false, 9);
	incident.job_key = "another";
	assert_int_equal(put(&incident), 0);
	incident = incident_at("b3", false, 9);
	incident.culprit = (struct nt_culprit *)&other;
	assert_int_equal(put(&incident), 0);
	assert_string_equal(sent(), "firing b1, firing b2, firing b3");
}

/* The class may change as evidence grows; its end belongs to the key of its beginning. */
static void an_incident_keeps_the_key_of_its_beginning(void **state)
{
	struct nt_wire_incident incident;

	(void)state;
	rounds(0, 3, 0);
	change("a3", false, 6);
	(void)sent();
	incident = incident_at("a3", true, 7);
	incident.class = "host";
	assert_int_equal(put(&incident), 0);
	assert_string_equal(sent(), "");
	nt_store_tick(store, begin_ns + 37 * NT_MINUTE);
	assert_string_equal(sent(), "resolved a3");
}

static void what_gets_worse_is_sent_although_it_flaps(void **state)
{
	struct nt_wire_incident incident;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "a%u", i);
		incident = incident_at(id, false, 2 * i);
		incident.severity = "warning";
		assert_int_equal(put(&incident), 0);
		change(id, true, 2 * i + 1);
	}
	assert_non_null(strstr(sent(), "firing flapping a3"));
	incident = incident_at("a4", false, 10);
	incident.severity = "warning";
	assert_int_equal(put(&incident), 0);
	assert_string_equal(sent(), "");
	incident.version++;
	incident.severity = "critical";
	assert_int_equal(put(&incident), 0);
	assert_string_equal(sent(), "firing flapping a4");
	change("a5", false, 11);
	assert_string_equal(sent(), "");
}

static void what_stays_open_is_sent_when_the_hold_ends(void **state)
{
	(void)state;
	rounds(0, 4, 0);
	change("a4", false, 8);
	(void)sent();
	nt_store_tick(store, begin_ns + 38 * NT_MINUTE);
	assert_string_equal(sent(), "resolved a3, firing a4");
	change("a4", true, 60);
	assert_string_equal(sent(), "resolved a4");
}

static void an_announced_incident_that_lasts_ends_like_any_other(void **state)
{
	(void)state;
	rounds(0, 3, 0);
	change("a3", false, 6);
	(void)sent();
	nt_store_tick(store, begin_ns + 36 * NT_MINUTE);
	assert_string_equal(sent(), "");
	change("a3", true, 60);
	assert_string_equal(sent(), "resolved a3");
}

/* Its condition states what is so now. */
static void kubernetes_gets_every_change(void **state)
{
	(void)state;
	rounds(2, 6, 0);
	assert_string_equal(sent_to("kubernetes"),
			    "firing a2, resolved a2, firing a3, resolved a3, firing a4, "
			    "resolved a4, firing flapping a5, resolved a5");
}

/* Alertmanager would let it expire. */
static void what_flaps_is_repeated_until_it_is_quiet(void **state)
{
	struct nt_store_firing firing[4];

	(void)state;
	rounds(0, 5, 0);
	(void)sent();
	assert_int_equal(nt_store_list_firing(store, "webhook", 0, 4, firing), 1);
	assert_non_null(strstr(firing[0].body, "\"flapping\":{\"changes\":10}"));
	nt_store_firing_release(firing, 1);
	nt_store_tick(store, begin_ns + 39 * NT_MINUTE);
	assert_int_equal(nt_store_list_firing(store, "webhook", 0, 4, firing), 0);
}

static void holds_survive_a_restart_and_end_without_flap_control(void **state)
{
	(void)state;
	rounds(0, 4, 0);
	(void)sent();
	reopen_flapping();
	rounds(4, 6, 8);
	assert_string_equal(sent(), "");
	reopen();
	nt_store_tick(store, begin_ns + 10 * NT_MINUTE);
	assert_string_equal(sent(), "resolved a3");
}

static void a_held_end_is_not_pruned(void **state)
{
	(void)state;
	rounds(0, 4, 0);
	(void)sent();
	(void)sent_to("kubernetes");
	nt_store_close(store);
	store = NULL;
	assert_int_equal(
		open_with(&(struct nt_store_options){.path = path,
						     .receiver = receivers,
						     .receivers = 1,
						     .max_age_ns = NT_MINUTE,
						     .flap = {.changes = CHANGES,
							      .window_ns = NT_HOUR,
							      .quiet_ns = 30 * NT_MINUTE}}),
		0);
	nt_store_tick(store, begin_ns + 20 * NT_MINUTE);
	assert_int_equal(stats().incidents_now, 1);
	nt_store_tick(store, begin_ns + 37 * NT_MINUTE);
	assert_string_equal(sent(), "resolved a3");
	nt_store_tick(store, begin_ns + 38 * NT_MINUTE);
	assert_int_equal(stats().incidents_now, 0);
}

static void over_the_cap_messages_are_sent(void **state)
{
	char id[16];

	(void)state;
	/* One job for each, so that none of them flaps. */
	for (unsigned int i = 0; i < NT_STORE_MAX_FLAP_CHANGES; i++) {
		struct nt_wire_incident incident;

		(void)snprintf(id, sizeof(id), "j%u", i);
		incident = incident_at(id, false, 0);
		incident.job_key = id;
		incident.severity = "info";
		assert_int_equal(put(&incident), 0);
	}
	assert_int_equal(stats().flap_uncounted, 0);
	rounds(0, 5, 0);
	assert_null(strstr(sent(), "flapping"));
	assert_int_equal(stats().flap_uncounted, 10);
	/* What is older than the window is removed. */
	nt_store_tick(store, begin_ns + 2 * NT_HOUR);
	rounds(5, 9, 120);
	assert_non_null(strstr(sent(), "firing flapping a8"));
}

/* A key that is held already, too: nothing would release what it swallows. */
static void over_the_cap_messages_of_a_held_key_are_sent(void **state)
{
	char id[16];

	(void)state;
	rounds(0, 5, 0);
	assert_non_null(strstr(sent(), "firing flapping a3"));
	for (unsigned int i = 0; i < NT_STORE_MAX_FLAP_CHANGES; i++) {
		struct nt_wire_incident incident;

		(void)snprintf(id, sizeof(id), "j%u", i);
		incident = incident_at(id, false, 10);
		incident.job_key = id;
		incident.severity = "info";
		assert_int_equal(put(&incident), 0);
	}
	change("a9", false, 11);
	assert_non_null(strstr(sent(), "firing a9"));
}

#define FLAPPING(fn) cmocka_unit_test_setup_teardown(fn, set_up_flapping, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLAPPING(what_flaps_is_announced_once_and_ends_when_it_is_quiet),
		FLAPPING(fewer_changes_or_a_longer_time_are_no_flapping),
		FLAPPING(another_class_job_or_culprit_is_another_one),
		FLAPPING(an_incident_keeps_the_key_of_its_beginning),
		FLAPPING(what_gets_worse_is_sent_although_it_flaps),
		FLAPPING(what_stays_open_is_sent_when_the_hold_ends),
		FLAPPING(an_announced_incident_that_lasts_ends_like_any_other),
		FLAPPING(kubernetes_gets_every_change),
		FLAPPING(what_flaps_is_repeated_until_it_is_quiet),
		FLAPPING(holds_survive_a_restart_and_end_without_flap_control),
		FLAPPING(a_held_end_is_not_pruned),
		FLAPPING(over_the_cap_messages_are_sent),
		FLAPPING(over_the_cap_messages_of_a_held_key_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
