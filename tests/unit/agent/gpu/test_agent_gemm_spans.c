/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which kernels were enqueued inside of a matrix multiplication, and when that is not known. */
#include "agent/gpu/gemm_spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
	TID = 41,
	THREAD = 0xf7d0a740, /* as pthread_self() has it */
	BEGIN = 1000000,
};

static struct nt_gemm_spans *spans;
static struct nt_gemm_time sums;

static int begin(void **state)
{
	(void)state;
	memset(&sums, 0, sizeof(sums));
	if (nt_gemm_spans_new(&spans) < 0)
		return -1;
	return nt_gemm_spans_batch(spans, BEGIN, 0) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	nt_gemm_spans_free(spans);
	return 0;
}

static void multiply(uint32_t tid, uint32_t thread, uint64_t entry_ns, uint64_t ret_ns)
{
	const struct nt_event_gemm event = {
		.h = {.tid = tid, .entry_ns = entry_ns}, .ret_ns = ret_ns, .thread = thread};

	nt_gemm_spans_add(spans, &event);
}

static bool kernel(uint32_t thread, uint64_t launch_ns, uint64_t ns)
{
	return nt_gemm_spans_kernel(spans, thread, launch_ns, ns, &sums);
}

static void assert_sums(uint64_t own_ns, uint64_t inside_ns)
{
	assert_int_equal(sums.own_ns, own_ns);
	assert_int_equal(sums.inside_ns, inside_ns);
	assert_false(sums.is_partial);
}

static void a_kernel_is_inside_if_its_thread_was(void **state)
{
	(void)state;
	for (uint64_t at = BEGIN + 100; at < BEGIN + 1000; at += 100)
		multiply(TID, THREAD, at, at + 20);
	for (uint64_t at = BEGIN + 100; at < BEGIN + 1000; at += 100) {
		assert_true(kernel(THREAD, at - 1, 1));
		assert_true(kernel(THREAD, at, 10));
		assert_true(kernel(THREAD, at + 20, 100));
		assert_true(kernel(THREAD, at + 21, 1000));
	}
	assert_sums(9 * 1111, 9 * 110);
	/* Behind the last one. */
	assert_true(kernel(THREAD, BEGIN + 5000, 1));
	assert_sums(9 * 1111 + 1, 9 * 110);
}

/* Another client may have told CUPTI to name them so. */
static void a_thread_has_the_name_of_either_kind(void **state)
{
	(void)state;
	multiply(TID, THREAD, BEGIN + 10, BEGIN + 20);
	assert_true(kernel(TID, BEGIN + 15, 1));
	assert_true(kernel(THREAD, BEGIN + 15, 2));
	assert_true(kernel(TID + 1, BEGIN + 15, 4));
	assert_sums(7, 3);
	/* Of neither nothing is known. */
	multiply(TID, 0, BEGIN + 30, BEGIN + 40);
	assert_true(kernel(0, BEGIN + 35, 8));
	assert_sums(15, 3);
}

/* As the backward pass has a thread of its own, whatever the other one does meanwhile. */
static void threads_beside_each_other_are_told_apart(void **state)
{
	(void)state;
	multiply(2, 0, BEGIN + 100, BEGIN + 2000);
	multiply(1, 0, BEGIN + 1, BEGIN + 10);
	for (uint64_t i = 0; i < 1000; i++)
		multiply(3, 0, BEGIN + 20 + 10 * i, BEGIN + 25 + 10 * i);
	multiply(1, 0, BEGIN + 20000, BEGIN + 20010);
	assert_true(kernel(1, BEGIN + 5, 1));
	assert_true(kernel(2, BEGIN + 1500, 2));
	assert_true(kernel(3, BEGIN + 1502, 4));
	assert_sums(7, 7);
	assert_true(kernel(1, BEGIN + 500, 8));
	assert_true(kernel(2, BEGIN + 99, 16));
	assert_true(kernel(3, BEGIN + 1506, 32));
	assert_true(kernel(4, BEGIN + 500, 64));
	assert_sums(127, 7);
}

static void more_threads_than_the_cap_leave_theirs_unknown(void **state)
{
	const size_t bytes = nt_gemm_spans_bytes(spans);

	(void)state;
	for (uint32_t i = 1; i <= NT_GEMM_SPANS_THREADS; i++)
		multiply(i, 0, BEGIN + 1, BEGIN + 1000);
	assert_true(kernel(NT_GEMM_SPANS_THREADS, BEGIN + 500, 1));
	assert_true(kernel(NT_GEMM_SPANS_THREADS + 1, BEGIN + 500, 1));
	assert_sums(2, 1);
	assert_true(nt_gemm_spans_bytes(spans) >=
		    bytes + NT_GEMM_SPANS_THREADS * NT_GEMM_SPANS * 2 * sizeof(uint64_t));
	multiply(NT_GEMM_SPANS_THREADS + 1, 0, BEGIN + 1, BEGIN + 1000);
	assert_true(kernel(NT_GEMM_SPANS_THREADS, BEGIN + 500, 1));
	assert_sums(3, 2);
	assert_false(kernel(NT_GEMM_SPANS_THREADS + 1, BEGIN + 500, 1));
	assert_true(sums.is_partial);
	assert_int_equal(sums.own_ns, 3);
}

/* A kernel may be enqueued before more of them than are kept, and run after these. */
static void more_multiplications_than_the_cap_leave_it_unknown(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < NT_GEMM_SPANS; i++)
		multiply(TID, THREAD, BEGIN + 10 * i, BEGIN + 10 * i + 5);
	assert_true(kernel(THREAD, BEGIN + 5, 1));
	assert_sums(1, 1);
	multiply(TID, THREAD, BEGIN + 10 * NT_GEMM_SPANS, BEGIN + 10 * NT_GEMM_SPANS + 5);
	assert_true(kernel(THREAD, BEGIN + 6, 1));
	assert_sums(2, 1);
	assert_true(kernel(THREAD, BEGIN + 10, 1));
	assert_true(kernel(THREAD, BEGIN + 10 * NT_GEMM_SPANS, 1));
	assert_sums(4, 3);
	assert_false(kernel(THREAD, BEGIN + 5, 1));
	assert_true(sums.is_partial);
}

static void what_was_enqueued_before_the_first_batch_does_not_count(void **state)
{
	(void)state;
	assert_true(kernel(THREAD, BEGIN - 1, 1));
	assert_sums(0, 0);
	assert_true(kernel(THREAD, BEGIN, 1));
	assert_sums(1, 0);
	/* Nor before calls are observed again. */
	nt_gemm_spans_resume(spans, BEGIN + 100);
	assert_true(kernel(THREAD, BEGIN + 99, 1));
	assert_sums(1, 0);
	nt_gemm_spans_resume(spans, BEGIN + 50);
	assert_true(kernel(THREAD, BEGIN + 99, 1));
	assert_true(kernel(THREAD, BEGIN + 100, 1));
	assert_sums(2, 0);
}

/* The kernel sends none after that time, until the next batch. */
static void after_a_long_time_without_a_batch_it_begins_anew(void **state)
{
	const uint64_t late = BEGIN + 2 * NT_GEMM_WATCH_NS + 1;

	(void)state;
	assert_true(nt_gemm_spans_batch(spans, BEGIN + NT_GEMM_WATCH_NS, 0));
	assert_true(kernel(THREAD, BEGIN, 1));
	assert_sums(1, 0);
	/* What is lost in such a time is of no interest. */
	assert_true(nt_gemm_spans_batch(spans, late, 7));
	assert_true(kernel(THREAD, late - 1, 1));
	assert_sums(1, 0);
	assert_true(kernel(THREAD, late, 1));
	assert_sums(2, 0);
	/* An older one, of another thread, shortens nothing. */
	assert_true(nt_gemm_spans_batch(spans, late - 1000, 7));
	assert_true(nt_gemm_spans_batch(spans, late + NT_GEMM_WATCH_NS, 7));
	assert_true(kernel(THREAD, late, 1));
	assert_sums(3, 0);
}

static void a_loss_is_told_once(void **state)
{
	(void)state;
	assert_true(nt_gemm_spans_batch(spans, BEGIN + 1, 0));
	assert_false(nt_gemm_spans_batch(spans, BEGIN + 2, 3));
	assert_true(nt_gemm_spans_batch(spans, BEGIN + 3, 3));
	assert_false(nt_gemm_spans_batch(spans, BEGIN + 4, 4));
}

/* Its own library may send any. */
static void times_that_contradict_each_other_do_no_harm(void **state)
{
	(void)state;
	multiply(TID, THREAD, BEGIN + 50, BEGIN + 10);
	multiply(TID, THREAD, UINT64_MAX, 0);
	multiply(TID, THREAD, 0, UINT64_MAX);
	assert_true(kernel(THREAD, BEGIN + 20, 1));
	assert_true(kernel(THREAD, UINT64_MAX, UINT64_MAX));
	assert_true(nt_gemm_spans_batch(spans, UINT64_MAX, 0));
	assert_true(sums.inside_ns <= sums.own_ns || sums.own_ns < 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_is_inside_if_its_thread_was),
		TEST(a_thread_has_the_name_of_either_kind),
		TEST(threads_beside_each_other_are_told_apart),
		TEST(more_threads_than_the_cap_leave_theirs_unknown),
		TEST(more_multiplications_than_the_cap_leave_it_unknown),
		TEST(what_was_enqueued_before_the_first_batch_does_not_count),
		TEST(after_a_long_time_without_a_batch_it_begins_anew),
		TEST(a_loss_is_told_once),
		TEST(times_that_contradict_each_other_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
