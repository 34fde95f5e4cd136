/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/disk_queue/store_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/bus/spool/dir.h"

enum {
	SEGMENTS_AT_CAP = 32, /* limits what is evicted at once */
	MIN_SEGMENT_BYTES = 8 << 10,
	MAX_SEGMENT_BYTES = 1 << 20, /* limits duplicates after a restart */
};

static const char lock_name[] = "lock";

uint64_t nt_disk_queue_store_bytes(const struct nt_disk_queue_store *store)
{
	uint64_t bytes = store->closed_bytes;

	for (size_t i = 0; i < NT_TOPIC_END; i++) {
		const struct nt_spool_partition *partition = store->row[i].partition;

		if (!partition)
			continue;
		bytes += partition->waiting.len;
		if (partition->fd >= 0)
			bytes += partition->size;
		else if (partition->waiting.len)
			bytes += NT_SPOOL_HEADER_BYTES;
	}
	return bytes;
}

static int flush_row(struct nt_disk_queue_row *row)
{
	return row->partition ? nt_spool_partition_flush(row->partition) : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int find_rows(struct nt_disk_queue_store *store)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		int fd, r = nt_spool_open_dir(store->fd, nt_topic_name((enum nt_topic)i), &fd);

		if (r == -ENOENT)
			continue;
		if (r == 0)
			r = nt_disk_queue_open_row(store, &store->row[i], fd);
		if (r < 0)
			return r;
	}
	return 0;
}

static int lock_dir(struct nt_disk_queue_store *store)
{
	store->lock = openat(store->fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (store->lock < 0 || flock(store->lock, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return 0;
}

int nt_disk_queue_store_open(const char *dir, const struct nt_disk_queue_limits *limits,
			     struct nt_disk_queue_store **ret_store)
{
	nt_auto(nt_disk_queue_store) struct nt_disk_queue_store *store = calloc(1, sizeof(*store));
	uint64_t bytes;
	int r;

	if (!store)
		return -ENOMEM;
	store->fd = store->lock = store->reading_fd = -1;
	for (int i = 0; i < NT_TOPIC_END; i++)
		store->row[i].fd = -1;
	store->limits = *limits;
	if (store->limits.max_bytes < NT_DISK_QUEUE_MIN_BYTES)
		store->limits.max_bytes = NT_DISK_QUEUE_MIN_BYTES;
	bytes = store->limits.max_bytes / SEGMENTS_AT_CAP;
	store->spool_limits.max_bytes = store->limits.max_bytes;
	store->spool_limits.segment_bytes = bytes < MIN_SEGMENT_BYTES   ? MIN_SEGMENT_BYTES
					    : bytes > MAX_SEGMENT_BYTES ? MAX_SEGMENT_BYTES
									: bytes;
	r = nt_spool_make_root(dir, &store->fd);
	if (r == 0)
		r = lock_dir(store);
	if (r == 0)
		r = find_rows(store);
	if (r < 0)
		return r;
	*ret_store = nt_take(store);
	return 0;
}

void nt_disk_queue_store_free(struct nt_disk_queue_store *store)
{
	if (!store)
		return;
	for (int i = 0; i < NT_TOPIC_END; i++)
		(void)flush_row(&store->row[i]);
	nt_closep(&store->reading_fd);
	nt_spool_scan_release(&store->scan);
	for (int i = 0; i < NT_TOPIC_END; i++)
		nt_disk_queue_close_row(&store->row[i]);
	nt_closep(&store->lock);
	nt_closep(&store->fd);
	free(store);
}

/* ---- removal --------------------------------------------------------------------------------- */

/* The row of this class with the oldest removable segment; NULL: there is none. */
static struct nt_disk_queue_row *find_victim(struct nt_disk_queue_store *store,
					     enum nt_disk_queue_class class)
{
	struct nt_disk_queue_row *victim = NULL;
	uint64_t oldest_ns = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct nt_disk_queue_row *row = &store->row[i];
		uint64_t real_ns;
		size_t at;

		if (nt_disk_queue_class((enum nt_topic)i) != class || !row->partition)
			continue;
		at = nt_disk_queue_oldest_idle(store, row);
		if (at < row->segments)
			real_ns = row->segment[at]->newest_real_ns;
		else if (nt_disk_queue_has_written(row))
			real_ns = row->partition->newest_real_ns;
		else
			continue;
		if (!victim || real_ns < oldest_ns) {
			victim = row;
			oldest_ns = real_ns;
		}
	}
	return victim;
}

/* Evicts from the least important class present, at most `class`. False: nothing to evict. */
static bool evict(struct nt_disk_queue_store *store, enum nt_disk_queue_class class)
{
	struct nt_disk_queue_row *victim = NULL;
	size_t at;

	for (int i = NT_DISK_QUEUE_CLASS_END - 1; i >= (int)class && !victim; i--)
		victim = find_victim(store, (enum nt_disk_queue_class)i);
	if (!victim)
		return false;
	at = nt_disk_queue_oldest_idle(store, victim);
	if (at == victim->segments) {
		if (nt_disk_queue_roll(store, victim) < 0)
			return false;
		at = nt_disk_queue_oldest_idle(store, victim);
	}
	if (at == victim->segments)
		return false;
	nt_disk_queue_sum_of(store, victim)->evicted += nt_disk_queue_left_of(victim->segment[at]);
	nt_disk_queue_remove_segment(store, victim, at);
	return true;
}

static void expire_row(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row,
		       uint64_t before_ns)
{
	size_t at;

	if (nt_disk_queue_has_written(row) && row->partition->newest_real_ns < before_ns &&
	    nt_disk_queue_roll(store, row) < 0)
		return;
	while ((at = nt_disk_queue_oldest_idle(store, row)) < row->segments &&
	       row->segment[at]->newest_real_ns < before_ns) {
		nt_disk_queue_sum_of(store, row)->expired +=
			nt_disk_queue_left_of(row->segment[at]);
		nt_disk_queue_remove_segment(store, row, at);
	}
}

void nt_disk_queue_store_expire(struct nt_disk_queue_store *store, uint64_t now_real_ns)
{
	if (!store->limits.max_age_ns || now_real_ns < store->limits.max_age_ns)
		return;
	for (int i = 0; i < NT_TOPIC_END; i++)
		if (store->row[i].partition)
			expire_row(store, &store->row[i], now_real_ns - store->limits.max_age_ns);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static int make_room(struct nt_disk_queue_store *store, const struct nt_disk_queue_row *row,
		     uint64_t more)
{
	const enum nt_disk_queue_class class =
		nt_disk_queue_class((enum nt_topic)(row - store->row));

	/* A new segment costs its header and seal. */
	more += NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES;
	while (nt_disk_queue_store_bytes(store) + more > store->limits.max_bytes)
		if (!evict(store, class))
			return -ENOSPC;
	return 0;
}

int nt_disk_queue_store_add(struct nt_disk_queue_store *store, const struct nt_bus_record *record)
{
	struct nt_disk_queue_row *row = &store->row[record->topic];
	const uint64_t size = nt_spool_frame_size(record);
	const struct nt_spool_partition *partition;
	int r = 0;

	if (!row->partition)
		r = nt_disk_queue_make_row(store, record->topic);
	if (r == 0)
		r = make_room(store, row, size);
	if (r < 0) {
		nt_disk_queue_sum_of(store, row)->dropped++;
		return r;
	}
	partition = row->partition;
	if ((partition->fd >= 0 ? partition->size : 0) + partition->waiting.len + size >
	    store->spool_limits.segment_bytes)
		(void)nt_disk_queue_roll(store, row); /* if this fails, the segment grows further */
	return nt_spool_partition_add(row->partition, record);
}

int nt_disk_queue_store_flush(struct nt_disk_queue_store *store)
{
	int first = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		int r = flush_row(&store->row[i]);

		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

/* ---- taking out ------------------------------------------------------------------------------ */

/* The oldest readable segment of the class; its row in *ret_row. */
static struct nt_disk_queue_segment *find_next(struct nt_disk_queue_store *store,
					       enum nt_disk_queue_class class,
					       struct nt_disk_queue_row **ret_row)
{
	struct nt_disk_queue_segment *next = NULL;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct nt_disk_queue_row *row = &store->row[i];
		size_t at;

		if (nt_disk_queue_class((enum nt_topic)i) != class || !row->partition)
			continue;
		at = nt_disk_queue_oldest_idle(store, row);
		/* The open segment is closed for reading once there is nothing older. */
		if (at == row->segments && nt_disk_queue_has_written(row))
			(void)nt_disk_queue_roll(store, row);
		if (at >= row->segments ||
		    (next && next->newest_real_ns <= row->segment[at]->newest_real_ns))
			continue;
		next = row->segment[at];
		*ret_row = row;
	}
	return next;
}

/* All its records were read. */
static void finish_segment(struct nt_disk_queue_store *store)
{
	struct nt_disk_queue_segment *segment = store->reading;

	nt_disk_queue_sum_of(store, &store->row[store->head.topic])->corrupt +=
		nt_disk_queue_left_of(segment);
	segment->is_done = true;
	nt_closep(&store->reading_fd);
	store->reading_fd = -1;
	store->reading = NULL;
}

/* 1: a segment is being read. 0: there is none. */
static int start_segment(struct nt_disk_queue_store *store)
{
	struct nt_disk_queue_segment *next = NULL;
	struct nt_disk_queue_row *row = NULL;

	for (int i = 0; i < NT_DISK_QUEUE_CLASS_END && !next; i++)
		next = find_next(store, (enum nt_disk_queue_class)i, &row);
	if (!next)
		return 0;
	store->reading = next;
	store->head = (struct nt_bus_record){.topic = (enum nt_topic)(row - store->row)};
	if (nt_spool_open_segment(row->partition->dirfd, next->base, &store->reading_fd) < 0) {
		finish_segment(store);
		return 1;
	}
	/* Another row is another log. */
	nt_spool_scan_release(&store->scan);
	store->scan = (struct nt_spool_scan){0};
	nt_spool_scan_start(&store->scan, store->reading_fd, next->base);
	return 1;
}

int nt_disk_queue_store_peek(struct nt_disk_queue_store *store, struct nt_bus_record *ret_record)
{
	struct nt_spool_item item;
	int r;

	while (!store->has_head) {
		if (!store->reading) {
			r = start_segment(store);
			if (r <= 0)
				return r;
			continue;
		}
		r = nt_spool_scan_next(&store->scan, &item);
		if (r == -ENOMEM)
			return r;
		if (r != 1) {
			finish_segment(store);
			continue;
		}
		store->head.key = item.frame.key;
		store->head.key_len = item.frame.key_len;
		store->head.value = item.frame.value;
		store->head.value_len = item.frame.value_len;
		store->head.real_ns = item.frame.real_ns;
		store->has_head = true;
	}
	*ret_record = store->head;
	return 1;
}

void nt_disk_queue_store_take(struct nt_disk_queue_store *store, uint64_t number)
{
	struct nt_disk_queue_segment *segment = store->reading;

	store->has_head = false;
	segment->taken++;
	segment->number = number;
	nt_disk_queue_sum_of(store, &store->row[store->head.topic])->drained++;
	if (segment->taken >= segment->records)
		finish_segment(store);
}

void nt_disk_queue_store_settle(struct nt_disk_queue_store *store, uint64_t number)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct nt_disk_queue_row *row = &store->row[i];

		for (size_t at = row->segments; at-- > 0;)
			if (row->segment[at]->is_done && row->segment[at]->number <= number)
				nt_disk_queue_remove_segment(store, row, at);
	}
}

/* ---- counters -------------------------------------------------------------------------------- */

void nt_disk_queue_store_counters(const struct nt_disk_queue_store *store,
				  enum nt_disk_queue_class class,
				  struct nt_disk_queue_counters *ret_counters)
{
	struct nt_disk_queue_counters counters = store->sum[class];

	for (int i = 0; i < NT_TOPIC_END; i++) {
		const struct nt_disk_queue_row *row = &store->row[i];

		if (nt_disk_queue_class((enum nt_topic)i) != class)
			continue;
		counters.stored += row->stats.published;
		counters.dropped += row->stats.dropped_full;
		for (size_t at = 0; at < row->segments; at++)
			counters.left += nt_disk_queue_left_of(row->segment[at]);
		if (nt_disk_queue_has_written(row))
			counters.left += row->partition->records;
	}
	*ret_counters = counters;
}

uint64_t nt_disk_queue_store_torn(const struct nt_disk_queue_store *store)
{
	uint64_t torn = 0;

	for (int i = 0; i < NT_TOPIC_END; i++)
		torn += store->row[i].stats.recovered_torn;
	return torn;
}
