/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file of a rank's process in which the functions or marks lie that are probed in ranks alone: its
 * Python interpreter, a library of ours that reports its GPU, or the one by which it queries CUDA events.
 */
#ifndef NT_AGENT_DISCOVER_RANK_FILE_H
#define NT_AGENT_DISCOVER_RANK_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

enum {
	NT_RANK_FILES = 8, /* inspected per process */
};

/* True if a mapped file is an interpreter by its name ("libpython3.11.so.1.0"). */
bool nt_rank_file_is_interpreter(const char *basename);
/* The same of libneutracer-cupti.so, and of libnccl-profiler-neutracer.so. */
bool nt_rank_file_is_gpu_library(const char *basename);
bool nt_rank_file_is_nccl_profiler(const char *basename);

/* The same of the CUDA runtime, and of the driver. */
bool nt_rank_file_is_runtime(const char *basename);
bool nt_rank_file_is_driver(const char *basename);

/*
 * Calls fn with each file of the process that may be that of `library`: NT_LIBRARY_PYTHON, where the
 * program comes last, NT_LIBRARY_GPU, NT_LIBRARY_NCCL_PROFILER, NT_LIBRARY_NCCL_SENDS, or
 * NT_LIBRARY_EVENT, where the driver comes last. Each is a regular file opened with O_PATH. Stops at the first
 * result other than -ENOENT and returns it; -ENOENT: none. May block: for workers.
 */
typedef int (*nt_rank_file_fn)(void *data, int fd, const struct stat *st);
NT_MUST_CHECK int nt_rank_file_find(uint32_t pid, int library, nt_rank_file_fn fn, void *data);

#endif
