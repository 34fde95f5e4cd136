/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reader of Nsight Systems' exports (`nsys export --type sqlite`). */
#ifndef NT_CLI_INPUT_NSYS_H
#define NT_CLI_INPUT_NSYS_H

#include <stddef.h>

#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

/*
 * Reads exports of one or more processes each, as profiler traces without process groups. Own work
 * is the busy time of kernels and copies that are not NCCL's (T3). A rank is that of MPI_RANKS.
 * Without it, the number in the file's name is the rank if each export has one process. Else
 * processes are numbered by the files' numbers and by device. -EBADMSG with *ret_error; -ENOMEM.
 */
NT_MUST_CHECK int nt_trace_read_nsys(const char *const *paths, size_t count,
				     struct nt_trace **ret_trace, struct nt_trace_error *ret_error);

#endif
