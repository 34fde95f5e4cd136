/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/search.h"

enum {
	OPEN_TRIES = 8, /* segments may be removed between listing and opening */
};

static void leave_segment(struct nt_spool_cursor *cursor)
{
	nt_closep(&cursor->fd);
	cursor->fd = -1;
	cursor->is_doubted = false;
	cursor->has_head = false;
}

void nt_spool_cursor_init(struct nt_spool_cursor *cursor, uint32_t partition)
{
	*cursor = (struct nt_spool_cursor){
		.partition = partition,
		.dirfd = -1,
		.fd = -1,
		.from_oldest = true,
	};
}

void nt_spool_cursor_release(struct nt_spool_cursor *cursor)
{
	leave_segment(cursor);
	nt_closep(&cursor->dirfd);
	cursor->dirfd = -1;
	nt_spool_scan_release(&cursor->scan);
	nt_spool_segments_release(&cursor->segments);
}

static void restart(struct nt_spool_cursor *cursor)
{
	leave_segment(cursor);
	cursor->is_seeking = false;
	cursor->from_real_ns = 0;
	cursor->from_oldest = true;
	cursor->end = 0;
	cursor->idle = 0;
}

void nt_spool_cursor_displace(struct nt_spool_cursor *cursor)
{
	if (cursor->dirfd < 0)
		return;
	restart(cursor);
	(void)close(cursor->dirfd);
	cursor->dirfd = -1;
	cursor->log = 0;
	cursor->scan.log_is_known = false;
}

int nt_spool_cursor_place(struct nt_spool_cursor *cursor, int dirfd)
{
	struct stat st;

	if (fstat(dirfd, &st) < 0) {
		(void)close(dirfd);
		return -errno;
	}
	if (cursor->dirfd >= 0 && cursor->dev == st.st_dev && cursor->ino == st.st_ino) {
		(void)close(dirfd);
		return 0;
	}
	nt_spool_cursor_displace(cursor);
	cursor->dirfd = dirfd;
	cursor->dev = st.st_dev;
	cursor->ino = st.st_ino;
	return 0;
}

void nt_spool_cursor_seek(struct nt_spool_cursor *cursor, uint64_t offset)
{
	restart(cursor);
	cursor->from_oldest = false;
	cursor->is_seeking = true;
	cursor->next = offset;
}

void nt_spool_cursor_seek_time(struct nt_spool_cursor *cursor, uint64_t real_ns)
{
	restart(cursor);
	cursor->from_real_ns = real_ns;
}

static int list(struct nt_spool_cursor *cursor, uint64_t generation)
{
	int r = nt_spool_list_segments(cursor->dirfd, &cursor->segments);

	if (r == 0)
		cursor->listed = generation;
	return r;
}

/* Index of the segment in which an offset is or would be; 0 if it precedes all. */
static size_t find_segment(const struct nt_spool_cursor *cursor, uint64_t offset)
{
	const size_t after =
		nt_search_first(0, cursor->segments.count, i, cursor->segments.base[i] > offset);

	return after ? after - 1 : 0;
}

static int open_segment(struct nt_spool_cursor *cursor, uint64_t base)
{
	nt_autoclose int fd = -1;
	struct stat st;
	int r = nt_spool_open_segment(cursor->dirfd, base, &fd);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	leave_segment(cursor);
	cursor->fd = nt_take_fd(&fd);
	cursor->base = base;
	if (cursor->end < base)
		cursor->end = base; /* so that damage in here cannot move the position back */
	cursor->segment_ino = st.st_ino;
	nt_spool_scan_start(&cursor->scan, cursor->fd, base);
	return 0;
}

/* A closed segment's seal has its newest time: too old segments need no reading. */
static bool is_too_old(const struct nt_spool_cursor *cursor, size_t index)
{
	nt_autoclose int fd = -1;
	struct nt_spool_seal seal;

	return index + 1 < cursor->segments.count &&
	       nt_spool_open_segment(cursor->dirfd, cursor->segments.base[index], &fd) == 0 &&
	       nt_spool_read_seal(fd, &seal) == 0 && seal.newest_real_ns < cursor->from_real_ns;
}

/* Opens the segment of the next record wanted. 0 if there are no segments. */
static int enter(struct nt_spool_cursor *cursor, uint64_t generation)
{
	int r = -ENOENT;

	for (int i = 0; i < OPEN_TRIES && r == -ENOENT; i++) {
		size_t index;

		r = list(cursor, generation);
		if (r < 0 || !cursor->segments.count)
			return r;
		if (cursor->from_oldest)
			cursor->next = cursor->segments.base[0];
		cursor->from_oldest = false;
		if (cursor->next < cursor->segments.base[0]) {
			cursor->missed += cursor->segments.base[0] - cursor->next;
			cursor->next = cursor->segments.base[0];
		}
		index = find_segment(cursor, cursor->next);
		while (cursor->from_real_ns && is_too_old(cursor, index)) {
			index++;
			cursor->next = cursor->segments.base[index];
		}
		r = open_segment(cursor, cursor->segments.base[index]);
	}
	return r < 0 ? r : 1;
}

/* The segment at `base` was replaced by compaction. */
static bool is_replaced(const struct nt_spool_cursor *cursor, uint64_t base)
{
	char name[NT_SPOOL_NAME_BYTES];
	struct stat st;

	nt_spool_segment_name(base, name);
	return fstatat(cursor->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino != cursor->segment_ino;
}

static void count_damage(struct nt_spool_cursor *cursor, uint64_t places, uint64_t bytes)
{
	struct nt_spool_damage *damage = NULL;

	if (!places)
		return;
	cursor->damaged += places;
	for (size_t i = 0; i < cursor->damages && !damage; i++)
		if (cursor->damage[i].base == cursor->base)
			damage = &cursor->damage[i];
	if (!damage && cursor->damages < NT_SPOOL_MAX_DAMAGE) {
		damage = &cursor->damage[cursor->damages++];
		damage->base = cursor->base;
	}
	if (!damage)
		return;
	damage->places += places;
	damage->bytes += bytes;
}

uint64_t nt_spool_cursor_tail(const struct nt_spool_cursor *cursor)
{
	const uint64_t pos = cursor->scan.header_is_read ? cursor->scan.pos : 0;
	struct stat st;

	if (cursor->fd < 0 || fstat(cursor->fd, &st) < 0 || (uint64_t)st.st_size < pos)
		return 0;
	return (uint64_t)st.st_size - pos;
}

/*
 * This segment is at its end: continues with the one that holds the next record. 0 if there is
 * none, 1 to check again.
 *
 * Usually that is the one with the next higher base. But the following segments may have been
 * compacted into one file under a lower base, even that of the segment being read.
 */
static int advance(struct nt_spool_cursor *cursor, uint64_t generation, bool is_sealed)
{
	uint64_t wanted = cursor->end > cursor->next ? cursor->end : cursor->next;
	const struct nt_spool_segments *segments = &cursor->segments;
	size_t index;
	int r;

	if (cursor->listed != generation) {
		r = list(cursor, generation);
		if (r < 0)
			return r;
	}
	if (!segments->count)
		return 0;
	index = find_segment(cursor, wanted);
	if (segments->base[index] == cursor->base && !is_replaced(cursor, cursor->base))
		index++;
	if (index == segments->count)
		return 0;
	if (!is_sealed && !cursor->is_doubted) {
		/*
		 * The file was checked before the listing: records may have been added in between.
		 */
		cursor->is_doubted = true;
		return 1;
	}
	if (!is_sealed) {
		/* This segment is no longer written. */
		const uint64_t torn = nt_spool_cursor_tail(cursor);

		count_damage(cursor, torn > 0, torn);
	}
	if (index == 0 && segments->base[0] > wanted) {
		cursor->missed += segments->base[0] - wanted;
		cursor->next = segments->base[0];
	}
	r = open_segment(cursor, segments->base[index]);
	if (r == -ENOENT) {
		cursor->listed = 0;
		r = 0;
	}
	return r < 0 ? r : 1;
}

/* Takes over the log of the segment's header. */
static void check_log(struct nt_spool_cursor *cursor)
{
	const struct nt_spool_scan *scan = &cursor->scan;

	if (!scan->header_is_read || !scan->header.log || scan->header.log == cursor->log)
		return;
	if (cursor->log) {
		/* Another log under the same name: positions in the old one are invalid. */
		cursor->next = cursor->base;
		cursor->end = cursor->base;
	}
	cursor->log = scan->header.log;
}

/* Whether the frame is the next record. */
static bool accept(struct nt_spool_cursor *cursor, const struct nt_spool_frame *frame)
{
	if (cursor->end <= frame->offset)
		cursor->end = frame->offset + 1;
	if (frame->offset < cursor->next || frame->real_ns < cursor->from_real_ns)
		return false;
	cursor->from_real_ns = 0;
	cursor->is_seeking = false;
	cursor->head = *frame;
	cursor->has_head = true;
	return true;
}

int nt_spool_cursor_peek(struct nt_spool_cursor *cursor, uint64_t generation)
{
	struct nt_spool_item item;
	int r, found;

	if (cursor->has_head)
		return 1;
	if (cursor->dirfd < 0 || cursor->idle == generation)
		return 0;
	for (;;) {
		if (cursor->fd < 0) {
			r = enter(cursor, generation);
			if (r <= 0)
				break;
		}
		found = nt_spool_scan_next(&cursor->scan, &item);
		if (found < 0)
			return found;
		count_damage(cursor, cursor->scan.damaged, cursor->scan.damaged_bytes);
		cursor->scan.damaged = cursor->scan.damaged_bytes = 0;
		check_log(cursor);
		if (found == 1) {
			if (accept(cursor, &item.frame))
				return 1;
			continue;
		}
		if (found == 2 && cursor->end < item.seal.end)
			cursor->end = item.seal.end;
		r = advance(cursor, generation, found == 2);
		if (r < 0)
			return r;
		if (r == 0 && cursor->is_seeking && cursor->end < cursor->next)
			restart(cursor); /* behind the end: a position in an earlier log */
		else if (r == 0)
			break;
	}
	if (r == 0)
		cursor->idle = generation;
	return r;
}

void nt_spool_cursor_pass(struct nt_spool_cursor *cursor)
{
	if (!cursor->has_head)
		return;
	cursor->next = cursor->head.offset + 1;
	cursor->has_head = false;
}

int nt_spool_cursor_seek_end(struct nt_spool_cursor *cursor)
{
	struct nt_spool_item item;
	int r = -ENOENT;

	restart(cursor);
	if (cursor->dirfd < 0)
		return 0;
	for (int i = 0; i < OPEN_TRIES && r == -ENOENT; i++) {
		r = list(cursor, 0);
		if (r < 0 || !cursor->segments.count)
			return r;
		r = open_segment(cursor, cursor->segments.base[cursor->segments.count - 1]);
	}
	while (r == 0 && (r = nt_spool_scan_next(&cursor->scan, &item)) == 1)
		r = 0;
	if (r < 0)
		return r;
	cursor->scan.damaged = cursor->scan.damaged_bytes = 0;
	cursor->next = cursor->scan.least > cursor->base ? cursor->scan.least : cursor->base;
	cursor->log = cursor->scan.log_is_known ? cursor->scan.log : 0;
	return 0;
}
