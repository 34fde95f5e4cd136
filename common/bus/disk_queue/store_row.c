/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of the store, one for each topic: segments found, written and removed. */
#include "common/bus/disk_queue/store_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bus/spool/dir.h"

enum nt_disk_queue_class nt_disk_queue_class(enum nt_topic topic)
{
	switch (topic) {
	case NT_TOPIC_WINDOW:
	case NT_TOPIC_NODE:
		return NT_DISK_QUEUE_VERDICT;
	case NT_TOPIC_DETAIL:
		return NT_DISK_QUEUE_DETAIL;
	default:
		return NT_DISK_QUEUE_OTHER;
	}
}

struct nt_disk_queue_counters *nt_disk_queue_sum_of(struct nt_disk_queue_store *store,
						    const struct nt_disk_queue_row *row)
{
	return &store->sum[nt_disk_queue_class((enum nt_topic)(row - store->row))];
}

uint64_t nt_disk_queue_left_of(const struct nt_disk_queue_segment *segment)
{
	if (segment->is_done || segment->taken > segment->records)
		return 0;
	return segment->records - segment->taken;
}

bool nt_disk_queue_has_written(const struct nt_disk_queue_row *row)
{
	return row->partition && row->partition->fd >= 0 && row->partition->records;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int add_segment(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row,
		       const struct nt_disk_queue_segment *segment)
{
	struct nt_disk_queue_segment *copy;

	if (row->segments == row->cap) {
		size_t cap = row->cap ? 2 * row->cap : 16;
		struct nt_disk_queue_segment **grown =
			reallocarray(row->segment, cap, sizeof(*grown));

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

static void unlink_segment(const struct nt_disk_queue_row *row, uint64_t base)
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(base, name);
	/* A segment that cannot be removed is found again at the next start. */
	(void)unlinkat(row->partition->dirfd, name, 0);
}

void nt_disk_queue_remove_segment(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row,
				  size_t at)
{
	struct nt_disk_queue_segment *segment = row->segment[at];

	unlink_segment(row, segment->base);
	store->closed_bytes -= segment->bytes;
	row->segments--;
	memmove(row->segment + at, row->segment + at + 1,
		(row->segments - at) * sizeof(struct nt_disk_queue_segment *));
	free(segment);
}

/* The oldest settled segment that is not being read; row->segments: none. */
size_t nt_disk_queue_oldest_idle(const struct nt_disk_queue_store *store,
				 const struct nt_disk_queue_row *row)
{
	size_t at = 0;

	while (at < row->segments &&
	       (row->segment[at]->is_done || row->segment[at] == store->reading))
		at++;
	return at;
}

/* Closes the open segment. -ENOMEM leaves it open. */
int nt_disk_queue_roll(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row)
{
	struct nt_spool_partition *partition = row->partition;
	struct nt_disk_queue_segment segment;
	int r;

	/* Write failures are counted; what was written before is closed all the same. */
	r = nt_spool_partition_flush(partition);
	if (!nt_disk_queue_has_written(row))
		return r;
	segment = (struct nt_disk_queue_segment){
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

/* ---- rows ------------------------------------------------------------------------------------ */

static int count_records(int fd, struct nt_disk_queue_segment *segment)
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

static int find_segment(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row,
			uint64_t base)
{
	struct nt_disk_queue_segment segment = {.base = base};
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
	nt_disk_queue_sum_of(store, row)->found += segment.records;
	return add_segment(store, row, &segment);
}

void nt_disk_queue_close_row(struct nt_disk_queue_row *row)
{
	for (size_t i = 0; i < row->segments; i++)
		free(row->segment[i]);
	free(row->segment);
	nt_spool_partition_free(row->partition);
	nt_closep(&row->fd);
	*row = (struct nt_disk_queue_row){.fd = -1};
}

/* Takes ownership of `fd`. */
int nt_disk_queue_open_row(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row, int fd)
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
		nt_disk_queue_sum_of(store, row)->found += row->partition->records;
	return r;
}

int nt_disk_queue_make_row(struct nt_disk_queue_store *store, enum nt_topic topic)
{
	struct nt_disk_queue_row *row = &store->row[topic];
	int fd, r;

	r = nt_spool_make_dir(store->fd, nt_topic_name(topic), &fd);
	if (r < 0)
		return r;
	r = nt_disk_queue_open_row(store, row, fd);
	if (r < 0)
		nt_disk_queue_close_row(row);
	return r;
}
