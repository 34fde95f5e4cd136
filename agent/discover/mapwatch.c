/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/mapwatch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "agent/discover/map_ring.h"
#include "common/system/clock.h"

enum {
	RING_PAGES = 32, /* of data, per CPU: about a thousand records */

	/*
	 * A library should be probed before its process calls it, so every record causes a wake-up.
	 * Where hundreds of processes start (a build), the timer alone does.
	 */
	PERIOD_MS = 100,
	BUSY_LOOKS = 50, /* per period: from here on only the timer wakes */
	CALM_RECORDS = 100, /* per period: below this each record wakes again */
	LOOK_MS = 20,

	READ_RECORDS = 1024, /* per call, so that the loop is not held up */
	READ_PART = 64, /* records between two reads of the clock */
};

#define READ_NS (10 * NT_MILLISECOND) /* per call, for the same reason */

struct nt_mapwatch {
	int epoll, timer;
	size_t page_bytes, rings;
	bool busy;
	uint64_t period_ns; /* its start */
	unsigned int looks, records; /* in the period */
	char *record; /* NT_MAP_RECORD_BYTES */
	int *fd; /* owned, one per ring */
	struct nt_map_ring ring[];
};

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1, /* executable mappings; data mappings have a flag of their own */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
		.watermark = 1,
		.wakeup_watermark = 1, /* byte: every record causes a wake-up */
	};
	long fd;

	fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static int add_ring(struct nt_mapwatch *w, int cpu)
{
	struct epoll_event event = {.events = EPOLLIN};
	nt_autoclose int fd = open_event(cpu);
	void *page;

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd; /* an offline CPU */
	page = mmap(NULL, (RING_PAGES + 1) * w->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (page == MAP_FAILED)
		return -errno;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		int r = -errno;

		(void)munmap(page, (RING_PAGES + 1) * w->page_bytes);
		return r;
	}
	w->ring[w->rings] = (struct nt_map_ring){
		.page = page,
		.data = (const char *)page + w->page_bytes,
		.size = RING_PAGES * w->page_bytes,
	};
	w->fd[w->rings++] = nt_take_fd(&fd);
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

/* Switches wake-ups to the timer, or to every record. */
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
		if (epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->fd[i], &event) < 0)
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
	w->fd = calloc((size_t)cpus, sizeof(*w->fd));
	if (!w->record || !w->fd)
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
		(void)close(watch->fd[i]);
	}
	if (watch->timer >= 0)
		(void)close(watch->timer);
	if (watch->epoll >= 0)
		(void)close(watch->epoll);
	free(watch->record);
	free(watch->fd);
	free(watch);
}

int nt_mapwatch_fd(const struct nt_mapwatch *watch)
{
	return watch->epoll;
}

int64_t nt_mapwatch_read(struct nt_mapwatch *watch, nt_map_fn fn, void *data, bool *ret_more)
{
	const uint64_t end_ns = nt_clock_mono_ns() + READ_NS;
	uint64_t ticks, lost = 0;
	bool more = true;
	int r;

	if (read(watch->timer, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return -errno;
	for (int n = 0; more && n < READ_RECORDS && (!n || nt_clock_mono_ns() < end_ns);
	     n += READ_PART)
		lost += nt_map_rings_read(watch->ring, watch->rings, watch->record, READ_PART, fn,
					  data, &watch->records, &more);
	r = judge_period(watch);
	if (r < 0)
		return r;
	*ret_more = more;
	return lost > INT64_MAX ? INT64_MAX : (int64_t)lost;
}
