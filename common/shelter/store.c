/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/shelter/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/spool/dir.h"
#include "common/spool/partition.h"
#include "common/spool/scan.h"

enum {
	SEGMENTS_AT_CAP = 32, /* so little of it goes at once */
	MIN_SEGMENT_BYTES = 8 << 10,
	MAX_SEGMENT_BYTES = 1 << 20, /* what may come twice after a restart */
};

static const char lock_name[] = "lock";

/* A segment that is no longer written. */
struct segment {
	uint64_t base, bytes, records, newest_real_ns;
	uint64_t taken; /* records handed on */
	uint64_t number; /* of the last of them */
	bool is_done; /* there is no more in it */
};

struct row {
	int fd; /* of the topic's directory; -1: not there yet */
	struct nt_spool_partition *partition; /* the writer's end */
	struct nt_bus_stats stats; /* of the partition */
	struct segment **segment; /* oldest first */
	size_t segments, cap;
};

struct nt_shelter_store {
	int fd, lock;
	struct nt_shelter_limits limits;
	struct nt_spool_limits spool_limits;
	struct row row[NT_TOPIC_END];
	struct nt_shelter_counters sum[NT_SHELTER_CLASS_END]; /* without stored and left */
	uint64_t closed_bytes;
	/* The segment that is read: */
	struct segment *reading; /* NULL: none */
	int reading_fd;
	struct nt_spool_scan scan;
	bool has_head;
	struct nt_bus_record head;
};

enum nt_shelter_class nt_shelter_class(enum nt_topic topic)
{
	switch (topic) {
	case NT_TOPIC_WINDOW:
	case NT_TOPIC_NODE:
		return NT_SHELTER_VERDICT;
	case NT_TOPIC_DETAIL:
		return NT_SHELTER_DETAIL;
	default:
		return NT_SHELTER_OTHER;
	}
}

static struct nt_shelter_counters *sum_of(struct nt_shelter_store *store, const struct row *row)
{
	return &store->sum[nt_shelter_class((enum nt_topic)(row - store->row))];
}

static uint64_t left_of(const struct segment *segment)
{
	if (segment->is_done || segment->taken > segment->records)
		return 0;
	return segment->records - segment->taken;
}

static bool has_written(const struct row *row)
{
	return row->partition && row->partition->fd >= 0 && row->partition->records;
}

uint64_t nt_shelter_store_bytes(const struct nt_shelter_store *store)
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

static int flush_row(struct row *row)
{
	return row->partition ? nt_spool_partition_flush(row->partition) : 0;
}

/* ---- segments ----------------------------------------------------------------------------------- */

static int add_segment(struct nt_shelter_store *store, struct row *row,
		       const struct segment *segment)
{
	struct segment *copy;

	if (row->segments == row->cap) {
		size_t cap = row->cap ? 2 * row->cap : 16;
		struct segment **grown = reallocarray(row->segment, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		row->segment = grown;
		row->cap = cap;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *segment;
	row->segment[row->segments++] = copy;
	store->closed_bytes += segment->bytes;
	return 0;
}

static void unlink_segment(const struct row *row, uint64_t base)
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(base, name);
	/* What cannot be removed is found again at the next start. */
	(void)unlinkat(row->partition->dirfd, name, 0);
}

static void remove_segment(struct nt_shelter_store *store, struct row *row, size_t at)
{
	struct segment *segment = row->segment[at];

	unlink_segment(row, segment->base);
	store->closed_bytes -= segment->bytes;
	row->segments--;
	memmove(row->segment + at, row->segment + at + 1,
		(row->segments - at) * sizeof(struct segment *));
	free(segment);
}

/* The oldest that is not being read and that nobody waits for; row->segments: none. */
static size_t oldest_idle(const struct nt_shelter_store *store, const struct row *row)
{
	size_t at = 0;

	while (at < row->segments &&
	       (row->segment[at]->is_done || row->segment[at] == store->reading))
		at++;
	return at;
}

/* Closes the segment that is written. -ENOMEM leaves it as it is. */
static int roll(struct nt_shelter_store *store, struct row *row)
{
	struct nt_spool_partition *partition = row->partition;
	struct segment segment;
	int r;

	/* What could not be written is counted; what was there before is closed all the same. */
	r = nt_spool_partition_flush(partition);
	if (!has_written(row))
		return r;
	segment = (struct segment){
		.base = partition->base,
		.bytes = partition->size + NT_SPOOL_SEAL_BYTES,
		.records = partition->records,
		.newest_real_ns = partition->newest_real_ns,
	};
	r = add_segment(store, row, &segment);
	if (r == 0)
		nt_spool_partition_roll(partition);
	return r;
}

/* ---- what was there before ---------------------------------------------------------------------- */

static int count_records(int fd, struct segment *segment)
{
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	int r;

	nt_spool_scan_start(&scan, fd, segment->base);
	while ((r = nt_spool_scan_next(&scan, &item)) == 1) {
		segment->records++;
		if (segment->newest_real_ns < item.frame.real_ns)
			segment->newest_real_ns = item.frame.real_ns;
	}
	nt_spool_scan_release(&scan);
	return r == -ENOMEM ? r : 0;
}

static int find_segment(struct nt_shelter_store *store, struct row *row, uint64_t base)
{
	struct segment segment = {.base = base};
	struct nt_spool_seal seal;
	nt_autoclose int fd = -1;
	struct stat st;
	int r;

	if (nt_spool_open_segment(row->partition->dirfd, base, &fd) < 0 || fstat(fd, &st) < 0)
		return 0;
	segment.bytes = (uint64_t)st.st_size;
	if (nt_spool_read_seal(fd, &seal) == 0) {
		segment.records = seal.records;
		segment.newest_real_ns = seal.newest_real_ns;
	} else {
		r = count_records(fd, &segment);
		if (r < 0)
			return r;
	}
	if (!segment.records) {
		unlink_segment(row, base);
		return 0;
	}
	sum_of(store, row)->found += segment.records;
	return add_segment(store, row, &segment);
}

static void close_row(struct row *row)
{
	for (size_t i = 0; i < row->segments; i++)
		free(row->segment[i]);
	free(row->segment);
	nt_spool_partition_free(row->partition);
	nt_closep(&row->fd);
	*row = (struct row){.fd = -1};
}

/* `fd` is the row's from here on. */
static int open_row(struct nt_shelter_store *store, struct row *row, int fd)
{
	nt_autosegments struct nt_spool_segments segments = {0};
	int r;

	row->fd = fd;
	r = nt_spool_partition_open(fd, 0, &store->spool_limits, &row->stats, &row->partition);
	if (r < 0)
		return r;
	r = nt_spool_list_segments(row->partition->dirfd, &segments);
	for (size_t i = 0; i < segments.count && r == 0; i++)
		if (row->partition->fd < 0 || segments.base[i] != row->partition->base)
			r = find_segment(store, row, segments.base[i]);
	if (r == 0 && row->partition->fd >= 0)
		sum_of(store, row)->found += row->partition->records;
	return r;
}

static int make_row(struct nt_shelter_store *store, enum nt_topic topic)
{
	struct row *row = &store->row[topic];
	int fd, r;

	r = nt_spool_make_dir(store->fd, nt_topic_name(topic), &fd);
	if (r < 0)
		return r;
	r = open_row(store, row, fd);
	if (r < 0)
		close_row(row);
	return r;
}

static int find_rows(struct nt_shelter_store *store)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		int fd, r = nt_spool_open_dir(store->fd, nt_topic_name((enum nt_topic)i), &fd);

		if (r == -ENOENT)
			continue;
		if (r == 0)
			r = open_row(store, &store->row[i], fd);
		if (r < 0)
			return r;
	}
	return 0;
}

static int lock_dir(struct nt_shelter_store *store)
{
	store->lock = openat(store->fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (store->lock < 0 || flock(store->lock, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return 0;
}

int nt_shelter_store_open(const char *dir, const struct nt_shelter_limits *limits,
			  struct nt_shelter_store **ret_store)
{
	nt_auto(nt_shelter_store) struct nt_shelter_store *store = calloc(1, sizeof(*store));
	uint64_t bytes;
	int r;

	if (!store)
		return -ENOMEM;
	store->fd = store->lock = store->reading_fd = -1;
	for (int i = 0; i < NT_TOPIC_END; i++)
		store->row[i].fd = -1;
	store->limits = *limits;
	if (store->limits.max_bytes < NT_SHELTER_MIN_BYTES)
		store->limits.max_bytes = NT_SHELTER_MIN_BYTES;
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

void nt_shelter_store_free(struct nt_shelter_store *store)
{
	if (!store)
		return;
	for (int i = 0; i < NT_TOPIC_END; i++)
		(void)flush_row(&store->row[i]);
	nt_closep(&store->reading_fd);
	nt_spool_scan_release(&store->scan);
	for (int i = 0; i < NT_TOPIC_END; i++)
		close_row(&store->row[i]);
	nt_closep(&store->lock);
	nt_closep(&store->fd);
	free(store);
}

/* ---- what goes ---------------------------------------------------------------------------------- */

/* The row of this class with the oldest that may go; NULL: none has any. */
static struct row *find_victim(struct nt_shelter_store *store, enum nt_shelter_class class)
{
	struct row *victim = NULL;
	uint64_t oldest_ns = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct row *row = &store->row[i];
		uint64_t real_ns;
		size_t at;

		if (nt_shelter_class((enum nt_topic)i) != class || !row->partition)
			continue;
		at = oldest_idle(store, row);
		if (at < row->segments)
			real_ns = row->segment[at]->newest_real_ns;
		else if (has_written(row))
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

/* Of the least important class there is, but none above `class`. False: there is nothing to go. */
static bool evict(struct nt_shelter_store *store, enum nt_shelter_class class)
{
	struct row *victim = NULL;
	size_t at;

	for (int i = NT_SHELTER_CLASS_END - 1; i >= (int)class && !victim; i--)
		victim = find_victim(store, (enum nt_shelter_class)i);
	if (!victim)
		return false;
	at = oldest_idle(store, victim);
	if (at == victim->segments) {
		if (roll(store, victim) < 0)
			return false;
		at = oldest_idle(store, victim);
	}
	if (at == victim->segments)
		return false;
	sum_of(store, victim)->evicted += left_of(victim->segment[at]);
	remove_segment(store, victim, at);
	return true;
}

static void expire_row(struct nt_shelter_store *store, struct row *row, uint64_t before_ns)
{
	size_t at;

	if (has_written(row) && row->partition->newest_real_ns < before_ns && roll(store, row) < 0)
		return;
	while ((at = oldest_idle(store, row)) < row->segments &&
	       row->segment[at]->newest_real_ns < before_ns) {
		sum_of(store, row)->expired += left_of(row->segment[at]);
		remove_segment(store, row, at);
	}
}

void nt_shelter_store_expire(struct nt_shelter_store *store, uint64_t now_real_ns)
{
	if (!store->limits.max_age_ns || now_real_ns < store->limits.max_age_ns)
		return;
	for (int i = 0; i < NT_TOPIC_END; i++)
		if (store->row[i].partition)
			expire_row(store, &store->row[i], now_real_ns - store->limits.max_age_ns);
}

/* ---- in ----------------------------------------------------------------------------------------- */

static int make_room(struct nt_shelter_store *store, const struct row *row, uint64_t more)
{
	const enum nt_shelter_class class = nt_shelter_class((enum nt_topic)(row - store->row));

	/* A new segment costs its header and seal. */
	more += NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES;
	while (nt_shelter_store_bytes(store) + more > store->limits.max_bytes)
		if (!evict(store, class))
			return -ENOSPC;
	return 0;
}

int nt_shelter_store_add(struct nt_shelter_store *store, const struct nt_bus_record *record)
{
	struct row *row = &store->row[record->topic];
	const uint64_t size = nt_spool_frame_size(record);
	const struct nt_spool_partition *partition;
	int r = 0;

	if (!row->partition)
		r = make_row(store, record->topic);
	if (r == 0)
		r = make_room(store, row, size);
	if (r < 0) {
		sum_of(store, row)->dropped++;
		return r;
	}
	partition = row->partition;
	if ((partition->fd >= 0 ? partition->size : 0) + partition->waiting.len + size >
	    store->spool_limits.segment_bytes)
		(void)roll(store, row); /* a segment that stays open only grows */
	return nt_spool_partition_add(row->partition, record);
}

int nt_shelter_store_flush(struct nt_shelter_store *store)
{
	int first = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		int r = flush_row(&store->row[i]);

		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

/* ---- out ---------------------------------------------------------------------------------------- */

/* The oldest segment of the class that can be read; *ret_row says whose. */
static struct segment *find_next(struct nt_shelter_store *store, enum nt_shelter_class class,
				 struct row **ret_row)
{
	struct segment *next = NULL;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct row *row = &store->row[i];
		size_t at;

		if (nt_shelter_class((enum nt_topic)i) != class || !row->partition)
			continue;
		at = oldest_idle(store, row);
		/* What is still being written is closed for it, once there is nothing older. */
		if (at == row->segments && has_written(row))
			(void)roll(store, row);
		if (at >= row->segments ||
		    (next && next->newest_real_ns <= row->segment[at]->newest_real_ns))
			continue;
		next = row->segment[at];
		*ret_row = row;
	}
	return next;
}

/* There is no more to be had from it. */
static void finish_segment(struct nt_shelter_store *store)
{
	struct segment *segment = store->reading;

	sum_of(store, &store->row[store->head.topic])->corrupt += left_of(segment);
	segment->is_done = true;
	nt_closep(&store->reading_fd);
	store->reading_fd = -1;
	store->reading = NULL;
}

/* 1: a segment is being read. 0: there is none. */
static int start_segment(struct nt_shelter_store *store)
{
	struct segment *next = NULL;
	struct row *row = NULL;

	for (int i = 0; i < NT_SHELTER_CLASS_END && !next; i++)
		next = find_next(store, (enum nt_shelter_class)i, &row);
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

int nt_shelter_store_peek(struct nt_shelter_store *store, struct nt_bus_record *ret_record)
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

void nt_shelter_store_take(struct nt_shelter_store *store, uint64_t number)
{
	struct segment *segment = store->reading;

	store->has_head = false;
	segment->taken++;
	segment->number = number;
	sum_of(store, &store->row[store->head.topic])->drained++;
	if (segment->taken >= segment->records)
		finish_segment(store);
}

void nt_shelter_store_settle(struct nt_shelter_store *store, uint64_t number)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct row *row = &store->row[i];

		for (size_t at = row->segments; at-- > 0;)
			if (row->segment[at]->is_done && row->segment[at]->number <= number)
				remove_segment(store, row, at);
	}
}

/* ---- counters ----------------------------------------------------------------------------------- */

void nt_shelter_store_counters(const struct nt_shelter_store *store, enum nt_shelter_class class,
			       struct nt_shelter_counters *ret_counters)
{
	struct nt_shelter_counters counters = store->sum[class];

	for (int i = 0; i < NT_TOPIC_END; i++) {
		const struct row *row = &store->row[i];

		if (nt_shelter_class((enum nt_topic)i) != class)
			continue;
		counters.stored += row->stats.published;
		counters.dropped += row->stats.dropped_full;
		for (size_t at = 0; at < row->segments; at++)
			counters.left += left_of(row->segment[at]);
		if (has_written(row))
			counters.left += row->partition->records;
	}
	*ret_counters = counters;
}

uint64_t nt_shelter_store_torn(const struct nt_shelter_store *store)
{
	uint64_t torn = 0;

	for (int i = 0; i < NT_TOPIC_END; i++)
		torn += store->row[i].stats.recovered_torn;
	return torn;
}
