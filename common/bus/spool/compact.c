/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/compact.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* On failed allocations the table must not exit; they are handled here. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "common/bus/spool/dir.h"
#include "common/bus/spool/scan.h"
#include "common/system/clock.h"

enum {
	WRITE_BYTES = 256 << 10,
};

#define DELETED_STAYS_NS NT_HOUR

struct entry {
	UT_hash_handle hh;
	uint64_t newest; /* offset */
	size_t segment, size; /* where it is, and how large */
	bool is_lost;
	uint8_t key[];
};

struct work {
	const struct nt_spool_partition *partition;
	struct nt_spool_segments segments;
	uint64_t *live; /* bytes to keep, per segment */
	uint64_t *end; /* offset after its last record, per segment */
	struct entry *entries;
	uint64_t deleted_before_ns; /* older deletions are removed */
	/* The group being written: */
	int fd;
	uint64_t base, at;
	struct nt_buf buf;
	struct nt_spool_seal seal;
	uint64_t next; /* lower offsets are written already */
};

static void release_work(struct work *work)
{
	struct entry *entry, *next;

	HASH_ITER(hh, work->entries, entry, next)
	{
		HASH_DEL(work->entries, entry);
		free(entry);
	}
	nt_closep(&work->fd);
	free(work->live);
	free(work->end);
	nt_spool_segments_release(&work->segments);
	nt_buf_release(&work->buf);
}
#define nt_autowork __attribute__((cleanup(release_work)))

/* The added data must exceed what is left, so that the cost of copying is amortised. */
static bool is_worth_it(const struct work *work)
{
	uint64_t clean = 0, dirty = 0;

	for (size_t i = 0; i < work->segments.count; i++) {
		struct nt_spool_header header;
		nt_autoclose int fd = -1;
		struct stat st;

		if (nt_spool_open_segment(work->partition->dirfd, work->segments.base[i], &fd) <
			    0 ||
		    fstat(fd, &st) < 0)
			continue;
		if (nt_spool_read_header(fd, &header) == 0 && header.is_compacted)
			clean += (uint64_t)st.st_size;
		else
			dirty += (uint64_t)st.st_size;
	}
	return dirty >= clean;
}

/* gcc's analyzer loses track of the table's own memory, which release_work() frees. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static struct entry *add_entry(struct work *work, const struct nt_spool_frame *frame)
{
	struct entry *entry = calloc(1, sizeof(*entry) + frame->key_len);

	if (!entry)
		return NULL;
	memcpy(entry->key, frame->key, frame->key_len);
	HASH_ADD_KEYPTR(hh, work->entries, entry->key, frame->key_len, entry);
	if (!entry->is_lost)
		return entry;
	free(entry);
	return NULL;
}

static int note_frame(struct work *work, size_t segment, const struct nt_spool_frame *frame)
{
	struct entry *entry;

	HASH_FIND(hh, work->entries, frame->key, frame->key_len, entry);
	if (entry) {
		work->live[entry->segment] -= entry->size;
	} else if (HASH_COUNT(work->entries) < work->partition->limits->max_keys) {
		entry = add_entry(work, frame);
		if (!entry)
			return -ENOMEM;
	}
	if (entry) {
		entry->newest = frame->offset;
		entry->segment = segment;
		entry->size = frame->size;
	}
	work->live[segment] += frame->size;
	return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* Reads a segment's frames: the first pass notes them, the second copies them. */
static int walk(struct work *work, size_t segment, uint64_t least,
		int (*visit)(struct work *, size_t, const struct nt_spool_frame *))
{
	uint64_t base = work->segments.base[segment];
	struct nt_spool_scan scan = {.log_is_known = true, .log = work->partition->log};
	struct nt_spool_item item;
	nt_autoclose int fd = -1;
	int r = nt_spool_open_segment(work->partition->dirfd, base, &fd);

	if (r < 0)
		return r;
	nt_spool_scan_start(&scan, fd, base);
	while ((r = nt_spool_scan_next(&scan, &item)) == 1) {
		if (item.frame.offset < least)
			continue;
		r = visit(work, segment, &item.frame);
		if (r < 0)
			break;
	}
	if (work->end[segment] < base)
		work->end[segment] = base;
	if (work->end[segment] < scan.least)
		work->end[segment] = scan.least;
	nt_spool_scan_release(&scan);
	return r < 0 ? r : 0;
}

static int write_out(struct work *work)
{
	size_t written;
	int r = nt_spool_write_at(work->fd, work->at, work->buf.data, work->buf.len, &written);

	work->at += written;
	nt_buf_clear(&work->buf);
	return r;
}

static int begin_group(struct work *work, uint64_t base)
{
	struct nt_spool_header header = {
		.is_compacted = true,
		.log = work->partition->log,
		.base = base,
		.boot = work->partition->boot,
		.made_real_ns = nt_clock_real_ns(),
	};
	int r = nt_spool_make_draft(work->partition->dirfd, base, &work->fd);

	if (r < 0)
		return r;
	r = nt_buf_reserve(&work->buf, NT_SPOOL_HEADER_BYTES);
	if (r < 0)
		return r;
	nt_spool_header_write(&header, work->buf.data);
	work->buf.len = NT_SPOOL_HEADER_BYTES;
	work->base = base;
	work->at = 0;
	work->seal = (struct nt_spool_seal){0};
	return 0;
}

static bool is_live(const struct work *work, const struct nt_spool_frame *frame)
{
	const struct entry *entry;

	HASH_FIND(hh, work->entries, frame->key, frame->key_len, entry);
	if (!entry)
		return true;
	return entry->newest == frame->offset &&
	       (frame->value_len || frame->real_ns >= work->deleted_before_ns);
}

static int copy_frame(struct work *work, size_t segment, const struct nt_spool_frame *frame)
{
	const struct nt_bus_record record = {
		.key = frame->key,
		.key_len = frame->key_len,
		.value = frame->value,
		.value_len = frame->value_len,
		.real_ns = frame->real_ns,
	};
	int r;

	(void)segment;
	if (frame->offset < work->next || !is_live(work, frame))
		return 0;
	r = nt_buf_reserve(&work->buf, frame->size);
	if (r < 0)
		return r;
	nt_spool_frame_write(&record, work->partition->log, frame->offset,
			     work->buf.data + work->buf.len);
	work->buf.len += frame->size;
	work->next = frame->offset + 1;
	work->seal.records++;
	if (work->seal.newest_real_ns < frame->real_ns)
		work->seal.newest_real_ns = frame->real_ns;
	return work->buf.len >= WRITE_BYTES ? write_out(work) : 0;
}

/* The draft contains the group of segments [first, past): replaces them. */
static int end_group(struct work *work, size_t first, size_t past)
{
	char name[NT_SPOOL_NAME_BYTES];
	int r;

	work->seal.end = work->end[past - 1];
	r = nt_buf_reserve(&work->buf, NT_SPOOL_SEAL_BYTES);
	if (r < 0)
		return r;
	nt_spool_seal_write(&work->seal, work->partition->log, work->buf.data + work->buf.len);
	work->buf.len += NT_SPOOL_SEAL_BYTES;
	r = write_out(work);
	if (r < 0)
		return r;
	if (fdatasync(work->fd) < 0)
		return -errno;
	r = nt_spool_publish_draft(work->partition->dirfd, work->base);
	if (r < 0)
		return r;
	(void)close(work->fd);
	work->fd = -1;
	for (size_t i = first + 1; i < past; i++) {
		nt_spool_segment_name(work->segments.base[i], name);
		(void)unlinkat(work->partition->dirfd, name, 0);
	}
	return 0;
}

/* Writes one file of as many segments as fit into it, from `first` on. */
static int write_group(struct work *work, size_t first, size_t *ret_past)
{
	uint64_t size = NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES + work->live[first];
	size_t past = first + 1;
	int r;

	while (past < work->segments.count &&
	       size + work->live[past] <= work->partition->limits->segment_bytes)
		size += work->live[past++];
	r = begin_group(work, work->segments.base[first]);
	for (size_t i = first; i < past && r == 0; i++)
		r = walk(work, i, work->next, copy_frame);
	if (r == 0)
		r = end_group(work, first, past);
	*ret_past = past;
	return r;
}

int nt_spool_compact(const struct nt_spool_partition *partition, uint64_t now_real_ns)
{
	nt_autowork struct work work = {.partition = partition, .fd = -1};
	char draft[NT_SPOOL_NAME_BYTES];
	int r = nt_spool_list_segments(partition->dirfd, &work.segments);

	if (r < 0 || !work.segments.count || !is_worth_it(&work))
		return r;
	if (now_real_ns > DELETED_STAYS_NS)
		work.deleted_before_ns = now_real_ns - DELETED_STAYS_NS;
	work.live = calloc(work.segments.count, sizeof(*work.live));
	work.end = calloc(work.segments.count, sizeof(*work.end));
	if (!work.live || !work.end)
		return -ENOMEM;
	for (size_t i = 0; i < work.segments.count; i++) {
		r = walk(&work, i, i ? work.end[i - 1] : 0, note_frame);
		if (r < 0)
			return r;
		if (i && work.end[i] < work.end[i - 1])
			work.end[i] = work.end[i - 1];
	}
	for (size_t i = 0; i < work.segments.count && r == 0;)
		r = write_group(&work, i, &i);
	if (r < 0) {
		nt_spool_draft_name(work.base, draft);
		(void)unlinkat(partition->dirfd, draft, 0);
	}
	return r;
}
