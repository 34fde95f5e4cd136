/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the agent itself takes. */
#ifndef NT_AGENT_HOST_USAGE_H
#define NT_AGENT_HOST_USAGE_H

#include <stdint.h>

/* 0 where it cannot be told. */
uint64_t nt_usage_cpu_ns(void);
uint64_t nt_usage_resident_bytes(void);
/* Of that, what is of no file and not shared. */
uint64_t nt_usage_private_bytes(void);

#endif
