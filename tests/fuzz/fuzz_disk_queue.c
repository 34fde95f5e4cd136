/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The directory of a disk queue that a disk has damaged: one segment of the windows and one of the
 * details, cut at the first byte's place. All that can be read is taken out, and what is put in
 * afterwards comes out.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/bus/bus.h"
#include "common/bus/disk_queue/store.h"
#include "common/bus/spool/frame.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/disk.h"
#include "tests/fuzz/lib/segment.h"

enum {
	MAX_BYTES = 1 << 16,
	MAX_RECORDS = MAX_BYTES / NT_SPOOL_FRAME_BYTES + 2,
};

static void put_segment(enum nt_topic topic, const uint8_t *data, size_t size, uint8_t flags)
{
	static uint8_t bytes[MAX_BYTES];
	char path[160];

	if (size)
		memcpy(bytes, data, size);
	fuzz_segment_mend(bytes, size, flags);
	(void)snprintf(path, sizeof(path), FUZZ_DISK "/disk_queue/%s/0/%020u.seg",
		       nt_topic_name(topic), 0);
	fuzz_disk_put(path, bytes, size);
}

static void check_sums(const struct nt_disk_queue_store *store)
{
	for (int i = 0; i < NT_DISK_QUEUE_CLASS_END; i++) {
		struct nt_disk_queue_counters n;

		nt_disk_queue_store_counters(store, (enum nt_disk_queue_class)i, &n);
		assert(n.found + n.stored ==
		       n.drained + n.evicted + n.expired + n.corrupt + n.left);
	}
}

static size_t drain(struct nt_disk_queue_store *store, const struct nt_bus_record *want)
{
	struct nt_bus_record record;
	bool has_wanted = false;
	size_t taken = 0;

	while (nt_disk_queue_store_peek(store, &record) == 1) {
		has_wanted |= record.value_len == want->value_len &&
			      !memcmp(record.value, want->value, want->value_len);
		nt_disk_queue_store_take(store, ++taken);
		assert(taken < MAX_RECORDS);
	}
	assert(has_wanted);
	nt_disk_queue_store_settle(store, taken);
	return taken;
}

static int run(const uint8_t *data, size_t size)
{
	static const char last[] = "the record that was put in afterwards";
	const struct nt_disk_queue_limits limits = {.max_bytes = NT_DISK_QUEUE_MIN_BYTES};
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.value = last,
		.value_len = sizeof(last),
		.real_ns = 1,
	};
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = NULL;
	size_t cut;
	int r;

	if (size < 2 || size > MAX_BYTES)
		return 0;
	fuzz_disk_clear();
	cut = (size - 2) * data[0] / 255;
	put_segment(NT_TOPIC_WINDOW, data + 2, cut, data[1]);
	if (cut < size - 2)
		put_segment(NT_TOPIC_DETAIL, data + 2 + cut, size - 2 - cut, data[1] >> 2);
	r = nt_disk_queue_store_open(FUZZ_DISK "/disk_queue", &limits, &store);
	if (r < 0)
		return 0;
	check_sums(store);
	if (nt_disk_queue_store_add(store, &record) == 0) {
		assert(nt_disk_queue_store_flush(store) == 0);
		(void)drain(store, &record);
	}
	check_sums(store);
	nt_disk_queue_store_expire(store, UINT64_MAX);
	return 0;
}

FUZZ_TARGET(run, .peak = {512 << 10, 16}, .steps = {40000, 100})
