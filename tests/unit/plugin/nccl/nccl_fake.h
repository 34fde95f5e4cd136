/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What stands in for the agent and for NCCL: the mark is replaced, so that a test asks for records and
 * gets them, and time is the test's. Include it once in a test.
 */
#ifndef NT_TEST_NCCL_FAKE_H
#define NT_TEST_NCCL_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin/batch.h"
#include "plugin/nccl/profiler.h"
#include "plugin/nccl/profiler_abi.h"

#define ALL     (NT_NCCL_COLLECTIVE | NT_NCCL_P2P | NT_NCCL_KERNEL_CHANNEL)
#define PROXIES (NT_NCCL_PROXY_OP | NT_NCCL_PROXY_STEP)

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
/* The device's clock is behind boot time, or ahead of it: by so much. */
#define DEVICE_AHEAD (UINT64_C(1700000000) * SECOND)

enum {
	MOST = 4096, /* records that are kept */
};

extern const struct nt_nccl_profiler ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3,
	ncclProfiler_v4, ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

static const int windowed[] = {4, 5, 6}; /* versions that measure kernels in windows */

/* The semaphores of the marks. */
volatile uint16_t neutracer_gpu_records_semaphore, neutracer_nccl_sends_semaphore;
#define is_asked        neutracer_gpu_records_semaphore
#define sends_are_asked neutracer_nccl_sends_semaphore

static uint64_t now_ns = 1000 * SECOND;
static struct nt_gpu_record got[MOST];
static uint32_t records, batches;
static uint64_t next_number, gaps;
static struct nt_gpu_transfer sent[MOST];
static uint32_t transfers;
static uint64_t next_transfer;

/* ---- what stands in for the mark, and for the clock ---- */

void nt_batch_hand_over(const struct nt_gpu_record *record, uint32_t count, uint64_t number)
{
	assert_in_range(count, 1, NT_GPU_BATCH);
	if (next_number)
		gaps += number - next_number;
	next_number = number + count;
	for (uint32_t i = 0; i < count; i++)
		got[records++ % MOST] = record[i];
	batches++;
}

void nt_send_batch_hand_over(const struct nt_gpu_transfer *transfer, uint32_t count,
			     uint64_t number)
{
	assert_in_range(count, 1, NT_GPU_BATCH);
	assert_true(!next_transfer || number == next_transfer);
	next_transfer = number + count;
	for (uint32_t i = 0; i < count; i++)
		sent[transfers++ % MOST] = transfer[i];
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_time);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_time)
{
	const uint64_t ns = __atomic_load_n(&now_ns, __ATOMIC_RELAXED);

	assert_int_equal(id, CLOCK_BOOTTIME);
	*ret_time =
		(struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
	return 0;
}

static inline void forget(void)
{
	records = batches = transfers = 0;
	gaps = 0;
}

/* ---- what stands in for NCCL ---- */

static int mask;

static inline int init_of(int version, void **ret_context)
{
	switch (version) {
	case 1:
		return ncclProfiler_v1.init_1(ret_context, &mask);
	case 2:
		return ncclProfiler_v2.init_1(ret_context, &mask);
	case 3:
		return ncclProfiler_v3.init_1(ret_context, &mask);
	case 4:
		return ncclProfiler_v4.init_4(ret_context, &mask, NULL, 7, 1, 2, 0, NULL);
	case 5:
		return ncclProfiler_v5.init_5(ret_context, 7, &mask, NULL, 1, 2, 0, NULL);
	case 6:
		return ncclProfiler_v6.init_5(ret_context, 7, &mask, "name", 1, 2, 0, NULL);
	default:
		return ncclProfiler_v7.init_5(ret_context, 7, &mask, NULL, 1, 2, 0, NULL);
	}
}

static inline const struct nt_nccl_profiler *table_of(int version)
{
	static const struct nt_nccl_profiler *const tables[] = {
		&ncclProfiler_v1, &ncclProfiler_v2, &ncclProfiler_v3, &ncclProfiler_v4,
		&ncclProfiler_v5, &ncclProfiler_v6, &ncclProfiler_v7};

	return tables[version - 1];
}

static inline void *add_comm(int version)
{
	void *context = NULL;

	assert_int_equal(init_of(version, &context), 0);
	return context;
}

/* In versions up to 4 the bytes behind the type are not set; later ones are longer. */
static inline void *start(int version, void *context, struct nt_nccl_event event)
{
	union {
		struct nt_nccl_event event;
		unsigned char bytes[NT_NCCL_DESCRIPTION_BYTES];
	} description = {.bytes = {0}};
	void *handle = &event; /* it must be written */

	if (version <= 4)
		event.type |= UINT64_C(0xdeadbeefdeadbe00);
	description.event = event;
	assert_int_equal(table_of(version)->start(context, &handle, &description), 0);
	assert_ptr_not_equal(handle, &event);
	return handle;
}

static inline uint64_t device(uint64_t boot_ns)
{
	return boot_ns + DEVICE_AHEAD;
}

/* A call of the program: the event that comes with each. */
static inline void begin_call(int version, void *context, int is_captured)
{
	const struct nt_nccl_event event = {.type = version >= 5 ? NT_NCCL_GROUP_API
								 : NT_NCCL_GROUP,
					    .group_api = {.is_captured = is_captured != 0}};

	table_of(version)->stop(start(version, context, event));
}

/* With the call of the program, where that has an event. */
static inline void *enqueue(int version, void *context, uint8_t channels)
{
	const struct nt_nccl_event call = {.type = NT_NCCL_COLLECTIVE_API};

	return start(version, context,
		     (struct nt_nccl_event){
			     .type = NT_NCCL_COLLECTIVE,
			     .parent = version >= 5 ? start(version, context, call) : NULL,
			     .collective = {.function = "AllReduce", .channels = channels}});
}

/* One channel of its kernel. */
static inline void *begin_channel(int version, void *context, void *call, uint8_t channel,
				  uint64_t start_ns)
{
	return start(version, context,
		     (struct nt_nccl_event){
			     .type = NT_NCCL_KERNEL_CHANNEL,
			     .parent = call,
			     .kernel_channel = {.channel = channel, .start = device(start_ns)}});
}

static inline void end_channel(int version, void *handle, uint64_t stop_ns)
{
	union nt_nccl_state_args args = {.stop = device(stop_ns)};

	assert_int_equal(table_of(version)->state(handle, NT_NCCL_KERNEL_CHANNEL_STOP, &args), 0);
	assert_int_equal(table_of(version)->stop(handle), 0);
}

/* A measurement begins: the next call is the first that is reported. */
static inline void ask(int version, void *context)
{
	is_asked = 1;
	begin_call(version, context, 0);
}

static inline void end_asking(int version, void *context)
{
	is_asked = 0;
	begin_call(version, context, 0);
}

#endif
