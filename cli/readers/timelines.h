/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of timelines of many ranks in Chrome's trace format: lists of complete events ("ph": "X")
 * whose names are operations of Megatron.
 */
#ifndef NT_CLI_INPUT_TIMELINES_H
#define NT_CLI_INPUT_TIMELINES_H

#include <stddef.h>

#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

enum {
	NT_TIMELINES_MAX_FILES = 4096,
};

/*
 * Reads the timelines of MegatronApp (all ranks in one file), veScale's ndtimeline (a file for each
 * machine and some steps) or ByteDance's StragglerAnalysis. A step is a frame. Own work is the time
 * of compute operations (T3) without the communication inside of them. Starts of collectives are
 * not used: two of the formats change them. -EBADMSG with *ret_error; -ENOMEM, -E2BIG.
 */
NT_MUST_CHECK int nt_trace_read_timelines(const char *const *paths, size_t count,
					  struct nt_trace **ret_trace,
					  struct nt_trace_error *ret_error);

#endif
