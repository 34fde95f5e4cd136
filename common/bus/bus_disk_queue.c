/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/bus_disk_queue.h"

#include <errno.h>

#include "common/bus/bus_impl.h"
#include "common/system/clock.h"

enum {
	LEAST_RATE = 16 << 10, /* bytes a second */
	DRAIN_FACTOR = 2, /* of the live rate */
	AHEAD_BYTES = 256 << 10, /* drained and not yet settled: limits duplicates after a kill */
};

/* Origin of a record, kept in its `partition`: the other bus returns it unchanged. */
enum {
	LIVE,
	DRAINED,
};

#define STALL_NS    (3 * NT_SECOND) /* without progress, although records are unsettled */
#define RETRY_NS    (5 * NT_SECOND) /* after a record was given back */
#define EXPIRE_NS   NT_SECOND
#define RATE_NS     (10 * NT_SECOND) /* window of the live rate */
#define TURN_MAX_NS NT_SECOND

struct disk_queue {
	struct nt_bus bus;
	struct nt_bus *behind; /* NULL: not yet attached */
	struct nt_disk_queue_store *store;
	uint64_t least_rate;

	uint64_t taken; /* records that the other bus accepted */
	uint64_t settled, delivered; /* of these, as of the last turn */
	uint64_t copied; /* up to here, unsettled records are on disk as well */
	bool is_away, is_full;

	uint64_t turn_ns, progress_ns, retry_ns, expire_ns;
	uint64_t live_bytes; /* since the last turn */
	double live_rate, allowance; /* bytes a second; bytes that may be drained now */
	uint64_t ahead_bytes, ahead_number; /* drained since; settled up to this number first */

	uint64_t refused[NT_DISK_QUEUE_CLASS_END], given_back, outages;
};

static uint64_t size_of(const struct nt_bus_record *record)
{
	return record->key_len + record->value_len;
}

/* ---- into the disk queue --------------------------------------------------------------------- */

/* The store counts a failure under the record's class. */
static void store_one(struct disk_queue *disk_queue, const struct nt_bus_record *record)
{
	int r = nt_disk_queue_store_add(disk_queue->store, record);

	(void)r;
}

/* Drained records are on disk until they are settled. */
static void copy_one(void *data, const struct nt_bus_record *record)
{
	struct disk_queue *disk_queue = data;

	if (record->partition == LIVE && record->offset > disk_queue->copied)
		store_one(disk_queue, record);
}

/* From here on no record is only in memory. */
static void copy_unsettled(struct disk_queue *disk_queue)
{
	if (disk_queue->copied < disk_queue->taken && disk_queue->behind->each_unsettled)
		disk_queue->behind->each_unsettled(disk_queue->behind, copy_one, disk_queue);
	disk_queue->copied = disk_queue->taken;
}

static void go_away(struct disk_queue *disk_queue)
{
	if (!disk_queue->is_away)
		disk_queue->outages++;
	disk_queue->is_away = true;
	copy_unsettled(disk_queue);
}

void nt_disk_queue_undelivered(void *data, const struct nt_bus_record *record,
			       enum nt_bus_cause cause)
{
	struct disk_queue *disk_queue = data;

	disk_queue->given_back++;
	disk_queue->retry_ns = disk_queue->turn_ns + RETRY_NS;
	if (cause == NT_BUS_TOO_LARGE) {
		disk_queue->refused[nt_disk_queue_class(record->topic)]++;
		return;
	}
	/* A drained record's segment is removed when the record is settled, which it now is. */
	if (record->partition == DRAINED || record->offset > disk_queue->copied)
		store_one(disk_queue, record);
}

static int publish_queued(struct nt_bus *bus, const struct nt_bus_record *record)
{
	struct disk_queue *disk_queue = (struct disk_queue *)bus;
	struct nt_bus_record live = *record;
	int r;

	disk_queue->live_bytes += size_of(record);
	if (!disk_queue->behind || disk_queue->is_away)
		return nt_disk_queue_store_add(disk_queue->store, record);
	live.partition = LIVE;
	r = nt_bus_publish(disk_queue->behind, &live);
	if (r == 0) {
		disk_queue->taken++;
		return 0;
	}
	if (r == -EMSGSIZE || r == -EINVAL)
		return r;
	if (r == -EAGAIN) {
		disk_queue->is_full = true;
		go_away(disk_queue);
	}
	return nt_disk_queue_store_add(disk_queue->store, record);
}

/* Flushes the store only: the other bus sends by itself, and no caller waits for brokers here. */
static int flush_queued(struct nt_bus *bus)
{
	struct disk_queue *disk_queue = (struct disk_queue *)bus;
	int first = 0, r;

	if (disk_queue->behind && !disk_queue->behind->settled)
		first = nt_bus_flush(disk_queue->behind);
	r = nt_disk_queue_store_flush(disk_queue->store);
	return first < 0 ? first : r;
}

/* ---- out of the disk queue ------------------------------------------------------------------- */

/* Whether the cause affects the whole bus; the others concern single topics or records. */
static bool is_cut_off(enum nt_bus_cause cause)
{
	return cause == NT_BUS_UNREACHABLE || cause == NT_BUS_REFUSED ||
	       cause == NT_BUS_CERTIFICATE || cause == NT_BUS_FENCED;
}

static void judge(struct disk_queue *disk_queue, enum nt_bus_cause cause)
{
	const struct nt_bus *behind = disk_queue->behind;
	const uint64_t settled = behind->settled ? behind->settled(behind) : disk_queue->taken;
	struct nt_bus_stats stats;
	bool is_stalled;

	/* Any acknowledgement will do: one partition may lack a leader while others progress. */
	nt_bus_stats(behind, &stats);
	if (stats.delivered != disk_queue->delivered || settled == disk_queue->taken)
		disk_queue->progress_ns = disk_queue->turn_ns;
	disk_queue->delivered = stats.delivered;
	disk_queue->settled = settled;
	is_stalled = disk_queue->turn_ns - disk_queue->progress_ns >= STALL_NS;
	if (settled == disk_queue->taken)
		disk_queue->is_full = false;
	if (is_cut_off(cause) || is_stalled || disk_queue->is_full)
		go_away(disk_queue);
	else
		disk_queue->is_away = false;
}

/* Adds the drain allowance for the time since the last turn. */
static void earn(struct disk_queue *disk_queue, uint64_t passed_ns)
{
	const double passed = (double)passed_ns / (double)NT_SECOND;
	const double weight = passed_ns < RATE_NS ? (double)passed_ns / (double)RATE_NS : 1.0;
	double rate;

	if (!passed_ns)
		return;
	disk_queue->live_rate +=
		weight * ((double)disk_queue->live_bytes / passed - disk_queue->live_rate);
	disk_queue->live_bytes = 0;
	rate = DRAIN_FACTOR * disk_queue->live_rate;
	if (rate < (double)disk_queue->least_rate)
		rate = (double)disk_queue->least_rate;
	disk_queue->allowance += rate * (passed_ns < TURN_MAX_NS ? passed : 1.0);
	if (disk_queue->allowance > rate)
		disk_queue->allowance = rate;
}

static bool may_drain(struct disk_queue *disk_queue)
{
	if (disk_queue->ahead_bytes >= AHEAD_BYTES &&
	    disk_queue->settled >= disk_queue->ahead_number)
		disk_queue->ahead_bytes = 0;
	return disk_queue->allowance > 0 && disk_queue->ahead_bytes < AHEAD_BYTES;
}

static void drain(struct disk_queue *disk_queue)
{
	struct nt_bus_record record;

	while (may_drain(disk_queue) && nt_disk_queue_store_peek(disk_queue->store, &record) == 1) {
		int r;

		record.partition = DRAINED;
		r = nt_bus_publish(disk_queue->behind, &record);
		if (r == -EMSGSIZE || r == -EINVAL) {
			disk_queue->refused[nt_disk_queue_class(record.topic)]++;
			nt_disk_queue_store_take(disk_queue->store, disk_queue->taken);
			continue;
		}
		if (r < 0) {
			if (r != -EAGAIN) /* it soon has room */
				disk_queue->retry_ns = disk_queue->turn_ns + RETRY_NS;
			return;
		}
		disk_queue->taken++;
		disk_queue->ahead_number = disk_queue->taken;
		disk_queue->ahead_bytes += size_of(&record);
		disk_queue->allowance -= (double)size_of(&record);
		nt_disk_queue_store_take(disk_queue->store, disk_queue->taken);
	}
}

void nt_disk_queue_turn(struct nt_bus *bus, uint64_t mono_ns, uint64_t real_ns)
{
	struct disk_queue *disk_queue = (struct disk_queue *)bus;
	const uint64_t passed_ns = disk_queue->turn_ns ? mono_ns - disk_queue->turn_ns : 0;
	struct nt_bus_health health;

	if (!disk_queue->turn_ns)
		disk_queue->progress_ns = mono_ns;
	disk_queue->turn_ns = mono_ns;
	if (!disk_queue->behind)
		return;
	if (disk_queue->behind->give_back)
		disk_queue->behind->give_back(disk_queue->behind);
	nt_bus_health(disk_queue->behind, &health);
	judge(disk_queue, health.cause);
	earn(disk_queue, passed_ns);
	if (!disk_queue->is_away && health.cause == NT_BUS_WELL && mono_ns >= disk_queue->retry_ns)
		drain(disk_queue);
	/* Records given back must be on disk before their segments are removed. */
	if (flush_queued(bus) == 0)
		nt_disk_queue_store_settle(disk_queue->store, disk_queue->behind->settled
								      ? disk_queue->settled
								      : disk_queue->taken);
	if (mono_ns >= disk_queue->expire_ns) {
		disk_queue->expire_ns = mono_ns + EXPIRE_NS;
		nt_disk_queue_store_expire(disk_queue->store, real_ns);
	}
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void close_queued(struct nt_bus *bus)
{
	struct disk_queue *disk_queue = (struct disk_queue *)bus;

	/* Gives back its undelivered records. */
	nt_bus_close(disk_queue->behind);
	if (nt_disk_queue_store_flush(disk_queue->store) == 0)
		nt_disk_queue_store_settle(disk_queue->store, UINT64_MAX);
	nt_disk_queue_store_free(disk_queue->store);
	free(disk_queue);
}

static void get_stats(const struct nt_bus *bus, struct nt_bus_stats *stats)
{
	const struct disk_queue *disk_queue = (const struct disk_queue *)bus;
	const uint64_t too_large = stats->dropped_too_large; /* counted in this layer */
	struct nt_disk_queue_counters counters;

	if (disk_queue->behind)
		nt_bus_stats(disk_queue->behind, stats);
	stats->dropped_too_large += too_large;
	/* Records rejected there were stored here, or are counted here. */
	stats->dropped_full = 0;
	for (int i = 0; i < NT_DISK_QUEUE_CLASS_END; i++) {
		nt_disk_queue_store_counters(disk_queue->store, (enum nt_disk_queue_class)i,
					     &counters);
		stats->dropped_full += counters.dropped;
		stats->evicted_records += counters.evicted + counters.expired;
	}
	stats->recovered_torn += nt_disk_queue_store_torn(disk_queue->store);
}

static void get_health(const struct nt_bus *bus, struct nt_bus_health *ret_health)
{
	const struct disk_queue *disk_queue = (const struct disk_queue *)bus;

	if (disk_queue->behind)
		nt_bus_health(disk_queue->behind, ret_health);
}

int nt_disk_queue_open(const struct nt_disk_queue_options *options, struct nt_bus **ret_bus)
{
	struct disk_queue *disk_queue = calloc(1, sizeof(*disk_queue));
	int r;

	if (!disk_queue)
		return -ENOMEM;
	disk_queue->bus.close = close_queued;
	disk_queue->bus.publish = publish_queued;
	disk_queue->bus.flush = flush_queued;
	disk_queue->bus.get_stats = get_stats;
	disk_queue->bus.get_health = get_health;
	disk_queue->least_rate = options->least_rate ? options->least_rate : LEAST_RATE;
	r = nt_disk_queue_store_open(options->dir, &options->limits, &disk_queue->store);
	if (r < 0) {
		free(disk_queue);
		return r;
	}
	*ret_bus = &disk_queue->bus;
	return 0;
}

void nt_disk_queue_attach(struct nt_bus *bus, struct nt_bus *behind)
{
	((struct disk_queue *)bus)->behind = behind;
}

void nt_disk_queue_stats(const struct nt_bus *bus, struct nt_disk_queue_stats *ret_stats)
{
	const struct disk_queue *disk_queue = (const struct disk_queue *)bus;
	struct nt_disk_queue_stats stats = {
		.given_back = disk_queue->given_back,
		.outages = disk_queue->outages,
		.bytes = nt_disk_queue_store_bytes(disk_queue->store),
		.is_away = disk_queue->is_away,
	};

	for (int i = 0; i < NT_DISK_QUEUE_CLASS_END; i++) {
		nt_disk_queue_store_counters(disk_queue->store, (enum nt_disk_queue_class)i,
					     &stats.class[i]);
		stats.refused[i] = disk_queue->refused[i];
	}
	*ret_stats = stats;
}
