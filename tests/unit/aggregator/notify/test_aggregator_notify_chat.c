/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the notifier does for chats and Alertmanager: digests, reminders, samples, several URLs. */
#include <errno.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "tests/unit/aggregator/webhook_receiver.h"

static void start_splitting(struct nt_notify_receiver one, uint64_t split_ns)
{
	struct nt_notify_options options = {
		.store = store,
		.receiver = &one,
		.receivers = 1,
		.first_retry_ns = NT_MILLISECOND,
		.split_ns = split_ns,
	};

	one.name = "webhook";
	if (!one.url)
		one.url = url;
	assert_int_equal(nt_notify_start(&options, &notify), 0);
	nt_store_on_queued(store, nt_notify_wake, notify);
}

static void start_with(struct nt_notify_receiver one)
{
	start_splitting(one, 0);
}

static struct nt_notify_view view_now(void)
{
	struct nt_notify_view view;

	assert_int_equal(nt_notify_receivers(notify), 1);
	nt_notify_view(notify, 0, &view);
	return view;
}

static void await_count(enum nt_notify_result result, uint64_t count)
{
	const struct timespec pause = {.tv_nsec = 2000000};

	for (int i = 0; i < PATIENCE_S * 500; i++) {
		if (view_now().count[result] >= count)
			return;
		(void)nanosleep(&pause, NULL);
	}
	fail_msg("no %llu %s", (unsigned long long)count, nt_notify_result_name(result));
}

static void put_many(const char *state, unsigned int count, uint64_t version)
{
	for (unsigned int i = 0; i < count; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "a%u", i);
		put(id, state, version);
	}
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static void await_beats(uint64_t count)
{
	await_count(NT_NOTIFY_HEARTBEAT, count);
}

static void heartbeats_are_signed_and_repeated_while_the_aggregator_works(void **state)
{
	char text[NT_WEBHOOK_SIGNATURE];
	const struct call *call = receiver.call;
	struct nt_webhook_key key;
	uint64_t time_s = 0;

	(void)state;
	start_with(
		(struct nt_notify_receiver){.secret = SECRET, .heartbeat_ns = 20 * NT_MILLISECOND});
	/* Nobody has said that it works. */
	put("a1", "firing", 1);
	await_calls(1);
	await_empty();
	assert_int_equal(view_now().count[NT_NOTIFY_HEARTBEAT], 0);
	nt_notify_keep_alive(notify, UINT64_MAX);
	nt_notify_wake(notify);
	await_beats(3);
	nt_notify_keep_alive(notify, 0);
	assert_int_equal(nt_webhook_key_read(SECRET, &key), 0);
	assert_int_equal(nt_parse_u64(call[1].time, strlen(call[1].time), 1, UINT64_MAX, &time_s),
			 0);
	nt_webhook_sign(&key, call[1].id, time_s, call[1].body, strlen(call[1].body), text);
	assert_string_equal(call[1].signature, text);
	assert_non_null(strstr(call[1].body, "{\"type\":\"heartbeat\""));
	assert_string_not_equal(call[1].id, call[2].id);
}

static void the_watchdog_of_alertmanager_always_fires(void **state)
{
	(void)state;
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER,
					       .repeat_ns = NT_MINUTE,
					       .heartbeat_ns = 20 * NT_MILLISECOND});
	nt_notify_keep_alive(notify, UINT64_MAX);
	await_beats(2);
	assert_non_null(strstr(receiver.call[0].body, "\"alertname\":\"NeuTracerWatchdog\""));
	assert_non_null(strstr(receiver.call[0].body, "\"severity\":\"none\""));
}

static void a_heartbeat_that_fails_is_counted(void **state)
{
	(void)state;
	receiver.script[0] = 500;
	start_with((struct nt_notify_receiver){.heartbeat_ns = 20 * NT_MILLISECOND});
	nt_notify_keep_alive(notify, UINT64_MAX);
	await_beats(1);
	assert_int_equal(view_now().count[NT_NOTIFY_HEARTBEAT_FAILED], 1);
}

/* ---- digests --------------------------------------------------------------------------------- */

/* Rate 4: a burst of one, then one each 20 s. */
static void what_exceeds_the_rate_is_one_message(void **state)
{
	struct nt_notify_view view;

	(void)state;
	put_many("firing", 23, 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS, .rate = 4});
	await_calls(1);
	await_empty();
	assert_int_equal(receiver.calls, 1);
	assert_non_null(strstr(receiver.call[0].body, "DIGEST: 23 firing, 0 resolved"));
	view = view_now();
	assert_int_equal(view.count[NT_NOTIFY_SENT], 23);
	assert_int_equal(view.count[NT_NOTIFY_DIGESTED], 23);
	assert_string_equal(view.kind, "teams");
}

/* 64 at a time; the rest waits for the next token. */
static void a_digest_has_a_cap(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	put_many("firing", NT_STORE_MAX_BATCH + 2, 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS, .rate = 4});
	await_calls(1);
	nt_notify_stop(notify);
	notify = NULL;
	nt_store_stats(store, &stats);
	assert_int_equal(stats.outbox_now, 2);
	assert_non_null(strstr(receiver.call[0].body, "DIGEST: 64 firing"));
}

static void a_digest_that_is_refused_fails_all_of_it(void **state)
{
	struct nt_notify_view view;

	(void)state;
	receiver.script[0] = 400;
	put_many("firing", 3, 1);
	put_many("resolved", 3, 2);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS, .rate = 4});
	await_calls(1);
	await_empty();
	view = view_now();
	assert_int_equal(view.count[NT_NOTIFY_FAILED], 3);
	assert_int_equal(view.count[NT_NOTIFY_SENT], 0);
	/* Of what was refused, no end is sent. */
	assert_int_equal(receiver.calls, 1);
}

/* One alert of them is bad, or a proxy finds all of them too long. */
static void what_alertmanager_refuses_together_is_sent_one_by_one(void **state)
{
	struct nt_notify_view view;

	(void)state;
	receiver.script[0] = 400;
	receiver.script[2] = 400;
	put_many("firing", 3, 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER, .rate = 4});
	await_calls(4);
	await_empty();
	view = view_now();
	assert_int_equal(view.count[NT_NOTIFY_SENT], 2);
	assert_int_equal(view.count[NT_NOTIFY_FAILED], 1);
	assert_non_null(strstr(receiver.call[0].body, "\"incident\":\"a2\""));
	assert_null(strstr(receiver.call[1].body, "\"incident\":\"a2\""));
}

/* The receiver went down meanwhile: what is left waits, and is not tried one by one. */
static void a_failure_ends_what_is_sent_one_by_one(void **state)
{
	struct nt_notify_view view;

	(void)state;
	receiver.script[0] = 413;
	receiver.script[2] = 503;
	put_many("firing", 4, 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER, .rate = 4});
	await_count(NT_NOTIFY_RETRIED, 3);
	view = view_now();
	assert_int_equal(receiver.calls, 3);
	assert_int_equal(view.count[NT_NOTIFY_SENT], 1);
	assert_int_equal(view.count[NT_NOTIFY_FAILED], 0);
}

/* The next owner of their shards waits for them. The rest is due with the next token. */
static void sending_one_by_one_ends_after_a_time(void **state)
{
	(void)state;
	receiver.script[0] = 422;
	put_many("firing", 3, 1);
	start_splitting((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER, .rate = 4},
			1);
	await_count(NT_NOTIFY_RETRIED, 2);
	assert_int_equal(receiver.calls, 2);
	assert_int_equal(view_now().count[NT_NOTIFY_SENT], 1);
}

/* A wrong path or password is not of one alert. */
static void what_is_refused_for_another_reason_is_refused_at_once(void **state)
{
	(void)state;
	receiver.script[0] = 404;
	put_many("firing", 3, 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER, .rate = 4});
	await_empty();
	assert_int_equal(receiver.calls, 1);
	assert_int_equal(view_now().count[NT_NOTIFY_FAILED], 3);
}

static void a_pager_gets_each_incident_by_itself(void **state)
{
	struct nt_store_stats stats;

	(void)state;
	put_many("firing", 3, 1);
	start_with((struct nt_notify_receiver){
		.kind = NT_RECEIVER_PAGERDUTY, .secret = "key", .rate = 4});
	await_calls(1);
	nt_notify_stop(notify);
	notify = NULL;
	nt_store_stats(store, &stats);
	assert_int_equal(stats.outbox_now, 2);
	assert_int_equal(receiver.calls, 1);
	assert_non_null(strstr(receiver.call[0].body, "\"dedup_key\":\"a0\""));
}

/* ---- failures -------------------------------------------------------------------------------- */

static void a_receiver_cannot_silence_us_for_long(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns, now_ns = nt_clock_real_ns();

	(void)state;
	receiver.script[0] = 429;
	receiver.retry_after_s = 80000;
	put("a1", "firing", 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS});
	await_calls(1);
	nt_notify_stop(notify);
	notify = NULL;
	assert_int_equal(nt_store_outbox_next(store, "webhook", now_ns, &message, &next_ns), 0);
	assert_true(next_ns >= now_ns + 29 * NT_MINUTE);
	assert_true(next_ns < now_ns + 32 * NT_MINUTE);
}

/* The body of the answer is that of no chat service. */
static void success_by_status_alone_is_none(void **state)
{
	struct nt_notify_view view;

	(void)state;
	put("a1", "firing", 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_WECOM});
	await_calls(2);
	view = view_now();
	assert_int_equal(view.count[NT_NOTIFY_SENT], 0);
	assert_true(view.count[NT_NOTIFY_RETRIED] >= 1);
}

/* ---- Alertmanager ---------------------------------------------------------------------------- */

static void alertmanager_gets_open_incidents_again(void **state)
{
	struct nt_notify_view view;

	(void)state;
	put("a1", "firing", 1);
	put("a2", "firing", 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER,
					       .repeat_ns = 50 * NT_MILLISECOND});
	/* Two messages, then both in one request, again and again. */
	await_calls(4);
	assert_non_null(strstr(receiver.call[3].body, "\"incident\":\"a1\""));
	assert_non_null(strstr(receiver.call[3].body, "\"incident\":\"a2\""));
	view = view_now();
	assert_int_equal(view.count[NT_NOTIFY_SENT], 2);
	assert_true(view.count[NT_NOTIFY_REPEATED] >= 2);
}

static void what_is_resolved_is_not_repeated(void **state)
{
	size_t calls;

	(void)state;
	put("a1", "firing", 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER,
					       .repeat_ns = 20 * NT_MILLISECOND});
	await_calls(2);
	put("a1", "resolved", 2);
	await_empty();
	nt_notify_stop(notify);
	notify = NULL;
	calls = receiver.calls;
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_ALERTMANAGER,
					       .repeat_ns = 20 * NT_MILLISECOND});
	put("a2", "firing", 1);
	await_calls(calls + 3);
	for (size_t i = calls; i < receiver.calls && i < MAX_CALLS; i++)
		assert_null(strstr(receiver.call[i].body, "\"a1\""));
}

static void each_replica_gets_it_and_one_suffices(void **state)
{
	char dead[64];
	const char *const replicas[] = {url, url};
	struct nt_notify_view view;

	(void)state;
	/* Nothing listens on the discard port. */
	(void)snprintf(dead, sizeof(dead), "http://127.0.0.1:9/");
	put("a1", "firing", 1);
	start_with((struct nt_notify_receiver){
		.kind = NT_RECEIVER_ALERTMANAGER, .url = dead, .replica = replicas, .replicas = 2});
	await_calls(2);
	await_empty();
	view = view_now();
	assert_int_equal(receiver.calls, 2);
	assert_int_equal(view.count[NT_NOTIFY_SENT], 1);
	assert_int_equal(view.count[NT_NOTIFY_RETRIED], 0);
}

/* ---- reminders in a chat --------------------------------------------------------------------- */

static void a_chat_is_reminded_after_its_interval(void **state)
{
	struct nt_notify_view view;

	(void)state;
	put_many("firing", 3, 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS,
					       .repeat_ns = 300 * NT_MILLISECOND});
	await_calls(4);
	assert_non_null(strstr(receiver.call[0].body, "FIRING (critical)"));
	assert_null(strstr(receiver.call[0].body, "STILL FIRING"));
	assert_non_null(strstr(receiver.call[3].body, "STILL FIRING"));
	view = view_now();
	assert_int_equal(view.count[NT_NOTIFY_SENT], 3);
}

/* ---- samples --------------------------------------------------------------------------------- */

static struct nt_notify_sample await_sample(uint64_t number)
{
	const struct timespec pause = {.tv_nsec = 2000000};

	for (int i = 0; i < PATIENCE_S * 500; i++) {
		struct nt_notify_view view = view_now();

		if (view.sample.state == NT_NOTIFY_SAMPLE_DONE && view.sample.number == number)
			return view.sample;
		(void)nanosleep(&pause, NULL);
	}
	fail_msg("no sample was sent");
	return (struct nt_notify_sample){0};
}

static void a_sample_is_marked_and_its_answer_is_kept(void **state)
{
	struct nt_notify_sample sample;
	uint64_t number;

	(void)state;
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS});
	assert_int_equal(nt_notify_request_sample(notify, "none", &number), -ENOENT);
	assert_int_equal(nt_notify_request_sample(notify, "webhook", &number), 0);
	assert_int_equal(number, 1);
	sample = await_sample(number);
	assert_int_equal(sample.attempt.outcome, NT_ATTEMPT_TAKEN);
	assert_int_equal(sample.attempt.status, 204);
	assert_int_equal(receiver.calls, 1);
	assert_non_null(strstr(receiver.call[0].body, "TEST FIRING (info)"));
	receiver.script[1] = 404;
	assert_int_equal(nt_notify_request_sample(notify, "webhook", &number), 0);
	sample = await_sample(2);
	assert_int_equal(sample.attempt.outcome, NT_ATTEMPT_REFUSED);
	assert_int_equal(sample.attempt.status, 404);
}

static void a_sample_does_not_stay_open_at_a_pager(void **state)
{
	uint64_t number;

	(void)state;
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_PAGERDUTY, .secret = "key"});
	assert_int_equal(nt_notify_request_sample(notify, "webhook", &number), 0);
	(void)await_sample(number);
	assert_int_equal(receiver.calls, 2);
	assert_non_null(strstr(receiver.call[0].body, "\"trigger\""));
	assert_non_null(strstr(receiver.call[1].body, "\"resolve\""));
}

static void a_sample_waits_its_turn(void **state)
{
	uint64_t number;

	(void)state;
	receiver.script[0] = 0;
	put("a1", "firing", 1);
	start_with((struct nt_notify_receiver){.kind = NT_RECEIVER_TEAMS});
	await_calls(1);
	assert_int_equal(nt_notify_request_sample(notify, "webhook", &number), 0);
	assert_int_equal(nt_notify_request_sample(notify, "webhook", &number), -EBUSY);
	release_calls();
	(void)await_sample(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(heartbeats_are_signed_and_repeated_while_the_aggregator_works),
		TEST(the_watchdog_of_alertmanager_always_fires),
		TEST(a_heartbeat_that_fails_is_counted),
		TEST(what_exceeds_the_rate_is_one_message),
		TEST(a_digest_has_a_cap),
		TEST(a_digest_that_is_refused_fails_all_of_it),
		TEST(what_alertmanager_refuses_together_is_sent_one_by_one),
		TEST(a_failure_ends_what_is_sent_one_by_one),
		TEST(sending_one_by_one_ends_after_a_time),
		TEST(what_is_refused_for_another_reason_is_refused_at_once),
		TEST(a_pager_gets_each_incident_by_itself),
		TEST(a_receiver_cannot_silence_us_for_long),
		TEST(success_by_status_alone_is_none),
		TEST(alertmanager_gets_open_incidents_again),
		TEST(what_is_resolved_is_not_repeated),
		TEST(each_replica_gets_it_and_one_suffices),
		TEST(a_chat_is_reminded_after_its_interval),
		TEST(a_sample_is_marked_and_its_answer_is_kept),
		TEST(a_sample_does_not_stay_open_at_a_pager),
		TEST(a_sample_waits_its_turn),
	};

	return cmocka_run_group_tests(tests, set_up_curl, tear_down_curl);
}
