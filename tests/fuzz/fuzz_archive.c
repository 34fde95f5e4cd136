/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An archive of any bytes becomes files, or is refused with a reason. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/input/archive.h"
#include "tests/fuzz/lib/cost.h"

static bool wants(void *data, const char *name)
{
	(void)data;
	return strlen(name) % 4 != 3;
}

static int take(void *data, const struct nt_archive_entry *entry)
{
	size_t *entries = data;

	assert(++*entries <= NT_ARCHIVE_MAX_ENTRIES);
	for (const char *at = entry->name; *at; at++)
		assert((unsigned char)*at >= 0x20);
	if (entry->fd >= 0)
		(void)close(entry->fd);
	return 0;
}

static int run(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("archive", MFD_CLOEXEC);
	char path[64], why[NT_ARCHIVE_ERROR_BYTES] = "";
	size_t entries = 0;
	struct nt_archive_reader reader = {.wants = wants, .take = take, .data = &entries};
	int r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nt_archive_read(&reader, path, why);
	assert(r == 0 || r == -EBADMSG);
	assert((r == 0) == !*why);
	/* The ratio counts from there on. */
	assert(reader.bytes <= NT_ARCHIVE_FREE_BYTES + 1024 * (uint64_t)size);
	return 0;
}

/* The library's own buffers; what is packed may be a thousand times as large. */
FUZZ_TARGET(run, .peak = {8 << 20, 4096}, .total = {64 << 20, 65536}, .steps = {1000000, 100000},
	    .cpu_ns = {200000000, 1000000})
