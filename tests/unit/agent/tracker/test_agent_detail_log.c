/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log of single calls of a rank: rates, probabilities, and what is lost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/tracker/detail_log.h"
#include "common/system/clock.h"

enum {
	RATE = 4000,
	TRIALS = 400,
};

static uint64_t state = 1;

static uint32_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (uint32_t)((z ^ z >> 31) >> 32);
}

static struct nt_detail_call call_of(enum nt_detail_kind kind, uint64_t entry_ns)
{
	return (struct nt_detail_call){
		.kind = kind, .call = "call", .entry_boot_ns = entry_ns, .probability = 1};
}

static struct nt_detail fill(struct nt_detail_log *log, uint64_t now_ns)
{
	struct nt_detail detail = {0};

	nt_detail_log_fill(log, now_ns, &detail);
	return detail;
}

static void below_the_rate_each_call_is_taken_in_order_of_its_entry(void **unused)
{
	struct nt_detail_log *log = nt_detail_log_new(NT_SECOND);
	struct nt_detail detail;
	uint64_t words[NT_DETAIL_LOG_WORDS + 1] = {1, 2, 3, 4, 5};

	(void)unused;
	assert_false(nt_detail_log_has_news(log));
	for (uint64_t i = 0; i < 100; i++) {
		struct nt_detail_call call = call_of(NT_DETAIL_KIND_COMM, NT_SECOND + 100 - i);

		call.word = words;
		call.words = NT_DETAIL_LOG_WORDS + 1;
		assert_int_equal(nt_detail_log_draw(log, RATE, &call, NT_SECOND, draw()),
				 NT_DETAIL_LOG_TAKEN);
	}
	words[0] = 9; /* copied */
	detail = fill(log, 2 * NT_SECOND);
	assert_int_equal(detail.start_boot_ns, NT_SECOND);
	assert_int_equal(detail.end_boot_ns, 2 * NT_SECOND);
	assert_int_equal(detail.records, 100);
	for (size_t i = 0; i < detail.records; i++) {
		assert_int_equal(detail.record[i].entry_boot_ns, NT_SECOND + 1 + i);
		assert_true(detail.record[i].probability == 1);
		assert_int_equal(detail.record[i].words, NT_DETAIL_LOG_WORDS);
		assert_int_equal(detail.record[i].word[0], 1);
	}
	assert_int_equal(detail.counts, 1);
	assert_int_equal(detail.count[0].kind, NT_DETAIL_KIND_COMM);
	assert_int_equal(detail.count[0].seen, 100);
	assert_int_equal(detail.count[0].lost, 0);
	nt_detail_log_clear(log, 2 * NT_SECOND);
	assert_false(nt_detail_log_has_news(log));
	assert_int_equal(nt_detail_log_start_ns(log), 2 * NT_SECOND);
	nt_detail_log_free(log);
}

static void a_full_log_loses_calls_and_counts_them(void **unused)
{
	struct nt_detail_log *log = nt_detail_log_new(0);
	struct nt_detail detail;

	(void)unused;
	for (int i = 0; i < NT_DETAIL_LOG_RECORDS; i++) {
		struct nt_detail_call call = call_of(NT_DETAIL_KIND_LAUNCH, 1);

		assert_false(nt_detail_log_is_full(log));
		call.probability = 0.5;
		assert_int_equal(nt_detail_log_take(log, &call), NT_DETAIL_LOG_TAKEN);
	}
	assert_true(nt_detail_log_is_full(log));
	for (int i = 0; i < 10; i++) {
		struct nt_detail_call call = call_of(NT_DETAIL_KIND_LAUNCH, 1);

		call.probability = 0.25;
		assert_int_equal(nt_detail_log_take(log, &call), NT_DETAIL_LOG_LOST);
	}
	detail = fill(log, 1);
	assert_int_equal(detail.records, NT_DETAIL_LOG_RECORDS);
	assert_int_equal(detail.counts, 1);
	assert_int_equal(detail.count[0].lost, 40);
	nt_detail_log_clear(log, 1);
	assert_false(nt_detail_log_is_full(log));
	nt_detail_log_free(log);
}

static void a_call_of_no_kind_or_without_a_probability_is_not_taken(void **unused)
{
	struct nt_detail_log *log = nt_detail_log_new(0);
	struct nt_detail_call call = call_of((enum nt_detail_kind)NT_DETAIL_KIND_END, 1);

	(void)unused;
	assert_int_equal(nt_detail_log_take(log, &call), NT_DETAIL_LOG_LOST);
	assert_int_equal(nt_detail_log_draw(log, RATE, &call, 0, 0), NT_DETAIL_LOG_LOST);
	call = call_of(NT_DETAIL_KIND_NET, 1);
	call.probability = 0;
	assert_int_equal(nt_detail_log_take(log, &call), NT_DETAIL_LOG_LOST);
	call.probability = NAN;
	assert_int_equal(nt_detail_log_draw(log, RATE, &call, 0, 0), NT_DETAIL_LOG_LOST);
	assert_false(nt_detail_log_has_news(log));
	nt_detail_log_free(log);
}

static void the_parts_of_all_kinds_are_the_rate(void **unused)
{
	const double second = (double)(1ULL << 30) / 1e9, part = (double)(1ULL << 27) / 1e9;
	uint32_t sum = 0;
	double kernel = 0;

	(void)unused;
	for (int kind = 0; kind < NT_DETAIL_KIND_END; kind++)
		sum += nt_detail_log_most(32000, (enum nt_detail_kind)kind);
	assert_true(sum <= 32000 * second && sum >= 32000 * second - NT_DETAIL_KIND_END);
	assert_int_equal(nt_detail_log_most(32000, NT_DETAIL_KIND_UNKNOWN), 0);
	assert_int_equal(nt_detail_log_most(0, NT_DETAIL_KIND_COMM), 0);
	assert_int_equal(nt_detail_log_most(1, NT_DETAIL_KIND_NET), 1); /* none has nothing */
	for (int class = 0; class < NT_DETAIL_CLASSES; class ++)
		kernel += nt_detail_log_kernel_most(32000, class);
	assert_true(kernel <= 18000 * part && kernel >= 18000 * part - NT_DETAIL_CLASSES);
}

/* A rate of calls that jumps between periods: idle, steady, and a storm. */
static uint32_t calls_in(int period)
{
	static const uint32_t calls[] = {0, 50, 900, 900, 30000, 1000, 0, 200000, 100, 3000};

	return calls[period % (int)(sizeof(calls) / sizeof(calls[0]))];
}

/*
 * The estimate of each run is unbiased: over many runs its mean is the number of calls, within the
 * error of the mean. No period has more than twice its aim.
 */
static void weighted_by_its_probability_a_sample_is_unbiased(void **unused)
{
	const uint32_t most = 500;
	double sum = 0, squares = 0, mean, error;
	uint64_t calls = 0;

	(void)unused;
	for (int period = 0; period < 10; period++)
		calls += calls_in(period);
	for (int trial = 0; trial < TRIALS; trial++) {
		struct nt_detail_rate rate = {0};
		double estimate = 0;

		for (int period = 0; period < 10; period++) {
			uint32_t taken = 0;

			for (uint32_t i = 0; i < calls_in(period); i++) {
				uint32_t threshold = 0;

				if (nt_detail_draw(&rate, (uint64_t)period + 1, most, draw(),
						   &threshold) != NT_DETAIL_TAKE)
					continue;
				estimate += 4294967296.0 / ((double)threshold + 1);
				taken++;
			}
			assert_true(taken <= 2 * most);
			if (calls_in(period) <= most)
				assert_true(taken == calls_in(period) || period == 8);
		}
		estimate += (double)rate.lost;
		assert_int_equal(rate.seen, calls);
		sum += estimate;
		squares += estimate * estimate;
	}
	mean = sum / TRIALS;
	error = sqrt((squares / TRIALS - mean * mean) / TRIALS);
	fprintf(stderr, "# %llu calls, mean estimate %.0f, its error %.0f\n",
		(unsigned long long)calls, mean, error);
	assert_true(fabs(mean - (double)calls) < 4 * error);
	assert_true(error < 0.01 * (double)calls);
}

static void a_constant_rate_is_met(void **unused)
{
	struct nt_detail_rate rate = {0};
	const uint32_t most = 1000;
	uint64_t taken = 0;

	(void)unused;
	for (uint64_t period = 1; period <= 100; period++) {
		for (int i = 0; i < 25000; i++) {
			uint32_t threshold = 0;

			if (nt_detail_draw(&rate, period, most, draw(), &threshold) !=
			    NT_DETAIL_TAKE)
				continue;
			taken++;
			/* The first period does not know the rate; others may be halved at their end. */
			if (period > 1)
				assert_true(threshold <= (1ULL << 32) / 25);
		}
	}
	assert_true(taken > 93 * most && taken < 102 * most);
	assert_int_equal(rate.lost, 0);
}

static void without_an_aim_all_calls_are_lost(void **unused)
{
	struct nt_detail_rate rate = {0};
	uint32_t threshold;

	(void)unused;
	for (int i = 0; i < 100; i++)
		assert_int_equal(nt_detail_draw(&rate, 1, 0, 0, &threshold), NT_DETAIL_LOSE);
	assert_int_equal(rate.seen, 100);
	assert_int_equal(rate.lost, 100);
}

static void a_new_aim_within_a_period_scales_the_probability(void **unused)
{
	struct nt_detail_rate rate = {0};
	uint32_t threshold = 0;

	(void)unused;
	for (int i = 0; i < 10000; i++)
		(void)nt_detail_draw(&rate, 1, 100, draw(), &threshold);
	assert_true(rate.threshold < NT_DETAIL_EACH / 10);
	assert_int_equal(nt_detail_draw(&rate, 1, INT32_MAX, UINT32_MAX, &threshold),
			 NT_DETAIL_TAKE);
	assert_int_equal(threshold, NT_DETAIL_EACH);
	(void)nt_detail_draw(&rate, 1, 1, 0, &threshold);
	assert_true(rate.threshold < NT_DETAIL_EACH / 1000);
}

static void counts_of_the_kernel_side_are_added_to_their_kinds(void **unused)
{
	struct nt_detail_log *log = nt_detail_log_new(0);
	struct nt_detail_call call = call_of(NT_DETAIL_KIND_SYNC, 5);
	struct nt_detail detail;

	(void)unused;
	(void)nt_detail_log_draw(log, RATE, &call, 5, 0);
	nt_detail_log_count(log, NT_DETAIL_SYNCS, 10, 3);
	nt_detail_log_count(log, NT_DETAIL_LAUNCHES, 1000, 0);
	detail = fill(log, 6);
	assert_int_equal(detail.counts, 2);
	assert_int_equal(detail.count[0].kind, NT_DETAIL_KIND_SYNC);
	assert_int_equal(detail.count[0].seen, 11);
	assert_int_equal(detail.count[0].lost, 3);
	assert_int_equal(detail.count[1].kind, NT_DETAIL_KIND_LAUNCH);
	assert_int_equal(detail.count[1].seen, 1000);
	nt_detail_log_clear(log, 6);
	nt_detail_log_count(log, NT_DETAIL_LAUNCHES, 1, 1);
	detail = fill(log, 7);
	assert_int_equal(detail.counts, 1);
	assert_int_equal(detail.count[0].seen, 1);
	assert_int_equal(detail.count[0].lost, 1);
	nt_detail_log_free(log);
}

/* Context switches in slices of a tenth of the time: each stands for ten, taken, passed over or lost. */
static void a_call_observed_with_a_probability_counts_as_several(void **unused)
{
	struct nt_detail_log *log = nt_detail_log_new(0);
	struct nt_detail_call call = call_of(NT_DETAIL_KIND_SCHED, 5);
	double estimate = 0.0;
	uint64_t seen = 0;

	(void)unused;
	call.probability = 0.1;
	for (int second = 0; second < 50; second++) {
		struct nt_detail detail;

		for (int i = 0; i < 1000; i++)
			(void)nt_detail_log_draw(log, RATE, &call, second * 2 * NT_SECOND, draw());
		detail = fill(log, 6);
		for (size_t i = 0; i < detail.records; i++)
			estimate += 1 / detail.record[i].probability;
		assert_int_equal(detail.counts, 1);
		seen += detail.count[0].seen;
		estimate += (double)detail.count[0].lost;
		nt_detail_log_clear(log, 6);
	}
	assert_in_range(seen, 499900, 500100);
	assert_true(estimate > 0.8 * (double)seen && estimate < 1.2 * (double)seen);
	nt_detail_log_free(log);
	/* Without a rate all are lost. */
	log = nt_detail_log_new(0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(nt_detail_log_draw(log, 0, &call, 0, 0), NT_DETAIL_LOG_LOST);
	assert_in_range(fill(log, 6).count[0].seen, 999, 1000);
	assert_in_range(fill(log, 6).count[0].lost, 999, 1000);
	nt_detail_log_free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_rate_each_call_is_taken_in_order_of_its_entry),
		cmocka_unit_test(a_full_log_loses_calls_and_counts_them),
		cmocka_unit_test(a_call_of_no_kind_or_without_a_probability_is_not_taken),
		cmocka_unit_test(the_parts_of_all_kinds_are_the_rate),
		cmocka_unit_test(weighted_by_its_probability_a_sample_is_unbiased),
		cmocka_unit_test(a_constant_rate_is_met),
		cmocka_unit_test(without_an_aim_all_calls_are_lost),
		cmocka_unit_test(a_new_aim_within_a_period_scales_the_probability),
		cmocka_unit_test(counts_of_the_kernel_side_are_added_to_their_kinds),
		cmocka_unit_test(a_call_observed_with_a_probability_counts_as_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
