/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "agent/steps/completion.h"
#include "common/system/clock.h"

#define MS     NT_MILLISECOND
#define STREAM 0x5000ULL

static double draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

/* ---- single queries ------------------------------------------------------------------------- */

enum {
	START1 = 1,
	END1,
	START2,
	END2,
	USER,
};

static struct nt_completion *with_two_collectives(void)
{
	struct nt_completion *completion = NULL;

	assert_int_equal(nt_completion_new(&completion), 0);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, USER, STREAM); /* the end of that */
	nt_completion_record(completion, START1, STREAM);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, END1, STREAM);
	nt_completion_record(completion, START2, STREAM);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, END2, STREAM);
	return completion;
}

static void check(const struct nt_completion *completion, uint64_t inside, uint64_t outside,
		  uint64_t unproved)
{
	const struct nt_completion_stats *stats = nt_completion_stats(completion);

	assert_int_equal(stats->inside, inside);
	assert_int_equal(stats->outside, outside);
	assert_int_equal(stats->unproved, unproved);
}

static void the_oldest_pending_event_shows_where_the_device_is(void **state)
{
	struct nt_completion *completion = with_two_collectives();

	(void)state;
	nt_completion_query(completion, START1, false, 1); /* the end before is not known */
	check(completion, 0, 0, 1);
	nt_completion_query(completion, USER, true, 2);
	nt_completion_query(completion, START1, false, 3);
	check(completion, 0, 1, 1);
	nt_completion_query(completion, END1, false, 4); /* not the oldest */
	check(completion, 0, 1, 2);
	nt_completion_query(completion, START1, true, 5);
	nt_completion_query(completion, END1, false, 6);
	check(completion, 1, 1, 2);
	/* What is complete says the same of all before it. */
	nt_completion_query(completion, START2, true, 7);
	nt_completion_query(completion, END2, false, 8);
	check(completion, 2, 1, 2);
	nt_completion_query(completion, END1, false, 9); /* an event that was not recorded */
	check(completion, 2, 1, 3);
	nt_completion_free(completion);
}

static void an_event_that_is_recorded_again_is_pending_again(void **state)
{
	struct nt_completion *completion = with_two_collectives();

	(void)state;
	nt_completion_query(completion, END1, true, 1);
	nt_completion_query(completion, END2, true, 2);
	nt_completion_record(completion, START1, STREAM);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, END1, STREAM);
	nt_completion_query(completion, START1, false, 3);
	check(completion, 0, 1, 0);
	nt_completion_query(completion, START1, true, 4);
	nt_completion_query(completion, END1, false, 5);
	check(completion, 1, 1, 0);
	nt_completion_free(completion);
}

static void events_of_other_streams_are_nothing(void **state)
{
	struct nt_completion *completion = NULL;

	(void)state;
	assert_int_equal(nt_completion_new(&completion), 0);
	nt_completion_record(completion, 1, STREAM); /* before any collective */
	nt_completion_query(completion, 1, false, 1);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, 2, STREAM + 1);
	nt_completion_query(completion, 2, false, 2);
	check(completion, 0, 0, 2);
	nt_completion_free(completion);
}

/* ---- batches -------------------------------------------------------------------------------- */

enum {
	STEP_MS = 128,
};

/* Steps of 128 ms with a query in each place, outside in the first `outside` of them. */
static void steps_of(struct nt_completion *completion, uint32_t first, uint32_t steps,
		     uint32_t outside)
{
	for (uint32_t i = first; i < first + steps; i++) {
		const uint64_t begin = NT_SECOND + i * STEP_MS * MS;

		nt_completion_query(completion, END2, true, begin);
		for (uint32_t place = 0; place < STEP_MS; place++) {
			if (!place || place == outside) {
				nt_completion_record(completion, START1, STREAM);
				nt_completion_collective(completion, STREAM);
				nt_completion_record(completion, END2, STREAM);
			}
			if (place == outside)
				nt_completion_query(completion, START1, true, begin + place * MS);
			nt_completion_query(completion, place < outside ? START1 : END2, false,
					    begin + place * MS + MS / 2);
			if (place + 1 == outside)
				nt_completion_query(completion, END2, true, begin + place * MS);
		}
		nt_completion_step(completion, begin, begin + STEP_MS * MS);
	}
}

static struct nt_completion *with_end(void)
{
	struct nt_completion *completion = NULL;

	assert_int_equal(nt_completion_new(&completion), 0);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, END2, STREAM);
	return completion;
}

static uint64_t own_of(const struct nt_completion *completion, uint64_t now_ns)
{
	uint64_t own_ns = 0;

	return nt_completion_own(completion, now_ns, 1, STEP_MS * MS, &own_ns) ? own_ns : 0;
}

static void own_work_is_the_time_outside(void **state)
{
	struct nt_completion *completion = with_end();
	uint64_t end = NT_SECOND + 48 * STEP_MS * MS;

	(void)state;
	steps_of(completion, 0, 47, 96);
	assert_int_equal(own_of(completion, end),
			 0); /* each batch is 2 s: the third has not ended */
	steps_of(completion, 47, 1, 96);
	assert_in_range(own_of(completion, end), 95 * MS, 97 * MS);
	/* It is kept until the next batch, or for ten minutes. */
	assert_in_range(own_of(completion, end + 10 * NT_MINUTE), 95 * MS, 97 * MS);
	assert_int_equal(own_of(completion, end + 10 * NT_MINUTE + 1), 0);
	/* One of three may be wrong. */
	steps_of(completion, 48, 16, 64);
	assert_in_range(own_of(completion, end), 95 * MS, 97 * MS);
	steps_of(completion, 64, 16, 64);
	assert_in_range(own_of(completion, end), 63 * MS, 65 * MS);
	nt_completion_reset(completion);
	assert_int_equal(own_of(completion, end), 0);
	nt_completion_free(completion);
}

/* What is longer is not known, so that neither has a value. */
static void windows_with_other_steps_have_none(void **state)
{
	struct nt_completion *completion = with_end();
	const uint64_t end = NT_SECOND + 48 * STEP_MS * MS;
	uint64_t own_ns = 0;

	(void)state;
	steps_of(completion, 0, 48, 96);
	assert_true(nt_completion_own(completion, end, 4, 4 * STEP_MS * MS, &own_ns));
	assert_in_range(own_ns, 4 * 95 * MS, 4 * 97 * MS);
	assert_true(nt_completion_own(completion, end, 100, 104 * STEP_MS * MS, &own_ns));
	assert_in_range(own_ns, 104 * 95 * MS, 104 * 97 * MS);
	assert_false(nt_completion_own(completion, end, 100, 106 * STEP_MS * MS, &own_ns));
	assert_false(nt_completion_own(completion, end, 100, 94 * STEP_MS * MS, &own_ns));
	assert_false(nt_completion_own(completion, end, 0, STEP_MS * MS, &own_ns));
	nt_completion_free(completion);
}

/* One that takes long is none: the values stay. */
static void values_are_of_steps_of_one_length(void **state)
{
	struct nt_completion *completion = with_end();
	uint64_t ns = NT_SECOND + 50 * STEP_MS * MS;

	(void)state;
	steps_of(completion, 0, 50, 96);
	nt_completion_step(completion, ns, ns + 10 * STEP_MS * MS);
	ns += 10 * STEP_MS * MS;
	assert_true(own_of(completion, ns) > 0);
	for (int i = 0; i < 40; i++, ns += 200 * MS)
		nt_completion_step(completion, ns, ns + 200 * MS);
	assert_int_equal(own_of(completion, ns), 0);
	nt_completion_free(completion);
}

static void collectives_on_two_streams_are_not_measured(void **state)
{
	struct nt_completion *completion = with_end();

	(void)state;
	for (uint32_t i = 0; i < 64; i++) {
		steps_of(completion, i, 1, 96);
		nt_completion_collective(completion, STREAM + 1 + i % 2);
		nt_completion_collective(completion, STREAM);
		nt_completion_record(completion, END2, STREAM);
	}
	assert_int_equal(nt_completion_stats(completion)->measured, 0);
	assert_true(nt_completion_stats(completion)->given_up > 0);
	/* A single one costs one batch. */
	steps_of(completion, 64, 32, 96);
	assert_true(nt_completion_stats(completion)->measured > 0);
	nt_completion_free(completion);
}

/* A host that enqueues in bursts: a place of its step is no place of the device's. */
static void hosts_with_uneven_steps_are_not_measured(void **state)
{
	struct nt_completion *completion = with_end();

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		steps_of(completion, 2 * i, 1, 96);
		nt_completion_step(completion, NT_SECOND + (2 * i + 1) * STEP_MS * MS,
				   NT_SECOND + (2 * i + 1) * STEP_MS * MS + 20 * MS);
	}
	assert_int_equal(nt_completion_stats(completion)->measured, 0);
	nt_completion_free(completion);
}

/* ---- caps ----------------------------------------------------------------------------------- */

static void marks_over_the_cap_make_the_batch_void(void **state)
{
	struct nt_completion *completion = with_end();

	(void)state;
	for (uint64_t i = 1; i < NT_COMPLETION_MARKS - 1; i++)
		nt_completion_record(completion, i, STREAM);
	assert_int_equal(nt_completion_stats(completion)->marks_over_cap, 0);
	nt_completion_record(completion, 1, STREAM);
	assert_int_equal(nt_completion_stats(completion)->marks_over_cap, 1);
	nt_completion_collective(completion, STREAM);
	nt_completion_record(completion, END2, STREAM);
	steps_of(completion, 0, 16, 96);
	assert_int_equal(nt_completion_stats(completion)->measured, 0);
	assert_int_equal(nt_completion_stats(completion)->given_up, 1);
	steps_of(completion, 16, 16, 96);
	assert_int_equal(nt_completion_stats(completion)->measured, 1);
	nt_completion_free(completion);
}

static void an_event_is_searched_among_the_oldest(void **state)
{
	struct nt_completion *completion = with_end();

	(void)state;
	for (uint64_t i = 1; i <= NT_COMPLETION_LOOK; i++)
		nt_completion_record(completion, 1000 + i, STREAM);
	/* The first of the look is END2. */
	nt_completion_query(completion, 1000 + NT_COMPLETION_LOOK, true, 1);
	check(completion, 0, 0, 1);
	nt_completion_query(completion, 1000 + NT_COMPLETION_LOOK - 1, true, 1);
	nt_completion_query(completion, 1000 + NT_COMPLETION_LOOK, true, 1);
	check(completion, 0, 0, 1);
	nt_completion_free(completion);
}

static void of_too_many_queries_every_other_is_dropped(void **state)
{
	struct nt_completion *completion = with_two_collectives();

	(void)state;
	nt_completion_query(completion, USER, true, 1);
	for (uint64_t i = 0; i < NT_COMPLETION_QUERIES; i++)
		nt_completion_query(completion, START1, false, NT_SECOND + i);
	assert_int_equal(nt_completion_stats(completion)->queries_over_cap, 0);
	nt_completion_query(completion, START1, false, 2 * NT_SECOND);
	assert_int_equal(nt_completion_stats(completion)->queries_over_cap,
			 NT_COMPLETION_QUERIES / 2);
	nt_completion_free(completion);
}

/* Handles, order and times are the program's own. */
static void what_a_process_makes_up_does_no_harm(void **state)
{
	struct nt_completion *completion = NULL;
	uint64_t seed = 7, ns = NT_SECOND;

	(void)state;
	assert_int_equal(nt_completion_new(&completion), 0);
	for (int i = 0; i < 300000; i++) {
		const uint64_t value = (uint64_t)(draw(&seed) * 16);
		uint64_t own_ns;

		switch ((int)(draw(&seed) * 6)) {
		case 0:
			nt_completion_collective(completion, STREAM + (value == 0));
			break;
		case 1:
			nt_completion_record(completion, value, STREAM + (value == 1));
			break;
		case 2:
			nt_completion_query(completion, value, true, value ? ns : UINT64_MAX);
			break;
		case 3:
			nt_completion_step(completion, ns, ns + value * MS);
			ns += value * MS;
			break;
		case 4:
			if (value == 3 && draw(&seed) < 0.01)
				nt_completion_reset(completion);
			if (nt_completion_own(completion, ns, 2, value * MS, &own_ns))
				assert_true(own_ns <= value * MS);
			break;
		default:
			nt_completion_query(completion, value, false,
					    value ? ns + value * MS : value);
		}
	}
	nt_completion_step(completion, 0, UINT64_MAX);
	nt_completion_step(completion, UINT64_MAX, 0);
	nt_completion_free(completion);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_pending_event_shows_where_the_device_is),
		cmocka_unit_test(an_event_that_is_recorded_again_is_pending_again),
		cmocka_unit_test(events_of_other_streams_are_nothing),
		cmocka_unit_test(own_work_is_the_time_outside),
		cmocka_unit_test(windows_with_other_steps_have_none),
		cmocka_unit_test(values_are_of_steps_of_one_length),
		cmocka_unit_test(collectives_on_two_streams_are_not_measured),
		cmocka_unit_test(hosts_with_uneven_steps_are_not_measured),
		cmocka_unit_test(marks_over_the_cap_make_the_batch_void),
		cmocka_unit_test(an_event_is_searched_among_the_oldest),
		cmocka_unit_test(of_too_many_queries_every_other_is_dropped),
		cmocka_unit_test(what_a_process_makes_up_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
