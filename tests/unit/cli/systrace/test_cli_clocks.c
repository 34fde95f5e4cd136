/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The clocks of ranks, from the ends of their collectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/readers/trace.h"
#include "cli/systrace/clocks.h"
#include "common/base/buf.h"
#include "tests/unit/cli/systrace_files.h"

enum {
	RANKS = 4,
	CALLS = 120,
};

static const uint64_t ms = 1000000, width_ns = 12000000; /* steps of 100 ms, about */

static struct nt_clocks_call call[RANKS][CALLS];

/* Ends of calls in pairs, each step a little longer or shorter than the last. */
static uint64_t end_of(size_t i, uint64_t jitter_ns)
{
	const uint64_t step = i / 2;

	return (1000 + step * 100 + (i & 1) * 30) * ms +
	       (step * step * 7919 % 101 % 13) * jitter_ns;
}

/* A member whose clock is that far ahead, and whose recording begins `late` calls later. */
static struct nt_clocks_member put(uint32_t rank, uint64_t group, int64_t ahead_ns, size_t late)
{
	for (size_t i = late; i < CALLS; i++)
		call[rank][i - late] = (struct nt_clocks_call){
			.end_ns = end_of(i, 100000) + (uint64_t)ahead_ns,
			.shape = 1 + (i & 1),
		};
	return (struct nt_clocks_member){group, rank, call[rank], CALLS - late};
}

static void equal_ends_give_the_distance_of_clocks(void **state)
{
	struct nt_clocks_member member[] = {put(0, 1, 0, 0), put(1, 1, 2000 * (int64_t)ms, 0),
					    put(2, 1, -570 * (int64_t)ms, 8), put(3, 1, 0, 37)};
	struct nt_clock clock[RANKS];

	(void)state;
	nt_clocks_find(member, 4, RANKS, 0, width_ns, clock);
	for (int i = 0; i < RANKS; i++)
		assert_true(clock[i].known);
	assert_int_equal(clock[1].ahead_ns, 2000 * (int64_t)ms);
	assert_int_equal(clock[2].ahead_ns, -570 * (int64_t)ms);
	assert_int_equal(clock[3].ahead_ns, 0);
}

/* Rank 3 shares no communicator with the reference, but one with rank 1. */
static void clocks_are_carried_from_one_communicator_to_the_next(void **state)
{
	struct nt_clocks_member member[] = {put(3, 1, 900 * (int64_t)ms, 0),
					    put(1, 1, 400 * (int64_t)ms, 0),
					    put(1, 2, 400 * (int64_t)ms, 0), put(0, 2, 0, 0)};
	struct nt_clock clock[RANKS];

	(void)state;
	nt_clocks_find(member, 4, RANKS, 0, width_ns, clock);
	assert_true(clock[3].known);
	assert_int_equal(clock[3].ahead_ns, 900 * (int64_t)ms);
	assert_false(clock[2].known);
}

/* Every order fits alike: the clocks need not differ by a whole number of steps. */
static void without_jitter_clocks_are_taken_to_differ_least(void **state)
{
	struct nt_clocks_member member[] = {put(0, 1, 0, 0), put(1, 1, 0, 0)};
	struct nt_clock clock[RANKS];

	(void)state;
	for (size_t i = 0; i < CALLS; i++) {
		call[0][i].end_ns = end_of(i, 0);
		call[1][i].end_ns = end_of(i, 0) + 220 * ms;
	}
	nt_clocks_find(member, 2, RANKS, 0, width_ns, clock);
	assert_true(clock[1].known);
	assert_int_equal(clock[1].ahead_ns, 20 * ms);
}

/* Rank 1 lost a call in the middle of its recording. */
static void a_lost_call_does_no_harm(void **state)
{
	struct nt_clocks_member member[] = {put(0, 1, 0, 0), put(1, 1, 2000 * (int64_t)ms, 0)};
	struct nt_clock clock[RANKS];

	(void)state;
	for (size_t i = CALLS / 2; i + 2 < CALLS; i++)
		call[1][i] = call[1][i + 2];
	member[1].calls -= 2;
	nt_clocks_find(member, 2, RANKS, 0, width_ns, clock);
	assert_true(clock[1].known);
	assert_int_equal(clock[1].ahead_ns, 2000 * (int64_t)ms);
}

/* Calls of other shapes, of other times, and too few of them. */
static void what_does_not_end_together_gives_no_clock(void **state)
{
	struct nt_clocks_member member[] = {put(0, 1, 0, 0), put(1, 1, 0, 0), put(2, 1, 0, 0),
					    put(3, 1, 0, CALLS - 7)};
	struct nt_clock clock[RANKS];

	(void)state;
	for (size_t i = 0; i < CALLS; i++) {
		call[1][i].shape = 3;
		call[2][i].end_ns = end_of(i, 100000) + i * i * 7919 % 61 * ms;
	}
	nt_clocks_find(member, 4, RANKS, 0, width_ns, clock);
	assert_true(clock[0].known);
	for (int i = 1; i < RANKS; i++)
		assert_false(clock[i].known);
}

/* Its recording begins 600 calls later: an order off by whole steps would fit, as time goes by evenly. */
static void equal_clocks_stay_however_late_a_recording_begins(void **state)
{
	enum {
		MANY = 1024,
		LATE = 600,
	};
	static struct nt_clocks_call many[2][MANY];
	struct nt_clocks_member member[] = {{1, 0, many[0], MANY}, {1, 1, many[1], MANY}};
	struct nt_clock clock[RANKS];

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		many[0][i] = (struct nt_clocks_call){end_of(i, 10000), 1 + (i & 1)};
		many[1][i] = (struct nt_clocks_call){end_of(i + LATE, 10000), 1 + (i & 1)};
	}
	nt_clocks_find(member, 2, RANKS, 0, width_ns, clock);
	assert_true(clock[1].known);
	assert_int_equal(clock[1].ahead_ns, 0);
}

/* The ends of one call are further apart than steps differ: the steadiest order proves nothing. */
static void ends_that_scatter_prove_no_other_clock(void **state)
{
	struct nt_clocks_member member[] = {put(0, 1, 0, 0), put(1, 1, 0, 0)};
	struct nt_clock clock[RANKS];

	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++) {
		uint64_t random = seed;

		for (size_t i = 0; i < CALLS; i++)
			for (int rank = 0; rank < 2; rank++) {
				random = random * 6364136223846793005U + 1442695040888963407U;
				call[rank][i].end_ns = end_of(i, 10000) + (random >> 32) % ms;
			}
		nt_clocks_find(member, 2, RANKS, 0, width_ns, clock);
		assert_true(clock[1].known && llabs(clock[1].ahead_ns) < 2 * (int64_t)ms);
	}
}

/* The file of a rank from a call on, whose clock is then at 100 ms. */
static void put_calls(int rank, size_t from)
{
	nt_autobuf struct nt_buf buf = {0};

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (size_t i = from; i < CALLS; i++) {
		const uint64_t end = end_of(i, ms) - end_of(from, ms) + 100 * ms;

		assert_int_equal(nt_buf_printf(&buf,
					       "16,%zu,1,%s,1,%" PRIu64
					       ",0,0,1,1\n32,%zu,1,,1,%" PRIu64 ",0,0,1,1\n",
					       i, i & 1 ? "comm:HcclAllReduce!tp!fp32!1" : GATHER,
					       end - 10 * ms, i, end),
				 0);
	}
	put_bytes(rank, buf.data, buf.len);
}

/* The reference had not been started when the other recording begins. */
static void a_clock_that_cannot_be_corrected_is_said(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const char *const paths[] = {path[0], path[1]};
	struct nt_trace_error error = {0};

	(void)state;
	put_calls(0, 20);
	put_calls(1, 0);
	if (nt_trace_read_systrace(paths, 2, &trace, &error) < 0)
		fail_msg("%s", error.text);
	assert_non_null(trace->remark);
	assert_non_null(
		strstr(trace->remark, "the clocks of 1 ranks (first: 1) were not corrected"));
	assert_null(strstr(trace->remark, "clocks corrected"));
	nt_trace_free(nt_take(trace));
	/* A clock that is behind can be. */
	put_calls(0, 0);
	put_calls(1, 20);
	if (nt_trace_read_systrace(paths, 2, &trace, &error) < 0)
		fail_msg("%s", error.text);
	assert_non_null(trace->remark);
	assert_non_null(strstr(trace->remark, "clocks corrected: those of 1 of 2 ranks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_ends_give_the_distance_of_clocks),
		cmocka_unit_test(clocks_are_carried_from_one_communicator_to_the_next),
		cmocka_unit_test(without_jitter_clocks_are_taken_to_differ_least),
		cmocka_unit_test(a_lost_call_does_no_harm),
		cmocka_unit_test(equal_clocks_stay_however_late_a_recording_begins),
		cmocka_unit_test(ends_that_scatter_prove_no_other_clock),
		cmocka_unit_test(what_does_not_end_together_gives_no_clock),
		cmocka_unit_test_teardown(a_clock_that_cannot_be_corrected_is_said, remove_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
