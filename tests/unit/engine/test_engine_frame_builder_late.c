/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frames whose windows come late or never. */
#include "tests/unit/engine/frame_feed.h"

/* ---- lateness and silence ----------------------------------------------------------------------- */

static void a_frame_waits_for_the_slower_agent(void **state)
{
	struct feed_agent a = feed_agent("n0", "job"), b = feed_agent("n1", "job");
	struct batch ahead = {0}, behind = {0};
	uint64_t until;

	(void)state;
	add_run(&ahead, &a, 0, 2, 0, 10000);
	add_run(&behind, &b, 2, 2, 0, 10000);
	for (size_t i = 0; i < ahead.count; i++) {
		/* Two seconds behind. */
		if (i >= 8)
			push(behind.message[i - 8]);
		push(ahead.message[i]);
	}
	until = last.end_ns;
	assert_true(until <= REAL_0 + 10000 * MS - 1500 * MS);
	assert_true(until > REAL_0 + 10000 * MS - 3000 * MS);
	for (size_t i = behind.count - 8; i < behind.count; i++)
		push(behind.message[i]);
	assert_true(last.end_ns > until);
	assert_true(last.completeness == 1);
	assert_int_equal(counters()->session.late_windows, 0);
}

static void an_agent_that_stops_is_silent_after_ten_seconds_and_not_waited_for(void **state)
{
	struct feed_agent a = feed_agent("n0", "job"), b = feed_agent("n1", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &a, 0, 2, 0, 40000);
	add_run(&batch, &b, 2, 2, 0, 20000);
	sort_batch(&batch);
	for (size_t i = 0; i < batch.count; i++) {
		push(batch.message[i]);
		if (last.end_ns > REAL_0 + 21000 * MS && last.end_ns < REAL_0 + 26000 * MS) {
			assert_false(last_rank[2].observed);
			assert_false(last_rank[2].silent);
			assert_true(last.completeness == 0.5);
		}
	}
	assert_true(last.end_ns > REAL_0 + 38000 * MS); /* no longer 3 s behind */
	assert_true(last_rank[2].silent);
	assert_true(last_rank[3].silent);
	assert_false(last_rank[2].ended);
	assert_false(last_rank[0].silent);
}

static void what_comes_too_late_is_counted_and_not_used(void **state)
{
	struct feed_agent a = feed_agent("n0", "job"), b = feed_agent("n1", "job");
	struct batch batch = {0}, late = {0};
	nt_autobuf struct nt_buf before = {0};

	(void)state;
	add_run(&batch, &a, 0, 2, 0, 10000);
	add_run(&batch, &b, 2, 2, 0, 10000);
	sort_batch(&batch);
	push_all(&batch);
	assert_int_equal(nt_buf_append(&before, printed.data, printed.len), 0);
	b.seq += 10;
	add_run(&late, &b, 2, 2, 5000, 5600);
	push_all(&late);
	assert_int_equal(counters()->session.late_windows, 2);
	assert_int_equal(before.len, printed.len);
}

static void what_waits_is_judged_when_nothing_comes_any_more(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	uint64_t before;

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 5200);
	push_all(&batch);
	before = last.end_ns;
	assert_true(before < REAL_0 + 5200 * MS);
	/* A frame needs three seconds of silence, however they come about. */
	assert_int_equal(nt_engine_sweep(engine, 2 * SECOND), 0);
	assert_int_equal(last.end_ns, before);
	assert_int_equal(nt_engine_sweep(engine, 2 * SECOND), 0);
	assert_true(last.end_ns > REAL_0 + 5203 * MS);
	/* The agent was only slow: it goes on without loss. */
	add_run(&batch, &agent, 0, RANKS, 9000, 15000);
	push_all(&batch);
	assert_int_equal(counters()->session.late_windows, 0);
	assert_true(last.end_ns > REAL_0 + 13000 * MS);
}

static void a_frame_closes_three_seconds_after_its_end_whoever_is_missing(void **state)
{
	struct feed_agent a = feed_agent("n0", "job"), b = feed_agent("n1", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &a, 0, 2, 0, 20000);
	add_run(&batch, &b, 2, 2, 0, 11000);
	sort_batch(&batch);
	/* Up to 18 s: the other agent is behind, and not yet silent. */
	for (size_t i = 0; i < batch.count; i++) {
		if (batch.message[i]->real_ns <= REAL_0 + 18000 * MS)
			push(batch.message[i]);
		else
			nt_message_free(batch.message[i]);
	}
	assert_true(last.end_ns <= REAL_0 + 15000 * MS);
	assert_true(last.end_ns > REAL_0 + 14000 * MS);
}

/* ---- completeness ------------------------------------------------------------------------------- */

static bool is_about(double ns, uint64_t ms)
{
	return ns > (double)(ms * MS) - 1000 && ns < (double)(ms * MS) + 1000;
}

static void a_window_that_never_came_is_missing_though_its_rank_has_another(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 40000);
	for (size_t i = 0; i < batch.count; i++) {
		if (i == 4 * 20 + 2)
			nt_message_free(batch.message[i]);
		else
			push(batch.message[i]);
	}
	assert_true(least_complete >= 0.75 && least_complete < 0.85);
	assert_true(is_about(missing_ns, 520 / RANKS));
}

static void windows_longer_than_a_frame_are_whole(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	size_t unobserved = 0;

	(void)state;
	for (uint64_t at = 0; at < 20000; at += 500)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			/* The last one's windows are twice as long. */
			const uint64_t length = rank == RANKS - 1 ? 1000 : 500;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = at + 500 - length,
				.to_ms = at + 500,
				.steps = (uint32_t)length / 50,
				.own_ms = 30,
				.step_ms = 50,
				.comm = 0xabc,
				.last = (at + 500) / 50,
			};

			if ((at + 500) % length == 0)
				add(&batch, feed_window(&agent, &window));
		}
	for (size_t i = 0; i < batch.count; i++) {
		struct nt_message with = *batch.message[i];

		/* Each vouches for what lies before the windows that are still open. */
		with.watermark_boot_ns -= 500 * MS;
		push(feed_copy(&with));
		nt_message_free(batch.message[i]);
		unobserved += frames && !last_rank[RANKS - 1].observed;
	}
	assert_true(frames > 20);
	assert_true(unobserved > 0);
	assert_true(least_complete == 1);
	assert_true(missing_ns == 0);
}

static void what_an_agent_does_not_say_for_a_while_is_missing_once(void **state)
{
	struct feed_agent a = feed_agent("n0", "job"), b = feed_agent("n1", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &a, 0, 2, 0, 60000);
	add_run(&batch, &b, 2, 2, 0, 20000);
	b.seq += 40;
	add_run(&batch, &b, 2, 2, 38 * 520 + 10400, 60000);
	sort_batch(&batch);
	push_all(&batch);
	assert_true(last.completeness == 1);
	assert_true(is_about(missing_ns, 10400 / 2));
}

static void a_stretch_that_is_skipped_is_missing(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 5200);
	push_all(&batch);
	add_run(&batch, &agent, 0, RANKS, 3600000, 3610000);
	push_all(&batch);
	assert_int_equal(nt_engine_frame_builder_counters(engine)->skipped_gaps, 1);
	assert_true(is_about(missing_ns, 3600000 - 5200));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_frame_waits_for_the_slower_agent),
		TEST(an_agent_that_stops_is_silent_after_ten_seconds_and_not_waited_for),
		TEST(what_comes_too_late_is_counted_and_not_used),
		TEST(what_waits_is_judged_when_nothing_comes_any_more),
		TEST(a_frame_closes_three_seconds_after_its_end_whoever_is_missing),
		TEST(a_window_that_never_came_is_missing_though_its_rank_has_another),
		TEST(windows_longer_than_a_frame_are_whole),
		TEST(what_an_agent_does_not_say_for_a_while_is_missing_once),
		TEST(a_stretch_that_is_skipped_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
