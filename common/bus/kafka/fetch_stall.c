/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether available records arrive. */
#include "common/bus/kafka/reader_impl.h"
#include "common/system/clock.h"

#define AGAIN_STALLS    3 /* between two new clients */
#define MAX_PATIENCE_NS (5 * NT_MINUTE)

static struct nt_kafka_partition *find(struct nt_kafka_reader *reader,
				       const rd_kafka_topic_partition_t *end)
{
	struct nt_kafka_partitions *partitions = &reader->partitions[(uintptr_t)end->opaque];

	return (uint32_t)end->partition < partitions->count ? &partitions->partition[end->partition]
							    : NULL;
}

/* Before the first record that is the oldest: 0 will do, as a needless new client is harmless. */
static uint64_t position_of(const struct nt_kafka_partition *partition)
{
	return partition->start == NT_KAFKA_FROM_OFFSET ? partition->next : 0;
}

/*
 * A log does not shrink: the topic was recreated, and all its records are new. Checked twice,
 * because the reply may come from a disconnected broker with stale metadata.
 */
static bool is_anew(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition)
{
	bool was_short = partition->is_short;

	partition->is_short = partition->end < partition->looked_next;
	if (!partition->is_short)
		return false;
	nt_kafka_watch_hurry(&reader->watch);
	if (!was_short)
		return false;
	nt_kafka_fetch_stop(reader, partition);
	partition->start = NT_KAFKA_FROM_EVICTED;
	return true;
}

/*
 * While records of others wait to be read, there may be no room for ours. What a new client did not
 * get either is no record: transactions of others leave markers in a log.
 */
static bool is_stuck(const struct nt_kafka_reader *reader, struct nt_kafka_partition *partition,
		     uint64_t now_ns)
{
	const uint64_t position = position_of(partition);

	if (position != partition->looked_next || partition->end == position) {
		partition->stuck_mono_ns = 0;
		return false;
	}
	if (!partition->stuck_mono_ns || !reader->was_empty)
		partition->stuck_mono_ns = now_ns;
	if (now_ns - partition->stuck_mono_ns < reader->stall_ns ||
	    (partition->tried_next == position && partition->tried_end == partition->end))
		return false;
	if (reader->unstuck_mono_ns &&
	    now_ns - reader->unstuck_mono_ns < AGAIN_STALLS * reader->stall_ns)
		return false;
	partition->tried_next = position;
	partition->tried_end = partition->end;
	return true;
}

bool nt_kafka_stall_look(struct nt_kafka_reader *reader,
			 const rd_kafka_topic_partition_list_t *ends)
{
	uint64_t now_ns = nt_clock_mono_ns();
	bool must_renew = false;

	for (int i = 0; i < ends->cnt; i++) {
		struct nt_kafka_partition *partition = find(reader, &ends->elems[i]);

		if (!partition || ends->elems[i].err || ends->elems[i].offset < 0)
			continue;
		partition->end = (uint64_t)ends->elems[i].offset;
		if (!partition->is_running)
			continue;
		if (partition->is_looked && is_anew(reader, partition)) {
			must_renew = true;
			continue;
		}
		if (partition->is_looked && is_stuck(reader, partition, now_ns))
			must_renew = true;
		/* It stays short relative to the position at which that was seen. */
		if (!partition->is_short)
			partition->looked_next = position_of(partition);
		partition->is_looked = true;
	}
	reader->was_empty = false;
	reader->patience_ns = reader->stall_ns;
	if (must_renew)
		reader->unstuck_mono_ns = now_ns;
	return must_renew;
}

bool nt_kafka_stall_without_ends(struct nt_kafka_reader *reader, uint64_t without_ends_ns)
{
	if (without_ends_ns < reader->patience_ns || without_ends_ns < reader->stall_ns)
		return false;
	reader->patience_ns =
		without_ends_ns * 2 < MAX_PATIENCE_NS ? without_ends_ns * 2 : MAX_PATIENCE_NS;
	reader->unstuck_mono_ns = nt_clock_mono_ns();
	return true;
}
