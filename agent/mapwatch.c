/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/mapwatch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "common/clock.h"

enum {
	RING_PAGES = 32, /* of data, per CPU: about a thousand records */
	FULL_BYTES = 4096 + 256, /* the longest record, which has a path: less room is none */

	/*
	 * A library should be probed before its process calls it, so every record wakes us; but
	 * where processes start by the hundred (a build), a look every few milliseconds must do.
	 */
	PERIOD_MS = 100,
	BUSY_LOOKS = 50, /* in a period, from which on only the timer wakes us */
	CALM_RECORDS = 100, /* in a period, below which the records may again */
	LOOK_MS = 20,
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t tail;
};

struct nt_mapwatch {
	int epoll, timer;
	size_t page_bytes, rings;
	bool busy;
	uint64_t period_ns; /* its start */
	unsigned int looks, records; /* in it */
	char *record; /* NT_MAP_RECORD_BYTES: one that wraps around is put together here */
	struct ring ring[];
};

/* What sample_id_all appends to every record. */
struct trailer {
	uint32_t pid, tid;
	uint64_t boot_ns;
};

struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

struct task_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t boot_ns;
};

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1, /* executable ones alone: data mappings have a flag of their own */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
		.watermark = 1,
		.wakeup_watermark = 1, /* byte: every record wakes who listens */
	};
	long fd;

	fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static int add_ring(struct nt_mapwatch *w, int cpu)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct ring *ring = &w->ring[w->rings];
	nt_autoclose int fd = open_event(cpu);
	void *page;

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd; /* a CPU that is off */
	page = mmap(NULL, (RING_PAGES + 1) * w->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (page == MAP_FAILED)
		return -errno;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		int r = -errno;

		(void)munmap(page, (RING_PAGES + 1) * w->page_bytes);
		return r;
	}
	*ring = (struct ring){.fd = nt_take_fd(&fd), .page = page};
	w->rings++;
	return 0;
}

static int add_timer(struct nt_mapwatch *w)
{
	struct epoll_event event = {.events = EPOLLIN};

	w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->timer < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->timer, &event) < 0)
		return -errno;
	return 0;
}

/* By the timer, or by every record. */
static int set_busy(struct nt_mapwatch *w, bool busy)
{
	const long look_ns = busy ? LOOK_MS * (long)NT_MILLISECOND : 0;
	const struct itimerspec every = {
		.it_interval = {.tv_nsec = look_ns},
		.it_value = {.tv_nsec = look_ns},
	};
	struct epoll_event event = {.events = busy ? 0 : EPOLLIN};

	if (timerfd_settime(w->timer, 0, &every, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < w->rings; i++)
		if (epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->ring[i].fd, &event) < 0)
			return -errno;
	w->busy = busy;
	return 0;
}

static int judge_period(struct nt_mapwatch *w)
{
	uint64_t now_ns = nt_clock_mono_ns();
	bool over = now_ns - w->period_ns >= PERIOD_MS * NT_MILLISECOND;
	int r = 0;

	w->looks++;
	if (!w->busy && w->looks > BUSY_LOOKS && !over)
		r = set_busy(w, true);
	else if (w->busy && over && w->records < CALM_RECORDS)
		r = set_busy(w, false);
	if (over) {
		w->period_ns = now_ns;
		w->looks = w->records = 0;
	}
	return r;
}

int nt_mapwatch_new(struct nt_mapwatch **ret_watch)
{
	nt_auto(nt_mapwatch) struct nt_mapwatch *w = NULL;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r;

	if (cpus <= 0)
		return -EINVAL;
	w = calloc(1, sizeof(*w) + (size_t)cpus * sizeof(w->ring[0]));
	if (!w)
		return -ENOMEM;
	w->timer = -1;
	w->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return -errno;
	w->record = malloc(NT_MAP_RECORD_BYTES);
	if (!w->record)
		return -ENOMEM;
	for (long cpu = 0; cpu < cpus; cpu++) {
		r = add_ring(w, (int)cpu);
		if (r < 0)
			return r;
	}
	r = add_timer(w);
	if (r < 0)
		return r;
	*ret_watch = nt_take(w);
	return 0;
}

void nt_mapwatch_free(struct nt_mapwatch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->rings; i++) {
		(void)munmap(watch->ring[i].page, (RING_PAGES + 1) * watch->page_bytes);
		(void)close(watch->ring[i].fd);
	}
	if (watch->timer >= 0)
		(void)close(watch->timer);
	if (watch->epoll >= 0)
		(void)close(watch->epoll);
	free(watch->record);
	free(watch);
}

int nt_mapwatch_fd(const struct nt_mapwatch *watch)
{
	return watch->epoll;
}

int nt_map_parse(char *bytes, size_t size, struct nt_map_record *ret_record, uint64_t *ret_lost)
{
	struct nt_map_record record = {0};
	struct perf_event_header header;
	struct mmap2_body map;
	struct task_body task;
	struct trailer trailer;
	size_t body;

	if (size < sizeof(header) + sizeof(trailer))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	memcpy(&trailer, bytes + size - sizeof(trailer), sizeof(trailer));
	body = size - sizeof(header) - sizeof(trailer);
	bytes += sizeof(header);
	record.boot_ns = trailer.boot_ns;
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		if (body <= sizeof(map))
			return -EBADMSG;
		memcpy(&map, bytes, sizeof(map));
		record.kind = NT_MAP_MAPPED;
		record.pid = map.pid;
		record.tid = map.tid;
		record.start = map.addr;
		record.end = map.addr + map.len;
		record.ino = map.ino;
		record.path = bytes + sizeof(map);
		if (!memchr(record.path, '\0', body - sizeof(map)))
			return -EBADMSG;
		break;
	case PERF_RECORD_COMM:
		if (body < 8)
			return -EBADMSG;
		if (!(header.misc & PERF_RECORD_MISC_COMM_EXEC))
			return -ENOENT;
		record.kind = NT_MAP_EXEC;
		memcpy(&record.pid, bytes, 4);
		memcpy(&record.tid, bytes + 4, 4);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		if (body < sizeof(task))
			return -EBADMSG;
		memcpy(&task, bytes, sizeof(task));
		if (header.type == PERF_RECORD_FORK && task.pid == task.ppid)
			return -ENOENT;
		record.kind = header.type == PERF_RECORD_FORK ? NT_MAP_FORKED : NT_MAP_EXITED;
		record.pid = task.pid;
		record.tid = task.tid;
		record.parent = task.ppid;
		break;
	case PERF_RECORD_LOST:
		if (body < 16)
			return -EBADMSG;
		memcpy(ret_lost, bytes + 8, sizeof(*ret_lost));
		return NT_MAP_LOST;
	default:
		return -ENOENT;
	}
	*ret_record = record;
	return 0;
}

/* len bytes at a position of the ring, which may wrap around. */
static void copy_out(const struct nt_mapwatch *w, const struct ring *ring, uint64_t at, char *to,
		     size_t len)
{
	size_t size = RING_PAGES * w->page_bytes;
	const char *base = (const char *)ring->page + w->page_bytes;
	size_t offset = (size_t)(at % size);
	size_t first = len < size - offset ? len : size - offset;

	memcpy(to, base + offset, first);
	memcpy(to + first, base, len - first);
}

/*
 * Up to what was there when it began. Returns the records lost; a ring out of step counts as one, and
 * so does a full one: the kernel tells how many did not fit only before the next that does.
 */
static uint64_t read_ring(struct nt_mapwatch *w, struct ring *ring, nt_map_fn fn, void *data)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t lost = head - ring->tail > RING_PAGES * w->page_bytes - FULL_BYTES, more;
	struct perf_event_header header;
	struct nt_map_record record;

	while (ring->tail < head) {
		copy_out(w, ring, ring->tail, (char *)&header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - ring->tail) {
			lost++;
			ring->tail = head;
			break;
		}
		copy_out(w, ring, ring->tail, w->record, header.size);
		ring->tail += header.size;
		switch (nt_map_parse(w->record, header.size, &record, &more)) {
		case 0:
			w->records++;
			fn(data, &record);
			break;
		case NT_MAP_LOST:
			lost += more;
			break;
		case -EBADMSG:
			lost++;
			break;
		default:
			break;
		}
	}
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	return lost;
}

int64_t nt_mapwatch_read(struct nt_mapwatch *watch, nt_map_fn fn, void *data)
{
	uint64_t ticks, lost = 0;
	int r;

	if (read(watch->timer, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return -errno;
	for (size_t i = 0; i < watch->rings; i++)
		lost += read_ring(watch, &watch->ring[i], fn, data);
	r = judge_period(watch);
	if (r < 0)
		return r;
	return lost > INT64_MAX ? INT64_MAX : (int64_t)lost;
}
