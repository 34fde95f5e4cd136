/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batches of GPU records, fired by this program at a mark like that of the library. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin/mark.h"
#include "tests/bpf/harness.h"

enum {
	BATCHES_MAX = 4096,
};

NT_MARK_SEMAPHORE(gpu_records);

static struct nt_gpu_record records[2 * NT_GPU_BATCH];

struct batches {
	struct harness h;
	struct nt_event_gpu *batch;
	size_t count;
};

static void keep(void *data, const struct nt_event_gpu *batch)
{
	struct batches *b = data;

	if (batch->h.pid == (uint32_t)getpid() && b->count < BATCHES_MAX)
		b->batch[b->count++] = *batch;
}

static __attribute__((noinline)) void fire(const void *from, uint64_t count, uint64_t number)
{
	NT_MARK(gpu_records, (uintptr_t)from, count, number);
}

static struct nt_rank_probe *watch(struct batches *b)
{
	nt_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites;
	struct nt_rank_probe *probe = NULL;

	assert_int_equal(nt_rank_probe_find(fd, NT_LIBRARY_GPU, &sites), 0);
	assert_int_equal(nt_rank_probe_new_at(nt_attach_loader(b->h.attach), fd, (uint32_t)getpid(),
					      &sites, &probe),
			 0);
	return probe;
}

static void start(struct batches *b, enum nt_attach_mode mode, size_t ring_bytes)
{
	struct nt_attach_options options = harness_options(mode);

	*b = (struct batches){.batch = calloc(BATCHES_MAX, sizeof(*b->batch))};
	assert_non_null(b->batch);
	options.ring_bytes = ring_bytes;
	options.gpu_batch = keep;
	options.data = b;
	harness_init(&b->h, &options);
	for (size_t i = 0; i < 2 * NT_GPU_BATCH; i++)
		records[i] = (struct nt_gpu_record){.start_ns = 1000 + i,
						    .end_ns = 2000 + i,
						    .correlation = (uint32_t)i,
						    .kind = NT_GPU_RECORD_KERNEL};
}

static void stop(struct batches *b)
{
	harness_release(&b->h);
	free(b->batch);
}

static const enum nt_attach_mode modes[] = {NT_ATTACH_SESSION, NT_ATTACH_MULTI, NT_ATTACH_PERF};

static void a_batch_arrives_as_it_was_handed_over(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		struct nt_rank_probe *probe;
		struct batches b;

		if (!harness_has_mode(modes[m]))
			continue;
		start(&b, modes[m], 4 << 20);
		assert_false(NT_MARK_IS_TRACED(gpu_records));
		fire(records, 1, 1); /* nobody reads it */
		probe = watch(&b);
		assert_true(NT_MARK_IS_TRACED(gpu_records));
		for (uint64_t n = 1; n <= NT_GPU_BATCH; n++)
			fire(records, n, 100 * n);
		harness_poll(&b.h);
		assert_int_equal(b.count, NT_GPU_BATCH);
		for (uint64_t n = 1; n <= NT_GPU_BATCH; n++) {
			const struct nt_event_gpu *batch = &b.batch[n - 1];

			assert_int_equal(batch->records, n);
			assert_int_equal(batch->number, 100 * n);
			assert_memory_equal(batch->record, records, n * sizeof(records[0]));
		}
		nt_rank_probe_free(probe);
		assert_false(NT_MARK_IS_TRACED(gpu_records));
		fire(records, 1, 1);
		harness_poll(&b.h);
		assert_int_equal(b.count, NT_GPU_BATCH);
		stop(&b);
	}
}

static void what_a_process_makes_up_is_counted_and_does_no_harm(void **state)
{
	static const uint64_t counts[] = {0,          NT_GPU_BATCH + 1, 1 << 20,         UINT32_MAX,
					  UINT64_MAX, 1ULL << 63,       (1ULL << 32) + 1};
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nt_rank_probe *probe;
	struct batches b;

	(void)state;
	start(&b, NT_ATTACH_AUTO, 4 << 20);
	probe = watch(&b);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fire(records, counts[i], 1);
	fire(NULL, 5, 1);
	fire(gone, 5, 1);
	fire((void *)UINTPTR_MAX, 64, 1);
	harness_poll(&b.h);
	assert_int_equal(b.count, 0);
	assert_int_equal(harness_stats(&b.h).dropped[NT_EVENT_GPU], 10);
	nt_rank_probe_free(probe);
	stop(&b);
	(void)munmap(gone, 4096);
}

/* A batch is as large as many calls: a flood takes no larger part of the ring. */
static void a_flood_of_batches_leaves_room_for_others(void **state)
{
	const size_t ring_bytes = 1 << 20;
	struct nt_rank_probe *probe;
	size_t fired = 0;
	struct batches b;

	(void)state;
	start(&b, NT_ATTACH_AUTO, ring_bytes);
	probe = watch(&b);
	/* A share is of a period: on an emulated machine a longer flood fills the ring after all. */
	do {
		for (int i = 0; i < 1000; i++)
			fire(records, NT_GPU_BATCH, 1);
		fired += 1000;
	} while (fired < 100000 && harness_stats(&b.h).over_share < 5000);
	harness_poll(&b.h);
	assert_true(b.count > 0);
	assert_true(b.count * sizeof(struct nt_event_gpu) < ring_bytes * 7 / 8);
	assert_int_equal(b.count + harness_stats(&b.h).dropped[NT_EVENT_GPU], fired);
	assert_true(harness_stats(&b.h).over_share > 0);
	nt_rank_probe_free(probe);
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_arrives_as_it_was_handed_over),
		cmocka_unit_test(what_a_process_makes_up_is_counted_and_does_no_harm),
		cmocka_unit_test(a_flood_of_batches_leaves_room_for_others),
	};

	if (!harness_can_load())
		return EXIT_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
