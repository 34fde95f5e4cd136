/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The release of NCCL that the stand-in plays towards profiler plugins. SIM_NCCL_VERSION in the
 * environment is one of "2.23" to "2.32"; unset, it is that of the rest of the stand-in.
 */
#ifndef NT_SIM_NCCL_VERSION_H
#define NT_SIM_NCCL_VERSION_H

/* As ncclGetVersion() tells it: 22809. */
int sim_nccl_version(void);
/* 28 of 2.28. */
int sim_nccl_minor(void);

#endif
