/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix multiplications of a job, through the stand-in for cuBLAS, which is loaded where it has any. */
#ifndef NT_SIM_GEMM_H
#define NT_SIM_GEMM_H

#include <stdint.h>

struct sim_gemm;

/* Ends the process if the library is missing. */
struct sim_gemm *sim_gemm_open(void);
void sim_gemm_close(struct sim_gemm *gemm); /* accepts NULL */
/* Enqueues so many, of bf16, on the default stream: 2 x 1024 x 1024 x 1024 operations each. */
void sim_gemm_enqueue(struct sim_gemm *gemm, uint32_t count);

#endif
