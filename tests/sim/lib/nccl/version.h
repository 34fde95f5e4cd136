/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The release of NCCL that the stand-in plays towards profiler plugins. In the environment:
 * SIM_NCCL_VERSION          "2.23" to "2.32"; unset: that of the rest of the stand-in, 2.28
 * SIM_NCCL_CHANNELS         channels of a collective, 1 to 8; unset: 2
 * SIM_NCCL_PROXY            1: as if each rank were on a node of its own, with proxies that send and receive
 * SIM_NCCL_PXN              1: this process also sends for a rank of another process on its node
 * SIM_NCCL_GLOBALTIMER_STEP resolution of the GPU's clock, ns; unset: 1,024
 * SIM_NCCL_GLOBALTIMER_AHEAD how far that clock is ahead of CLOCK_REALTIME, ns; unset: 0
 * Not played: copy engines, symmetric kernels and their phases, network plugins, the RAS service, nccl.conf.
 */
#ifndef NT_SIM_NCCL_VERSION_H
#define NT_SIM_NCCL_VERSION_H

/* As ncclGetVersion() tells it: 22809. */
int sim_nccl_version(void);
/* 28 of 2.28. */
int sim_nccl_minor(void);

#endif
