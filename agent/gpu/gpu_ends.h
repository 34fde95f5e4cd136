/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that ended, whose last windows wait until their GPUs have been read once more: the error
 * that ended a process is often reported after the last reading before its end.
 */
#ifndef NT_AGENT_GPU_GPU_ENDS_H
#define NT_AGENT_GPU_GPU_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/system/clock.h"

enum {
	NT_GPU_ENDS = 256, /* further ones do not wait */
};

/* At most; aggregators wait for late windows for three seconds. */
#define NT_GPU_ENDS_WAIT_NS (5 * NT_SECOND / 2)

struct nt_gpu_end {
	uint32_t pid;
	uint64_t start_boot_ns, boot_ns; /* of the process: its start and end */
	uint64_t noticed_ns; /* monotonic, as the times below */
	uint64_t gone_ns; /* its devices are closed since then at the latest; 0: perhaps not yet */
};

struct nt_gpu_ends {
	struct nt_gpu_end end[NT_GPU_ENDS]; /* in the order of their ends */
	uint32_t count;
	uint64_t over_cap; /* so far */
};

/* False: there is no room, which is counted. */
bool nt_gpu_ends_add(struct nt_gpu_ends *ends, const struct nt_gpu_end *end);
/* The process; NULL: it does not wait. As below, valid until the next change. */
const struct nt_gpu_end *nt_gpu_ends_find(const struct nt_gpu_ends *ends, uint32_t pid);
/* Which of them are gone by now. now_ns: before is_gone() is called. */
void nt_gpu_ends_look(struct nt_gpu_ends *ends, bool (*is_gone)(uint32_t pid), uint64_t now_ns);
/*
 * The next one that has waited long enough, or NULL. begun_ns: when the last complete reading began.
 * All are due at now_ns UINT64_MAX.
 */
const struct nt_gpu_end *nt_gpu_ends_due(const struct nt_gpu_ends *ends, uint64_t begun_ns,
					 uint64_t now_ns);
void nt_gpu_ends_remove(struct nt_gpu_ends *ends, uint32_t pid);

#endif
