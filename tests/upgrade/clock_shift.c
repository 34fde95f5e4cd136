/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A library for LD_PRELOAD: real time is NT_CLOCK_SHIFT seconds late, so that kept data are as old
 * as when they were made. Monotonic clocks are not changed.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "common/base/parse_number.h"

static time_t shift(void)
{
	const char *text = getenv("NT_CLOCK_SHIFT");
	uint64_t seconds = 0;

	if (!text || nt_parse_u64(text, strlen(text), 0, UINT32_MAX, &seconds) < 0)
		return 0;
	return (time_t)seconds;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(clock, time);

	if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		time->tv_sec -= shift();
	return r;
}

__attribute__((visibility("default"))) time_t time(time_t *ret_time)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict ret_time,
							void *restrict zone)
{
	struct timespec now;
	int r = clock_gettime(CLOCK_REALTIME, &now);

	(void)zone;
	ret_time->tv_sec = now.tv_sec;
	ret_time->tv_usec = now.tv_nsec / 1000;
	return r;
}
