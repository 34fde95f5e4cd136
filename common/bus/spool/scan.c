/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/scan.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WINDOW_BYTES = 64 << 10,
	/* First read of a search behind damage; each further read doubles it. */
	LEAST_WINDOW_BYTES = 1 << 10,
	/*
	 * The search is given up after CRCs over so many times the segment's size, until the segment
	 * grows. Only a forged file, with the header of a large frame at every few bytes, gets here.
	 */
	EFFORT_TIMES = 8,
	LOOKS = 3, /* reads of damaged bytes: two before the search, one after */
};

void nt_spool_scan_start(struct nt_spool_scan *scan, int fd, uint64_t base)
{
	scan->fd = fd;
	scan->header_is_read = false;
	scan->is_sealed = false;
	scan->header = (struct nt_spool_header){.base = base};
	scan->pos = NT_SPOOL_HEADER_BYTES;
	scan->least = 0;
	scan->effort = 0;
	scan->window_bytes = WINDOW_BYTES;
	nt_buf_clear(&scan->window);
}

void nt_spool_scan_release(struct nt_spool_scan *scan)
{
	nt_buf_release(&scan->window);
}

/* The buffered bytes may be outdated. */
static void forget_window(struct nt_spool_scan *scan)
{
	nt_buf_clear(&scan->window);
	scan->window_bytes = LEAST_WINDOW_BYTES;
}

static bool window_has(const struct nt_spool_scan *scan, uint64_t pos, size_t want)
{
	return pos >= scan->window_pos && pos - scan->window_pos <= scan->window.len &&
	       scan->window.len - (pos - scan->window_pos) >= want;
}

static int file_size(const struct nt_spool_scan *scan, uint64_t *ret_size)
{
	struct stat st;

	if (fstat(scan->fd, &st) < 0)
		return -errno;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int read_window(struct nt_spool_scan *scan, uint64_t pos, size_t size)
{
	struct nt_buf *window = &scan->window;
	int r;

	nt_buf_clear(window);
	r = nt_buf_reserve(window, size);
	if (r < 0)
		return r;
	scan->window_pos = pos;
	while (window->len < size) {
		ssize_t n = pread(scan->fd, window->data + window->len, size - window->len,
				  (off_t)(pos + window->len));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		window->len += (size_t)n;
	}
	return 0;
}

/*
 * Sets *ret_size to the buffered bytes of the file at pos: `want`, or less at the end of the file.
 * No memory is allocated, and nothing reread, for a frame size beyond the end of the file.
 */
static int fill_window(struct nt_spool_scan *scan, uint64_t pos, size_t want, size_t *ret_size)
{
	uint64_t size = 0;
	int r = 0;

	if (!window_has(scan, pos, want) && want > LEAST_WINDOW_BYTES) {
		r = file_size(scan, &size);
		if (r < 0)
			return r;
		size = size > pos ? size - pos : 0;
		if (want > size)
			want = (size_t)size;
	}
	if (!window_has(scan, pos, want)) {
		r = read_window(scan, pos, want < scan->window_bytes ? scan->window_bytes : want);
		if (scan->window_bytes < WINDOW_BYTES)
			scan->window_bytes *= 2;
	}
	if (r == 0)
		*ret_size = scan->window.len - (size_t)(pos - scan->window_pos);
	return r;
}

static const uint8_t *window_at(const struct nt_spool_scan *scan, uint64_t pos)
{
	return scan->window.data + (pos - scan->window_pos);
}

static int parse_at(struct nt_spool_scan *scan, uint64_t pos, struct nt_spool_item *ret_item)
{
	size_t size = 0, want = NT_SPOOL_SEAL_BYTES;
	int r = fill_window(scan, pos, want, &size);

	if (r < 0)
		return r;
	*ret_item =
		nt_spool_parse(window_at(scan, pos), size, scan->log_is_known ? &scan->log : NULL);
	if (ret_item->found != NT_SPOOL_SHORT || size < NT_SPOOL_FRAME_BYTES)
		return 0;
	want = nt_spool_frame_peek_size(window_at(scan, pos));
	r = fill_window(scan, pos, want, &size);
	if (r < 0)
		return r;
	if (size >= want)
		*ret_item = nt_spool_parse(window_at(scan, pos), size,
					   scan->log_is_known ? &scan->log : NULL);
	return 0;
}

static bool is_whole(const struct nt_spool_item *item)
{
	return item->found == NT_SPOOL_FRAME || item->found == NT_SPOOL_SEAL;
}

/* Bytes read to reject pos: the whole frame for its CRC, or its header. */
static uint64_t effort_at(const struct nt_spool_scan *scan, uint64_t pos,
			  const struct nt_spool_item *item)
{
	size_t size;

	if (item->found != NT_SPOOL_DAMAGED || (scan->log_is_known && item->log != scan->log))
		return sizeof(uint32_t);
	size = nt_spool_frame_peek_size(window_at(scan, pos));
	return size > NT_SPOOL_MAX_FRAME_BYTES ? sizeof(uint32_t) : size;
}

/* Finds the first whole frame or seal behind pos. *ret_item is not whole if there is none. */
static int search(struct nt_spool_scan *scan, struct nt_spool_item *ret_item, uint64_t *ret_pos)
{
	uint64_t pos = scan->pos + 1, file_bytes = 0;
	size_t size = 0, at;
	int r = file_size(scan, &file_bytes);

	ret_item->found = NT_SPOOL_DAMAGED;
	while (r == 0) {
		r = fill_window(scan, pos, NT_SPOOL_FRAME_BYTES, &size);
		if (r < 0 || scan->effort > file_bytes * EFFORT_TIMES)
			return r;
		if (size < NT_SPOOL_FRAME_BYTES) {
			/* Not given up: a later look has its own. */
			scan->effort = 0;
			return 0;
		}
		at = nt_spool_find_magic(window_at(scan, pos), 0, size);
		pos += at;
		if (at == size)
			continue;
		r = parse_at(scan, pos, ret_item);
		if (r < 0)
			return r;
		if (is_whole(ret_item) &&
		    (ret_item->found == NT_SPOOL_FRAME ? ret_item->frame.offset
						       : ret_item->seal.end) >= scan->least) {
			*ret_pos = pos;
			return 0;
		}
		scan->effort += effort_at(scan, pos, ret_item);
		ret_item->found = NT_SPOOL_DAMAGED;
		pos++;
	}
	return r;
}

static int read_header(struct nt_spool_scan *scan)
{
	struct nt_spool_header header;
	size_t size = 0;
	int r = fill_window(scan, 0, NT_SPOOL_HEADER_BYTES, &size);

	if (r < 0)
		return r;
	if (size < NT_SPOOL_HEADER_BYTES) {
		forget_window(scan);
		return 0;
	}
	scan->header_is_read = true;
	r = nt_spool_header_read(window_at(scan, 0), size, &header);
	if (r < 0 || header.base != scan->header.base) {
		scan->damaged++;
		scan->damaged_bytes += NT_SPOOL_HEADER_BYTES;
		return 1;
	}
	scan->header = header;
	scan->log = header.log;
	scan->log_is_known = true;
	return 1;
}

int nt_spool_scan_next(struct nt_spool_scan *scan, struct nt_spool_item *ret_item)
{
	uint64_t pos = scan->pos;
	int r;

	if (!scan->header_is_read) {
		r = read_header(scan);
		if (r <= 0)
			return r;
	}
	if (scan->is_sealed) {
		*ret_item = (struct nt_spool_item){
			.found = NT_SPOOL_SEAL,
			.log = scan->log,
			.seal = scan->seal,
		};
		return 2;
	}
	r = parse_at(scan, pos, ret_item);
	if (r == 0 && !is_whole(ret_item)) {
		/* The window may hold bytes that a writer has truncated and rewritten since. */
		forget_window(scan);
		r = parse_at(scan, pos, ret_item);
	}
	if (r == 0 && !is_whole(ret_item) && scan->window.len) {
		scan->effort += LOOKS * effort_at(scan, pos, ret_item);
		r = search(scan, ret_item, &pos);
		/*
		 * During the search a writer may have written the missing bytes and the item found
		 * behind them. As the item is there, so is everything before it.
		 */
		if (r == 0 && is_whole(ret_item)) {
			forget_window(scan);
			r = parse_at(scan, scan->pos, ret_item);
			if (r == 0 && is_whole(ret_item)) {
				pos = scan->pos;
			} else if (r == 0) {
				scan->damaged++;
				scan->damaged_bytes += pos - scan->pos;
				r = parse_at(scan, pos, ret_item);
			}
		}
	}
	if (r < 0)
		return r;
	if (!is_whole(ret_item))
		return 0;
	scan->log = ret_item->log;
	scan->log_is_known = true;
	if (ret_item->found == NT_SPOOL_SEAL) {
		scan->pos = pos + NT_SPOOL_SEAL_BYTES;
		scan->is_sealed = true;
		scan->seal = ret_item->seal;
		if (scan->least < ret_item->seal.end)
			scan->least = ret_item->seal.end;
		return 2;
	}
	scan->pos = pos + ret_item->frame.size;
	if (scan->least <= ret_item->frame.offset)
		scan->least = ret_item->frame.offset + 1;
	return 1;
}

int nt_spool_read_header(int fd, struct nt_spool_header *ret_header)
{
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	return n < 0 ? -errno : nt_spool_header_read(bytes, (size_t)n, ret_header);
}

int nt_spool_read_seal(int fd, struct nt_spool_seal *ret_seal)
{
	uint8_t bytes[NT_SPOOL_SEAL_BYTES];
	struct nt_spool_header header;
	struct nt_spool_item item;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES)
		return -ENOENT;
	n = pread(fd, bytes, sizeof(bytes), st.st_size - NT_SPOOL_SEAL_BYTES);
	if (n < 0)
		return -errno;
	if (nt_spool_read_header(fd, &header) < 0)
		return -ENOENT;
	item = nt_spool_parse(bytes, (size_t)n, &header.log);
	if (item.found != NT_SPOOL_SEAL)
		return -ENOENT;
	*ret_seal = item.seal;
	return 0;
}
