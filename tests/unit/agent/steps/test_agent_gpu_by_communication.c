/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Own work by the device's clock where only kernels that communicate are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/steps/gpu.h"
#include "common/system/clock.h"

#define MS NT_MILLISECOND

static struct nt_gpu *fresh(void)
{
	struct nt_gpu *gpu = NULL;

	assert_int_equal(nt_gpu_new(&gpu), 0);
	nt_gpu_open(gpu, 1000 * MS, true);
	assert_true(nt_gpu_is_by_communication(gpu));
	return gpu;
}

/* Its host enqueues all of it at once. */
static void step(struct nt_gpu *gpu, uint64_t start_ms, uint64_t end_ms)
{
	const struct nt_accounting_step step = {.start_ns = start_ms * MS,
						.end_ns = end_ms * MS,
						.launches = 1000,
						.asynchronous = true};

	nt_gpu_step(gpu, &step);
}

static void call(struct nt_gpu *gpu, uint64_t entry_ms)
{
	const struct nt_gpu_interval interval = {.communicates = true,
						 .entry_ns = entry_ms * MS,
						 .start_ns = entry_ms * MS,
						 .end_ns = entry_ms * MS};

	assert_true(nt_gpu_add(gpu, &interval, entry_ms * MS));
}

static void kernel(struct nt_gpu *gpu, uint64_t stream, uint64_t entry_ms, uint64_t start_ms,
		   uint64_t end_ms)
{
	const struct nt_gpu_interval interval = {.kernels = 1,
						 .communicates = true,
						 .entry_ns = entry_ms * MS,
						 .start_ns = start_ms * MS,
						 .end_ns = end_ms * MS,
						 .stream = stream};

	(void)nt_gpu_add(gpu, &interval, end_ms * MS);
}

/* With its kernel. */
static void collective(struct nt_gpu *gpu, uint64_t entry_ms, uint64_t start_ms, uint64_t end_ms)
{
	call(gpu, entry_ms);
	kernel(gpu, 1, entry_ms, start_ms, end_ms);
}

static struct nt_accounting_step next(struct nt_gpu *gpu, uint64_t now_ms)
{
	struct nt_accounting_step result = {0};

	assert_true(nt_gpu_next(gpu, now_ms * MS, &result));
	assert_true(result.gpu_by_communication);
	return result;
}

/* Its first step, from 1000 ms on, shows where on the device the second begins: at 1200 ms. */
static struct nt_gpu *followed(void)
{
	struct nt_gpu *gpu = fresh();

	/* The first step is not wholly measured; nor is it known where the next begins. */
	step(gpu, 990, 1000);
	collective(gpu, 1000, 1190, 1200);
	step(gpu, 1000, 1010);
	call(gpu, 1010);
	assert_false(next(gpu, 1200).has_gpu);
	assert_false(next(gpu, 1200).has_gpu);
	return gpu;
}

static void own_work_is_what_communication_leaves_of_the_step(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step result;

	(void)state;
	kernel(gpu, 1, 1010, 1250, 1260);
	collective(gpu, 1011, 1280, 1300);
	step(gpu, 1010, 1020);
	call(gpu, 1020);
	result = next(gpu, 1300);
	assert_true(result.has_gpu);
	assert_int_equal(result.gpu_ns, (50 + 20) * MS);
	assert_int_equal(result.gpu_step_ns, 100 * MS);
	/* The host was ahead all the time: it was the device that was not ready. */
	assert_int_equal(result.gpu_queued_ns, (50 + 20) * MS);
}

static void the_time_before_its_call_is_not_the_devices_alone(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step result;

	(void)state;
	kernel(gpu, 1, 1010, 1250, 1260);
	/* Enqueued 15 ms before the device was ready, and at that moment. */
	collective(gpu, 1275, 1290, 1300);
	collective(gpu, 1340, 1340, 1350);
	step(gpu, 1010, 1350);
	call(gpu, 1350);
	result = next(gpu, 1350);
	assert_true(result.has_gpu);
	assert_int_equal(result.gpu_ns, (50 + 30 + 40) * MS);
	assert_int_equal(result.gpu_queued_ns, (50 + 15) * MS);
}

static void kernels_of_several_communicators_may_overlap(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step result;

	(void)state;
	call(gpu, 1011);
	call(gpu, 1012);
	/* One began before the step before had ended. */
	kernel(gpu, 2, 1011, 1195, 1230);
	kernel(gpu, 1, 1010, 1220, 1260);
	kernel(gpu, 2, 1012, 1280, 1300);
	step(gpu, 1010, 1020);
	call(gpu, 1020);
	result = next(gpu, 1300);
	assert_true(result.has_gpu);
	assert_int_equal(result.gpu_ns, 20 * MS);
	assert_int_equal(result.gpu_step_ns, 100 * MS);
}

static void a_step_waits_until_all_its_kernels_have_ended(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step result;

	(void)state;
	call(gpu, 1011);
	step(gpu, 1010, 1020);
	collective(gpu, 1020, 1390, 1400); /* of the next */
	kernel(gpu, 1, 1010, 1250, 1300);
	assert_false(nt_gpu_next(gpu, 1400 * MS, &result));
	kernel(gpu, 1, 1011, 1310, 1320);
	assert_true(next(gpu, 1400).has_gpu);
}

static void one_that_is_never_reported_leaves_two_steps_unknown(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step result;

	(void)state;
	kernel(gpu, 1, 1010, 1250, 1300);
	call(gpu, 1011);
	step(gpu, 1010, 1020);
	collective(gpu, 1020, 1390, 1400);
	step(gpu, 1020, 1030);
	collective(gpu, 1030, 1490, 1500);
	step(gpu, 1030, 1040);
	call(gpu, 1040);
	assert_false(nt_gpu_next(gpu, 3000 * MS, &result));
	assert_false(next(gpu, 3500).has_gpu);
	assert_false(next(gpu, 3500).has_gpu);
	assert_true(next(gpu, 3500).has_gpu);
	assert_int_equal(nt_gpu_stats(gpu)->steps_unknown, 1);
}

static void a_loss_leaves_the_step_after_it_without_a_begin(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();

	(void)state;
	kernel(gpu, 1, 1010, 1250, 1300);
	nt_gpu_lose(gpu);
	step(gpu, 1010, 1020);
	collective(gpu, 1020, 1390, 1400);
	step(gpu, 1020, 1030);
	collective(gpu, 1030, 1490, 1500);
	step(gpu, 1030, 1040);
	call(gpu, 1040);
	assert_false(next(gpu, 1500).has_gpu);
	assert_false(next(gpu, 1500).has_gpu);
	assert_true(next(gpu, 1500).has_gpu);
}

/* As many as a layer has in tensor parallelism: more than are kept apart. */
static void any_number_of_kernels_adds_up(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step result;

	(void)state;
	kernel(gpu, 1, 1010, 1201, 1202);
	for (uint64_t i = 1; i < 10 * NT_GPU_SPANS; i++)
		collective(gpu, 1011, 1201 + 3 * i, 1202 + 3 * i);
	step(gpu, 1010, 1020);
	call(gpu, 1020);
	result = next(gpu, 1200 + 3 * 10 * NT_GPU_SPANS);
	assert_true(result.has_gpu);
	assert_int_equal(result.gpu_ns, (2 * 10 * NT_GPU_SPANS - 1) * MS);
	assert_int_equal(result.gpu_step_ns, (3 * 10 * NT_GPU_SPANS - 1) * MS);
}

/* Then it is not known where the step begins, of which half is added up already. */
static void a_begin_that_moves_leaves_the_step_unknown(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();

	(void)state;
	kernel(gpu, 1, 1010, 1250, 1260);
	call(gpu, 1012);
	step(gpu, 1010, 1020);
	for (uint64_t i = 0; i < 2 * NT_GPU_SPANS; i++)
		collective(gpu, 1021, 1301 + 3 * i, 1302 + 3 * i);
	step(gpu, 1020, 1030);
	call(gpu, 1030);
	kernel(gpu, 2, 1012, 1270, 1300);
	assert_true(next(gpu, 2000).has_gpu);
	assert_false(next(gpu, 2000).has_gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_work_is_what_communication_leaves_of_the_step),
		cmocka_unit_test(the_time_before_its_call_is_not_the_devices_alone),
		cmocka_unit_test(kernels_of_several_communicators_may_overlap),
		cmocka_unit_test(a_step_waits_until_all_its_kernels_have_ended),
		cmocka_unit_test(one_that_is_never_reported_leaves_two_steps_unknown),
		cmocka_unit_test(a_loss_leaves_the_step_after_it_without_a_begin),
		cmocka_unit_test(any_number_of_kernels_adds_up),
		cmocka_unit_test(a_begin_that_moves_leaves_the_step_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
