/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/steps/gpu_records.h"
#include "common/system/clock.h"

#define MS NT_MILLISECOND

enum {
	PID = 40,
	MOST = 256,
};

struct taken {
	struct nt_gpu_records *records;
	struct nt_gpu_interval interval[MOST];
	uint32_t intervals;
	struct nt_event_gpu event;
	uint64_t number; /* of the last record */
};

static void take(void *data, const struct nt_gpu_interval *interval)
{
	struct taken *taken = data;

	assert_in_range(taken->intervals, 0, MOST - 1);
	taken->interval[taken->intervals++] = *interval;
}

static void start(struct taken *taken)
{
	memset(taken, 0, sizeof(*taken));
	assert_int_equal(nt_gpu_records_new(PID, false, &taken->records), 0);
}

static void put(struct taken *taken, enum nt_gpu_record_kind kind, uint32_t correlation,
		uint64_t start_ns, uint64_t end_ns)
{
	taken->event.record[taken->event.records++] = (struct nt_gpu_record){
		.start_ns = start_ns,
		.end_ns = end_ns,
		.correlation = correlation,
		.stream = 3,
		.kind = (uint16_t)kind,
	};
}

static void send(struct taken *taken, uint64_t now_ns)
{
	taken->event.h.entry_ns = now_ns;
	taken->event.number = taken->number + 1;
	taken->number += taken->event.records;
	nt_gpu_records_add(taken->records, &taken->event, take, taken);
	taken->event.records = 0;
}

static void a_kernel_has_the_time_of_its_call(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_OPEN, 0, 50 * MS, 50 * MS);
	put(&t, NT_GPU_RECORD_LAUNCH, 8, 100 * MS, 101 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 200 * MS, 250 * MS);
	put(&t, NT_GPU_RECORD_COMMUNICATION, 9, 250 * MS, 260 * MS);
	put(&t, NT_GPU_RECORD_COPY, 10, 250 * MS, 260 * MS);
	send(&t, 300 * MS);
	assert_int_equal(t.intervals, 1);
	assert_int_equal(t.interval[0].pid, PID);
	assert_int_equal(t.interval[0].kernels, 1);
	assert_int_equal(t.interval[0].number, 1);
	assert_int_equal(t.interval[0].entry_ns, 100 * MS);
	assert_int_equal(t.interval[0].start_ns, 200 * MS);
	assert_int_equal(t.interval[0].end_ns, 250 * MS);
	assert_int_equal(t.interval[0].stream, 3);
	assert_false(t.interval[0].communicates);
	assert_int_equal(nt_gpu_records_open_ns(t.records), 50 * MS);
	assert_int_equal(nt_gpu_records_stats(t.records)->records, 5);
	nt_gpu_records_free(t.records);
}

static void a_measurement_that_was_open_already_begins_with_its_first_call(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_KERNEL, 7, 90 * MS, 95 * MS);
	send(&t, 100 * MS);
	assert_int_equal(nt_gpu_records_open_ns(t.records), 0);
	put(&t, NT_GPU_RECORD_LAUNCH, 8, 100 * MS, 101 * MS);
	send(&t, 110 * MS);
	put(&t, NT_GPU_RECORD_LAUNCH, 9, 120 * MS, 121 * MS);
	send(&t, 130 * MS);
	assert_int_equal(nt_gpu_records_open_ns(t.records), 110 * MS);
	put(&t, NT_GPU_RECORD_OPEN, 0, 140 * MS, 140 * MS);
	send(&t, 150 * MS);
	assert_int_equal(nt_gpu_records_open_ns(t.records), 140 * MS);
	nt_gpu_records_free(t.records);
}

static void a_kernel_may_come_before_its_call(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 200 * MS, 250 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 9, 250 * MS, 260 * MS);
	send(&t, 300 * MS);
	assert_int_equal(t.intervals, 0);
	put(&t, NT_GPU_RECORD_LAUNCH, 9, 110 * MS, 111 * MS);
	send(&t, 310 * MS);
	assert_int_equal(t.intervals, 0); /* in order */
	put(&t, NT_GPU_RECORD_LAUNCH, 8, 100 * MS, 101 * MS);
	send(&t, 320 * MS);
	assert_int_equal(t.intervals, 2);
	assert_int_equal(t.interval[0].entry_ns, 100 * MS);
	assert_int_equal(t.interval[1].entry_ns, 110 * MS);
	nt_gpu_records_free(t.records);
}

static void a_kernel_without_its_call_is_lost(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_LAUNCH, 7, 90 * MS, 91 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 200 * MS, 250 * MS);
	put(&t, NT_GPU_RECORD_LAUNCH, 9, 110 * MS, 111 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 9, 250 * MS, 260 * MS);
	send(&t, 300 * MS);
	put(&t, NT_GPU_RECORD_LAUNCH, 10, 1200 * MS, 1201 * MS);
	send(&t, 1299 * MS);
	assert_int_equal(t.intervals, 0);
	put(&t, NT_GPU_RECORD_LAUNCH, 11, 1200 * MS, 1201 * MS);
	send(&t, 1300 * MS);
	assert_int_equal(t.intervals, 1);
	assert_int_equal(t.interval[0].number, 2); /* the gap says so */
	assert_int_equal(nt_gpu_records_stats(t.records)->unmatched, 1);
	nt_gpu_records_free(t.records);
}

/* It is of no step that is measured, and nothing waits for its call. */
static void a_kernel_that_was_enqueued_before_the_measurement_is_left_out(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_KERNEL, UINT32_MAX, 100 * MS, 110 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 7, 110 * MS, 120 * MS);
	put(&t, NT_GPU_RECORD_LAUNCH, 9, 105 * MS, 106 * MS);
	put(&t, NT_GPU_RECORD_LAUNCH, 8, 104 * MS, 106 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 120 * MS, 130 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 9, 130 * MS, 140 * MS);
	send(&t, 200 * MS);
	assert_int_equal(t.intervals, 0); /* the call of another thread may still come */
	put(&t, NT_GPU_RECORD_LAUNCH, 10, 390 * MS, 391 * MS);
	send(&t, 400 * MS);
	assert_int_equal(t.intervals, 2);
	assert_int_equal(t.interval[0].number, 1);
	assert_int_equal(nt_gpu_records_stats(t.records)->earlier, 2);
	assert_int_equal(nt_gpu_records_stats(t.records)->unmatched, 0);
	nt_gpu_records_free(t.records);
}

static void a_gap_in_the_records_is_one_in_the_intervals(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_LAUNCH, 8, 100 * MS, 101 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 200 * MS, 250 * MS);
	send(&t, 300 * MS);
	t.number += 7;
	put(&t, NT_GPU_RECORD_LAUNCH, 9, 100 * MS, 101 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 9, 200 * MS, 250 * MS);
	send(&t, 310 * MS);
	assert_int_equal(t.interval[1].number, 3);
	assert_int_equal(nt_gpu_records_stats(t.records)->lost, 7);
	/* A process may count as it likes. */
	t.number += 1ULL << 40;
	put(&t, NT_GPU_RECORD_LAUNCH, 10, 100 * MS, 101 * MS);
	send(&t, 315 * MS);
	assert_int_equal(nt_gpu_records_stats(t.records)->lost, 7);
	/* The count of the process begins anew. */
	t.number = 0;
	put(&t, NT_GPU_RECORD_LAUNCH, 10, 100 * MS, 101 * MS);
	send(&t, 320 * MS);
	assert_int_equal(nt_gpu_records_stats(t.records)->lost, 7);
	nt_gpu_records_free(t.records);
}

static void nonsense_is_counted(void **state)
{
	static struct taken t;
	int32_t result;

	(void)state;
	start(&t);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 250 * MS, 200 * MS);
	put(&t, NT_GPU_RECORD_KERNEL, 8, 301 * MS, 400 * MS); /* in the future */
	put(&t, NT_GPU_RECORD_KIND_END, 8, 100 * MS, 100 * MS);
	put(&t, (enum nt_gpu_record_kind)0xffff, 8, 100 * MS, 100 * MS);
	send(&t, 300 * MS);
	assert_int_equal(nt_gpu_records_stats(t.records)->malformed, 4);
	assert_int_equal(t.intervals, 0);
	assert_false(nt_gpu_records_given_up(t.records, &result));
	put(&t, NT_GPU_RECORD_GIVEN_UP, 0, 300 * MS, 300 * MS);
	t.event.record[0].stream = 39;
	send(&t, 400 * MS);
	assert_true(nt_gpu_records_given_up(t.records, &result));
	assert_int_equal(result, 39);
	nt_gpu_records_free(t.records);
}

static void call_nccl(struct taken *t, uint64_t entry_ns, uint32_t tid, enum nt_op op, uint64_t nth,
		      uint64_t group)
{
	nt_gpu_records_collective(t->records, &(struct nt_gpu_collective){.entry_ns = entry_ns,
									  .comm = 77,
									  .comm_rank = 2,
									  .tid = tid,
									  .op = op,
									  .nth = nth,
									  .group = group});
}

static void put_kernel(struct taken *t, enum nt_gpu_record_op op, uint32_t correlation,
		       uint64_t launch_ns)
{
	put(t, NT_GPU_RECORD_LAUNCH, correlation, launch_ns, launch_ns + MS);
	put(t, NT_GPU_RECORD_COMMUNICATION, correlation, launch_ns + 500 * MS,
	    launch_ns + 520 * MS);
	t->event.record[t->event.records - 1].op = (uint8_t)op;
}

static void a_kernel_of_nccl_is_that_of_the_call_before(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	call_nccl(&t, 100 * MS, 1, NT_OP_ALL_REDUCE, 5, 0);
	call_nccl(&t, 110 * MS, 1, NT_OP_ALL_GATHER, 9, 0);
	call_nccl(&t, 120 * MS, 1, NT_OP_ALL_REDUCE, 6, 0);
	/* The second ends last. */
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 8, 101 * MS);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 10, 121 * MS);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_GATHER, 9, 111 * MS);
	send(&t, 900 * MS);
	assert_int_equal(t.intervals, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(t.interval[i].communicates);
		assert_int_equal(t.interval[i].comm, 77);
		assert_int_equal(t.interval[i].comm_rank, 2);
		assert_int_equal(t.interval[i].number, i + 1);
	}
	assert_int_equal(t.interval[0].nth, 5);
	assert_int_equal(t.interval[1].nth, 6);
	assert_int_equal(t.interval[2].nth, 9);
	assert_int_equal(t.interval[2].op, NT_OP_ALL_GATHER);
	nt_gpu_records_free(t.records);
}

static void a_kernel_whose_call_is_not_certain_has_none(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 1, 90 * MS); /* no call was seen */
	call_nccl(&t, 100 * MS, 1, NT_OP_ALL_REDUCE, 5, 0);
	put_kernel(&t, NT_GPU_RECORD_OP_BROADCAST, 2, 101 * MS); /* another operation */
	put_kernel(&t, NT_GPU_RECORD_OP_UNKNOWN, 3, 102 * MS);
	call_nccl(&t, 110 * MS, 2, NT_OP_ALL_REDUCE, 6, 0);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 4, 111 * MS); /* of either thread */
	call_nccl(&t, 120 * MS, 2, NT_OP_ALL_REDUCE, 7, 3);
	call_nccl(&t, 121 * MS, 2, NT_OP_ALL_REDUCE, 8, 3);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 5, 122 * MS); /* of both */
	call_nccl(&t, 130 * MS, 2, NT_OP_ALL_REDUCE, 9, 4);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 6, 131 * MS); /* alone in its group */
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 7, 132 * MS); /* a second one */
	send(&t, 900 * MS);
	assert_int_equal(t.intervals, 7);
	for (int i = 0; i < 7; i++)
		assert_int_equal(t.interval[i].nth, i == 5 ? 9 : 0);
	nt_gpu_records_free(t.records);
}

static void calls_whose_kernels_never_come_have_a_cap(void **state)
{
	static struct taken t;
	const uint32_t calls = 3 * NT_GPU_RECORDS_COLLECTIVES + 7;

	(void)state;
	start(&t);
	for (uint32_t i = 1; i <= calls; i++)
		call_nccl(&t, i, 1, NT_OP_ALL_REDUCE, i, 0);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 1, calls - NT_GPU_RECORDS_COLLECTIVES);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 2, calls - NT_GPU_RECORDS_COLLECTIVES + 1);
	put_kernel(&t, NT_GPU_RECORD_OP_ALL_REDUCE, 3, calls);
	send(&t, 900 * MS);
	assert_int_equal(t.interval[0].nth, 0);
	assert_int_equal(t.interval[1].nth, calls - NT_GPU_RECORDS_COLLECTIVES + 1);
	assert_int_equal(t.interval[2].nth, calls);
	nt_gpu_records_free(t.records);
}

/* A hostile process: kernels that never have a call, and correlations of all values. */
static void what_waits_has_a_cap(void **state)
{
	static struct taken t;

	(void)state;
	start(&t);
	for (uint32_t i = 1; i <= 2 * NT_GPU_RECORDS_KERNELS; i++) {
		put(&t, NT_GPU_RECORD_KERNEL, i * 2654435761U | 1, 200 * MS, 250 * MS);
		if (t.event.records == NT_GPU_BATCH)
			send(&t, 300 * MS);
	}
	assert_int_equal(t.intervals, 0);
	assert_int_equal(nt_gpu_records_stats(t.records)->unmatched, NT_GPU_RECORDS_KERNELS);
	/* A kernel of correlation 0 has no call, although the table's empty slots have that number. */
	put(&t, NT_GPU_RECORD_KERNEL, 0, 200 * MS, 250 * MS);
	send(&t, 2000 * MS);
	assert_int_equal(t.intervals, 0);
	nt_gpu_records_free(t.records);
}

/* Calls are counted by who takes them: a kernel that never comes is then noticed. */
static void where_communication_alone_is_reported_calls_are_too(void **state)
{
	struct taken taken;

	(void)state;
	memset(&taken, 0, sizeof(taken));
	assert_int_equal(nt_gpu_records_new(PID, true, &taken.records), 0);
	assert_true(nt_gpu_records_by_communication(taken.records));
	put(&taken, NT_GPU_RECORD_LAUNCH, 1, 1000 * MS, 1000 * MS);
	put(&taken, NT_GPU_RECORD_LAUNCH, 2, 1001 * MS, 1001 * MS);
	put(&taken, NT_GPU_RECORD_COMMUNICATION, 1, 1010 * MS, 1020 * MS);
	send(&taken, 1030 * MS);
	assert_int_equal(taken.intervals, 3);
	assert_int_equal(taken.interval[0].kernels, 0);
	assert_int_equal(taken.interval[0].entry_ns, 1000 * MS);
	assert_int_equal(taken.interval[1].kernels, 0);
	assert_int_equal(taken.interval[1].entry_ns, 1001 * MS);
	assert_int_equal(taken.interval[2].kernels, 1);
	assert_true(taken.interval[2].communicates);
	assert_int_equal(taken.interval[2].entry_ns, 1000 * MS);
	assert_int_equal(taken.interval[2].number, 1);
	nt_gpu_records_free(taken.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_has_the_time_of_its_call),
		cmocka_unit_test(a_kernel_may_come_before_its_call),
		cmocka_unit_test(a_kernel_without_its_call_is_lost),
		cmocka_unit_test(a_gap_in_the_records_is_one_in_the_intervals),
		cmocka_unit_test(nonsense_is_counted),
		cmocka_unit_test(what_waits_has_a_cap),
		cmocka_unit_test(a_kernel_of_nccl_is_that_of_the_call_before),
		cmocka_unit_test(a_kernel_whose_call_is_not_certain_has_none),
		cmocka_unit_test(calls_whose_kernels_never_come_have_a_cap),
		cmocka_unit_test(a_kernel_that_was_enqueued_before_the_measurement_is_left_out),
		cmocka_unit_test(a_measurement_that_was_open_already_begins_with_its_first_call),
		cmocka_unit_test(where_communication_alone_is_reported_calls_are_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
