/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums, pasts and recoveries, against the plainest way to compute the same. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/math/cusum.h"
#include "detect/math/ring.h"
#include "detect/model/recovery.h"
#include "detect/model/time.h"

static void a_sum_clips_leaks_and_remembers_its_onset(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_cusum cusum = {.sum = 0.0};
	struct nt_cusum_window window = {.ceiling = 20.0};

	(void)state;
	for (uint64_t i = 1; i <= 5; i++) {
		window.start_ns = 10 * i;
		window.frame = i;
		window.z = i == 1 ? 0.5 : 100.0;
		window.cost = i == 3 ? 9.0 : 0.1;
		window.peer_deviation = 0.2;
		nt_cusum_add(&cusum, &rules, &window);
	}
	assert_true(cusum.sum == 8.0);
	assert_true(cusum.onset_ns == 20 && cusum.onset_frame == 2 && cusum.windows == 4);
	/* Without the largest. */
	assert_true(fabs(nt_cusum_cost(&cusum) - 0.1) < 1e-12);
	assert_true(fabs(nt_cusum_peer_deviation(&cusum) - 0.2) < 1e-12);
	assert_true(nt_cusum_lasts(&cusum));
	for (int i = 0; i < 50; i++)
		nt_cusum_add(&cusum, &rules, &window);
	assert_true(cusum.sum == 20.0);
	window.z = 0.0;
	window.cost = 0.0;
	for (int i = 0; i < 19; i++)
		nt_cusum_add(&cusum, &rules, &window);
	assert_true(cusum.sum == 1.0);
	window.z = -100.0;
	nt_cusum_add(&cusum, &rules, &window);
	assert_true(cusum.sum == 0.0 && cusum.windows == 0);
}

static void the_threshold_is_about_ten_at_eight_ranks_and_fourteen_at_sixteen_thousand(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_cusum cusum = {.sum = 12.0};

	(void)state;
	assert_true(fabs(nt_cusum_threshold(&rules, 8, 1e9) - 10.4) < 0.1);
	assert_true(fabs(nt_cusum_threshold(&rules, 16384, 1e9) - 14.2) < 0.1);
	assert_true(nt_cusum_chance(cusum.sum, &rules, 8, 1.0) < 1e-7);
	cusum.sum = 0.0;
	assert_true(nt_cusum_chance(cusum.sum, &rules, 8, 1.0) == 1.0);
}

static void a_few_wild_windows_do_not_last(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_cusum cusum = {.sum = 0.0};

	(void)state;
	for (int i = 0; i < 12; i++) {
		const struct nt_cusum_window window = {
			.z = 1.9, .cost = i % 3 ? 0.001 : 1.0, .ceiling = 99.0};

		nt_cusum_add(&cusum, &rules, &window);
	}
	assert_false(nt_cusum_lasts(&cusum));
}

static void a_past_is_what_was_before_the_fault(void **state)
{
	struct nt_past past = {.count = 0};
	struct nt_lesson lesson;
	double peer_deviation, value;

	(void)state;
	for (uint64_t i = 1; i <= 10; i++)
		nt_past_learn(&past, &lesson, i < 6 ? 0.01 : 0.5, i < 6 ? 100.0 : 150.0, i);
	assert_false(nt_past_before(&past, &lesson, 3, &peer_deviation, &value));
	assert_true(nt_past_before(&past, &lesson, 6, &peer_deviation, &value));
	assert_true(peer_deviation == 0.01 && value == 100.0);
	nt_past_unlearn(&past, &lesson, 6);
	assert_int_equal(past.count, 5);
	for (uint64_t i = 20; i < 40; i++)
		nt_past_learn(&past, &lesson, -0.04, 100.0, i);
	assert_true(past.ready);
	assert_true(past.peer_deviation_centre == -0.04 && past.value_centre == 100.0);
	assert_true(nt_past_floor(&past, 1.0) == 0.0);
	past.peer_deviation_width = 0.05;
	past.peer_deviation_centre = 0.04;
	assert_true(nt_past_floor(&past, 1.0) > 0.025 && nt_past_floor(&past, 1.0) < 0.03);
	assert_true(nt_past_floor(&past, 0.005) == 0.035);
	past.peer_deviation_centre = 0.001;
	assert_true(nt_past_floor(&past, 1.0) == 0.0);
	nt_past_unlearn(&past, &lesson, 0);
	assert_true(past.ready);
	nt_past_learn(&past, &lesson, 9.0, 9.0, 50);
	assert_true(past.peer_deviation_centre == 0.001);
}

/* Values of 100 up to the window `from`, then `after`; the unit of the first is 8, then `unit`. */
static struct nt_past stepped(uint64_t from, double after, double unit, uint64_t *ret_frame)
{
	struct nt_past past = {.count = 0};
	struct nt_lesson lesson;

	*ret_frame = 0;
	for (uint64_t i = 1; i <= NT_PAST_WINDOWS; i++) {
		const double value = i < from ? 100.0 + (double)(i % 2) : after;
		const uint64_t frame =
			nt_past_learn_first(&past, &lesson, i < from ? 8.0 : unit, value, 10 * i);

		assert_true(i == NT_PAST_WINDOWS || !frame);
		*ret_frame = frame;
	}
	assert_true(past.ready && past.count == NT_PAST_WINDOWS);
	assert_int_equal(nt_past_learn_first(&past, &lesson, 8.0, 100.0, 300), 0);
	return past;
}

/* What falls behind in most of the windows from the start on is normal in the others. */
static void the_normal_windows_of_a_rank_that_comes_and_goes_are_its_past(void **state)
{
	struct nt_past past = {0}, found;
	struct nt_lesson lesson;

	(void)state;
	for (uint32_t i = 0; i < NT_PAST_WINDOWS; i++) {
		const bool is_slow = i % 10 > 2;
		const double more = 0.001 * (i % 3);

		if (i == 18) {
			assert_true(nt_past_so_far(&past, &lesson, &found));
			assert_true(found.value_centre < 101.0 && found.value_width < 0.01);
		}
		nt_past_learn(&past, &lesson, (is_slow ? 0.5 : 0.0) + more, is_slow ? 150.0 : 100.0,
			      i);
	}
	assert_true(past.peer_deviation_centre < 0.01 && past.peer_deviation_width < 0.01);
	assert_true(past.value_centre == 100.0 && past.value_width == 0.0);
	/* Fewer than five windows may be chance, and so may a small difference. */
	for (int i = 0; i < 2; i++) {
		past = (struct nt_past){0};
		for (uint32_t j = 0; j < NT_PAST_WINDOWS; j++)
			nt_past_learn(&past, &lesson,
				      i       ? j % 2 * 0.04
				      : j < 4 ? 0.0
					      : 0.5,
				      j % 2 ? 100.0 : 150.0, j);
		assert_true(past.peer_deviation_centre == (i ? 0.02 : 0.5));
	}
}

static void what_steps_up_while_it_is_learned_is_no_past(void **state)
{
	struct nt_past past;
	uint64_t frame;

	(void)state;
	past = stepped(6, 110.0, 8.0, &frame);
	assert_true(past.value_centre == 101.0 && past.value_width > 0.009);
	assert_int_equal(frame, 60);
	past = stepped(17, 110.0, 8.0, &frame);
	assert_true(past.value_centre < 102.0 && frame == 170);
	/* Too few windows of before, or of after; a warming up; another unit. */
	past = stepped(5, 110.0, 8.0, &frame);
	assert_true(past.value_centre == 110.0 && frame == 0);
	past = stepped(18, 110.0, 8.0, &frame);
	assert_true(past.value_centre < 102.0 && frame == 0);
	past = stepped(6, 106.0, 8.0, &frame);
	assert_true(past.value_centre == 106.0 && frame == 0);
	past = stepped(6, 800.0, 64.0, &frame);
	assert_true(past.value_centre == 800.0 && frame == 0);
}

/* Centre of the past of these windows, as far as it goes; 0: there is none. */
static double so_far(const double *value, uint32_t count, uint32_t *ret_windows)
{
	struct nt_past past = {.count = 0}, found = {.count = 0};
	struct nt_lesson lesson;

	for (uint32_t i = 0; i < count; i++)
		nt_past_learn(&past, &lesson, 0.01, value[i], i);
	if (!nt_past_so_far(&past, &lesson, &found))
		return 0.0;
	*ret_windows = found.count;
	assert_true(found.value_width <= 0.02);
	return found.value_centre;
}

static void the_first_long_steps_are_no_part_of_a_short_past(void **state)
{
	static const double one[] = {300, 100, 101, 100, 101, 100, 101, 100};
	static const double three[] = {300, 200, 150, 100, 101, 100, 101, 100};
	static const double none[] = {102, 101, 100, 100, 101, 100, 101, 100};
	uint32_t windows = 0;

	(void)state;
	assert_true(so_far(one, 8, &windows) == 100.0 && windows == 7);
	assert_true(so_far(three, 8, &windows) == 100.0 && windows == 5);
	assert_true(so_far(none, 8, &windows) == 100.5 && windows == 8);
	assert_true(so_far(none, 4, &windows) == 0.0);
}

static void what_follows_a_step_up_is_no_part_of_a_short_past(void **state)
{
	static const double stepped[] = {100, 101, 100, 120, 150, 150, 150};
	static const double late[] = {100, 101, 100, 101, 150, 150};
	static const double both[] = {300, 200, 150, 100, 101, 100, 101, 100, 150, 150, 150, 150};
	struct nt_past past = {.count = 0}, found;
	struct nt_lesson lesson;
	uint32_t windows = 0;

	(void)state;
	assert_true(so_far(stepped, 7, &windows) == 100.0 && windows == 3);
	assert_true(so_far(both, 12, &windows) == 100.0 && windows == 5);
	/* Two windows after it may be an evaluation: the width says that nothing is certain. */
	for (uint32_t i = 0; i < 6; i++)
		nt_past_learn(&past, &lesson, 0.01, late[i], i);
	assert_true(nt_past_so_far(&past, &lesson, &found));
	assert_true(found.count == 6 && found.value_width > 0.4);
}

static void rings_remember_the_last_values(void **state)
{
	struct nt_ring ring = {.count = 0};

	(void)state;
	assert_true(nt_ring_median(&ring) == 0.0 && nt_ring_last(&ring) == 0.0);
	for (int i = 0; i < 100; i++)
		nt_ring_add(&ring, 5, i);
	assert_int_equal(ring.count, 5);
	assert_true(nt_ring_median(&ring) == 97.0 && nt_ring_last(&ring) == 99.0);
	nt_ring_add(&ring, 1000, 0.0);
	assert_true(ring.next <= NT_RING_MAX);
}

static bool recovers(double cost, uint64_t window_ns, uint32_t windows)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_recovery recovery = {.buckets = 0};
	uint64_t now = 1000;

	for (int i = 0; i < 500; i++, now += window_ns)
		nt_recovery_add(&recovery, &rules, now, now + window_ns, 0.3, 0.0);
	for (uint32_t i = 0; i < windows; i++, now += window_ns)
		nt_recovery_add(&recovery, &rules, now, now + window_ns, cost, 0.0);
	return nt_recovery_is_over(&recovery, &rules, now, 0);
}

static void half_the_floor_is_still_too_much(void **state)
{
	/* Numbers that add up without rounding. */
	const struct nt_rules rules = {
		.size_floor = 0.25, .resolve_min_ns = 160, .resolve_windows = 16};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct nt_recovery recovery = {.buckets = 0};
		uint64_t now = 1000;

		for (int j = 0; j < 64; j++, now += 10)
			nt_recovery_add(&recovery, &rules, now, now + 10,
					i && j % 16 == 15 ? 0.0625 : 0.125, 0.0);
		assert_int_equal(nt_recovery_is_over(&recovery, &rules, now, 0), i);
		/* A window of half of that is not made up for by the next one. */
		assert_true(recovery.bad_ns == (i ? 1000 + 15 * 10 : now));
	}
}

static void recovery_takes_a_minute_and_twenty_windows(void **state)
{
	(void)state;
	assert_false(recovers(0.0, SIM_SECOND / 2, 110));
	assert_true(recovers(0.0, SIM_SECOND / 2, 130));
	assert_false(recovers(0.0, 10ull * SIM_SECOND, 18));
	assert_true(recovers(0.0, 10ull * SIM_SECOND, 21));
	assert_false(recovers(0.0, SIM_MS, 50000));
	assert_true(recovers(0.0, SIM_MS, 66000));
	assert_true(recovers(0.014, SIM_SECOND, 70));
	assert_false(recovers(0.016, SIM_SECOND, 500));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sum_clips_leaks_and_remembers_its_onset),
		cmocka_unit_test(
			the_threshold_is_about_ten_at_eight_ranks_and_fourteen_at_sixteen_thousand),
		cmocka_unit_test(a_few_wild_windows_do_not_last),
		cmocka_unit_test(a_past_is_what_was_before_the_fault),
		cmocka_unit_test(the_normal_windows_of_a_rank_that_comes_and_goes_are_its_past),
		cmocka_unit_test(what_steps_up_while_it_is_learned_is_no_past),
		cmocka_unit_test(the_first_long_steps_are_no_part_of_a_short_past),
		cmocka_unit_test(what_follows_a_step_up_is_no_part_of_a_short_past),
		cmocka_unit_test(rings_remember_the_last_values),
		cmocka_unit_test(half_the_floor_is_still_too_much),
		cmocka_unit_test(recovery_takes_a_minute_and_twenty_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
