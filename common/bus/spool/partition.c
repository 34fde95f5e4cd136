/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/partition.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/base/hash.h"
#include "common/bus/spool/dir.h"
#include "common/bus/spool/scan.h"
#include "common/system/clock.h"

enum {
	WAITING_BYTES = 256 << 10, /* buffered bytes that force a write */
	AGE_SEGMENTS = 8, /* precision of the age limit: this part of it */
};

/*
 * Offsets skipped after a reboot. Data that had not reached the disk is lost, but readers may have
 * stored positions behind it. They must not find other records under offsets that they have read.
 */
#define BOOT_GAP (1ULL << 20)

static const char lock_name[] = "lock";

/* A number for this boot of the machine, or 0 if unknown. */
static uint64_t read_boot(void)
{
	nt_autoclose int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text));
	return n > 0 ? nt_hash_bytes(NT_HASH_SEED, text, (size_t)n) : 0;
}

/* Maps all errors of a full disk to -ENOSPC. */
static int write_error(int err)
{
	return err == EDQUOT || err == EFBIG ? -ENOSPC : -err;
}

int nt_spool_write_at(int fd, uint64_t at, const uint8_t *data, size_t size, size_t *ret_written)
{
	size_t done = 0;
	int r = 0;

	while (done < size) {
		ssize_t n = pwrite(fd, data + done, size - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? write_error(errno) : -ENOSPC;
			break;
		}
		done += (size_t)n;
	}
	*ret_written = done;
	return r;
}

static void drop_segment(struct nt_spool_partition *partition)
{
	nt_closep(&partition->fd);
	partition->fd = -1;
}

void nt_spool_partition_free(struct nt_spool_partition *partition)
{
	if (!partition)
		return;
	drop_segment(partition);
	nt_closep(&partition->dirfd);
	nt_closep(&partition->lockfd);
	nt_buf_release(&partition->waiting);
	free(partition);
}

static int make_segment(struct nt_spool_partition *partition, uint64_t base)
{
	struct nt_spool_header header = {
		.log = partition->log,
		.base = base,
		.boot = partition->boot,
		.made_real_ns = nt_clock_real_ns(),
	};
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];
	char draft[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;
	size_t written;
	int r = nt_spool_make_draft(partition->dirfd, base, &fd);

	if (r < 0)
		return write_error(-r);
	nt_spool_header_write(&header, bytes);
	r = nt_spool_write_at(fd, 0, bytes, sizeof(bytes), &written);
	if (r == 0)
		r = nt_spool_publish_draft(partition->dirfd, base);
	if (r < 0) {
		nt_spool_draft_name(base, draft);
		(void)unlinkat(partition->dirfd, draft, 0);
		return r;
	}
	if (partition->limits->sync && fsync(partition->dirfd) < 0)
		return -errno;
	partition->fd = nt_take_fd(&fd);
	partition->base = base;
	partition->size = sizeof(bytes);
	partition->records = 0;
	partition->newest_real_ns = 0;
	partition->made_real_ns = header.made_real_ns;
	return 0;
}

/* Drops the first `done` bytes of the buffered frames, which were written. */
static void count_written(struct nt_spool_partition *partition, size_t done)
{
	struct nt_buf *waiting = &partition->waiting;
	size_t whole = 0, n;
	uint64_t lost;

	if (done == waiting->len) {
		partition->stats->published += partition->waiting_records;
		partition->stats->published_bytes += partition->waiting_payload;
		partition->records += partition->waiting_records;
		partition->size += done;
		if (partition->newest_real_ns < partition->waiting_newest_real_ns)
			partition->newest_real_ns = partition->waiting_newest_real_ns;
		return;
	}
	lost = partition->waiting_records;
	while (done - whole >= NT_SPOOL_FRAME_BYTES &&
	       (n = nt_spool_frame_peek_size(waiting->data + whole)) <= done - whole) {
		whole += n;
		lost--;
		partition->records++;
		partition->stats->published++;
		partition->stats->published_bytes += n - NT_SPOOL_FRAME_BYTES;
	}
	if (whole && partition->newest_real_ns < partition->waiting_newest_real_ns)
		partition->newest_real_ns = partition->waiting_newest_real_ns;
	partition->size += whole;
	partition->next -= lost; /* they were never visible */
	partition->stats->dropped_full += lost;
	if (partition->fd >= 0 && ftruncate(partition->fd, (off_t)partition->size) < 0)
		drop_segment(partition); /* its end is torn: continue in another */
}

int nt_spool_partition_flush(struct nt_spool_partition *partition)
{
	struct nt_buf *waiting = &partition->waiting;
	size_t written = 0;
	int r = 0;

	if (!waiting->len)
		return 0;
	if (partition->fd < 0)
		r = make_segment(partition, partition->next - partition->waiting_records);
	if (r == 0)
		r = nt_spool_write_at(partition->fd, partition->size, waiting->data, waiting->len,
				      &written);
	count_written(partition, written);
	nt_buf_clear(waiting);
	partition->waiting_records = 0;
	partition->waiting_payload = 0;
	partition->waiting_newest_real_ns = 0;
	if (r == 0 && partition->limits->sync && fdatasync(partition->fd) < 0)
		r = write_error(errno);
	return r;
}

void nt_spool_partition_roll(struct nt_spool_partition *partition)
{
	struct nt_spool_seal seal = {
		.end = partition->next,
		.newest_real_ns = partition->newest_real_ns,
		.records = partition->records,
	};
	uint8_t bytes[NT_SPOOL_SEAL_BYTES];
	size_t written;
	int r;

	if (partition->fd < 0 || !partition->records)
		return;
	nt_spool_seal_write(&seal, partition->log, bytes);
	/* A segment without a seal is only slower to read. */
	r = nt_spool_write_at(partition->fd, partition->size, bytes, sizeof(bytes), &written);
	if (r < 0)
		r = ftruncate(partition->fd, (off_t)partition->size);
	(void)r;
	if (partition->limits->sync)
		(void)fdatasync(partition->fd);
	drop_segment(partition);
}

int nt_spool_partition_retire(struct nt_spool_partition *partition)
{
	nt_spool_partition_roll(partition);
	return partition->fd < 0 ? make_segment(partition, partition->next) : 0;
}

/* A single record may exceed the segment size; it then has a segment of its own. */
static bool is_time_to_roll(const struct nt_spool_partition *partition, size_t more,
			    uint64_t now_real_ns)
{
	uint64_t span_ns = partition->limits->max_age_ns / AGE_SEGMENTS;
	uint64_t size = partition->waiting.len + more +
			(partition->fd >= 0 ? partition->size : NT_SPOOL_HEADER_BYTES);
	uint64_t records =
		partition->waiting_records + (partition->fd >= 0 ? partition->records : 0);

	if (!records)
		return false;
	if (size + NT_SPOOL_SEAL_BYTES > partition->limits->segment_bytes)
		return true;
	return partition->limits->max_age_ns && partition->fd >= 0 &&
	       now_real_ns > partition->made_real_ns &&
	       now_real_ns - partition->made_real_ns > span_ns;
}

int nt_spool_partition_make_room(struct nt_spool_partition *partition,
				 const struct nt_bus_record *record, uint64_t now_real_ns)
{
	int r;

	if (!is_time_to_roll(partition, nt_spool_frame_size(record), now_real_ns))
		return 0;
	r = nt_spool_partition_flush(partition);
	if (r < 0)
		return r;
	nt_spool_partition_roll(partition);
	return 1;
}

int nt_spool_partition_add(struct nt_spool_partition *partition, const struct nt_bus_record *record)
{
	size_t size = nt_spool_frame_size(record);
	struct nt_buf *waiting = &partition->waiting;
	int r = nt_buf_reserve(waiting, size);

	if (r < 0) {
		partition->stats->dropped_full++;
		return r;
	}
	nt_spool_frame_write(record, partition->log, partition->next, waiting->data + waiting->len);
	waiting->len += size;
	partition->next++;
	partition->waiting_records++;
	partition->waiting_payload += record->key_len + record->value_len;
	if (partition->waiting_newest_real_ns < record->real_ns)
		partition->waiting_newest_real_ns = record->real_ns;
	return waiting->len >= WAITING_BYTES ? nt_spool_partition_flush(partition) : 0;
}

/* ---- recovery -------------------------------------------------------------------------------- */

/*
 * Reads the newest segment to its last whole frame and truncates the rest. The rest is the torn end
 * of a write interrupted by kill -9, a full disk or a crash.
 */
static int recover_segment(struct nt_spool_partition *partition, uint64_t base)
{
	struct nt_spool_scan scan = {0};
	struct nt_spool_item item;
	nt_autoclose int fd = -1;
	char name[NT_SPOOL_NAME_BYTES];
	struct stat st;
	int r;

	nt_spool_segment_name(base, name);
	fd = openat(partition->dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	nt_spool_scan_start(&scan, fd, base);
	while ((r = nt_spool_scan_next(&scan, &item)) == 1) {
		partition->records++;
		if (partition->newest_real_ns < item.frame.real_ns)
			partition->newest_real_ns = item.frame.real_ns;
	}
	nt_spool_scan_release(&scan);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;

	if (scan.log_is_known)
		partition->log = scan.log;
	partition->next = scan.least > base ? scan.least : base;
	partition->base = base;
	partition->size = scan.pos;
	partition->made_real_ns = scan.header.made_real_ns;
	if ((uint64_t)st.st_size > scan.pos && !scan.is_sealed) {
		partition->stats->recovered_torn++;
		/* If the tail was once whole, readers may have read that many records from it. */
		partition->next += ((uint64_t)st.st_size - scan.pos) / NT_SPOOL_FRAME_BYTES;
		if (ftruncate(fd, (off_t)scan.pos) < 0)
			return -errno;
	}
	if (!scan.is_sealed && scan.log_is_known && scan.header.log && scan.damaged == 0)
		partition->fd = nt_take_fd(&fd);
	if (partition->boot && scan.header.boot && scan.header.boot != partition->boot) {
		nt_spool_partition_roll(partition);
		drop_segment(partition);
		partition->next += BOOT_GAP;
	}
	return 0;
}

/*
 * After an interrupted compaction, the newest file may not have the highest offset. No offset below
 * the end in a seal is reused.
 */
static void skip_sealed(struct nt_spool_partition *partition,
			const struct nt_spool_segments *segments)
{
	for (size_t i = 0; i < segments->count; i++) {
		struct nt_spool_seal seal;
		nt_autoclose int fd = -1;

		if (nt_spool_open_segment(partition->dirfd, segments->base[i], &fd) == 0 &&
		    nt_spool_read_seal(fd, &seal) == 0 && partition->next < seal.end) {
			partition->next = seal.end;
			drop_segment(partition); /* offsets within a segment have no gaps */
		}
	}
}

static int recover(struct nt_spool_partition *partition)
{
	nt_autosegments struct nt_spool_segments segments = {0};
	int r = nt_spool_remove_drafts(partition->dirfd);

	if (r < 0)
		return r;
	r = nt_spool_list_segments(partition->dirfd, &segments);
	if (r < 0)
		return r;
	while (!partition->log)
		if (getrandom(&partition->log, sizeof(partition->log), 0) < 0)
			return -errno;
	partition->boot = read_boot();
	if (segments.count)
		r = recover_segment(partition, segments.base[segments.count - 1]);
	if (r == 0)
		skip_sealed(partition, &segments);
	return r == 0 && partition->next > NT_SPOOL_MAX_OFFSET / 2 ? -EOVERFLOW : r;
}

int nt_spool_partition_open(int topic, uint32_t index, const struct nt_spool_limits *limits,
			    struct nt_bus_stats *stats, struct nt_spool_partition **ret_partition)
{
	nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
	char name[NT_SPOOL_NAME_BYTES];
	int r;

	partition = calloc(1, sizeof(*partition));
	if (!partition)
		return -ENOMEM;
	partition->dirfd = -1;
	partition->lockfd = -1;
	partition->fd = -1;
	partition->index = index;
	partition->limits = limits;
	partition->stats = stats;

	nt_spool_partition_name(index, name);
	r = nt_spool_make_dir(topic, name, &partition->dirfd);
	if (r < 0)
		return r;
	partition->lockfd = openat(partition->dirfd, lock_name,
				   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (partition->lockfd < 0)
		return -errno;
	if (flock(partition->lockfd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	r = recover(partition);
	if (r < 0)
		return r;
	*ret_partition = nt_take(partition);
	return 0;
}
