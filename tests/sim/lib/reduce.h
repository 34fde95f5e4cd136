/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arithmetic on the data types of NCCL. */
#ifndef NT_SIM_REDUCE_H
#define NT_SIM_REDUCE_H

#include <stddef.h>

/* Bytes of one element; 0: no such type. */
size_t sim_type_bytes(int type);

/* into[i] = into[i] op from[i]. Types without arithmetic here are left as they are. */
void sim_reduce(void *into, const void *from, size_t count, int type, int op);
/* The last step of an average over n ranks. */
void sim_reduce_average(void *into, size_t count, int type, unsigned int n);

#endif
