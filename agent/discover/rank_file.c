/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/rank_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/host/proc.h"
#include "agent/host/root_path.h"
#include "agent/probes/probe.h"

bool nt_rank_file_is_interpreter(const char *basename)
{
	static const char stem[] = "libpython";
	const char *tail = basename + sizeof(stem) - 1;

	if (strncmp(basename, stem, sizeof(stem) - 1) != 0 || !isdigit((unsigned char)*tail))
		return false;
	tail = strstr(tail, ".so");
	return tail && (tail[3] == '\0' || tail[3] == '.');
}

bool nt_rank_file_is_gpu_library(const char *basename)
{
	static const char stem[] = "libneutracer-cupti";

	return strncmp(basename, stem, sizeof(stem) - 1) == 0;
}

bool nt_rank_file_is_nccl_profiler(const char *basename)
{
	static const char stem[] = "libnccl-profiler-neutracer";

	return strncmp(basename, stem, sizeof(stem) - 1) == 0;
}

bool nt_rank_file_is_runtime(const char *basename)
{
	return nt_probe_library_of(basename) == NT_LIBRARY_CUDART;
}

bool nt_rank_file_is_driver(const char *basename)
{
	return nt_probe_library_of(basename) == NT_LIBRARY_CUDA;
}

struct file_search {
	uint32_t pid;
	bool (*is_wanted)(const char *basename);
	nt_rank_file_fn fn;
	void *data;
	uint64_t ino[NT_RANK_FILES]; /* that were inspected */
	size_t inos;
	int result;
};

static void try_file(struct file_search *search, int fd, const struct stat *st)
{
	if (search->result == -ENOENT && fd >= 0)
		search->result = search->fn(search->data, fd, st);
}

static void try_mapping(void *data, const struct nt_mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');
	struct file_search *search = data;
	nt_autoclose int fd = -1;
	struct stat st;

	if (!slash || !search->is_wanted(slash + 1) || search->inos == NT_RANK_FILES)
		return;
	for (size_t i = 0; i < search->inos; i++)
		if (search->ino[i] == mapping->ino)
			return;
	search->ino[search->inos++] = mapping->ino;
	fd = nt_root_path_open_mapping(search->pid, mapping, &st);
	try_file(search, fd, &st);
}

static int try_mappings(uint32_t pid, bool (*is_wanted)(const char *basename),
			struct file_search *search)
{
	int r;

	search->is_wanted = is_wanted;
	r = nt_proc_mappings(pid, try_mapping, search);
	return r < 0 ? r : search->result;
}

static int try_program(uint32_t pid, struct file_search *search)
{
	nt_autoclose int fd = -1;
	struct stat st;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = nt_root_path_follow(path, &st);
	try_file(search, fd, &st);
	return search->result;
}

int nt_rank_file_find(uint32_t pid, int library, nt_rank_file_fn fn, void *data)
{
	struct file_search search = {.pid = pid, .fn = fn, .data = data, .result = -ENOENT};
	int r;

	switch (library) {
	case NT_LIBRARY_GPU:
		return try_mappings(pid, nt_rank_file_is_gpu_library, &search);
	case NT_LIBRARY_NCCL_PROFILER:
	case NT_LIBRARY_NCCL_SENDS:
		return try_mappings(pid, nt_rank_file_is_nccl_profiler, &search);
	case NT_LIBRARY_EVENT:
		r = try_mappings(pid, nt_rank_file_is_runtime, &search);
		return r == -ENOENT ? try_mappings(pid, nt_rank_file_is_driver, &search) : r;
	default:
		r = try_mappings(pid, nt_rank_file_is_interpreter, &search);
		return r == -ENOENT ? try_program(pid, &search) : r;
	}
}
