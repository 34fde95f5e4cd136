/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel's driver for computing on AMD's GPUs (KFD) shows of them to this process. */
#ifndef NT_AGENT_GPU_KFD_H
#define NT_AGENT_GPU_KFD_H

#include <stdbool.h>

#define NT_KFD_NODES "/sys/class/kfd/kfd/topology/nodes"

/*
 * True if some GPU's number cannot be read: the devices of its cgroup do not have it. AMD SMI does not
 * expect that of a GPU on which a process computes, and crashes when it is asked for that process's.
 */
bool nt_kfd_hides_gpus(const char *nodes);

#endif
