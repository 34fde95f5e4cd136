/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ten million records: in any order the figures add up, and each kernel has the time of its own call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/steps/gpu_records.h"
#include "common/system/clock.h"

enum {
	PID = 40,
	RECORDS = 10000000,
	/* Twice as many as calls are kept, so that some are replaced. */
	CORRELATIONS = 2 * NT_GPU_RECORDS_CALLS,
	CALL_NS = 1000, /* when that of correlation 0 was made; the next a nanosecond later */
	KERNEL_NS = 1000000,
};

struct sums {
	uint64_t records, kernels, malformed, intervals, last_number[2];
};

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void take(void *data, const struct nt_gpu_interval *interval)
{
	struct sums *sums = data;

	if (interval->start_ns - KERNEL_NS != interval->entry_ns - CALL_NS ||
	    interval->number <= sums->last_number[interval->communicates] ||
	    interval->end_ns != interval->start_ns + 5)
		fail_msg("interval %llu", (unsigned long long)interval->number);
	sums->last_number[interval->communicates] = interval->number;
	sums->intervals++;
}

static void take_any(void *data, const struct nt_gpu_interval *interval)
{
	struct sums *sums = data;

	if (interval->start_ns > interval->end_ns ||
	    interval->number <= sums->last_number[interval->communicates])
		fail_msg("interval %llu", (unsigned long long)interval->number);
	sums->last_number[interval->communicates] = interval->number;
	sums->intervals++;
}

/* Calls and kernels of correlations nearby, some of them malformed. */
static void put(struct nt_gpu_record *record, uint64_t around, uint64_t *seed, struct sums *sums)
{
	const uint64_t random = draw(seed);
	const uint32_t correlation = 1 + (uint32_t)((around + random % 512) % CORRELATIONS);
	const bool is_call = random & 1U << 20;

	*record = (struct nt_gpu_record){
		.start_ns = (is_call ? CALL_NS : KERNEL_NS) + correlation,
		.correlation = correlation,
		.stream = (uint32_t)random % 4,
		.kind = is_call ? NT_GPU_RECORD_LAUNCH : NT_GPU_RECORD_KERNEL,
	};
	record->end_ns = record->start_ns + 5;
	if (random >> 40 == 0)
		record->end_ns = 0;
	sums->malformed += random >> 40 == 0;
	sums->kernels += !is_call && random >> 40 != 0;
	sums->records++;
}

static void each_of_many_kernels_is_handed_out_or_lost(void **state)
{
	static struct nt_event_gpu event;
	nt_auto(nt_gpu_records) struct nt_gpu_records *records = NULL;
	const struct nt_gpu_records_stats *stats;
	uint64_t seed = 88172645463325252U;
	struct sums sums = {0};

	(void)state;
	assert_int_equal(nt_gpu_records_new(PID, false, &records), 0);
	event.h.entry_ns = NT_SECOND;
	event.number = 1;
	while (sums.records < RECORDS / 2) {
		event.records = 1 + draw(&seed) % NT_GPU_BATCH;
		for (uint32_t i = 0; i < event.records; i++)
			put(&event.record[i], sums.records / 8, &seed, &sums);
		nt_gpu_records_add(records, &event, take, &sums);
		event.number += event.records;
		event.h.entry_ns += NT_MILLISECOND;
	}
	/* What still waits is lost then. */
	event.h.entry_ns += 2 * NT_SECOND;
	event.records = 1;
	event.record[0] = (struct nt_gpu_record){.kind = NT_GPU_RECORD_COPY};
	nt_gpu_records_add(records, &event, take, &sums);
	stats = nt_gpu_records_stats(records);
	assert_int_equal(stats->records, sums.records + 1);
	assert_int_equal(stats->malformed, sums.malformed);
	assert_int_equal(stats->lost, 0);
	assert_int_equal(sums.intervals + stats->unmatched, sums.kernels);
	assert_true(sums.intervals > sums.kernels / 4 && stats->unmatched > 0);
}

/* All bits are random, but for most kinds. */
static void any_records_do_no_harm(void **state)
{
	static struct nt_event_gpu event;
	nt_auto(nt_gpu_records) struct nt_gpu_records *records = NULL;
	uint64_t seed = 362436069362436069U, kernels = 0, added = 0;
	const struct nt_gpu_records_stats *stats;
	struct sums sums = {0};

	(void)state;
	assert_int_equal(nt_gpu_records_new(PID, false, &records), 0);
	while (added < RECORDS / 2) {
		event.records = 1 + draw(&seed) % NT_GPU_BATCH;
		event.number = draw(&seed) >> draw(&seed) % 64;
		event.h.entry_ns = draw(&seed) >> draw(&seed) % 64;
		for (uint32_t i = 0; i < event.records; i++) {
			uint64_t *words = (uint64_t *)(void *)&event.record[i];

			for (int word = 0; word < 4; word++)
				words[word] = draw(&seed);
			words[0] >>= words[2] % 64;
			event.record[i].correlation %= 1U << (words[3] >> 59);
			if (words[3] >> 40 & 15)
				event.record[i].kind %= NT_GPU_RECORD_KIND_END + 1;
			kernels += event.record[i].kind == NT_GPU_RECORD_KERNEL;
		}
		nt_gpu_records_add(records, &event, take_any, &sums);
		added += event.records;
	}
	stats = nt_gpu_records_stats(records);
	assert_int_equal(stats->records, added);
	assert_in_range(stats->malformed, 1, added);
	assert_true(sums.intervals > 0 && sums.intervals + stats->unmatched <= kernels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_many_kernels_is_handed_out_or_lost),
		cmocka_unit_test(any_records_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
