/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CPU time and memory of the agent itself. */
#ifndef NT_AGENT_HOST_USAGE_H
#define NT_AGENT_HOST_USAGE_H

#include <stdint.h>

/* 0 if unavailable. */
uint64_t nt_usage_cpu_ns(void);
uint64_t nt_usage_resident_bytes(void);
/* The part that is anonymous and not shared. */
uint64_t nt_usage_private_bytes(void);

#endif
