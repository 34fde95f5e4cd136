/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/publisher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "tests/unit/scratch.h"

struct bench {
	char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 8];
	struct nt_bus *bus;
	struct nt_publisher *publisher;
	struct nt_bus_reader *reader;
};

static const struct nt_window window = {
	.rank = {.rank = 3,
		 .size = 8,
		 .node = "n1",
		 .job = "j",
		 .namespace = "",
		 .pod = "",
		 .container = "",
		 .gpu = "",
		 .cgroup = "",
		 .comm = "prog",
		 .rank_known = true},
	.start_boot_ns = 1000,
	.end_boot_ns = 2000,
	.host = {.state = "S"},
};

static void start(struct bench *b)
{
	assert_int_equal(scratch_make(b->dir), 0);
	(void)snprintf(b->url, sizeof(b->url), "spool:%s", b->dir);
	assert_int_equal(nt_bus_open(b->url, NULL, &b->bus), 0);
	assert_int_equal(nt_publisher_new(b->bus, "n1", 0xb007, &b->publisher), 0);
	nt_publisher_set_time(b->publisher, 5000, 1003005000);
	assert_int_equal(nt_bus_reader_open(b->url,
					    1U << NT_TOPIC_WINDOW | 1U << NT_TOPIC_NODE |
						    1U << NT_TOPIC_DETAIL,
					    &b->reader),
			 0);
}

static void stop(struct bench *b)
{
	nt_bus_reader_close(b->reader);
	nt_publisher_free(b->publisher);
	nt_bus_close(b->bus);
	scratch_remove(b->dir);
}

/* The next message; the caller frees it. */
static struct nt_message *take(struct bench *b, struct nt_bus_record *record)
{
	struct nt_message *message = NULL;

	assert_int_equal(nt_bus_reader_next(b->reader, 1000, record), 1);
	assert_int_equal(nt_message_decode(record->value, record->value_len, &message), 0);
	return message;
}

static void single_calls_arrive_on_their_own_topic(void **state)
{
	static struct nt_detail_call call = {
		.kind = NT_DETAIL_KIND_COMM, .call = "ncclAllReduce", .probability = 1};
	const struct nt_detail detail = {
		.rank = window.rank,
		.call = "",
		.level = 1,
		.start_boot_ns = 1000,
		.end_boot_ns = 2000,
		.record = &call,
		.records = 1,
	};
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_bus_record record;
	struct bench b;

	(void)state;
	start(&b);
	nt_publisher_detail(b.publisher, "mpi:77", &detail);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	message = take(&b, &record);
	assert_int_equal(record.topic, NT_TOPIC_DETAIL);
	assert_int_equal(record.key_len, strlen("mpi:77"));
	assert_memory_equal(record.key, "mpi:77", record.key_len);
	assert_int_equal(message->seq, 1);
	assert_int_equal(message->body, NT_BODY_DETAIL);
	assert_int_equal(message->detail.rank.rank, 3);
	assert_int_equal(message->detail.records, 1);
	assert_string_equal(message->detail.record[0].call, "ncclAllReduce");
	stop(&b);
}

static void a_window_arrives_in_its_envelope(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_bus_record record;
	struct bench b;

	(void)state;
	start(&b);
	nt_publisher_window(b.publisher, "mpi:77", &window, 1500);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	message = take(&b, &record);
	assert_int_equal(record.topic, NT_TOPIC_WINDOW);
	assert_int_equal(record.key_len, 6);
	assert_memory_equal(record.key, "mpi:77", 6);
	assert_int_equal(record.real_ns, 1003000000); /* the window's end, to the ms */
	assert_string_equal(message->agent, "n1");
	assert_string_equal(message->key, "mpi:77");
	assert_int_equal(message->boot, 0xb007);
	assert_int_equal(message->boot_ns, 5000);
	assert_int_equal(message->real_ns, 1003005000);
	assert_int_equal(message->watermark_boot_ns, 1500);
	assert_int_equal(message->body, NT_BODY_WINDOW);
	assert_int_equal(message->window.rank.rank, 3);
	stop(&b);
}

static void a_publisher_with_a_key_signs_what_it_sends(void **state)
{
	static const char secret[] =
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = NULL;
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_auto(nt_signer) struct nt_signer *signer = NULL;
	struct nt_publisher_stats stats;
	struct nt_node_key_error error;
	struct nt_bus_record record;
	struct nt_node_key key;
	struct bench b;

	(void)state;
	assert_int_equal(nt_node_secrets_parse(secret, sizeof(secret) - 1, &secrets, &error), 0);
	assert_int_equal(nt_node_secrets_derive(secrets, "n1", &key), 0);
	assert_int_equal(nt_signer_new(&key, &signer), 0);
	start(&b);
	nt_publisher_sign(b.publisher, signer);
	nt_publisher_window(b.publisher, "mpi:77", &window, 1500);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	message = take(&b, &record);
	assert_int_equal(message->window.rank.rank, 3);
	assert_int_equal(nt_node_secrets_verify(secrets, "n1", &record), NT_SIGNED_VALID);
	nt_publisher_stats(b.publisher, &stats);
	assert_int_equal(stats.signed_messages, 1);
	stop(&b);
}

static struct nt_signer *make_signer(struct nt_node_secrets **ret_secrets)
{
	static const char secret[] =
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
	struct nt_signer *signer = NULL;
	struct nt_node_key_error error;
	struct nt_node_key key;

	assert_int_equal(nt_node_secrets_parse(secret, sizeof(secret) - 1, ret_secrets, &error), 0);
	assert_int_equal(nt_node_secrets_derive(*ret_secrets, "n1", &key), 0);
	assert_int_equal(nt_signer_new(&key, &signer), 0);
	return signer;
}

static void messages_wait_for_the_key_and_are_then_sent_in_order(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = NULL;
	nt_auto(nt_signer) struct nt_signer *signer = make_signer(&secrets);
	struct nt_publisher_stats stats;
	struct bench b;

	(void)state;
	start(&b);
	nt_publisher_await_key(b.publisher);
	nt_publisher_window(b.publisher, "mpi:77", &window, 1500);
	nt_publisher_set_time(b.publisher, 6000, 1003006000);
	nt_publisher_window(b.publisher, "mpi:77", &window, 1600);
	nt_publisher_stats(b.publisher, &stats);
	assert_int_equal(stats.messages, 0);
	assert_true(stats.held_bytes > 0);
	nt_publisher_sign(b.publisher, signer);
	nt_publisher_window(b.publisher, "mpi:77", &window, 1700);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	for (uint64_t i = 0; i < 3; i++) {
		nt_auto(nt_message) struct nt_message *message = NULL;
		struct nt_bus_record record;

		message = take(&b, &record);
		assert_int_equal(message->seq, i + 1);
		assert_int_equal(message->watermark_boot_ns, 1500 + 100 * i);
		assert_int_equal(message->boot_ns, i ? 6000 : 5000); /* as it was then */
		assert_int_equal(nt_node_secrets_verify(secrets, "n1", &record), NT_SIGNED_VALID);
	}
	nt_publisher_stats(b.publisher, &stats);
	assert_int_equal(stats.signed_messages, 3);
	assert_int_equal(stats.held_bytes, 0);
	assert_int_equal(stats.dropped_held, 0);
	stop(&b);
}

static void of_too_many_that_wait_the_oldest_go(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = NULL;
	nt_auto(nt_signer) struct nt_signer *signer = make_signer(&secrets);
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_publisher_stats stats = {0};
	struct nt_bus_record record;
	uint64_t sent = 0;
	struct bench b;

	(void)state;
	start(&b);
	nt_publisher_await_key(b.publisher);
	while (stats.dropped_held < 10) {
		nt_publisher_window(b.publisher, "mpi:77", &window, 1500);
		sent++;
		nt_publisher_stats(b.publisher, &stats);
		assert_true(stats.held_bytes <= NT_PUBLISHER_HELD_BYTES);
	}
	assert_true(sent > 10000);
	nt_publisher_sign(b.publisher, signer);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	nt_publisher_stats(b.publisher, &stats);
	assert_int_equal(stats.messages, sent - 10);
	message = take(&b, &record);
	assert_int_equal(message->seq, 11); /* readers see the gap */
	stop(&b);
}

static void every_topic_and_key_counts_its_own_messages(void **state)
{
	static const struct nt_node_vector node = {.node = "a"};
	static const uint64_t want[] = {1, 1, 2, 2, 3};
	struct nt_bus_record record;
	uint64_t node_seq = 0;
	struct bench b;
	size_t n = 0;

	(void)state;
	start(&b);
	nt_publisher_window(b.publisher, "a", &window, 0);
	nt_publisher_window(b.publisher, "b", &window, 0);
	nt_publisher_node(b.publisher, &node);
	nt_publisher_window(b.publisher, "a", &window, 0);
	nt_publisher_heartbeat(b.publisher, "b", 2, 0);
	nt_publisher_heartbeat(b.publisher, "a", 0, 0);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	for (int i = 0; i < 6; i++) {
		nt_auto(nt_message) struct nt_message *message = take(&b, &record);

		if (record.topic == NT_TOPIC_NODE)
			node_seq = message->seq;
		else
			assert_int_equal(message->seq, want[n++]);
	}
	assert_int_equal(n, 5);
	assert_int_equal(node_seq, 1);
	stop(&b);
}

/* A stream's numbers never go back: who counts them would take what comes for what was. */
static void the_key_that_was_used_least_recently_makes_room_and_numbers_never_go_back(void **state)
{
	struct nt_publisher_stats stats;
	struct nt_bus_record record;
	uint64_t last = 0;
	struct bench b;
	char key[32];

	(void)state;
	start(&b);
	for (int i = 0; i < 3; i++)
		nt_publisher_heartbeat(b.publisher, "old", 1, 0);
	for (int i = 1; i < NT_PUBLISHER_KEYS; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		nt_publisher_heartbeat(b.publisher, key, 1, 0);
	}
	nt_publisher_heartbeat(b.publisher, "k1", 1, 0); /* it stays */
	for (int i = 0; i < 2; i++) { /* which cost old and k2 their place */
		(void)snprintf(key, sizeof(key), "new%d", i);
		nt_publisher_heartbeat(b.publisher, key, 1, 0);
	}
	nt_publisher_heartbeat(b.publisher, "k1", 1, 0);
	nt_publisher_heartbeat(b.publisher, "old", 1, 0);
	nt_publisher_stats(b.publisher, &stats);
	assert_int_equal(stats.dropped_keys, 0);
	assert_int_equal(stats.forgotten_keys, 3);
	assert_int_equal(stats.messages, 3 + NT_PUBLISHER_KEYS + 4);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	for (uint64_t i = 0; i < stats.messages; i++) {
		nt_auto(nt_message) struct nt_message *message = take(&b, &record);

		if (strcmp(message->key, "k1") == 0)
			assert_in_range(message->seq, 1, 3);
		if (strcmp(message->key, "old") != 0)
			continue;
		assert_true(message->seq > last);
		last = message->seq;
	}
	assert_int_equal(last, 4);
	stop(&b);
}

/* A window must not be lost for a profile in it. */
static void a_window_that_is_too_large_is_sent_without_its_profile(void **state)
{
	static uint32_t numbers[NT_WIRE_MAX_FRAMES];
	static struct nt_wire_profile_stack stacks[NT_WIRE_MAX_PROFILE_STACKS];
	struct nt_wire_profile profile = {
		.reason = "", .interpreter = "", .stack = stacks, .stacks = 10};
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_window large = window;
	struct nt_publisher_stats stats;
	struct nt_bus_record record;
	struct bench b;

	(void)state;
	start(&b);
	for (size_t i = 0; i < NT_WIRE_MAX_FRAMES; i++)
		numbers[i] = UINT32_MAX;
	for (size_t i = 0; i < NT_WIRE_MAX_PROFILE_STACKS; i++)
		stacks[i] = (struct nt_wire_profile_stack){
			.thread = "t", .frame = numbers, .frames = NT_WIRE_MAX_FRAMES};
	large.profile = &profile;
	large.profiles = 1;
	for (int i = 0; i < 2; i++) {
		nt_publisher_window(b.publisher, "k1", &large, 1);
		assert_int_equal(nt_publisher_flush(b.publisher), 0);
		message = take(&b, &record);
		assert_int_equal(message->window.rank.rank, 3);
		assert_int_equal(message->window.profiles, 1 - i);
		nt_message_free(nt_take(message));
		nt_publisher_stats(b.publisher, &stats);
		assert_int_equal(stats.dropped_profiles, i);
		assert_int_equal(stats.dropped_invalid, 0);
		profile.stacks = NT_WIRE_MAX_PROFILE_STACKS;
	}
	stop(&b);
}

static void what_cannot_be_sent_uses_up_its_number(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_publisher_stats stats;
	struct nt_bus_record record;
	struct bench b;
	static char key[2 * NT_BUS_MAX_KEY];

	(void)state;
	start(&b);
	memset(key, 'k', NT_BUS_MAX_KEY);
	nt_publisher_heartbeat(b.publisher, key, 1, 0);
	key[NT_BUS_MAX_KEY] = 'x'; /* too long for the bus, and counted under the same number */
	nt_publisher_heartbeat(b.publisher, key, 1, 0);
	key[NT_BUS_MAX_KEY] = '\0';
	nt_publisher_heartbeat(b.publisher, key, 1, 0);
	assert_int_equal(nt_publisher_flush(b.publisher), 0);
	nt_publisher_stats(b.publisher, &stats);
	assert_int_equal(stats.dropped_bus + stats.dropped_invalid, 1);
	message = take(&b, &record);
	assert_int_equal(message->seq, 1);
	nt_message_free(message);
	message = take(&b, &record);
	assert_int_equal(message->seq, 3); /* readers see the gap */
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_calls_arrive_on_their_own_topic),
		cmocka_unit_test(a_window_that_is_too_large_is_sent_without_its_profile),
		cmocka_unit_test(a_window_arrives_in_its_envelope),
		cmocka_unit_test(a_publisher_with_a_key_signs_what_it_sends),
		cmocka_unit_test(messages_wait_for_the_key_and_are_then_sent_in_order),
		cmocka_unit_test(of_too_many_that_wait_the_oldest_go),
		cmocka_unit_test(every_topic_and_key_counts_its_own_messages),
		cmocka_unit_test(
			the_key_that_was_used_least_recently_makes_room_and_numbers_never_go_back),
		cmocka_unit_test(what_cannot_be_sent_uses_up_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
