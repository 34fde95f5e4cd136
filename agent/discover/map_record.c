/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/map_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

/* The trailer that sample_id_all appends to every record. */
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

_Static_assert(sizeof(struct trailer) == NT_MAP_TRAILER_BYTES, "as perf writes it");

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

uint64_t nt_map_time(const char *trailer)
{
	struct trailer read;

	memcpy(&read, trailer, sizeof(read));
	return read.boot_ns;
}
