/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix multiplications of a job, through the stand-in for cuBLAS, which is loaded where it has any. */
#ifndef NT_SIM_GEMM_H
#define NT_SIM_GEMM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_gemm;

/* So many in a step. is_captured: after some steps they become a graph. Ends the process if the library is missing. */
struct sim_gemm *sim_gemm_open(uint32_t count, bool is_captured);
void sim_gemm_close(struct sim_gemm *gemm); /* accepts NULL */
/* Enqueues those of a step, of bf16: 2 x 1024 x 1024 x 1024 operations each. */
void sim_gemm_enqueue(struct sim_gemm *gemm);

#endif
