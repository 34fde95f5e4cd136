/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rdma/open_device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/memory.h"
#include "agent/host/proc.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"

enum {
	PATH_BYTES = 64,
	FDS_MAX = 65536, /* descriptors of a process that are looked at */
	CODES = 4096, /* mappings of code */
	CHUNK_PAGES = 64,
	CANDIDATES = 65536, /* places that look like a context: each costs a read of its device */
	/* struct ibv_context, whose ABI is stable: as bpf/verbs.bpf.h */
	CONTEXT_DEVICE = 0,
	CONTEXT_POLL_CQ = 96,
	CONTEXT_POST_SEND = 208,
	CONTEXT_FD = 264,
	CONTEXT_BYTES = 272,
	/* struct ibv_device */
	DEVICE_UVERBS = 88,
};

#define READ_MAX     (256ULL << 20)
#define LOOKED_MAX   (256ULL << 30) /* of mappings, in use or not: 0.7 s */
#define RANGE_MAX    (1ULL << 40) /* a larger mapping is a reservation: a sanitizer's, no heap */
#define PAGE_PRESENT (1ULL << 63) /* of /proc/PID/pagemap */

static const char device_path[] = "infiniband/uverbs", device_name[] = "uverbs";

/* ---- descriptors ----------------------------------------------------------------------------- */

static void close_dirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* By its path, which opens nothing: a file's server may be far away. */
static bool is_device(int dir, const char *fd)
{
	char target[PATH_MAX];
	const ssize_t len = readlinkat(dir, fd, target, sizeof(target) - 1);

	if (len <= 0)
		return false;
	target[len] = '\0';
	return strstr(target, device_path) != NULL;
}

size_t nt_open_device_list(uint32_t pid, int fd[NT_OPEN_DEVICES])
{
	__attribute__((cleanup(close_dirp))) DIR *dir = NULL;
	const struct dirent *entry;
	char path[PATH_BYTES];
	size_t fds = 0;

	(void)snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	for (int i = 0; dir && i < FDS_MAX && fds < NT_OPEN_DEVICES && (entry = readdir(dir));
	     i++) {
		uint64_t number;

		if (nt_parse_u64(entry->d_name, strlen(entry->d_name), 0, INT_MAX, &number) == 0 &&
		    is_device(dirfd(dir), entry->d_name))
			fd[fds++] = (int)number;
	}
	return fds;
}

/* ---- a context in memory --------------------------------------------------------------------- */

struct range {
	uint64_t start, end;
};

struct context_search {
	uint32_t pid;
	struct nt_memory memory;
	const int *fd;
	size_t fds;
	struct range code[CODES]; /* in the order of addresses */
	size_t codes;
	int pagemap;
	uint64_t read, looked; /* bytes so far */
	uint32_t candidates; /* so far */
	uint64_t post, poll; /* 0: not found yet */
	uint64_t page; /* bytes */
	uint8_t chunk[]; /* CHUNK_PAGES of them */
};

static void see_code(void *data, const struct nt_mapping *mapping)
{
	struct context_search *s = data;

	if (s->codes < CODES)
		s->code[s->codes++] = (struct range){mapping->start, mapping->end};
}

static int by_address(const void *key, const void *element)
{
	const uint64_t address = *(const uint64_t *)key;
	const struct range *range = element;

	if (address < range->start)
		return -1;
	return address >= range->end;
}

static uint64_t word_at(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static bool has_fd(const struct context_search *s, const uint8_t *at)
{
	int fd;

	memcpy(&fd, at, sizeof(fd));
	for (size_t i = 0; i < s->fds; i++)
		if (s->fd[i] == fd)
			return true;
	return false;
}

static bool is_device_of_verbs(struct context_search *s, uint64_t device)
{
	char name[sizeof(device_name) - 1];

	s->candidates++;
	return nt_memory_read(&s->memory, s->pid, device + DEVICE_UVERBS, name, sizeof(name)) ==
		       0 &&
	       memcmp(name, device_name, sizeof(name)) == 0;
}

/* Both functions are in one mapping, its descriptor is one of a device, and so is its device. */
static bool is_context(struct context_search *s, const uint8_t *at)
{
	const uint64_t post = word_at(at + CONTEXT_POST_SEND), poll = word_at(at + CONTEXT_POLL_CQ);
	const struct range *code;

	if (poll < s->code[0].start || poll >= s->code[s->codes - 1].end ||
	    !has_fd(s, at + CONTEXT_FD))
		return false;
	code = bsearch(&poll, s->code, s->codes, sizeof(s->code[0]), by_address);
	return code && post >= code->start && post < code->end &&
	       is_device_of_verbs(s, word_at(at + CONTEXT_DEVICE));
}

/* Found, or so much was done for it that a worker would be killed. */
static bool is_over(const struct context_search *s)
{
	return s->post || s->read >= READ_MAX || s->looked >= LOOKED_MAX ||
	       s->candidates >= CANDIDATES;
}

static void search_bytes(struct context_search *s, const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at + CONTEXT_BYTES <= len && !s->post && s->candidates < CANDIDATES;
	     at += sizeof(uint64_t)) {
		if (!is_context(s, bytes + at))
			continue;
		s->post = word_at(bytes + at + CONTEXT_POST_SEND);
		s->poll = word_at(bytes + at + CONTEXT_POLL_CQ);
	}
}

/* Pages that are not there are not read: that would make them. */
static void search_chunk(struct context_search *s, uint64_t start, size_t pages)
{
	uint64_t entry[CHUNK_PAGES];
	const ssize_t n = pread(s->pagemap, entry, pages * sizeof(entry[0]),
				(off_t)(start / s->page * sizeof(entry[0])));
	const size_t known = n > 0 ? (size_t)n / sizeof(entry[0]) : 0;

	for (size_t from = 0, to; from < known && !is_over(s); from = to + 1) {
		for (to = from; to < known && entry[to] & PAGE_PRESENT; to++)
			;
		if (to == from)
			continue;
		s->read += (to - from) * s->page;
		if (nt_memory_read(&s->memory, s->pid, start + from * s->page, s->chunk,
				   (to - from) * s->page) == 0)
			search_bytes(s, s->chunk, (to - from) * s->page);
	}
}

/* Chunks overlap by a page, so that a context is in one of them as a whole. */
static void search_range(struct context_search *s, struct range range)
{
	uint64_t at = range.start;

	if (range.end - range.start > RANGE_MAX)
		return;
	while (at < range.end && !is_over(s)) {
		const uint64_t left = (range.end - at) / s->page;

		s->looked += (left < CHUNK_PAGES ? left : CHUNK_PAGES) * s->page;

		if (left <= CHUNK_PAGES) {
			search_chunk(s, at, left);
			return;
		}
		search_chunk(s, at, CHUNK_PAGES);
		at += (CHUNK_PAGES - 1) * s->page;
	}
}

/*
 * A line of /proc/PID/maps: private, writable, of no file.
 *
 *	7f0000000000-7f0000400000 rw-p 00000000 00:00 0   [heap]
 */
static bool parse_own(const char *line, struct range *ret_range)
{
	static const char rights[] = " rw-p ", no_file[] = " 00:00 0";
	const size_t range = strcspn(line, " "), start = strcspn(line, "-");
	const char *const rest = line + range;
	size_t offset;

	if (start >= range || strncmp(rest, rights, sizeof(rights) - 1) != 0)
		return false;
	offset = sizeof(rights) - 1 + strcspn(rest + sizeof(rights) - 1, " ");
	if (strncmp(rest + offset, no_file, sizeof(no_file) - 1) != 0)
		return false;
	return nt_parse_hex(line, start, UINT64_MAX, &ret_range->start) == 0 &&
	       nt_parse_hex(line + start + 1, range - start - 1, UINT64_MAX, &ret_range->end) ==
		       0 &&
	       ret_range->end > ret_range->start;
}

static int search_memory(struct context_search *s)
{
	nt_autofree char *line = NULL;
	char path[PATH_BYTES];
	struct range range;
	size_t cap = 0;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%u/maps", s->pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	for (int i = 0; i < NT_PROC_MAPPINGS && !is_over(s) && getline(&line, &cap, maps) > 0; i++)
		if (parse_own(line, &range))
			search_range(s, range);
	(void)fclose(maps);
	return s->post ? 0 : -ENOENT;
}

int nt_open_device_functions(uint32_t pid, const int *fd, size_t fds, uint64_t *ret_post,
			     uint64_t *ret_poll)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	nt_autofree struct context_search *s = calloc(1, sizeof(*s) + CHUNK_PAGES * page);
	nt_autoclose int pagemap = -1;
	char path[PATH_BYTES];
	int r;

	if (!s)
		return -ENOMEM;
	(void)snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return -errno;
	s->page = page;
	s->pid = pid;
	s->fd = fd;
	s->fds = fds;
	s->pagemap = pagemap;
	s->memory = nt_memory_live();
	r = nt_proc_mappings(pid, see_code, s);
	if (r == 0)
		r = s->codes ? search_memory(s) : -ENOENT;
	if (r < 0)
		return r;
	*ret_post = s->post;
	*ret_poll = s->poll;
	return 0;
}
