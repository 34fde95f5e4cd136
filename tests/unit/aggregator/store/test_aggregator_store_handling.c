/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Acknowledgements, silences and notes: they survive, have caps, and hold messages as they should. */
#include "tests/unit/aggregator/killing_file.h"
#include "tests/unit/aggregator/store_pair.h"

enum {
	MAX_WRITES = 2000,
};

static int do_at(struct nt_store *at, enum nt_store_act what, const char *id)
{
	const struct nt_store_action action = {
		.act = what,
		.real_ns = nt_clock_real_ns(),
		.by = "anna",
		.until_real_ns = nt_clock_real_ns() + NT_HOUR,
		.text = "the fan is replaced",
	};

	return nt_store_act(at, id, &action);
}

static int act(enum nt_store_act what, const char *id)
{
	return do_at(store, what, id);
}

static struct nt_store_handling handling_at(struct nt_store *at, const char *id)
{
	struct nt_store_handling handling;

	assert_int_equal(nt_store_get_handling(at, id, &handling), 0);
	return handling;
}

static struct nt_store_handling handling_of(const char *id)
{
	return handling_at(store, id);
}

/* Sends what is due at the time. Returns the ids of the messages, each with a blank. */
static const char *deliver_at(uint64_t real_ns, enum nt_outbox_result result)
{
	static char ids[1024];
	struct nt_outbox_message message = {0};
	uint64_t next_ns;
	size_t len = 0;

	ids[0] = '\0';
	while (nt_store_outbox_next(store, "webhook", real_ns, &message, &next_ns) > 0) {
		len += (size_t)snprintf(ids + len, sizeof(ids) - len, "%s ", message.id);
		assert_int_equal(nt_store_outbox_done(store, message.number, result, real_ns,
						      real_ns + NT_MINUTE),
				 0);
		nt_outbox_message_release(&message);
	}
	return ids;
}

static const char *deliver(void)
{
	return deliver_at(nt_clock_real_ns(), NT_OUTBOX_SENT);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void an_acknowledgement_survives_and_is_taken_back(void **state)
{
	struct nt_store_handling handling;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(handling_of("a1").revision, 0);
	assert_int_equal(act(NT_STORE_ACKNOWLEDGE, "a1"), 0);
	reopen();
	handling = handling_of("a1");
	assert_true(handling.acknowledged_real_ns > 0);
	assert_string_equal(handling.acknowledged_by, "anna");
	assert_int_equal(act(NT_STORE_UNACKNOWLEDGE, "a1"), 0);
	handling = handling_of("a1");
	assert_int_equal(handling.acknowledged_real_ns, 0);
	assert_int_equal(handling.revision, 2);
}

static void an_unknown_incident_is_enoent(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	for (int i = NT_STORE_ACKNOWLEDGE; i <= NT_STORE_ANNOTATE; i++)
		assert_int_equal(act((enum nt_store_act)i, "nobody"), -ENOENT);
	nt_store_stats(store, &stats);
	assert_int_equal(stats.write_errors, 0);
}

static void notes_have_a_cap_and_keep_their_order(void **state)
{
	static struct nt_store_note note[NT_STORE_MAX_NOTES];

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	for (int i = 0; i < NT_STORE_MAX_NOTES; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "note %d", i);
		assert_int_equal(nt_store_act(store, "a1",
					      &(struct nt_store_action){.act = NT_STORE_ANNOTATE,
									.real_ns = 1,
									.by = "",
									.text = text}),
				 0);
	}
	assert_int_equal(act(NT_STORE_ANNOTATE, "a1"), -E2BIG);
	assert_int_equal(nt_store_list_notes(store, "a1", note), NT_STORE_MAX_NOTES);
	assert_string_equal(note[0].text, "note 0");
	assert_string_equal(note[19].text, "note 19");
	assert_int_equal(handling_of("a1").notes, NT_STORE_MAX_NOTES);
}

static void texts_over_their_caps_are_refused(void **state)
{
	static char text[NT_STORE_MAX_NOTE + 2], by[NT_STORE_MAX_AUTHOR + 2];
	struct nt_store_action action = {.act = NT_STORE_ANNOTATE, .by = "", .text = text};

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	memset(by, 'x', sizeof(by) - 1);
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(nt_store_act(store, "a1", &action), -EINVAL);
	text[NT_STORE_MAX_NOTE] = '\0';
	assert_int_equal(nt_store_act(store, "a1", &action), 0);
	action.by = by;
	assert_int_equal(nt_store_act(store, "a1", &action), -EINVAL);
	action.by = "";
	action.text = "";
	assert_int_equal(nt_store_act(store, "a1", &action), -EINVAL);
}

static void what_was_done_goes_with_its_incident(void **state)
{
	static struct nt_store_note note[NT_STORE_MAX_NOTES];

	(void)state;
	assert_int_equal(open_with(&(struct nt_store_options){.path = path, .max_incidents = 1}),
			 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_ANNOTATE, "a1"), 0);
	assert_int_equal(put_as("a2", "resolved", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_ANNOTATE, "a2"), 0);
	nt_store_tick(store, NT_TEST_TIME_NS);
	assert_int_equal(handling_of("a1").revision, 0);
	assert_int_equal(nt_store_list_notes(store, "a1", note), 0);
	assert_int_equal(nt_store_list_notes(store, "a2", note), 1);
}

/* ---- silences -------------------------------------------------------------------------------- */

static void a_message_that_waits_is_sent_after_the_silence(void **state)
{
	const uint64_t later_ns = nt_clock_real_ns() + 2 * NT_HOUR;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_string_equal(deliver(), "");
	reopen();
	assert_string_equal(deliver(), "");
	assert_string_equal(deliver_at(later_ns, NT_OUTBOX_SENT), "msg_a1_firing_critical ");
}

static void the_time_to_give_up_begins_with_the_end_of_the_silence(void **state)
{
	struct nt_outbox_message message = {0};
	uint64_t next_ns;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(nt_store_outbox_next(store, "webhook", UINT64_MAX / 4, &message, &next_ns),
			 1);
	assert_int_equal(message.queued_real_ns, handling_of("a1").silenced_until_real_ns);
	nt_outbox_message_release(&message);
}

static void a_silence_that_is_taken_back_sends_at_once(void **state)
{
	(void)state;
	nt_store_on_queued(store, on_queued, NULL);
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	queued = 0;
	assert_int_equal(act(NT_STORE_UNSILENCE, "a1"), 0);
	assert_int_equal(queued, 1);
	assert_string_equal(deliver(), "msg_a1_firing_critical ");
}

static void a_higher_severity_waits_for_the_end_of_the_silence_too(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "warning", 1), 0);
	assert_string_equal(deliver(), "msg_a1_firing_warning ");
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	assert_string_equal(deliver(), "");
	assert_int_equal(act(NT_STORE_UNSILENCE, "a1"), 0);
	assert_string_equal(deliver(), "msg_a1_firing_critical ");
}

static void the_end_of_what_was_sent_is_never_silenced(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "warning", 1), 0);
	assert_string_equal(deliver(), "msg_a1_firing_warning ");
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 2), 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 3), 0);
	assert_string_equal(deliver(), "msg_a1_resolved ");
	assert_string_equal(deliver_at(UINT64_MAX / 4, NT_OUTBOX_SENT), "");
}

static void the_end_of_what_may_have_been_sent_is_not_silenced(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_string_equal(deliver_at(nt_clock_real_ns(), NT_OUTBOX_RETRY),
			    "msg_a1_firing_critical ");
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 2), 0);
	assert_string_equal(deliver_at(nt_clock_real_ns() + 2 * NT_MINUTE, NT_OUTBOX_SENT),
			    "msg_a1_firing_critical msg_a1_resolved ");
}

static void an_incident_that_ends_in_its_silence_is_never_sent(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(put_as("a1", "resolved", "critical", 2), 0);
	assert_string_equal(deliver_at(UINT64_MAX / 4, NT_OUTBOX_SENT), "");
	nt_store_stats(store, &stats);
	assert_int_equal(stats.queue_skipped, 1);
	assert_int_equal(stats.outbox_now, 0);
}

static int count_firing(void)
{
	struct nt_store_firing firing[4];
	int count = nt_store_list_firing(store, "webhook", 0, 4, firing);

	assert_true(count >= 0);
	nt_store_firing_release(firing, (size_t)count);
	return count;
}

static void reminders_pause_during_a_silence(void **state)
{
	(void)state;
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_string_equal(deliver(), "msg_a1_firing_critical ");
	assert_int_equal(count_firing(), 1);
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(count_firing(), 0);
	assert_int_equal(act(NT_STORE_UNSILENCE, "a1"), 0);
	assert_int_equal(count_firing(), 1);
}

/* ---- several aggregators --------------------------------------------------------------------- */

static void assert_same_handling(void)
{
	const struct nt_store_handling ours = handling_at(store, "i1"),
				       theirs = handling_at(other, "i1");

	assert_int_equal(ours.revision, theirs.revision);
	assert_int_equal(ours.acknowledged_real_ns, theirs.acknowledged_real_ns);
	assert_string_equal(ours.acknowledged_by, theirs.acknowledged_by);
	assert_int_equal(ours.silenced_real_ns, theirs.silenced_real_ns);
	assert_string_equal(ours.silenced_by, theirs.silenced_by);
	assert_int_equal(ours.silenced_until_real_ns, theirs.silenced_until_real_ns);
}

/* Both have the same revision then. Neither act is lost. */
static void what_is_done_at_two_at_once_ends_the_same_at_both(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_int_equal(do_at(store, NT_STORE_ACKNOWLEDGE, "i1"), 0);
	assert_int_equal(do_at(other, NT_STORE_SILENCE, "i1"), 0);
	assert_int_equal(publish(other), 1);
	take(store, true);
	assert_string_equal(deliver(), "");
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_same_handling();
	assert_true(handling_at(other, "i1").acknowledged_real_ns > 0);
	assert_true(handling_at(other, "i1").silenced_real_ns > 0);
	/* They do not answer each other for ever. */
	take(store, true);
	assert_int_equal(publish(store), 0);
	assert_int_equal(publish(other), 0);
}

/* That it is taken back is the later act. */
static void a_silence_that_is_taken_back_stays_so_beside_a_note_elsewhere(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(do_at(store, NT_STORE_SILENCE, "i1"), 0);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_same_handling();
	assert_int_equal(do_at(store, NT_STORE_UNSILENCE, "i1"), 0);
	assert_int_equal(do_at(other, NT_STORE_ANNOTATE, "i1"), 0);
	assert_int_equal(publish(other), 1);
	take(store, true);
	assert_int_equal(handling_at(store, "i1").silenced_until_real_ns, 0);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_same_handling();
	assert_int_equal(handling_at(other, "i1").silenced_until_real_ns, 0);
}

/* A note counts as a revision, and stays where it is. */
static void a_note_does_not_hide_what_is_done_elsewhere(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_int_equal(do_at(store, NT_STORE_ANNOTATE, "i1"), 0);
	assert_int_equal(do_at(other, NT_STORE_ACKNOWLEDGE, "i1"), 0);
	assert_int_equal(publish(other), 1);
	take(store, false);
	assert_same_handling();
	assert_int_equal(handling_at(store, "i1").notes, 1);
}

/* The owner has the later acknowledgement, and publishes it once more for those who have the other. */
static void what_was_done_before_is_corrected_by_the_owner(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_int_equal(do_at(other, NT_STORE_ACKNOWLEDGE, "i1"), 0);
	assert_int_equal(do_at(store, NT_STORE_ACKNOWLEDGE, "i1"), 0);
	assert_int_equal(publish(store), 1);
	assert_int_equal(publish(other), 1);
	take(store, true);
	assert_int_equal(publish(store), 1);
	take(other, false);
	assert_same_handling();
	take(store, true);
	assert_int_equal(publish(store), 0);
}

/* Any order will do, if all have the same. Without a revision, nothing was done. */
static void at_one_time_the_names_decide(void **state)
{
	(void)state;
	decide(store, "i1", "firing", 2);
	assert_int_equal(do_at(store, NT_STORE_ACKNOWLEDGE, "i1"), 0);
	assert_int_equal(publish(store), 1);
	seen.handling.acknowledged_by = "aaron";
	take(store, true);
	assert_string_equal(handling_at(store, "i1").acknowledged_by, "anna");
	assert_int_equal(publish(store), 1);
	seen.handling.acknowledged_by = "zoe";
	take(store, true);
	assert_string_equal(handling_at(store, "i1").acknowledged_by, "zoe");
	assert_int_equal(handling_at(store, "i1").revision, 1);
	seen.handling.revision = 0;
	take(other, false);
	assert_int_equal(handling_at(other, "i1").acknowledged_real_ns, 0);
	assert_int_equal(handling_at(other, "i1").revision, 0);
}

/* ---- kills ----------------------------------------------------------------------------------- */

static void live(void)
{
	assert_int_equal(open_store(), 0);
	assert_int_equal(put_as("a1", "firing", "critical", 1), 0);
	assert_int_equal(act(NT_STORE_SILENCE, "a1"), 0);
	assert_int_equal(act(NT_STORE_ANNOTATE, "a1"), 0);
	assert_int_equal(act(NT_STORE_ACKNOWLEDGE, "a1"), 0);
	assert_int_equal(act(NT_STORE_UNSILENCE, "a1"), 0);
	nt_store_close(store);
	store = NULL;
}

/* Whatever was done is whole: a silence with its messages, a note with its count. */
static void check_whole(unsigned int write_number)
{
	static struct nt_store_note note[NT_STORE_MAX_NOTES];
	struct nt_store_handling handling;
	nt_auto(nt_message) struct nt_message *message = NULL;
	bool exists, is_due;

	assert_int_equal(open_store(), 0);
	exists = nt_store_get(store, "a1", &message) == 0;
	handling = handling_of("a1");
	is_due = *deliver() != '\0';
	if (is_due != (exists && !handling.silenced_until_real_ns) ||
	    nt_store_list_notes(store, "a1", note) != (int)handling.notes)
		fail_msg("killed at write %u: due %d, silenced %d, notes %u", write_number, is_due,
			 handling.silenced_until_real_ns != 0, handling.notes);
	nt_store_close(store);
	store = NULL;
}

static void each_act_is_whole_whatever_write_it_is_killed_at(void **state)
{
	unsigned int at = 0;
	bool was_killed = true;

	(void)state;
	killing_install();
	while (was_killed && ++at < MAX_WRITES) {
		assert_int_equal(scratch_make_in_memory(dir), 0);
		(void)snprintf(path, sizeof(path), "%s/store.db", dir);
		was_killed = killing_run(live, at);
		check_whole(at);
		scratch_remove(dir);
	}
	print_message("killed at each of %u writes\n", at - 1);
	assert_true(at > 50 && at < MAX_WRITES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_acknowledgement_survives_and_is_taken_back),
		TEST(an_unknown_incident_is_enoent),
		TEST(notes_have_a_cap_and_keep_their_order),
		TEST(texts_over_their_caps_are_refused),
		TEST_FILE(what_was_done_goes_with_its_incident),
		TEST(a_message_that_waits_is_sent_after_the_silence),
		TEST(the_time_to_give_up_begins_with_the_end_of_the_silence),
		TEST(a_silence_that_is_taken_back_sends_at_once),
		TEST(a_higher_severity_waits_for_the_end_of_the_silence_too),
		TEST(the_end_of_what_was_sent_is_never_silenced),
		TEST(the_end_of_what_may_have_been_sent_is_not_silenced),
		TEST(an_incident_that_ends_in_its_silence_is_never_sent),
		TEST(reminders_pause_during_a_silence),
		TEST_TWO(what_is_done_at_two_at_once_ends_the_same_at_both),
		TEST_TWO(a_silence_that_is_taken_back_stays_so_beside_a_note_elsewhere),
		TEST_TWO(a_note_does_not_hide_what_is_done_elsewhere),
		TEST_TWO(what_was_done_before_is_corrected_by_the_owner),
		TEST_TWO(at_one_time_the_names_decide),
		cmocka_unit_test(each_act_is_whole_whatever_write_it_is_killed_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
