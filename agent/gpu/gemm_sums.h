/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of NT_GEMM_SUMS sums of multiplications by type and mode. Without a key a sum is free. */
#ifndef NT_AGENT_GPU_GEMM_SUMS_H
#define NT_AGENT_GPU_GEMM_SUMS_H

#include <stdbool.h>

#include "bpf/event.h"

bool nt_gemm_sums_are_empty(const struct nt_gemm_sum *sum);

/* False: there was no place for some; the others are added. */
bool nt_gemm_sums_add(struct nt_gemm_sum *to, const struct nt_gemm_sum *sum);

#endif
