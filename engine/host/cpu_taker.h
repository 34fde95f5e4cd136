/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who had the CPU while a rank was runnable: sums over its recent windows, by process. Plain data. */
#ifndef NT_ENGINE_HOST_CPU_TAKER_H
#define NT_ENGINE_HOST_CPU_TAKER_H

#include <stdint.h>

#include "proto/wire.h"

enum {
	NT_CPU_TAKER_NAME = 16, /* bytes of a task's name, its NUL included */
	NT_CPU_TAKERS = 4, /* processes; the least is evicted */
};

struct nt_cpu_taker {
	char name[NT_CPU_TAKER_NAME];
	uint32_t pid; /* 0: free */
	double ns;
};

/* Zero-initialised. */
struct nt_cpu_takers {
	struct nt_cpu_taker taker[NT_CPU_TAKERS];
	double taken_ns; /* by all, also those that are not listed */
	uint32_t own_pid; /* the rank's own process */
};

void nt_cpu_takers_add(struct nt_cpu_takers *takers, const struct nt_host_evidence *host);
/* The process that took most, if that is half of all. *ret_part: its part. NULL: there is none. */
const struct nt_cpu_taker *nt_cpu_takers_main(const struct nt_cpu_takers *takers, double *ret_part);

#endif
