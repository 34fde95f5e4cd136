/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages that a notifier delivers: order, retries, failures, several receivers. */
#include <errno.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "tests/unit/aggregator/webhook_receiver.h"

/* ---- fixtures ------------------------------------------------------------------------------------ */

static void reopen_store_of(const char *const *name, size_t count)
{
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_store_of(name, count), 0);
}

static void start_to(const char *to, struct nt_notify_options options)
{
	const struct nt_notify_receiver one = {.name = "webhook", .url = to, .secret = SECRET};

	options.store = store;
	options.receiver = &one;
	options.receivers = 1;
	if (!options.first_retry_ns)
		options.first_retry_ns = NT_MILLISECOND;
	assert_int_equal(nt_notify_start(&options, &notify), 0);
	nt_store_on_queued(store, nt_notify_wake, notify);
}

static void start(void)
{
	start_to(url, (struct nt_notify_options){0});
}

static uint64_t time_of(const struct call *call)
{
	uint64_t time_s = 0;

	assert_int_equal(nt_parse_u64(call->time, strlen(call->time), 1, UINT64_MAX, &time_s), 0);
	return time_s;
}

/* ---- delivering ---------------------------------------------------------------------------------- */

static void one_firing_and_one_resolved_message_arrive_signed(void **state)
{
	struct nt_notify_stats stats;
	struct nt_webhook_key key;
	char text[NT_WEBHOOK_SIGNATURE];
	const struct call *call = receiver.call;

	(void)state;
	start();
	for (uint64_t version = 1; version < 6; version++)
		put("a1", "firing", version);
	await_calls(1);
	put("a1", "resolved", 6);
	await_calls(2);
	await_empty();
	assert_int_equal(receiver.calls, 2);
	assert_string_equal(call[0].id, "msg_a1_firing_critical");
	assert_string_equal(call[1].id, "msg_a1_resolved");
	assert_non_null(strstr(call[0].body, "{\"type\":\"incident.firing\""));
	assert_non_null(strstr(call[1].body, "{\"type\":\"incident.resolved\""));
	assert_int_equal(nt_webhook_key_read(SECRET, &key), 0);
	for (int i = 0; i < 2; i++) {
		nt_webhook_sign(&key, call[i].id, time_of(&call[i]), call[i].body,
				strlen(call[i].body), text);
		assert_string_equal(call[i].signature, text);
	}
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.sent, 2);
	assert_int_equal(stats.retried, 0);
}

static void a_receiver_in_fault_notice_gets_the_same_message_until_it_takes_it(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	receiver.script[0] = 500;
	receiver.script[1] = 503;
	receiver.script[2] = 408;
	start();
	put("a1", "firing", 1);
	await_calls(4);
	await_empty();
	assert_int_equal(receiver.calls, 4);
	for (int i = 1; i < 4; i++) {
		assert_string_equal(receiver.call[i].id, receiver.call[0].id);
		assert_string_equal(receiver.call[i].body, receiver.call[0].body);
	}
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.sent, 1);
	assert_int_equal(stats.retried, 3);
}

static void a_message_that_is_refused_is_sent_once_and_its_resolution_never(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	receiver.script[0] = 404;
	start();
	put("a1", "firing", 1);
	put("a1", "resolved", 2);
	await_calls(1);
	await_empty();
	assert_int_equal(receiver.calls, 1);
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.failed, 1);
}

static void a_message_is_given_up_in_the_end(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	for (size_t i = 0; i < MAX_CALLS; i++)
		receiver.script[i] = 500;
	start_to(url, (struct nt_notify_options){.give_up_ns = 200 * NT_MILLISECOND,
						 .first_retry_ns = 50 * NT_MILLISECOND});
	put("a1", "firing", 1);
	put("a1", "resolved", 2);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.expired, 2);
	assert_int_equal(stats.sent, 0);
}

static void answer_all_with(unsigned int status)
{
	pthread_mutex_lock(&receiver.lock);
	for (size_t i = 0; i < MAX_CALLS; i++)
		receiver.script[i] = status;
	pthread_mutex_unlock(&receiver.lock);
}

/* The limit of an hour is scaled to 200 ms. */
static void after_a_long_outage_open_incidents_are_sent_and_over_ones_are_not(void **state)
{
	struct nt_notify_stats stats = {0};

	(void)state;
	answer_all_with(503);
	start_to(url, (struct nt_notify_options){.give_up_ns = 200 * NT_MILLISECOND,
						 .first_retry_ns = 20 * NT_MILLISECOND,
						 .longest_retry_ns = 20 * NT_MILLISECOND});
	put("over", "firing", 1);
	put("over", "resolved", 2);
	put("open", "firing", 1);
	for (size_t calls = 1; stats.expired < 2; calls++) {
		await_calls(calls);
		nt_notify_stats(notify, &stats);
	}
	await_calls(receiver.calls + 20);
	answer_all_with(204);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.sent, 1);
	assert_int_equal(stats.expired, 2);
	assert_string_equal(receiver.call[(receiver.calls - 1) % MAX_CALLS].id,
			    "msg_open_firing_critical");
}

/* An incident that never ends is given up, too. */
static void an_open_incident_is_given_up_after_a_day(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	answer_all_with(503);
	start_to(url, (struct nt_notify_options){.give_up_ns = 50 * NT_MILLISECOND,
						 .give_up_open_ns = 200 * NT_MILLISECOND,
						 .first_retry_ns = 20 * NT_MILLISECOND,
						 .longest_retry_ns = 20 * NT_MILLISECOND});
	put("open", "firing", 1);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.expired, 1);
}

static void a_retry_waits_as_long_as_the_receiver_asks(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns, now_ns = nt_clock_real_ns();

	(void)state;
	receiver.script[0] = 429;
	receiver.retry_after_s = 1000;
	start();
	put("a1", "firing", 1);
	await_calls(1);
	nt_notify_stop(notify);
	notify = NULL;
	assert_int_equal(nt_store_outbox_next(store, "webhook", now_ns, &message, &next_ns), 0);
	assert_true(next_ns >= now_ns + 1000 * NT_SECOND);
}

static void what_waits_is_delivered_by_the_next_notifier(void **state)
{
	(void)state;
	put("a1", "firing", 1);
	put("a1", "resolved", 2);
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_store(), 0);
	start();
	await_calls(2);
	await_empty();
	assert_string_equal(receiver.call[0].id, "msg_a1_firing_critical");
	assert_string_equal(receiver.call[1].id, "msg_a1_resolved");
}

static void the_end_does_not_wait_for_a_receiver_that_hangs(void **state)
{
	struct nt_outbox_message message;
	uint64_t begun_ns, next_ns;

	(void)state;
	receiver.script[0] = 0;
	start();
	put("a1", "firing", 1);
	await_calls(1);
	begun_ns = nt_clock_mono_ns();
	nt_notify_stop(notify);
	notify = NULL;
	assert_true(nt_clock_mono_ns() - begun_ns < 6 * NT_SECOND);
	/* It may have been taken, or not: it is due again, under the same id. */
	assert_int_equal(
		nt_store_outbox_next(store, "webhook", nt_clock_real_ns(), &message, &next_ns), 1);
	assert_string_equal(message.id, receiver.call[0].id);
	assert_int_equal(message.attempts, 2);
	nt_outbox_message_release(&message);
}

static void a_message_to_nobody_fails(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	put("a1", "firing", 1);
	reopen_store_of((const char *const[]){"other"}, 1);
	assert_int_equal(nt_notify_start(&(struct nt_notify_options){.store = store}, &notify), 0);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.failed, 1);
	assert_int_equal(receiver.calls, 0);
}

static void nobody_waits_for_the_receiver_of_another(void **state)
{
	const struct nt_notify_receiver two[] = {
		{.name = "hangs", .url = url},
		{.name = "webhook", .url = url},
	};
	struct nt_notify_options options = {.receiver = two, .receivers = 2};

	(void)state;
	reopen_store_of((const char *const[]){"hangs", "webhook"}, 2);
	options.store = store;
	receiver.script[0] = 0;
	assert_int_equal(nt_notify_start(&options, &notify), 0);
	nt_store_on_queued(store, nt_notify_wake, notify);
	put("a1", "firing", 1);
	/* Whichever of the two came first hangs. */
	await_calls(2);
	assert_string_equal(receiver.call[0].id, receiver.call[1].id);
	release_calls();
	await_empty();
}

static void a_bad_url_or_secret_is_refused(void **state)
{
	const struct nt_notify_receiver bad[] = {
		{.name = "webhook", .url = "ftp://host/"},
		{.name = "webhook", .url = "http://host/", .secret = "whsec_?"},
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct nt_notify_options options = {
			.store = store,
			.receiver = &bad[i],
			.receivers = 1,
		};

		assert_int_equal(nt_notify_start(&options, &notify), -EINVAL);
		assert_null(notify);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_firing_and_one_resolved_message_arrive_signed),
		TEST(a_receiver_in_fault_notice_gets_the_same_message_until_it_takes_it),
		TEST(a_message_that_is_refused_is_sent_once_and_its_resolution_never),
		TEST(a_message_is_given_up_in_the_end),
		TEST(after_a_long_outage_open_incidents_are_sent_and_over_ones_are_not),
		TEST(an_open_incident_is_given_up_after_a_day),
		TEST(a_retry_waits_as_long_as_the_receiver_asks),
		TEST(what_waits_is_delivered_by_the_next_notifier),
		TEST(the_end_does_not_wait_for_a_receiver_that_hangs),
		TEST(a_message_to_nobody_fails),
		TEST(nobody_waits_for_the_receiver_of_another),
		TEST(a_bad_url_or_secret_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up_curl, tear_down_curl);
}
