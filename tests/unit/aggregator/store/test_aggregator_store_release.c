/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A store that releases a shard: what is on its way, what waits, and what a restart finds. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/unit/aggregator/store_pair.h"

static void release(struct nt_store *by)
{
	const struct nt_sink sink = nt_store_sink(by);

	assert_int_equal(sink.release(sink.data, SHARD), 0);
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
	const struct nt_wire_incident one = make("i1", "firing", 2);
	struct nt_wire_incident other_shard = make("i2", "firing", 2);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_TWO(who_releases_a_shard_sends_nothing_more_for_it),
		TEST_TWO(what_waited_for_the_disk_is_not_told_once_its_shard_is_released),
		TEST_TWO(releasing_waits_for_the_message_that_is_under_way),
		TEST_TWO(releasing_does_not_wait_for_another_shards_message),
		TEST_TWO(a_retry_does_not_take_a_released_message_back),
		TEST_TWO(after_a_restart_nothing_is_sent_before_the_shard_is_ours_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
