/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/usage.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "common/system/file.h"

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

/* statm: all numbers are pages; the second is resident, the third is of files and shared. */
static bool read_statm(uint64_t *ret_resident, uint64_t *ret_shared)
{
	nt_autobuf struct nt_buf buf = {0};
	uint64_t number[3];
	size_t at = 0;

	if (nt_file_read("/proc/self/statm", STATM_BYTES, &buf) < 0)
		return false;
	for (int i = 0; i < 3; i++) {
		const char *text = (const char *)buf.data + at;
		const char *end = memchr(text, ' ', buf.len - at);

		if (!end || nt_parse_u64(text, (size_t)(end - text), 0, UINT32_MAX, &number[i]) < 0)
			return false;
		at += (size_t)(end - text) + 1;
	}
	*ret_resident = number[1];
	*ret_shared = number[2];
	return true;
}

uint64_t nt_usage_resident_bytes(void)
{
	uint64_t resident, shared;

	if (!read_statm(&resident, &shared))
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t nt_usage_private_bytes(void)
{
	uint64_t resident, shared;

	if (!read_statm(&resident, &shared) || resident < shared)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}
