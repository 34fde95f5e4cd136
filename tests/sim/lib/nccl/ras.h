/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The RAS subsystem of the stand-in libnccl: with SIM_NCCL_RAS=1 a thread of each process answers on
 * NCCL_RAS_ADDR as NCCL 2.28.9 does. It states the communicators that its own process has.
 *
 * SIM_NCCL_RAS=text: as before 2.28.7, without JSON.
 */
#ifndef NT_SIM_NCCL_RAS_H
#define NT_SIM_NCCL_RAS_H

struct sim_comm;

/* The first one starts the thread, which runs until the process ends. */
void sim_ras_add(struct sim_comm *comm);
/* Before the last reference to it goes. */
void sim_ras_remove(const struct sim_comm *comm);

#endif
