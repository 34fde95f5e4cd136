/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/same_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum {
	TRIES = 3, /* a page may be reclaimed before it is examined */
};

#define FRAME_PRESENT (1ULL << 63)
#define FRAME_MASK    ((1ULL << 55) - 1)

/* 0: not present, or hidden. Does not touch the page, which would fault past the file's end. */
static uint64_t frame_of(int pagemap, const void *page)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t entry;

	if (pread(pagemap, &entry, sizeof(entry),
		  (off_t)((uintptr_t)page / page_bytes * sizeof(entry))) != sizeof(entry))
		return 0;
	return entry & FRAME_PRESENT ? entry & FRAME_MASK : 0;
}

bool nt_same_file(int fd, int other_fd)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	nt_autoclose int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t frame = 0, other_frame = 0;
	struct stat st, other_st;

	if (fstat(fd, &st) < 0 || fstat(other_fd, &other_st) < 0 || st.st_size != other_st.st_size)
		return false;
	if (st.st_dev == other_st.st_dev)
		return st.st_ino == other_st.st_ino;
	for (int i = 0; pagemap >= 0 && i < TRIES && !(frame && other_frame); i++) {
		void *page = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
		void *other =
			mmap(NULL, page_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, other_fd, 0);

		if (page != MAP_FAILED && other != MAP_FAILED) {
			frame = frame_of(pagemap, page);
			other_frame = frame_of(pagemap, other);
		}
		if (page != MAP_FAILED)
			(void)munmap(page, page_bytes);
		if (other != MAP_FAILED)
			(void)munmap(other, page_bytes);
	}
	if (frame && other_frame)
		return frame == other_frame;
	return st.st_ino == other_st.st_ino;
}
