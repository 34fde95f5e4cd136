/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/ingest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/engine/window_feed.h"

static struct nt_ingest *ingest;
static const char *reason;

static void note_refused(void *data, const struct nt_bus_record *record, const char *why)
{
	(void)data;
	(void)record;
	reason = why;
}

static int set_up(void **state)
{
	(void)state;
	reason = NULL;
	return nt_ingest_new(note_refused, NULL, &ingest);
}

static int tear_down(void **state)
{
	(void)state;
	nt_ingest_free(ingest);
	return 0;
}

static const struct feed_window plain = {
	.rank = 3, .size = 8, .from_ms = 0, .to_ms = 500, .steps = 5};

/* Whether it was taken. */
static bool take_message(const struct nt_message *message, enum nt_topic topic, bool again)
{
	nt_autobuf struct nt_buf buf = {0};
	nt_auto(nt_message) struct nt_message *taken = NULL;
	struct nt_bus_record record = feed_record(message, &buf);
	int r;

	record.topic = topic;
	r = nt_ingest_take(ingest, &record, 0, again, &taken);
	assert_true(r == 0 || r == 1);
	assert_int_equal(r, taken != NULL);
	return r == 1;
}

static bool take_seq(uint64_t seq)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *message = NULL;

	agent.seq = seq - 1;
	message = feed_window(&agent, &plain);
	return take_message(message, NT_TOPIC_WINDOW, false);
}

static void a_message_is_taken_once(void **state)
{
	(void)state;
	assert_true(take_seq(1));
	assert_false(take_seq(1));
	assert_true(take_seq(2));
	assert_false(take_seq(1));
	assert_int_equal(nt_ingest_counters(ingest)->duplicates, 2);
	assert_int_equal(nt_ingest_counters(ingest)->messages, 2);
	assert_int_equal(nt_ingest_counters(ingest)->dedup.gaps, 0);
}

static void messages_out_of_order_are_neither_lost_nor_gaps(void **state)
{
	const uint64_t order[] = {10, 12, 11, 15, 13, 14, 9, 16};

	(void)state;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_true(take_seq(order[i]));
	for (uint64_t seq = 17; seq < 17 + 2 * NT_DEDUP_WINDOW; seq++)
		assert_true(take_seq(seq));
	assert_int_equal(nt_ingest_counters(ingest)->dedup.gaps, 0);
	assert_int_equal(nt_ingest_counters(ingest)->duplicates, 0);
}

static void a_number_that_never_came_is_one_gap(void **state)
{
	(void)state;
	for (uint64_t seq = 1; seq <= 2 * NT_DEDUP_WINDOW; seq++)
		if (seq != 20 && seq != 30)
			assert_true(take_seq(seq));
	assert_int_equal(nt_ingest_counters(ingest)->dedup.gaps, 2);
}

static void a_hole_wider_than_the_window_is_counted_whole(void **state)
{
	(void)state;
	assert_true(take_seq(1));
	assert_true(take_seq(2));
	assert_true(take_seq(1003));
	assert_int_equal(nt_ingest_counters(ingest)->dedup.gaps, 1000);
	assert_true(take_seq(UINT64_MAX));
	assert_true(take_seq(UINT64_MAX - 1));
}

static void where_a_stream_begins_in_the_middle_is_no_gap(void **state)
{
	(void)state;
	assert_true(take_seq(5000));
	for (uint64_t seq = 5001; seq < 5001 + 2 * NT_DEDUP_WINDOW; seq++)
		assert_true(take_seq(seq));
	assert_int_equal(nt_ingest_counters(ingest)->dedup.gaps, 0);
}

static void another_boot_counts_from_one_again(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *first = feed_window(&agent, &plain);
	nt_auto(nt_message) struct nt_message *second = NULL;

	(void)state;
	agent.boot++;
	agent.seq = 0;
	second = feed_window(&agent, &plain);
	assert_true(take_message(first, NT_TOPIC_WINDOW, false));
	assert_true(take_message(second, NT_TOPIC_WINDOW, false));
	assert_int_equal(nt_ingest_counters(ingest)->duplicates, 0);
}

static void bytes_that_are_no_message_are_refused_with_a_reason(void **state)
{
	struct nt_message *message = NULL;
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.value = "\xff\xff\xff",
		.value_len = 3,
	};

	(void)state;
	assert_int_equal(nt_ingest_take(ingest, &record, 0, false, &message), 0);
	assert_null(message);
	assert_string_equal(reason, "not a message");
	assert_int_equal(nt_ingest_counters(ingest)->undecodable, 1);
}

static void a_body_of_a_newer_version_is_passed_over_without_complaint(void **state)
{
	struct nt_message *message = NULL;
	/* Field 99, a message of no bytes: what a body of tomorrow looks like today. */
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.value = "\x0a\x02n0\x9a\x06\x00",
		.value_len = 7,
	};

	(void)state;
	assert_int_equal(nt_ingest_take(ingest, &record, 0, false, &message), 0);
	assert_null(reason);
	assert_int_equal(nt_ingest_counters(ingest)->unknown, 1);
}

/* What an honest agent never says, one change at a time. */
static void what_cannot_be_is_refused_with_a_reason(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *sound = feed_window(&agent, &plain);
	struct nt_message wrong;

	(void)state;
#define REFUSED(change, why)                                                                       \
	do {                                                                                       \
		wrong = *sound;                                                                    \
		wrong.change;                                                                      \
		reason = "";                                                                       \
		assert_false(take_message(&wrong, NT_TOPIC_WINDOW, false));                        \
		assert_string_equal(reason, why);                                                  \
	} while (0)

	REFUSED(agent = "", "message without an agent");
	REFUSED(seq = 0, "message without a sequence number");
	REFUSED(boot_ns = UINT64_MAX, "time is out of range");
	REFUSED(real_ns = UINT64_MAX, "time is out of range");
	REFUSED(real_ns = 1, "clock pair is impossible");
	REFUSED(watermark_boot_ns = sound->boot_ns + 2 * SECOND, "watermark is ahead of its clock");
	REFUSED(window.end_boot_ns = sound->window.start_boot_ns - 1,
		"window ends before it starts");
	REFUSED(window.end_boot_ns = sound->boot_ns + 2 * SECOND, "window ends after it was sent");
	REFUSED(window.rank.start_boot_ns = sound->window.end_boot_ns + 1,
		"process starts after its window");
	REFUSED(window.steps = UINT32_MAX, "too many steps for a window");
	REFUSED(window.own_ns = UINT64_MAX, "a sum of the window is too large");
	REFUSED(window.host.off_cpu_io_ns = UINT64_MAX, "a sum of the window is too large");
	REFUSED(window.rank.node = "", "window without a node");
#undef REFUSED
	assert_int_equal(nt_ingest_counters(ingest)->impossible, 13);
	assert_true(take_message(sound, NT_TOPIC_WINDOW, false));
}

static void a_body_belongs_to_its_topic(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *message = feed_window(&agent, &plain);

	(void)state;
	assert_false(take_message(message, NT_TOPIC_NODE, false));
	assert_string_equal(reason, "body does not belong to the topic");
}

static void a_message_from_the_future_is_refused(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *message = feed_window(&agent, &plain);
	nt_auto(nt_message) struct nt_message *taken = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = feed_record(message, &buf);

	(void)state;
	assert_int_equal(nt_ingest_take(ingest, &record, message->real_ns - 1, false, &taken), 0);
	assert_string_equal(reason, "clock is ahead");
	assert_int_equal(nt_ingest_counters(ingest)->ahead, 1);
	assert_int_equal(nt_ingest_take(ingest, &record, message->real_ns, false, &taken), 1);
}

static void what_is_read_again_counts_for_nothing(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *message = feed_window(&agent, &plain);

	(void)state;
	assert_true(take_message(message, NT_TOPIC_WINDOW, false));
	assert_true(take_message(message, NT_TOPIC_WINDOW, true));
	assert_false(take_message(message, NT_TOPIC_WINDOW, true)); /* it was there twice */
	assert_int_equal(nt_ingest_counters(ingest)->messages, 1);
	assert_int_equal(nt_ingest_counters(ingest)->duplicates, 0);
	nt_ingest_caught_up(ingest);
	assert_false(take_message(message, NT_TOPIC_WINDOW, false));
}

static void what_was_seen_survives_a_restart(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_true(take_seq(1));
	assert_true(take_seq(3));
	assert_int_equal(nt_ingest_save(ingest, &buf), 0);
	nt_ingest_free(ingest);
	assert_int_equal(nt_ingest_new(note_refused, NULL, &ingest), 0);
	assert_int_equal(nt_ingest_load(ingest, buf.data, buf.len), 0);
	assert_false(take_seq(1));
	assert_true(take_seq(2));
	assert_false(take_seq(3));
}

static void a_damaged_state_is_refused_at_every_length(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_true(take_seq(1));
	assert_int_equal(nt_ingest_save(ingest, &buf), 0);
	for (size_t len = 0; len < buf.len; len++)
		assert_int_equal(nt_ingest_load(ingest, buf.data, len), -EBADMSG);
	assert_false(take_seq(1)); /* what was known is still known */
}

static void streams_over_the_cap_are_taken_but_not_watched(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *message = feed_heartbeat(&agent, 1);

	(void)state;
	for (uint64_t boot = 0; boot < NT_INGEST_MAX_STREAMS; boot++) {
		message->boot = boot;
		assert_true(take_message(message, NT_TOPIC_WINDOW, false));
	}
	message->boot = NT_INGEST_MAX_STREAMS;
	assert_true(take_message(message, NT_TOPIC_WINDOW, false));
	assert_true(take_message(message, NT_TOPIC_WINDOW, false));
	assert_int_equal(nt_ingest_counters(ingest)->unwatched, 2);
	/* Old streams make room. */
	nt_ingest_sweep(ingest, message->real_ns + 1);
	assert_true(take_message(message, NT_TOPIC_WINDOW, false));
	assert_false(take_message(message, NT_TOPIC_WINDOW, false));
}

/* ---- signatures --------------------------------------------------------------------------------- */

#define SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define OTHER  "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static struct nt_node_secrets *secrets_of(const char *text)
{
	struct nt_node_secrets *secrets = NULL;
	struct nt_node_key_error error;

	assert_int_equal(nt_node_secrets_parse(text, strlen(text), &secrets, &error), 0);
	return secrets;
}

/* The window of an agent, signed with the key of a node; NULL: not at all. */
static bool take_signed(const struct nt_message *message, enum nt_topic topic,
			const struct nt_node_secrets *secrets, const char *node)
{
	nt_auto(nt_message) struct nt_message *taken = NULL;
	nt_auto(nt_signer) struct nt_signer *signer = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = feed_record(message, &buf);
	struct nt_node_key key;

	record.topic = topic;
	if (node) {
		assert_int_equal(nt_node_secrets_derive(secrets, node, &key), 0);
		assert_int_equal(nt_signer_new(&key, &signer), 0);
		assert_int_equal(nt_signer_sign(signer, &record, &buf), 0);
		record.value = buf.data;
		record.value_len = buf.len;
	}
	reason = NULL;
	assert_true(nt_ingest_take(ingest, &record, 0, false, &taken) >= 0);
	return taken != NULL;
}

static void who_may_write_to_the_bus_cannot_speak_for_a_node(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET);
	nt_auto(nt_node_secrets) struct nt_node_secrets *other = secrets_of(OTHER);
	const struct nt_signing_policy policy = {NT_SIGNING_REQUIRE, secrets};
	const struct nt_ingest_counters *counters = nt_ingest_counters(ingest);
	struct feed_agent agent = feed_agent("n0", "job"), liar = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *window = feed_window(&agent, &plain);
	nt_auto(nt_message) struct nt_message *forged = NULL;

	(void)state;
	nt_ingest_set_signatures(ingest, &policy);
	assert_false(take_signed(window, NT_TOPIC_WINDOW, secrets, NULL));
	assert_string_equal(reason, "no signature");
	assert_false(take_signed(window, NT_TOPIC_WINDOW, secrets, "n1"));
	assert_string_equal(reason, "wrong signature");
	assert_false(take_signed(window, NT_TOPIC_WINDOW, other, "n0"));
	assert_string_equal(reason, "signed with a key of another secret");
	/* A node that has a key, and tells of another. */
	liar.name = "n1";
	forged = feed_window(&liar, &plain);
	forged->window.rank.node = "n0";
	assert_false(take_signed(forged, NT_TOPIC_WINDOW, secrets, "n1"));
	assert_string_equal(reason, "signed by another node than the one it names");
	assert_int_equal(counters->messages + counters->verified + counters->dedup.gaps, 0);
	assert_true(take_signed(window, NT_TOPIC_WINDOW, secrets, "n0"));
	assert_null(reason);
	assert_int_equal(counters->without_signature, 1);
	assert_int_equal(counters->wrong_signature, 1);
	assert_int_equal(counters->unknown_secret, 1);
	assert_int_equal(counters->other_node, 1);
	assert_int_equal(counters->verified, 1);
}

/* What was refused has not used up the number of the true one. */
static void a_forged_number_does_not_make_the_true_one_a_duplicate(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET);
	const struct nt_signing_policy policy = {NT_SIGNING_REQUIRE, secrets};
	struct feed_agent agent = feed_agent("n0", "job");

	(void)state;
	nt_ingest_set_signatures(ingest, &policy);
	for (int i = 0; i < 3; i++) {
		nt_auto(nt_message) struct nt_message *window = feed_window(&agent, &plain);

		assert_false(take_signed(window, NT_TOPIC_WINDOW, secrets, "n1"));
		assert_true(take_signed(window, NT_TOPIC_WINDOW, secrets, "n0"));
	}
	assert_int_equal(nt_ingest_counters(ingest)->duplicates, 0);
	assert_int_equal(nt_ingest_counters(ingest)->wrong_signature, 3);
}

static void
while_keys_are_given_out_a_missing_signature_passes_and_a_wrong_one_does_not(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET);
	const struct nt_signing_policy accept = {NT_SIGNING_ACCEPT, secrets}, off = {0};
	struct feed_agent agent = feed_agent("n0", "job");
	nt_auto(nt_message) struct nt_message *first = feed_window(&agent, &plain);
	nt_auto(nt_message) struct nt_message *second = feed_window(&agent, &plain);

	(void)state;
	nt_ingest_set_signatures(ingest, &accept);
	assert_true(take_signed(first, NT_TOPIC_WINDOW, secrets, NULL));
	assert_false(take_signed(second, NT_TOPIC_WINDOW, secrets, "n1"));
	assert_true(take_signed(second, NT_TOPIC_WINDOW, secrets, "n0"));
	nt_ingest_set_signatures(ingest, &off);
	first->seq = 3;
	assert_true(take_signed(first, NT_TOPIC_WINDOW, secrets, "n1"));
}

static void a_node_tells_of_itself_alone(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET);
	const struct nt_signing_policy policy = {NT_SIGNING_REQUIRE, secrets};
	struct nt_message message = {
		.agent = "n0",
		.key = "n0",
		.boot = 1,
		.seq = 1,
		.boot_ns = 1,
		.real_ns = REAL_0,
		.body = NT_BODY_NODE,
		.node = {.node = "n0"},
	};

	(void)state;
	nt_ingest_set_signatures(ingest, &policy);
	assert_true(take_signed(&message, NT_TOPIC_NODE, secrets, "n0"));
	message.seq = 2;
	message.node.node = "n1";
	assert_false(take_signed(&message, NT_TOPIC_NODE, secrets, "n0"));
	assert_string_equal(reason, "signed by another node than the one it names");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_is_taken_once),
		TEST(messages_out_of_order_are_neither_lost_nor_gaps),
		TEST(a_number_that_never_came_is_one_gap),
		TEST(a_hole_wider_than_the_window_is_counted_whole),
		TEST(where_a_stream_begins_in_the_middle_is_no_gap),
		TEST(another_boot_counts_from_one_again),
		TEST(bytes_that_are_no_message_are_refused_with_a_reason),
		TEST(a_body_of_a_newer_version_is_passed_over_without_complaint),
		TEST(what_cannot_be_is_refused_with_a_reason),
		TEST(a_body_belongs_to_its_topic),
		TEST(a_message_from_the_future_is_refused),
		TEST(what_is_read_again_counts_for_nothing),
		TEST(what_was_seen_survives_a_restart),
		TEST(a_damaged_state_is_refused_at_every_length),
		TEST(streams_over_the_cap_are_taken_but_not_watched),
		TEST(who_may_write_to_the_bus_cannot_speak_for_a_node),
		TEST(a_forged_number_does_not_make_the_true_one_a_duplicate),
		TEST(while_keys_are_given_out_a_missing_signature_passes_and_a_wrong_one_does_not),
		TEST(a_node_tells_of_itself_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
