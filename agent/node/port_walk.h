/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RDMA ports of the node, and their counters, in /sys/class/infiniband (`sys`). */
#ifndef NT_AGENT_NODE_PORT_WALK_H
#define NT_AGENT_NODE_PORT_WALK_H

#include <stdint.h>

#include "common/base/cleanup.h"

typedef void (*nt_port_fn)(void *data, const char *device, const char *port);

/* Calls fn for each port of each device, in no order. */
void nt_port_walk(const char *sys, nt_port_fn fn, void *data);

/* file: such as "counters/port_xmit_data". -EBADMSG: it holds no number; else as nt_file_read(). */
NT_MUST_CHECK int nt_port_counter(const char *sys, const char *device, const char *port,
				  const char *file, uint64_t *ret_value);

#endif
