/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Windows of agents through the engine, and the frames that come of them. */
#include "tests/unit/engine/frame_feed.h"

/* ---- the grid ----------------------------------------------------------------------------------- */

static void every_rank_has_a_window_in_every_frame(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 20000);
	push_all(&batch);
	assert_true(frames > 25);
	assert_int_equal(last.ranks, RANKS);
	assert_int_equal(last.expected_ranks, RANKS);
	assert_true(last.completeness == 1);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(last_rank[i].rank, i);
		assert_true(last_rank[i].observed);
		assert_true(last_rank[i].rank_known);
		assert_true(last_rank[i].steps == 10 || last_rank[i].steps == 20);
		assert_int_equal(last_rank[i].own_ns, last_rank[i].steps * 30 * MS);
		assert_int_equal(last_rank[i].own_tier, NT_FRAME_T2);
	}
	assert_int_equal(counters()->session.late_windows, 0);
	/* A quarter longer than the windows. */
	assert_int_equal(last.end_ns - last.start_ns, 650 * MS);
}

static void sums_of_all_frames_are_the_sums_of_all_windows(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	uint32_t steps = 0;

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 20000);
	for (size_t i = 0; i < batch.count; i++) {
		size_t before = frames;

		push(batch.message[i]);
		if (frames == before)
			continue;
		/* One push closes one frame at most here, or an empty one. */
		assert_true(frames - before <= 2);
		steps += last_rank[0].steps;
	}
	assert_int_equal(nt_engine_finish(engine), 0);
	steps += last_rank[0].steps;
	assert_int_equal(steps, 38 * 10);
}

struct arrival {
	struct nt_message *message;
	uint64_t at_ns;
};

static int by_arrival(const void *a, const void *b)
{
	const struct arrival *left = a, *right = b;

	return left->at_ns < right->at_ns ? -1 : left->at_ns > right->at_ns;
}

/* Every message comes up to two seconds late, in whatever order. */
static void shuffle(struct batch *batch, unsigned int seed)
{
	static struct arrival arrival[MAX_MESSAGES];

	srand(seed);
	for (size_t i = 0; i < batch->count; i++)
		arrival[i] = (struct arrival){
			.message = batch->message[i],
			.at_ns = batch->message[i]->real_ns + (uint64_t)rand() % (2 * SECOND),
		};
	qsort(arrival, batch->count, sizeof(*arrival), by_arrival);
	for (size_t i = 0; i < batch->count; i++)
		batch->message[i] = arrival[i].message;
}

static void shuffled_arrival_makes_the_same_frames(void **state)
{
	nt_autobuf struct nt_buf want = {0};

	(void)state;
	for (unsigned int seed = 0; seed < 20; seed++) {
		struct feed_agent a = feed_agent("n0", "job"), b = feed_agent("n1", "job");
		struct batch batch = {0};

		b.booted_ms = 77777;
		add_run(&batch, &a, 0, 2, 0, 15000);
		add_run(&batch, &b, 2, 2, 300, 15300);
		sort_batch(&batch);
		if (seed)
			shuffle(&batch, seed);
		push_all(&batch);
		assert_int_equal(nt_engine_finish(engine), 0);
		assert_int_equal(counters()->session.late_windows, 0);
		assert_int_equal(nt_buf_append(&printed, "", 1), 0);
		if (!seed)
			assert_int_equal(nt_buf_append(&want, printed.data, printed.len), 0);
		assert_int_equal(want.len, printed.len);
		assert_memory_equal(want.data, printed.data, want.len);
		nt_engine_free(engine);
		start_engine();
	}
}

static void long_steps_make_long_frames_and_short_ones_come_back_slowly(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct feed_window window = {
		.size = 2, .steps = 1, .step_ms = 4000, .own_ms = 1, .comm = 1};

	(void)state;
	for (uint64_t n = 0; n < 6; n++)
		for (window.rank = 0; window.rank < 2; window.rank++) {
			window.from_ms = 4000 * n;
			window.to_ms = 4000 * (n + 1);
			push(feed_window(&agent, &window));
		}
	assert_int_equal(last.end_ns - last.start_ns, 5000 * MS);
	/* One long pause does not. */
	window.step_ms = 60000;
	for (window.rank = 0; window.rank < 2; window.rank++) {
		window.from_ms = 24000;
		window.to_ms = 84000;
		push(feed_window(&agent, &window));
	}
	assert_int_equal(last.end_ns - last.start_ns, 5000 * MS);
	window.step_ms = 500;
	for (uint64_t n = 0; n < 80; n++)
		for (window.rank = 0; window.rank < 2; window.rank++) {
			window.from_ms = 84000 + 500 * n;
			window.to_ms = 84000 + 500 * (n + 1);
			push(feed_window(&agent, &window));
			assert_true(last.end_ns - last.start_ns <= 5000 * MS);
		}
	assert_int_equal(last.end_ns - last.start_ns, 625 * MS);
}

static void steps_longer_than_windows_make_frames_with_steps(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct feed_window window = {.size = 1, .step_ms = 4000, .own_ms = 1};

	(void)state;
	for (uint64_t n = 0; n < 60; n++) {
		window.from_ms = 1000 * n;
		window.to_ms = 1000 * (n + 1);
		window.steps = n % 4 == 3;
		push(feed_window(&agent, &window));
		if (n > 20)
			assert_true(last_rank[0].steps > 0);
	}
	assert_int_equal(last.end_ns - last.start_ns, 5000 * MS);
}

static void a_long_silence_is_skipped(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	size_t before;

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 5000);
	push_all(&batch);
	before = frames;
	add_run(&batch, &agent, 0, RANKS, 3600000, 3605000);
	push_all(&batch);
	assert_true(frames - before < 30);
	assert_int_equal(nt_engine_frame_builder_counters(engine)->skipped_gaps, 1);
	assert_true(last.end_ns > REAL_0 + 3600 * SECOND);
}

/* ---- ranks -------------------------------------------------------------------------------------- */

static void an_end_stays_in_the_frames_that_follow(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	struct feed_window end = {.rank = 1,
				  .size = RANKS,
				  .from_ms = 5200,
				  .to_ms = 5500,
				  .ended = true,
				  .comm = 0xabc};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 5250);
	push_all(&batch);
	push(feed_window(&agent, &end));
	add_run(&batch, &agent, 0, 1, 5200, 9000);
	add_run(&batch, &agent, 2, 2, 5200, 9000);
	sort_batch(&batch);
	push_all(&batch);
	assert_int_equal(last.ranks, RANKS);
	assert_true(last_rank[1].ended);
	assert_false(last_rank[1].finalized);
	assert_int_equal(last_rank[1].ended_ns, REAL_0 + 5500 * MS);
	assert_false(last_rank[0].ended);
	assert_true(last.completeness == 1); /* nobody expects a window of the dead */
}

static void a_rank_that_its_living_agent_no_longer_reports_has_ended(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 5250);
	push_all(&batch);
	add_run(&batch, &agent, 0, RANKS - 1, 5200, 30000);
	sort_batch(&batch);
	push_all(&batch);
	assert_true(last_rank[3].ended);
	assert_false(last_rank[3].silent);
	assert_int_equal(last_rank[3].ended_ns, REAL_0 + 5203 * MS);
}

/* What its agent gave up is watched again after half a minute, or was given up for good. */
static void a_rank_that_its_agent_gave_up_is_not_missed(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	const struct feed_window given_up = {
		.rank = RANKS - 1,
		.size = RANKS,
		.from_ms = 5250,
		.to_ms = 5500,
		.unobserved_ms = 100,
		.whereabouts_unknown = true,
	};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 5250);
	add(&batch, feed_window(&agent, &given_up));
	add_run(&batch, &agent, 0, RANKS - 1, 5250, 60000);
	sort_batch(&batch);
	push_all(&batch);
	assert_false(last_rank[RANKS - 1].ended);
	batch = (struct batch){0};
	add_run(&batch, &agent, 0, RANKS - 1, 60000, 90000);
	sort_batch(&batch);
	push_all(&batch);
	assert_true(last_rank[RANKS - 1].ended);
	assert_true(last_rank[RANKS - 1].finalized); /* no rank is missing */
}

static void windows_of_different_tiers_are_not_one_sum(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct feed_window window = {.size = 1, .steps = 2, .own_ms = 10, .step_ms = 20};

	(void)state;
	for (uint64_t n = 0; n < 40; n++) {
		window.from_ms = 200 * n;
		window.to_ms = 200 * (n + 1);
		window.tier = n % 2 ? NT_TIER_T2 : NT_TIER_T3;
		push(feed_window(&agent, &window));
	}
	assert_true(last_rank[0].steps > 2);
	assert_int_equal(last_rank[0].own_tier, NT_FRAME_T1);
}

/* Then the steps are not those of the calls. */
static void own_work_by_the_device_is_marked(void **state)
{
	static const enum nt_own_source sources[] = {NT_OWN_SOURCE_UNKNOWN, NT_OWN_SOURCE_CALLS,
						     NT_OWN_SOURCE_CUPTI, NT_OWN_SOURCE_NCCL,
						     NT_OWN_SOURCE_QUERIES};
	struct feed_agent agent = feed_agent("n0", "job");
	struct feed_window window = {
		.size = 1, .steps = 2, .own_ms = 10, .step_ms = 20, .tier = NT_TIER_T2};
	uint64_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		for (uint64_t end = n + 40; n < end; n++) {
			window.from_ms = 200 * n;
			window.to_ms = 200 * (n + 1);
			window.own_source = sources[i];
			push(feed_window(&agent, &window));
		}
		assert_int_equal(last_rank[0].own_tier, NT_FRAME_T2);
		assert_int_equal(last_rank[0].own_by_device,
				 sources[i] == NT_OWN_SOURCE_CUPTI ||
					 sources[i] == NT_OWN_SOURCE_NCCL);
	}
}

/* Ranks that are observed in a way of their own, for a while. */
static void run_ways(const uint32_t *shed, const uint64_t *unobserved_ms)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};

	for (uint64_t at = 0; at < 10000; at += 500)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = at,
				.to_ms = at + 500,
				.steps = 4,
				.own_ms = 10,
				.step_ms = 20,
				.shed = shed[rank],
				.unobserved_ms = unobserved_ms[rank],
			};

			add(&batch, feed_window(&agent, &window));
		}
	sort_batch(&batch);
	push_all(&batch);
	assert_int_equal(last.ranks, RANKS);
}

/* Neither what a rank did, which is its host's work where there is no other, nor its host alone. */
static void work_of_ranks_that_are_sampled_and_of_others_is_not_compared(void **state)
{
	const uint32_t none[RANKS] = {0};
	const uint64_t fewer[RANKS] = {[1] = 400}, most[RANKS] = {[0] = 400, [1] = 400, [2] = 400};
	const uint32_t order[RANKS] = {[2] = NT_WIRE_SHED_ORDER, [3] = NT_WIRE_SHED_ALLOCATIONS};
	const uint64_t all[RANKS] = {400, 400, 400, 400};

	(void)state;
	run_ways(none, fewer);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_int_equal(last_rank[rank].own_tier, rank == 1 ? NT_FRAME_T0 : NT_FRAME_T2);
	assert_int_equal(last_rank[1].own_ns, 0);
	assert_true(last_rank[1].sampled);
	assert_false(last_rank[0].sampled);
	(void)tear_down(NULL);
	(void)set_up(NULL);
	run_ways(none, most);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_int_equal(last_rank[rank].own_tier, rank == 3 ? NT_FRAME_T0 : NT_FRAME_T2);
	(void)tear_down(NULL);
	(void)set_up(NULL);
	/* What is shed of the same slices tells them apart, too, where work depends on it. */
	run_ways(order, all);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_int_equal(last_rank[rank].own_tier, rank == 2 ? NT_FRAME_T0 : NT_FRAME_T2);
}

static void calls_of_steps_that_a_slice_cut_are_not_those_of_the_whole_ones(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct feed_window window = {
		.size = 1,
		.comm = 0xabc,
		.steps = 4,
		.own_ms = 10,
		.step_ms = 20,
		.unobserved_ms = 1840,
		.calls = 24, /* in 160 ms, half of which are whole steps */
		.whereabouts_unknown = true,
	};

	(void)state;
	for (uint64_t n = 0; n < 20; n++) {
		window.from_ms = 2000 * n;
		window.to_ms = 2000 * (n + 1);
		window.last += 24;
		push(feed_window(&agent, &window));
	}
	assert_true(frames > 5);
	assert_int_equal(last_rank[0].steps, 4);
	assert_int_equal(last_calls, 12);
	assert_int_equal(last_bytes, 4096 * last_calls);
	assert_true(last_rank[0].lost_sight);
	/* A rank goes on all the same, though no step ends in its slices. */
	window.steps = 0;
	for (uint64_t n = 20; n < 40; n++) {
		window.from_ms = 2000 * n;
		window.to_ms = 2000 * (n + 1);
		window.last += 24;
		push(feed_window(&agent, &window));
	}
	assert_int_equal(last_rank[0].steps, 0);
	assert_in_range(last_calls, 1, 3);
}

static void a_rank_without_steps_has_no_sums_but_says_where_it_is(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct batch batch = {0};
	struct feed_window stuck = {.rank = 1, .size = 2, .comm = 0xabc, .last = 7, .inside = true};

	(void)state;
	for (uint64_t at = 0; at < 10000; at += 500) {
		stuck.from_ms = at;
		stuck.to_ms = at + 500;
		stuck.own_ms = 10;
		add(&batch, feed_window(&agent, &stuck));
	}
	add_run(&batch, &agent, 0, 1, 0, 10000);
	sort_batch(&batch);
	push_all(&batch);
	assert_int_equal(last_rank[1].rank, 1);
	assert_int_equal(last_rank[1].steps, 0);
	assert_int_equal(last_rank[1].own_ns, 0);
	assert_true(last_rank[1].inside.in_call);
	assert_int_equal(last_rank[1].inside.number, 8);
	assert_int_equal(last_rank[1].inside.kind, NT_FRAME_SYNCHRONISING);
	assert_int_equal(last_rank[1].state, 'S');
	assert_true(last_rank[1].inside.since_ns > REAL_0);
}

static void samples_are_sorted_by_call_and_rank(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct nt_sample sample[2];
	struct batch batch = {0};

	(void)state;
	add_run(&batch, &agent, 0, RANKS, 0, 8000);
	for (size_t i = 0; i < batch.count; i++) {
		struct nt_message *message = batch.message[i];
		struct nt_message with = *message;

		for (size_t j = 0; j < 2; j++)
			sample[j] = (struct nt_sample){
				.comm = 0xabc,
				.number = message->window.comm[0].last - j,
				.epoch = j ? 1 : 99, /* nobody's */
				.op = NT_OP_ALL_REDUCE,
				.arrive_boot_ns = message->boot_ns,
			};
		sample[0].epoch = 1;
		with.window.sample = sample;
		with.window.samples = 2;
		batch.message[i] = feed_copy(&with);
		nt_message_free(message);
	}
	push_all(&batch);
	assert_true(last.samples >= 2 * RANKS);
	assert_int_equal(nt_buf_append(&printed, "", 1), 0);
	assert_non_null(strstr((const char *)printed.data, "sample abc/0 9 rank 0\n"
							   " sample abc/0 9 rank 1\n"
							   " sample abc/0 9 rank 2\n"
							   " sample abc/0 9 rank 3\n"
							   " sample abc/0 10 rank 0\n"));
}

static void communicators_over_the_cap_of_a_frame_are_counted(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct nt_comm_window comm[NT_FRAME_MAX_COMMS + 6] = {0};
	struct feed_window window = {.size = 1, .steps = 1, .own_ms = 10, .step_ms = 20};

	(void)state;
	for (uint64_t i = 0; i < NT_FRAME_MAX_COMMS + 6; i++)
		comm[i] = (struct nt_comm_window){.id = i + 1, .size = 2, .epoch = 1, .name = ""};
	for (uint64_t n = 0; n < 10; n++) {
		nt_auto(nt_message) struct nt_message *message = NULL;
		struct nt_message with;

		window.from_ms = 500 * n;
		window.to_ms = 500 * (n + 1);
		message = feed_window(&agent, &window);
		with = *message;
		with.window.comm = comm;
		with.window.comms = NT_FRAME_MAX_COMMS + 6;
		push(feed_copy(&with));
	}
	assert_int_equal(last_rank[0].comms, NT_FRAME_MAX_COMMS);
	assert_true(nt_engine_frame_builder_counters(engine)->dropped_comms >= 6);
}

static void windows_over_the_cap_give_way_oldest_first(void **state)
{
	struct feed_agent agent = feed_agent("n0", "job");
	struct feed_window window = {.size = 2, .steps = 1, .own_ms = 1, .step_ms = 1, .comm = 5};

	(void)state;
	/* The other rank's agent is behind, so that nothing closes for three seconds. */
	for (uint64_t n = 0; n < NT_RANK_SESSION_MAX_WAITING + 100; n++) {
		window.from_ms = n;
		window.to_ms = n + 1;
		push(feed_window(&agent, &window));
	}
	assert_int_equal(counters()->session.evicted_windows, 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_rank_has_a_window_in_every_frame),
		TEST(sums_of_all_frames_are_the_sums_of_all_windows),
		TEST(shuffled_arrival_makes_the_same_frames),
		TEST(long_steps_make_long_frames_and_short_ones_come_back_slowly),
		TEST(steps_longer_than_windows_make_frames_with_steps),
		TEST(a_long_silence_is_skipped),
		TEST(an_end_stays_in_the_frames_that_follow),
		TEST(a_rank_that_its_living_agent_no_longer_reports_has_ended),
		TEST(a_rank_that_its_agent_gave_up_is_not_missed),
		TEST(windows_of_different_tiers_are_not_one_sum),
		TEST(own_work_by_the_device_is_marked),
		TEST(work_of_ranks_that_are_sampled_and_of_others_is_not_compared),
		TEST(calls_of_steps_that_a_slice_cut_are_not_those_of_the_whole_ones),
		TEST(a_rank_without_steps_has_no_sums_but_says_where_it_is),
		TEST(samples_are_sorted_by_call_and_rank),
		TEST(communicators_over_the_cap_of_a_frame_are_counted),
		TEST(windows_over_the_cap_give_way_oldest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
