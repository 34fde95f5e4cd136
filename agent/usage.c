/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/usage.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/num.h"

enum {
	STATM_BYTES = 256,
};

uint64_t nt_usage_cpu_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NT_SECOND +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NT_MICROSECOND;
}

/* The second number of statm, in pages. */
uint64_t nt_usage_resident_bytes(void)
{
	nt_autobuf struct nt_buf buf = {0};
	uint64_t pages = 0;
	const char *text, *end;
	size_t at;

	if (nt_file_read("/proc/self/statm", STATM_BYTES, &buf) < 0)
		return 0;
	text = (const char *)buf.data;
	end = memchr(text, ' ', buf.len);
	if (!end)
		return 0;
	at = (size_t)(end + 1 - text);
	end = memchr(text + at, ' ', buf.len - at);
	if (!end || nt_num_u64(text + at, (size_t)(end - text) - at, 0, UINT32_MAX, &pages) < 0)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
